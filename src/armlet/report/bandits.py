"""How a bandit shows itself: the settings that somebody chose, its arms, its clock and the rows that it has learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from armlet.report import notebook

if TYPE_CHECKING:
    from armlet.bandit import Bandit
    from armlet.types import Float64, Policy

USUAL: Final = {"objective": "max", "normalize": None, "reward_range": None, "feature_range": None}
FEATURES: Final = 12  # that are named


def bandit_text(bandit: Bandit, usual: Policy) -> str:
    """Return a bandit in a line; `usual` is the policy of one that is given none.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.LinUCB(alpha=0.5), objective="min", seed=1)
    >>> bandit.learn(bandit.decide([1.0, 0.5]), 0.3)
    >>> bandit
    Bandit(arms=['a', 'b'], dim=2, policy=LinUCB(alpha=0.5), objective='min', t=1, rows=1)
    >>> armlet.Bandit(range(100), 2)
    Bandit(arms=[0, 1, 2, 3, 4, ..., 99], dim=2, t=0, rows=0)
    """
    labels = bandit.arms
    rows = _rows(bandit, len(labels))
    made = {"arms": notebook.listed(labels), "dim": bandit.settings.dim, **_chosen(bandit, usual)}
    fields = made | {"t": bandit.t} | ({} if rows is None else {"rows": f"{rows.sum():g}"})
    return f"{type(bandit).__name__}({', '.join(f'{name}={value}' for name, value in fields.items())})"


def bandit_html(bandit: Bandit, usual: Policy) -> str:
    """Return a bandit as a notebook shows it.

    Examples
    --------
    >>> import armlet
    >>> "0 rows learned" in bandit_html(armlet.Bandit(["a", "b"], 2), armlet.OccasionalOptimism())
    True
    """
    labels, settings = bandit.arms, bandit.settings
    rows = _rows(bandit, len(labels))
    retired = set(labels.retired)
    states = ["retired" if label in retired else "plays" for label in labels]
    arms: dict[str, list[Any]] = {"arm": [str(label) for label in labels], "state": states}
    if rows is not None:
        arms["rows"] = rows.tolist()
    names = settings.features
    features = notebook.listed(names, FEATURES) if names else f"{settings.dim:,} without names"
    chosen = {"policy": notebook.brief(settings.policy), **_chosen(bandit, usual)}
    title = type(bandit).__name__ + ("" if rows is None else f", {rows.sum():,g} rows learned")
    known = notebook.facts({**chosen, "features": features, "decisions": bandit.t})
    return notebook.fragment(title, known, notebook.table(arms))


def _chosen(bandit: Bandit, usual: Policy) -> dict[str, str]:
    """Return the settings that differ from those of a bandit that is given none."""
    settings, chosen = bandit.settings, {}
    if settings.policy != usual:
        chosen["policy"] = notebook.brief(settings.policy)
    if settings.encoder is not None:
        chosen["encoder"] = notebook.shorten(repr(settings.encoder))
    for name, default in USUAL.items():
        if (value := getattr(settings, name)) != default:
            chosen[name] = repr(value)
    return chosen


def _rows(bandit: Bandit, n_arms: int) -> Float64 | None:
    """Return the rows that were learned, by weight, (K,); None where the state does not count them by arm."""
    n: Float64 | None = getattr(bandit.state, "n", None)
    return n if n is not None and n.shape == (n_arms,) else None
