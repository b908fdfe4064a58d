"""Policies that run in Python decide with the bits on record: what a change of the house must not change.

Those that ask BLAS for eigenvectors or numpy for exponentials are left out: their last bits are the processor's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from armlet.types import Float64, Policy
from support import digest
from support.policies import REGISTRY, every_policy

RECORD: Final = Path(__file__).parents[1] / "support" / "digests_python.json"
OF_THE_PROCESSOR: Final = ("Newtron", "RealLinExp3", "SCRiBLe", "EXP4", "EXP4P", "Exp3")
STREAM: Final = digest.stream


def in_python() -> list[Policy]:
    return [p for p in every_policy() if p.rule() is None and type(p).__name__ not in OF_THE_PROCESSOR]


def ones_and_zeros() -> tuple[Float64, Float64]:
    """Rewards that every policy takes."""
    X, rewards = STREAM()
    return X, (rewards > 0).astype(float)


@pytest.mark.parametrize("policy", in_python(), ids=repr)
def test_decisions_have_the_bits_on_record(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "stream", ones_and_zeros)
    assert digest.digest(policy) == json.loads(RECORD.read_text())[repr(policy)]


def test_the_record_has_nothing_else() -> None:
    known = {name for name in json.loads(RECORD.read_text()) if name.partition("(")[0] in REGISTRY}
    assert known == {repr(policy) for policy in in_python()}
