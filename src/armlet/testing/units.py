"""What a policy promises whose units are free: it decides the same in any units of rewards and features.

`check_units` runs over every policy of Armlet's registry that says so; run it over a policy of your own in your tests.
A changed run decides for itself, so one step that differs is followed by others; the first is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.bandit import Bandit
from armlet.testing.policies import new_bandit
from armlet.testing.promises import require
from armlet.types import Float64, Policy

STEPS: Final = 600
CLOSE: Final = 1e-6  # how far propensities may be apart; rounding leaves far less


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitChange:
    """Other units: contexts become scales x + offsets, rewards scale r + level.

    Scales are positive: a feature that changes its sign leaves the law of Thompson sampling as it was, but not each of
    its draws.
    """

    name: str
    scales: tuple[float, ...] = (1.0,)  # feature by feature, from the first again when they run out
    offsets: tuple[float, ...] = (0.0,)
    scale: float = 1.0
    level: float = 0.0
    exact: bool = False  # powers of two change no digit, so nothing else may either

    @property
    def is_of_rewards(self) -> bool:
        """Return whether rewards change, which those of a range or of 0 and 1 cannot."""
        return (self.scale, self.level) != (1.0, 0.0)

    def contexts(self, X: Float64) -> Float64:
        """Return contexts in the new units."""
        dim = X.shape[-1]
        shown: Float64 = X * np.resize(self.scales, dim) + np.resize(self.offsets, dim)
        return shown

    def rewards(self, rewards: Float64) -> Float64:
        """Return rewards, or expected rewards, in the new units."""
        return self.scale * rewards + self.level


CHANGES: Final = (
    UnitChange(name="rewards times 3 plus 100", scale=3.0, level=100.0),
    UnitChange(name="rewards plus a million", level=1e6),
    UnitChange(name="features times something", scales=(0.02, 50.0, 3.0)),
    UnitChange(name="features plus something", offsets=(100.0, -7.0, 1e4)),
    UnitChange(name="features times and plus something", scales=(1e-3, 7.0, 1e3), offsets=(-0.5, 0.0, 5e3)),
    UnitChange(name="features times powers of two", scales=(8.0, 0.03125, 2.0), exact=True),
    UnitChange(name="rewards times a power of two", scale=16.0, exact=True),
    UnitChange(
        name="everything",
        scales=(30.0, 0.01, 5.0),
        offsets=(1e3, 1.0, -20.0),
        scale=0.05,
        level=-2e3,
    ),
)
"""Without ties among gaussian contexts and rewards, rounding decides nothing. Offsets are up to some thousand standard
deviations: of a feature that lies ten thousand of its own deviations from zero, sums about zero keep eight digits."""


def check_units(policy: Policy, *, n_arms: int = 4, dim: int = 3) -> None:
    """Play in several units, and require the same arms and propensities, step by step, and the same expectations.

    Arms must be equal and propensities within 1e-6; both to the last bit where features and rewards are multiplied by
    powers of two, which no rounding hides. Rewards keep their units if the policy takes only some (`policy.rewards`).

    Parameters
    ----------
    policy
        The policy, with settings that suit `n_arms` arms and contexts of `dim` values.

    Examples
    --------
    >>> import armlet
    >>> check_units(armlet.OFUL())
    Traceback (most recent call last):
    AssertionError: rewards times 3 plus 100: step 2 played arm 3 with probability 0.3..., in other units arm 0 with 1.0
    """
    for change in CHANGES:
        check_change(policy, change, n_arms, dim)


def check_change(policy: Policy, change: UnitChange, n_arms: int, dim: int) -> None:
    """Play once as it is and once in other units."""
    if change.is_of_rewards and policy.rewards != "any":
        return
    X, rewards = _environment(policy, n_arms, dim)
    one, other = (new_bandit(policy, n_arms, dim) for _ in range(2))
    first, second = _play(one, X, rewards), _play(other, change.contexts(X), change.rewards(rewards))
    close = 0.0 if change.exact else CLOSE
    for t, ((arm, chance), (arm_2, chance_2)) in enumerate(zip(first, second, strict=True), start=1):
        require(
            arm == arm_2 and abs(chance - chance_2) <= close,
            f"{change.name}: step {t} played arm {arm} with probability {chance}, "
            f"in other units arm {arm_2} with {chance_2}",
        )
    _check_expectations(one, other, change, X[:20])


def _check_expectations(one: Bandit, other: Bandit, change: UnitChange, X: Float64) -> None:
    expected, found = change.rewards(one.predict_expectations(X)), other.predict_expectations(change.contexts(X))
    # digits below the level are lost, a dozen of which are left of a million
    apart = np.abs(found - expected).max() / change.scale
    require(bool(apart <= CLOSE), f"{change.name}: expectations differ by {apart} in the units of before")


def _play(bandit: Bandit, X: Float64, rewards: Float64) -> list[tuple[int, float]]:
    played = []
    for x, row in zip(X, rewards, strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(row[int(decision.arm)]))
        played.append((int(decision.arm), decision.propensity))
    return played


def _environment(policy: Policy, n_arms: int, dim: int) -> tuple[Float64, Float64]:
    """Draw gaussian contexts and rewards, squeezed or cut where a policy asks for that."""
    rng = np.random.default_rng(29)
    X = rng.standard_normal((STEPS, dim))
    theta, constant = rng.standard_normal((n_arms, dim)), rng.standard_normal(n_arms)
    rewards: Float64 = X @ theta.T + constant + rng.standard_normal((STEPS, n_arms))
    if policy.rewards == "binary":
        return X, (rewards > 0).astype(np.float64)
    if policy.rewards == "bounded":
        low, high = policy.reward_range  # type: ignore[attr-defined]  # only those have it
        return X, low + (high - low) / (1 + np.exp(-rewards))
    return X, rewards
