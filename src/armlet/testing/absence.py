"""Arms that do not play: retired ones, and those that are never eligible.

They stay in the state, so a policy that counts, compares or waits for all of its arms can be led astray by those that
are not there. The measure is the policy itself, where these arms never existed: what it finds there, it must find here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armlet.bandit import Bandit
from armlet.testing.plays import new_bandit, require
from armlet.types import Float64, Policy

STEPS = 1000
RETIRE_AT, LOOK_FROM = 120, 700  # the arm plays before the first, and the share of the best is taken after the second
NOISE = 0.06  # 2 sqrt(1 / (4 * 300))
ABSENT = 0
MANY = 40  # more arms than a tag has bits


def _world(policy: Policy, n_arms: int, dim: int) -> tuple[Float64, Float64]:
    """Two contexts. The absent arm pays most; one of the others pays a quarter of the range, the rest nothing.

    All but the absent one pay less than the middle of the range, so that an arm of which nothing is known, or which
    counts as one that pays the middle, or 0, looks better than the best that can be played.
    """
    rng = np.random.default_rng(29)
    X = np.zeros((STEPS, dim))
    X[:, 0], X[:, -1] = 0.7, 0.7 * rng.choice((-1.0, 1.0), size=STEPS)
    levels = np.zeros(n_arms)
    levels[ABSENT], levels[_best(n_arms)] = 0.9, 0.7 if policy.rewards == "binary" else 0.25
    u = rng.random((STEPS, n_arms))
    if policy.rewards == "binary":
        return X, (u < levels).astype(np.float64)
    low, high = getattr(policy, "reward_range", (-1.0, 1.0))
    return X, low + (high - low) * (levels + 0.1 * u)


def _best(n_arms: int) -> int:
    return 1 + n_arms // 2 if n_arms > 2 else 1


def _share(bandit: Bandit, X: Float64, rewards: Float64, eligible: Sequence[int] | None, retire: bool) -> float:
    """Play, and give how likely the best of the arms that remain was in the last part."""
    best, chances = _best(rewards.shape[1]), []
    for step, (x, row) in enumerate(zip(X, rewards, strict=True)):
        if retire and step == RETIRE_AT:
            bandit.retire_arm(ABSENT)
        if step >= LOOK_FROM:
            chances.append(bandit.predict_proba([x], eligible=eligible)[0][bandit.arms.index(best)])
        decision = bandit.decide(x, eligible=eligible)
        bandit.learn(decision, float(row[int(decision.arm)]))
    return float(np.mean(chances))


def check_absent_arms(policy: Policy, n_arms: int, dim: int) -> None:
    """With an arm that was retired, or is never eligible, the best of two or more others is found as without that arm.

    At least two thirds of the lead over uniform play is asked for: a policy may pay for arms that it cannot play, with
    wider bounds or smaller rates. The share of one that plays without chance is a mean of 300 zeros and ones, so two
    standard errors, 0.06, are allowed beside that. A policy that cannot keep this says so, with
    `absent_arms = "hinder"`, and its documentation why.
    """
    if n_arms < 3 or getattr(policy, "absent_arms", "no hindrance") == "hinder":
        return
    (X, rewards), others = _world(policy, n_arms, dim), [arm for arm in range(n_arms) if arm != ABSENT]
    try:
        alone = Bandit(others, dim, policy=policy, seed=5)
    except ValueError:  # for a fixed number of arms
        return
    uniform, without = 1 / len(others), _share(alone, X, rewards, None, False)
    for name, eligible, retire in (("retired", None, True), ("never eligible", others, False)):
        found = _share(new_bandit(policy, n_arms, dim), X, rewards, eligible, retire)
        require(
            found - uniform >= 2 / 3 * (without - uniform) - NOISE,
            f"with an arm {name}, the best of the others has a share of {found:.2f}; without that arm {without:.2f}",
        )


def check_many_arms(policy: Policy, n_arms: int, dim: int) -> None:
    """Any arm can be retired or left out, whatever its number, unless settings are for fewer arms."""
    del n_arms
    try:
        bandit = new_bandit(policy, MANY, dim)
    except ValueError:
        return
    X, rewards = np.tile(np.linspace(0.5, 1.0, dim), (2 * MANY, 1)), np.zeros(2 * MANY)
    low = getattr(policy, "reward_range", (0.0, 1.0))[0]
    for step, x in enumerate(X):
        if step == MANY:
            bandit.retire_arm(MANY - 1)
        eligible = [arm for arm in range(MANY) if arm != step % MANY and arm not in bandit.retired]
        decision = bandit.decide(x, eligible=eligible)
        require(decision.arm in eligible, f"arm {decision.arm} was played at step {decision.t} but is not eligible")
        chances = bandit.predict_proba([x])[0]
        require(abs(chances.sum() - 1) < 1e-12, f"probabilities sum to {chances.sum()} at step {decision.t}")
        bandit.learn(decision, float(low + rewards[step]))
