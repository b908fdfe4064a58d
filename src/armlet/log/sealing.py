"""Seals: what only the holder of the start model can write under a stretch of a log. O(bytes).

A seal is a keyed BLAKE2b of the lines since the seal before, that line included, so that seals hang together. The key
comes from the start model, which holds the seed and is kept apart from the log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def seal_key(start: bytes) -> bytes:
    """Derive the key from the bytes of the start model."""
    return hashlib.sha256(b"armlet log seal\n" + start).digest()


def seal(key: bytes, lines: Iterable[bytes]) -> str:
    """Seal some lines.

    Examples
    --------
    >>> seal(seal_key(b""), [b"a", b"b"]) == seal(seal_key(b""), [b"ab"])
    True
    """
    made = hashlib.blake2b(key=key, digest_size=16)
    for line in lines:
        made.update(line)
    return made.hexdigest()
