"""Seals of logs: what only the holder of the start model can write under a stretch of lines. O(bytes)."""

from __future__ import annotations

import copy
import hashlib
import hmac


class Sealer:
    """Seals lines: a seal is what only the holder of the start model can write under a stretch of a log.

    It is HMAC-SHA-256 of the lines since the seal before, that line included, so that seals hang together, and of the
    line that bears it, as it would be without. The key comes from the start model, which holds the seed and is kept
    apart from the log.

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
        self.restart()

    def restart(self) -> None:
        """Begin a stretch."""
        self._hmac = hmac.new(self._key, digestmod="sha256")

    def add(self, lines: bytes | memoryview) -> None:
        """Take lines."""
        self._hmac.update(lines)

    def with_lines(self, lines: bytes) -> Sealer:
        """Return one that has taken these lines too."""
        other = copy.copy(self)
        other._hmac = self._hmac.copy()
        other.add(lines)
        return other

    def next_stretch(self, line: bytes) -> Sealer:
        """Return one of the stretch that begins with a line."""
        other = copy.copy(self)
        other.restart()
        other.add(line)
        return other

    def seal(self, last: bytes) -> str:
        """Return the seal of the lines of this stretch and of the one that is to bear it, which is not added."""
        sealed = self._hmac.copy()
        sealed.update(last)
        return sealed.hexdigest()[:32]
