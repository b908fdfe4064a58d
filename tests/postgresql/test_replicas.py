"""Replicas of a loop: several stores over one database decide and learn as one would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

from armlet.policies import LinUCB
from armlet.stores import Store
from armlet.stores.postgresql import PostgreSQL
from support.loops import Ticks
from support.postgresql import Proxy, Server

N = 60  # decisions of each replica
MOST_TRIPS = 6  # of a batch


@pytest.fixture
def stores(server: Server, schema: str) -> Iterator[list[Store]]:
    opened = [Store(PostgreSQL(server.conninfo, schema=schema)) for _ in range(2)]
    for store in opened:
        store.loop("homepage", arms=["a", "b"], dim=2, policy=LinUCB(units="as given"), seed=5)
    yield opened
    for store in opened:
        store.close()


def play(stores: list[Store], which: int) -> list[tuple[int, str, float, float]]:
    """Decide at one replica and reward at the other; contexts in eighths and rewards in quarters add up exactly."""
    played = []
    here, there = (each.loop("homepage") for each in (stores[which], stores[1 - which]))
    for i in range(N):
        x = (i * 7 + which) % 8 / 8
        decision = here.decide([1.0, x], event=f"{which} {i}")
        again = there.decide([1.0, x], event=f"{which} {i}")
        assert (again.t, again.arm, again.propensity) == (decision.t, decision.arm, decision.propensity)
        reward = i % 5 / 4
        assert there.reward(f"{which} {i}", reward) == "accepted"
        assert here.reward(f"{which} {i}", reward) == "duplicate"
        played.append((decision.t, str(decision.arm), x, reward))
    return played


def test_two_replicas_are_one_loop(stores: list[Store]) -> None:
    with ThreadPoolExecutor(2) as pool:
        played = sorted(each for part in pool.map(lambda which: play(stores, which), (0, 1)) for each in part)
    models = [store.loop("homepage").model() for store in stores]
    assert models[0].to_bytes() == models[1].to_bytes()
    assert [t for t, *_ in played] == list(range(1, 2 * N + 1))
    expected = {arm: np.zeros(3) for arm in ("a", "b")}
    for _, arm, x, reward in played:
        expected[arm] += (1.0, reward, reward * x)
    state = models[0].state
    found = [[state.n[k], *state.b[k]] for k in range(2)]
    assert found == [list(expected[arm]) for arm in ("a", "b")]


def test_a_replica_follows_any_number_of_rewards_in_few_round_trips(proxy: Proxy, schema: str) -> None:
    with ExitStack() as stack:
        opened = [stack.enter_context(Store(PostgreSQL(proxy.conninfo, schema=schema))) for _ in range(3)]
        here, there = (store.loop("homepage", arms=["a", "b"], dim=2, seed=5) for store in opened[:2])
        for loop in (here, there):
            loop.decide_many(np.ones((N, 2)), events=[f"{loop is here} {i}" for i in range(N)])
        late = opened[2].loop("homepage")  # has no decision in memory, but in what it has learned
        for loop in (here, late):
            loop.decide([1.0, 1.0])
        rewards = [(f"{is_here} {i}", 0.5) for is_here in (True, False) for i in range(N)]
        assert set(there.reward_many(rewards)) == {"accepted"}
        for loop in (here, late):
            before = proxy.trips
            loop.decide([1.0, 0.0])
            assert proxy.trips - before <= MOST_TRIPS
        assert len({loop.model().digest() for loop in (here, there, late)}) == 1


def test_a_replica_a_year_ahead_discounts_no_rewards(server: Server, schema: str) -> None:
    """Of two replicas that opened an empty database, the one whose clock is wrong makes one row in the midst."""
    clock = Ticks()
    clock.now = 1.75e9
    walls: list[Callable[[], float]] = [clock, lambda: clock.now + 365 * 86_400.0]
    with ExitStack() as stack:
        ledgers = [PostgreSQL(server.conninfo, schema=schema) for _ in walls]
        opened = [
            stack.enter_context(Store(ledger, wall=wall, elapsed=clock))
            for ledger, wall in zip(ledgers, walls, strict=True)
        ]
        here, there = (
            store.loop("homepage", arms=["a", "b"], dim=2, policy=LinUCB(half_life="7 days"), seed=5)
            for store in opened
        )
        for i in range(61):
            clock.now += 600.0
            loop = there if i == 30 else here
            loop.decide([1.0, i % 8 / 8], event=f"e{i}")
            loop.reward(f"e{i}", 1.0)
        models = [loop.model() for loop in (here, there)]
        assert models[0].to_bytes() == models[1].to_bytes()
        assert models[0].state.n.sum() > 0.9 * 61
        assert [alarm.rule for alarm in here.health()] == ["clock"]
