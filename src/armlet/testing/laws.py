"""What a policy says it plays, and what is played: one law.

The engine runs some policies compiled, from what `rule()` describes, and asks others step by step. Either way a
policy's own `decide`, `probabilities` and `update`, called in Python on a copy of the state with the coins of the step,
must give the same: a method that the engine passes over, or a rule that says something else, shows here.
"""

from __future__ import annotations

import numpy as np

from armlet.bandit import Bandit
from armlet.kernel import Decision, coins
from armlet.testing.plays import interaction, new_bandit, require, same, world
from armlet.types import Choice, Float64, Policy

STEPS = 200


def _check_choice(said: Choice, decision: Decision) -> None:
    t = decision.t
    for name, own, played in (
        ("arm", said.arm, decision.arm),
        ("propensity", said.propensity, decision.propensity),
        ("explored", said.explored, decision.explored),
        ("tag", said.tag, decision.tag),
        ("given_exploring", said.given_exploring, decision.exploration_propensity),
        ("rate", said.rate, decision.exploration_rate),
        ("smallest", said.smallest, decision.min_exploration_probability),
        ("greedy", said.greedy if said.explored else True, decision.greedy),
    ):
        if own != played:
            raise AssertionError(f"decide says that {name} is {own} at step {t}, but the engine played {played}")


def _step(policy: Policy, bandit: Bandit, x: Float64, rewards: Float64, eligible: list[int]) -> None:
    own, t, mask = bandit.state.copy(), bandit.t + 1, np.isin(np.arange(len(bandit.arms)), eligible)
    said = policy.decide(own, t, x.copy(), coins(bandit.seed, t), mask.copy())
    chances = policy.probabilities(own, t, x.copy(), mask.copy())
    played = bandit.predict_proba([x], eligible=eligible)[0]
    if not np.array_equal(chances, played):  # arrays are put into words only if they differ
        raise AssertionError(f"probabilities says {chances} at step {t}, but the engine plays {played}")
    decision = bandit.decide(x, eligible=eligible)
    _check_choice(said, decision)
    reward = float(rewards[int(decision.arm)])
    policy.update(own, interaction(decision, reward))
    bandit.learn(decision, reward)
    require(same(own, bandit.state), f"update makes another state of step {t} than the engine")


def check_law(policy: Policy, n_arms: int, dim: int) -> None:
    """The engine plays what `decide`, `probabilities` and `update` say, bit for bit."""
    bandit, (X, rewards) = new_bandit(policy, n_arms, dim), world(policy, n_arms, dim, STEPS)
    rng = np.random.default_rng(31)
    for step, (x, row) in enumerate(zip(X, rewards, strict=True)):
        some = sorted(rng.choice(n_arms, size=rng.integers(1, n_arms + 1), replace=False).tolist())
        _step(policy, bandit, x, row, some if step % 2 else list(range(n_arms)))
