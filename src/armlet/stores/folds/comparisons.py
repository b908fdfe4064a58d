"""Comparisons of a loop: what its live policy gains over exploration and over a control, and each shadow over it.

A decision is folded in when its first value is learned: when its window closes, in the order of decisions, or when its
reward comes if there is no window; then the sums are about decisions that got one. Corrections and forgotten decisions
leave the sums as they are; rewards for another arm than decided are not folded in. A comparison starts again when one
of the two policies or the range of rewards changes; decisions from before are left out of it, and so are those with
less of a coin than `LEAST`, which would cost time and tell next to nothing. State O(arms), time O(1) a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from armlet.cast.cast import role_of, shadows_of
from armlet.inference.gains import (
    GainSums,
    ValueSums,
    as_share,
    control_score,
    exploration_score,
    shadow_score,
)
from armlet.inputs.outcomes import Outcomes
from armlet.stores.folds.fold import Fold, Seen, finite, whole
from armlet.types import Arm, Interval

Against: TypeAlias = Literal["uniform", "control", "shadow"]

NONE: Final[Mapping[str, Arm]] = {}
AGAINST: Final[tuple[Against, ...]] = ("uniform", "control", "shadow")
LEAST: Final = 0.001  # the smallest probability of a coin whose rows are folded in
FIRST: Final = 16  # rows until the first ends are kept
RATIO: Final = 1.15  # between the rows of ends that are kept: 100 of them at 10^7 rows
FEWEST: Final = 20  # rows whose sums do not tell what one of them was
EVEN: Final = 1e-9  # relative difference of exploration probabilities that are alike


class Coins(NamedTuple):
    """What comparisons need to know of a decision, besides its value."""

    arm: Arm
    propensity: float  # over all coins of the live policy
    rate: float  # with which the live policy explores; 0 if it has no coin, or the control was played
    given: float  # the probability of the arm, if it does
    smallest: float  # of any eligible arm, if it does
    explored: bool
    share: float = 0.0  # with which the control plays
    is_controls: bool = False
    differs: bool = True  # the control from the live policy
    shadows: Mapping[str, Arm] = NONE  # what each shadow would have played, by its role


def coins_of(fields: Mapping[str, Any]) -> Coins | None:
    """Return the coins of a decision by the fields of its row; None if there is none worth looking at.

    Examples
    --------
    >>> coins_of({"arm": "a", "propensity": 1.0, "explored": False, "exploration_rate": None})
    >>> fields = {"arm": "a", "propensity": 0.95, "explored": False, "exploration_rate": 0.1, "design": "coin"}
    >>> coins_of({**fields, "exploration_propensity": 0.5, "min_exploration_probability": 0.5}).rate
    0.1
    """
    control = fields.get("control")
    if control is not None:
        return _coins_with_control(fields, control)
    rate, given = fields.get("exploration_rate"), fields.get("exploration_propensity")
    if rate is None or rate < LEAST or given is None or fields.get("design") != "coin":
        return None
    arm, explored, smallest = fields["arm"], fields["explored"], fields.get("min_exploration_probability") or 0.0
    return Coins(arm, fields["propensity"], rate, given, smallest, explored, 0.0, False, True, _shadows(fields))


def _shadows(fields: Mapping[str, Any]) -> Mapping[str, Arm]:
    shadows = shadows_of(fields)
    return {role_of(name): each["arm"] for name, each in shadows.items()} if shadows else NONE


def _coins_with_control(fields: Mapping[str, Any], control: Mapping[str, Any]) -> Coins | None:
    """Return the coins of a step of a loop with a control: those of the live policy are known if it was played."""
    share, played = control["share"], control["played"]
    rate, given = fields.get("exploration_rate"), fields.get("exploration_propensity")
    if rate is None or given is None or played or fields.get("design") != "coin":
        rate, given = 0.0, 0.0
    rate /= 1.0 - share  # of the steps that are the live policy's
    if rate < LEAST and share < LEAST:
        return None
    arm, explored, smallest = fields["arm"], fields["explored"], fields.get("min_exploration_probability") or 0.0
    differs, propensity = control["arm"] != control["live"], control["propensity"]
    return Coins(arm, propensity, rate, given, smallest, explored, share, played, differs, _shadows(fields))


class Comparison:
    """The sums of one comparison, since when, and its ends over time."""

    __slots__ = ("_next", "compared", "history", "seq", "share", "since", "sums")

    def __init__(self, seq: int = 0, since: int = 0) -> None:
        self.seq, self.since = seq, since  # the row and the moment after which decisions count; 0 for all
        self.sums, self.compared, self.share = GainSums(), 0, 0.0
        self.history: list[tuple[int, float, float]] = []  # decisions, and both ends as shares of the range
        self._next = FIRST

    def add(self, d: float, weight: float, share: float, is_compared: bool, decisions: int) -> None:
        """Add a row: its score and weight, the chance of the comparison, and whether the coin fell on it."""
        self.sums.add(d, weight)
        self.compared += is_compared
        self.share = share
        if self.sums.rows >= self._next:
            low, high = self.sums.interval()
            self.history.append((decisions, float(f"{low:.5g}"), float(f"{high:.5g}")))
            self._next = max(int(self.sums.rows * RATIO), self.sums.rows + 1)

    def state(self) -> list[Any]:
        """Return everything as lists, for JSON."""
        return [self.seq, self.since, self.sums.state(), self.compared, self.share, self._next, self.history]

    @staticmethod
    def restore(state: Sequence[Any]) -> Comparison:
        """Return the comparison that had this state; a ValueError or TypeError says that it is not one."""
        seq, since, (rows, *sums), compared, share, coming, history = state
        comparison = Comparison(whole(seq), whole(since))
        S, V, W = (finite(number) for number in sums)
        if V < 0.0 or W < 0.0:
            raise ValueError(f"sums of squares {V} or weights {W} are negative")
        comparison.sums = GainSums(whole(rows), S, V, W)
        comparison.compared, comparison.share, comparison._next = whole(compared), finite(share), whole(coming)
        comparison.history = [(whole(at), finite(low), finite(high)) for at, low, high in history]
        return comparison


class Scale(NamedTuple):
    """The range of rewards, and whether they are costs."""

    low: float
    high: float
    is_cost: bool

    def share(self, value: float) -> float:
        """Return a reward as a share of the range; 1 is the best."""
        u = as_share(value, self.low, self.high)
        return 1.0 - u if self.is_cost else u

    def interval(self, ends: Interval) -> Interval:
        """Return shares of the range as rewards, the lower end first."""
        low, high = (1.0 - ends.high, 1.0 - ends.low) if self.is_cost else ends
        size = self.high - self.low
        return Interval(self.low + size * low, self.low + size * high)


class Comparisons(Fold):
    """All comparisons of a loop, and what each arm is worth on rows that a coin has drawn."""

    __slots__ = ("_rows", "_total", "_values_from", "between", "guards", "is_even", "rate", "scale", "values")

    key = "comparisons"
    required = True

    def __init__(self) -> None:
        self.scale: Scale | None = None
        self._rows, self._total = 0, 0.0  # that were folded in since the range changed, and their shares
        self.between: dict[str, Comparison] = {}  # with random play, the control, and each shadow by its role
        self.values: list[ValueSums] = []  # by arm
        self._values_from = 0  # the row after which decisions count for them
        self.guards: dict[str, Any] = {}  # the control and the shadows, and whether the loop is frozen; plain JSON
        self.is_even = True  # exploration has drawn all eligible arms alike
        self.rate: float | None = None  # with which the last decision explored

    def on_decide(self, seen: Seen) -> None:
        """Remember with which probability the last decision explored."""
        self.rate = seen.fields["exploration_rate"]

    def on_learn(self, seen: Seen) -> None:
        """Fold in the first value of a decision."""
        if seen.after is not None and "expired" not in seen.fields:
            coins = coins_of(seen.about.fields)
            if coins is not None:
                self.add(seen.place, seen.after, coins, seen.about.seq, seen.decisions)

    def on_erase(self, seen: Seen) -> None:
        """Drop sums of so few rows that they would tell what a row was that must be forgotten."""
        if seen.before is not None:
            self.forgotten(seen.place)

    def on_change(self, seen: Seen) -> None:
        """Start comparisons again that a row of a change concerns."""
        self.changed(seen.fields, seen.row.seq, seen.row.ts)

    def add_arm(self) -> None:
        """Make room for one more arm."""
        self.values.append(ValueSums())

    def move(self, place: int, _: int) -> None:
        """Free the place of an arm; no comparison needs what others are worth together."""
        self.values[place] = ValueSums()

    def begin(self, scale: Scale, seq: int, ts: int) -> None:
        """Start everything again with a range of rewards, after a row and a moment."""
        self.scale = scale
        self._rows, self._total, self._values_from = 0, 0.0, seq
        self.values = [ValueSums() for _ in self.values]
        self.restart(self._all, seq, ts)

    def changed(self, fields: Mapping[str, Any], seq: int, ts: int) -> None:
        """Start comparisons again that a row of a change concerns."""
        if self.scale is None:
            return
        replaced: dict[str, Any] = {}
        for each in fields.get("replaces", ()):
            replaced.update(each)
        guards = replaced.get("guards", self.guards)
        before, after = shadows_of(self.guards), shadows_of(guards)
        which = ["control"] if guards.get("control") != self.guards.get("control") else []
        which += [role_of(name) for name in {**before, **after} if before.get(name) != after.get(name)]
        self.guards = dict(guards)
        if "outcomes" in replaced:  # other weights, prices or ranges, by which they are worth something else
            low, high = Outcomes.from_dict(replaced["outcomes"]).reward_range() or self.scale[:2]
            self.begin(Scale(low, high, self.scale.is_cost), seq, ts)
        elif "reward_range" in replaced:
            low, high = replaced["reward_range"]
            self.begin(Scale(finite(low), finite(high), self.scale.is_cost), seq, ts)
        else:
            self.restart(self._all if "policy" in replaced else which, seq, ts)

    @property
    def _all(self) -> list[str]:
        """What there are comparisons of."""
        return list(dict.fromkeys([*AGAINST, *map(role_of, shadows_of(self.guards))]))

    def restart(self, which: Sequence[str], seq: int, ts: int) -> None:
        """Start some comparisons again, after a row and a moment; those of shadows that have ended are over."""
        for against in which:
            self.between[against] = Comparison(seq, ts)
        self.between = {against: self.between[against] for against in self._all}
        if "uniform" in which:
            self.is_even = True

    def add(self, place: int, value: float, coins: Coins, seq: int, decisions: int) -> None:
        """Fold a decision in: the place of its arm, its value, its row, and how many there are by now."""
        if self.scale is None or seq <= self._values_from:
            return
        u = self.scale.share(value)
        self._compare(coins, u - (self._total + 0.5) / (self._rows + 1.0), seq, decisions)
        self._rows += 1
        self._total += u
        if coins.explored or (coins.is_controls and seq > self.between["control"].seq and self._has_arm_control):
            self.values[place].add(u)

    def forgotten(self, place: int) -> None:
        """Drop sums of so few rows that they would tell what a row was that must be forgotten; others stay as they are.

        What is taken out of sums because of its value would bias them, and the guess of a row is not known any more.
        """
        for against, one in self.between.items():
            if one.sums.rows < FEWEST:
                self.between[against] = Comparison(one.seq, one.since)
        if self._rows < FEWEST:
            self._rows, self._total = 0, 0.0
        if self.values[place].rows < FEWEST:
            self.values[place] = ValueSums()

    @property
    def _has_arm_control(self) -> bool:
        """Whether the control is an arm, which contexts do not move."""
        return "arm" in self.guards.get("control", ())

    def _compare(self, coins: Coins, above: float, seq: int, decisions: int) -> None:
        """Add a row to every comparison that its coins tell of; `above` is u - m."""
        rate, share, between = coins.rate, coins.share, self.between
        if LEAST <= rate < 1.0 and seq > between["uniform"].seq:
            factor, weight = exploration_score(coins.propensity, rate, coins.given)
            between["uniform"].add(factor * above, weight, rate, coins.explored, decisions)
            self.is_even = self.is_even and not (coins.explored and coins.given > coins.smallest * (1.0 + EVEN))
        if share >= LEAST and seq > between["control"].seq:
            factor, weight = control_score(share, coins.is_controls, coins.differs)
            between["control"].add(factor * above, weight, share, coins.is_controls, decisions)
        if not coins.smallest or not LEAST <= rate < 1.0:
            return
        for role, arm in coins.shadows.items():
            if role in between and seq > between[role].seq:
                same = coins.arm == arm
                factor, weight = shadow_score(coins.propensity, rate, coins.given, coins.smallest, same)
                between[role].add(factor * above, weight, rate * coins.smallest, coins.explored and same, decisions)

    def state(self) -> dict[str, Any]:
        """Return everything as lists, for JSON."""
        return {
            "scale": self.scale,
            "guards": self.guards,
            "sums": [self._rows, self._total, self._values_from, self.is_even, self.rate],
            "between": {against: one.state() for against, one in self.between.items()},
            "values": [one.state() if one.rows else [] for one in self.values],
        }

    @staticmethod
    def restore(state: Mapping[str, Any]) -> Comparisons:
        """Return the comparisons that had this state; a ValueError, TypeError or KeyError says that it is not one."""
        made = Comparisons()
        if state["scale"] is not None:
            low, high, is_cost = state["scale"]
            made.scale = Scale(finite(low), finite(high), bool(is_cost))
        made.guards = dict(state["guards"])
        rows, total, start, is_even, rate = state["sums"]
        made._rows, made._total = whole(rows), finite(total)
        made._values_from, made.is_even = whole(start), bool(is_even)
        made.rate = None if rate is None else finite(rate)
        made.between = {against: Comparison.restore(state["between"][against]) for against in state["between"]}
        made.values = [_value(one) for one in state["values"]]
        if made.scale is not None and set(made.between) != set(made._all):
            raise ValueError(f"there are comparisons with {sorted(made.between)}")
        return made

    def check(self, n_arms: int) -> None:
        """Raise a ValueError if it is of another number of arms."""
        if len(self.values) != n_arms:
            raise ValueError(f"there are {n_arms} arms, but values of {len(self.values)}")


def _value(state: Sequence[Any]) -> ValueSums:
    if not state:
        return ValueSums()
    rows, total, squares = state
    return ValueSums(whole(rows), finite(total), finite(squares))
