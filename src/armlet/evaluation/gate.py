"""The gate: is a candidate better than what plays now? Keep, kill or not yet, and whoever asks may ask every day.

The answer is read off one confidence sequence for the gain, so the stopping rule and the interval are the same thing:
the probability that a candidate which gains nothing is ever kept, at any look, is at most 1 - level.

- Against "live", whoever wrote the log: what the log earned, on all rows, beside what the candidate would have earned,
  on rows whose arm was drawn whatever the context was (explored rows). Each has half of the chance to be wrong.
- Against another policy: the paired difference on these same rows.

What a live policy earns changes as it learns; its sequence is for the mean of what it earned, which may move. The
candidate must not have learned from the rows that judge it.
Memory is one block of rows; O(n) time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol, TypeAlias

from armlet.errors import ArgumentError, EvaluationError
from armlet.evaluation.checks.support import NOTHING
from armlet.evaluation.checks.trained import Trained, refuse_trained
from armlet.evaluation.drawn import certain_rows, drawn_rows
from armlet.evaluation.reading.raw import through_encoders
from armlet.evaluation.rows import Blocks, Rows, open_rows
from armlet.evaluation.survey import check_rows
from armlet.evaluation.targets import Logged, Playing, Target, TargetLike, chance_of_played, read_target
from armlet.inference.intervals import LEVEL, Interval
from armlet.inference.sequences import DifferenceSequence, MeanSequence
from armlet.inputs.settings import Range, check_range
from armlet.log.reader import Source

Answer: TypeAlias = Literal["keep", "kill", "not yet"]

LIVE: Final = "live"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says after so many rows. Gains are in the sense of the objective: saved costs are gains."""

    answer: Answer
    gain: Interval  # of the candidate over the baseline, in the units of rewards
    worth: float  # the gain that it takes to be kept
    level: float
    rows: int  # that had a reward
    drawn: int  # of them, those whose arm was drawn whatever the context was
    waiting: int  # rows without a reward, which say nothing yet
    against: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        low, high = self.gain
        head = f"{self.answer}: the candidate gains {low:.4g} to {high:.4g} over {self.against}"
        body = f"{100 * self.level:g} % at all looks, from {self.drawn:,} drawn rows of {self.rows:,}"
        return "\n".join([f"{head} ({body}).", *self.notes])


def answer_of(gain: Interval, worth: float) -> Answer:
    """Read the answer off the sequence.

    Examples
    --------
    >>> [answer_of(Interval(*ends), 0.0) for ends in ((0.1, 0.3), (-0.3, -0.1), (-0.1, 0.1))]
    ['keep', 'kill', 'not yet']
    """
    if gain.low > worth:
        return "keep"
    return "kill" if gain.high < worth else "not yet"


class Compared(Protocol):
    """A sequence for the gain of one policy over another."""

    targets: tuple[Target, ...]

    def add(self, rows: Rows) -> None:
        """Take rows in, all with a reward."""

    def interval(self) -> Interval:
        """Give where the gain lies, higher is better."""


class AgainstLive:
    """The gain over what the log earned: two sequences, half of the chance each."""

    def __init__(self, candidate: Target, reward_range: Range, level: float) -> None:
        half = 1.0 - (1.0 - level) / 2
        self.targets: tuple[Target, ...] = (candidate,)
        # a live policy learns, so its mean moves: of the sequences here, this one bounds the mean of what it was
        self._live = MeanSequence(reward_range, scores="within", kind="gamma-exponential", level=half)
        self._ours = MeanSequence(reward_range, scores="weighted", level=half)

    def add(self, rows: Rows) -> None:
        """Take rows in."""
        self._live.add(rows.reward)
        used, chance = drawn_rows(rows)
        pi = chance_of_played(self.targets[0].law(rows.take(used)), rows.arm[used])
        self._ours.add(rows.reward[used], weights=pi / chance[used])

    def interval(self) -> Interval:
        """Give candidate less live."""
        ours, live = self._ours.interval(), self._live.interval()
        return Interval(ours.low - live.high, ours.high - live.low)


class AgainstOther:
    """The gain over another policy: the paired difference on the rows that were drawn."""

    def __init__(
        self, candidate: Target, other: Target, reward_range: Range, level: float, largest_weight: float | None
    ) -> None:
        self.targets: tuple[Target, ...] = (candidate, other)
        self._sequence = DifferenceSequence(reward_range, largest_weight=largest_weight, level=level)

    def add(self, rows: Rows) -> None:
        """Take rows in."""
        used, chance = drawn_rows(rows)
        some = rows.take(used)
        first, second = (chance_of_played(target.law(some), some.arm) / chance[used] for target in self.targets)
        self._sequence.add(some.reward, first, second)

    def interval(self) -> Interval:
        """Give candidate less the other."""
        return self._sequence.interval()


def gate(
    log: Source | Blocks,
    candidate: TargetLike,
    *,
    against: TargetLike = LIVE,
    reward_range: Range | None = None,
    worth: float = 0.0,
    level: float = LEVEL,
    playing: Playing = "greedy",
    largest_weight: float | None = None,
) -> Verdict:
    """Say whether a candidate should be kept, killed, or watched for longer.

    Ask as often as you like while the log grows: all answers together are wrong with at most the chance 1 - level.

    Parameters
    ----------
    log
        A path, .jsonl or .parquet, an `armlet.Log`, a loop's `log`, or `Events` of any origin.
    candidate
        A Bandit or a model file, the label of an arm, "uniform", or f(X, eligible) -> (n, K) probabilities. It must
        not have learned from these rows: one that has as many rows of every arm is refused.
    against
        "live", whoever wrote the log, or any policy as above.
    reward_range
        (lowest, highest) reward there can be; that of the log if left out.
    worth
        The gain that it takes: kept if all of the interval is above it, killed if all is below. Fix it beforehand.
    level
        How often the gate is right at all looks, at least.
    playing
        How a bandit plays: "greedy" or "exploring".
    largest_weight
        Against another policy: a bound on 1 / (chance of a drawn arm), known beforehand, which makes the answer come
        sooner where the two often agree. Where all arms were drawn alike it is the number of arms.

    Examples
    --------
    >>> import numpy as np
    >>> import armlet
    >>> rng = np.random.default_rng(1)
    >>> arms = rng.integers(2, size=3000)
    >>> clicks = (rng.random(3000) < 0.2 + 0.4 * arms).astype(float)
    >>> feedback = {"action": arms, "reward": clicks, "pscore": np.full(3000, 0.5), "context": np.ones((3000, 1))}
    >>> gate(armlet.log.from_obp(feedback), 1, against=0, reward_range=(0, 1)).answer
    'keep'
    >>> gate(armlet.log.from_obp(feedback), 0, reward_range=(0, 1)).answer
    'kill'
    """
    blocks = open_rows(through_encoders(log, candidate, against))
    declared = blocks.reward_range if reward_range is None else reward_range
    if declared is None:
        text = "{reward_range} is missing, and the log declares none; a gate that may be asked at any time needs it"
        raise ArgumentError(text)
    check_range(declared, "refuse")
    sign = 1.0 if blocks.objective == "max" else -1.0
    ends = declared if sign > 0 else (-declared[1], -declared[0])
    mine = read_target("candidate", candidate, blocks.arms, playing)
    compared = _compared(mine, against, blocks, ends, level, playing, largest_weight)
    trained = Trained(len(blocks.arms))
    counts = _read(blocks, compared, trained, sign)
    _refuse_unreached(counts)
    refuse_trained(mine, trained, blocks.arms)
    gain = compared.interval()
    return Verdict(
        answer=answer_of(gain, worth),
        gain=gain,
        worth=worth,
        level=level,
        rows=counts.rows,
        drawn=counts.drawn,
        waiting=counts.waiting,
        against=_name(against),
        notes=tuple(_notes(counts)),
    )


def _compared(
    mine: Target, against: TargetLike, blocks: Blocks, ends: Range, level: float, playing: Playing, most: float | None
) -> Compared:
    is_live = isinstance(against, str) and against in (LIVE, "logged") and against not in blocks.arms
    if isinstance(mine, Logged):
        raise ArgumentError("{candidate} is 'logged', which is what plays now; give another policy")
    if is_live:
        return AgainstLive(mine, ends, level)
    return AgainstOther(mine, read_target("against", against, blocks.arms, playing), ends, level, most)


@dataclass(slots=True)
class _Counts:
    rows: int = 0
    drawn: int = 0
    waiting: int = 0
    turns: int = 0
    reweighted: int = 0
    certain: int = 0  # rows that could not have been otherwise
    beyond: float = 0.0  # what is compared does there that was not played, in rows


def _read(blocks: Iterable[Rows], compared: Compared, trained: Trained, sign: float) -> _Counts:
    counts = _Counts()
    for rows in blocks:
        trained.add(rows)
        paid = rows.take(rows.rewarded)
        check_rows(paid)
        _count_certain(counts, paid, compared.targets)
        counts.waiting += len(rows) - len(paid)
        counts.rows += len(paid)
        counts.turns += int(paid.turn.sum())
        counts.reweighted += int((paid.weight != 1.0).sum())
        counts.drawn += int(drawn_rows(paid)[0].sum())
        compared.add(_signed(paid, sign))
    if counts.reweighted:
        raise EvaluationError(
            f"{counts.reweighted:,} rows were learned with a weight other than 1, which may mean anything; log without"
        )
    return counts


def _count_certain(counts: _Counts, rows: Rows, targets: Iterable[Target]) -> None:
    certain = certain_rows(rows)
    if not certain.any():
        return
    some = rows.take(certain)
    counts.certain += len(some)
    counts.beyond += sum(float((1.0 - chance_of_played(each.law(some), some.arm)).sum()) for each in targets)


def _refuse_unreached(counts: _Counts) -> None:
    if counts.beyond > NOTHING * counts.rows:
        raise EvaluationError(
            f"{counts.certain:,} rows could not have been otherwise, and what is compared plays another arm in some of "
            "them: what that would have earned nobody knows. Leave those rows out, or log with a policy that explores"
        )


def _signed(rows: Rows, sign: float) -> Rows:
    if sign > 0:
        return rows
    return replace(rows, reward=-rows.reward)


def _notes(counts: _Counts) -> Iterable[str]:
    if counts.waiting:
        yield f"{counts.waiting:,} rows have no reward: harmless only if that does not depend on what it would be."
    if counts.turns:
        yield f"{counts.turns:,} rows had their turn in a round-robin and were not drawn; they are left out."
    if counts.drawn == 0:
        yield "No row was drawn by chance, so nothing is known of the candidate; log with a policy that explores."


def _name(against: object) -> str:
    return str(against) if isinstance(against, str | int) else getattr(against, "name", type(against).__name__)
