"""A bandit that learns its log again, without the rows that were taken back. O(events), and two passes.

A row that was taken back can have cost the sums their digits (armlet.lost_digits). Its learning is left out here, and a
reward that was corrected is learned as it was corrected, so that sums never meet the row. The log may grow meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from armlet.cast.cast import AnyDecision, Cast
from armlet.errors import LogError
from armlet.log.replaying import LoggedPast, read_decision
from armlet.lost_digits import keeping_rows
from armlet.record.events import Events
from armlet.record.faults import explain
from armlet.record.replay import is_unplayable, play
from armlet.record.values import Event

UNCOUNTED = frozenset({"bill", "resync"})  # of a budget, whose spending stays; of sums that are left out


class _Played(LoggedPast):
    """The decisions of a log as they were played, whatever would be played now."""

    def decide(self, cast: Cast, event: Event) -> AnyDecision:
        """Take the step of a decision."""
        if cast.fades_by_time:
            cast.tell_time(event["tag"])
        cast.advance(event["t"])
        cast.begin_decision(event["arm"], event.get("explored", False))
        decision = read_decision(event)
        self.keep(decision)
        return decision


class _Taken:
    """What became of the rows that were taken back or corrected."""

    def __init__(self, events: Events) -> None:
        self._forgotten: dict[str, int] = {}  # the last event that forgot a decision
        self._corrected: dict[str, list[tuple[int, Any]]] = {}  # events, and the rewards from then on
        self._learned: set[str] = set()  # of these decisions, those that the log has learned
        self.last = -1
        for event in events:
            self.last = event["seq"]
            if event["kind"] == "forget":
                self._forgotten[event["id"]] = event["seq"]
            elif event["kind"] == "correct":
                self._corrected.setdefault(event["id"], []).append((event["seq"], event["new_reward"]))

    def is_left_out(self, event: Event) -> bool:
        """Return whether an event takes back a row that was never learned here."""
        is_known = event["kind"] in ("forget", "correct") and event["seq"] <= self.last
        return is_known and event["id"] in self._learned

    def learn(self, event: Event) -> Event | None:
        """Return a learning with the reward that it has in the end; None if it was taken back."""
        name, seq = event["id"], event["seq"]
        forgotten = self._forgotten.get(name, -1)
        if name not in self._corrected and forgotten < 0:
            return event
        self._learned.add(name)
        if seq < forgotten:
            return None
        later = [reward for at, reward in self._corrected.get(name, ()) if at > seq]
        return {**event, "reward": _corrected(event["reward"], later[-1])} if later else event


def _corrected(reward: Any, by: Any) -> Any:
    """Return a reward, or those of its outcomes that came with it, as corrected."""
    return {name: by[name] for name in reward} if isinstance(reward, Mapping) else by


class Relearning:
    """A bandit that has learned what is in a log so far, without rows that were taken back.

    Parameters
    ----------
    events
        A log's file.
    start
        Returns its start model.
    flush
        Writes what waits to be written.
    """

    def __init__(self, events: Events, start: Callable[[], Any], flush: Callable[[], None]) -> None:
        self._events, self._start, self._flush = events, start, flush
        self._begin()

    def _begin(self) -> None:
        self._taken, self._past = _Taken(self._events), _Played(getattr(self._events, "find", None))
        self._cast, self._left = Cast(self._start()), iter(self._events)
        self._play(self._taken.last)

    def finish(self) -> Any:
        """Learn what came meanwhile, while nothing more can come, and return the bandit.

        It is as that of the log is, but for rounding, its spending and its epoch.
        """
        self._flush()
        try:
            self._play()
        except LogError:  # a row was taken back meanwhile that it has learned
            self._begin()
        return self._cast.live

    def _play(self, last: int | None = None) -> None:
        losses: list[str] = []
        keeping_rows(lambda: self._play_events(last), losses)
        if losses:
            raise LogError("the row was learned in a batch, in a merge, or before the log began")

    def _play_events(self, last: int | None) -> None:
        for event in self._left:
            if event["kind"] not in UNCOUNTED and not self._taken.is_left_out(event):
                self._play_event(event)
            if event["seq"] == last:
                break

    def _play_event(self, event: Event) -> None:
        try:
            _play(self._cast, event, self._past, self._taken)
        except Exception as error:
            if not is_unplayable(error):
                raise
            raise LogError(f"event {event['seq']:,} cannot be learned again: {explain(error)}", event["seq"]) from error


def _play(cast: Cast, event: Event, past: _Played, taken: _Taken) -> None:
    if event["kind"] != "learn":
        play(cast, event, past)
    elif (learned := taken.learn(event)) is not None:
        play(cast, learned, past)
    elif not (decision := past.get(event)).expired:
        cast.expire(decision)
