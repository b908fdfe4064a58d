"""How decisions show themselves and are handed on.

Compiled classes have no Python base, so `armlet.kernel` lends them the methods of the classes here when it is imported;
`decide` and `learn` never come by.
"""

from __future__ import annotations

import inspect
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from armlet.errors import require_package

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure

    from armlet.kernel import Decision, Decisions
    from armlet.types import Arm
else:
    Decision = Decisions = object  # at run time these classes are mere bags of methods

VALUES: Final = 8  # of a context that are shown
NAMED: Final = 3  # arms that a repr counts
BARS: Final = 30  # arms of a figure


class ShownDecision(Decision):
    """What a `Decision` borrows."""

    def _repr_html_(self) -> str:
        from armlet.report import notebook  # not before something is shown: neither are the others below

        marginal = "" if self.marginal else ", given the kind of step that the coin made it"
        fields = {
            "arm": str(self.arm),
            "propensity": notebook.cell(self.propensity) + marginal,
            "explored": _explored(self),
            "reward": "none yet" if self.reward is None else self.reward,
            "context": values_text(self.x.tolist()),
            "eligible": None if self.eligible is None else ", ".join(map(str, self.eligible)),
            "probabilities": None if self.probabilities is None else values_text(self.probabilities.tolist()),
            "id": self.id,
        }
        if self.expired:
            fields["reward"] = "no longer expected"
        return notebook.fragment(f"Decision {self.t:,}: {self.arm}", notebook.facts(fields))


class ShownDecisions(Decisions):
    """What `Decisions` borrow."""

    def columns(self) -> dict[str, list[Any]]:
        """Return them by columns, named as the entries of `Decision.to_dict`."""
        from armlet.report.result import plain

        eligible = None if self.eligible is None else list(self.eligible)
        arrays = {
            "t": self.t,
            "x": self.X,
            "arm": list(self.arms),
            "propensity": self.propensities,
            "explored": self.explored,
            "optimistic": self.optimistic,
            "exploration_rate": self.exploration_rates,
            "exploration_propensity": self.exploration_propensities,
            "min_exploration_probability": self.min_exploration_probabilities,
            "greedy": self.greedy,
            "design": self.designs,
            "tag": self.tags,
            "marginal": self.marginal,
        }
        return {"id": list(self.ids), **plain(arrays), "eligible": [eligible] * len(self)}

    def to_dict(self) -> dict[str, Any]:
        """Return the columns in plain JSON types; with a column of rewards, `Bandit.partial_fit` learns them."""
        return self.columns()

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame, one row a decision."""
        from armlet.report.result import data_frame

        return data_frame(self.columns())

    def plot(self) -> Figure:
        """Draw how often each arm is played, by exploration and not; needs `armlet[plots]`."""
        explored = Counter(arm for arm, is_explored in zip(self.arms, self.explored, strict=True) if is_explored)
        return plays_figure(Counter(self.arms), explored)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, by the ending of its name: .html, .json, .csv, .png or .svg."""
        from armlet.report.result import save

        save(self, path)

    def __repr__(self) -> str:
        return f"<{_counted(self)}>"

    def _repr_html_(self) -> str:
        from armlet.report.notebook import fragment

        return fragment(_counted(self), *self._html())

    def _html(self) -> list[str]:
        from armlet.report import notebook

        rows = [self[place] for place in range(min(len(self), notebook.MOST))]
        shown: dict[str, list[object]] = {
            "t": [row.t for row in rows],
            "arm": [str(row.arm) for row in rows],
            "propensity": [row.propensity for row in rows],
            "explored": [row.explored for row in rows],
            "context": [values_text(row.x.tolist()) for row in rows],
        }
        left = len(self) - len(rows)
        return [notebook.table(shown), notebook.note(f"{left:,} more decisions" if left else "")]

    def _page(self) -> str:
        from armlet.report.result import page

        return page(self, "Decisions", _counted(self), self._html())


def lend(borrower: type, lender: type) -> None:
    """Give a class the methods that another one defines, as its own: its type stub has them too."""
    for name, method in vars(lender).items():
        if inspect.isfunction(method):
            method.__module__, method.__qualname__ = borrower.__module__, f"{borrower.__name__}.{name}"
            setattr(borrower, name, method)


def _explored(decision: Decision) -> str:
    if decision.exploration_rate is None:
        return "yes" if decision.explored else "no"
    return f"{'yes' if decision.explored else 'no'} (probability {decision.exploration_rate:.3g})"


def values_text(values: list[float]) -> str:
    """Return the first values of a row."""
    more = f", ... {len(values) - VALUES:,} more" if len(values) > VALUES else ""
    return ", ".join(f"{value:.4g}" for value in values[:VALUES]) + more


def _counted(decisions: Decisions) -> str:
    n = len(decisions)
    if not n:
        return "0 decisions"
    steps = decisions.t
    plays = Counter(decisions.arms).most_common()
    counts = ", ".join(f"{arm}: {count:,}" for arm, count in plays[:NAMED])
    others = f", {len(plays) - NAMED:,} other arms" if len(plays) > NAMED else ""
    when = f"step {steps[0]:,}" if n == 1 else f"steps {steps[0]:,} to {steps[-1]:,}"
    what = f"{n:,} {'decision' if n == 1 else 'decisions'}"
    return f"{what}, {when}, {int(decisions.explored.sum()):,} explored; {counts}{others}"


def plays_figure(plays: Counter[Arm], explored: Counter[Arm]) -> Figure:
    """Draw how often arms were played, by exploration and not."""
    require_package("matplotlib", "plots need")
    from armlet.report.drawing import drawing
    from armlet.report.plots import COLOURS

    arms = [arm for arm, _ in plays.most_common(BARS)]
    coins = [explored[arm] for arm in arms]
    with drawing(7.0, 0.3 * len(arms) + 1.2) as figure:
        axes = figure.subplots()
        axes.barh(range(len(arms)), coins, color=COLOURS[1], label="explored")
        rest = [plays[arm] - explored[arm] for arm in arms]
        axes.barh(range(len(arms)), rest, left=coins, color=COLOURS[0], label="not explored")
        axes.set_yticks(range(len(arms)), [str(arm) for arm in arms])
        axes.set_ylim(max(len(arms), 1) - 0.5, -0.5)
        left = f"; {len(plays) - BARS:,} arms with fewer are not drawn" if len(plays) > BARS else ""
        axes.set_xlabel(f"decisions{left}")
        figure.legend(loc="outside upper right", ncols=2)
    return figure
