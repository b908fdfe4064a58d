"""Details and comparisons of loops in a database: as over any ledger, and the same in every replica."""

from __future__ import annotations

import armlet
from armlet.stores import Control, Store
from armlet.testing.stores import Place
from stores.test_comparisons import (
    test_live_sums_are_those_of_the_rows_and_of_a_loop_opened_again as test_live_sums_are_those_of_the_rows,
)
from stores.test_loop_details import (
    test_details_are_the_same_from_memory_and_from_the_ledger as test_details_are_the_same_from_memory_and_database,
)
from support.loops import context, reward

__all__ = ["test_details_are_the_same_from_memory_and_database", "test_live_sums_are_those_of_the_rows"]


def test_replicas_that_take_turns_say_the_same(place: Place) -> None:
    with Store(place()) as first, Store(place()) as second:
        options = {"policy": armlet.FixedEpsilon(epsilon=0.3), "control": Control(arm="b", share=0.3), "seed": 3}
        loops = [first.loop("home", arms=["a", "b", "c"], dim=2, **options), second.loop("home")]  # type: ignore[arg-type]
        for i in range(120):
            loops[i % 3 % 2].decide(context(i, 2), event=f"e{i}")
            loops[i % 2].reward(f"e{i}", reward(i))
            if i == 60:
                loops[1].change(reward_range=(-2.0, 2.0))
        found = [loop.details().to_dict() for loop in loops]
        sums = [loop._runner.tally.comparisons.state() for loop in loops]
    for each in found:
        del each["at"], each["seconds_idle"], each["rows_since_snapshot"]
    assert sums[0] == sums[1]
    assert found[0] == found[1]
    assert [gain["rows"] for gain in found[0]["gains"]][1] == 59
