"""A row that a policy of the literature cannot solve for is not half learned."""

from __future__ import annotations

import numpy as np
import pytest

import armlet
from armlet.types import Float64, Policy
from armlet_lab import literature

pytestmark = pytest.mark.spread


N_ARMS, DIM, STEPS = 4, 3, 24


def contexts(n: int, seed: int = 1) -> Float64:
    return np.random.default_rng(seed).integers(-1, 2, size=(n, DIM)).astype(np.float64) + 0.25


def fair(policy: Policy, step: int) -> float:
    """Return a reward that the policy takes."""
    if policy.rewards == "binary":
        return float(step % 3 == 0)
    low, high = getattr(policy, "reward_range", (-1.0, 2.0))
    return float(low + (high - low) * (step % 5) / 5)


def assert_alike(one: armlet.Bandit, two: armlet.Bandit, call: str = "") -> None:
    facts = [(b.t, b.arms, b.arms.retired, b.state.nbytes, list(b.state.arrays())) for b in (one, two)]
    assert facts[0] == facts[1], call
    first, second = one.state.arrays(), two.state.arrays()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=f"{name} after {call}")


def assert_same(one: armlet.Bandit, two: armlet.Bandit) -> None:
    assert_alike(one, two)
    for step, x in enumerate(contexts(6, seed=2)):
        decisions = [bandit.decide(x) for bandit in (one, two)]
        assert repr(decisions[0]) == repr(decisions[1])
        for bandit, decision in zip((one, two), decisions, strict=True):
            bandit.learn(decision, fair(bandit.policy, step))


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
