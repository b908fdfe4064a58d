"""Units on replicas: every store over one database answers a unit alike within an epoch."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

from armlet.policies import OccasionalOptimism
from armlet.stores import Store
from armlet.stores.folds import UnitCounts
from armlet.stores.postgresql import PostgreSQL
from support.postgresql import Server

N = 150  # decisions of each replica


@pytest.mark.parametrize("epoch", [80, timedelta(milliseconds=250)], ids=str)
def test_replicas_agree_on_units(server: Server, schema: str, epoch: Any) -> None:
    """With clocks that differ by some epochs, and a replica that is opened in the middle of one."""
    now, skews = 1_700_000_000.0, (0.0, 0.6, -0.3)

    def opened(skew: float) -> Store:
        store = Store(PostgreSQL(server.conninfo, schema=schema), wall=lambda: now + skew)
        policy = OccasionalOptimism(floor=0.3)
        store.loop("homepage", arms=["a", "b", "c"], dim=2, policy=policy, epoch=epoch, seed=5)
        return store

    def play(store: Store, seed: int) -> list[tuple[Any, ...]]:
        rng, loop, played = random.Random(seed), store.loop("homepage"), []
        for i in range(N):
            unit = rng.randrange(9)
            decision = loop.decide([1.0, unit / 8], event=f"{seed} {i}", unit=f"unit {unit}")
            loop.reward(f"{seed} {i}", rng.randrange(5) / 4)
            played.append((decision.t, decision.unit, decision.epoch, decision.arm))
        return played

    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        stores = [stack.enter_context(opened(skew)) for skew in skews[:2]]
        played = [each for part in pool.map(play, stores, (0, 1)) for each in part]
        stores.append(stack.enter_context(opened(skews[2])))
        played += play(stores[2], 2)
        arms: dict[Any, Any] = {}
        repeats = 0
        for _, unit, number, arm in sorted(played):
            repeats += (unit, number) in arms
            assert arms.setdefault((unit, number), arm) == arm
        loops = [store.loop("homepage") for store in stores]
        assert len({loop.model().to_bytes() for loop in loops}) == 1
        assert [loop.stats().units for loop in loops] == [UnitCounts(3 * N, repeats, 0)] * 3
