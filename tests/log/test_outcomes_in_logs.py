"""Logs of bandits with several outcomes: what is written, and that replay gives it back bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import armlet
from armlet.log import replaying
from armlet.log.reader import LogFile
from support.routing import RouterLife, new_router

POLICIES = [armlet.OccasionalOptimism(), armlet.LinUCB(), armlet.ContextualEpsilonGreedy(p=20, units="free")]


def lived(path: Path, policy: Any = None, *, decisions: int = 60, seed: int = 1, **more: Any) -> armlet.Bandit:
    """Return a bandit whose life is in a log, which is closed."""
    with armlet.Log(path) as log:
        bandit = new_router(log, policy, **more)
        RouterLife(bandit, seed).live(decisions)
    return bandit


def replayed(path: Path) -> armlet.Bandit:
    again = armlet.load(path.with_name(f"{path.stem}.start.armlet"))
    replaying.replay(LogFile(path), again)
    return again


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@given(seed=st.integers(0, 2**32))
def test_any_life_is_replayed_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, policy: Any, seed: int) -> None:
    path = tmp_path_factory.mktemp("logs") / "a.jsonl"
    bandit = lived(path, policy, seed=seed)
    again = replayed(path)
    assert again.digest() == bandit.digest()
    assert again.budget == bandit.budget
    found = armlet.audit(path, path.with_name("a.start.armlet"))  # propensities and all else of every decision
    assert found.ok, str(found)
