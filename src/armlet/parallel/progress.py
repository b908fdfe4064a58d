"""How far a long computation is, and how long it will take: a line that renews itself on a terminal, else lines."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO, TypeAlias

Clock: TypeAlias = Callable[[], float]

BAR = 24  # characters
PAUSE = 5.0  # seconds between two lines where a line cannot be renewed


class Progress(Protocol):
    """Told how much is done of how much; `done` may start above 0 if some was done before."""

    def __call__(self, done: int, total: int) -> None:
        """Take note; called in the thread that waits for results, whenever there are more."""


def silent(done: int, total: int) -> None:
    """Say nothing.

    Examples
    --------
    >>> silent(1, 2)
    """


def reporter(what: str, *, stream: TextIO | None = None, clock: Clock = time.monotonic) -> Progress:
    """Report on a stream, stderr if left out: in place on a terminal, in lines otherwise.

    Examples
    --------
    >>> ticks = iter([0.0, 10.0, 40.0])
    >>> report = reporter("runs", stream=sys.stdout, clock=lambda: next(ticks))
    >>> for done in (0, 5, 20):
    ...     report(done, 20)
    runs: 0 of 20
    runs: 5 of 20, about 30 s left
    runs: 20 of 20 in 40 s
    """
    out = sys.stderr if stream is None else stream
    return _Line(what, out, clock) if out.isatty() else _Lines(what, out, clock)


def spell(seconds: float) -> str:
    """Put a time into words.

    Examples
    --------
    >>> spell(0.24), spell(42), spell(200), spell(7300)
    ('0.2 s', '42 s', '3 min 20 s', '2 h 1 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class _Report:
    """What both kinds know: when it began, with how much, and so how fast it goes."""

    def __init__(self, what: str, stream: TextIO, clock: Clock) -> None:
        self._what, self._stream, self._clock = what, stream, clock
        self._now = 0.0
        self._began: tuple[float, int] | None = None

    def _words(self, done: int, total: int) -> str:
        now = self._now = self._clock()
        if self._began is None:
            self._began = now, done
        start, before = self._began
        words = f"{self._what}: {done} of {total}"
        if done == total:
            return f"{words} in {spell(now - start)}"
        if done == before:  # what was done earlier says nothing of today's speed
            return words
        return f"{words}, about {spell((now - start) / (done - before) * (total - done))} left"


class _Line(_Report):
    def __call__(self, done: int, total: int) -> None:
        filled = BAR * done // max(total, 1)
        line = f"[{'#' * filled:{BAR}}] {self._words(done, total)}"
        width = shutil.get_terminal_size().columns - 1  # a full line would wrap and could not be renewed
        self._stream.write(f"\r{line[:width]:{width}}" + ("\n" if done == total else ""))
        self._stream.flush()


class _Lines(_Report):
    def __init__(self, what: str, stream: TextIO, clock: Clock) -> None:
        super().__init__(what, stream, clock)
        self._told: float | None = None  # when the last line was written

    def __call__(self, done: int, total: int) -> None:
        words = self._words(done, total)
        if self._told is None or done == total or self._now - self._told >= PAUSE:
            self._stream.write(words + "\n")
            self._stream.flush()
            self._told = self._now
