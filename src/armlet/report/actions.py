"""How a bandit of actions, its tables and its decisions show themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from armlet.report import notebook
from armlet.report.decisions import values_text

if TYPE_CHECKING:
    from armlet.actions.bandit import ActionBandit
    from armlet.actions.decision import ActionDecision
    from armlet.actions.table import ActionTable

USUAL: Final = {"objective": "max", "reward_range": None}
FEATURES: Final = 12  # that are named
SHARES: Final = 5  # probabilities that are shown


def action_bandit_text(bandit: ActionBandit, usual: object) -> str:
    """Return a bandit in a line; `usual` is the policy of one that is given none.

    Examples
    --------
    >>> import armlet
    >>> armlet.ActionBandit(2, 3, policy=armlet.SharedThompson(draws=50), objective="min")
    ActionBandit(dim=2, action_dim=3, policy=SharedThompson(draws=50), objective='min', t=0, rows=0)
    """
    s = bandit.settings
    fields = {"dim": s.dim, "action_dim": s.action_dim, **_chosen(bandit, usual)}
    fields |= {"t": bandit.t, "rows": f"{bandit.state.n:g}"}
    return f"{type(bandit).__name__}({', '.join(f'{name}={value}' for name, value in fields.items())})"


def action_bandit_html(bandit: ActionBandit, usual: object) -> str:
    """Return a bandit as a notebook shows it.

    Examples
    --------
    >>> import armlet
    >>> "0 rows learned" in action_bandit_html(armlet.ActionBandit(2, 3), armlet.SharedOptimism())
    True
    """
    s, state = bandit.settings, bandit.state
    settings: dict[str, object] = {"policy": notebook.brief(s.policy), **_chosen(bandit, usual)}
    settings |= {
        "features of contexts": _features(s.features, s.dim),
        "features of actions": _features(s.action_features, s.action_dim),
        "terms": state.n_terms,
        "actions with an intercept": state.n_items,
        "decisions": bandit.t,
    }
    parts = [notebook.facts(settings)]
    if bandit.tables:
        tables: dict[str, list[object]] = {
            "table": list(bandit.tables),
            "actions": [len(table) for table in bandit.tables.values()],
        }
        parts.append(notebook.table(tables))
    return notebook.fragment(f"{type(bandit).__name__}, {state.n:,g} rows learned", *parts)


def action_decision_html(decision: ActionDecision) -> str:
    """Return a decision as a notebook shows it."""
    marginal = "" if decision.marginal else ", given the kind of step that the coin made it"
    support = sorted((decision.support or {}).items(), key=lambda pair: -pair[1])
    fields = {
        "arm": str(decision.arm),
        "propensity": notebook.cell(decision.propensity) + marginal,
        "optimistic": decision.optimistic,
        "reward": "none yet" if decision.reward is None else decision.reward,
        "context": values_text(decision.x.tolist()),
        "action": values_text(decision.z.tolist()),
        "support": ", ".join(f"{arm}: {notebook.cell(p)}" for arm, p in support[:SHARES]) or None,
        "actions": decision.n_actions,
        "id": decision.id,
    }
    if decision.expired:
        fields["reward"] = "no longer expected"
    return notebook.fragment(f"Decision {decision.t:,}: {decision.arm}", notebook.facts(fields))


def action_table_html(table: ActionTable) -> str:
    """Return a table of actions as a notebook shows it."""
    names = table.names or tuple(map(str, range(table.dim)))
    columns: dict[str, list[object]] = {"arm": [str(label) for label in table.labels[: notebook.MOST]]}
    for name, values in zip(names[:FEATURES], table.features[: notebook.MOST].T.tolist(), strict=False):
        columns[name] = values
    left = len(table) - len(columns["arm"])
    more = notebook.note(f"{left:,} more actions" if left else "")
    return notebook.fragment(f"{len(table):,} actions, {table.dim} features", notebook.table(columns), more)


def _features(names: tuple[str, ...] | None, dim: int) -> str:
    return notebook.listed(names, FEATURES) if names else f"{dim:,} without names"


def _chosen(bandit: ActionBandit, usual: object) -> dict[str, str]:
    """Return the settings that differ from those of a bandit that is given none."""
    settings, chosen = bandit.settings, {}
    if settings.policy != usual:
        chosen["policy"] = notebook.brief(settings.policy)
    for name in ("encoder", "action_encoder"):
        if (encoder := getattr(settings, name)) is not None:
            chosen[name] = notebook.shorten(repr(encoder))
    for name, default in USUAL.items():
        if (value := getattr(settings, name)) != default:
            chosen[name] = repr(value)
    return chosen
