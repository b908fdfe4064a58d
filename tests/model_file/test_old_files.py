"""Files of schema 1, whose policies had no units and no clock to choose, play on as they did."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import ModelFileError
from armlet.model_file.model import FORMERLY
from armlet.types import Policy
from support.streams import make_stream

STREAM = make_stream(120, 3, 3, seed=1)
POLICIES: list[Policy] = [
    armlet.LinUCB(alpha=0.5, units="as given"),
    armlet.ThompsonSampling(units="as given"),
    armlet.OptimisticEpsilonGreedy(units="as given"),
    armlet.OLSBandit(units="as given"),
    armlet.FixedEpsilon(units="as given"),
    armlet.Greedy(units="as given"),
    armlet.SquareCB(gamma_scale=1.0, ridge="paper", units="as given"),
]


def play(bandit: armlet.Bandit, first: int, last: int) -> list[tuple[Any, float]]:
    out = []
    for x, rewards in zip(STREAM.contexts[first:last], STREAM.rewards[first:last], strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(rewards[int(decision.arm)]))
        out.append((decision.arm, decision.propensity))
    return out


def as_schema_1(data: bytes) -> bytes:
    """Write a file as Armlet did before: without the settings that are newer."""
    _, line, body = data.split(b"\n", 2)
    header = json.loads(line)
    for name in (*FORMERLY, "origin"):
        header["policy"]["settings"].pop(name, None)
    header["schema"] = 1
    del header["checksum"]

    def spelled(value: object) -> bytes:
        return json.dumps(value, sort_keys=True, ensure_ascii=False).encode() + b"\n"

    digest = hashlib.sha256(spelled(header) + body).hexdigest()
    return b"armlet model 1\n" + spelled({**header, "checksum": f"sha256:{digest}"}) + body


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_an_old_file_loads_in_units_as_given_and_goes_on(policy: Policy, tmp_path: Path) -> None:
    bandit = armlet.Bandit(range(3), 3, policy=policy, seed=1)
    play(bandit, 0, 60)
    path = tmp_path / "old.armlet"
    path.write_bytes(as_schema_1(bandit.to_bytes()))
    old = armlet.load(path)
    assert old.policy == policy
    np.testing.assert_array_equal(
        old.predict_expectations(STREAM.contexts), bandit.predict_expectations(STREAM.contexts)
    )
    assert play(old, 60, 120) == play(bandit, 60, 120)


def test_an_old_file_is_refused_for_a_policy_in_free_units(tmp_path: Path) -> None:
    path = tmp_path / "old.armlet"
    path.write_bytes(as_schema_1(armlet.Bandit(["a", "b"], 2, policy=POLICIES[0], seed=1).to_bytes()))
    assert armlet.load(path, policy=POLICIES[0]).policy == POLICIES[0]
    with pytest.raises(ModelFileError, match="'units': 'as given'"):
        armlet.load(path, policy=armlet.LinUCB(alpha=0.5))


def test_a_file_says_which_units(tmp_path: Path) -> None:
    bandit = armlet.Bandit(range(3), 3, policy=armlet.LinUCB(), seed=1)
    play(bandit, 0, 60)
    path = tmp_path / "new.armlet"
    bandit.save(path)
    header = json.loads(path.read_bytes().split(b"\n", 2)[1])
    assert header["schema"] == 2
    assert header["policy"]["settings"]["units"] == "free"
    assert [entry["name"] for entry in header["arrays"]] == ["records", "units"]
    assert play(armlet.load(path), 60, 120) == play(bandit, 60, 120)
