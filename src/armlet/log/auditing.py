"""Does a log tell what happened? Its start model plays it again, and everything must come out as it is written.

Proved are ids, arms, probabilities and whatever else a decision says, the state at every checkpoint and at the end;
that no line was changed, dropped, added or moved; and, by the seals, that whoever wrote it held the start model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from armlet.bandit import Bandit, from_bytes
from armlet.core.errors import ArmletError, LogError
from armlet.core.types import Policy
from armlet.log.lines import DamagedLineError, encode_event
from armlet.log.reading import Source, read
from armlet.log.replaying import Player, explain
from armlet.log.schema import OPTIONAL, Event, Events
from armlet.log.sealing import Sealer

Start: TypeAlias = str | os.PathLike[str] | bytes | Bandit
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found, as far as it went."""

    events: int
    decisions: int
    checkpoints: int
    """Checkpoints whose digest and seal came out right."""
    unsealed: int
    """Events after the last of them: proved by replay, but for fields that no replay depends on."""
    digest: str
    """Of the state that the log leads to, or that was reached."""
    mismatch: Mismatch | None
    note: str | None = None

    @property
    def ok(self) -> bool:
        """Whether everything came out as it is written."""
        return self.mismatch is None

    def __str__(self) -> str:
        done = f"{self.events:,} events, {self.decisions:,} decisions, {self.checkpoints:,} checkpoints"
        told = [f"{done} as written" if self.ok else f"{self.mismatch}", f"state {self.digest}"]
        if not self.ok:
            told.insert(1, f"before it {done} as written")
        if self.unsealed and self.ok:
            told.append(f"{self.unsealed:,} events after the last checkpoint bear no seal")
        return "\n".join([*told, *([self.note] if self.note else [])])


def audit(log: Source, start: Start, *, policy: Policy | None = None) -> Audit:
    """Replay a log from its start model and compare everything, bit for bit.

    Parameters
    ----------
    log
        A path, .jsonl or .parquet, an `armlet.Log`, or `Events`.
    start
        The model that the log starts from: a path, its bytes, or a Bandit.
    policy
        The policy, if it is not one of Armlet's own.

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
    event 4 (learn): it is not as it was written
    """
    events = read(log)
    auditor = _Auditor(events, _model_bytes(start), policy)
    mismatch = auditor.run()
    return Audit(
        events=auditor.events,
        decisions=auditor.decisions,
        checkpoints=auditor.checkpoints,
        unsealed=auditor.unsealed,
        digest=auditor.player.bandit.digest(),
        mismatch=mismatch,
        note=_unfinished(events),
    )


def _model_bytes(start: Start) -> bytes:
    if isinstance(start, Bandit):
        return start.to_bytes()
    if isinstance(start, bytes):
        return start
    if not isinstance(start, str | os.PathLike):
        raise TypeError(f"start is {start!r}; give the path of the start model, its bytes, or a Bandit")
    return Path(start).read_bytes()


def _unfinished(events: Events) -> str | None:
    left = getattr(events, "unfinished", 0)
    return f"the last {left:,} bytes are no whole line, as after a crash, and were left out" if left else None


class _Auditor:
    def __init__(self, events: Events, start: bytes, policy: Policy | None) -> None:
        self.player = Player(from_bytes(start, policy=policy), getattr(events, "find", None))
        self.events = self.decisions = self.checkpoints = 0
        self._source = events
        self._sealer = Sealer(start)
        self._is_sealed = False
        self._sealed = 0  # events up to the last seal
        self._crc = 0

    @property
    def unsealed(self) -> int:
        return self.events - self._sealed

    def run(self) -> Mismatch | None:
        """Play until something differs."""
        for event in self._read():
            if isinstance(event, Mismatch):
                return event
            try:
                what = self._differs(event)
            except (ArmletError, ValueError, TypeError, KeyError) as error:
                what = f"it cannot be played: {explain(error)}"
            if what:
                return Mismatch(seq=self.events, kind=str(event.get("kind")), what=what)
            self.events += 1
            self.decisions += event["kind"] == "decide"
            if not self.events & 1023:
                self._sealer.fold()
        return None if self.events else Mismatch(seq=0, kind="start", what="the log is empty")

    def _read(self) -> Iterator[Event | Mismatch]:
        try:
            yield from self._source
        except DamagedLineError as error:
            yield Mismatch(seq=self.events, kind=error.kind, what=error.why)
        except LogError as error:
            if error.seq is None:
                raise
            yield Mismatch(seq=self.events, kind="start", what=str(error))

    def _differs(self, event: Event) -> str | None:
        if event["seq"] != self.events:
            return f"its number should be {self.events:,}"
        if event["kind"] == "start" or self.events == 0:
            return self._start_differs(event)
        line, crc = encode_event(event, self._crc)
        if event["kind"] == "checkpoint" and (what := self._checkpoint_differs(event)):
            return what
        self._sealer.add(line)
        self._crc = crc
        decision = self.player.play(event)
        if decision is None:
            return None
        return _first_difference(event, decision.to_dict())

    def _start_differs(self, event: Event) -> str | None:
        if self.events or event["kind"] != "start":
            return "a log has one start, at its beginning"
        self._is_sealed = "start_model" in event  # else it is kept by something that guards it in its own way
        line, self._crc = encode_event(event, 0)
        self._sealer.add(line)
        here, written = self.player.bandit.digest(), event["digest"]
        return None if here == written else f"the log starts from state {written}, and the start model is in {here}"

    def _checkpoint_differs(self, event: Event) -> str | None:
        here = self.player.bandit.digest()
        if here != event["digest"]:
            return f"the state is {event['digest']} by the log and {here} by replay: {_SINCE}"
        if self._is_sealed:
            bare, _ = encode_event({name: value for name, value in event.items() if name != "seal"}, self._crc)
            if self._sealer.seal(bare) != event["seal"]:
                return f"its seal is broken: it or {_SINCE}"
            self._sealer.restart()
            self._sealed = event["seq"] + 1
        self.checkpoints += 1
        return None


def _first_difference(event: Event, played: dict[str, Any]) -> str | None:
    for name, again in played.items():
        written = event.get(name, _UNSEEN)
        if written is _UNSEEN and name not in OPTIONAL:
            return f"{name} is missing, and {again!r} by replay"
        if written is not _UNSEEN and written != again:
            return f"{name} is {written!r} by the log and {again!r} by replay"
    return None
