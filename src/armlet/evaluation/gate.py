"""The gate: is a candidate better than what plays now? Keep, kill or not yet; it may be asked every day.

The answer is read off one confidence sequence for the gain, so the stopping rule and the interval are the same thing:
the probability that a candidate which gains nothing is ever kept, however often it is asked, is at most 1 - level.
Memory is one block of rows; O(n) time.

- Against "live", the logging policy: what the log earned, on all rows, next to what the candidate would have earned, on
  rows whose arm was drawn regardless of the context (explored rows). Each has half of the error probability.
- Against another policy: the paired difference on these same rows.
- Online, in a `Holdout`: with probability c a baseline plays instead of the policy.

What a live policy earns changes as it learns; its sequence is for the mean of what it earned, which may move. The
candidate must not have learned from the rows that judge it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.errors import ArgumentError, DecisionError, EvaluationError, InvalidValueError, UnknownNameError
from armlet.evaluation.checks import NEGLIGIBLE, Trained, refuse_trained, share
from armlet.evaluation.monitor import ValueSequence, cut_at_looks
from armlet.evaluation.provenance import provenance
from armlet.evaluation.rows import Blocks, Rows, check_rows, deterministic_rows, randomized_rows
from armlet.evaluation.sources import open_rows, read_target
from armlet.evaluation.targets import (
    Target,
    TargetLike,
    name_of,
    read_order,
    through_encoders,
)
from armlet.evaluation.units import largest_unit as find_largest
from armlet.evaluation.verdict import LIVE, Answer, Look, Verdict
from armlet.inference.intervals import LEVEL
from armlet.inference.sequences import DifferenceSequence
from armlet.inputs.settings import Range, check_range, check_seed
from armlet.kernel import Decision
from armlet.log.reader import Source
from armlet.types import Arm, Context, Interval, Mode

Baseline: TypeAlias = Callable[[Context], Arm]

RAMP: Final = (0.5, 0.2, 0.1, 0.05)
STREAM: Final = 0x686F6C646F7574  # "holdout": no other coins have this word in their key


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
    """A confidence sequence for the gain of one policy over another."""

    targets: tuple[Target, ...]

    def add(self, rows: Rows) -> None:
        """Add rows, all with a reward."""

    def interval(self) -> Interval:
        """Return where the gain lies, higher is better."""


class AgainstLive:
    """The gain over what the log earned: two sequences, half of the error probability each."""

    def __init__(self, candidate: Target, reward_range: Range, level: float, largest: int | None = None) -> None:
        half = 1.0 - (1.0 - level) / 2
        self.targets: tuple[Target, ...] = (candidate,)
        # a live policy learns, so its mean moves: of the sequences here, this one bounds the mean of what it was
        self._live = ValueSequence(reward_range, half, largest, scores="within", kind="gamma-exponential")
        self._ours = ValueSequence(reward_range, half, largest)

    def add(self, rows: Rows) -> None:
        """Add rows, all with a reward."""
        self._live.add(rows, np.ones(len(rows)))
        used, chance = randomized_rows(rows)
        some = rows.take(used)
        self._ours.add(some, self.targets[0].law(some).played / chance[used])

    def interval(self) -> Interval:
        """Return candidate less live."""
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
        """Add rows, all with a reward."""
        used, chance = randomized_rows(rows)
        some = rows.take(used)
        first, second = (each.law(some).played / chance[used] for each in self.targets)
        self._sequence.add(some.reward, first, second)

    def interval(self) -> Interval:
        """Return candidate less the other."""
        return self._sequence.interval()


class UnitsAgainstOther:
    """The gain over another policy where rows have units: two sequences, half of the error probability each."""

    def __init__(self, candidate: Target, other: Target, reward_range: Range, level: float, largest: int) -> None:
        self.targets: tuple[Target, ...] = (candidate, other)
        self._each = [ValueSequence(reward_range, 1.0 - (1.0 - level) / 2, largest) for _ in self.targets]

    def add(self, rows: Rows) -> None:
        """Add rows, all with a reward."""
        used, chance = randomized_rows(rows)
        some = rows.take(used)
        for target, sequence in zip(self.targets, self._each, strict=True):
            sequence.add(some, target.law(some).played / chance[used])

    def interval(self) -> Interval:
        """Return candidate less the other."""
        ours, theirs = (each.interval() for each in self._each)
        return Interval(ours.low - theirs.high, ours.high - theirs.low)


def gate(
    log: Source | Blocks,
    candidate: TargetLike,
    *,
    against: TargetLike = LIVE,
    reward_range: Range | None = None,
    worth: float = 0.0,
    level: float = LEVEL,
    mode: Mode = "greedy",
    largest_weight: float | None = None,
    largest_unit: int | None = None,
    arms: Iterable[Arm] | None = None,
) -> Verdict:
    """Decide whether a candidate should be kept, killed, or watched for longer.

    Ask as often as you like while the log grows: all answers together are wrong with probability at most 1 - level.

    Parameters
    ----------
    log
        A path, .jsonl or .parquet, an `armlet.Log`, a loop's `log`, or `Events` of any origin.
    candidate
        A Bandit or a model file, the label of an arm, "uniform", or a function as of `armlet.evaluate`. It must not
        have learned from these rows: one that has as many rows of every arm is refused.
    against
        "live", the logging policy, or any policy as above.
    reward_range
        (lowest, highest) reward there can be; that of the log if left out.
    worth
        The gain that it takes: kept if all of the interval is above it, killed if all is below. Fix it beforehand.
    level
        How often the gate is right however often it is asked, at least.
    mode
        How a bandit plays: "greedy" or "exploring".
    largest_weight
        Against another policy: a bound on 1 / (probability of a drawn arm), known beforehand, which makes the answer
        come sooner where the two often agree. Where all arms were equally likely it is the number of arms.
    largest_unit
        Where decisions belong to units that share a draw: the most that a unit can have in an epoch, known beforehand;
        as many as an epoch has, if the log says how long that is. Units count when their epoch is over.
    arms
        The order of arms in matrices that functions return, as of `armlet.evaluate`.

    Examples
    --------
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
    settings = {"reward_range": reward_range, "worth": worth, "level": level, "mode": mode}
    settings |= {"largest_weight": largest_weight, "largest_unit": largest_unit}
    blocks = open_rows(through_encoders(log, candidate, against))
    declared = blocks.reward_range if reward_range is None else reward_range
    if declared is None:
        text = "{reward_range} is missing, and the log declares none; a gate that may be asked at any time needs it"
        raise ArgumentError(text)
    check_range(declared)
    sign = 1.0 if blocks.objective == "max" else -1.0
    ends = declared if sign > 0 else (-declared[1], -declared[0])
    order = read_order(arms, blocks.arms)
    mine = read_target("candidate", candidate, blocks, mode, order)
    if mine.is_log:
        raise ArgumentError("{candidate} is 'logged', which is what plays now; give another policy")
    if blocks.has_tables and largest_weight is not None:
        text = "{largest_weight} is {value!r}, which a log of actions does not take; leave it out"
        raise ArgumentError(text, value=largest_weight)
    compared: Compared
    largest = _largest(blocks, largest_unit)
    if isinstance(against, str) and against in (LIVE, "logged") and against not in blocks.arms:
        compared = AgainstLive(mine, ends, level, largest)
    else:
        other = read_target("against", against, blocks, mode, order)
        compared = _against(mine, other, ends, level, largest_weight, largest)
    columns = blocks.arms or (0,)  # of a log of actions one, for whatever was played
    trained = Trained(len(columns))
    counts, looks = _read(blocks, compared, trained, sign)
    refuse_trained(mine, trained, columns)
    gain = compared.interval()
    return Verdict(
        answer=answer_of(gain, worth),
        gain=gain,
        worth=worth,
        level=level,
        rows=counts.rows,
        drawn=counts.drawn,
        waiting=counts.waiting,
        candidate=name_of(candidate),
        against=name_of(against),
        objective=blocks.objective,
        notes=tuple(_notes(counts)),
        looks=tuple(looks),
        made=provenance(blocks, gate, candidate=name_of(candidate), against=name_of(against), **settings),
    )


def _largest(blocks: Blocks, largest: int | None) -> int | None:
    """Return the most decisions of a unit in an epoch, None if rows have no units."""
    if not blocks.has_units:
        return None
    if (most := find_largest(blocks, largest)) is None:
        raise ArgumentError(
            "{largest_unit} is missing, and decisions of this log belong to units that share a draw; give the most "
            "that a unit can have in an epoch, known beforehand"
        )
    return most


def _against(
    mine: Target, other: Target, ends: Range, level: float, largest_weight: float | None, largest: int | None
) -> Compared:
    if largest is None:
        return AgainstOther(mine, other, ends, level, largest_weight)
    return UnitsAgainstOther(mine, other, ends, level, largest)


@dataclass(slots=True)
class _Counts:
    rows: int = 0
    drawn: int = 0
    waiting: int = 0
    turns: int = 0
    reweighted: int = 0
    certain: int = 0  # rows that could not have been otherwise
    beyond: float = 0.0  # how often a policy plays another arm there, in rows


def _read(blocks: Iterable[Rows], compared: Compared, trained: Trained, sign: float) -> tuple[_Counts, list[Look]]:
    counts = _Counts()
    looks: list[Look] = []
    for rows in blocks:
        trained.add(rows)
        paid = rows.take(rows.rewarded)
        check_rows(paid)
        counts.certain += int(np.count_nonzero(deterministic_rows(paid)))
        counts.beyond += sum(each.beyond(paid) for each in compared.targets)
        counts.waiting += len(rows) - len(paid)
        for piece, is_look in cut_at_looks(counts.rows, len(paid)):
            part = paid.take(piece)
            compared.add(part if sign > 0 else replace(part, reward=-part.reward))
            if is_look:
                looks.append(Look(counts.rows + piece.stop, *compared.interval()))
        counts.rows += len(paid)
        counts.turns += int(paid.turn.sum())
        counts.reweighted += int((paid.weight != 1.0).sum())
        counts.drawn += int(randomized_rows(paid)[0].sum())
    if counts.reweighted:
        raise EvaluationError(
            f"{counts.reweighted:,} rows were learned with a weight other than 1, which may mean anything; log without"
        )
    if counts.certain and counts.beyond > NEGLIGIBLE * counts.rows:
        raise EvaluationError(
            f"{counts.certain:,} rows could not have been otherwise, and what is compared plays another arm in some of "
            "them: what that would have earned nobody knows. Leave those rows out, or log with a policy that explores"
        )
    if counts.rows and (not looks or looks[-1].rows != counts.rows):
        looks.append(Look(counts.rows, *compared.interval()))
    return counts, looks


def _notes(counts: _Counts) -> Iterable[str]:
    if counts.waiting:
        yield f"{counts.waiting:,} rows have no reward: harmless only if that does not depend on what it would be."
    if counts.turns:
        yield f"{counts.turns:,} rows had their turn in a round-robin and were not drawn; they are left out."
    if counts.beyond > NEGLIGIBLE * counts.rows:
        part = share(counts.beyond / counts.rows)
        yield f"The log could not have played {part} of what is compared: the interval allows any reward there."
    if counts.drawn == 0:
        yield "No row was drawn by chance, so nothing is known of the candidate; log with a policy that explores."


@dataclass(frozen=True, slots=True)
class Held:
    """One decision of a holdout."""

    number: int  # from 1 on
    arm: Arm
    propensity: float  # of the arm, over the coin of the holdout and those of the policy
    player: Literal["policy", "baseline"]
    chance: float  # c, the probability that the baseline played
    policy_chance: float  # with which the policy would have played the arm
    baseline_chance: float  # 1 if the baseline plays the arm, else 0
    decision: Decision | None  # of the bandit, if it played


class Holdout:
    """A bandit and a baseline that share the traffic until the gate has an answer.

    The coin of decision i is a function of (seed, i), as all coins are, so a holdout can be replayed. An arm's
    propensity is c [the baseline plays it] + (1 - c) (the policy's), whichever of the two played it. c follows a ramp
    and stops by the sequence that the gate reads: to 0 when the policy is kept, to 1 when it is killed. Since c is
    fixed before the coin falls, a ramp costs no validity.

    Parameters
    ----------
    bandit
        The policy that is tried. It learns from its own decisions alone.
    baseline
        What played so far: the label of an arm, or a function from contexts to labels. It does not learn.
    reward_range
        (lowest, highest) reward there can be; the bandit's own if left out.
    ramp
        The probabilities that the baseline plays, from the first stage to the last.
    tolerance
        The next stage is reached when the loss is surely less than this; a tenth of the range if left out.
    every
        Rewards between two looks.
    worth, level
        As of `gate`.
    seed
        Of the coins of the holdout.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["old", "new"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    >>> trial = Holdout(bandit, "old", reward_range=(0.0, 1.0), seed=3)
    >>> for step in range(3000):
    ...     held = trial.decide([1.0])
    ...     trial.learn(held, float(held.arm == "new") * (step % 3 > 0))
    >>> trial.answer, trial.chance
    ('keep', 0.0)
    """

    def __init__(
        self,
        bandit: Bandit,
        baseline: Arm | Baseline,
        *,
        reward_range: Range | None = None,
        ramp: Sequence[float] = RAMP,
        tolerance: float | None = None,
        every: int = 50,
        worth: float = 0.0,
        level: float = LEVEL,
        seed: int | None = None,
    ) -> None:
        declared = bandit.settings.reward_range if reward_range is None else reward_range
        if declared is None:
            raise InvalidValueError(
                "reward_range is None and the bandit has none; a holdout needs it to know when to stop"
            )
        check_range(declared)
        if not ramp or not all(0.0 < chance < 1.0 for chance in ramp):
            raise InvalidValueError(f"ramp is {tuple(ramp)!r}; give chances between 0 and 1 that the baseline plays")
        self.bandit, self._baseline, self._ramp = bandit, baseline, tuple(ramp)
        self._sign = 1.0 if bandit.settings.objective == "max" else -1.0
        ends = declared if self._sign > 0 else (-declared[1], -declared[0])
        self._tolerance = (ends[1] - ends[0]) / 10 if tolerance is None else tolerance
        self._every, self._worth = every, worth
        self._key = check_seed(seed)
        # w1 = pi/propensity <= 1/(1 - c) and w2 <= 1/c, for every c of the ramp
        most = max(max(1.0 / c, 1.0 / (1.0 - c)) for c in self._ramp)
        self._sequence = DifferenceSequence(ends, largest_weight=most, level=level, kind="gamma-exponential")
        self._number, self._stage, self._learned = 0, 0, 0
        self._pending: set[int] = set()
        self.answer: Answer = "not yet"

    @property
    def chance(self) -> float:
        """The probability that the baseline plays the next decision."""
        return {"keep": 0.0, "kill": 1.0, "not yet": self._ramp[self._stage]}[self.answer]

    @property
    def gain(self) -> Interval:
        """Where the gain of the policy over the baseline lies, anytime-valid; in the sense of the objective."""
        return self._sequence.interval()

    def decide(self, x: Context) -> Held:
        """Toss the coin, and let the one or the other play."""
        self._number += 1
        c, base = self.chance, self._baseline(x) if callable(self._baseline) else self._baseline
        row = np.asarray(self.bandit._reader.row(x), dtype=np.float64)[np.newaxis]
        probabilities = dict(zip(self.bandit.arms, self.bandit.predict_proba(row)[0].tolist(), strict=True))
        if base not in probabilities:
            raise UnknownNameError(f"the baseline plays {base!r}, which is not an arm of {self.bandit.arms}")
        decision = None if self._coin(self._number) < c else self.bandit.decide(x)
        arm = base if decision is None else decision.arm
        pi, beta = probabilities[arm], float(arm == base)
        self._pending.add(self._number)
        propensity = c * beta + (1.0 - c) * pi
        player: Literal["policy", "baseline"] = "baseline" if decision is None else "policy"
        return Held(self._number, arm, propensity, player, c, pi, beta, decision)

    def learn(self, held: Held, reward: float) -> None:
        """Take the reward of a decision, in any order; the policy learns it if it played."""
        if held.number not in self._pending:
            raise DecisionError(f"decision {held.number} of this holdout is not waiting for a reward; learn each once")
        weights = (held.policy_chance / held.propensity, held.baseline_chance / held.propensity)
        if 0.0 < held.chance < 1.0:  # once there is an answer, the other side plays no more
            self._sequence.add([self._sign * reward], [weights[0]], [weights[1]])
            self._learned += 1
        self._pending.discard(held.number)
        if held.decision is not None:
            self.bandit.learn(held.decision, reward)
        if self.answer == "not yet" and self._learned % self._every == 0 and self._learned:
            self._look()

    def _look(self) -> None:
        gain = self._sequence.interval()
        self.answer = answer_of(gain, self._worth)
        if self.answer == "not yet" and gain.low > -self._tolerance:
            self._stage = min(self._stage + 1, len(self._ramp) - 1)

    def _coin(self, number: int) -> float:
        """Return a number in [0, 1) that follows from seed and count alone."""
        words = np.random.Philox(key=self._key ^ STREAM, counter=number).random_raw(1)
        return float(int(words[0]) >> 11) * 2.0**-53
