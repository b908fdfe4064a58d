"""A log played again, event by event, on a bandit: by public calls alone, and bit for bit what it was.

A decision costs what it cost at first; memory holds the last decisions only, if older ones can be found in the log.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any, Final

from armlet.bandit import Bandit, from_bytes
from armlet.errors import ArmletError, LogError
from armlet.kernel import Decision
from armlet.log.faults import explain, is_fault
from armlet.log.schema import HEAD, UNPLAYED, Event
from armlet.policies import find_policy

RECENT: Final = 2**15  # decisions of a generation; two of them are kept

Find = Callable[[str], Event | None]


class Past:
    """The decisions played so far by id: the last ones themselves, the others from the log."""

    def __init__(self, find: Find | None) -> None:
        self._find = find
        self._recent: dict[str, Decision] = {}
        self._before: dict[str, Decision] = {}

    def add(self, decision: Decision) -> None:
        """Remember a decision."""
        if len(self._recent) >= RECENT and self._find is not None:
            self._before, self._recent = self._recent, {}
        self._recent[decision.id] = decision

    def get(self, event: Event, reward: float | None) -> Decision:
        """Give the decision that an event is about, which has learned this reward if one is given."""
        name = event["id"]
        if "decision" in event:  # made elsewhere, or by another process: its record is all that was known of it
            return Decision.from_dict(event["decision"])
        decision = self._recent.get(name) or self._before.get(name)
        if decision is not None:
            return decision
        found = self._find(name) if self._find is not None else None
        if found is None:
            raise LogError(f"event {event['seq']:,} is about decision {name}, which is not in the log", event["seq"])
        if reward is not None:
            found = {**found, "reward": reward, "weight": event["weight"]}
        elif "expired" in event:
            found = {**found, "expired": event["expired"]}
        decision = Decision.from_dict(found)
        self._recent[name] = decision
        return decision


class Player:
    """Plays events on a bandit, one by one.

    Parameters
    ----------
    bandit
        In the state that the first event found.
    find
        Finds a decision of long ago by its id; without it all decisions are kept in memory.
    """

    def __init__(self, bandit: Bandit, find: Find | None = None) -> None:
        self.bandit = bandit
        self._past = Past(find)
        self._plays: dict[str, Callable[[Event], object]] = {
            name.removeprefix("_play_"): getattr(self, name) for name in dir(self) if name.startswith("_play_")
        }

    def play(self, event: Event) -> Decision | None:
        """Play one event; give the decision if it is one."""
        kind = event["kind"]
        if kind == "decide":
            decision = self.bandit.decide(event["x"], eligible=event["eligible"], t=event["t"])
            self._past.add(decision)
            return decision
        if kind not in UNPLAYED:
            if kind not in self._plays:
                raise LogError(
                    f"event {event['seq']:,} is of kind {kind!r}, which this version cannot play", event["seq"]
                )
            self._plays[kind](event)
        return None

    def _play_learn(self, event: Event) -> None:
        self.bandit.learn(self._past.get(event, None), event["reward"], weight=event["weight"])

    def _play_correct(self, event: Event) -> None:
        old = event["old_reward"]
        self.bandit.correct(self._past.get(event, old), old, event["new_reward"])

    def _play_forget(self, event: Event) -> None:
        self.bandit.forget(self._past.get(event, event["reward"]), event["reward"])

    def _play_expire(self, event: Event) -> None:
        self.bandit.expire(self._past.get(event, None))

    def _play_add_arm(self, event: Event) -> None:
        self.bandit.add_arm(event["arm"])

    def _play_retire_arm(self, event: Event) -> None:
        self.bandit.retire_arm(event["arm"])

    def _play_restore_arm(self, event: Event) -> None:
        self.bandit.restore_arm(event["arm"])

    def _play_remove_arm(self, event: Event) -> None:
        self.bandit.remove_arm(event["arm"])

    def _play_advance(self, event: Event) -> None:
        self.bandit.replace(t=event["t"])

    def _play_partial_fit(self, event: Event) -> None:
        fields = {name: value for name, value in event.items() if name not in HEAD}
        self.bandit.partial_fit(**fields)

    def _play_learn_logged(self, event: Event) -> None:
        self.bandit.partial_fit(event["columns"])

    def _play_replace(self, event: Event) -> None:
        bandit: Any = self.bandit  # which must be able to, or the event is refused by name
        bandit.replace(policy=find_policy(event["policy"]["name"])(**event["policy"]["settings"]))

    def _play_merge(self, event: Event) -> None:
        self.bandit.merge(from_bytes(base64.b64decode(event["model"])))


def replay(events: Iterable[Event], bandit: Bandit) -> int:
    """Play a log again on a bandit, which is changed as the one that wrote it was; give the number of events.

    Parameters
    ----------
    events
        An `armlet.Log`, or any events in order.
    bandit
        In the state that the first event found: the start model, or a copy of the bandit from before.
    """
    player = Player(bandit, getattr(events, "find", None))
    played = 0
    for event in events:
        try:
            player.play(event)
        except LogError:
            raise
        except Exception as error:
            if not (isinstance(error, ArmletError | AttributeError) or is_fault(error)):
                raise
            raise LogError(f"event {event['seq']:,} cannot be played: {explain(error)}", event["seq"]) from error
        played += 1
    return played
