"""Randomness by word: every place that draws says what for, and no two places share a stream.

A stream is a function of the seed, of where it is asked for, of a word and of the numbers or names behind it: the same
in any process, on any machine, in any order. What is asked for is spelled out whole for numpy's `SeedSequence`, not
hashed first, so two that differ anywhere cannot meet on the way there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import check_seed


@dataclass(frozen=True, slots=True)
class Seeds:
    """All the randomness of one place, to be handed to what draws; frozen and small, so tasks can carry it.

    Parameters
    ----------
    root
        The seed that a user gave.
    place
        Who asks, such as the name of an experiment: two places may use the same word.

    Examples
    --------
    >>> seeds = Seeds(7, "fig-a")
    >>> bool(seeds.rng("worlds", 3).random() == Seeds(7, "fig-a").rng("worlds", 3).random())
    True
    >>> len({seeds.seed("worlds", 3), seeds.seed("worlds", 4), seeds.seed("runs", 3), Seeds(7).seed("worlds", 3)})
    4
    """

    root: int
    place: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", check_seed(self.root))

    def rng(self, word: str, *which: int | str) -> np.random.Generator:
        """Return the generator of a word, and of the number or name of what is drawn."""
        return np.random.default_rng(self._sequence(word, which))

    def seed(self, word: str, *which: int | str) -> int:
        """Return 64 bits instead, for what takes a seed; a word is asked for one or the other, not both."""
        return int(self._sequence(word, which).generate_state(1, np.uint64)[0])

    def _sequence(self, word: str, which: tuple[int | str, ...]) -> np.random.SeedSequence:
        spelled = [part for each in (self.place, word, *which) for part in _spell(each)]
        return np.random.SeedSequence(self.root, spawn_key=spelled)


def _spell(part: int | str) -> Iterator[int]:
    """Write a name or a number in words of 32 bits that say where they end: no two lists of them are spelled alike."""
    if isinstance(part, str):
        letters = part.encode()
        yield 1 + len(letters)
        for start in range(0, len(letters), 4):
            yield int.from_bytes(letters[start : start + 4], "little")
        return
    if not 0 <= part < 2**64:
        raise InvalidValueError(f"a stream is numbered {part}; give a number from 0 to 2^64 - 1, or a name")
    yield 0
    yield from (int(part) & 0xFFFFFFFF, int(part) >> 32)
