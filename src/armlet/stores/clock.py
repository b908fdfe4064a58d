"""The time of a store: it starts no earlier than its newest row and then runs as long as the process does.

Windows neither close at once nor stay open when the wall clock is set: it is read once, at the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SECOND = 1_000_000  # microseconds


class Clock:
    """Microseconds since 1970 that never go back.

    Parameters
    ----------
    newest
        The newest time in the log.
    wall
        Seconds since 1970, asked once.
    elapsed
        Seconds since any moment, never less than before.

    Examples
    --------
    >>> passed = iter([100.0, 101.5])
    >>> clock = Clock(newest=7_000_000, wall=lambda: 3.0, elapsed=lambda: next(passed))
    >>> clock.now()  # the wall says 3, but something has happened at 7
    8500000
    """

    def __init__(
        self, newest: int, wall: Callable[[], float] = time.time, elapsed: Callable[[], float] = time.monotonic
    ) -> None:
        self._start = max(int(wall() * SECOND), newest)
        self._elapsed = elapsed
        self._zero = elapsed()

    def now(self) -> int:
        """Tell the time."""
        return self._start + int((self._elapsed() - self._zero) * SECOND)
