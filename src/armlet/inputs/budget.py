"""How much of an outcome a bandit may spend, and how much of that is spent."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from typing import TYPE_CHECKING, Any

from armlet.errors import CheckedSettings, InvalidTypeError, InvalidValueError
from armlet.inputs.settings import optional, positive, settle, whole

if TYPE_CHECKING:
    from armlet.inputs.outcomes import Outcomes


@dataclass(frozen=True, slots=True)
class Budget(CheckedSettings):
    """What a bandit may spend of one of its outcomes, such as cost.

    The bandit keeps a price for a unit of that outcome, and decides as if its weight were lower by that price. Every
    cost that is counted moves the price: up where spending is ahead of the plan, down where it is behind. So the total
    is spent by the end of the horizon if it binds; if it does not bind, the price is 0. The price is part of the
    bandit's state and a function of its events, so propensities stay exact and a replay meets the same prices.

    Parameters
    ----------
    outcome
        The name of the outcome that is spent; more of it is worse.
    total
        How much of it may be spent: a positive number, in its own units.
    horizon
        Within how many decisions. After them the price stays as it is.
    period
        Instead of a horizon: the total may be spent in these many decisions, and again in each further so many. A
        learned cost counts in the period in which it is reported.
    hard
        False: the total is aimed at, and may be exceeded by a little. True: arms that could take the spend beyond the
        total are not eligible, and where none is left `decide` raises `armlet.errors.BudgetError`. The costs must then
        be bounded: by `known`, or by the `reward_range` of the outcome, whose upper end is kept back for every decision
        until its cost is reported.

    Examples
    --------
    >>> Budget("cost", total=250.0, horizon=100_000)
    Budget(outcome='cost', total=250.0, horizon=100000, period=None, hard=False)
    >>> Budget("cost", total=250.0)
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: Budget has neither horizon nor period; give one of them, in decisions
    """

    outcome: str
    _: KW_ONLY
    total: float
    horizon: int | None = None
    period: int | None = None
    hard: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.outcome, str):
            raise InvalidTypeError(f"outcome is {reprlib.repr(self.outcome)}; give the name of an outcome")
        settle(self, total=positive(), horizon=optional(whole()), period=optional(whole()))
        if self.horizon is None and self.period is None:
            raise InvalidTypeError("Budget has neither horizon nor period; give one of them, in decisions")
        if self.horizon is not None and self.period is not None:
            raise InvalidTypeError(
                f"horizon is {self.horizon} and period is {self.period}; give one of them, in decisions"
            )
        if not isinstance(self.hard, bool):
            raise InvalidTypeError(f"hard is {reprlib.repr(self.hard)}; give True or False")
        object.__setattr__(self, "total", float(self.total))

    @property
    def length(self) -> int:
        """Within how many decisions the total may be spent: the horizon, or the period."""
        return self.horizon or self.period or 0

    def check(self, outcomes: Outcomes | None) -> None:
        """Refuse a budget of no outcome, or a hard one without bounds."""
        if outcomes is None:
            raise InvalidValueError(f"budget is {self}, but the bandit has one reward; give outcomes too")
        if self.outcome not in outcomes.weights:
            raise InvalidValueError(
                f"budget is of {self.outcome!r}, which is no outcome; the outcomes are {list(outcomes.weights)}"
            )
        if self.hard and self._bound(outcomes) is None:
            raise InvalidValueError(
                f"budget is hard, but nothing bounds {self.outcome!r}: give known={{{self.outcome!r}: ...}} or "
                f"reward_range={{{self.outcome!r}: (0, most)}}, or leave hard out"
            )

    def _bound(self, outcomes: Outcomes) -> float | None:
        if self.outcome in outcomes.known:
            return max(outcomes.known[self.outcome].values())
        return outcomes.ranges[self.outcome][1] if self.outcome in outcomes.ranges else None

    def engine(self, outcomes: Outcomes) -> tuple[Any, ...]:
        """Return what the engine is made with."""
        bound = self._bound(outcomes) if self.hard else None
        return self.outcome, self.total, float(self.length), self.period is not None, bound

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON values, as files and logs hold them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: object) -> Budget:
        """Read what `to_dict` wrote.

        Examples
        --------
        >>> budget = Budget("cost", total=2, period=1000, hard=True)
        >>> Budget.from_dict(budget.to_dict()) == budget
        True
        """
        known = set(cls.__match_args__) | {"total", "horizon", "period", "hard"}
        if not isinstance(saved, Mapping) or not {"outcome", "total"} <= set(saved) <= known:
            raise InvalidValueError(f"budget is {reprlib.repr(saved)}; give outcome, total and horizon or period")
        return cls(**saved)


@dataclass(frozen=True, slots=True)
class Spending:
    """How far the spending of a budget has got; `bandit.budget` is that of now.

    Examples
    --------
    >>> Spending(Budget("cost", total=2.5, horizon=1000), price=31.25, spent=0.5, decisions=150, waiting=3)
    Spending(0.5 of 2.5 cost spent, 2 left for 850 decisions; price 31.25, 3 costs to come)
    """

    budget: Budget
    price: float
    """What a unit of the outcome counts at the next decision, in units of worth; its weight is lower by as much."""
    spent: float
    """What has been counted: in this period, if there are periods."""
    decisions: int
    """How many have been made: in this period, if there are periods."""
    waiting: int
    """Decisions whose cost has not been reported; until then they count as much as recent ones did on average."""

    @property
    def total(self) -> float:
        """How much may be spent."""
        return self.budget.total

    @property
    def left(self) -> float:
        """How much has not been spent; negative where more was spent than the total."""
        return self.budget.total - self.spent

    @property
    def decisions_left(self) -> int:
        """How many decisions of the horizon, or of this period, are to come."""
        return max(self.budget.length - self.decisions, 0)

    def __repr__(self) -> str:
        to_come = f", {self.waiting:,} costs to come" if self.waiting else ""
        return (
            f"Spending({self.spent:g} of {self.total:g} {self.budget.outcome} spent, {self.left:g} left for "
            f"{self.decisions_left:,} decisions; price {self.price:g}{to_come})"
        )
