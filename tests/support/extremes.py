"""Plays policies with numbers that are extreme but accepted: `python -m support.extremes NAMES` prints what went wrong.

A process of its own, so that a crash or an endless loop is a finding as well. Warnings are errors here.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import armlet
from armlet.errors import ArmletError, LostDigitsWarning
from armlet.inputs.columns import LARGEST
from armlet.types import Float64, Policy
from support import examples
from support.policies import DIM, N_ARMS, REGISTRY, SETTINGS

STEPS, ARMS = 12, list(range(N_ARMS))
CONTEXTS: dict[str, Callable[[np.random.Generator], Float64]] = {
    "zero": lambda _: np.zeros(DIM),
    "smallest": lambda rng: rng.choice([5e-324, -1e-300, 0.0], DIM),
    "tiny": lambda rng: rng.normal(size=DIM) * 1e-40,
    "usual": lambda rng: rng.normal(size=DIM),
    "large": lambda rng: rng.normal(size=DIM) * 1e25,
    "largest": lambda rng: rng.choice([LARGEST, -LARGEST], DIM),
    "one direction": lambda _: np.full(DIM, LARGEST),
    "mixed": lambda rng: rng.choice([LARGEST, -LARGEST, 1e-40, 1e8, 1.0, 0.0], DIM),
    "by column": lambda rng: rng.normal(size=DIM) * np.resize([1e38, 1.0, 1e-38], DIM),
}
REWARDS: dict[str, dict[str, list[float]]] = {
    "any": {
        "zero": [0.0],
        "tiny": [5e-324, -1e-300],
        "usual": [-1.0, 0.5, 2.0],
        "largest": [LARGEST, -LARGEST],
        "mixed": [LARGEST, -1.0, 1e-40, 0.0],
    },
    "bounded": {"ends": [0.0, 1.0], "inside": [5e-324, 0.3, 1.0]},
    "binary": {"bits": [0.0, 1.0]},
}
WEIGHTS = {"none": [1.0], "tiny": [1e-40, 1e-39], "largest": [LARGEST], "mixed": [LARGEST, 1e-40, 1.0]}
MORE: dict[str, list[dict[str, object]]] = {  # what the settings of the contract leave out
    "Algorithm1": [{"p": 4, "ridge": 1e-40}],
    "ContextualUCB": [
        {},
        {"search": "exact", "history": "explored", "p": 4},
        {"search": "counts"},
    ],
    "OFUL": [{"radius": "joint"}],
    "SCRiBLe": [{"eta": 0.05, "axes": "reflection"}],
    "ThompsonSampling": [{}, {"v": 0.5, "ridge": 1e-40}],
}
EXTREME = ("smallest", "usual", "largest", "mixed", "by column")  # contexts for settings that are extreme themselves
NUMBERS = (0.0, 1e-40, 1e-8, 1.0, LARGEST)  # what any setting that is a number is tried with


class FaultError(Exception):
    pass


def require(holds: bool, what: Callable[[], str]) -> None:  # numbers are put into words only if they are wrong
    if not holds:
        raise FaultError(what())


def check_chances(chances: np.ndarray, eligible: list[int]) -> None:
    barred = np.delete(chances, eligible)
    fine = bool(np.isfinite(chances).all() and (chances >= 0).all()) and abs(chances.sum() - 1) < 1e-9
    require(fine and not barred.any(), lambda: f"probabilities are {chances}, eligible {eligible}")


def check_expectations(expected: Float64) -> None:
    require(bool(np.isfinite(expected).all()), lambda: f"expectations are {expected}")


def check_decision(decision: armlet.Decision, eligible: list[int]) -> None:
    require(decision.arm in eligible, lambda: f"the arm is {decision.arm}")
    require(0 < decision.propensity <= 1 + 1e-12, lambda: f"the propensity is {decision.propensity}")


def allow(call: Callable[[], object], *words: str) -> bool:
    """Make a call that may be refused for a reason that is documented; whether it was not."""
    try:
        call()
    except (ArmletError, ValueError, TypeError) as error:
        message = f"{type(error).__name__}: {error}"
        require(any(word in message for word in words), lambda: message)
        return False
    return True


WHOLE = ("weight is", "cannot take back", "nothing to forget", "take back")
BOUNDED = ("reward is", *WHOLE)
NO_LOGS = "rows of a log cannot be learned"
NO_ESTIMATES = ("no linear estimates", "no estimates")


class Stream:
    """Contexts, rewards and weights of some kinds."""

    def __init__(self, kinds: tuple[str, str, str], rewards: str) -> None:
        self._rng = np.random.default_rng(3)
        self._context, self._rewards, self._weights = CONTEXTS[kinds[0]], REWARDS[rewards][kinds[1]], WEIGHTS[kinds[2]]

    def x(self) -> Float64:
        return self._context(self._rng)

    def reward(self) -> float:
        return float(self._rng.choice(self._rewards))

    def weight(self) -> float:
        return float(self._rng.choice(self._weights))


def step(bandit: armlet.Bandit, stream: Stream, number: int) -> None:
    eligible = ARMS if number % 3 else [1, 3]
    x, reward, weight, other = stream.x(), stream.reward(), stream.weight(), stream.reward()
    check_chances(bandit.predict_proba([x], eligible=eligible)[0], eligible)
    decision = bandit.decide(x, eligible=eligible)
    check_decision(decision, eligible)
    if not allow(lambda: bandit.learn(decision, reward, weight=weight), *BOUNDED):
        bandit.learn(decision, reward)
    if number % 4 == 1 and allow(lambda: bandit.correct(decision, reward, other), *BOUNDED):
        reward = other
    if number % 4 in (1, 2):
        allow(lambda: bandit.forget(decision, reward), *WHOLE)


def read(bandit: armlet.Bandit, X: Float64) -> None:
    for chances in bandit.predict_proba(X):
        check_chances(chances, ARMS)
    allow(lambda: require(set(bandit.predict(X).tolist()) <= set(ARMS), lambda: "predict"), *NO_ESTIMATES)
    allow(lambda: check_expectations(bandit.predict_expectations(X)), *NO_ESTIMATES)
    if isinstance(bandit.policy, armlet.AutoEpsilonGreedy | armlet.AutoAlgorithm1):
        allow(lambda: bandit.policy.look(bandit.state, bandit.t), "every context is zero")  # type: ignore[attr-defined]


def play(policy: Policy, kinds: tuple[str, str, str], steps: int = STEPS) -> None:
    stream = Stream(kinds, policy.rewards)
    bandit = armlet.Bandit(ARMS, DIM, policy=policy, seed=9)
    for number in range(steps):
        step(bandit, stream, number)
    X = np.array([stream.x() for _ in range(5)])
    for decision in bandit.decide_many(X):
        check_decision(decision, ARMS)
    rewards, weights, played = [stream.reward() for _ in X], [stream.weight() for _ in X], [0, 1, 2, 3, 3]
    if not allow(lambda: bandit.partial_fit(X, played, rewards, explored=True, weights=weights), *BOUNDED, NO_LOGS):
        allow(lambda: bandit.partial_fit(X, played, rewards, explored=True), NO_LOGS)
    read(bandit, X)


def settings_of(name: str) -> Iterator[Policy]:
    """Every number among the settings at its extremes, as far as they are accepted."""
    for settings in SETTINGS[name]:
        policy = REGISTRY[name](**settings)
        for field in dataclasses.fields(policy):  # type: ignore[arg-type]
            value = getattr(policy, field.name)
            is_number = isinstance(value, float) or value is None or field.name in ("ridge", "p", "horizon")
            for number in NUMBERS if is_number else ():
                try:
                    other = dataclasses.replace(policy, **{field.name: number})  # type: ignore[type-var]
                    armlet.Bandit(range(N_ARMS), DIM, policy=other)
                except (ValueError, TypeError):
                    continue
                yield other


def attempt(policy: Policy, kinds: tuple[str, str, str], steps: int = STEPS) -> None:
    try:
        play(policy, kinds, steps)
    except Exception as error:  # every one is a finding
        print(f"{policy!r} with contexts, rewards, weights {kinds}: {type(error).__name__}: {error}", flush=True)


def main(name: str) -> None:
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", LostDigitsWarning)  # of the largest numbers, taken back
    for settings in SETTINGS[name] + MORE.get(name, []):
        policy = REGISTRY[name](**settings)
        weights = itertools.cycle(WEIGHTS)  # with every kind of context, and with every kind of reward
        for context, reward in itertools.product(CONTEXTS, REWARDS[policy.rewards]):
            attempt(policy, (context, reward, next(weights)))
            if len(REWARDS[policy.rewards]) < len(WEIGHTS):
                attempt(policy, (context, reward, next(weights)))
    turns = itertools.cycle(EXTREME)  # 2 of 5 for each number: over the numbers of a setting, all of them
    for policy in settings_of(name):
        chosen = EXTREME if examples.find_profile() == "nightly" else (next(turns), next(turns))
        for context in chosen:
            attempt(policy, (context, list(REWARDS[policy.rewards])[-1], "mixed"), 8)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        print(each, file=sys.stderr, flush=True)  # the last one is that of a crash
        main(each)
