"""The tally of a loop: running sums of all that happens to it, which `stats` and `health` are made of.

A runner calls it for every decision and every reward, in the transaction that writes them, and writes it down as JSON
once in 1,000 rows or so; the rows since then are counted again after a restart. Every call is O(1), but for folding 64
draws or 200 decisions at a time; memory is O(arms), of a catalogue O(1): `tally/catalogue.py`. It holds no context and
no event. Times are microseconds since 1970 by the wall clock.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from types import SimpleNamespace
from typing import Any, Final, Literal, TypeAlias, cast

from armlet.errors import StoreError
from armlet.inference.betting import PropensityBets
from armlet.inputs.outcomes import Outcomes
from armlet.kernel import Decision, json_bytes
from armlet.stores.tally.catalogue import MOST, OTHERS, Catalogue, rank_of
from armlet.stores.tally.cohorts import Cohorts
from armlet.stores.tally.comparisons import Coins, Comparisons
from armlet.stores.tally.contexts import ContextSums
from armlet.stores.tally.delays import DecisionTimes, Delays, finite, least_delay, whole
from armlet.stores.tally.outcomes import OutcomeSums
from armlet.stores.tally.stamps import Stamps
from armlet.stores.tally.switches import Switches
from armlet.stores.tally.timeline import CHANGES, Cells, Change, words_of
from armlet.types import Arm

Source: TypeAlias = Literal["reward", "default"]

FORMAT: Final = 2
EARLIER: Final = 1  # format without comparisons, cells and changes
TYPICAL: Final = 0.9  # of rewards have come, when a cohort is judged
PARTS: Final = 8  # of a bin of delays, to look at how many decisions reached them
LONG_GAP: Final = 64  # decisions; shorter ones are not worth the time to look at, unless they are the longest
GAPS: Final = 10  # silences between answers, which tell what is usual
OLD: Final = 4  # times the typical delay: the age of a loop that knows it
FAULTS: Final = ("unknown", "out_of_range", "conflict")
CHANGING: Final = frozenset(("change", "add_arm", "retire_arm", "restore_arm"))  # kinds of rows
COUNTS: Final = frozenset(("accepted", "late", "counted"))  # statuses of a reward that counts
SHARES: Final = (0.01, 0.03)  # of answers: still in order, and a fault
GAIN: Final = math.log(SHARES[1] / SHARES[0])  # evidence of an answer with this status
LOSS: Final = math.log((1.0 - SHARES[0]) / (1.0 - SHARES[1]))  # and of one without, against it
MOST_EVIDENCE: Final = 20.0

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
LAST: Final = 20  # decisions whose rows are remembered
SEVERAL: Final = [0.0, 1.0]  # values were reported; which ones may be somebody's secret
COUNTED: Final = ("_decided", "_explored", "_rewards", "_defaults", "_count", "_drawn")
SUMMED: Final = ("_total", "_squares", "_drawn_total")


@dataclass(frozen=True, slots=True)
class ArmCounts:
    """What a tally says of one arm."""

    arm: Arm
    decisions: int
    explored: int
    rewards: int  # first values that were reported
    defaults: int  # windows that closed without one
    learned: int  # values that are learned now
    mean: float | None  # of these; None if there are none
    variance: float | None  # of these; None if there are fewer than 2
    explored_mean: float | None  # of the values of explored decisions, which no context chose


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


class Tally:
    """Running sums of one loop.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], dim=2, seed=1)
    >>> decision, tally = bandit.decide([1.0, 0.5]), Tally()
    >>> tally.decided(decision, 1_700_000_000_000_000)
    >>> tally.answered("accepted", 1_700_000_003_000_000, decided_at=1_700_000_000_000_000)
    >>> tally.learned(decision.arm, 1.0, decision.explored, 1_700_000_000_000_000, 1_700_000_003_000_000, "reward")
    >>> tally.decisions, tally.open, tally.statuses
    (1, 0, {'accepted': 1})
    >>> Tally.from_json(tally.to_json()).to_json() == tally.to_json()
    True
    """

    __slots__ = (
        "_at_answer",
        "_count",
        "_decided",
        "_defaults",
        "_drawn",
        "_drawn_total",
        "_explored",
        "_lags",
        "_longest_gap",
        "_places",
        "_range",
        "_rewards",
        "_squares",
        "_times",
        "_total",
        "answers",
        "bets",
        "catalogue",
        "cells",
        "changes",
        "cohorts",
        "comparisons",
        "contexts",
        "decisions",
        "defaulted_total",
        "delays",
        "expired_open",
        "faults",
        "first_at",
        "forgotten_open",
        "gaps",
        "known",
        "labels",
        "last_answer_at",
        "last_at",
        "last_rows",
        "most_expected",
        "outcomes",
        "stamps",
        "statuses",
        "units",
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
        self._range: list[float] = []  # of rewards while all of them are alike, and then that of SEVERAL
        self.labels: list[Arm] = []
        self._places: dict[Arm, int] = {}
        self._decided: list[int] = []  # by arm, as all that follow
        self._explored: list[int] = []
        self._rewards: list[int] = []
        self._defaults: list[int] = []
        self._count: list[int] = []
        self._total: list[float] = []
        self._squares: list[float] = []
        self._drawn: list[int] = []  # values of explored decisions
        self._drawn_total: list[float] = []
        self._times, self.bets, self.cohorts = DecisionTimes(), PropensityBets(), Cohorts()
        self.comparisons, self.cells, self.units = Comparisons(), Cells(), Switches()
        self.outcomes = OutcomeSums()  # where there are several
        self.contexts = ContextSums()
        self.stamps = Stamps()  # where rows are aged by time
        self.catalogue: Catalogue | None = None  # where actions come with each decision
        self.changes: list[Change] = []  # the last ones
        self.last_rows: deque[int] = deque(maxlen=LAST)  # of decisions
        self.defaulted_total = 0.0  # of defaults that were learned first

    def _place(self, arm: Arm) -> int:
        """Return the place of an arm, a new one if it was not seen before."""
        place = self._places.get(arm)
        if place is None:
            if self.catalogue is not None:
                return OTHERS
            place = self._places[arm] = self._append(arm)
        return place

    def _append(self, arm: Arm) -> int:
        """Make room for one more arm, and return its place."""
        self.labels.append(arm)
        for name in COUNTED:
            getattr(self, name).append(0)
        for name in SUMMED:
            getattr(self, name).append(0.0)
        self.cohorts.add_arm()
        self.comparisons.add_arm()
        return len(self.labels) - 1

    def decided(self, decision: Decision, ts: int, seq: int = 0) -> None:
        """Count a decision, whose row has this number."""
        arm = decision.arm
        place = self._places.get(arm)
        if place is None:
            place = self._place(arm)
        if ts >= self._times.due:
            self._times.mark(ts, self.decisions)
        if not self.decisions:
            self.first_at = ts
        self.decisions += 1
        self.last_at = ts
        self._decided[place] += 1
        explored = decision.explored
        if explored:
            self._explored[place] += 1
        rate = decision.exploration_rate
        self.cells.decided(place, explored, rate, ts)
        self.comparisons.rate = rate
        self.last_rows.append(seq)
        unit = getattr(decision, "unit", None)  # of a row that has none, nothing says so
        if unit is not None:
            self.units.decided(unit, decision.epoch or 0, place)
        if rate is None:
            propensity = decision.propensity
            if propensity < 1.0:
                self.bets.draw(place, propensity, 1.0 / max(2, len(self.labels)))
        elif explored or rate > 0.0:
            self._bet_on_exploring(place, decision, rate, explored)
        cohorts = self.cohorts
        cohorts.decided(place, ts)
        if ts >= cohorts.ripe:
            cohorts.judge(ts, self._wait(ts), self.is_complete)

    def _bet_on_exploring(self, place: int, decision: Decision, rate: float, explored: bool) -> None:
        """Bet where every arm could be explored with a known probability, as `armlet.evaluate` does."""
        smallest, given = decision.min_exploration_probability, decision.exploration_propensity
        if smallest and rate > 0.0 and (given or not explored):  # where a control played, nobody knows it
            if explored and given:
                self.bets.draw(place, given, smallest)
            if rate < 1.0:
                self.bets.toss(rate, explored)

    # ---- of a catalogue; `fields` are those of the row

    def kept(self, seq: int, fields: Mapping[str, Any]) -> None:
        """Count a table of actions, which has this row."""
        self._begin_catalogue().keep(seq, fields["hash"], fields.get("name"))

    def removed_table(self, fields: Mapping[str, Any]) -> None:
        """Take its name from a table of actions."""
        self._begin_catalogue().prepared.pop(fields["name"], None)

    def decided_action(self, fields: Mapping[str, Any], ts: int, seq: int) -> None:
        """Count a decision among the actions of a table."""
        catalogue = self._begin_catalogue()
        catalogue.decided(fields)
        arm = fields["arm"]
        if arm not in self._places:
            self._admit(catalogue, arm)
        # draws are tested by rank, below: most labels are drawn once or twice
        told = SimpleNamespace(arm=arm, explored=False, exploration_rate=None, propensity=1.0)
        self.decided(cast("Decision", told), ts, seq)
        found = rank_of(fields.get("support") or (), arm)
        if found is not None:
            self.bets.draw(found[0], fields["propensity"], found[1])

    def activated(self) -> None:
        """Count a decision that was deferred as one that waits for its reward."""
        self._begin_catalogue().deferred -= 1

    def _begin_catalogue(self) -> Catalogue:
        if self.catalogue is None:
            self.catalogue = Catalogue()
            self.cohorts.pooled = self._append("")
            self.catalogue.bonus.append(0)
        return self.catalogue

    def _admit(self, catalogue: Catalogue, arm: Arm) -> None:
        """Count an arm by itself, if need be instead of the one that counts least."""
        if len(self.labels) <= MOST:
            self._places[arm] = self._append(arm)
            catalogue.bonus.append(0)
            return
        place = catalogue.least(self._decided)
        catalogue.bonus[place] += self._decided[place]
        for name in COUNTED + SUMMED:
            column = getattr(self, name)
            column[OTHERS] += column[place]
            column[place] = 0 if name in COUNTED else 0.0
        for parts in (self.cohorts, self.comparisons, self.cells):
            parts.move(place, OTHERS)
        del self._places[self.labels[place]]
        self.labels[place] = arm
        self._places[arm] = place

    def answered(self, status: str, ts: int, decided_at: int | None = None) -> None:
        """Count a call that reported a reward, by what became of it.

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

    def learned(
        self,
        arm: Arm,
        value: float,
        explored: bool,
        decided_at: int,
        ts: int,
        source: Source,
        coins: Coins | None = None,
        seq: int = 0,
    ) -> None:
        """Count the first value that is learned of a decision: a reward, or the default of its window.

        With its coins, and the number of its row, it is folded into the comparisons; nobody gives them twice.
        """
        place = self._place(arm)
        self.known += 1
        self._count[place] += 1
        self._total[place] += value
        self._squares[place] += value * value
        if explored:
            self._drawn[place] += 1
            self._drawn_total[place] += value
        self._lags.add(ts - decided_at)
        reported = source == "reward"
        if reported:
            self._rewards[place] += 1
            self._see(value)
        else:
            self._defaults[place] += 1
            self.defaulted_total += value
        self.cohorts.learned(place, value, reported, decided_at)
        if coins is not None:
            self.comparisons.add(place, value, coins, seq, self.decisions)

    def _see(self, value: float) -> None:
        if not self._range:
            self._range = [value, value]
        elif self._range != [value, value]:
            self._range = SEVERAL

    def corrected(
        self, arm: Arm, old: float, new: float, *, explored: bool = False, decided_at: int | None = None
    ) -> None:
        """Count another value instead of one that was learned."""
        place = self._place(arm)
        self._total[place] += new - old
        self._squares[place] += new * new - old * old
        self._see(new)
        if explored:
            self._drawn_total[place] += new - old
        if decided_at is not None:
            self.cohorts.corrected(place, old, new, decided_at)

    def forgotten(
        self, arm: Arm, value: float | None, *, explored: bool = False, decided_at: int | None = None
    ) -> None:
        """Take back a value that was learned; None if the decision still waited for its first one."""
        place = self._place(arm)
        if value is None:
            self.forgotten_open += 1
            return
        self._count[place] -= 1
        self._total[place] -= value
        self._squares[place] -= value * value
        if self._range == [value, value]:
            self._range = []
        if explored:
            self._drawn[place] -= 1
            self._drawn_total[place] -= value
        if decided_at is not None:
            self.cohorts.forgotten(place, value, decided_at)
            self.comparisons.forgotten(place)

    # ---- where a reward has several parts; `fields` are those of the row that says so

    def given(
        self,
        outcomes: Outcomes,
        arm: Arm,
        explored: bool,
        fields: Mapping[str, Any],
        decided_at: int,
        ts: int,
        coins: Coins | None = None,
    ) -> None:
        """Count parts that the bandit was given, and the row once it has all of them."""
        place, reward = self._place(arm), fields["reward"]
        self.outcomes.add(place, reward)
        if "waits" in fields:
            return
        if "expired" in fields:
            self.revived(arm)
        self.outcomes.add(place, _known(outcomes, arm))
        worth = outcomes.worth({**fields.get("had", {}), **reward}, arm)
        source: Source = "default" if fields.get("source") == "default" else "reward"
        coins = None if "expired" in fields else coins
        self.learned(arm, worth, explored, decided_at, ts, source, coins, fields["of"])

    def corrected_parts(
        self, outcomes: Outcomes, arm: Arm, explored: bool, fields: Mapping[str, Any], decided_at: int
    ) -> None:
        """Count other parts instead of those that the bandit was given."""
        had, new = fields["had"], fields["new_reward"]
        self.outcomes.correct(self._place(arm), fields["old_reward"], new)
        if "waits" not in fields:
            old, worth = (outcomes.worth(values, arm) for values in (had, {**had, **new}))
            self.corrected(arm, old, worth, explored=explored, decided_at=decided_at)

    def forgotten_parts(
        self,
        outcomes: Outcomes,
        arm: Arm,
        given: Mapping[str, float],
        *,
        explored: bool = False,
        decided_at: int | None = None,
    ) -> None:
        """Take back what the bandit was given, of a row that it had learned if that is all of it."""
        place, is_whole = self._place(arm), len(given) == len(outcomes.learned)
        self.outcomes.add(place, given, -1)
        if is_whole:
            self.outcomes.add(place, _known(outcomes, arm), -1)
            self.forgotten(arm, outcomes.worth(given, arm), explored=explored, decided_at=decided_at)

    def expired(self, arm: Arm) -> None:
        """Stop waiting for the reward of a decision."""
        self._place(arm)
        self.expired_open += 1

    def revived(self, arm: Arm) -> None:
        """Take back that a decision expired, before its late reward is learned after all."""
        self._place(arm)
        self.expired_open -= 1

    def changed(self, seq: int, ts: int, kind: str, fields: Mapping[str, Any]) -> None:
        """Count a change of the loop, which starts the comparisons again that it concerns."""
        text = words_of(kind, fields, self.comparisons.guards)
        self.changes = [*self.changes, Change(seq, ts, text)][-CHANGES:]
        self.comparisons.changed(fields, seq, ts)
        if any(name in replaced for replaced in fields.get("replaces", ()) for name in ("features", "policy")):
            self.contexts.clear()  # others, or what was wild has been dealt with

    @property
    def reported(self) -> tuple[int, float]:
        """How many values are learned that were reported, in time or late, and their sum."""
        defaults = sum(self._defaults)
        late = min(self.statuses.get("late", 0), defaults)  # which count instead of as many defaults
        missing = defaults - late
        share = missing / defaults if defaults else 0.0
        return max(sum(self._count) - missing, 0), sum(self._total) - share * self.defaulted_total

    @property
    def open(self) -> int:
        """How many decisions wait for their first value."""
        deferred = 0 if self.catalogue is None else self.catalogue.deferred
        return self.decisions - self.known - self.expired_open - self.forgotten_open - deferred

    @property
    def explored(self) -> int:
        """How many decisions explored."""
        return sum(self._explored)

    @property
    def rewarded(self) -> int:
        """How many decisions had a first value that was reported."""
        return sum(self._rewards)

    @property
    def defaulted(self) -> int:
        """How many decisions had a first value that was the default of a window."""
        return sum(self._defaults)

    @property
    def learned_now(self) -> int:
        """How many values are learned now."""
        return sum(self._count)

    @property
    def is_complete(self) -> bool:
        """Whether rewards of several values are reported, rather than successes alone."""
        return bool(self._range) and self._range[0] < self._range[1]

    @property
    def arms(self) -> list[ArmCounts]:
        """What was counted of every arm, in the order in which they were first seen; of a catalogue, of some."""
        first = 0 if self.catalogue is None else OTHERS + 1
        return [self._counts(place, arm) for place, arm in enumerate(self.labels) if place >= first]

    @property
    def others(self) -> ArmCounts | None:
        """What was counted of all other arms of a catalogue together; None if there are none."""
        return None if self.catalogue is None or not self._decided[OTHERS] else self._counts(OTHERS, "")

    def _counts(self, place: int, arm: Arm) -> ArmCounts:
        n, total, squares = self._count[place], self._total[place], self._squares[place]
        drawn = self._drawn[place]
        return ArmCounts(
            arm=arm,
            decisions=self._decided[place],
            explored=self._explored[place],
            rewards=self._rewards[place],
            defaults=self._defaults[place],
            learned=n,
            mean=total / n if n > 0 else None,
            variance=max(squares - total * total / n, 0.0) / (n - 1) if n > 1 else None,
            explored_mean=self._drawn_total[place] / drawn if drawn else None,
        )

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

    def _wait(self, now: int) -> int | None:
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

    def to_json(self) -> str:
        """Return everything as text."""
        return json_bytes(
            {
                "format": FORMAT,
                "counts": [getattr(self, name) for name in COUNTERS],
                "expected": self.most_expected,
                "statuses": self.statuses,
                "faults": [self.faults[status].state() for status in FAULTS],
                "range": self._range,
                "delays": [self.delays.state(), self._lags.state()],
                "arms": self.labels,
                "columns": [getattr(self, name) for name in COUNTED + SUMMED],
                "times": self._times.state(),
                "bets": self.bets.state(),
                "cohorts": self.cohorts.state(),
                "comparisons": self.comparisons.state(),
                "cells": self.cells.state(),
                "last": [self.defaulted_total, *self.last_rows],
                "changes": [[change.seq, change.at, change.text] for change in self.changes],
                **({"units": self.units.state()} if self.units.decisions else {}),
                **({"outcomes": self.outcomes.state()} if self.outcomes else {}),
                **({"contexts": contexts} if (contexts := self.contexts.state())[0] else {}),
                **({"stamps": self.stamps.state()} if self.stamps.jumps else {}),
                **({"catalogue": self.catalogue.state()} if self.catalogue is not None else {}),
            }
        ).decode()

    @staticmethod
    def from_json(text: str) -> Tally:
        """Return the tally that `to_json` wrote; a StoreError says that the text is damaged."""
        try:
            state = json.loads(text)
            if state["format"] not in (EARLIER, FORMAT):
                raise ValueError(f"its format is {state['format']!r}, and this version reads {EARLIER} and {FORMAT}")
            return Tally._restore(state)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise StoreError(f"the tally of the loop is damaged: {error}; go back to a backup") from error

    @staticmethod
    def _restore(state: dict[str, Any]) -> Tally:
        tally = Tally()
        first = tally._append("") + 1 if "catalogue" in state else 0
        for arm in state["arms"][first:]:
            if type(arm) not in (str, int) or arm in tally._places:
                raise ValueError(f"{arm!r} is not an arm, or is there twice")
            tally._place(arm)
        for name, number in zip(COUNTERS, state["counts"], strict=True):
            setattr(tally, name, whole(number))
        tally.statuses = {status: whole(n) for status, n in state["statuses"].items()}
        tally.most_expected = finite(state["expected"])
        tally._range = [finite(end) for end in state["range"]]
        tally._restore_columns(state["columns"])
        for status, (amount, *counts) in zip(FAULTS, state["faults"], strict=True):
            answers, since, before, n = (whole(count) for count in counts)
            tally.faults[status] = StatusShare(finite(amount), answers, since, before, n)
        tally.delays, tally._lags = (Delays.restore(one) for one in state["delays"])
        tally._times, tally.bets = DecisionTimes.restore(state["times"]), PropensityBets.restore(state["bets"])
        tally.cohorts = Cohorts.restore(state["cohorts"], len(tally.labels))
        if state["format"] != EARLIER:
            tally.comparisons = Comparisons.restore(state["comparisons"], len(tally.labels))
            tally.cells = Cells.restore(state["cells"])
            total, *rows = state["last"]
            tally.defaulted_total = finite(total)
            tally.last_rows.extend(whole(seq) for seq in rows)
            tally.changes = [Change(whole(seq), whole(at), str(text)) for seq, at, text in state["changes"]]
        if "units" in state:
            tally.units = Switches.restore(state["units"])
        if "outcomes" in state:
            tally.outcomes = OutcomeSums.restore(state["outcomes"])
        if "contexts" in state:
            tally.contexts = ContextSums.restore(state["contexts"])
        if "stamps" in state:
            tally.stamps = Stamps.restore(state["stamps"])
        if "catalogue" in state:
            tally.catalogue = Catalogue.restore(state["catalogue"], len(tally.labels))
            tally.cohorts.pooled = OTHERS
        tally._check_sums()
        return tally

    def _check_sums(self) -> None:
        if sum(self.statuses.values()) != self.answers or sum(self._decided) != self.decisions:
            raise ValueError("its counts do not add up")
        if self.most_expected < 0.0 or min(self._decided, default=0) < 0:
            raise ValueError("a count is negative")

    def _restore_columns(self, columns: list[list[float]]) -> None:
        for name, column in zip(COUNTED + SUMMED, columns, strict=True):
            numbers = [whole(one) if name in COUNTED else finite(one) for one in column]
            if len(numbers) != len(self.labels):
                raise ValueError(f"there are {len(self.labels)} arms, but {len(numbers)} numbers of them")
            setattr(self, name, numbers)


def _known(outcomes: Outcomes, arm: Arm) -> dict[str, float]:
    return {name: prices[arm] for name, prices in outcomes.known.items()}
