"""Replay and audit are exact for every policy, from JSON lines and from Parquet; whatever is changed is found."""

from __future__ import annotations

from pathlib import Path

import pytest

import armlet
from armlet.core.types import Policy
from armlet.log.parquet.compacting import compact
from armlet.log.reading import read
from support.lives import Life, new_bandit
from support.policies import every_policy

pytestmark = pytest.mark.spread

COMPILED, OTHERS = 1500, 60  # decisions; benchmarks/logged.py plays 20,000 and 500


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_every_policy_is_replayed_bit_for_bit(policy: Policy, tmp_path: Path) -> None:
    bandit, log = new_bandit(policy, tmp_path / "a.jsonl")
    Life(bandit).live(COMPILED if policy.rule() is not None else OTHERS)
    log.close()
    start = tmp_path / "a.start.armlet"
    for path in (tmp_path / "a.jsonl", compact(tmp_path / "a.jsonl")):
        found = armlet.audit(path, start)
        assert found.mismatch is None
        assert found.digest == bandit.digest()
        assert found.unsealed == 0
        again = armlet.load(start)
        armlet.log.replay(read(path), again)
        assert again.to_bytes() == bandit.to_bytes()
