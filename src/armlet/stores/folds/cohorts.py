"""Cohorts: stretches of decisions that are followed until their rewards have come, and what they say of a loop.

Rewards in the order in which they arrive are misleading: a click arrives before the lack of one does, and a new arm has
decisions before it has rewards. So a stretch of `SIZE` decisions is followed by the time of its decisions, and judged
as a whole once it is old enough, in O(arms). At most `MOST` are followed at a time, so memory is O(arms); decisions in
between are left out. What each rule makes of a cohort is in `armlet.stores.health`, here are its sums: evidence that
rises where a cohort speaks for a fault and falls, never below 0, where it speaks against it (CUSUM).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from armlet.stores.folds.fold import SECOND, Fold, Seen, finite, whole

SIZE: Final = 200  # decisions
MOST: Final = 8  # cohorts at a time
NEVER: Final = 2**62  # microseconds since 1970

MEMORY: Final = 0.95  # of what is usual, from one cohort to the next: about 4,000 decisions
DOUBTED: Final = 0.2  # times the weight of a cohort, where evidence says that something is wrong
ENOUGH: Final = 3.0 * SIZE  # rows that tell what is usual
FEWEST: Final = 20.0  # rows of an arm
LONGER: Final = 1.5  # times as long to wait: what is usual is learned again
STEADY: Final = 0.15  # of plays may go to other arms than usual; with more, what is usual is learned again
PLAYED: Final = 0.05  # of plays: an arm with more that has none is retired
MEAN_DEVIATION: Final = math.sqrt(2.0 / math.pi)  # of a normal, in standard deviations
SLACK: Final = 0.07  # standard deviations of a reward: a drop that is not a change
REPORTED: Final = 0.5  # of decisions: with fewer rewards, whether there is one may depend on what it is
LACKING: Final = (0.75, 0.5)  # times the share of other arms: still in order, and a fault
DEFAULTS: Final = (1.2, 1.7)  # times the usual share: still in order, and a fault
RAREST: Final = 0.01  # share
CAP: Final = 2.0  # times the evidence of an alarm: the most that is kept, so that it ends once the fault has
EVIDENCE: Final = {"change": 90.0, "lack": 10.0, "defaults": 7.0}
"""Where evidence becomes an alarm: in standard deviations of a reward for a change, else a logarithm of likelihoods."""


class Cohort:
    """A stretch of decisions."""

    __slots__ = ("end", "n", "rows", "start")

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self.n = 0
        self.rows: dict[int, list[float]] = {}  # by arm: decisions, learned, rewards, S r, S r^2

    def total(self, part: int) -> float:
        """Add up one number over all arms."""
        return sum(row[part] for row in self.rows.values())

    def state(self) -> list[Any]:
        """Return everything as lists, for JSON."""
        return [self.start, self.end, self.n, [[place, *row] for place, row in self.rows.items()]]

    @staticmethod
    def restore(state: Sequence[Any], n_arms: int) -> Cohort:
        """Return the cohort that had this state."""
        start, end, n, rows = state
        cohort = Cohort(whole(start))
        cohort.end, cohort.n = whole(end), whole(n)
        for place, *row in rows:
            if not 0 <= whole(place) < n_arms or len(row) != 5:
                raise ValueError(f"a cohort has a row {place!r} of {len(row)} numbers")
            cohort.rows[place] = [finite(number) for number in row]
        return cohort


class Evidence:
    """How much speaks for one fault; since when, and by how many rows, what they had and what they should have."""

    __slots__ = ("amount", "got", "rows", "since", "usual")

    def __init__(
        self, amount: float = 0.0, since: int = 0, rows: float = 0.0, got: float = 0.0, usual: float = 0.0
    ) -> None:
        self.amount, self.since, self.rows, self.got, self.usual = amount, since, rows, got, usual

    def add(self, step: float, most: float, at: int, sums: tuple[float, float, float]) -> None:
        """Add what speaks for it, or against it if it is negative, and the rows, sum and usual sum of a cohort."""
        if self.amount == 0.0:
            self.since, self.rows, self.got, self.usual = at, 0.0, 0.0, 0.0
        self.amount = min(max(self.amount + step, 0.0), most)
        rows, got, usual = sums
        self.rows, self.got, self.usual = self.rows + rows, self.got + got, self.usual + usual

    def state(self) -> list[float]:
        """Return everything as numbers, for JSON."""
        if self.amount == 0.0:
            return []
        return [self.amount, self.since, self.rows, self.got, self.usual]

    @staticmethod
    def restore(state: Sequence[Any]) -> Evidence:
        """Return the evidence that had this state."""
        if not state:
            return Evidence()
        amount, since, *sums = state
        rows, got, usual = (finite(number) for number in sums)
        return Evidence(finite(amount), whole(since), rows, got, usual)


class Cohorts(Fold):
    """The cohorts of a loop that are followed, what is usual by the earlier ones, and the evidence of faults."""

    __slots__ = (
        "_filling",
        "_followed",
        "_last",
        "_starts",
        "_wait",
        "drop",
        "fewer",
        "judged",
        "lack",
        "pooled",
        "ripe",
        "rise",
        "usual",
        "usually",
    )

    key = "cohorts"
    required = True

    def __init__(self) -> None:
        self._followed: list[Cohort] = []  # the oldest first
        self._starts: list[int] = []
        self._filling: Cohort | None = None  # the newest of them
        self._last = -1  # when the last decision was made
        self._wait = 0  # how long the last cohorts waited, in microseconds
        self.ripe = NEVER  # when to ask whether the first can be judged
        self.judged = 0
        self.usual: list[list[float]] = []  # by arm: what a cohort has, added up with less weight for older ones
        self.usually = [0.0, 0.0]  # learned and reported, in the same way, no matter which arms are played
        self.lack: list[Evidence] = []  # by arm: of too few rewards
        self.pooled = -1  # the place of several arms that are counted as one, if there is one
        self.fewer = Evidence()  # of too many defaults
        self.drop, self.rise = Evidence(), Evidence()  # of rewards that changed

    def on_decide(self, seen: Seen) -> None:
        """Count a decision."""
        self.decided(seen.place, seen.row.ts)

    def on_learn(self, seen: Seen) -> None:
        """Count what was learned of a decision, if it is in a cohort that is followed."""
        value, decided_at = seen.after, seen.about.ts
        at = bisect_right(self._starts, decided_at) - 1
        if value is None or at < 0 or decided_at > self._followed[at].end:
            return
        row = self._followed[at].rows.get(seen.place)
        if row is not None:
            row[1] += 1.0
            row[2] += seen.is_reported
            row[3] += value
            row[4] += value * value

    def on_correct(self, seen: Seen) -> None:
        """Count another value instead of one that was learned."""
        if seen.before is not None and seen.after is not None:
            self._correct(seen, seen.before, seen.after)

    def on_erase(self, seen: Seen) -> None:
        """Let the mean of the others of its arm stand in for a value that must not be kept."""
        row, value = self._row(seen.place, seen.about.ts), seen.before
        if row is not None and value is not None:
            others = row[1] - 1.0
            self._correct(seen, value, (row[3] - value) / others if others > 0.0 else 0.0)

    def _correct(self, seen: Seen, old: float, new: float) -> None:
        row = self._row(seen.place, seen.about.ts)
        if row is not None:
            row[3] += new - old
            row[4] += new * new - old * old

    def add_arm(self) -> None:
        """Make room for one more arm."""
        self.usual.append([0.0] * 5)
        self.lack.append(Evidence())

    def move(self, place: int, into: int) -> None:
        """Count an arm together with others, so that its place is free."""
        for rows in (cohort.rows for cohort in self._followed if place in cohort.rows):
            gone, others = rows.pop(place), rows.get(into, [0.0] * 5)
            rows[into] = [one + more for one, more in zip(others, gone, strict=True)]
        self.usual[into] = [one + more for one, more in zip(self.usual[into], self.usual[place], strict=True)]
        self.usual[place], self.lack[place] = [0.0] * 5, Evidence()

    def decided(self, place: int, ts: int) -> None:
        """Count a decision, if it falls into a cohort."""
        filling = self._filling
        if filling is None or (filling.n >= SIZE and ts > filling.end):
            filling = self._next(ts)
        if ts > self._last:
            self._last = ts
        if filling is None:
            return
        row = filling.rows.get(place)
        if row is None:
            row = filling.rows[place] = [0.0] * 5
        row[0] += 1.0
        filling.n += 1
        if ts > filling.end:
            filling.end = ts

    def _next(self, ts: int) -> Cohort | None:
        """Begin the next cohort, unless as many are followed as can be."""
        if self._filling is not None and len(self._followed) == 1:
            self.ripe = ts
        self._filling = None
        if len(self._followed) < MOST and ts > self._last:
            self._filling = Cohort(ts)
            self._followed.append(self._filling)
            self._starts.append(ts)
        return self._filling

    def _row(self, place: int, decided_at: int) -> list[float] | None:
        at = bisect_right(self._starts, decided_at) - 1
        if at < 0 or decided_at > self._followed[at].end:
            return None
        return self._followed[at].rows.get(place)

    def judge(self, ts: int, wait: int | None, complete: bool) -> None:
        """Judge cohorts that have waited long enough, and set when to ask again; None if that is not known yet.

        `complete` says that rewards are reported regardless of their values.
        """
        if wait is not None and wait > LONGER * self._wait:
            self._forget()  # what earlier cohorts say is usual lacks the rewards that take longer
            self.lack, self.usually, self._wait = [Evidence() for _ in self.lack], [0.0, 0.0], wait
        while self._followed and self._followed[0] is not self._filling:
            first = self._followed[0]
            if wait is None or ts - first.end < wait:
                self.ripe = first.end + wait if wait is not None else ts + max(SECOND, ts - first.end)
                return
            del self._followed[0], self._starts[0]
            self._weigh(first, complete)
        self.ripe = NEVER

    def _weigh(self, cohort: Cohort, complete: bool) -> None:
        """Add the evidence of a cohort, then let it tell what is usual."""
        if complete:
            self._weigh_lack(cohort)
            self._weigh_defaults(cohort)
        self._weigh_change(cohort)
        for place, usual in enumerate(self.usual):
            row = cohort.rows.get(place)
            for part in range(5):
                usual[part] = MEMORY * usual[part] + (row[part] if row is not None else 0.0)
            usual[:3] = [round(n, 2) for n in usual[:3]]  # short in JSON
        self._expect(cohort)
        self.judged += 1

    def _expect(self, cohort: Cohort) -> None:
        """Let a cohort tell how many rewards are usual; where it is in doubt whether they still come, only a little."""
        weight = DOUBTED if self.fewer.amount else 1.0
        stays = 1.0 - (1.0 - MEMORY) * weight
        learned, reported = self.usually
        learned, reported = stays * learned + weight * cohort.total(1), stays * reported + weight * cohort.total(2)
        self.usually = [round(learned, 2), round(reported, 2)]

    def _weigh_lack(self, cohort: Cohort) -> None:
        """Compare the share of decisions with a reward of every arm with that of all others in the cohort."""
        decisions, rewards = cohort.total(0), cohort.total(2)
        most = CAP * EVIDENCE["lack"]
        for place, (n, _, got, _, _) in cohort.rows.items():
            others = decisions - n
            share = (rewards - got) / others if others >= FEWEST else 0.0
            share = min(share, 1.0)  # where a clock was set back, a cohort has rewards of other decisions too
            if share >= REPORTED:
                fine, fault = (times * share for times in LACKING)
                self.lack[place].add(_ratio(got, n, fine, fault), most, cohort.start, (n, got, n * share))

    def _weigh_defaults(self, cohort: Cohort) -> None:
        """Compare the share of defaults with the usual one."""
        learned, rewards = cohort.total(1), cohort.total(2)
        before, reported = self.usually
        if before < ENOUGH or reported < REPORTED * before:
            return
        usual = max(1.0 - reported / before, RAREST)
        fine, fault = (min(times * usual, 1.0 - (1.0 - usual) / times) for times in DEFAULTS)
        sums, most = (learned, learned - rewards, learned * usual), CAP * EVIDENCE["defaults"]
        self.fewer.add(_ratio(learned - rewards, learned, fine, fault), most, cohort.start, sums)

    def _weigh_change(self, cohort: Cohort) -> None:
        """Compare rewards with the usual ones of the same arms."""
        learned, before = cohort.total(1), sum(row[1] for row in self.usual)
        if before < ENOUGH or learned < SIZE / 4:
            return
        if self._moved(cohort, learned, before):
            self._forget()
            return
        n, total, usual, variance = self._compared(cohort)
        if variance > 0.0:
            z, most, sums = (total - usual) / math.sqrt(variance), CAP * EVIDENCE["change"], (n, total, usual)
            self.drop.add(-z - SLACK * n, most, cohort.start, sums)
            self.rise.add(z - SLACK * n, most, cohort.start, sums)

    def _moved(self, cohort: Cohort, learned: float, before: float) -> bool:
        """Whether an arm that was played is gone, or more plays went to other arms than usual than by chance."""
        moved = chance = 0.0
        for place, (_, n, _, _, _) in enumerate(self.usual):
            usual, now = n / before, (cohort.rows[place][1] if place in cohort.rows else 0.0) / learned
            if usual > PLAYED and now == 0.0:
                return True
            moved += abs(now - usual)
            chance += math.sqrt(usual * (1.0 - usual) * (1.0 / learned + 1.0 / before))
        return 0.5 * (moved - MEAN_DEVIATION * chance) > STEADY

    def _forget(self) -> None:
        """Let what rewards are usual be learned again."""
        self.usual = [[0.0] * 5 for _ in self.usual]
        self.drop, self.rise = Evidence(), Evidence()

    def _compared(self, cohort: Cohort) -> tuple[float, float, float, float]:
        """Return how many rewards can be compared, their sum, what is usual of the same arms, the variance of one."""
        n = total = usual = spread = 0.0
        for place, (_, learned, _, earned, _) in cohort.rows.items():
            _, m, _, s, squares = self.usual[place]
            if m >= FEWEST and place != self.pooled:  # which arms that is may change
                n += learned
                total += earned
                usual += learned * s / m
                spread += learned * max(squares / m - (s / m) ** 2, 0.0)
        return n, total, usual, spread / n if n else 0.0

    def state(self) -> dict[str, Any]:
        """Return everything as lists, for JSON."""
        return {
            "judged": self.judged,
            "last": self._last,
            "ripe": self.ripe,
            "wait": self._wait,
            "filling": self._filling is not None,
            "cohorts": [cohort.state() for cohort in self._followed],
            "usual": self.usual,
            "usually": self.usually,
            "lack": [one.state() for one in self.lack],
            "evidence": [one.state() for one in (self.fewer, self.drop, self.rise)],
        }

    @staticmethod
    def restore(state: dict[str, Any]) -> Cohorts:
        """Return the cohorts that had this state; a ValueError, TypeError or KeyError says that it is not one."""
        cohorts = Cohorts()
        cohorts.judged, cohorts._last = whole(state["judged"]), whole(state["last"])
        cohorts.ripe, cohorts._wait = whole(state["ripe"]), whole(state["wait"])
        cohorts.usual = [[finite(number) for number in row] for row in state["usual"]]
        cohorts._followed = [Cohort.restore(one, len(cohorts.usual)) for one in state["cohorts"]]
        cohorts._starts = [cohort.start for cohort in cohorts._followed]
        cohorts._filling = cohorts._followed[-1] if state["filling"] else None
        cohorts.lack = [Evidence.restore(one) for one in state["lack"]]
        if any(len(row) != 5 for row in cohorts.usual):
            raise ValueError("what is usual of an arm is not five numbers")
        learned, reported = state["usually"]
        cohorts.usually = [finite(learned), finite(reported)]
        cohorts.fewer, cohorts.drop, cohorts.rise = (Evidence.restore(one) for one in state["evidence"])
        return cohorts

    def check(self, n_arms: int) -> None:
        """Raise a ValueError if it is of another number of arms."""
        if not len(self.usual) == len(self.lack) == n_arms:
            raise ValueError(f"there are {n_arms} arms, but what is usual of {len(self.usual)}")


def _ratio(n: float, of: float, fine: float, fault: float) -> float:
    """Return the logarithm of how much likelier n of some are if the share is `fault` than if it is `fine`."""
    return n * math.log(fault / fine) + (of - n) * math.log((1.0 - fault) / (1.0 - fine))
