"""A row that a policy of the literature cannot solve for is not half learned."""

from __future__ import annotations

import numpy as np
import pytest

import armlet
from armlet.types import Policy
from armlet_lab import literature
from support.alike import DIM, N_ARMS, STEPS, assert_alike, assert_same, contexts, fair

pytestmark = pytest.mark.spread


@pytest.mark.parametrize(
    ("policy", "solver"),
    [
        (literature.RealLinExp3(horizon=100), "solve, inv, eigh"),
        (literature.Newtron(hessian="full"), "eigh"),
        (literature.Confidit(), "inv, eigh"),
        (literature.SCRiBLe(eta=0.1), "svd"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
def test_a_row_that_cannot_be_solved_for_is_not_half_learned(
    policy: Policy, solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("did not converge")

    bandit, twin = (armlet.Bandit(range(N_ARMS), DIM, policy=policy, seed=3) for _ in range(2))
    X = contexts(STEPS + 1)
    for one in (bandit, twin):
        for step, x in enumerate(X[:-1]):
            one.learn(one.decide(x), fair(policy, step))
    decision, same = bandit.decide(X[-1]), twin.decide(X[-1])
    with monkeypatch.context() as patched:
        for name in solver.split(", "):  # the first, and those that it falls back on
            patched.setattr(np.linalg, name, fails)
        with pytest.raises(np.linalg.LinAlgError):
            bandit.learn(decision, fair(policy, 0))
    assert_alike(bandit, twin)
    for one, made in ((bandit, decision), (twin, same)):
        one.learn(made, fair(policy, 0))
    assert_same(bandit, twin)
