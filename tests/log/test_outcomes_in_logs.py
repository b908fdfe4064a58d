"""Logs of bandits with several outcomes: what is written, and that replay gives it back bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armlet
from armlet.errors import InvalidValueError
from armlet.log import replaying
from armlet.log.reader import LogFile
from support.lives import RouterLife, new_router

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


@given(seed=st.integers(0, 2**32))
def test_decisions_that_are_no_longer_in_memory_are_found_with_their_parts(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    path = tmp_path_factory.mktemp("logs") / "a.jsonl"
    bandit = lived(path, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replaying, "RECENT", 4)
        assert replayed(path).digest() == bandit.digest()


def test_a_correction_says_all_that_the_decision_has(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "a.jsonl") as log:
        bandit = new_router(log)
        decision = bandit.decide([1.0, 0.5, 0.0])
        bandit.learn(decision, {"cost": 0.25})
        bandit.learn(decision, {"quality": 0.5})
        bandit.correct(decision, {"quality": 0.5}, {"quality": 0.75})
    event = next(event for event in LogFile(log.path) if event["kind"] == "correct")
    assert event["old_reward"] == {"quality": 0.5, "cost": 0.25}
    assert event["new_reward"] == {"quality": 0.75, "cost": 0.25}


FORMS: dict[str, Any] = {
    "by name": lambda row, reward: {**row, "reward": {name: [part] for name, part in reward.items()}},
    "pandas": lambda row, reward: pd.DataFrame({**row, **{f"reward_{name}": [part] for name, part in reward.items()}}),
    "with prices": lambda row, reward: {
        **row,
        "reward_delay": [1.0],
        **{f"reward_{name}": [part] for name, part in reward.items()},
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_decisions_with_outcomes_is_learned_as_they_were(form: str) -> None:
    one, other = new_router(epoch=None, budget=None), new_router(epoch=None, budget=None)
    for _ in range(20):
        decision = one.decide([1.0, 0.5, 0.0])
        one.learn(decision, {"quality": 0.5, "cost": 0.1 * decision.t})
        told = decision.to_dict()
        row = {name: [told[name]] for name in ("t", "x", "arm", "propensity", "explored", "tag", "weight")}
        other.partial_fit(FORMS[form](row, told["reward"]))
    other.replace(t=one.t)
    assert other.digest() == one.digest()


def test_a_table_that_replaces_some_outcomes_of_a_row_is_refused() -> None:
    row = {"t": [1], "x": [[1.0, 0.5, 0.0]], "arm": ["small"], "propensity": [0.5], "explored": [True]}
    reward = {"quality": [1.0], "cost": [2.0]}
    bandit = new_router()
    before = bandit.digest()
    with pytest.raises(InvalidValueError, match="replaces has some outcomes of row 0 and not others"):
        bandit.partial_fit({**row, "reward": reward, "replaces": {"quality": [0.5], "cost": [None]}})
    with pytest.raises(InvalidValueError, match="reward has no 'cost'; give a column for each of"):
        bandit.partial_fit({**row, "reward_quality": [1.0]})
    assert bandit.digest() == before
