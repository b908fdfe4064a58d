"""Mirrors kernel/coins/siphash.hpp and kernel/bindings/epochs/epoch.hpp: what a unit meets within an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from armlet.reference.choice import coins
from armlet.types import Bool, Choice, Float64, Policy, State

WORD: Final = 2**64
START: Final = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def siphash(key: int, data: bytes) -> int:
    """Return SipHash-2-4 of some bytes, with a key of 128 bits and as many of output.

    Examples
    --------
    >>> key = int.from_bytes(bytes(range(16)), "little")
    >>> siphash(key, b"").to_bytes(16, "little").hex()  # the first test vector of the authors
    'a3817f04ba25a8e66df67214c7550293'
    """
    low, high = key % WORD, key // WORD
    v = [start ^ word for start, word in zip(START, (low, high, low, high), strict=True)]
    v[1] ^= 0xEE
    whole = len(data) // 8 * 8
    last = int.from_bytes(data[whole:], "little") | (len(data) % 256) << 56
    for m in [*(int.from_bytes(data[i : i + 8], "little") for i in range(0, whole, 8)), last]:
        v[3] ^= m
        _mix(v, 2)
        v[0] ^= m
    v[2] ^= 0xEE
    _mix(v, 4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    _mix(v, 4)
    return first | (v[0] ^ v[1] ^ v[2] ^ v[3]) << 64


def _mix(v: list[int], rounds: int) -> None:
    for _ in range(rounds):
        _half(v, 0, 1, 13, 2, 3, 16)
        _half(v, 2, 1, 17, 0, 3, 21)


def _half(v: list[int], a: int, b: int, turn_b: int, c: int, d: int, turn_d: int) -> None:
    v[a] = (v[a] + v[b]) % WORD
    v[c] = (v[c] + v[d]) % WORD
    v[b] = _rotated(v[b], turn_b) ^ v[a]
    v[d] = _rotated(v[d], turn_d) ^ v[c]
    v[a] = _rotated(v[a], 32)


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) % WORD


def unit_seed(seed: int, unit: str) -> int:
    """Return the seed of a unit's coins."""
    return siphash(seed, unit.encode())


@dataclass
class Epoch:
    """The state and the step of the first decision of a unit in an epoch: every unit meets them until it is over."""

    number: int
    t: int
    state: State

    def decide(self, policy: Policy, seed: int, unit: str, x: Float64, eligible: Bool) -> Choice:
        """Choose as the first decision would have, with the coins of the unit and the epoch."""
        return policy.decide(self.state, self.t, x, coins(unit_seed(seed, unit), self.number), eligible)
