"""Stats: what a loop and the writer of a store have done so far, to be read, sent as JSON, or scraped by Prometheus.

`Stats.of` copies a tally in O(arms); nothing is read from rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from armlet.report.decisions import plays_figure
from armlet.report.result import Columns, Result
from armlet.stores.folds import ArmCounts, BaselineCounts, OutcomeCounts, Tally, UnitCounts
from armlet.types import Arm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from armlet.inputs.budget import Spending
    from armlet.inputs.ranges import FeatureRanges

MICROSECONDS: Final = 1e6

Kind: TypeAlias = Literal["counter", "gauge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStats:
    """How far the spending of a loop's budget has got."""

    outcome: str
    total: float
    price: float  # what a unit counts at the next decision, in units of worth
    spent: float  # in this period, if there are periods; so are the others
    left: float
    decisions_left: int
    waiting: int  # decisions whose cost has not been reported

    @staticmethod
    def of(spending: Spending) -> BudgetStats:
        """Return it in plain numbers."""
        names = ("total", "price", "spent", "left", "decisions_left", "waiting")
        return BudgetStats(outcome=spending.budget.outcome, **{name: getattr(spending, name) for name in names})

    def __str__(self) -> str:
        to_come = f", {self.waiting:,} costs to come" if self.waiting else ""
        return (
            f"budget: {self.spent:.6g} of {self.total:.6g} {self.outcome} spent, {self.left:.6g} left for "
            f"{self.decisions_left:,} decisions; price {self.price:.4g}{to_come}"
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stats(Result):
    """What a loop has done so far.

    Examples
    --------
    >>> print(Stats.of("shop", Tally(), now=0, oldest_open_at=None, rows_since_snapshot=0, size=4096))
    loop 'shop': 0 decisions, 0 explored; 0 rewards
    open: 0
    last reward: none
    rows since snapshot: 0; 4,096 bytes
    """

    name: str
    decisions: int
    explored: int
    rewards: int  # calls that reported one
    statuses: Mapping[str, int]  # these calls by what became of them
    learned: int  # decisions with a first value, reported or by default
    defaults: int  # of these, by default
    open: int  # decisions that wait for their first value
    oldest_open: float | None  # seconds that the first of them has waited; None if none waits
    rewarded_by_age: tuple[tuple[int, float], ...]  # seconds, and the share of older decisions rewarded by then
    first_decision_at: float | None  # seconds since 1970, as all moments here
    last_decision_at: float | None
    last_reward_at: float | None
    rows_since_snapshot: int
    size: int  # bytes
    arms: tuple[ArmCounts, ...]  # of a catalogue, those that are played most
    units: UnitCounts | None = None  # None if no decision was of a unit
    outcomes: tuple[OutcomeCounts, ...] = ()  # of all arms and of each, where there are several
    budget: BudgetStats | None = None
    others: ArmCounts | None = None  # all other arms of a catalogue together; None if there are none
    baseline: BaselineCounts | None = None  # how often the policy agreed with its callers; None without a baseline
    deferred: int = 0  # decisions that were not activated; not open, and not learned
    out_of_range: Mapping[str, Mapping[str, int]] | None = None
    """By feature, how many values outside of its `feature_range` this process refused and clipped; None without any."""

    @staticmethod
    def of(
        name: str,
        tally: Tally,
        now: int,
        *,
        oldest_open_at: int | None,
        rows_since_snapshot: int,
        size: int,
        spending: Spending | None = None,
        ranges: FeatureRanges | None = None,
    ) -> Stats:
        """Return the stats of a loop by its tally; times are microseconds since 1970.

        Parameters
        ----------
        name
            Of the loop.
        tally
            Its sums.
        now
            The present.
        oldest_open_at
            When the first decision was made that still waits for its reward; None if none does.
        rows_since_snapshot, size
            Rows that a restart would play again, and bytes of the loop or of its store.
        spending
            Of its budget, if it has one.
        ranges
            Of its features, if they have any.
        """
        catalogue = tally.catalogue
        return Stats(
            name=name,
            decisions=tally.traffic.decisions,
            explored=tally.arms.explored,
            rewards=tally.traffic.answers,
            statuses=dict(tally.traffic.statuses),
            learned=tally.traffic.known,
            defaults=tally.arms.defaulted,
            open=tally.open,
            oldest_open=None if oldest_open_at is None else max(now - oldest_open_at, 0) / MICROSECONDS,
            rewarded_by_age=tuple(tally.traffic.rewarded_by_age(now)),
            first_decision_at=_seconds(tally.traffic.first_at),
            last_decision_at=_seconds(tally.traffic.last_at),
            last_reward_at=_seconds(tally.traffic.last_answer_at),
            rows_since_snapshot=rows_since_snapshot,
            size=size,
            arms=tuple(tally.counts),
            units=tally.units.counts if tally.units.decisions else None,
            outcomes=tuple(tally.outcomes.counts(tally.arms.labels)),
            budget=None if spending is None else BudgetStats.of(spending),
            others=tally.others,
            baseline=None if catalogue is None else catalogue.baseline,
            deferred=0 if catalogue is None else catalogue.deferred,
            out_of_range=None if ranges is None else ranges.counts,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        fields = asdict(self)
        return {
            **fields,
            "rewarded_by_age": [list(pair) for pair in self.rewarded_by_age],
            "arms": list(fields["arms"]),
            "outcomes": list(fields["outcomes"]),
        }

    def columns(self) -> Columns:
        """Return the arms that were played, by columns."""
        return {name: [getattr(arm, name) for arm in self.arms] for name in ArmCounts.__slots__}

    def plot(self) -> Figure:
        """Draw how often each arm was played, by exploration and not; needs `armlet[plots]`."""
        plays, explored = ({arm.arm: getattr(arm, name) for arm in self.arms} for name in ("decisions", "explored"))
        return plays_figure(Counter(plays), Counter(explored))

    def _title(self) -> str:
        return f"Loop {self.name!r}"

    def _answer(self) -> str:
        return f"{self.decisions:,} decisions, {self.explored:,} explored; {self.rewards:,} rewards; {self.open:,} open"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        statuses = ", ".join(f"{n:,} {status}" for status, n in self.statuses.items())
        yield (
            f"loop {self.name!r}: {self.decisions:,} decisions, {self.explored:,} explored; {self.rewards:,} rewards"
            + (f" ({statuses})" if statuses else "")
        )
        yield f"open: {self.open:,}" + (f", the oldest for {_span(self.oldest_open)}" if self.oldest_open else "")
        if self.rewarded_by_age:
            ages = ", ".join(f"{share:.0%} within {_span(age)}" for age, share in self.rewarded_by_age)
            yield f"rewarded: {ages}"
        since = _ago(self.last_decision_at, self.last_reward_at)
        yield f"last reward: {since}"
        if self.units is not None:
            yield (
                f"units: {self.units.decisions:,} decisions, {self.units.repeats:,} of a unit that came again within "
                f"an epoch, {self.units.switches:,} of these with another arm"
            )
        if self.outcomes:
            means = (f"{one.outcome} {_mean(one.mean)} ({one.values:,})" for one in self.outcomes if one.arm is None)
            yield f"outcomes: {', '.join(means)}"
        if self.budget is not None:
            yield str(self.budget)
        if self.baseline is not None:
            yield (
                f"baseline: played in {self.baseline.decisions:,} decisions, and by the policy's own choice in "
                f"{self.baseline.agreed:,} of these ({self.baseline.share:.0%})"
            )
        if self.deferred:
            yield f"deferred, and not activated: {self.deferred:,}"
        if outside := [
            f"{name} {n['refused']:,} and {n['clipped']:,}" for name, n in (self.out_of_range or {}).items()
        ]:
            yield f"values out of range, refused and clipped: {', '.join(outside)}"
        yield f"rows since snapshot: {self.rows_since_snapshot:,}; {self.size:,} bytes"
        if self.arms:
            yield from _table(self.arms, self.others)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterStats:
    """What the writer of a store has done so far.

    Examples
    --------
    >>> print(WriterStats(commits=2, calls=65, failed=0, largest_batch=64, commit_seconds=0.004, queue_depth=3))
    2 commits of 32.5 calls on average, 64 at most; 2.00 ms a commit; 0 failed, 0 faults; 3 calls wait
    """

    commits: int
    calls: int
    failed: int  # transactions
    faults: int = 0  # calls that ended by a fault of Armlet's own, and were rolled back
    largest_batch: int  # calls
    commit_seconds: float  # of all commits together
    queue_depth: int  # calls that wait

    @property
    def mean_batch(self) -> float:
        """Calls in a transaction; 0 if there was none."""
        return self.calls / self.commits if self.commits else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        return {**asdict(self), "mean_batch": self.mean_batch}

    def __str__(self) -> str:
        each = 1000 * self.commit_seconds / self.commits if self.commits else 0.0
        return (
            f"{self.commits:,} commits of {self.mean_batch:.1f} calls on average, {self.largest_batch:,} at most; "
            f"{each:.2f} ms a commit; {self.failed:,} failed, {self.faults:,} faults; {self.queue_depth:,} calls wait"
        )


def _seconds(ts: int) -> float | None:
    return ts / MICROSECONDS if ts else None


def _span(seconds: float) -> str:
    """Return a length of time in words.

    Examples
    --------
    >>> _span(2), _span(4096), _span(86400 * 3)
    ('2 s', '1.1 h', '3 d')
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s"


def _ago(last_decision: float | None, last_reward: float | None) -> str:
    if last_reward is None or last_decision is None:
        return "none"
    gap = last_decision - last_reward
    return f"{_span(gap)} before the last decision" if gap > 0 else "after the last decision"


def _table(arms: Iterable[ArmCounts], others: ArmCounts | None) -> Iterator[str]:
    named = [(repr(arm.arm), arm) for arm in arms] + ([] if others is None else [("all others", others)])
    rows = [("arm", "decisions", "explored", "rewards", "defaults", "mean")]
    rows += [
        (name, f"{a.decisions:,}", f"{a.explored:,}", f"{a.rewards:,}", f"{a.defaults:,}", _mean(a.mean))
        for name, a in named
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for first, *numbers in rows:
        cells = (number.rjust(width) for number, width in zip(numbers, widths[1:], strict=True))
        yield "  ".join((first.ljust(widths[0]), *cells))


def _mean(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.4g}"


# ---- Prometheus


class Sample(NamedTuple):
    """One number with its labels."""

    labels: Mapping[str, str]
    value: float


class Metric(NamedTuple):
    """A name of the text exposition format, with all its samples."""

    name: str
    kind: Kind
    text: str
    samples: list[Sample]


def prometheus(stats: Iterable[Stats], writer: WriterStats) -> str:
    r"""Return the text exposition format of Prometheus, to be served as `text/plain; version=0.0.4`.

    An arm has two labels, its text and the type of it, so that `1` and `"1"` are two arms here as well.

    Examples
    --------
    >>> idle = WriterStats(commits=0, calls=0, failed=0, largest_batch=0, commit_seconds=0.0, queue_depth=0)
    >>> print(prometheus([], idle).splitlines()[:3])
    ['# HELP armlet_commits_total Transactions that were committed.', '# TYPE armlet_commits_total counter', ...]
    """
    loops = list(stats)
    metrics = [*_loop_metrics(loops), *_unit_metrics(loops), *_arm_metrics(loops), *_outcome_metrics(loops)]
    metrics += [*_budget_metrics(loops), *_catalogue_metrics(loops), *_writer_metrics(writer)]
    return "".join(exposed(metric) for metric in metrics if metric.samples)


def _writer_metrics(writer: WriterStats) -> Iterator[Metric]:
    for name, kind, text, value in _WRITER:
        yield Metric(f"armlet_{name}", kind, text, [Sample({}, getattr(writer, value))])


_WRITER: Final[tuple[tuple[str, Kind, str, str], ...]] = (
    ("commits_total", "counter", "Transactions that were committed.", "commits"),
    ("calls_total", "counter", "Calls in these transactions.", "calls"),
    ("failed_transactions_total", "counter", "Transactions that failed and were undone.", "failed"),
    ("faults_total", "counter", "Calls that ended by a fault inside the store and were rolled back.", "faults"),
    ("commit_seconds_total", "counter", "Seconds spent on commits.", "commit_seconds"),
    ("largest_batch", "gauge", "The most calls in one transaction.", "largest_batch"),
    ("queue_depth", "gauge", "Calls that wait for a transaction.", "queue_depth"),
)

_LOOP: Final[tuple[tuple[str, Kind, str, str], ...]] = (
    ("learned_total", "counter", "Decisions of which a first value was learned.", "learned"),
    ("open_decisions", "gauge", "Decisions that wait for their reward.", "open"),
    ("oldest_open_seconds", "gauge", "How long the first of them has waited.", "oldest_open"),
    ("last_decision_timestamp_seconds", "gauge", "When the last decision was made.", "last_decision_at"),
    ("last_reward_timestamp_seconds", "gauge", "When the last reward was reported.", "last_reward_at"),
    ("rows_since_snapshot", "gauge", "Rows that a restart would play again.", "rows_since_snapshot"),
    ("size_bytes", "gauge", "Bytes on disk.", "size"),
)

_UNITS: Final[tuple[tuple[str, str, str], ...]] = (
    ("unit_decisions_total", "Decisions of units.", "decisions"),
    ("unit_repeats_total", "Those of a unit that came again within an epoch.", "repeats"),
    ("unit_switches_total", "Those of these that played another arm than before.", "switches"),
)

_BASELINE: Final[tuple[tuple[str, str, str], ...]] = (
    ("baseline_decisions_total", "Decisions in which a baseline was played.", "decisions"),
    ("baseline_agreed_total", "Those of these in which the policy would have played the same.", "agreed"),
)

_BUDGET: Final[tuple[tuple[str, str, str], ...]] = (
    ("budget_total", "What may be spent of an outcome.", "total"),
    ("budget_spent", "What was spent of it; in this period, if there are periods.", "spent"),
    ("budget_left", "What was not.", "left"),
    ("budget_price", "What a unit of it counts at the next decision, in units of worth.", "price"),
    ("budget_decisions_left", "Decisions of the horizon, or of this period, that are to come.", "decisions_left"),
    ("budget_waiting", "Decisions whose cost has not been reported.", "waiting"),
)

_ARM: Final[tuple[tuple[str, Kind, str, str], ...]] = (
    ("decisions_total", "counter", "Decisions for an arm.", "decisions"),
    ("explored_decisions_total", "counter", "Those that explored.", "explored"),
    ("rewarded_decisions_total", "counter", "Those whose first value was reported.", "rewards"),
    ("defaulted_decisions_total", "counter", "Those whose window closed without a reward.", "defaults"),
    ("learned_values", "gauge", "Values that are learned now; fewer after some were forgotten.", "learned"),
    ("mean_reward", "gauge", "Their mean.", "mean"),
)


def _loop_metrics(loops: list[Stats]) -> Iterator[Metric]:
    answers = [
        Sample({"loop": loop.name, "status": status}, n) for loop in loops for status, n in loop.statuses.items()
    ]
    yield Metric("armlet_rewards_total", "counter", "Rewards that were reported, by what became of them.", answers)
    outside = [
        Sample({"loop": loop.name, "feature": name, "outcome": word}, n)
        for loop in loops
        for name, counts in (loop.out_of_range or {}).items()
        for word, n in counts.items()
    ]
    yield Metric("armlet_out_of_range_total", "counter", "Values outside of their feature_range.", outside)
    ages = [
        Sample({"loop": loop.name, "seconds": str(age)}, share) for loop in loops for age, share in loop.rewarded_by_age
    ]
    yield Metric("armlet_rewarded_share", "gauge", "Share of older decisions that had a reward by this age.", ages)
    for name, kind, text, field in _LOOP:
        samples = [Sample({"loop": loop.name}, value) for loop in loops if (value := getattr(loop, field)) is not None]
        yield Metric(f"armlet_{name}", kind, text, samples)


def _unit_metrics(loops: list[Stats]) -> Iterator[Metric]:
    for name, text, field in _UNITS:
        samples = [Sample({"loop": loop.name}, getattr(loop.units, field)) for loop in loops if loop.units is not None]
        yield Metric(f"armlet_{name}", "counter", text, samples)


def _arm_metrics(loops: list[Stats]) -> Iterator[Metric]:
    for name, kind, text, field in _ARM:
        samples = [
            Sample({"loop": loop.name, **labels}, value)
            for loop in loops
            for labels, arm in _labelled(loop)
            if (value := getattr(arm, field)) is not None
        ]
        yield Metric(f"armlet_{name}", kind, text, samples)


def _labelled(loop: Stats) -> Iterator[tuple[dict[str, str], ArmCounts]]:
    yield from ((_arm_labels(arm.arm), arm) for arm in loop.arms)
    if loop.others is not None:
        yield {"arm": "", "arm_type": "others"}, loop.others


def _catalogue_metrics(loops: list[Stats]) -> Iterator[Metric]:
    for name, text, field in _BASELINE:
        pairs = [(loop.name, loop.baseline) for loop in loops if loop.baseline is not None]
        yield Metric(f"armlet_{name}", "counter", text, [Sample({"loop": n}, getattr(one, field)) for n, one in pairs])
    deferred = [Sample({"loop": loop.name}, loop.deferred) for loop in loops if loop.deferred]
    yield Metric("armlet_deferred_decisions", "gauge", "Decisions that were deferred and not activated.", deferred)


def _outcome_metrics(loops: list[Stats]) -> Iterator[Metric]:
    outcomes = [
        ({"loop": loop.name, "outcome": one.outcome, **_arm_labels(one.arm)}, one)
        for loop in loops
        for one in loop.outcomes
        if one.arm is not None
    ]
    values = [Sample(label, one.values) for label, one in outcomes]
    yield Metric("armlet_outcome_values", "gauge", "Values of an outcome that the policy was given.", values)
    means = [Sample(label, one.mean) for label, one in outcomes if one.mean is not None]
    yield Metric("armlet_mean_outcome", "gauge", "Their mean.", means)


def _budget_metrics(loops: list[Stats]) -> Iterator[Metric]:
    budgets = [({"loop": loop.name, "outcome": loop.budget.outcome}, loop.budget) for loop in loops if loop.budget]
    for name, text, field in _BUDGET:
        yield Metric(f"armlet_{name}", "gauge", text, [Sample(label, getattr(one, field)) for label, one in budgets])


def _arm_labels(arm: Arm) -> dict[str, str]:
    return {"arm": str(arm), "arm_type": type(arm).__name__}


def exposed(metric: Metric) -> str:
    """Return a metric as Prometheus reads it."""
    lines = [f"# HELP {metric.name} {metric.text}", f"# TYPE {metric.name} {metric.kind}"]
    lines += [f"{metric.name}{_labels(sample.labels)} {_number(sample.value)}" for sample in metric.samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def _escaped(text: str) -> str:
    """Escape what the format uses itself, and what UTF-8 has no bytes for."""
    plain = text.encode("utf-8", "backslashreplace").decode()
    return plain.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
