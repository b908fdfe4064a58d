"""The audit of a log: replay it from its start model and compare everything, bit for bit. O(events).

Proved are the fields of every decision, the state at every checkpoint and at the end; that no line was changed,
dropped, added or moved; and, by the seals, that its writer held the start model. What must be sealed is known from the
kind of reader: a log on disk is, a loop is guarded by its store.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.bandit import Bandit
from armlet.cast.model import read_cast
from armlet.errors import InvalidTypeError, LogError
from armlet.kernel import Decision
from armlet.log.log import Log
from armlet.log.reader import Source, read
from armlet.log.replaying import LoggedPast
from armlet.record.block import DECIDE, Block, InBlocks
from armlet.record.events import Events
from armlet.record.faults import InvalidEventError, MissingFileError, NotALogError, explain
from armlet.record.jsonl import carried, encode_checked, encode_event
from armlet.record.kinds import OPTIONAL
from armlet.record.replay import is_unplayable, play
from armlet.record.seals import Sealer
from armlet.record.values import Event
from armlet.report import notebook
from armlet.report.result import Columns, Result, fields_of
from armlet.types import Policy

Status: TypeAlias = Literal["ok", "incomplete", "mismatch"]
Start: TypeAlias = str | os.PathLike[str] | bytes | Bandit | ActionBandit
_UNSEEN: Final = object()
_SINCE: Final = "an event since the last checkpoint was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first event that does not come out as it is written."""

    seq: int
    kind: str
    what: str

    def __str__(self) -> str:
        return f"event {self.seq:,} ({self.kind}): {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audit(Result):
    """What an audit found, as far as it went. It has no `plot`: it is a verdict and four counts."""

    events: int
    decisions: int
    checkpoints: int
    """Checkpoints whose digest and seal came out right."""
    unsealed: int
    """Events after the last of them: proved by replay, but for fields that no replay depends on."""
    digest: str
    """Of the state that the log leads to, or that was reached."""
    mismatch: Mismatch | None
    incomplete: str | None = None
    """What is not proved, though nothing differs: events without a seal, or an end that nobody vouches for."""
    note: str | None = None

    @property
    def status(self) -> Status:
        """The result in a word.

        "ok": everything is as written, and proved. "incomplete": as written, but its end is not proved, as after a
        crash or while it is being written. "mismatch": something differs.
        """
        return "mismatch" if self.mismatch is not None else "incomplete" if self.incomplete is not None else "ok"

    @property
    def ok(self) -> bool:
        """Whether everything came out as it is written, and nothing is left unproved."""
        return self.status == "ok"

    def __str__(self) -> str:
        done = f"{self.events:,} events, {self.decisions:,} decisions, {self.checkpoints:,} checkpoints"
        lines = [f"{done} as written" if self.mismatch is None else f"{self.mismatch}", f"state {self.digest}"]
        if self.mismatch is not None:
            lines.insert(1, f"before it {done} as written")
        elif self.incomplete is not None:
            lines.insert(0, f"incomplete: {self.incomplete}")
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def columns(self) -> Columns:
        """Return it as a table of one row."""
        mismatch = None if self.mismatch is None else str(self.mismatch)
        counts = {name: [getattr(self, name)] for name in ("events", "decisions", "checkpoints", "unsealed", "digest")}
        return {"status": [self.status], **counts, "mismatch": [mismatch], "incomplete": [self.incomplete]}

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        return {"ok": self.ok, "status": self.status, **fields_of(self)}

    def _title(self) -> str:
        return f"Audit: {self.status}"

    def _answer(self) -> str:
        return str(self.mismatch or self.incomplete or "Everything is as it was written, and proved.")

    def _html(self) -> Iterable[str]:
        names = ("events", "decisions", "checkpoints", "unsealed", "digest", "note")
        return [notebook.facts({name: getattr(self, name) for name in names})]


def audit(log: Source, start: Start, *, policy: Policy | None = None, digest: str | None = None) -> Audit:
    """Replay a log from its start model and compare everything, bit for bit.

    Parameters
    ----------
    log
        A path, .jsonl or .parquet, an `armlet.Log`, or `Events`.
    start
        The model that the log starts from: a path, its bytes, or the bandit itself.
    policy
        The policy, if it is not one of Armlet's own.
    digest
        A digest that was noted elsewhere, of the state at a checkpoint or at the end: a log that does not lead to it is
        a mismatch. One that ends with it was not cut, whether it was closed or not.

    Examples
    --------
    >>> import tempfile, pathlib, armlet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.jsonl"
    >>> with armlet.Log(path) as log:
    ...     bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1, log=log)
    ...     for reward in (0.5, 0.25):
    ...         bandit.learn(bandit.decide([1.0]), reward)
    >>> found = armlet.audit(path, log.start_path)
    >>> found.ok, found.decisions, found.digest == bandit.digest()
    (True, 2, True)
    >>> _ = path.write_text(path.read_text().replace('"reward":0.25', '"reward":0.35'))
    >>> print(armlet.audit(path, log.start_path).mismatch)
    event 4 (learn): its check value differs: it was changed, dropped or moved after it was written
    """
    events = log.file() if isinstance(log, Log) else read(log)
    auditor = _Auditor(events, _model_bytes(start), policy, digest)
    mismatch = auditor.run()
    return Audit(
        events=auditor.events,
        decisions=auditor.decisions,
        checkpoints=auditor.checkpoints,
        unsealed=auditor.unsealed,
        digest=auditor.cast.digest(),
        mismatch=mismatch,
        incomplete=auditor.incomplete() if mismatch is None else None,
        note=_unfinished(events),
    )


def _model_bytes(start: Start) -> bytes:
    if isinstance(start, Bandit | ActionBandit):
        return start.to_bytes()
    if isinstance(start, bytes):
        return start
    if not isinstance(start, str | os.PathLike):
        raise InvalidTypeError(f"start is {start!r}; give the path of the start model, its bytes, or a Bandit")
    try:
        return Path(start).read_bytes()
    except OSError as error:
        what = f"{start}, the model that the log starts from, cannot be read: {explain(error)}; give its path"
        raise MissingFileError(what) from error


def _unfinished(events: Events) -> str | None:
    left = getattr(events, "unfinished", 0)
    return f"the last {left:,} bytes are no whole line, as after a crash, and were left out" if left else None


class _Auditor:
    def __init__(self, events: Events, start: bytes, policy: Policy | None, noted: str | None) -> None:
        self.cast = read_cast(start, policy=policy)
        self._past = LoggedPast(getattr(events, "find", None))
        self.events = self.decisions = self.checkpoints = 0
        self._source, self._noted = events, noted
        self._is_sealed = getattr(type(events), "sealed", False) is True
        self._sealer = Sealer(start)
        self._sealed = 0  # events up to the last seal
        self._closed = False  # whether the last event is a checkpoint that closes the log
        self._seen = noted is None  # whether the state that was noted has been reached
        self._crc = 0

    @property
    def unsealed(self) -> int:
        return self.events - self._sealed

    def run(self) -> Mismatch | None:
        try:
            for mismatch in self._play_blocks() if isinstance(self._source, InBlocks) else self._play_events():
                return mismatch
        except LogError as error:
            return self._unreadable(error)
        if not self.events:
            return Mismatch(seq=0, kind="start", what="the log is empty")
        return self._end_differs()

    def _play_events(self) -> Iterator[Mismatch]:
        """Play all events; yield what differs."""
        crc = 0
        for seq, event in enumerate(self._source):
            line, crc = encode_checked(event, seq, crc, "the log")
            yield from self._play_event(line, event)

    def _play_event(self, line: bytes, event: Event, made: Decision | None = None) -> Iterator[Mismatch]:
        if what := self._try(line, event, made):
            yield Mismatch(seq=self.events, kind=event["kind"], what=what)
        self.events += 1
        self.decisions += event["kind"] == "decide"

    def _play_blocks(self) -> Iterator[Mismatch]:
        """Play all events, those that have columns with no Python for each; yield what differs."""
        assert isinstance(self._source, InBlocks)
        for block in self._source.blocks():
            end = -1
            while (begin := end + 1) < len(block):
                end, made = self._past.play_run(self.cast, block, begin)
                self._take_run(block, begin, end)
                if end < len(block):
                    yield from self._play_event(block.line_of(end), block.event_of(end), made)

    def _take_run(self, block: Block, begin: int, end: int) -> None:
        """Take note of events that came out as they are written."""
        if begin < end:
            self._sealer.add(block.lines[block.ends[begin] : block.ends[end]])
            self._crc, self._closed = int(block.crc[end - 1]), False
            self.events += end - begin
            self.decisions += int(np.count_nonzero(block.kind[begin:end] == DECIDE))

    def _unreadable(self, error: LogError) -> Mismatch:
        if isinstance(error, NotALogError | MissingFileError):
            raise error
        if isinstance(error, InvalidEventError):
            return Mismatch(seq=self.events, kind=error.kind, what=error.why)
        return Mismatch(seq=self.events, kind="the file", what=str(error))

    def _end_differs(self) -> Mismatch | None:
        """Compare what is known of the whole: copies of events in columns, and a digest that was noted."""
        try:
            if (check := getattr(self._source, "check_columns", None)) is not None:
                check()
        except InvalidEventError as error:
            return Mismatch(seq=error.at, kind=error.kind, what=error.why)
        if self._seen or self.cast.digest() == self._noted:
            return None
        what = f"it does not lead to state {self._noted}, which was noted: it was cut before, or is another log"
        return Mismatch(seq=self.events, kind="the end", what=what)

    def incomplete(self) -> str | None:
        """Return what is not proved of a log in which nothing differs."""
        if not self._is_sealed:
            return None
        if self.unsealed:
            return f"{self.unsealed:,} events after the last checkpoint are not sealed"
        if getattr(self._source, "unfinished", 0):
            return "it ends in the middle of a line"
        if not self._closed and (self._noted is None or self.cast.digest() != self._noted):
            return "it was not closed, so that it may have been cut after its last checkpoint"
        return None

    def _try(self, line: bytes, event: Event, made: Decision | None) -> str | None:
        try:
            return self._differs(line, event, made)
        except Exception as error:
            if not is_unplayable(error):
                raise
            return f"it cannot be played: {explain(error)}"

    def _differs(self, line: bytes, event: Event, made: Decision | None) -> str | None:
        """Play an event, or take the decision that was made by playing it, and compare."""
        kind = event["kind"]
        self._closed = kind == "checkpoint" and event.get("closed", False)
        if kind == "start" or self.events == 0:
            what = self._start_differs(event)
        elif kind == "checkpoint":
            what = self._checkpoint_differs(event)
        else:
            what = None
        if what is None:
            self._sealer.add(line)
            self._crc = carried(line)
            played = play(self.cast, event, self._past) if made is None else made
            if isinstance(played, Decision | ActionDecision):
                what = _first_difference(event, played.to_dict()) or _cast_differs(event, self._past.of_cast)
        return what

    def _start_differs(self, event: Event) -> str | None:
        if self.events or event["kind"] != "start":
            return "a log has one start, at its beginning"
        here, written = self.cast.digest(), event["digest"]
        return None if here == written else f"the log starts from state {written}, and the start model is in {here}"

    def _checkpoint_differs(self, event: Event) -> str | None:
        here = self.cast.digest()
        if here != event["digest"]:
            return f"the state is {event['digest']} by the log and {here} by replay: {_SINCE}"
        if self._is_sealed:
            bare, _ = encode_event({name: value for name, value in event.items() if name != "seal"}, self._crc)
            if not hmac.compare_digest(self._sealer.seal(bare), event.get("seal", "")):
                return f"its seal is broken: it or {_SINCE}"
            self._sealer.restart()
            self._sealed = event["seq"] + 1
        self.checkpoints += 1
        self._seen = self._seen or here == self._noted
        return None


def _cast_differs(event: Event, of_cast: Mapping[str, Any]) -> str | None:
    for name in ("control", "shadow", "shadows"):
        written, again = event.get(name), of_cast.get(name)
        if written != again:
            return f"{name} is {written!r} by the log and {again!r} by replay"
    return None


def _first_difference(event: Event, played: dict[str, Any]) -> str | None:
    for name, again in played.items():
        written = event.get(name, _UNSEEN)
        if written is _UNSEEN and name not in OPTIONAL:
            return f"{name} is missing, and {again!r} by replay"
        if written is not _UNSEEN and written != again:
            return f"{name} is {written!r} by the log and {again!r} by replay"
    return None
