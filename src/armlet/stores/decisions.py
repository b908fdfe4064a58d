"""Decisions as rows of a store, and back: what is learned from a row is what would be learned from the decision."""

from __future__ import annotations

from typing import Any

import numpy as np

from armlet.bandit import Bandit
from armlet.core.kernel import Decision
from armlet.core.types import Arm, Float64
from armlet.stores.ledger import Row


def decide_at(bandit: Bandit, t: int, x: Float64, eligible: list[Arm] | None) -> Decision:
    """Decide at a leased step."""
    bandit._advance(t - 1 - bandit.t)
    return bandit.decide(x, eligible=eligible)


def advance_to(bandit: Bandit, t: int) -> None:
    """Set the clock forward."""
    bandit._advance(t - bandit.t)


def fields_of(decision: Decision, eligible: list[Arm] | None) -> dict[str, Any]:
    """Give all of a decision but its context, in plain JSON types."""
    return {
        "id": decision.id,
        "eligible": eligible,
        "arm": decision.arm,
        "propensity": decision.propensity,
        "explored": decision.explored,
        "given_exploring": decision.given_exploring,
        "tag": decision.tag,
    }


def decision_of(row: Row, reward: float | None = None) -> Decision:
    """Give a decision back: pending, or with what was learned from it."""
    f = row.fields
    x = np.frombuffer(row.x or b"", dtype="<f8")
    return Decision.restore(
        f["id"],
        f["arm"],
        f["propensity"],
        f["explored"],
        x,
        reward=reward,
        tag=f["tag"],
        given_exploring=f["given_exploring"],
    )
