"""The first pass over a log: what kind it is, the sums of its reward model, and everything that wants rows in order.

That is checks, drift, missing rewards, anytime-valid intervals, and how values came about. Everything is sums, so that
memory does not grow with the log.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np

from armlet.errors import EvaluationError
from armlet.evaluation.checks import Check, Propensities, Support, Word, explores_every_arm, share, tail
from armlet.evaluation.estimators import Rewards
from armlet.evaluation.model import RUNNING, combine, empty_records, row_sums, running_sums
from armlet.evaluation.rows import Blocks, Design, Rows, check_rows
from armlet.evaluation.targets import ArmLaw, ArmTarget, Law, Target
from armlet.evaluation.units import FOLDS, FirstDecisions, OpenUnits, UnitCount, fold_of
from armlet.inference.intervals import LEVEL
from armlet.inference.sequences import Kind, MeanSequence, Scores, UnitSequence, in_range
from armlet.inputs.settings import Range
from armlet.kernel import sum_moments
from armlet.parallel import Progress
from armlet.types import Arm, Bool, Float64, Int64, Interval

PIECES: Final = 64  # stretches of a log that drift keeps sums of; when there are more, neighbours are added up
A_BLOCK: Final = 16  # pieces that a block is cut into
ALPHA: Final = 1e-4
FEWEST: Final = 20  # rows of an arm, in each part that is compared
FEWEST_TRIED: Final = 30
"""Explored rows with a reward, below which there is no interval that can be trusted."""
MANY: Final = 0.5  # of all rewards
FIRST: Final = 8  # rows at the first look
STEP: Final = 1.35  # times as many rows from one look to the next
LOWEST: Final = -40  # powers of 2 that are distinguished
BINS: Final = 100


Observer: TypeAlias = Callable[[Rows, Mapping[str, ArmLaw]], None]
"""Called with every block of a log in order, and what each target would have done."""


class Drift:
    """Whether contexts, and rewards of explored rows by arm, stayed the same: first half of the log against second."""

    def __init__(self, dim: int, n_arms: int) -> None:
        self._dim, self._n_arms = dim, n_arms
        self._pieces: list[Float64] = []  # n, S x, S x^2, and by arm the rows explored, S r, S r^2
        self._origin: Float64 | None = None

    def add(self, rows: Rows) -> None:
        """Add a block, in the order of the log."""
        if not len(rows):
            return
        if self._origin is None:
            self._origin = rows.X[0].copy()
        starts = np.unique(np.linspace(0, len(rows), A_BLOCK, endpoint=False).astype(np.int64))
        ends, paid = np.append(starts[1:], len(rows)), self._rewards(rows, starts)
        for start, end, rewards in zip(starts, ends, paid, strict=True):
            moments = sum_moments(rows.X[start:end], self._origin).ravel()
            self._pieces.append(np.concatenate([[end - start], moments, rewards]))
        while len(self._pieces) > PIECES:
            odd = self._pieces[len(self._pieces) // 2 * 2 :]
            pairs = zip(self._pieces[::2], self._pieces[1::2], strict=False)
            self._pieces = [first + second for first, second in pairs] + odd

    def _rewards(self, rows: Rows, starts: Int64) -> Float64:
        used = (rows.explored == 1) & rows.rewarded
        piece = np.searchsorted(starts, np.flatnonzero(used), side="right") - 1
        place = piece * self._n_arms + rows.arm[used]
        reward, size = rows.reward[used], len(starts) * self._n_arms
        sums = [np.bincount(place, weights=reward**power, minlength=size) for power in (0, 1, 2)]
        return np.concatenate([each.reshape(len(starts), self._n_arms) for each in sums], axis=1)

    def result(self, arms: Sequence[Arm], features: Sequence[str] | None) -> list[Check]:
        """Return the checks after the last block."""
        if len(self._pieces) < 2:
            return []
        whole = np.array(self._pieces)
        half = int(np.abs(np.cumsum(whole[:, 0])[:-1] - whole[:, 0].sum() / 2).argmin()) + 1
        first, second = whole[:half].sum(axis=0), whole[half:].sum(axis=0)
        return [self._contexts(first, second, features), self._paid(first, second, arms)]

    def _contexts(self, first: Float64, second: Float64, features: Sequence[str] | None) -> Check:
        d = self._dim
        moments = [(np.full(d, one[0]), one[1 : 1 + d], one[1 + d : 1 + 2 * d]) for one in (first, second)]
        place, p = _most_apart(*moments)
        name = f"value {place + 1} of the contexts" if features is None else features[place]
        if p < ALPHA:
            sentence = f"Contexts drift: {name} has another mean in the second half. Values are of the whole log."
        else:
            sentence = "Contexts of the second half look like those of the first."
        word = Word.WARNING if p < ALPHA else Word.FINE
        return Check(name="drift of contexts", word=word, sentence=sentence, number=p, unit="p-value")

    def _paid(self, first: Float64, second: Float64, arms: Sequence[Arm]) -> Check:
        moments = [tuple(one[1 + 2 * self._dim :].reshape(3, self._n_arms)) for one in (first, second)]
        place, p = _most_apart(*moments)
        if math.isnan(p):
            sentence = f"No arm has {FEWEST} explored rows with rewards in either half, so it cannot be seen."
        elif p < ALPHA:
            sentence = (
                f"Rewards drift: {arms[place]} pays differently in the second half. A value is one over the whole log."
            )
        else:
            sentence = "Explored rows of every arm pay in the second half what they paid in the first."
        word = Word.WARNING if p < ALPHA else Word.FINE
        return Check(name="drift of rewards", word=word, sentence=sentence, number=p, unit="p-value")


def _most_apart(first: Sequence[Float64], second: Sequence[Float64]) -> tuple[int, float]:
    """Return which of several means differs most between two samples, and how likely that is for the most extreme one.

    Samples are (n, sum, sum of squares); Welch's t, and what a normal would have to be to be as unlikely.
    """
    counts = np.minimum(first[0], second[0])
    used = np.flatnonzero(counts >= FEWEST)
    if not used.size:
        return 0, math.nan
    (m1, v1), (m2, v2) = (_moments(*(part[used] for part in sample)) for sample in (first, second))
    spread = np.sqrt(v1 + v2)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(spread > 0, np.abs(m1 - m2) / spread, np.where(np.abs(m1 - m2) > 1e-9, np.inf, 0.0))
    nu = counts[used] - 1.0
    t = np.minimum(t, 1e6)
    z = (8 * nu + 1) / (8 * nu + 3) * np.sqrt(nu * np.log1p(t * t / nu))  # Wallace's normal for Student's t
    top = int(z.argmax())
    return int(used[top]), min(1.0, len(used) * tail(float(z[top])))


def _moments(n: Float64, total: Float64, squares: Float64) -> tuple[Float64, Float64]:
    """Return means, and the variances of means."""
    mean = total / n
    return mean, np.maximum(squares / n - mean * mean, 0.0) / (n - 1)


class Missing:
    """Which rewards did not come, by arm: a value speaks of those that did."""

    def __init__(self, n_arms: int) -> None:
        self._rows = self._gone = 0
        self._counts = np.zeros((2, n_arms))  # of draws

    def add(self, rows: Rows, draws: Bool) -> None:
        """Add a block, and which rows are draws: of a unit, the first."""
        self._rows += len(rows)
        self._gone += int((~rows.rewarded).sum())
        for place, which in enumerate((draws, draws & ~rows.rewarded)):
            self._counts[place] += np.bincount(rows.arm[which], minlength=self._counts.shape[1])

    def result(self, arms: Sequence[Arm]) -> Check:
        """Return the check after the last block."""
        word, sentence = self._judged(arms) if self._gone else (Word.FINE, "Every decision has its reward.")
        return Check(name="missing rewards", word=word, sentence=sentence, number=float(self._gone), unit="rows")

    def _judged(self, arms: Sequence[Arm]) -> tuple[Word, str]:
        n, gone = self._counts
        total, missing, lost = float(n.sum()), float(gone.sum()), self._gone / self._rows
        part = missing / total
        sentence = f"{self._gone:,} rewards, {share(lost)}, did not come; they are left out, never taken for 0."
        rest, spread = total - n, np.sqrt(np.maximum(part * (1 - part), 1e-300))
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.abs(gone / n - (missing - gone) / rest) / (spread * np.sqrt(1 / n + 1 / rest))
        z = np.where((n >= FEWEST) & (rest >= FEWEST), z, 0.0)
        worst = int(z.argmax())
        if len(arms) * tail(float(z[worst])) < ALPHA:
            return Word.WARNING, (
                f"{sentence} Not by chance: {arms[worst]} lacks {share(float(gone[worst] / n[worst]))} of its own. If "
                "it is the good or the bad ones that are lacking, every value here is biased."
            )
        if lost > MANY:
            return Word.WARNING, f"{sentence} Wait for more of them, if they are only late."
        return Word.FINE, f"{sentence} No arm lacks more than others."


class Checks:
    """All checks of a log and of the targets that it values by name; `check_trained` looks at training."""

    def __init__(
        self, arms: Sequence[Arm], dim: int, targets: Sequence[str], features: Sequence[str] | None = None
    ) -> None:
        self._arms, self._features = tuple(arms), features
        n_arms = len(self._arms)
        self._propensities, self._drift, self._missing = Propensities(n_arms), Drift(dim, n_arms), Missing(n_arms)
        self._support = {name: Support(n_arms) for name in targets}
        self._firsts = FirstDecisions()

    def add(self, rows: Rows, laws: Mapping[str, ArmLaw]) -> None:
        """Add a block, and what each target would play in it."""
        known = explores_every_arm(rows)
        draws = np.ones(len(rows), dtype=np.bool_) if rows.unit is None else self._firsts.add(rows.unit)
        self._propensities.add(rows, known, draws)
        self._drift.add(rows if rows.unit is None else rows.take(draws))
        self._missing.add(rows, draws)
        for name, support in self._support.items():
            support.add(rows, known, draws, laws[name])

    def result(self) -> tuple[Check, ...]:
        """Return all checks after the last block."""
        return (
            *self._propensities.result(self._arms),
            *self._drift.result(self._arms, self._features),
            self._missing.result(self._arms),
            *(check for name, support in self._support.items() for check in support.result(name, self._arms)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightHistogram:
    """How the weights of one policy are spread: rows between each power of 2 and the next."""

    name: str
    powers: Int64  # (bins,): a bin holds weights from 2^power on, to below twice that
    rows: Int64  # (bins,)
    zeros: int  # rows of weight 0


class WeightCounts:
    """Counts rows by the size of their weight."""

    def __init__(self) -> None:
        self._rows, self._zeros = np.zeros(BINS, dtype=np.int64), 0

    def add(self, weights: Float64) -> None:
        """Add the weights of a block."""
        positive = weights[weights > 0]
        self._zeros += len(weights) - len(positive)
        power = np.frexp(positive)[1] - 1  # 2^power <= weight < 2^(power + 1)
        self._rows += np.bincount(np.clip(power - LOWEST, 0, BINS - 1), minlength=BINS)

    def result(self, name: str) -> WeightHistogram:
        """Return the bins from the lightest row to the heaviest."""
        there = np.flatnonzero(self._rows)
        bins = np.arange(there[0], there[-1] + 1) if there.size else there
        return WeightHistogram(name=name, powers=bins + LOWEST, rows=self._rows[bins], zeros=self._zeros)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePath:
    """The value of one policy after so many rows, with its confidence sequence where it has one."""

    name: str
    rows: Int64  # (looks,)
    value: Float64  # (looks,)
    low: Float64  # (looks,): NaN where there is no sequence
    high: Float64


def cut_at_looks(seen: int, n: int) -> Iterator[tuple[slice, bool]]:
    """Cut n rows that come after others where somebody looks, at rows that are `STEP` times as far each.

    Examples
    --------
    >>> list(cut_at_looks(7, 5))
    [(slice(0, 1, None), True), (slice(1, 4, None), True), (slice(4, 5, None), False)]
    """
    look, start = FIRST, 0
    while look <= seen:
        look = math.ceil(STEP * look)
    while start < n:
        end = min(n, look - seen)
        yield slice(start, end), seen + end == look
        start, look = end, math.ceil(STEP * look) if seen + end == look else look


class ValueSequence:
    """A confidence sequence for what a policy earns a decision: it bets once a row, or once a unit.

    Parameters
    ----------
    largest
        The most decisions that a unit can have in an epoch, where rows have units.
    scores, kind
        Of rows without units, as in `MeanSequence`.
    """

    def __init__(
        self,
        reward_range: Range,
        level: float = LEVEL,
        largest: int | None = None,
        *,
        scores: Scores = "weighted",
        kind: Kind = "auto",
    ) -> None:
        self._range, self._weighted = reward_range, scores == "weighted"
        self._units = None if largest is None else OpenUnits(largest)
        self._rows = MeanSequence(reward_range, scores=scores, kind=kind, level=level)
        self._closed = UnitSequence(reward_range, largest=largest or 1, level=level)

    def add(self, rows: Rows, weights: Float64) -> None:
        """Add rows with rewards, in their order, and their weights, which are 1 unless scores are weighted."""
        if self._units is None:
            self._rows.add(rows.reward, weights=weights if self._weighted else None)
            return
        u = in_range(rows.reward, self._range)
        closed = self._units.add(rows, np.column_stack([weights * u, weights * (1.0 - u)]))
        self._closed.add(*closed.T)

    def interval(self) -> Interval:
        """Return where the mean lies; units whose epoch is not over do not count yet."""
        return self._rows.interval() if self._units is None else self._closed.interval()


class RunningValue:
    """The weighted mean reward of a policy at looks that are `STEP` times as far each, and its sequence there."""

    def __init__(self, reward_range: Range | None, level: float = LEVEL, largest: int | None = None) -> None:
        self._sequence = None if reward_range is None else ValueSequence(reward_range, level, largest)
        self._looks: list[tuple[int, float, float, float]] = []
        self._sums, self._n = np.zeros(2), 0

    def add(self, rows: Rows, weights: Float64) -> None:
        """Add rows with rewards, in their order."""
        for some, is_look in cut_at_looks(self._n, len(rows)):
            self._take(rows.take(some), weights[some])
            if is_look:
                self._look()

    def _take(self, rows: Rows, weights: Float64) -> None:
        self._n += len(rows)
        self._sums += weights @ rows.reward, weights.sum()
        if self._sequence is not None:
            self._sequence.add(rows, weights)

    def _look(self) -> None:
        total, weight = self._sums
        value = total / weight if weight > 0 else math.nan
        ends = Interval(math.nan, math.nan) if self._sequence is None else self._sequence.interval()
        self._looks.append((self._n, value, *ends))

    def result(self, name: str) -> ValuePath:
        """Return all looks, the last of them after the last row."""
        if self._n and (not self._looks or self._looks[-1][0] != self._n):
            self._look()
        looks = np.array(self._looks, dtype=np.float64).reshape(-1, 4)
        rows, value, low, high = looks.T
        return ValuePath(name=name, rows=rows.astype(np.int64), value=value, low=low, high=high)


class Monitor:
    """Checks, weights and running values of all targets; a range of rewards adds sequences along the paths."""

    def __init__(
        self,
        blocks: Blocks,
        targets: Sequence[Target],
        reward_range: Range | None = None,
        level: float = LEVEL,
        largest: int | None = None,
    ) -> None:
        names = [target.name for target in targets if not target.is_log]
        self.checks = Checks(blocks.arms, blocks.dim, names, blocks.features)
        self._spreads = {name: WeightCounts() for name in names}
        self._running = {name: RunningValue(reward_range, level, largest) for name in names}

    def add(self, rows: Rows, laws: Mapping[str, ArmLaw]) -> None:
        """Add a block, and what each target would have done."""
        self.checks.add(rows, laws)
        paid, rewarded = rows.rewarded, rows.with_reward()
        design = Design.of(rewarded)
        used, chance = design.randomized()
        drawn = rewarded if used.all() else rewarded.take(used)
        for name, running in self._running.items():
            pi = laws[name].take(paid).played
            self._spreads[name].add(pi / design.propensity)
            running.add(drawn, pi[used] / chance[used])

    def paths(self) -> tuple[ValuePath, ...]:
        """Return what values were after so many rows."""
        return tuple(running.result(name) for name, running in self._running.items())

    def spreads(self) -> tuple[WeightHistogram, ...]:
        """Return how weights are spread."""
        return tuple(counts.result(name) for name, counts in self._spreads.items())


class AnytimeIntervals:
    """Anytime-valid intervals: one confidence sequence a target.

    They bet on rows whose arm was drawn regardless of the context, or where that is not known on all rows. Where all
    arms were equally likely and a target plays one arm, its rows are those that match, and weigh the same. Where rows
    have units, of at most `largest` decisions, they bet on units.
    """

    def __init__(self, names: Sequence[str], reward_range: Range, level: float, largest: int | None = None) -> None:
        self._units = largest is not None
        self._weighted = {name: ValueSequence(reward_range, level, largest) for name in names}
        self._matched = {name: MeanSequence(reward_range, scores="within", level=level) for name in names}
        self._arms: float | None = None  # that were eligible in every row so far
        self._even = True
        self._uneven: set[str] = set()

    def add(self, rows: Rows, laws: Mapping[str, Law]) -> None:
        """Add a block, and what each target would have done."""
        paid, rewarded = rows.rewarded, rows.with_reward()
        design = Design.of(rewarded)
        used, chance = design.randomized()
        m = design.n_eligible[used]
        if m.size and self._arms is None:
            self._arms = float(m[0])
        is_even = bool((m == self._arms).all() and np.allclose(chance[used] * m, 1.0, rtol=1e-9))
        self._even = self._even and is_even and not self._units
        drawn = rewarded if used.all() else rewarded.take(used)
        for name, sequence in self._weighted.items():
            law = laws[name].take(paid)
            pi = law.played[used]
            sequence.add(drawn, pi / chance[used])
            if not law.is_certain:
                self._uneven.add(name)
            elif self._even and name not in self._uneven:
                self._matched[name].add(drawn.reward[pi == 1.0])

    def interval(self, name: str) -> Interval:
        """Return the interval after the last row."""
        if self._even and name not in self._uneven:
            return self._matched[name].interval()
        return self._weighted[name].interval()


@dataclass(slots=True)
class Survey:
    """What a log holds."""

    n_arms: int
    rows: int = 0
    rewarded: int = 0
    explored: int = 0  # rows that say that they explored
    explored_rewarded: int = 0  # those of them that have a reward
    tried: int = 0  # rewarded rows that explored, with known probabilities
    silent: int = 0  # rows that do not say whether they explored
    known: int = 0  # rewarded rows whose rate and probability given exploring are known
    foreign: int = 0  # rewarded rows that do not say whether they explored
    certain: int = 0  # rewarded rows that could not have been otherwise, though several arms were eligible
    turns: int = 0
    reweighted: int = 0  # rows with a weight other than 1
    weights: Float64 = field(default_factory=lambda: np.zeros(2))  # of rewarded rows: of all, and of those explored
    missing: Float64 = field(default_factory=lambda: np.zeros(0))  # (K,)
    _values: set[float] = field(default_factory=set)
    parts: list[Float64] = field(default_factory=list)  # sums of the reward model, block by block
    folds: list[Float64] = field(default_factory=list)  # the same by fold, (FOLDS, K, ...) each, where rows have units
    starts: list[Float64] = field(default_factory=list)  # running sums at the start of each block: see `SumTask`
    units: UnitCount | None = None  # those that have a reward; None if rows have no units
    _tried: FirstDecisions = field(default_factory=FirstDecisions)  # units that explored, with known probabilities

    def add(self, rows: Rows, rewarded: Rows, design: Design) -> None:
        """Count a block."""
        self.rows += len(rows)
        self.rewarded += len(rewarded)
        certain = (design.propensity >= 1.0) & (design.n_eligible > 1) & ~design.known
        explored = rewarded.explored == 1
        counted = {
            "explored": rows.explored == 1,
            "explored_rewarded": explored,
            "tried": design.explored,
            "silent": rows.explored < 0,
            "known": design.known,
            "foreign": rewarded.explored < 0,
            "certain": certain,
            "turns": rewarded.turn,
            "reweighted": rewarded.weight != 1.0,
        }
        for name, which in counted.items():
            setattr(self, name, getattr(self, name) + int(np.count_nonzero(which)))
        self.weights += [rewarded.weight.sum(), rewarded.weight[explored].sum()]
        unpaid = rows.arm[:0] if len(rewarded) == len(rows) else rows.arm[~rows.rewarded]
        gone = np.bincount(unpaid, minlength=self.n_arms).astype(np.float64)
        self.missing = gone if self.missing.size == 0 else self.missing + gone
        if len(self._values) <= 2 and not _are_among(rewarded.reward, self._values):
            self.saw(rewarded.reward)
        self.parts.append(row_sums(rewarded, design.learned))
        if rewarded.unit is not None:
            self._add_units(rewarded, rewarded.unit, design)

    def saw(self, rewards: Float64) -> None:
        """Take note of rewards, three of them at most: whether they differ, and whether they are 0 and 1 alone."""
        self._values |= set(np.unique(rewards)[:3].tolist())

    def _add_units(self, rewarded: Rows, units: Int64, design: Design) -> None:
        self.units = UnitCount() if self.units is None else self.units
        self.units.add(units)
        self._tried.add(units[design.explored])
        fold = fold_of(units)
        self.folds.append(np.stack([row_sums(rewarded, design.learned & (fold == each)) for each in range(FOLDS)]))

    @property
    def is_known(self) -> bool:
        """Whether every rewarded row says at which rate it explores, and with which probabilities."""
        return self.known == self.rewarded

    def refuse(self, weights: str) -> None:
        """Refuse a log without rewards, and one with weights, unless these are to be ignored."""
        if self.rewarded == 0:
            what = "has no decisions" if self.rows == 0 else f"has no reward for any of its {self.rows:,} decisions"
            raise EvaluationError(f"the log {what}, so nothing can be valued; wait for rewards, or give another log")
        if self.reweighted and weights == "refuse":
            raise EvaluationError(
                f"{self.reweighted:,} rows have a weight other than 1, which may mean anything; say weights='ignore' "
                "to read them as any other row"
            )

    def doubt(self, blocks: Blocks) -> str:
        """Return what keeps intervals of this log from being believed; nothing if they can be."""
        if self.is_known and self.draws_tried < FEWEST_TRIED:
            what = "explored decisions have" if self.units is None else "units explored and have"
            return (
                f"only {self.draws_tried:,} {what} a reward, fewer than {FEWEST_TRIED}: no interval can be trusted; "
                "explore more, for instance with a floor"
            )
        if not self.is_known and self.foreign < self.rewarded:
            return (
                f"{logger_of(blocks)} chose by what it had learned, without exploring at a known rate: intervals of "
                "its log cover far less often than they say, so none is given"
            )
        return ""

    @property
    def draws_tried(self) -> int:
        """Rewarded rows that explored, with known probabilities; those of a unit count once."""
        return self.tried if self.units is None else len(self._tried)

    @property
    def binary(self) -> bool:
        """Whether all rewards are 0 or 1."""
        return bool(self._values) and self._values <= {0.0, 1.0}

    def rewards(self, declared: Range | None) -> Rewards:
        """Return what is known of rewards, those beyond this log by what was declared."""
        constant = next(iter(self._values)) if len(self._values) == 1 else None
        is_declared = declared is not None and constant is not None  # one reward alone does not look like clicks
        return Rewards((0.0, 1.0) if self.binary and not is_declared else declared, self.binary, constant)

    def records(self, dim: int) -> Float64:
        """Return the sums of the reward model."""
        return combine(self.parts) if self.parts else empty_records(self.n_arms, dim)

    def records_without(self) -> list[Float64]:
        """Return the sums of the reward model without each of the folds."""
        return [
            combine([part[other] for part in self.folds for other in range(FOLDS) if other != fold])
            for fold in range(FOLDS)
        ]


def logger_of(blocks: Blocks) -> str:
    """Return what the policy that logged is called."""
    return "the log" if blocks.policy is None else str(blocks.policy["name"])


def _are_among(rewards: Float64, values: set[float]) -> bool:
    if not values:
        return False
    among: Bool = np.logical_or.reduce([rewards == value for value in values])
    return bool(among.all())


def survey_log(
    blocks: Blocks,
    targets: Sequence[ArmTarget],
    observers: Sequence[Observer] = (),
    progress: Progress | None = None,
    declared: Range | None = None,
) -> Survey:
    """Read a log once; refuse rewards outside of the declared range."""
    survey = Survey(len(blocks.arms))
    start = np.zeros((len(targets), FOLDS, RUNNING) if blocks.has_units else (len(targets), RUNNING))
    for number, rows in enumerate(blocks):
        if progress is not None:
            progress(number, 2 * len(blocks))
        paid = rows.with_reward()
        check_rows(paid)
        design = Design.of(paid)
        survey.add(rows, paid, design)
        survey.starts.append(start)
        is_known = design.known.all()
        laws = {target.name: target.law(rows) for target in targets} if is_known or observers else {}
        if is_known:
            mask = rows.rewarded
            start = start + np.stack([running_sums(laws[each.name].take(mask), paid, design) for each in targets])
        if declared is not None:
            in_range(paid.reward, declared)
        for observer in observers:
            observer(rows, laws)
    return survey
