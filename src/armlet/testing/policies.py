"""What every policy promises, as checks that can be run over any of them.

`check_policy` runs over Armlet's own registry in its tests; run it over a policy of your own in yours. All checks have
fixed seeds, and rewards of the kind that a policy takes.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.errors import DecisionError, MergeError
from armlet.kernel import Decision, coins
from armlet.loading import load
from armlet.policies.shared import PairPolicy, SharedOptimism, SharedThompson
from armlet.testing.outcomes import check_outcomes
from armlet.testing.promises import require, same
from armlet.types import Array, Choice, Float64, Interaction, Policy

STEPS = 240
SEED = 5


def new_bandit(policy: Policy, n_arms: int, dim: int, seed: int = SEED) -> Bandit:
    """Make a bandit whose labels are the numbers of its arms."""
    return Bandit(range(n_arms), dim, policy=policy, seed=seed)


def sample_run(policy: Policy, n_arms: int, dim: int, steps: int = STEPS) -> tuple[Float64, Float64]:
    """Contexts with zeros and repeats among them, so that ties happen, and rewards of the kind that it takes."""
    rng = np.random.default_rng(17)
    X = rng.integers(-1, 2, size=(steps, dim)).astype(np.float64)
    theta = rng.normal(size=(n_arms, dim))
    rewards = X @ theta.T + rng.normal(size=(steps, n_arms))
    if policy.rewards == "binary":
        rewards = (rewards > 0).astype(np.float64)
    elif policy.rewards == "bounded":
        low, high = policy.reward_range  # type: ignore[attr-defined]  # only those have it
        rewards = low + (high - low) / (1 + np.exp(-rewards))
    return X, rewards


def play(bandit: Bandit, X: Float64, rewards: Float64) -> Iterator[tuple[Decision, float]]:
    """Decide and learn, step by step."""
    for x, row in zip(X, rewards, strict=True):
        decision = bandit.decide(x)
        reward = float(row[int(decision.arm)])
        bandit.learn(decision, reward)
        yield decision, reward


def interaction(d: Decision, reward: float) -> Interaction:
    """Return what is learned from a decision whose label is the number of its arm."""
    return Interaction(
        t=d.t, x=d.x, arm=int(d.arm), reward=reward, propensity=d.propensity, explored=d.explored, tag=d.tag
    )


LAW_STEPS = 200


def _check_choice(said: Choice, decision: Decision) -> None:
    t = decision.t
    for name, own, played in (
        ("arm", said.arm, decision.arm),
        ("propensity", said.propensity, decision.propensity),
        ("explored", said.explored, decision.explored),
        ("optimistic", said.optimistic, decision.optimistic),
        ("tag", said.tag, decision.tag),
        ("exploration_propensity", said.exploration_propensity, decision.exploration_propensity),
        ("exploration_rate", said.exploration_rate, decision.exploration_rate),
        ("min_exploration_probability", said.min_exploration_probability, decision.min_exploration_probability),
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
    decision = bandit.decide(x, eligible=eligible, propensity="marginal")
    _check_choice(said, decision)
    reward = float(rewards[int(decision.arm)])
    policy.update(own, interaction(decision, reward))
    bandit.learn(decision, reward)
    require(same(own, bandit.state), f"update makes another state of step {t} than the engine")


def check_law(policy: Policy, n_arms: int, dim: int) -> None:
    """The engine plays what `decide`, `probabilities` and `update` say, bit for bit.

    The engine runs some policies compiled, from what `rule()` describes, and asks others step by step. Either way the
    policy's own methods, called in Python on a copy of the state with the coins of the step, must give the same: a
    method that the engine passes over, or a rule that says something else, shows here.
    """
    bandit, (X, rewards) = new_bandit(policy, n_arms, dim), sample_run(policy, n_arms, dim, LAW_STEPS)
    rng = np.random.default_rng(31)
    for step, (x, row) in enumerate(zip(X, rewards, strict=True)):
        some = sorted(rng.choice(n_arms, size=rng.integers(1, n_arms + 1), replace=False).tolist())
        _step(policy, bandit, x, row, some if step % 2 else list(range(n_arms)))


ABSENCE_STEPS = 1000
RETIRE_AT, LOOK_FROM = 120, 700  # the arm plays before the first, and the share of the best is taken after the second
SHARE_NOISE = 0.06  # 2 sqrt(1 / (4 * 300))
ABSENT = 0
MANY = 40  # more arms than a tag has bits


def _absence_run(policy: Policy, n_arms: int, dim: int) -> tuple[Float64, Float64]:
    """Two contexts. The absent arm pays most; one of the others pays a quarter of the range, the rest nothing.

    All but the absent one pay less than the middle of the range, so that an arm of which nothing is known, or which
    counts as one that pays the middle, or 0, looks better than the best that can be played.
    """
    rng = np.random.default_rng(29)
    X = np.zeros((ABSENCE_STEPS, dim))
    X[:, 0], X[:, -1] = 0.7, 0.7 * rng.choice((-1.0, 1.0), size=ABSENCE_STEPS)
    levels = np.zeros(n_arms)
    levels[ABSENT], levels[_best(n_arms)] = 0.9, 0.7 if policy.rewards == "binary" else 0.25
    u = rng.random((ABSENCE_STEPS, n_arms))
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

    Such arms stay in the state, so a policy that counts, compares or waits for all of its arms can be led astray. At
    least two thirds of the lead over uniform play is asked for: a policy may pay for arms that it cannot play, with
    wider bounds or smaller rates. The share of one that plays without chance is a mean of 300 zeros and ones, so two
    standard errors, 0.06, are allowed too. A policy that cannot keep this says so, with
    `absent_arms = "hinder"`, and its documentation why.
    """
    if n_arms < 3 or getattr(policy, "absent_arms", "no hindrance") == "hinder":
        return
    (X, rewards), others = _absence_run(policy, n_arms, dim), [arm for arm in range(n_arms) if arm != ABSENT]
    try:
        alone = Bandit(others, dim, policy=policy, seed=5)
    except ValueError:  # for a fixed number of arms
        return
    uniform, without = 1 / len(others), _share(alone, X, rewards, None, False)
    for name, eligible, retire in (("retired", None, True), ("never eligible", others, False)):
        found = _share(new_bandit(policy, n_arms, dim), X, rewards, eligible, retire)
        require(
            found - uniform >= 2 / 3 * (without - uniform) - SHARE_NOISE,
            f"with an arm {name}, the best of the others has a share of {found:.2f}; without that arm {without:.2f}",
        )


def check_many_arms(policy: Policy, n_arms: int, dim: int) -> None:
    """Any arm can be retired or left out, of any number, unless settings are for fewer arms."""
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
        eligible = [arm for arm in range(MANY) if arm != step % MANY and arm not in bandit.arms.retired]
        decision = bandit.decide(x, eligible=eligible)
        require(decision.arm in eligible, f"arm {decision.arm} was played at step {decision.t} but is not eligible")
        chances = bandit.predict_proba([x])[0]
        require(abs(chances.sum() - 1) < 1e-12, f"probabilities sum to {chances.sum()} at step {decision.t}")
        bandit.learn(decision, float(low + rewards[step]))


Check: TypeAlias = Callable[[Policy, int, int], None]


def check_decide_is_a_query(policy: Policy, n_arms: int, dim: int) -> None:
    """Deciding leaves the state as it was, but for a count of decisions under way, which `expire` takes back."""
    bandit, (X, rewards) = new_bandit(policy, n_arms, dim), sample_run(policy, n_arms, dim)
    for i, _ in enumerate(play(bandit, X, rewards)):
        before = bandit.state.copy()
        bandit.expire(bandit.decide(X[i]))
        require(same(before, bandit.state), f"decide changed the state at step {bandit.t}")


def check_seeds_repeat(policy: Policy, n_arms: int, dim: int) -> None:
    """The same seed on the same environment plays the same arms."""
    runs = [
        [repr(d) for d, _ in play(new_bandit(policy, n_arms, dim), *sample_run(policy, n_arms, dim))] for _ in range(2)
    ]
    require(runs[0] == runs[1], "two runs with one seed differ")


def check_propensities(policy: Policy, n_arms: int, dim: int) -> None:
    """Probabilities are exact: they sum to 1, spare the ineligible, and are what decisions report."""
    bandit, (X, rewards) = new_bandit(policy, n_arms, dim), sample_run(policy, n_arms, dim)
    rng = np.random.default_rng(23)
    for x, row in zip(X, rewards, strict=True):
        eligible = sorted(rng.choice(n_arms, size=rng.integers(1, n_arms + 1), replace=False).tolist())
        chances = bandit.predict_proba([x], eligible=eligible)[0]
        decision = bandit.decide(x, eligible=eligible, propensity="marginal")
        bandit.learn(decision, float(row[int(decision.arm)]))
        barred = np.delete(chances, eligible)
        require(abs(chances.sum() - 1) < 1e-12, f"probabilities sum to {chances.sum()} at step {decision.t}")
        require(not barred.any(), f"an arm that is not eligible has a positive probability at step {decision.t}")
        require(decision.arm in eligible, f"an arm that is not eligible was played at step {decision.t}")
        require(decision.marginal, f"the propensity of step {decision.t} is not marginal, though it was asked for")
        require(decision.propensity == chances[int(decision.arm)], f"the propensity of step {decision.t} is another's")


def check_frequencies(policy: Policy, n_arms: int, dim: int) -> None:
    """Arms are played as often as their probabilities say, and so is the likeliest of a step, the second, and so on.

    Within four standard deviations: an arm that is off by a twentieth is noticed, and one that is right passes, but for
    once in 15,000 arms. By rank, chances that are too flat or too steep add up over contexts where arms differ.
    """
    bandit, (X, rewards) = new_bandit(policy, n_arms, dim), sample_run(policy, n_arms, dim, 1000)
    chances, arms = np.zeros((len(X), n_arms)), np.zeros(len(X), dtype=np.int64)
    for step, (x, row) in enumerate(zip(X, rewards, strict=True)):
        chances[step] = bandit.predict_proba([x])[0]
        decision = bandit.decide(x)
        bandit.learn(decision, float(row[int(decision.arm)]))
        arms[step] = int(decision.arm)
    order = np.argsort(-chances, axis=1, kind="stable")
    both = np.stack([chances, np.take_along_axis(chances, order, axis=1)])  # (2, T, K): by arm, and by rank
    expected, variance = both.sum(axis=1), (both * (1 - both)).sum(axis=1)
    played = (np.stack([np.broadcast_to(np.arange(n_arms), order.shape), order]) == arms[:, None]).sum(axis=1)
    worst = np.abs(played - expected) - 4 * np.sqrt(variance)
    require((worst <= 1e-6).all(), f"arms, and ranks, were played {played} times, expected {expected}")


def check_replay(policy: Policy, n_arms: int, dim: int) -> None:
    """Folding the interactions through `update` rebuilds the state bit for bit."""
    bandit, state = new_bandit(policy, n_arms, dim), policy.init(n_arms, dim)
    for d, reward in play(bandit, *sample_run(policy, n_arms, dim)):
        policy.update(state, interaction(d, reward))
    require(same(state, bandit.state), "replaying the log gave another state")


def check_memory(policy: Policy, n_arms: int, dim: int) -> None:
    """The state takes the same memory for any t, or no more than for all distinct contexts, or as the policy says."""
    if policy.memory == "grows with t":  # nothing is promised
        return
    bandit, (X, rewards) = new_bandit(policy, n_arms, dim), sample_run(policy, n_arms, dim, 2 * STEPS)
    sizes = [bandit.state.nbytes for _ in play(bandit, X, rewards)]
    if policy.memory == "constant":
        require(min(sizes) == max(sizes), f"the state took between {min(sizes)} and {max(sizes)} bytes")
    elif policy.memory == "grows with contexts":
        # when a context is first learned from is up to the policy, so a state that met each of them once is the measure
        state, (contexts, first) = policy.init(n_arms, dim), np.unique(X, axis=0, return_index=True)
        for x, row in zip(contexts, rewards[first], strict=True):
            policy.update(state, Interaction(t=1, x=x, arm=0, reward=float(row[0])))
        most = state.nbytes
        require(max(sizes) <= most, f"the state took {max(sizes)} bytes, but {len(contexts)} contexts take {most}")


def check_late_rewards(policy: Policy, n_arms: int, dim: int) -> None:
    """Rewards that come late and out of order are learned as they come."""
    bandit, state = new_bandit(policy, n_arms, dim), policy.init(n_arms, dim)
    X, rewards = sample_run(policy, n_arms, dim, 200)
    for start in range(0, 200, 20):
        block = [(bandit.decide(X[i]), rewards[i]) for i in range(start, start + 20)]
        for d, row in reversed(block):
            reward = float(row[int(d.arm)])
            bandit.learn(d, reward)
            policy.update(state, interaction(d, reward))
    require(same(state, bandit.state), "late rewards gave another state than folding them in the order they came")


def check_forget(policy: Policy, n_arms: int, dim: int) -> None:
    """Forgetting and correcting undo what was learned, or are refused and change nothing."""
    bandit, (X, rewards) = new_bandit(policy, n_arms, dim), sample_run(policy, n_arms, dim)
    for _ in play(bandit, X[:-1], rewards[:-1]):
        pass
    before, decision = bandit.state.copy(), bandit.decide(X[-1])
    reward = float(rewards[-1][int(decision.arm)])
    bandit.learn(decision, reward)
    after = bandit.state.copy()
    try:
        bandit.forget(decision, reward)
    except DecisionError:
        require(same(after, bandit.state), "forget was refused but changed the state")
    else:
        # a row of no weight: a table keeps the place of a context even when all of its rows were taken back
        with contextlib.suppress(DecisionError):  # a history of whole rows knows none without weight
            policy.update(before, replace(interaction(decision, reward), weight=0.0))
        found, expected = bandit.state.arrays(), before.arrays()
        sums = set(expected) - set(getattr(before, "not_summed", ()))
        close = all(np.allclose(found[name], expected[name], rtol=1e-9, atol=1e-9) for name in sums)
        require(close, "forget did not undo what was learned")


def check_merge(policy: Policy, n_arms: int, dim: int) -> None:
    """Two states add up to that of all rows, or are refused; a state names what it keeps besides in `not_summed`."""
    one, two = (new_bandit(policy, n_arms, dim, seed) for seed in (5, 6))
    (X, rewards), whole = sample_run(policy, n_arms, dim), policy.init(n_arms, dim)
    for bandit, rows in ((one, slice(0, None, 2)), (two, slice(1, None, 2))):
        for d, reward in play(bandit, X[rows], rewards[rows]):
            policy.update(whole, interaction(d, reward))
    try:
        one.merge(two)
    except MergeError:
        return
    found, expected = _in_order(one.state.arrays()), _in_order(whole.arrays())
    sums = set(expected) - set(getattr(whole, "not_summed", ()))
    close = all(np.allclose(found[name], expected[name], rtol=1e-9, atol=1e-9) for name in sums)
    require(close, "merged states differ from that of all rows")


def _in_order(arrays: dict[str, Array]) -> dict[str, Array]:
    """Sort the rows of a table by context: the order in which they were met does not matter."""
    if "contexts" not in arrays:
        return arrays
    order = np.lexsort(arrays["contexts"].T.astype(np.float64))
    return {name: array[order] for name, array in arrays.items()}


def check_arms(policy: Policy, n_arms: int, dim: int) -> None:
    """Arms come and go, unless the policy is for a fixed number of them."""
    bandit, (X, rewards) = new_bandit(policy, n_arms, dim), sample_run(policy, n_arms + 1, dim)
    for _ in play(bandit, X[:100], rewards[:100]):
        pass
    try:
        bandit.add_arm(n_arms)
    except ValueError:
        return
    for _ in play(bandit, X[100:200], rewards[100:200]):
        pass
    bandit.remove_arm(0)
    require(bandit.state.n_arms == n_arms, "removing an arm did not reach the state")
    for x, row in zip(X[200:], rewards[200:], strict=True):
        decision = bandit.decide(x)
        bandit.learn(decision, float(row[int(decision.arm)]))


def check_file(policy: Policy, n_arms: int, dim: int) -> None:
    """A loaded bandit goes on as the saved one does."""
    bandit, (X, rewards) = new_bandit(policy, n_arms, dim), sample_run(policy, n_arms, dim)
    half = STEPS // 2
    for _ in play(bandit, X[:half], rewards[:half]):
        pass
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.armlet"
        bandit.save(path)
        twin = load(path, kind=Bandit, policy=policy)
    runs = [[repr(d) for d, _ in play(b, X[half:], rewards[half:])] for b in (bandit, twin)]
    require(runs[0] == runs[1], "after save and load the decisions differ")


CHECKS: tuple[Check, ...] = (
    check_decide_is_a_query,
    check_seeds_repeat,
    check_propensities,
    check_frequencies,
    check_replay,
    check_memory,
    check_late_rewards,
    check_forget,
    check_merge,
    check_arms,
    check_file,
    check_law,
    check_absent_arms,
    check_many_arms,
    check_outcomes,
)


def check_policy(policy: Policy | PairPolicy, *, n_arms: int = 4, dim: int = 3) -> None:
    """Run every check over a policy; the first promise that is broken raises AssertionError.

    Parameters
    ----------
    policy
        The policy, with settings that suit `n_arms` arms and contexts of `dim` values. Over one of an `ActionBandit`,
        `check_action_policy` is run.

    Examples
    --------
    >>> import armlet
    >>> check_policy(armlet.Algorithm1(p=20))
    """
    if isinstance(policy, SharedOptimism | SharedThompson):
        from armlet.testing.actions import check_action_policy  # which needs the units that need this module

        check_action_policy(policy)
        return
    for check in CHECKS:
        check(policy, n_arms, dim)
