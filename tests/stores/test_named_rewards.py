"""Rewards with a name and a rank: retries are safe however rewards are aggregated, and the truth stays."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import armlet
from armlet.stores import Aggregation, Loop, Memory, Status, Store
from armlet.stores.rewards import MOST_NAMES
from support.loops import Ticks


def make(store: Store, aggregation: Aggregation, window: float | None = None) -> Loop:
    return store.loop(
        "homepage",
        arms=["a"],
        dim=1,
        policy=armlet.LinUCB(units="as given"),
        aggregation=aggregation,
        window=window,
        default_reward=None if window is None else 0.0,
        reward_range=(-4.0, 4.0),
        seed=3,
    )


def learned(loop: Loop) -> float:
    """Return the rewards that a loop of one arm has learned, added up."""
    return float(loop.model().state.b[0, 0])


def test_a_late_retry_of_a_proxy_leaves_the_truth() -> None:
    with Store(Memory()) as store:
        loop = make(store, "last")
        loop.decide([1.0], event="e")
        rewards: list[tuple[float, str, int, Status]] = [
            (0.25, "click", 0, "accepted"),
            (1.0, "paid", 1, "replaced"),
            (0.25, "click", 0, "duplicate"),  # the proxy again
            (0.5, "scroll", 0, "outranked"),  # another proxy
            (1.0, "paid", 1, "duplicate"),
            (0.75, "refund", 1, "replaced"),
            (1.0, "paid", 1, "duplicate"),
        ]
        for value, name, rank, status in rewards:
            assert loop.reward("e", value, name=name, rank=rank) == status
        assert loop.reward("e", 0.5) == "outranked"
        assert learned(loop) == 0.75


def test_a_truth_equal_to_the_proxy_is_the_truth_from_then_on() -> None:
    with Store(Memory()) as store:
        loop = make(store, "last")
        loop.decide([1.0], event="e")
        assert [loop.reward("e", value, rank=rank) for value, rank in ((1.0, 0), (1.0, 1), (0.25, 0))] == [
            "accepted",
            "replaced",
            "outranked",
        ]
        assert learned(loop) == 1.0
        assert [event["kind"] for event in loop.log] == ["start", "decide", "learn"]


def test_a_sum_counts_every_name_once() -> None:
    with Store(Memory()) as store:
        loop = make(store, "sum")
        loop.decide([1.0], event="e")
        names = ["one", "two", "one", None, None, "two", "three"]
        answers = [loop.reward("e", 0.5, name=name) for name in names]
        assert answers == ["accepted", "accepted", "duplicate", "accepted", "accepted", "duplicate", "accepted"]
        assert learned(loop) == 2.5
        assert loop.reward("e", 1.0, name="final", rank=2) == "replaced"
        assert loop.reward("e", 0.5, name="adjusted", rank=2) == "accepted"
        assert loop.reward("e", 0.5, name="four") == "outranked"
        assert learned(loop) == 1.5


@dataclass
class Model:
    """What the words say: of the highest rank told so far the first, the last or the sum counts; a name counts once."""

    aggregation: Aggregation
    counted: list[tuple[float, int]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def tell(self, value: float, name: str | None, rank: int) -> None:
        if name in self.names or rank < self.rank:
            return
        if self.aggregation == "first" and rank == self.rank and self.counted:
            return
        if not -4.0 <= (value + (self.value if self.aggregation == "sum" and rank == self.rank else 0.0)) <= 4.0:
            return
        self.counted.append((value, rank))
        self.names |= {name} - {None}  # type: ignore[arg-type]

    @property
    def rank(self) -> int:
        return max((rank for _, rank in self.counted), default=0)

    @property
    def value(self) -> float:
        values = [value for value, rank in self.counted if rank == self.rank]
        return {"first": values[0], "last": values[-1], "sum": sum(values)}[self.aggregation] if values else 0.0


@pytest.mark.parametrize("aggregation", ["first", "last", "sum"])
@pytest.mark.parametrize("window", [None, 60.0])
def test_what_counts_is_what_the_words_say_after_any_restart(
    aggregation: Aggregation, window: float | None, tmp_path: Path
) -> None:
    """Random stories of a few decisions, every reward told twice, with restarts and a window in between."""
    rng = random.Random(7)
    ticks, path, seen = Ticks(1e9), tmp_path / "shop.db", set()
    models = {f"e{i}": Model(aggregation) for i in range(8)}
    with armlet.open_store(path, wall=ticks, elapsed=ticks) as store:
        loop = make(store, aggregation, window)
        for event in models:
            loop.decide([1.0], event=event)
    for _ in range(5):
        with armlet.open_store(path, wall=ticks, elapsed=ticks) as store:
            loop = store.loop("homepage")
            for event, model in 3 * list(models.items()):
                value, rank = rng.choice([-2.0, -0.5, 0.5, 3.0, 9.0]), rng.choice([0, 0, 1, 2])
                name = rng.choice(["a", "b", "c", "d", "e", "f"])
                first = loop.reward(event, value, name=name, rank=rank)
                seen.add(first)
                again = loop.reward(event, value, name=name, rank=rank)
                assert again == ("duplicate" if first in ("accepted", "replaced", "late", "duplicate") else first)
                model.tell(value, name, rank)
            ticks.now += 25
            if window is None or ticks.now > 1e9 + window:
                assert learned(loop) == sum(model.value for model in models.values())
    with armlet.open_store(path, wall=ticks, elapsed=ticks) as store:
        assert learned(store.loop("homepage")) == sum(model.value for model in models.values())
    assert {"duplicate", "outranked", "out_of_range", "replaced"} <= seen


def test_names_of_a_decision_are_bounded() -> None:
    with Store(Memory()) as store:
        loop = make(store, "sum")
        loop.decide([1.0], event="e")
        for i in range(MOST_NAMES):
            loop.reward("e", 0.0, name=f"{i}")
        with pytest.raises(armlet.ArmletError, match=f"has {MOST_NAMES} rewards with names"):
            loop.reward("e", 1.0, name="one more")
        assert loop.reward("e", 1.0) == "accepted"
        assert learned(loop) == 1.0
