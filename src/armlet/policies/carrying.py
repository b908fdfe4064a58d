"""States carried to other features: what they would be, had all rows so far had these.

A dropped feature is its row and column deleted from the sums; one that is new has the same value in every row so far,
so its sums are multiples of those of the constant, or zero. Exact, and O(K d^2): rows are not needed. What is solved
for fewer rows than there are cannot be carried, and is solved again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.settings import Settings, open_outcomes
from armlet.kernel import LazyStatistics, Statistics
from armlet.reference.units import rounded
from armlet.types import Array, Float64, Int64, Policy, State

BY_FEATURE: Final = ("origin", "theta")
"""Settings of policies that have a value for every feature."""
SOLVED: Final = ("solved", "outcomes_solved")
"""Arrays of what was solved for fewer rows than there are."""
REFIT: Final = "start a new bandit with these features, and refit it from the log"


def carry_state(policy: Policy, state: State, change: FeatureChange) -> State:
    """Return the state that the same rows would have led to, had they had other features; `check_change` comes first.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a"], features=["age"], policy=armlet.Greedy(), seed=1)
    >>> _ = bandit.partial_fit([[3.0], [5.0]], ["a", "a"], [1.0, 2.0])
    >>> change = FeatureChange.between(["age"], ["age", "member"], {"member": 1.0})
    >>> carry_state(bandit.policy, bandit.state, change).A[0].tolist()  # of (1, age, member)
    [[2.0, 8.0, 2.0], [8.0, 34.0, 8.0], [2.0, 8.0, 2.0]]
    """
    arrays = state.copy().arrays()
    plan = _Plan(change, "units" in arrays)
    carried = {name: CARRIERS[name](plan, arrays) for name in arrays}
    fresh: Any = policy.init(state.n_arms, change.dim)
    if "outcomes" in arrays:
        open_outcomes(policy, fresh, cast(Any, state).n_outcomes)
    if isinstance(fresh, LazyStatistics):
        carried |= {name: np.zeros_like(array) for name, array in fresh.arrays().items() if name in SOLVED}
    fresh.restore_arrays(carried)
    if isinstance(fresh, LazyStatistics):  # solved again, with units and a ridge of all rows, as after a merge
        fresh.restore(carried["records"])
        fresh.estimates()
    return cast(State, fresh)


def check_change(change: FeatureChange, settings: Settings, state: State) -> None:
    """Refuse a change of features after which a state would not be that of any rows, by name.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a"], features=["age"], policy=armlet.OFUL(), seed=1)
    >>> change = FeatureChange.between(["age"], ["age", "member"], {"member": 1.0})
    >>> check_change(change, bandit.settings, bandit.state)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: fill['member'] is 1.0, but sums in units as given have no constant, so rows ...
    """
    _check_kind(settings.policy, state)
    normalize = settings.normalize
    for name, value in change.added.items():
        if value != 0.0 and settings.units != "free":
            raise InvalidValueError(
                f"fill[{name!r}] is {value}, but sums in units as given have no constant, so rows from before can only "
                f"have 0 there; leave it out, or {REFIT}"
            )
        if value != 0.0 and normalize is not None:
            raise InvalidValueError(
                f"fill[{name!r}] is {value}, but contexts were divided by their lengths, which it would change; leave "
                f"it out, or {REFIT}"
            )
    if normalize is not None and change.dropped:
        raise InvalidValueError(
            f"features lacks {change.dropped[0]!r}, but contexts were divided by their lengths, which it was a part "
            f"of; keep it, or {REFIT}"
        )


def _check_kind(policy: Policy, state: State) -> None:
    """Refuse a policy with settings by feature, and a state that is not sums of rows."""
    name = type(policy).__name__
    for setting in BY_FEATURE:
        if (value := getattr(policy, setting, None)) is not None:
            raise InvalidValueError(
                f"features cannot be replaced: {name} has {setting}={value!r}, a value for every feature; {REFIT}"
            )
    if not isinstance(state, Statistics) or not state.arrays().keys() <= CARRIERS.keys():
        raise InvalidValueError(f"features cannot be replaced: {name} keeps other things than sums of rows; {REFIT}")


class _Plan:
    """Where every value of a row is taken from, as sums hold rows: in free units they begin with the constant."""

    def __init__(self, change: FeatureChange, is_free: bool) -> None:
        self.change, self.is_free = change, is_free
        first = [0] if is_free else []
        sources = np.array([*first, *(source + len(first) for source in change.sources)])
        self.is_new = np.array([False] * len(first) + [source < 0 for source in change.sources])
        self.fills = np.array([0.0] * len(first) + list(change.fills))
        self.places = np.where(self.is_new, 0, sources)  # a new one is a multiple of the constant
        self.origins = np.array([rounded(fill) for fill in self.fills]) if is_free else np.zeros_like(self.fills)
        self.size_before = len(change.before) + len(first)

    @property
    def factors(self) -> Float64:
        """What the values are multiplied with, where they are taken from."""
        return np.where(self.is_new, self.fills - self.origins, 1.0)

    def packed(self) -> tuple[Int64, Float64]:
        """Return where the upper triangle of A is taken from, and what it is multiplied with."""
        i, j = np.triu_indices(len(self.places))
        low, high = np.minimum(self.places[i], self.places[j]), np.maximum(self.places[i], self.places[j])
        return low * self.size_before - low * (low - 1) // 2 + high - low, self.factors[i] * self.factors[j]


Arrays = Mapping[str, Array]


def _floats(array: Array) -> Float64:
    return np.asarray(array, dtype=np.float64)


def _records(plan: _Plan, arrays: Arrays) -> Float64:
    """Carry n, sum_r, sum_rr, b and A, (..., K, 3 + D + D (D + 1) / 2)."""
    records = _floats(arrays["records"])
    head, b, A = np.split(records, [3, 3 + plan.size_before], axis=-1)
    places, factors = plan.packed()
    moved = [b[..., plan.places] * plan.factors, A[..., places] * factors]
    return np.concatenate([head, *(part + 0.0 for part in moved)], axis=-1)  # of no rows 0, not -0


def _squares(plan: _Plan, arrays: Arrays) -> Float64:
    """Carry A2, as A, (K, D (D + 1) / 2)."""
    squares = _floats(arrays["squares"])
    places, factors = plan.packed()
    return np.ascontiguousarray(squares[..., places] * factors + 0.0)  # numpy picks columns into Fortran order


def _units(plan: _Plan, arrays: Arrays) -> Float64:
    """Carry the rows until the next look, origin, means and deviations, (..., 1 + 3 D)."""
    units = _floats(arrays["units"])
    records = _floats(arrays["records"])
    left, origin, middle, spread = np.split(units, [1, 1 + plan.size_before, 1 + 2 * plan.size_before], axis=-1)
    seen = (records[..., 0].sum(axis=-1) > 0)[..., None]  # without rows, there is neither an origin nor a mean
    is_new = plan.is_new
    return np.concatenate(
        [
            left,
            np.where(is_new, np.where(seen, plan.origins, 0.0), origin[..., plan.places]),
            np.where(is_new, np.where(seen, plan.fills - plan.origins, 0.0), middle[..., plan.places]),
            np.where(is_new, 0.0, spread[..., plan.places]),
        ],
        axis=-1,
    )


def _outcomes(plan: _Plan, arrays: Arrays) -> Float64:
    """Carry the sums of m outcomes, of their products, and their b, (K, m + m (m + 1) / 2 + m D)."""
    records = _floats(arrays["outcomes"])
    m = arrays["outcome_units"].size // 2
    head, b = np.split(records, [m + m * (m + 1) // 2], axis=-1)
    rows = b.reshape(len(records), m, plan.size_before)[..., plan.places] * plan.factors + 0.0
    return np.concatenate([head, rows.reshape(len(records), -1)], axis=-1)


def _tuning(_: _Plan, arrays: Arrays) -> Float64:
    """Keep the p that was reached, and look again at the next row: what is known has changed by other means."""
    raised = _floats(arrays["tuning"])
    return np.array([raised[0], 0.0])


def _as_it_is(name: str) -> Callable[[_Plan, Arrays], Array]:
    return lambda _, arrays: arrays[name]


CARRIERS: Final[Mapping[str, Callable[[_Plan, Arrays], Array]]] = {
    "records": _records,
    "squares": _squares,
    "units": _units,
    "outcomes": _outcomes,
    "sample": lambda plan, arrays: plan.change.carry(arrays["sample"]),
    "tuning": _tuning,
    **{
        name: _as_it_is(name)
        for name in ("under_way", "shares", "turnover", "ridge", "clock", "outcome_units", *SOLVED)
    },
}
"""What becomes of the arrays of a state, by name; a state that has others is refused."""
