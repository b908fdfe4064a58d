"""The log of a running bandit: every call that changes it, appended to a file as it happens.

A decision costs one line of JSON, a reward a shorter one. Every `CHECKPOINT` events there is a checkpoint: a digest of
the bandit's state, and a seal of the lines since the last one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, get_args

from armlet.core.errors import LogError
from armlet.core.kernel import json_line
from armlet.core.version import __version__
from armlet.log.reading import LogFile, read
from armlet.log.schema import FORMAT, SCHEMA, Event, Events
from armlet.log.sealing import Sealer
from armlet.log.sink import Flush, Sink
from armlet.log.tail import last_stretch

if TYPE_CHECKING:
    from armlet.core.kernel import Decision, Decisions

CHECKPOINT: Final = 1000  # events from one digest of the state to the next
FOLD: Final = 1023  # lines that wait for their seal, at most: many at once cost less than one by one


class Log:
    """Everything that happens to a bandit, in a file: `armlet.Bandit(..., log=armlet.Log("decisions.jsonl"))`.

    The file holds no seed. The model that the bandit started from, which does, is written beside it, readable by its
    owner alone: `start_path`. Close the log, or use it in a `with` block, so that its last state is written down.

    Parameters
    ----------
    path
        Of a file of JSON lines, made if it is not there. A log that is there is continued, by the bandit in the state
        in which it ends. To be read only, it may also be a compacted log, .parquet.
    flush
        "block": lines go to the system by blocks, and the last ones are lost if the process is killed. "line": every
        call returns after its line is with the system. "disk": after it is on the disk.

    Examples
    --------
    >>> import tempfile, pathlib, armlet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.jsonl"
    >>> with armlet.Log(path) as log:
    ...     bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1, log=log)
    ...     bandit.learn(bandit.decide([1.0]), 0.5)
    >>> [event["kind"] for event in armlet.Log(path)]
    ['start', 'decide', 'learn', 'checkpoint']
    """

    def __init__(self, path: str | os.PathLike[str], *, flush: Flush = "block") -> None:
        if flush not in get_args(Flush):
            raise ValueError(f"flush is {flush!r}; choose one of {', '.join(map(repr, get_args(Flush)))}")
        self.path = Path(path)
        self._flush = flush
        self._lock = threading.Lock()
        self._sink: Sink | None = None
        self._put: Callable[[bytes], None] = self._refuse
        self._digest: Callable[[], str] | None = None
        self._replayed: tuple[int, str] | None = None  # so many events, and the digest of the state that they lead to
        self._sealer = Sealer(b"")
        self._hold = self._sealer.add
        self._seq = self._crc = self._sealed = 0
        self._due = CHECKPOINT  # the number of events at which a checkpoint is

    # ---- reading

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def start_path(self) -> Path:
        """Where the model is that the log starts from, seed included: keep it private."""
        return start_beside(self.path)

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""
        return self._events().about

    def __iter__(self) -> Iterator[Event]:
        """Give the events, those that are not with the system yet included."""
        return iter(self._events())

    def _events(self) -> Events:
        if self._sink is not None:
            self.flush()
        return read(self.path)

    # ---- what a bandit calls

    def open(self, start: bytes, about: Mapping[str, Any], digest: Callable[[], str] | None = None) -> None:
        """Begin the log of a bandit, or continue it if the bandit is in the state in which the log ends.

        Parameters
        ----------
        start
            The bandit as bytes.
        about
            Arms, features, policy and the like, and the `digest` of its state.
        digest
            Gives the digest of the state at any later time.
        """
        with self._lock:
            if self._sink is not None:
                raise LogError(f"{self.name} is the log of another bandit already; give each a log of its own")
            if self.path.suffix == ".parquet":
                raise LogError(
                    f"{self.name} is a compacted log, which is for reading; begin a new one, such as log.jsonl"
                )
            self._sink = sink = Sink(self.path, self._flush)
            self._put = sink.put
            try:
                if sink.size:
                    self._continue(sink, about)
                else:
                    self._begin(start, about)
            except BaseException:
                sink.close()
                self._sink, self._put = None, self._refuse
                raise
            self._digest = digest
            self._finish = weakref.finalize(self, sink.close)

    def expect(self, events: int, digest: str) -> None:
        """Take it that so many events lead to a state, as a replay has found; `open` need not replay them again."""
        self._replayed = (events, digest)

    def _begin(self, start: bytes, about: Mapping[str, Any]) -> None:
        write_privately(self.start_path, start)
        self._seal_by(start)
        fields = {"format": FORMAT, "schema": SCHEMA, **about, "start_model": hashlib.sha256(start).hexdigest()}
        try:
            self._append("start", fields)
            self._drain()
        except BaseException:
            self.start_path.unlink()
            self.path.unlink()
            raise

    def _continue(self, sink: Sink, about: Mapping[str, Any]) -> None:
        if not self.start_path.exists():
            raise LogError(f"{self.start_path.name}, which {self.name} starts from, is missing; bring it back")
        stretch = last_stretch(self.path)
        expected = stretch.digest or self._state_after(stretch.seq)
        if about["digest"] != expected:
            raise LogError(
                f"{self.name} ends in another state than this bandit's; continue it with armlet.log.resume, or begin a "
                "new log"
            )
        if stretch.end != sink.size:
            sink.cut(stretch.end)
        self._seal_by(self.start_path.read_bytes())
        for line in stretch.lines:
            self._sealer.add(line)
        self._seq, self._crc, self._sealed = stretch.seq, stretch.crc, stretch.sealed
        self._due = self._sealed + CHECKPOINT
        if stretch.digest is None:
            self._write_checkpoint(expected)

    def _state_after(self, events: int) -> str:
        if self._replayed is not None and self._replayed[0] == events:
            return self._replayed[1]
        from armlet.bandit import load
        from armlet.log.replaying import replay  # for those who audit and resume

        bandit = load(self.start_path)
        replay(LogFile(self.path), bandit)
        return bandit.digest()

    def decided(self, decision: Decision) -> None:
        """Append a decision."""
        with self._lock:
            self._append("decide", decision.to_dict())
            if self._seq >= self._due:
                self._checkpoint()

    def decided_many(self, decisions: Decisions) -> None:
        """Append the decisions of a batch, all or none."""
        with self._lock:
            self._append_all("decide", [decision.to_dict() for decision in decisions])
            if self._seq >= self._due:
                self._checkpoint()

    def happened(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Append what else changes a bandit."""
        with self._lock:
            self._append(kind, dict(fields))

    def happened_many(self, kind: str, many: Sequence[Mapping[str, Any]]) -> None:
        """Append several events of a kind, all or none."""
        with self._lock:
            self._append_all(kind, [dict(fields) for fields in many])

    # ---- what a user may call

    def note(self, decision: Decision | str, **fields: object) -> None:
        """Add what was learned about a decision beside its reward; it changes nothing in the bandit.

        Parameters
        ----------
        decision
            A decision or its id.
        fields
            Such as `outcomes={"latency": 0.2}`, `source="checkout"`, `unit="user 17"`, `epoch=3`: plain JSON types.
        """
        with self._lock:
            self._append("note", {"id": decision if isinstance(decision, str) else decision.id, **fields})

    def flush(self) -> None:
        """Give the system all lines that wait."""
        with self._lock:
            self._drain()

    def sync(self) -> None:
        """Have all lines on the disk."""
        with self._lock:
            if self._sink is not None:
                self._sink.sync()

    def close(self) -> None:
        """Write the last state down and let go of the file; the bandit refuses to go on after that."""
        with self._lock:
            if self._sink is None:
                return
            if self._digest is not None and self._seq > self._sealed:
                self._write_checkpoint(self._digest())
            self._sink.drain()
            self._finish()
            self._digest = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Log({str(self.path)!r}, flush={self._flush!r})"

    # ---- lines

    def _append(self, kind: str, fields: Event) -> None:
        seq = self._seq
        line, crc = json_line(seq, kind, time_ns() // 1000, fields, self._crc)
        self._put(line)
        self._hold(line)
        self._seq, self._crc = seq + 1, crc
        if not seq & FOLD:
            self._sealer.fold()

    def _append_all(self, kind: str, many: list[Event]) -> None:
        lines, crc, at = [], self._crc, time_ns() // 1000
        for seq, fields in enumerate(many, self._seq):
            line, crc = json_line(seq, kind, at, fields, crc)
            lines.append(line)
        self._put(b"".join(lines))
        for line in lines:
            self._hold(line)
        self._sealer.fold()
        self._seq, self._crc = self._seq + len(lines), crc

    def _checkpoint(self) -> None:
        if self._digest is None:
            return
        with contextlib.suppress(LogError):  # the event before it is logged: the next one brings it, or the error
            self._write_checkpoint(self._digest())

    def _write_checkpoint(self, digest: str) -> None:
        head = (self._seq, "checkpoint", time_ns() // 1000)
        fields = {"digest": digest, "version": __version__}
        bare, _ = json_line(*head, fields, self._crc)
        line, crc = json_line(*head, {**fields, "seal": self._sealer.seal(bare)}, self._crc)
        self._put(line)
        self._sealer.restart()
        self._sealer.add(line)
        self._seq = self._sealed = self._seq + 1
        self._crc, self._due = crc, self._seq + CHECKPOINT

    def _seal_by(self, start: bytes) -> None:
        self._sealer = Sealer(start)
        self._hold = self._sealer.add

    def _drain(self) -> None:
        if self._sink is not None:
            self._sink.drain()

    def _refuse(self, _: bytes) -> None:
        raise LogError(f"{self.name} has no bandit yet; give it to one: armlet.Bandit(..., log=log)")


def start_beside(path: Path) -> Path:
    """Say where the start model of a log is: beside it, with the ending .start.armlet.

    Examples
    --------
    >>> start_beside(Path("decisions.jsonl")).name
    'decisions.start.armlet'
    """
    return path.with_name(f"{path.stem}.start.armlet")


def write_privately(path: Path, data: bytes) -> None:
    """Write a new file that only its owner may read; refuse to write over one."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise LogError(f"{path.name} is there but its log is not; move it away, or bring the log back") from None
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)
