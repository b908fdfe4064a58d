"""How much maintenance may be done in front of those who wait."""

from __future__ import annotations

import time

SLICE = 0.003  # CPU seconds of maintenance in a transaction; what the commit costs comes on top


class Budget:
    """CPU time of the thread that writes; only that thread asks.

    Examples
    --------
    >>> budget = Budget()
    >>> budget.renew()
    >>> budget.is_spent()
    False
    """

    def __init__(self) -> None:
        self._end = 0.0

    def renew(self) -> None:
        """Begin a transaction."""
        self._end = time.thread_time() + SLICE

    def is_spent(self) -> bool:
        """Tell whether those who wait should be served now."""
        return time.thread_time() >= self._end
