"""A decision of a loop with a hard budget can be asked for again."""

from __future__ import annotations

import armlet
from armlet.stores import Store
from armlet.testing.stores import Place


def test_a_retry_within_a_hard_budget_is_answered(place: Place) -> None:
    with Store(place()) as store:
        loop = store.loop(
            "router",
            arms=["small", "large"],
            dim=1,
            policy=armlet.FixedEpsilon(epsilon=1.0),
            outcomes={"quality": 1.0, "cost": -1.0},
            known={"cost": {"small": 0.25, "large": 30.0}},
            budget=armlet.Budget("cost", total=40.0, horizon=100, hard=True),
            seed=3,
        )
        for i in range(20):
            options = {} if i % 2 else {"eligible": ["small", "large"]}
            made = loop.decide([1.0], event=f"e{i}", **options)  # type: ignore[call-overload]
            assert loop.decide([1.0], event=f"e{i}", **options).id == made.id  # type: ignore[call-overload]
        assert made.eligible == ("small",)
