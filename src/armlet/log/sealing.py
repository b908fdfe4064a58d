"""Seals: what only the holder of the start model can write under a stretch of a log. O(bytes).

A seal is HMAC-SHA-256 of the lines since the seal before, that line included, so that seals hang together, and of the
line that bears it, as it would be without. The key comes from the start model, which holds the seed and is kept apart
from the log.
"""

from __future__ import annotations

import hashlib
import hmac


class Sealer:
    """Takes lines one by one and seals them.

    Parameters
    ----------
    start
        The bytes of the start model.

    Examples
    --------
    >>> one, other = Sealer(b"model"), Sealer(b"model")
    >>> one.add(b"a"), one.add(b"b"), other.add(b"ab")
    (None, None, None)
    >>> one.seal(b"c") == other.seal(b"c")
    True
    """

    def __init__(self, start: bytes) -> None:
        self._key = hashlib.sha256(b"armlet log seal\n" + start).digest()
        self._held: list[bytes] = []
        self.add = self._held.append
        """Take a line."""
        self.restart()

    def restart(self) -> None:
        """Begin a stretch."""
        self._made = hmac.new(self._key, digestmod="sha256")
        self._held.clear()

    def fold(self) -> None:
        """Take in the lines that wait; to be called now and then, so that they do not grow many."""
        self._made.update(b"".join(self._held))
        self._held.clear()

    def seal(self, last: bytes) -> str:
        """Give the seal of the lines of this stretch and of the one that is to bear it, which is not added."""
        self.fold()
        made = self._made.copy()
        made.update(last)
        return made.hexdigest()[:32]
