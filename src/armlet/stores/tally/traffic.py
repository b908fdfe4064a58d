"""The traffic of a loop: decisions and answers as they come, how long values take, and what is still waited for."""

from __future__ import annotations

import math
from collections import deque
from itertools import accumulate
from typing import Any, Final

from armlet.stores.ledger import Row
from armlet.stores.tally.delays import DecisionTimes, Delays, finite, least_delay, whole
from armlet.stores.tally.folds import ERASE, Fold, Seen

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

    kinds = ("decide", "reward", "learn", "correct", "forget", "expire", "bill", ERASE)

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

    def see(self, seen: Seen) -> None:
        """Count a decision, what was learned of one, and what a caller was answered."""
        row, fields = seen.row, seen.fields
        if row.kind == "decide":
            self._see_decision(row)
            return
        if row.kind == "learn":
            if seen.after is not None:
                self.known += 1
                self.expired_open -= "expired" in fields
                self._lags.add(row.ts - seen.about.ts)
        elif row.kind == "expire":
            self.expired_open += 1
        elif row.kind == ERASE and "is_open" in fields:
            self.forgotten_open += 1
        if "status" in fields:
            self.answered(fields["status"], row.ts, None if "later" in fields else seen.about.ts)

    def _see_decision(self, row: Row) -> None:
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
