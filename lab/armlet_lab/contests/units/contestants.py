"""Who plays: every policy in two forms, as it was before units were free, and as it is by default.

"as given" is Algorithm 1 as printed for every fixed p, and elsewhere units as given and a clock of steps.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from armlet.policies import (
    Algorithm1,
    AutoAlgorithm1,
    AutoEpsilonGreedy,
    ContextualEpsilonGreedy,
    LinUCB,
    OptimisticEpsilonGreedy,
    ThompsonSampling,
)
from armlet.types import Policy
from armlet_lab.runner.hindsight import grid_of_p

Form: TypeAlias = Literal["as given", "free"]
FORMS: Final[tuple[Form, ...]] = ("as given", "free")

BEST: Final = "best fixed p"
NAMES: Final = ("auto", "optimistic", "LinUCB", "Thompson")  # besides the grid of fixed p
SHOWN: Final = (BEST, *NAMES)
TOLD: Final = {"told 10 T": 10.0, "told T / 10": 0.1}  # what "auto" is told of the horizon
UNTOLD: Final = "not told"  # the free form alone plays without a horizon


def contestants(form: Form, n_arms: int, horizon: int, ratio: float) -> dict[str, Policy]:
    """Give all policies of a form: a grid of fixed p, the named ones, and "auto" told something else than T.

    Examples
    --------
    >>> list(contestants("free", 5, 200, 4.0))[:4]
    ['p = 5', 'p = 20', 'auto', 'optimistic']
    """
    fixed = {f"p = {p:g}": _fixed(form, p) for p in grid_of_p(n_arms, horizon, ratio)}
    told = {name: _auto(form, max(1, round(times * horizon))) for name, times in TOLD.items()}
    untold: dict[str, Policy] = {UNTOLD: AutoEpsilonGreedy()} if form == "free" else {}
    return {**fixed, **_named(form, horizon), **told, **untold}


def _fixed(form: Form, p: float) -> Policy:
    return Algorithm1(p=p) if form == "as given" else ContextualEpsilonGreedy(p=p)


def _auto(form: Form, horizon: int) -> Policy:
    return AutoAlgorithm1(horizon=horizon) if form == "as given" else AutoEpsilonGreedy(horizon=horizon)


def _named(form: Form, horizon: int) -> dict[str, Policy]:
    if form == "as given":
        others: tuple[Policy, ...] = (
            OptimisticEpsilonGreedy(units="as given"),
            LinUCB(units="as given"),
            ThompsonSampling(units="as given"),
        )
    else:
        others = OptimisticEpsilonGreedy(), LinUCB(), ThompsonSampling(v=1.0)
    return dict(zip(NAMES, (_auto(form, horizon), *others), strict=True))
