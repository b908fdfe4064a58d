"""Settings of the literature's policies that would fill the memory are refused at the border."""

from __future__ import annotations

from typing import Any

import pytest

from armlet import Bandit
from armlet_lab.literature import POLICIES
from support.policies import DIM, N_ARMS


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("EXP4", {"gamma": 0.1, "n_experts": 10**9}),
        ("EXP4P", {"horizon": 10**9, "n_experts": 10**8}),
        ("PolicyElimination", {"n_policies": 10**9}),
        ("FeasibleRandomizedUCB", {"max_contexts": 10**9}),
        ("EpochGreedy", {"oracle": "finite", "n_policies": 10**9}),
    ],
)
def test_settings_that_would_fill_the_memory_are_refused_at_the_border(name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"x (n_arms|max_contexts|n_arms x dim) is \d+; keep it within 33554432"):
        Bandit(range(N_ARMS), DIM, policy=POLICIES[name](**settings))
