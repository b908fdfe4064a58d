"""Which arms there are while a log is read: they come, rest, return and go. O(K) an event that changes them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from armlet.errors import LogError
from armlet.log.schema import Event
from armlet.model_file.encoding import decode_model
from armlet.types import Arm, Bool, Int64

CHANGES: Final = frozenset({"add_arm", "retire_arm", "restore_arm", "remove_arm", "merge"})
"""Kinds of events that change which arms there are."""


class Roster:
    """All arms that a log has had so far, each under one index, and which of them may be played.

    Parameters
    ----------
    about
        The start of the log.

    Examples
    --------
    >>> roster = Roster({"arms": ["a", "b"], "retired": ["b"]})
    >>> roster.happen({"kind": "add_arm", "arm": "c"})
    >>> roster.labels, roster.active().tolist()
    (['a', 'b', 'c'], [True, False, True])
    """

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.labels: list[Arm] = list(about["arms"])
        self.places: dict[Arm, int] = {label: place for place, label in enumerate(self.labels)}
        self._order = list(range(len(self.labels)))  # as the bandit counts them at this moment
        self._plays = {self.places[label] for label in self.labels} - {
            self.places[label] for label in about.get("retired") or ()
        }

    def happen(self, event: Event) -> None:
        """Take note of an event, of any kind."""
        match event["kind"]:
            case "add_arm":
                self._add(event["arm"], plays=True)
            case "retire_arm":
                self._plays.discard(self._place(event))
            case "restore_arm":
                self._plays.add(self._place(event))
            case "remove_arm":
                place = self._place(event)
                self._order.remove(place)
                self._plays.discard(place)
            case "merge":
                self._merge(event)

    def _place(self, event: Event) -> int:
        place = self.places.get(event["arm"])
        if place is None or place not in self._order:
            raise LogError(f"event {event['seq']:,} is about arm {event['arm']!r}, which is not there", event["seq"])
        return place

    def _add(self, label: Arm, *, plays: bool) -> None:
        if label not in self.places:
            self.places[label] = len(self.labels)
            self.labels.append(label)
        if self.places[label] not in self._order:
            self._order.append(self.places[label])
        if plays:
            self._plays.add(self.places[label])

    def _merge(self, event: Event) -> None:
        header: Any = decode_model(base64.b64decode(event["model"]))[0]
        here = {self.labels[place] for place in self._order}
        for label in header["arms"]:
            if label not in here:
                self._add(label, plays=label not in header["retired"])

    def active(self) -> Bool:
        """Say of every arm whether it may be played now where nothing else is said."""
        plays = np.zeros(len(self.labels), dtype=np.bool_)
        plays[list(self._plays)] = True
        return plays

    @property
    def order(self) -> Int64:
        """The indices of the arms in the order in which the bandit counts them now."""
        return np.array(self._order, dtype=np.int64)
