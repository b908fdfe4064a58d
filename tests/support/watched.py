"""Loops to be watched: simulated traffic of real bandits with delays, windows, pauses and arms that come and go.

A healthy loop has everything that is in order; a `Fault` starts at a step and stays. Contexts, rewards, delays and
times are drawn before anything is played, so that a loop is a function of its scenario.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.kernel import Decision
from armlet.policies import (
    Algorithm1,
    AutoEpsilonGreedy,
    ContextualEpsilonGreedy,
    FixedEpsilon,
    LinUCB,
    OccasionalOptimism,
    ThompsonSampling,
    Uniform,
)
from armlet.stores.folds import FAULTS, Tally
from armlet.stores.health import Alarm, alarms
from armlet.stores.ledger import Row
from armlet.types import Float64, Int64, Policy
from support.stores.tally_rows import decide, tell

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
MONDAY: Final = 1_767_571_200  # 2026-01-05, seconds since 1970
LOOK: Final = 100  # decisions from one look at the alarms to the next
SLOPE: Final = 0.25  # standard deviation of what a feature does to a reward
WHOLE: Final = 100_000  # decisions in the span of a scenario

POLICIES: Final[dict[str, Policy]] = {
    "default": OccasionalOptimism(),
    "auto": AutoEpsilonGreedy(),
    "algorithm 1": Algorithm1(p=200),
    "linucb": LinUCB(),
    "epsilon 0.1": FixedEpsilon(epsilon=0.1),
    "epsilon 0.3": FixedEpsilon(epsilon=0.3),
    "floor": ContextualEpsilonGreedy(p=30, floor=0.05),
    "thompson": ThompsonSampling(),
    "uniform": Uniform(),
}
CHANCES: Final = (0.25, 0.15, 0.15, 0.15, 0.08, 0.07, 0.06, 0.04, 0.05)  # of each policy

FaultKind: TypeAlias = Literal[
    "silence",
    "unknown",
    "out_of_range",
    "conflict",
    "missing_rewards",
    "defaults",
    "propensities",
    "exploration rates",
    "change",
    "change of reals",
    "contexts",
    "constant",
]
RULE: Final = {"exploration rates": "propensities", "change of reals": "change", "constant": "contexts"}
"""The rule that names a fault, where it is not called the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a loop meets."""

    seed: int
    policy: str
    n_arms: int  # at the start
    dim: int
    rewards: Literal["clicks", "reals"]
    base: float  # click rate of a mean arm, or noise around means of about 1
    reports: Literal["all", "successes"]
    missing: float  # share of rewards that are never reported
    delay: float  # seconds on average
    shape: Literal["exponential", "lognormal", "fixed"]
    slow: float  # times as long until a failure is reported
    batch: float  # seconds from one delivery of rewards to the next; 0 if each comes by itself
    window: float | None  # seconds
    span: float  # seconds for 100,000 decisions
    rhythm: float  # of traffic over a day: 0 is none, above 1 has pauses
    weekends: bool  # without traffic
    season: float  # relative change of click rates over a day
    changes: tuple[tuple[int, Literal["add", "retire"]], ...]  # steps
    statuses: tuple[float, float, float]  # shares of unknown, out_of_range and conflict
    duplicates: float

    def __str__(self) -> str:
        batch = f" every {self.batch:.0f} s" if self.batch else ""
        window = "no window" if self.window is None else f"window {self.window:.0f} s"
        return (
            f"{self.policy}, K {self.n_arms}, {self.rewards} {self.base:.3f}, {self.reports} reported, missing "
            f"{self.missing:.2f}, delay {self.delay:.0f} s {self.shape} x{self.slow:.0f}{batch}, {window}, span "
            f"{self.span / DAY:.1f} d, rhythm {self.rhythm:.1f}, weekends {self.weekends}, {len(self.changes)} changes"
        )


class Fault(NamedTuple):
    """What goes wrong, from which step on."""

    kind: FaultKind
    start: int


class Found(NamedTuple):
    """The first alarm of a loop, or the first after its fault."""

    step: int
    alarm: Alarm


def draw(seed: int, n: int = WHOLE) -> Scenario:
    """Draw a healthy scenario."""
    rng = np.random.default_rng(seed)
    span = _spread(rng, 3 * HOUR, 60 * DAY)
    delay = _spread(rng, 2.0, min(DAY, span / 8))
    clicks = rng.random() < 0.75
    windowed = rng.random() < 0.5
    slow = float(rng.choice([1.0, 3.0]))
    batch = min(float(rng.choice([0.0, 900.0, 6 * HOUR, DAY], p=[0.85, 0.05, 0.05, 0.05])), span / 20)
    changing = rng.random() < 0.3
    steps = sorted(rng.integers(n // 20, n, size=int(rng.integers(1, 5))).tolist()) if changing else []
    return Scenario(
        seed=seed,
        policy=str(rng.choice(list(POLICIES), p=CHANCES)),
        n_arms=int(_spread(rng, 2.0, 20.999)),
        dim=int(rng.integers(2, 7)),
        rewards="clicks" if clicks else "reals",
        base=_spread(rng, 0.01, 0.3) if clicks else float(rng.uniform(0.3, 2.0)),
        reports="successes" if clicks and rng.random() < 0.5 else "all",
        missing=float(rng.uniform(0.0, 0.3)),
        delay=delay,
        shape=str(rng.choice(["exponential", "lognormal", "fixed"])),  # type: ignore[arg-type]
        slow=slow,
        batch=batch,
        window=delay * slow * float(rng.uniform(1.5, 6.0)) + 2 * batch if windowed else None,
        span=span,
        rhythm=float(rng.choice([0.0, 0.8, 1.5])),
        weekends=bool(rng.random() < 0.3),
        season=float(rng.choice([0.0, 0.1], p=[0.8, 0.2])),
        changes=tuple((step, "add" if rng.random() < 0.5 else "retire") for step in steps),
        statuses=(rng.uniform(0.0, 0.004), rng.uniform(0.0, 0.004), rng.uniform(0.0, 0.004)),
        duplicates=float(rng.uniform(0.0, 0.05)),
    )


def draw_for(kind: FaultKind, seed: int) -> tuple[Scenario, Fault]:
    """Draw a scenario in which a fault can be seen within 2,000 decisions, and the step at which it starts."""
    rng = np.random.default_rng([seed, 1])
    start = int(rng.integers(5_000, 20_000))
    scenario = replace(draw(seed), changes=(), season=0.0, batch=0.0)
    short = scenario.span / WHOLE * float(rng.uniform(1.0, 50.0))  # a delay of at most 50 decisions on average
    quick = replace(scenario, delay=short, window=None if scenario.window is None else 2 * scenario.slow * short)
    full = replace(quick, reports="all", missing=min(scenario.missing, 0.15))
    if kind == "silence":
        return replace(quick, base=max(quick.base, 0.03), missing=min(quick.missing, 0.15)), Fault(kind, start)
    if kind in (*FAULTS, "contexts", "constant"):
        return full, Fault(kind, start)
    if kind == "missing_rewards":
        policy = str(rng.choice(["epsilon 0.3", "uniform", "thompson", "epsilon 0.1"]))
        return replace(full, policy=policy, n_arms=int(rng.integers(2, 5))), Fault(kind, start)
    if kind == "defaults":
        soon, missing = min(short, 20 * scenario.span / WHOLE), float(rng.uniform(0.05, 0.15))
        return replace(full, missing=missing, delay=soon, window=10 * soon, slow=1.0), Fault(kind, start)
    if kind in ("propensities", "exploration rates"):
        policy = str(rng.choice(["epsilon 0.1", "epsilon 0.3"]))
        return replace(quick, policy=policy, n_arms=int(rng.integers(3, 7))), Fault(kind, start)
    rewards: Literal["clicks", "reals"] = "clicks" if kind == "change" else "reals"
    base = float(rng.uniform(0.1, 0.3)) if kind == "change" else float(rng.uniform(0.3, 2.0))
    paid = replace(full, reports="all" if full.window is None else scenario.reports, rewards=rewards, base=base)
    return replace(paid, reports="all" if kind == "change of reals" else paid.reports), Fault(kind, start)


def _spread(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def moments(scenario: Scenario, n: int, rng: np.random.Generator) -> Int64:
    """Draw when decisions are made, in microseconds since 1970."""
    step = min(600.0, scenario.span / 100)
    grid = np.arange(0.0, 3.0 * scenario.span + 8 * DAY, step)
    flow = np.maximum(1.0 + scenario.rhythm * np.sin(2 * np.pi * (grid / DAY - 0.35)), 0.0)
    if scenario.weekends:
        flow[(grid // DAY).astype(np.int64) % 7 >= 5] = 0.0
    passed = np.concatenate([[0.0], np.cumsum(flow)[:-1]]) * step
    due = rng.uniform(0.0, DAY) + np.cumsum(rng.exponential(size=n)) * scenario.span / WHOLE
    return np.asarray((MONDAY + np.interp(due, passed, grid)) * 1e6).astype(np.int64)


class World(NamedTuple):
    """All that is drawn before a loop is played."""

    at: Int64  # (n,) microseconds
    X: Float64  # (n, d)
    paid: Float64  # (n, K): the reward of every arm
    lost: Float64  # (n,) uniform: whether a report gets lost
    delays: Int64  # (n,) microseconds
    extra: Int64  # (n,) an answer that comes along with a report: 0 none, 1 to 3 a fault, 4 a duplicate


def make(scenario: Scenario, n: int, fault: Fault | None = None) -> World:
    """Draw everything."""
    rng = np.random.default_rng([scenario.seed, 7])
    at = moments(scenario, n, rng)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, scenario.dim - 1))])
    if fault is not None and fault.kind == "contexts" and fault.start < n:
        X[fault.start, 1] = 1.8e18  # nanoseconds, once
    if fault is not None and fault.kind == "constant":
        X[fault.start :, 1] = 0.5
    n_arms = scenario.n_arms + sum(what == "add" for _, what in scenario.changes)
    paid = _rewards(scenario, rng, X, at, n_arms, fault)
    extra = np.zeros(n, dtype=np.int64)
    for code, share in enumerate((*scenario.statuses, scenario.duplicates), 1):
        extra[rng.random(n) < share] = code
    if fault is not None and fault.kind in FAULTS:
        extra[(rng.random(n) < 0.031) & (np.arange(n) >= fault.start)] = 1 + FAULTS.index(fault.kind)
    return World(at, X, paid, rng.random(n), _delays(scenario, rng, n), extra)


def _rewards(
    scenario: Scenario, rng: np.random.Generator, X: Float64, at: Int64, n_arms: int, fault: Fault | None
) -> Float64:
    n = len(X)
    theta = np.column_stack([rng.normal(0.0, 0.4, n_arms), rng.normal(0.0, SLOPE, (n_arms, scenario.dim - 1))])
    fallen = np.arange(n) >= (n if fault is None else fault.start)
    if scenario.rewards == "reals":
        spread = np.sqrt(scenario.base**2 + SLOPE**2 * (scenario.dim - 1))  # of the rewards of an arm
        drop = 0.4 * spread if fault is not None and fault.kind == "change of reals" else 0.0
        return np.asarray(1.0 + X @ theta.T + rng.normal(0.0, scenario.base, (n, n_arms)) - drop * fallen[:, None])
    rates = scenario.base * np.exp(np.clip(X @ theta.T, -2.0, 1.2))
    rates *= 1.0 + scenario.season * np.sin(2 * np.pi * (at / 1e6 / DAY))[:, None]
    if fault is not None and fault.kind == "change":
        rates[fallen] *= 0.5
    return (rng.random((n, n_arms)) < np.minimum(rates, 0.9)).astype(np.float64)


def _delays(scenario: Scenario, rng: np.random.Generator, n: int) -> Int64:
    if scenario.shape == "exponential":
        seconds = rng.exponential(scenario.delay, n)
    elif scenario.shape == "lognormal":
        seconds = scenario.delay * rng.lognormal(-0.5, 1.0, n)
    else:
        seconds = scenario.delay * rng.uniform(0.9, 1.1, n)
    return (seconds * 1e6).astype(np.int64)


class Played:
    """A loop as it is played: a bandit, its tally, and what is known of every decision."""

    def __init__(self, scenario: Scenario, n: int, fault: Fault | None = None) -> None:
        self.scenario, self.fault, self.n = scenario, fault, n
        self.world = make(scenario, n, fault)
        self.tally = Tally()
        self.labels = [f"arm-{place}" for place in range(self.world.paid.shape[1])]
        self.bandit = Bandit(
            self.labels[: scenario.n_arms], dim=scenario.dim, policy=POLICIES[scenario.policy], seed=scenario.seed
        )
        self.decided: list[Decision] = []
        self.rows: list[Row] = []
        self.arms: list[str] = []  # that were played, whatever the decisions say
        self.values: list[float] = []
        self._reported = np.zeros(n, dtype=np.bool_).tolist()
        self._places = {label: place for place, label in enumerate(self.labels)}
        self._at: list[int] = self.world.at.tolist()
        self._paid = self.world.paid
        self._extra: list[int] = self.world.extra.tolist()
        self._lost = self._losses()
        self._silent_from = self._at[fault.start] if fault and fault.kind == "silence" else 2**62
        self._rng = np.random.default_rng([scenario.seed, 9])
        self._shifts = dict(scenario.changes)
        self._poor: str | None = None  # the arm whose rewards get lost

    def _losses(self) -> list[bool]:
        missing = np.full(self.n, self.scenario.missing)
        if self.fault is not None and self.fault.kind == "defaults":
            missing[self.fault.start :] *= 2
        return (self.world.lost < missing).tolist()  # type: ignore[no-any-return]

    def looks(self) -> Iterator[tuple[int, int]]:
        """Play on; return the number of decisions and the time at every look."""
        times, kinds, places = self._agenda()
        decide, report, close = self._decide, self._report, self._close
        for ts, kind, i in zip(times.tolist(), kinds.tolist(), places.tolist(), strict=True):
            if kind == 0:
                decide(i, ts)
                if i % LOOK == LOOK - 1:
                    yield i + 1, ts
            elif kind == 3:
                close(i, ts)
            elif (self.values[i] > 0.0) == (kind == 1):
                report(i, ts)

    def _agenda(self) -> tuple[Int64, Int64, Int64]:
        """Return when what may happen to which decision: 0 made, 1 success reported, 2 failure reported, 3 closed."""
        at, delays, scenario = self.world.at, self.world.delays, self.scenario
        columns = [at, self._delivered(at + delays)]
        if scenario.reports == "all":
            columns.append(self._delivered(at + (delays * scenario.slow).astype(np.int64)))
        kinds = list(range(len(columns)))
        if scenario.window is not None:
            columns.append(at + int(scenario.window * 1e6) + 1)
            kinds.append(3)
        times = np.concatenate(columns)
        order = np.argsort(times, kind="stable")
        order = order[times[order] <= at[-1]]
        return times[order], np.repeat(kinds, self.n)[order], np.tile(np.arange(self.n), len(columns))[order]

    def _delivered(self, times: Int64) -> Int64:
        period = int(self.scenario.batch * 1e6)
        return times + 1 if not period else (times // period + 1) * period

    def _decide(self, i: int, ts: int) -> None:
        if i in self._shifts:
            self._shift(self._shifts[i])
        decision = self.bandit.decide(self.world.X[i], propensity="marginal")
        reported = decision
        if self.fault is not None and i >= self.fault.start:
            reported = self._falsified(decision)
        self.decided.append(decision)
        arm = str(reported.arm)
        self.arms.append(arm)
        self.values.append(float(self._paid[i, self._places[arm]]))
        self.rows.append(decide(self.tally, reported, ts, x=self.world.X[i].tobytes()))

    def _shift(self, what: Literal["add", "retire"]) -> None:
        playing = [arm for arm in self.bandit.arms if arm not in self.bandit.arms.retired]
        if what == "add":
            self.bandit.add_arm(self.labels[len(self.bandit.arms)])
        elif len(playing) > 2:
            self.bandit.retire_arm(playing[int(self._rng.integers(len(playing)))])

    def _falsified(self, decision: Decision) -> Decision:
        """Return a decision whose log is wrong: every second exploration plays the first arm, or rates are half."""
        assert self.fault is not None
        kind = self.fault.kind
        if kind == "propensities" and decision.explored and self._rng.random() < 0.5:
            return Decision.from_dict({**decision.to_dict(), "arm": self.labels[0]})
        if kind == "exploration rates" and decision.exploration_rate is not None:
            half = decision.exploration_rate / 2
            return Decision.from_dict({**decision.to_dict(), "exploration_rate": half})
        if kind == "missing_rewards" and self._poor is None:
            self._poor = self._often()
        return decision

    def _often(self) -> str:
        """Return an arm that is played often, but not nearly always; empty if there is none."""
        recent = self.arms[-1000:]
        shares = {arm: recent.count(arm) / len(recent) for arm in self.labels}
        fitting = [arm for arm, share in shares.items() if 0.2 <= share <= 0.8]
        return max(fitting, key=shares.__getitem__, default="")

    def _report(self, i: int, ts: int) -> None:
        if self._lost[i] or ts >= self._silent_from:
            return
        arm, tally, row, at = self.arms[i], self.tally, self.rows[i], self._at[i]
        if arm == self._poor and self._rng.random() < 0.5:
            return
        window = self.scenario.window
        if window is None:
            self._learn(i, ts, self.values[i], "reward", status="accepted")
        elif ts < at + int(window * 1e6) + 1:
            tell(tally, row, "reward", ts, reward=self.values[i], status="accepted")
            self._reported[i] = True
        else:
            tell(tally, row, "correct", ts, old_reward=0.0, new_reward=self.values[i], status="late")
        if code := self._extra[i]:
            tally.traffic.answered("duplicate" if code == 4 else FAULTS[code - 1], ts)

    def _close(self, i: int, ts: int) -> None:
        if self._reported[i]:
            self._learn(i, ts, self.values[i], "reward")
        else:
            self._learn(i, ts, 0.0, "default")

    def _learn(self, i: int, ts: int, value: float, source: Literal["reward", "default"], **status: str) -> None:
        decision = self.decided[i]
        with_warning = self.tally.traffic.known < 200  # that rewards are all the same is what some scenarios are about
        if with_warning:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                self.bandit.learn(decision, value)
        else:
            self.bandit.learn(decision, value)
        tell(self.tally, self.rows[i], "learn", ts, reward=value, source=source, **status)


def first_alarm(scenario: Scenario, n: int = WHOLE) -> Found | None:
    """Play a healthy loop and return its first alarm."""
    played = Played(scenario, n)
    for step, now in played.looks():
        if found := alarms(played.tally, now):
            return Found(step, found[0])
    return None


class Noticed(NamedTuple):
    """How a fault was noticed."""

    before: list[str]  # rules that spoke before it started
    first: Found | None  # after it started
    named: int | None  # decisions from its start until the right rule names it


def notice(scenario: Scenario, fault: Fault, within: int = 2000) -> Noticed | None:
    """Play a loop with a fault until it is named; None if it has no arm that the fault could befall."""
    played, before, first = Played(scenario, fault.start + within, fault), list[str](), None
    right = RULE.get(fault.kind, fault.kind)
    for step, now in played.looks():
        found = alarms(played.tally, now)
        if step <= fault.start:
            before += [alarm.rule for alarm in found if alarm.rule not in before]
            continue
        if played._poor == "":
            return None
        fresh = [alarm for alarm in found if alarm.rule not in before]
        if fresh and first is None:
            first = Found(step - fault.start, fresh[0])
        if any(alarm.rule == right for alarm in found):
            return Noticed(before, first, step - fault.start)
    return Noticed(before, first, None)
