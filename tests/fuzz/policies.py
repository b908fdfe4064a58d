"""Policies to attack: all of the registry, ordinary and extreme settings, and one of our own that misbehaves."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import numpy as np

from armlet.kernel import Statistics
from armlet.types import Bool, Choice, Coins, Float64, Interaction, LearnsFrom, Memory, Policy, RewardKind
from fuzz.faults import Hostility
from fuzz.values import pick
from support.policies import REGISTRY, SETTINGS

COMPILED = (
    "Algorithm1",
    "ContextualEpsilonGreedy",
    "AllDataEpsilonGreedy",
    "OccasionalOptimism",
    "LinUCB",
    "OFUL",
    "ThompsonSampling",
    "Uniform",
    "Greedy",
    "FixedEpsilon",
    "SquareCB",
)
SLOW = ("RandomizedUCB", "PolicyElimination", "ContextualUCB", "ConfidenceBall1", "ConfidenceBall2")
WILD = (1e-100, 1e-60, 1e-12, 1e-3, 0.5, 1.0, 1.5, 20.0, 1e12, 1e24, 1e40)


def draw(rng: Random, case: int) -> Policy:
    """Draw a policy: one case in eight goes through the registry in turn, most of the others are compiled.

    One in five has extreme settings, to go with the extreme numbers of its calls.
    """
    names = list(REGISTRY)
    name = names[case // 8 % len(names)] if case % 8 == 0 else rng.choice(COMPILED if rng.random() < 0.8 else names)
    if name in SLOW and case % 8 != 0 and rng.random() < 0.8:
        name = rng.choice(COMPILED)
    if case % 5 == 3 and case % 8 != 0:
        name = rng.choice((*COMPILED, "ThompsonSampling", "ContextualUCB"))
    settings = dict(rng.choice(SETTINGS[name])) if rng.random() < 0.8 else {}
    if name == "ContextualUCB" and rng.random() < 0.5:
        settings = {}
    try:
        policy: Policy = REGISTRY[name](**settings)
    except (TypeError, ValueError):  # some have settings that must be given
        policy = REGISTRY[name](**SETTINGS[name][0])
    return stretched(rng, policy) if rng.random() < (0.8 if case % 5 == 3 else 0.3) else policy


def stretched(rng: Random, policy: Policy) -> Policy:
    """Replace some of the numbers in a policy's settings by extreme ones that it accepts."""
    assert dataclasses.is_dataclass(policy)
    held: Any = policy
    for field in dataclasses.fields(policy):
        if isinstance(getattr(held, field.name), float) and rng.random() < 0.6:
            try:
                held = dataclasses.replace(held, **{field.name: rng.choice(WILD)})
            except ValueError:  # refused: stays as it was
                continue
    made: Policy = held
    return made


def ordinary(name: str) -> Policy:
    """Return a policy with settings that suit 4 arms of dim 3."""
    made: Policy = REGISTRY[name](**SETTINGS[name][0])
    return made


def name_of(policy: Policy) -> str:
    """Return the name of its class."""
    return type(policy).__name__


@dataclass(frozen=True, kw_only=True)
class Rogue:
    """A policy of the user's own that answers as `order` says."""

    learns_from: ClassVar[LearnsFrom] = "every step"
    memory: ClassVar[Memory] = "constant"
    rewards: ClassVar[RewardKind] = "any"

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", None)

    def __reduce__(self) -> tuple[type[Rogue], tuple[()]]:
        return Rogue, ()  # orders are for this one alone

    def obey(self) -> Any:
        """Do what was ordered, once: nothing, raise, meddle, or hand out an answer."""
        order = getattr(self, "order", None)
        object.__setattr__(self, "order", None)
        return order() if callable(order) else order

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        return None

    def init(self, n_arms: int, dim: int) -> Statistics:
        return Statistics(n_arms, dim)

    def rule(self) -> None:
        return None

    def estimates(self, state: Statistics) -> Any:
        answer = self.obey()
        return state.estimates() if answer is None else answer

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Any:  # noqa: ARG002
        answer = self.obey()
        return eligible / eligible.sum() if answer is None else answer

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Any:  # noqa: ARG002
        answer = self.obey()
        arms = np.flatnonzero(eligible)
        fair = Choice(int(arms[coins.pick % len(arms)]), 1 / len(arms), True)
        return fair if answer is None else answer

    def update(self, state: Statistics, interaction: Interaction) -> None:
        self.obey()
        i = interaction
        if i.replaces is None:
            state.add(i.arm, i.x, i.reward, i.weight)
        else:
            state.correct(i.arm, i.x, i.replaces, i.reward, i.weight)


def lies(rng: Random, n_arms: int) -> Any:
    """Draw an answer that no policy may give."""

    def refuse() -> None:
        raise Hostility("the policy itself")

    arm: Any = rng.choice([-1, n_arms, n_arms + 1, 2**31, 2**32 - 1, 2**40, 2**70, 0, None, "0", 0.5])
    chance: Any = rng.choice([0.0, -0.5, 1.5, float("nan"), float("inf"), None, "1", 0.5])
    wrong = [float("nan"), float("inf"), -1.0, 0.0, 2.0]
    return rng.choice(
        [
            Choice(arm, chance, True),
            Choice(arm, 0.5, pick(rng, [True, None, 2]), pick(rng, [0, 2**40, "tag", None])),
            (),
            (0,),
            "abcd",
            object(),
            np.zeros(0),
            np.full(n_arms, rng.choice(wrong)),
            np.full(n_arms + 1, 1 / (n_arms + 1)),
            np.full((n_arms, 1), 1.0),
            np.ones(n_arms, dtype=np.float32),
            [1.0] + [0.0] * (n_arms - 1),
            refuse,
        ]
    )
