"""The two times of a store: what the wall clock says, and a steady time that windows go by.

Rows are stamped with the wall clock as it is, right or wrong. Windows are measured in steady time, which goes on from
the newest row and runs as long as the process does: the wall clock only says how long nobody ran, and is believed if
that was neither less than nothing nor more than `LONGEST_STOP`. So no setting of the clock closes windows or keeps them
open.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

from armlet.stores.ledger import Moment

SECOND = 1_000_000  # microseconds
DAY = 86_400 * SECOND
SLACK = 60 * SECOND  # that the wall clock may be set back between two starts without a word
LONGEST_STOP = 7 * DAY  # that the wall clock is believed to have passed while nobody ran


class ClockWarning(UserWarning):
    """The wall clock says that a store was closed for a negative or a very long time."""


class Clock:
    """The time by the wall clock, and a steady time that never goes back.

    Parameters
    ----------
    newest
        The moment of the newest row; None if there is none.
    wall
        Seconds since 1970.
    elapsed
        Seconds since any moment, never less than before.

    Examples
    --------
    >>> passed = iter([100.0, 101.5])
    >>> newest = Moment(wall=7_000_000, steady=7_000_000)
    >>> clock = Clock(newest, wall=lambda: 3.0, elapsed=lambda: next(passed))
    >>> clock.now()  # the wall says 3, but something has happened at 7
    Moment(wall=3000000, steady=8500000)
    """

    def __init__(
        self,
        newest: Moment | None,
        wall: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall, self._elapsed = wall, elapsed
        now = int(wall() * SECOND)
        self._start = now if newest is None else newest.steady + _stopped(now - newest.wall)
        self._zero = elapsed()

    def now(self) -> Moment:
        """Return the time by both clocks."""
        steady = self._start + int((self._elapsed() - self._zero) * SECOND)
        return Moment(int(self._wall() * SECOND), steady)


def _stopped(passed: int) -> int:
    """Return how long nobody ran, by what the wall clock says has passed; warn if that cannot be believed.

    Examples
    --------
    >>> _stopped(5), _stopped(-5)
    (5, 0)
    """
    if -SLACK <= passed <= LONGEST_STOP:
        return max(passed, 0)
    days, way = abs(passed) / DAY, "after" if passed > 0 else "before"
    told = (
        "if nobody has used the store for so long, all is well; else set the clock" if passed > 0 else "set the clock"
    )
    warnings.warn(
        f"the clock says {days:.1f} days {way} the newest row of the store: {told}. "
        "Open windows go on from where they were; new rows are stamped with what the clock says",
        ClockWarning,
        stacklevel=2,
    )
    return 0
