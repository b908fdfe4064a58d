"""The arms of a log, followed event by event: which there have been, and which may be played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from armlet.errors import LogError
from armlet.record.events import Events, header_of
from armlet.record.kinds import ARM_CHANGES, KINDS
from armlet.record.values import ADDED, ARMS, LABEL, Event
from armlet.types import Arm, Bool, Int64

_LABELLED: Final = {
    kind: tuple(
        (name, field.check) for name, field in (entry.fields or {}).items() if field.check in (LABEL, ARMS, ADDED)
    )
    for kind, entry in KINDS.items()
}


def labels_of(event: Event) -> Iterator[Arm]:
    """Yield the arms, or the actions, that an event names; those that might have been played are left out.

    Examples
    --------
    >>> [*labels_of({"kind": "actions", "add": {"labels": ["tea"], "Z": [[2.0]]}, "remove": ["milk"]})]
    ['tea']
    """
    for name, check in _LABELLED[event["kind"]]:
        if name in event:
            value = event[name]["labels"] if check is ADDED else event[name]
            yield from [value] if check is LABEL else value


class Roster:
    """All arms that a log has had so far, each under one index, and which of them may be played."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        if "arms" not in about:
            raise LogError("the log is of actions with features, which have tables in place of arms", 0)
        self.labels: list[Arm] = list(about["arms"])
        self.places: dict[Arm, int] = {label: place for place, label in enumerate(self.labels)}
        self._order = list(range(len(self.labels)))  # as the bandit counts them at this moment
        self._active = {*self._order} - {self.places[label] for label in about.get("retired") or ()}

    def apply(self, event: Event) -> None:
        """Follow an event; those that change no arm are ignored."""
        if (change := KINDS[event["kind"]].roster) is not None:
            change(self, event)

    def add(self, label: Arm, *, is_active: bool = True) -> None:
        """Have an arm, at its old index if it was there before."""
        if label not in self.places:
            self.places[label] = len(self.labels)
            self.labels.append(label)
        if self.places[label] not in self._order:
            self._order.append(self.places[label])
        if is_active:
            self._active.add(self.places[label])

    def retire(self, place: int) -> None:
        """Let an arm not be played."""
        self._active.discard(place)

    def restore(self, place: int) -> None:
        """Let an arm be played again."""
        self._active.add(place)

    def remove(self, place: int) -> None:
        """Have an arm no longer."""
        self._order.remove(place)
        self._active.discard(place)

    def merge(self, event: Event) -> None:
        """Have the arms of another model, too."""
        self._add_all(event, {self.labels[place] for place in self._order})

    def start_over(self, event: Event) -> None:
        """Have the arms of a model, and no others."""
        self._order.clear()
        self._active.clear()
        self._add_all(event, set())

    def _add_all(self, event: Event, here: set[Arm]) -> None:
        header = header_of(event)
        for label in header["arms"]:
            if label not in here:
                self.add(label, is_active=label not in header["retired"])

    def place(self, event: Event) -> int:
        """Return the index of the arm that an event is about."""
        place = self.places.get(event["arm"])
        if place is None or place not in self._order:
            raise LogError(f"event {event['seq']:,} is about arm {event['arm']!r}, which is not there", event["seq"])
        return place

    def active(self) -> Bool:
        """Return which arms may be played now if an event names none."""
        plays = np.zeros(len(self.labels), dtype=np.bool_)
        plays[list(self._active)] = True
        return plays

    @property
    def order(self) -> Int64:
        """The indices of the arms in the order in which the bandit counts them now."""
        return np.array(self._order, dtype=np.int64)


class ArmLabels:
    """Mixed into events: the labels of their arms."""

    @property
    def arms(self: Events) -> tuple[Arm, ...]:
        """All arms that there have been, in the order that columns of an evaluation have. O(events)."""
        events = iter(self)
        roster = Roster(next(events))
        for event in events:
            if event["kind"] in ARM_CHANGES:
                roster.apply(event)
        return tuple(roster.labels)
