"""The law of exploring by evidence: the kernel against numpy, to the last bit, and its exponential against the true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from armlet import Bandit, Policy, kernel
from armlet.environments import FigureA
from armlet.inputs.settings import Ridge
from armlet.kernel import Evidence, Statistics
from armlet.policies import AllDataEpsilonGreedy, ContextualEpsilonGreedy
from armlet.reference import evidence
from armlet.reference.schedule import Reference
from armlet.types import Arm, Bool, Float64
from support.bandits import facts
from support.examples import scaled
from support.in_python import EvidenceInPython
from support.streams import Stream, streams

laws = st.fixed_dictionaries(
    {
        "p": st.floats(0.01, 60),
        "cap": st.sampled_from([1.0, 0.5, 0.07]),
        "floor": st.sampled_from([0.0, 0.02, 0.6, 1.0]),
        "units": st.sampled_from(["as given", "free"]),
    }
)


counts = st.one_of(st.floats(0, 1e6), st.integers(0, 1000).map(float), st.sampled_from([0.0, 1e-300, 1e40]))


@settings(max_examples=scaled(400))
@given(st.lists(counts, min_size=1, max_size=20), st.floats(1e-40, 1e40))
def test_exploration_weights_are_the_same_bits_in_numpy_and_in_the_kernel(n: list[float], q: float) -> None:
    rows = np.array(n)
    ours = evidence.exploration_weights(rows, q)
    np.testing.assert_array_equal(kernel.exploration_weights(rows, q), ours)
    assert ((ours >= 0.0) & (ours <= 1.0)).all()
    assert (ours[rows <= q] == 1.0).all()


def mask(rng: np.random.Generator, n_arms: int, active: Bool) -> Bool:
    some = (rng.random(n_arms) < 0.6) & active
    return some if some.any() else active


def oracle(stream: Stream, policy: ContextualEpsilonGreedy, seed: int) -> Reference:
    shared = {name: getattr(policy, name) for name in ("cap", "floor", "learns_from", "units")}
    return Reference(
        stream.n_arms, stream.dim, float(policy.p), seed, ridge=Ridge.parse(policy.ridge), clock="evidence", **shared
    )


@settings(max_examples=scaled(150))
@given(
    stream=streams(max_dim=6, max_arms=8, work=1500),
    law=laws,
    seed=st.integers(0, 2**64),
    late=st.integers(0, 10**6),
    policy_type=st.sampled_from([ContextualEpsilonGreedy, AllDataEpsilonGreedy, EvidenceInPython]),
)
def test_bandit_plays_the_reference_with_eligible_sets_retired_arms_and_weights(
    stream: Stream, law: dict[str, object], seed: int, late: int, policy_type: type[ContextualEpsilonGreedy]
) -> None:
    policy = policy_type(ridge="1/n", **law)  # type: ignore[arg-type]
    bandit, slow = Bandit(range(stream.n_arms), stream.dim, policy=policy, seed=seed), oracle(stream, policy, seed)
    rng = np.random.default_rng(seed)
    bandit._advance(late)
    for t, (x, rewards) in enumerate(zip(stream.contexts, stream.rewards, strict=True), start=late + 1):
        arm = int(rng.integers(stream.n_arms))
        if rng.random() < 0.1 and (not slow.active[arm] or slow.active.sum() > 1):
            slow.active[arm] = not slow.active[arm]
            (bandit.restore_arm if slow.active[arm] else bandit.retire_arm)(arm)
        eligible = mask(rng, stream.n_arms, slow.active)
        labels = np.flatnonzero(eligible).tolist()
        chances = bandit.predict_proba([x], eligible=labels)[0]
        ours, theirs = bandit.decide(x, eligible=labels), slow.decide(t, x, eligible)
        assert (ours.arm, ours.propensity, ours.explored) == theirs[:3]
        assert ours.exploration_propensity == theirs.exploration_propensity
        assert chances[int(ours.arm)] == ours.propensity
        assert abs(chances.sum() - 1.0) < 1e-12
        weight = float(rng.choice([0.25, 1.0, 3.5]))
        bandit.learn(ours, float(rewards[theirs.arm]), weight=weight)
        if theirs.explored or policy.learns_from == "every step":
            slow.add(theirs.arm, x, float(rewards[theirs.arm]), weight)
    np.testing.assert_array_equal(bandit.state.n, slow.n)


@settings(max_examples=scaled(100))
@given(
    stream=streams(max_dim=6, max_arms=8, work=1500),
    law=laws,
    seed=st.integers(0, 2**64),
    policy_type=st.sampled_from([ContextualEpsilonGreedy, AllDataEpsilonGreedy]),
)
def test_rollout_plays_the_reference(
    stream: Stream, law: dict[str, object], seed: int, policy_type: type[ContextualEpsilonGreedy]
) -> None:
    policy = policy_type(**law)  # type: ignore[arg-type]
    choices = oracle(stream, policy, seed).run(stream.contexts, stream.rewards)
    start = policy.init(stream.n_arms, stream.dim)
    fast = kernel.rollout(stream.contexts, stream.rewards, start=start, rule=policy.rule(), seed=seed)
    assert fast.arms.tolist() == [choice.arm for choice in choices]
    assert fast.explored.tolist() == [choice.explored for choice in choices]
    assert fast.propensities.tolist() == [choice.propensity for choice in choices]


def trained(policy: Policy, n_arms: int, dim: int, seed: int) -> Bandit:
    bandit = Bandit(range(n_arms), dim, policy=policy, seed=seed)
    for x in np.random.default_rng(seed).normal(size=(200, dim)):
        decision = bandit.decide(x)
        bandit.learn(decision, float(x[0] * int(decision.arm)))
    bandit.add_arm("new")
    bandit.retire_arm(0)
    return bandit


@pytest.mark.parametrize("policy_type", [ContextualEpsilonGreedy, AllDataEpsilonGreedy, EvidenceInPython])
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_many_decisions_are_those_made_one_by_one(policy_type: type[ContextualEpsilonGreedy], floor: float) -> None:
    policy = policy_type(p=3.0, cap=0.4, floor=floor)
    one, many = (trained(policy, 5, 3, seed=9) for _ in range(2))
    X = np.random.default_rng(2).normal(size=(300, 3))
    eligible: list[Arm] = [1, 3, 4, "new"]
    batch = many.decide_many(X, eligible=eligible)
    assert [facts(each) for each in batch] == [facts(one.decide(x, eligible=eligible)) for x in X]
    assert batch.exploration_propensities.tolist() == [each.exploration_propensity for each in batch]
    assert {each.arm for each in batch} == set(eligible)


TABLE = FigureA(theta=((1.0, 0.0), (0.0, 1.0), (0.5, 0.5))).table()


@pytest.mark.parametrize("policy_type", [ContextualEpsilonGreedy, AllDataEpsilonGreedy])
def test_simulated_steps_explore_as_rollouts_do(policy_type: type[ContextualEpsilonGreedy]) -> None:
    """The coins are the same, and whether a step explores looks at rows alone: environments make no difference."""
    T, policy = 1500, policy_type(p=12)
    start, rule, at = policy.init(3, 2), policy.rule(), np.arange(1, T + 1)
    assert TABLE is not None
    run = kernel.simulate_steps(
        TABLE, start=start, rule=rule, horizon=T, checkpoints=at, environment_seed=3, policy_seed=4
    )
    slow, rng = Reference(3, 2, 12.0, 4, clock="evidence", learns_from=policy.learns_from), np.random.default_rng(1)
    explored = [slow_step(slow, t, rng.normal(size=2)) for t in range(1, T + 1)]
    if policy.learns_from == "explored steps":
        assert np.diff(run.explored, prepend=0.0).astype(bool).tolist() == explored
        np.testing.assert_array_equal(run.statistics.n, slow.n)
    assert run.statistics.n.sum() == (run.explored[-1] if policy.learns_from == "explored steps" else T)


def slow_step(slow: Reference, t: int, x: Float64) -> bool:
    choice = slow.decide(t, x)
    slow.update(x, choice, 1.0)
    return choice.explored


@pytest.mark.parametrize(("cap", "floor"), [(1.0, 0.0), (0.3, 0.0), (1.0, 0.05)])
def test_events_have_the_law_of_steps(cap: float, floor: float) -> None:
    policy, regret = ContextualEpsilonGreedy(p=12, cap=cap, floor=floor), {}
    assert TABLE is not None
    for name, simulation in {"steps": kernel.simulate_steps, "events": kernel.simulate_events}.items():
        play: Any = simulation
        runs = [
            play(
                TABLE,
                start=policy.init(3, 2),
                rule=policy.rule(),
                horizon=1000,
                checkpoints=np.array([1000]),
                environment_seed=1000 + seed,
                policy_seed=seed,
            )
            for seed in range(400)
        ]
        regret[name] = [float(run.regret[0]) for run in runs], [float(run.explored[0]) for run in runs]
    for one, other in zip(*regret.values(), strict=True):
        assert stats.ks_2samp(one, other).pvalue > 0.01  # seeds are fixed: it passes or it does not


def test_events_refuse_a_rule_that_learns_from_every_step() -> None:
    policy = AllDataEpsilonGreedy(p=12)
    assert TABLE is not None
    how = {"horizon": 10, "checkpoints": np.array([10]), "environment_seed": 1, "policy_seed": 2}
    with pytest.raises(ValueError, match="learns from every step, so nothing can be jumped over; use simulate_steps"):
        kernel.simulate_events(TABLE, start=policy.init(3, 2), rule=policy.rule(), **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "named"),
    [({"p": 0.0}, "p is 0"), ({"cap": 0.0}, "cap is 0"), ({"cap": 1.5}, "cap is 1.5"), ({"floor": -0.1}, "floor is")],
)
def test_kernel_names_what_is_wrong(change: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Evidence(**{"p": 1.0, "cap": 1.0, "floor": 0.0, "learn_always": False, **change})  # type: ignore[arg-type]


def test_state_counts_active_arms_through_all_changes() -> None:
    state = Statistics(3, 1)
    state.set_active(1, False)
    assert (state.n_active, state.active.tolist()) == (2, [True, False, True])
    state.add_arm()
    assert (state.copy().n_active, state.copy().active.tolist()) == (3, [True, False, True, True])
    state.set_active(1, False)  # again
    assert state.n_active == 3
    state.remove_arm(1)
    assert (state.n_active, state.active.tolist()) == (3, [True, True, True])
    with pytest.raises(IndexError, match="arm is 3 but there are 3 arms"):
        state.set_active(3, False)


def records(n: list[float]) -> Float64:
    out = np.zeros((len(n), 5))
    out[:, 0] = out[:, 4] = n
    return out


def test_wants_follow_the_sums_whatever_changes_them() -> None:
    """Weights are kept from step to step: every way to change n must renew them."""
    policy = ContextualEpsilonGreedy(p=6, units="as given")
    x = np.ones(1)
    bandit = Bandit(range(3), 1, policy=policy, seed=1)

    def check() -> None:
        said = bandit.predict_proba([[1.0]])[0]
        np.testing.assert_array_equal(said, policy.probabilities(bandit.state, bandit.t + 1, x, bandit.state.active))

    check()
    bandit.state.restore(records([9.0, 20.0, 3.0]))
    check()
    decision = bandit.decide(x)
    bandit.learn(decision, 1.0, weight=7.0)
    check()
    if decision.explored:
        bandit.forget(decision, 1.0)
    check()
    bandit.retire_arm(2)
    check()
    bandit.restore_arm(2)
    other = Bandit(range(3), 1, policy=policy, seed=2)
    other.state.restore(records([4.0, 0.0, 30.0]))
    bandit.merge(other)
    check()
    bandit.remove_arm(0)
    check()
    assert bandit.state.n_arms == 2
