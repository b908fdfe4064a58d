"""A durable loop waits for the rewards of the same decisions before and after a restart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armlet
from armlet.stores import Loop, Memory, Store, maintenance
from armlet.types import Arm
from support.loops import Ticks
from support.stores import rebuilt


def waits(loop: Loop) -> dict[Arm, int]:
    model = loop.model()
    return dict(zip(model.arms, model.state.under_way.tolist(), strict=True))


def tally(decisions: list[armlet.Decision]) -> dict[Arm, int]:
    return {arm: sum(d.arm == arm for d in decisions) for arm in ("a", "b")}


def decide(loop: Loop, n: int) -> list[armlet.Decision]:
    return [loop.decide([1.0, i / 8], event=f"e{i}") for i in range(n)]


@pytest.mark.parametrize("seed", range(5))
def test_looks_of_a_tuned_policy_are_replayed_in_order(seed: int) -> None:
    """A look leaves out arms that only wait; once a replay began decisions of later rows before it."""
    rng = np.random.default_rng(seed)
    with Store(Memory()) as store:
        loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.AutoEpsilonGreedy(), seed=seed)
        for i in range(40):
            loop.decide(rng.normal(size=1), event=f"e{i}")
            if i in (12, 20, 28):
                loop.add_arm(f"new {i}")
            if i > 2:
                loop.reward(f"e{i - 2}", float(rng.uniform()))
            before = loop.model().to_bytes()
            assert rebuilt(store).to_bytes() == before


def test_a_window_that_closes_ends_the_wait() -> None:
    ticks = Ticks(1e9)
    with Store(Memory(), wall=ticks, elapsed=ticks) as store:
        loop = store.loop("homepage", arms=["a", "b"], dim=2, seed=3, window=60, default_reward=0.0)
        decisions = decide(loop, 10)
        loop.reward("e3", 1.0)
        assert waits(loop) == tally(decisions)  # it is learned when its window closes
        ticks.now += 61
        assert waits(loop) == tally([])


def decided(store: Store, ticks: Ticks, policy: armlet.types.Policy) -> tuple[Loop, list[armlet.Decision]]:
    """Play 40 steps, of which every fourth is rewarded, and go on long after."""
    loop = store.loop("homepage", arms=["a", "b"], dim=2, seed=3, policy=policy)
    decisions = decide(loop, 40)
    for i in range(0, 40, 4):
        loop.reward(f"e{i}", 0.5)
    ticks.now += 100
    return loop, decisions


@pytest.mark.parametrize("policy", [armlet.OccasionalOptimism(), armlet.LinUCB()], ids=["default", "LinUCB"])
def test_what_is_pruned_is_no_longer_waited_for(policy: armlet.types.Policy, tmp_path: Path) -> None:
    ticks = Ticks(1e9)
    with armlet.open_store(tmp_path / "shop.db", wall=ticks, elapsed=ticks) as store:
        loop, decisions = decided(store, ticks, policy)
        late = loop.decide([1.0, 0.5], event="late")
        kept = [d for i, d in enumerate(decisions) if d.explored and i % 4]
        n_explored = sum(d.explored for d in decisions)
        assert store.prune(1e9 + 50) == 40 - n_explored > 20
        for _ in range(2):  # exactly once
            assert waits(loop) == tally([*kept, late])
            assert store.prune(1e9 + 50) == 0
        gone = next(i for i, d in enumerate(decisions) if i % 4 and not d.explored)
        assert loop.reward(f"e{gone}", 0.5) == "unknown"
        assert waits(loop) == tally([*kept, late])
        found = loop.model()
        assert rebuilt(store).to_bytes() == found.to_bytes()
        assert armlet.audit(loop.log.replayable, loop.log.start).digest == found.digest()
    with armlet.open_store(tmp_path / "shop.db", wall=ticks, elapsed=ticks) as store:
        assert store.loop("homepage").model().to_bytes() == found.to_bytes()


def test_a_prune_that_was_broken_off_goes_on_and_counts_once() -> None:
    """After its first pass decisions are expired and not yet deleted; a reward of one is learned, and counts once."""
    ticks = Ticks(1e9)
    with Store(Memory(), wall=ticks, elapsed=ticks) as store:
        loop, _ = decided(store, ticks, armlet.LinUCB())
        store._writer.maintain(maintenance._prune(loop._runner, int((1e9 + 50) * 1e6)))
        assert waits(loop) == tally([])
        assert loop.reward("e1", 0.5) == "accepted"
        assert waits(loop) == tally([])
        assert loop.model().state.n.sum() == 11
        loop._runner.stale()
        assert waits(loop) == tally([])
        assert armlet.audit(loop.log.replayable, loop.log.start).digest == loop.model().digest()
        assert loop.forget("e2")
        assert waits(loop) == tally([])
        assert store.prune(1e9 + 50) > 20
        assert waits(loop) == tally([])
        assert loop.model().state.n.sum() == 11
