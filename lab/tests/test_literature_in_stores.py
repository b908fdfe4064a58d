"""Durable loops of policies of the literature."""

from __future__ import annotations

import armlet
from armlet.stores import Memory, Store
from armlet_lab import literature


def in_memory() -> Store:
    return Store(Memory())


def test_policies_with_a_range_of_their_own_need_not_be_told_it() -> None:
    with in_memory() as store:
        loop = store.loop("bits", arms=["a", "b"], dim=1, policy=literature.Banditron(), seed=1)
        name = loop.decide([1.0]).id
        assert [loop.reward(name, value) for value in (0.5, -1.0, 2.0, 1.0)] == [*["out_of_range"] * 3, "accepted"]


def test_a_loop_is_played_again_from_its_log_bit_for_bit() -> None:
    with in_memory() as store:
        loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=literature.Exp3(gamma=0.1), seed=3)
        for t in range(40):
            loop.reward(loop.decide([1.0]).id, float(t % 2))
        bandit = armlet.from_bytes(loop.log.start)
        armlet.log.replay(loop.log, bandit)
        assert bandit.digest() == loop.model().digest()
