"""What a log is made of: events, each with a number, a kind, a time and fields of its kind.

The first event is the start, which says whose decisions follow. Its `schema` is counted up whenever an older reader
would misread what is written; fields that a reader does not know are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from armlet.core.errors import LogError

FORMAT: Final = "armlet log"
SCHEMA: Final = 1

Event: TypeAlias = dict[str, Any]
"""`seq`, `kind`, `at` and the fields of its kind: plain JSON types."""

HEAD: Final = ("seq", "kind", "at")
DECIDE: Final = (
    "id",
    "t",
    "x",
    "eligible",
    "arm",
    "propensity",
    "explored",
    "rate",
    "given_exploring",
    "smallest",
    "greedy",
    "design",
    "probabilities",
    "tag",
    "event",
)
"""The fields of a decision, in the order in which they are written."""
OPTIONAL: Final = frozenset({"probabilities", "event"})
"""Left out where they are not known: the probabilities of all arms, and what the world calls the decision."""
LEARN: Final = ("id", "reward", "weight")

UNPLAYED: Final = frozenset({"start", "checkpoint", "note"})
"""Kinds of events that change nothing in a bandit."""


@runtime_checkable
class Events(Protocol):
    """What can be read as a log: what the start says, and the events in order, the start first."""

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""

    def __iter__(self) -> Iterator[Event]:
        """Give the events, from the first one on, each time."""


def check_start(event: Event, name: str) -> None:
    """Refuse a first event that starts no log, or one that is newer than this version reads.

    Examples
    --------
    >>> check_start({"seq": 0, "kind": "start", "format": "armlet log", "schema": 9}, "new.jsonl")
    Traceback (most recent call last):
    armlet.core.errors.LogError: new.jsonl is a log of schema 9; this version reads 1: use a newer one
    """
    if event.get("kind") != "start" or event.get("format") != FORMAT:
        raise LogError(f"{name} is no log of Armlet: its first line is no start", 0)
    if event.get("schema") != SCHEMA:
        raise LogError(
            f"{name} is a log of schema {event.get('schema')}; this version reads {SCHEMA}: use a newer one", 0
        )
