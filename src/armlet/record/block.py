"""Events in columns, as Arrow lays them out: what lies under reading, compaction, audit, replay and evaluation of logs.

Decisions and plain rewards have columns; every other event of a block is a dict among `others`. Columns are read by the
kernel, which takes a line only if it is spelled as Armlet spells it; all others go to the exact reader, `jsonl.decode`.
O(bytes), about 1 us an event.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from armlet.kernel import EventReader
from armlet.record.contradictions import Shape
from armlet.record.events import shape_after
from armlet.record.jsonl import PIECE, check_length, decode
from armlet.record.kinds import ARM_CHANGES
from armlet.record.values import Event
from armlet.types import Arm, Bool, Float64, Int64

Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]

OTHER, DECIDE, LEARN = range(3)
"""Kinds of events in `Block.kind`."""
ENDING: Final = ARM_CHANGES | {"start", "replace"}
"""Kinds of events that end a block: all decisions of a block were made with the same arms and features."""
MOST: Final = 2**14
"""Events of a block."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Consecutive events of a log: n of them, m decisions and r rewards in columns, all others as they are.

    A list of a decision has its values from one end to the next; it is empty where it is null, or not there. Numbers
    that are null are NaN; truths, places in `texts` and epochs -1. What changes arms or features is the last event of
    its block.
    """

    first: int
    """The number of the first event."""
    kind: Int8  # (n,): OTHER, DECIDE or LEARN
    at: Int64  # (n,): microseconds since 1970
    crc: UInt32  # (n,): check values
    ends: Int64  # (n + 1,): where lines end, and begin, in `lines`
    lines: memoryview
    others: list[Event]
    """Those of kind OTHER, in their order."""

    # ---- decisions

    t: Int64  # (m,)
    mark: UInt64  # (m,): the second half of their ids
    X: Float64  # (m, d): zeros where `has_x` is False: not stored
    has_x: Bool
    arm: Int32  # (m,): a place in `labels`
    propensity: Float64
    explored: Int8  # 1, 0, -1
    optimistic: Int8
    greedy: Int8
    exploration_rate: Float64
    exploration_propensity: Float64
    min_exploration_probability: Float64
    design: Int32  # a place in `texts`
    tag: Int64
    unit: Int32
    epoch: Int64
    event: Int32
    eligible: Int32  # places in `labels`
    eligible_ends: Int64  # (m + 1,)
    probabilities: Float64
    probabilities_ends: Int64
    labels: list[Arm]
    """What arms are called; some may not occur."""
    texts: list[str]

    # ---- decisions among actions with features; empty in a log of arms

    Z: Float64  # (m, dz): zeros where `has_z` is False
    has_z: Bool
    actions: Int32  # the hash of their table, in `texts`
    n_actions: Int64
    support: Int32  # places in `labels`
    support_chances: Float64
    support_ends: Int64

    # ---- rewards

    learn_t: Int64  # (r,): the step of their decision
    learn_mark: UInt64
    reward: Float64
    weight: Float64

    def __len__(self) -> int:
        return len(self.kind)

    def places(self, kind: int) -> Int64:
        """Return which events are of a kind."""
        return np.flatnonzero(self.kind == kind)

    def line_of(self, place: int) -> bytes:
        """Return the line of an event."""
        return bytes(self.lines[self.ends[place] : self.ends[place + 1]])

    def event_of(self, place: int) -> Event:
        """Return an event as the exact reader reads it; whoever made its columns has checked the line."""
        if self.kind[place] == OTHER:
            return self.others[int(np.count_nonzero(self.kind[:place] == OTHER))]
        return _read(self.line_of(place))

    def with_lines(self) -> Iterator[tuple[bytes, Event]]:
        """Yield all events with their lines."""
        others = iter(self.others)
        for place, kind in enumerate(self.kind.tolist()):
            line = self.line_of(place)
            yield line, next(others) if kind == OTHER else _read(line)


def _read(line: bytes) -> Event:
    event: Event = json.loads(line)
    del event["crc"]
    return event


@runtime_checkable
class InBlocks(Protocol):
    """A log that can be read in columns."""

    def blocks(self) -> Iterator[Block]:
        """Yield all events in blocks; refuse one that is not as it was written, after those before it."""


class BlockReader:
    """Reads lines into blocks, and checks that each is the one that was written in its place."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._columns = EventReader()
        self._others: list[Event] = []
        self._shape: Shape | None = None

    @property
    def seq(self) -> int:
        """The number of the next event."""
        return self._columns.seq

    def read(self, data: bytes) -> Iterator[Block]:
        """Yield the blocks of whole lines; where one is not as it was written, those before it come first."""
        columns, view, begin, at = self._columns, memoryview(data), 0, 0
        try:
            while (at := columns.read(data, at, MOST)) < len(data):
                ending = None
                if len(columns) < MOST:
                    event, at = self._take_other(data, at)
                    if event["kind"] not in ENDING:
                        continue
                    ending = event
                block, begin = self._block(view[begin:at]), at
                if ending is not None:
                    self._follow(ending)
                yield block
        except Exception:
            if len(columns):
                yield self._block(view[begin:at])
            raise
        if len(columns):
            yield self._block(view[begin:at])

    def _take_other(self, data: bytes, begin: int) -> tuple[Event, int]:
        """Have the exact reader read a line; return its event, and where the line ends."""
        columns, end = self._columns, data.index(b"\n", begin) + 1
        line = data[begin:end]
        if len(line) > PIECE:
            check_length(line, columns.seq, self._name)
        event, crc = decode(line, columns.seq, columns.crc, self._name, self._shape)
        columns.note(event["at"], len(line), crc)
        self._others.append(event)
        return event, end

    def _follow(self, event: Event) -> None:
        """Expect contexts and actions as they are after an event."""
        self._shape = shape_after(event, self._shape)
        if self._shape is not None:
            self._columns.dim = self._shape.dim
            self._columns.action_dim = -1 if self._shape.action_dim is None else self._shape.action_dim

    def _block(self, lines: memoryview) -> Block:
        others, self._others = self._others, []
        first = self._columns.seq - len(self._columns)
        return Block(first=first, lines=lines, others=others, **self._columns.take())
