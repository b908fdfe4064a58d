"""What a policy promises where decisions have several outcomes, or says that it learns from one reward.

`check_outcomes` is part of `check_policy`. A dial teaches nothing again, parts come in any order, and what holds for
one reward holds for several: propensities, replay, forgetting, merging, files. With a budget and units as well, since
both are weighed with the dial.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from armlet.bandit import Bandit
from armlet.errors import InvalidValueError
from armlet.inputs.budget import Budget
from armlet.kernel import Decision, coins
from armlet.loading import from_bytes
from armlet.testing.promises import require, same
from armlet.types import Float64, Policy, State

STEPS: Final = 160
SEED: Final = 5
WEIGHTS: Final = {"quality": 1.0, "cost": -40.0, "delay": -0.1}
DIAL: Final = {"quality": 0.5, "cost": -300.0, "delay": -0.002}
Row = dict[str, float]


def outcome_bandit(policy: Policy, n_arms: int, dim: int, **more: Any) -> Bandit:
    """Make a bandit with three outcomes, whose labels are the numbers of its arms."""
    return Bandit(range(n_arms), dim, policy=policy, **{"outcomes": WEIGHTS, "seed": SEED, **more})


def sample_outcomes(n_arms: int, dim: int, steps: int = STEPS) -> tuple[Float64, Float64]:
    """Contexts, and outcomes of every arm, (T, K, 3): of different sizes, and costs that go with quality."""
    rng = np.random.default_rng(19)
    X = rng.standard_normal((steps, dim))
    quality = X @ rng.standard_normal((dim, n_arms)) + rng.standard_normal((steps, n_arms))
    cost = 0.02 * quality + 0.01 * np.arange(n_arms) + 0.001 * rng.standard_normal((steps, n_arms))
    delay = 5000.0 + 300.0 * np.abs(X[:, :1]) * np.arange(n_arms) + rng.standard_normal((steps, n_arms))
    return X, np.stack([quality, cost, delay], axis=-1)


def play(bandit: Bandit, X: Float64, values: Float64, dial: Row | None = None) -> Iterator[tuple[Decision, Row]]:
    """Decide and learn, step by step."""
    for x, row in zip(X, values, strict=True):
        decision = bandit.decide(x, propensity="marginal", weights=dial)
        outcomes = dict(zip(WEIGHTS, row[int(decision.arm)].tolist(), strict=True))
        bandit.learn(decision, outcomes)
        yield decision, outcomes


def key(decision: Decision) -> tuple[object, ...]:
    """Return what two decisions are compared by."""
    return decision.arm, decision.propensity, decision.explored, decision.optimistic


def add(policy: Policy, state: Any, decision: Decision, outcomes: Row, counts: float | None = None) -> None:
    """Add a row as the engine does, if it is one that the policy learns from."""
    if not (decision.explored or policy.learns_from == "every step"):
        return
    row, reward = np.array([*outcomes.values()]), 0.0
    for weight, value in zip(WEIGHTS.values(), row.tolist(), strict=True):
        reward += weight * value
    counts = decision.weight if counts is None else counts
    state.add(int(decision.arm), decision.x, reward, counts, row, t=decision.t, tag=decision.tag)


def check_dial(policy: Policy, n_arms: int, dim: int) -> None:
    """A dial that is turned decides as one that was there from the start, bit for bit.

    A ridge that is found in the sums is that of the usual weights: such a state is taken over whole, so that what is
    left to differ is what the decisions make of it.
    """
    later, always = (outcome_bandit(policy, n_arms, dim, outcomes=weights) for weights in (WEIGHTS, DIAL))
    X, values = sample_outcomes(n_arms, dim)
    for (one, outcomes), x in zip(play(later, X, values, DIAL), X, strict=True):
        other = always.decide(x, propensity="marginal")
        require(key(one) == key(other), f"at step {one.t} a dial gave {one!r}, and from the start {other!r}")
        always.learn(other, outcomes)
        if "ridge" in always.state.arrays():
            always.state.restore_arrays(later.state.arrays())
    together = later.decide_many(X, propensity="marginal", weights=DIAL), always.decide_many(X, propensity="marginal")
    require(
        all(key(one) == key(other) for one, other in zip(*together, strict=True)),
        "many decisions by a dial differ from those of one that was there from the start",
    )
    usual = later.predict_expectations(X), later.predict_expectations(X, weights=WEIGHTS)
    require(np.array_equal(*usual), "a dial left something behind: the usual weights are others")


def check_dial_law(policy: Policy, n_arms: int, dim: int) -> None:
    """Under a dial the engine plays what `decide` and `probabilities` say of a state with these weights."""
    bandit, (X, values) = outcome_bandit(policy, n_arms, dim), sample_outcomes(n_arms, dim)
    rng = np.random.default_rng(31)
    for x, row in zip(X, values, strict=True):
        some = sorted(rng.choice(n_arms, size=rng.integers(1, n_arms + 1), replace=False).tolist())
        dial = {name: weight * rng.choice((0.0, 0.1, 10.0)) for name, weight in WEIGHTS.items()}
        own: Any = bandit.state.copy()
        own.set_weights(np.array([*dial.values()]))
        t, mask = bandit.t + 1, np.isin(np.arange(n_arms), some)
        said = policy.decide(own, t, x.copy(), coins(bandit.seed, t), mask.copy())
        chances = policy.probabilities(own, t, x.copy(), mask.copy())
        played = bandit.predict_proba([x], eligible=some, weights=dial)[0]
        require(np.array_equal(chances, played), f"probabilities says {chances} at step {t}, the engine plays {played}")
        decision = bandit.decide(x, eligible=some, propensity="marginal", weights=dial)
        require(
            (said.arm, said.propensity, said.explored) == (decision.arm, decision.propensity, decision.explored),
            f"decide says {said} at step {t}, but the engine played {decision!r}",
        )
        bandit.learn(decision, dict(zip(WEIGHTS, row[int(decision.arm)].tolist(), strict=True)))


def check_parts(policy: Policy, n_arms: int, dim: int) -> None:
    """Outcomes that come one by one, in any order, are those of one call; rows replay bit for bit as they came."""
    whole, apart = (outcome_bandit(policy, n_arms, dim) for _ in range(2))
    state, (X, values), rng = whole.state.copy(), sample_outcomes(n_arms, dim), np.random.default_rng(37)
    for (one, outcomes), x in zip(play(whole, X, values), X, strict=True):
        other = apart.decide(x, propensity="marginal")
        for name in rng.permutation([*outcomes]).tolist():
            require(not other.learned, f"decision {other.id} was learned before all of its outcomes had come")
            apart.learn(other, {name: outcomes[name]})
        require(other.learned and other.reward == outcomes, f"decision {other.id} does not have its outcomes")
        add(policy, state, one, outcomes)
    require(same(whole.state, apart.state), "outcomes that came apart gave another state")
    require(same(whole.state, state), "replaying the rows gave another state")


def check_taking_back(policy: Policy, n_arms: int, dim: int) -> None:
    """Forgetting and correcting undo what was learned of every outcome; a refused call changes nothing."""
    bandit, (X, values) = outcome_bandit(policy, n_arms, dim), sample_outcomes(n_arms, dim)
    for _ in play(bandit, X[:-1], values[:-1]):
        pass
    before, decision = bandit.state.copy(), bandit.decide(X[-1])
    outcomes = dict(zip(WEIGHTS, values[-1][int(decision.arm)].tolist(), strict=True))
    for refused in ({"quality": np.nan}, {"cost": 0.1, "price": 1.0}, {}, 1.0):
        digest = bandit.digest()
        try:
            bandit.learn(decision, refused)
        except (ValueError, TypeError):
            require(bandit.digest() == digest, f"learning {refused} was refused but changed the state")
        else:
            raise AssertionError(f"{refused} was learned, which is no row of outcomes")
    bandit.learn(decision, {"cost": 1.0})
    bandit.correct(decision, {"cost": 1.0}, {"cost": outcomes["cost"]})
    bandit.learn(decision, {"quality": 3.0, "delay": outcomes["delay"]})
    bandit.correct(decision, {"quality": 3.0}, {"quality": outcomes["quality"]})
    bandit.forget(decision, outcomes)
    add(policy, before, decision, outcomes, counts=0.0)  # where rows fade, it brings the sums to the same clock
    _require_sums(bandit.state, before, "forgetting did not undo what was learned")


def check_merged_outcomes(policy: Policy, n_arms: int, dim: int) -> None:
    """Two states add up to that of all rows, outcome by outcome."""
    one, two = (outcome_bandit(policy, n_arms, dim, seed=seed) for seed in (5, 6))
    whole, (X, values) = one.state.copy(), sample_outcomes(n_arms, dim)
    for bandit, rows in ((one, slice(0, None, 2)), (two, slice(1, None, 2))):
        for decision, outcomes in play(bandit, X[rows], values[rows], DIAL):
            add(policy, whole, decision, outcomes)
    one.merge(two)
    _require_sums(one.state, whole, "merged states differ from that of all rows")


def check_budget(policy: Policy, n_arms: int, dim: int) -> None:
    """With a budget, units and a dial, a copy from a file goes on as the bandit does, at the same prices."""
    budget = Budget("cost", total=0.1, horizon=STEPS)
    bandit, (X, values) = outcome_bandit(policy, n_arms, dim, budget=budget, epoch=20), sample_outcomes(n_arms, dim)
    half = STEPS // 2
    for _ in play(bandit, X[:half], values[:half]):
        pass
    first = bandit.decide(X[0], unit="session-17", weights=DIAL)
    twin = from_bytes(bandit.to_bytes(), policy=policy)
    pairs = zip(*(play(each, X[half:], values[half:], DIAL) for each in (bandit, twin)), strict=True)
    for (one, _), (other, _) in pairs:
        require(key(one) == key(other), f"after save and load step {one.t} is {other!r}, not {one!r}")
        require(bandit.budget == twin.budget, f"after save and load the budget is {twin.budget}, not {bandit.budget}")
        now = [each.decide(X[0], unit="session-17", weights=DIAL) for each in (bandit, twin)]
        require(key(now[0]) == key(now[1]), f"after save and load a unit has {now[1]!r}, not {now[0]!r}")
        if now[0].epoch == first.epoch:
            require(key(now[0]) == key(first), f"within epoch {first.epoch} a unit had {first!r}, then {now[0]!r}")


def _require_sums(found: State, expected: State, promise: str) -> None:
    ours, theirs = found.arrays(), expected.arrays()
    sums = set(theirs) - set(getattr(found, "not_summed", ())) - {"under_way"}
    close = all(np.allclose(ours[name], theirs[name], rtol=1e-9, atol=1e-6) for name in sums)
    require(close, promise)


OUTCOME_CHECKS = (check_dial, check_dial_law, check_parts, check_taking_back, check_merged_outcomes, check_budget)


def check_outcomes(policy: Policy, n_arms: int, dim: int) -> None:
    """A policy keeps its promises for several outcomes, or says that it learns from one reward."""
    try:
        outcome_bandit(policy, n_arms, dim)
    except InvalidValueError as error:
        require("learns from one reward" in str(error), f"with outcomes the policy is refused, but not why: {error}")
        return
    for check in OUTCOME_CHECKS:
        check(policy, n_arms, dim)
