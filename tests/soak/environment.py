"""What workers ask and what the oracle expects: contexts and rewards are functions of an event's name.

All of them are small multiples of a quarter, so that sums of their products are exact in any order, and the oracle can
compare with ==.
"""

from __future__ import annotations

import zlib

import armlet
from armlet.stores import Loop, Store

ARMS = ["a", "b", "c"]
DIM = 3


def context(event: str) -> list[float]:
    """Return the context that is asked about under this name."""
    bits = zlib.crc32(event.encode())
    return [1.0, (bits & 7) / 4, (bits >> 3 & 7) / 4]


def reward(event: str, other: int = 0) -> float:
    """Return the reward of an event; `other` makes another one, which the store must not take as well."""
    return ((zlib.crc32(event.encode()) >> 8) + other) % 4 / 4


def loop_of(store: Store) -> Loop:
    """Make the loop, or go on with it."""
    policy = armlet.Algorithm1(p=300)
    return store.loop("soak", arms=ARMS, dim=DIM, policy=policy, reward_range=(0, 1), seed=11)
