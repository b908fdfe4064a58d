"""The writer of a log: events become lines, numbered, chained by check values, sealed now and then, in a locked file.

The lines themselves are the kernel's (`armlet.kernel.Lines`), so that a change and its record are one call there. The
file holds whole lines at any time. A line costs about what its digits cost; an event that cannot be written leaves
journal and file as they were. O(bytes).
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from time import time_ns
from typing import Any, Final, Literal, TypeAlias

from armlet.disk import LockedFile, give_up_in_children
from armlet.errors import LogError
from armlet.kernel import Lines, commit, json_line
from armlet.log.reader import Stretch
from armlet.record.events import check_fields
from armlet.record.faults import explain
from armlet.record.seals import Sealer
from armlet.record.values import Event
from armlet.types import __version__

Flush: TypeAlias = Literal["block", "line", "disk"]

FROM_KERNEL: Final = frozenset({"decide", "learn"})
"""Kinds of which bandits make all fields, so that they hold what their kind holds; all others are checked."""


class Journal:
    """Takes events and writes them down, in a file that nobody else writes."""

    def __init__(self, path: Path, flush: Flush) -> None:
        self._path, self.name = path, path.name
        self.sealed = 0
        """How many events there were at the last checkpoint, that one included."""
        self._closed_at = -1  # how many there were when it was closed
        try:
            self._file = LockedFile(path, 0o666, append=True)
            self.size = os.fstat(self._file.fd).st_size
            """Bytes in the file when it was opened."""
        except BlockingIOError as error:
            raise LogError(
                f"{path.name} is being written by another bandit or process; give each a log of its own"
            ) from error
        except OSError as error:
            raise LogError(f"{path.name} cannot be opened: {explain(error)}") from error
        self.lines: Final = Lines(path.name, self._file.fd, flush)
        """What the kernel writes to."""
        self._sealing = (Sealer(b""), 0)  # the stretch since the last seal, up to a place in the file
        give_up_in_children(self)

    # ---- how it begins

    def begin(self, start: bytes) -> None:
        """Begin a log, with seals by the bytes of its start model."""
        os.ftruncate(self._file.fd, 0)
        self.lines.follow(0, 0, 0)
        self._sealing = (Sealer(start), 0)

    def follow(self, stretch: Stretch, start: bytes) -> None:
        """Go on after the last lines of a file, which are sealed again with what follows."""
        if stretch.end != self.size:
            self._cut(stretch.end)
        sealer = Sealer(start)
        sealer.add(b"".join(stretch.lines))
        self.lines.follow(stretch.seq, stretch.crc, stretch.end)
        self._sealing = (sealer, stretch.end)
        self.sealed, self._closed_at = stretch.sealed, stretch.seq if stretch.is_closed else -1

    def _cut(self, size: int) -> None:
        """Cut off what a crash left of a line, with a warning."""
        os.ftruncate(self._file.fd, size)
        warnings.warn(
            f"{self.name} ended in the middle of a line, as after a crash: its last {self.size - size:,} bytes were "
            "cut off",
            stacklevel=6,
        )

    def remove(self) -> None:
        """Undo the making of the file: remove it, or leave it empty if it was there before."""
        if self.lines.refusal is None:
            os.ftruncate(self._file.fd, 0)
            self.lines.follow(0, 0, 0)
            self._file.remove()

    # ---- events

    @property
    def refusal(self) -> str | None:
        """Why nothing more is taken, once that is so."""
        return self.lines.refusal

    @property
    def is_closed(self) -> bool:
        """Whether its last line is a checkpoint that was written when it was closed."""
        return self._closed_at == self.lines.seq

    def check(self, kind: str, many: list[Event]) -> None:
        """Refuse events that their kind does not allow."""
        if kind not in FROM_KERNEL:
            for fields in many:
                check_fields(kind, fields, self.name)

    def append(self, kind: str, *many: Event) -> None:
        """Take events of a kind, all or none."""
        self.check(kind, list(many))
        commit(self.lines, [(kind, fields) for fields in many], ())

    def absorb(self) -> None:
        """Take what was written into the seal, so that the kernel need not keep it."""
        while True:  # until nobody else, such as a signal handler, has done so meanwhile
            before = self._sealing
            sealer, place = before
            lines = self.lines.since(place)
            after = (sealer.with_lines(lines), place + len(lines))
            if self.lines.drop(place, len(lines), ((self, "_sealing", after),)):
                return
            if self._sealing is before:
                raise LogError(f"{self.name} has no lines from its last seal on; close it, and open it again")

    def checkpoint(self, digest: Callable[[], str], *, closing: bool = False) -> None:
        """Write down the state, and a seal of all lines since the last one; and whether the log is closed by it."""
        while True:  # until nobody else, such as a signal handler, has written meanwhile
            seq, crc = self.lines.seq, self.lines.crc  # first, so that what comes after this is found by `put`
            self.lines.write()
            self.absorb()
            sealer, place = self._sealing
            head = (seq, "checkpoint", time_ns() // 1000)
            fields: dict[str, Any] = {"digest": digest(), "version": __version__}
            fields |= {"closed": True} if closing else {}
            bare, _ = json_line(*head, fields, crc)
            line, after = json_line(*head, {**fields, "seal": sealer.seal(bare)}, crc)
            now = {
                "_sealing": (sealer.next_stretch(line), place + len(line)),
                "sealed": seq + 1,
                "_closed_at": seq + 1 if closing else -1,
            }
            if self.lines.put(seq, line, after, tuple((self, name, value) for name, value in now.items())):
                return

    def close(self) -> None:
        """Write what waits, if that is still possible, and let go of the file."""
        with contextlib.suppress(LogError):
            self.lines.write()
        self.let_go()

    def let_go(self) -> None:
        """Take nothing more, and close the file."""
        self.lines.refusal = self.lines.refusal or f"{self.name} is closed; open it again"
        self._file.close()

    def forked(self) -> None:
        """Refuse everything, in a forked child: the file is its parent's."""
        self.lines.refusal = f"{self.name} belongs to the process that forked this one; give the child its own log"
