"""What comes back: how long rewards take, what callers are answered, and the means of several outcomes.

Times are remembered in few moments, and delays in powers of two of a second: both are O(1) a call and of bounded size,
however long a loop lives. Means of outcomes take O(outcomes x arms).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from armlet.inputs.outcomes import Outcomes
from armlet.stores.folds.fold import SECOND, Fold, Seen, finite, whole
from armlet.types import Arm, Reward

BINS: Final = 30  # delays: below 1 s, 2 s, 4 s, ... and all above 8 years
RATIO: Final = 1.25  # between the ages of moments that are remembered
MOMENTS: Final = 96  # at most


class DecisionTimes:
    """How many decisions were made until when: fewer moments are remembered of what is longer ago."""

    __slots__ = ("counts", "due", "seconds")

    def __init__(self) -> None:
        self.seconds: list[int] = []  # ascending
        self.counts: list[int] = []  # decisions before each
        self.due = -1  # microseconds: the next moment to remember

    def mark(self, ts: int, count: int) -> None:
        """Remember how many decisions there were before this moment."""
        second = ts // SECOND
        self.due = (second + 1) * SECOND
        self.seconds.append(second)
        self.counts.append(count)
        if len(self.seconds) > MOMENTS:
            self._thin(second + 1)

    def _thin(self, now: int) -> None:
        """Drop moments between neighbours that are about as old."""
        stay = [0]
        for at in range(1, len(self.seconds) - 1):
            if now - self.seconds[stay[-1]] > RATIO * (now - self.seconds[at + 1]):
                stay.append(at)
        stay.append(len(self.seconds) - 1)
        self.seconds, self.counts = ([part[at] for at in stay] for part in (self.seconds, self.counts))

    def at_least(self, ts: int) -> int:
        """Return a number of decisions that had been made by then, for certain."""
        at = bisect_right(self.seconds, ts // SECOND) - 1
        return self.counts[at] if at >= 0 else 0

    def at_most(self, ts: int, decisions: int) -> int:
        """Return the most decisions that can have been made by then, of so many there are now."""
        at = bisect_right(self.seconds, ts // SECOND)
        return self.counts[at] if at < len(self.seconds) else decisions

    def state(self) -> list[Any]:
        """Return everything as lists, for JSON."""
        return [self.due, self.seconds, self.counts]

    @staticmethod
    def restore(state: Sequence[Any]) -> DecisionTimes:
        """Return the times that had this state; a ValueError or TypeError says that it is not one."""
        due, seconds, counts = state
        times = DecisionTimes()
        times.due, times.seconds, times.counts = whole(due), [whole(one) for one in seconds], [whole(n) for n in counts]
        if len(seconds) != len(counts) or sorted(seconds) != seconds or sorted(counts) != counts:
            raise ValueError("moments are not in order")
        return times


class Delays:
    """How many values came how long after their decisions, in powers of two of a second."""

    __slots__ = ("bins", "longest")

    def __init__(self) -> None:
        self.bins: list[int] = []
        self.longest = 0  # microseconds

    def add(self, delay: int) -> None:
        """Count one."""
        at, bins = (delay // SECOND).bit_length() if delay > 0 else 0, self.bins
        if at >= len(bins):
            at = min(at, BINS - 1)
            bins += [0] * (at + 1 - len(bins))
        bins[at] += 1
        if delay > self.longest:
            self.longest = delay

    def state(self) -> list[Any]:
        """Return everything as lists, for JSON."""
        return [self.longest, self.bins]

    @staticmethod
    def restore(state: Sequence[Any]) -> Delays:
        """Return the delays that had this state; a ValueError or TypeError says that it is not one."""
        longest, bins = state
        delays = Delays()
        delays.longest, delays.bins = whole(longest), [whole(n) for n in bins]
        if len(bins) > BINS or min(bins, default=0) < 0:
            raise ValueError("delays are not counts")
        return delays

    def shares(self, times: DecisionTimes, now: int, decisions: int) -> list[float]:
        """Return which part of the decisions that are old enough came in each bin."""
        return [
            n / max(times.at_most(now - least_delay(at), decisions), n) if n else 0.0 for at, n in enumerate(self.bins)
        ]


def least_delay(at: int) -> int:
    """Return the shortest delay of a bin; that of the next is where it ends."""
    return SECOND << (at - 1) if at else 0


TYPICAL: Final = 0.9  # of rewards have come, when a cohort is judged
PARTS: Final = 8  # of a bin of delays, to look at how many decisions reached them
LONG_GAP: Final = 64  # decisions; shorter ones are not worth the time to look at, unless they are the longest
GAPS: Final = 10  # silences between answers, by which one is usual
OLD: Final = 4  # times the typical delay: the age of a loop that knows it
FAULTS: Final = ("unknown", "out_of_range", "conflict")
COUNTS: Final = frozenset(("accepted", "late", "counted"))  # statuses of a reward that counts
SHARES: Final = (0.01, 0.03)  # of answers: still in order, and a fault
GAIN: Final = math.log(SHARES[1] / SHARES[0])  # evidence of an answer with this status
LOSS: Final = math.log((1.0 - SHARES[0]) / (1.0 - SHARES[1]))  # and of one without, against it
MOST_EVIDENCE: Final = 20.0
LAST: Final = 20  # decisions whose rows are remembered

COUNTERS: Final = (
    "decisions",
    "answers",
    "known",
    "expired_open",
    "forgotten_open",
    "first_at",
    "last_at",
    "last_answer_at",
    "_at_answer",
    "_longest_gap",
    "gaps",
)


class StatusShare:
    """Evidence that one status has too large a share of all answers (CUSUM of the logarithm of likelihoods)."""

    __slots__ = ("_amount", "_answers", "before", "n", "since")

    def __init__(self, amount: float = 0.0, answers: int = 0, since: int = 0, before: int = 0, n: int = 0) -> None:
        self._amount, self._answers = amount, answers  # as of so many answers
        self.since, self.before, self.n = since, before, n  # when it began, answers before, those with the status since

    def evidence(self, answers: int) -> float:
        """Return the evidence after so many answers, none of which had the status since it was added to."""
        return max(self._amount - LOSS * (answers - self._answers), 0.0)

    def add(self, answers: int, ts: int) -> None:
        """Add an answer with the status, the one with this number."""
        amount = self.evidence(answers - 1)
        if amount == 0.0:
            self.since, self.before, self.n = ts, answers - 1, 0
        self._amount, self._answers = min(amount + GAIN, MOST_EVIDENCE), answers
        self.n += 1

    def state(self) -> list[float]:
        """Return everything as numbers, for JSON."""
        return [self._amount, self._answers, self.since, self.before, self.n]


class Traffic(Fold):
    """Counts and times of decisions, of answers and of values that are learned."""

    __slots__ = (
        *("_at_answer", "_lags", "_longest_gap", "_times", "answers", "decisions", "delays", "expired_open", "faults"),
        *("first_at", "forgotten_open", "gaps", "known", "last_answer_at", "last_at", "last_rows", "most_expected"),
        "statuses",
    )

    def __init__(self) -> None:
        self.decisions = self.answers = 0
        self.known = self.expired_open = self.forgotten_open = 0  # decisions that were learned, or are not waited for
        self.statuses: dict[str, int] = {}
        self.first_at = self.last_at = self.last_answer_at = 0  # of decisions, and of answers; 0 if there were none
        self._at_answer = self._longest_gap = 0  # decisions until the last answer, most between two answers
        self.gaps = 0  # times that an answer came after other decisions than the one before
        self.most_expected = 0.0  # answers in that gap
        self.faults = {status: StatusShare() for status in FAULTS}
        self.delays, self._lags = Delays(), Delays()  # from decision to report, and to learning it
        self._times = DecisionTimes()
        self.last_rows: deque[int] = deque(maxlen=LAST)  # of decisions

    def on_decide(self, seen: Seen) -> None:
        """Count a decision."""
        row = seen.row
        ts = row.ts
        if ts >= self._times.due:
            self._times.mark(ts, self.decisions)
        if not self.decisions:
            self.first_at = ts
        self.decisions += 1
        self.last_at = ts
        self.last_rows.append(row.seq)
        if row.x is None:  # all about it was erased
            self.forgotten_open += 1

    def on_learn(self, seen: Seen) -> None:
        """Count a decision of which all is learned, and the answer."""
        fields, ts, decided_at = seen.fields, seen.row.ts, seen.about.ts
        if seen.after is not None:
            self.known += 1
            if "expired" in fields:
                self.expired_open -= 1
            self._lags.add(ts - decided_at)
        if "status" in fields:
            self.answered(fields["status"], ts, None if "later" in fields else decided_at)

    def on_expire(self, seen: Seen) -> None:
        """Count a decision whose reward is not waited for any more."""
        self.expired_open += 1
        self.on_reward(seen)

    def on_erase(self, seen: Seen) -> None:
        """Count a decision that is deleted while its reward is waited for."""
        self.forgotten_open += "is_open" in seen.fields

    def on_reward(self, seen: Seen) -> None:
        """Count the answer of a row that says one."""
        fields = seen.fields
        if "status" in fields:
            ts = seen.row.ts
            self.answered(fields["status"], ts, None if "later" in fields else seen.about.ts)

    on_correct = on_forget = on_bill = on_reward

    def answered(self, status: str, ts: int, decided_at: int | None = None) -> None:
        """Count a call that reported a reward, by what it was answered; a call of its own where no row says so.

        Parameters
        ----------
        status
            What the caller was answered, an `armlet.stores.Status`.
        ts
            When.
        decided_at
            When the decision was made that it was about; None if there is none. Without it nothing is known of delays.
        """
        self.answers += 1
        self.statuses[status] = self.statuses.get(status, 0) + 1
        gap = self.decisions - self._at_answer
        if gap:
            self._end_gap(gap, ts)
        self._at_answer, self.last_answer_at = self.decisions, ts
        if status in COUNTS:
            if decided_at is not None:
                self.delays.add(ts - decided_at)
        elif status in self.faults:
            self.faults[status].add(self.answers, ts)

    def _end_gap(self, gap: int, ts: int) -> None:
        """Remember a silence of so many decisions, if it may have been the longest."""
        self.gaps += 1
        if self.gaps > 1 and (gap > self._longest_gap or (gap >= LONG_GAP and 4 * gap > self._longest_gap)):
            self.most_expected = max(self.most_expected, self.expected_answers(ts))
            self._longest_gap = max(gap, self._longest_gap)

    # ---- what they say

    @property
    def unlearned(self) -> int:
        """How many decisions have no first value, and may still get one."""
        return self.decisions - self.known - self.expired_open - self.forgotten_open

    def rewarded_by_age(self, now: int) -> list[tuple[int, float]]:
        """Return ages in seconds, and which share of the decisions that are older had a reward by then."""
        ages = [1 << at for at in range(len(self.delays.bins))]
        return list(zip(ages, accumulate(self.delays.shares(self._times, now, self.decisions)), strict=True))

    def expected_answers(self, now: int) -> float:
        """Return how many rewards should have come since the last one, by how many come at which age: few, if unsure.

        For each bin of delays, decisions are counted that reached one of its delays since, for the delay that has the
        fewest. So nights and weekends count for nothing, nor do decisions that are too young for a reward.
        """
        total = 0.0
        for at, share in enumerate(self.delays.shares(self._times, now, self.decisions)):
            if share:
                start, end = least_delay(at), least_delay(at + 1)
                delays = (start + (end - start) * part // PARTS for part in range(PARTS + 1))
                total += share * min(self._came_of_age(delay, now) for delay in delays)
        return total

    def _came_of_age(self, delay: int, now: int) -> int:
        """Return how many decisions became older than a delay since the last answer, at least."""
        since = self._times.at_most(self.last_answer_at - delay, self.decisions)
        return max(self._times.at_least(now - delay) - since, 0)

    def wait(self, now: int) -> int | None:
        """Return how long most values take to be learned; None if the loop is too young to tell."""
        if self.gaps < GAPS:
            return None
        shares = self._lags.shares(self._times, now, self.decisions)
        total, so_far = sum(shares), 0.0
        for at, share in enumerate(shares):
            so_far += share
            if share and so_far >= TYPICAL * total:
                wait = min(least_delay(at + 1), self._lags.longest)
                return wait if now - self.first_at >= OLD * wait else None
        return None

    # ---- JSON

    def state(self) -> dict[str, Any]:
        """Return everything as lists, for JSON."""
        return {
            "counts": [getattr(self, name) for name in COUNTERS],
            "expected": self.most_expected,
            "statuses": self.statuses,
            "faults": [self.faults[status].state() for status in FAULTS],
            "delays": [self.delays.state(), self._lags.state()],
            "times": self._times.state(),
        }

    @staticmethod
    def restore(state: dict[str, Any]) -> Traffic:
        """Return the traffic that had this state; a ValueError, TypeError or KeyError says that it is not one."""
        traffic = Traffic()
        for name, number in zip(COUNTERS, state["counts"], strict=True):
            setattr(traffic, name, whole(number))
        traffic.statuses = {status: whole(n) for status, n in state["statuses"].items()}
        traffic.most_expected = finite(state["expected"])
        for status, (amount, *counts) in zip(FAULTS, state["faults"], strict=True):
            answers, since, before, n = (whole(count) for count in counts)
            traffic.faults[status] = StatusShare(finite(amount), answers, since, before, n)
        traffic.delays, traffic._lags = (Delays.restore(one) for one in state["delays"])
        traffic._times = DecisionTimes.restore(state["times"])
        if sum(traffic.statuses.values()) != traffic.answers or traffic.most_expected < 0.0:
            raise ValueError("its counts of answers do not add up")
        return traffic


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """What a tally says of one outcome, of one arm or of all."""

    outcome: str
    arm: Arm | None  # None for all of them
    values: int  # that the bandit has
    mean: float | None  # of these; None if there are none


class OutcomeSums(Fold):
    """Counts and sums by outcome, and by the place of an arm.

    Examples
    --------
    >>> sums = OutcomeSums()
    >>> sums.add(0, {"quality": 0.5, "cost": 0.25})
    >>> sums.add(1, {"quality": 1.0})
    >>> [(one.outcome, one.arm, one.mean) for one in sums.counts(["a", "b"])]
    [('quality', None, 0.75), ('quality', 'a', 0.5), ('quality', 'b', 1.0), ('cost', None, 0.25), ('cost', 'a', 0.25)]
    >>> OutcomeSums.restore(sums.state()).state() == sums.state()
    True
    """

    __slots__ = ("_sums", "several")

    key = "outcomes"

    def __init__(self) -> None:
        self.several: Outcomes | None = None  # those of the bandit, whose weights and prices change
        self._sums: dict[str, dict[int, list[Any]]] = {}  # by place: how many, and their sum

    def on_learn(self, seen: Seen, times: int = 1) -> None:
        """Count parts that the bandit was given; a known one when the row is whole."""
        if self.several is None:
            return
        reward = seen.fields.get("reward")
        if isinstance(reward, Mapping):
            self.add(seen.place, reward, times)
            if seen.before is not None or seen.after is not None:
                prices = {name: of_arm[seen.arm] for name, of_arm in self.several.known.items()}
                self.add(seen.place, prices, times)

    def on_correct(self, seen: Seen) -> None:
        """Count parts that the bandit has instead of others."""
        if self.several is not None:
            self.correct(seen.place, seen.fields["old_reward"], seen.fields["new_reward"])

    def on_forget(self, seen: Seen) -> None:
        """Count parts that were taken from the bandit."""
        self.on_learn(seen, -1)

    on_erase = on_forget

    def values(self, kind: str, fields: Mapping[str, Any], arm: Arm) -> tuple[float | None, float | None]:
        """Return what was learned of a decision before a row and after it, as one value; None while parts are missing.

        Of a decision that was erased nothing is learned after it, nor of one whose default was taken back.
        """
        if "waits" in fields:
            return None, None
        had = fields.get("had", {})
        if kind == "learn":
            return None, self._worth(had, fields["reward"], arm)
        if kind == "correct":
            return self._worth(had, fields["old_reward"], arm), self._worth(had, fields["new_reward"], arm)
        reward = fields.get("reward")
        is_part = isinstance(reward, Mapping) and self.several is not None and len(reward) < len(self.several.learned)
        return None if reward is None or is_part else self._worth({}, reward, arm), None

    def _worth(self, had: Mapping[str, float], reward: Reward, arm: Arm) -> float:
        if not isinstance(reward, Mapping):
            return reward
        if self.several is None:
            raise ValueError(f"a reward has the parts {list(reward)}, but the loop has one reward")
        return self.several.worth({**had, **reward}, arm)

    def add(self, place: int, values: Mapping[str, float], times: int = 1) -> None:
        """Count values of an arm; with times = -1 they are taken back."""
        for name, value in values.items():
            one = self._sums.setdefault(name, {}).setdefault(place, [0, 0.0])
            one[0] += times
            one[1] = one[1] + times * value if one[0] else 0.0

    def correct(self, place: int, before: Mapping[str, float], after: Mapping[str, float]) -> None:
        """Count other values instead."""
        for name, value in after.items():
            self._sums[name][place][1] += value - before[name]

    def counts(self, labels: Sequence[Arm]) -> list[OutcomeCounts]:
        """Return each outcome, of all arms and then of each that has any."""
        counts = []
        for name, sums in self._sums.items():
            n, total = (sum(one[at] for one in sums.values()) for at in (0, 1))
            counts.append(OutcomeCounts(name, None, n, total / n if n else None))
            each = ((labels[place], *one) for place, one in sorted(sums.items()) if one[0])
            counts += [OutcomeCounts(name, arm, n, total / n) for arm, n, total in each]
        return counts

    def state(self) -> dict[str, list[list[float]]]:
        """Return everything as lists, for JSON."""
        return {name: [[place, *one] for place, one in sums.items()] for name, sums in self._sums.items()}

    @staticmethod
    def restore(state: Mapping[str, Sequence[Any]]) -> OutcomeSums:
        """Return the sums that had this state; a ValueError or TypeError says that it is none."""
        made = OutcomeSums()
        for name, sums in state.items():
            made._sums[str(name)] = {whole(place): [whole(n), finite(total)] for place, n, total in sums}
        return made
