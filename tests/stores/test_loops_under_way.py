"""A durable loop waits for the rewards of the same decisions before and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

import armlet
from armlet.stores import Loop, Memory, Store
from armlet.stores.runner import rebuild
from armlet.types import Arm


class Ticks:
    now = 1e9

    def __call__(self) -> float:
        return self.now


def waits(loop: Loop) -> dict[Arm, int]:
    model = loop.model()
    return dict(zip(model.arms, model.state.under_way.tolist(), strict=True))


def tally(decisions: list[armlet.Decision]) -> dict[Arm, int]:
    return {arm: sum(d.arm == arm for d in decisions) for arm in ("a", "b")}


def decide(loop: Loop, n: int) -> list[armlet.Decision]:
    return [loop.decide([1.0, i / 8], event=f"e{i}") for i in range(n)]


@pytest.mark.parametrize("ending", ["closed", "crashed"])
def test_a_loop_that_is_opened_again_waits_for_the_same_rewards(ending: str, tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage", arms=["a", "b"], dim=2, seed=3)
        decisions = decide(loop, 40)
        for i in range(0, 40, 4):
            loop.reward(f"e{i}", 0.5)
        loop.forget("e1")  # before its reward
        loop.forget("e4")  # after it
        pending = [d for i, d in enumerate(decisions) if i % 4 and i != 1]
        assert waits(loop) == tally(pending)
        if ending == "crashed":  # made again from the rows since the last snapshot
            loop._runner.stale()
            assert waits(loop) == tally(pending)
        again = loop.decide([1.0, 0.5], event="again")
        assert waits(loop) == tally([*pending, again])
    with armlet.open_store(tmp_path / "shop.db") as store:
        loop = store.loop("homepage")
        assert waits(loop) == tally([*pending, again])
        rebuilt = store._writer.do(lambda tx, _: rebuild(tx, tx.find("homepage")))  # type: ignore[arg-type]
        assert rebuilt.to_bytes() == loop.model().to_bytes()
        assert armlet.audit(loop.log.replayable, loop.log.start).digest == loop.model().digest()


def test_a_window_that_closes_ends_the_wait() -> None:
    ticks = Ticks()
    with Store(Memory(), wall=ticks, elapsed=ticks) as store:
        loop = store.loop("homepage", arms=["a", "b"], dim=2, seed=3, window=60, default_reward=0.0)
        decisions = decide(loop, 10)
        loop.reward("e3", 1.0)
        assert waits(loop) == tally(decisions)  # it is learned when its window closes
        ticks.now += 61
        assert waits(loop) == tally([])
