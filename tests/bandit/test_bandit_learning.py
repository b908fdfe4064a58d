"""Learning in all its ways: replay, merge, forget, correct, logs, tables; and refusals that change nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet import (
    Algorithm1,
    AllDataEpsilonGreedy,
    ArmletError,
    Bandit,
    Decision,
    Policy,
    Uniform,
)
from armlet.errors import DecisionError, MergeError
from armlet.kernel import coins
from armlet.policies import Oracle, ScheduledEpsilonGreedy
from armlet.types import Arm, Float64, Interaction
from support.bandits import facts, make, play, sizes_of_sums, snapshot
from support.examples import scaled
from support.in_python import InPython
from support.streams import Stream, make_stream, streams

FEATURES = ["age", "height", "income"]
numbers = st.floats(-100, 100)
weights = st.floats(0.01, 100)


# ---- replay

REPLAYED: list[Policy] = [
    Algorithm1(p=3),
    Algorithm1(p=5.5, ridge=0.5, warmup="uniform"),
    AllDataEpsilonGreedy(p=3, ridge="1/n"),
    Uniform(),
    InPython(p=3),
    Oracle(theta=[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]]),
]


def test_interactions_from_another_process_fold_in_as_they_are() -> None:
    """An array that was pickled has a dtype of its own, equal to float64 but another object."""
    bandit = make(2, 2)
    decision = bandit.decide([1.0, 2.0])
    event = Interaction(t=1, x=decision.x, arm=int(decision.arm), reward=1.0)
    state = bandit.policy.init(2, 2)
    assert isinstance(state, armlet.Statistics)
    bandit.policy.update(state, pickle.loads(pickle.dumps(event)))
    bandit.learn(decision, 1.0)
    assert state.records().tobytes() == bandit.state.records().tobytes()


# ---- merging


def labelled(labels: list[Arm], dim: int, **settings: Any) -> Bandit:
    policy = settings.pop("policy", ScheduledEpsilonGreedy(p=max(9, len(labels)), units="free"))
    return Bandit(labels, dim, policy=policy, **{"seed": 1, **settings})


@settings(max_examples=scaled(60))
@given(
    stream=streams(max_dim=6, max_arms=1, work=200),
    places=st.tuples(
        *[st.permutations(["a", "b", 3, 4]).flatmap(lambda p: st.integers(1, 4).map(lambda n: p[:n]))] * 2
    ),
    kind=st.integers(0, 2),
    data=st.data(),
)
def test_sum_of_two_bandits_equals_learning_everything_in_one(
    stream: Stream, places: tuple[list[Arm], list[Arm]], kind: int, data: st.DataObject
) -> None:
    """With arms that overlap, differ, and come in different orders."""
    policy: Policy = [ScheduledEpsilonGreedy(p=4), Algorithm1(p=4, ridge=1.0), InPython(p=4)][kind]
    parts = [labelled(labels, stream.dim, policy=policy, seed=seed) for seed, labels in enumerate(places)]
    union = list(dict.fromkeys([*places[0], *places[1]]))
    whole, rows = labelled(union, stream.dim, policy=policy), []
    for x, rewards in zip(stream.contexts, stream.rewards, strict=True):
        part, weight = data.draw(st.sampled_from(parts)), data.draw(weights)
        arm, explored = data.draw(st.sampled_from(part.arms)), data.draw(st.booleans())
        for bandit in (part, whole):
            bandit.partial_fit([x], [arm], rewards, explored=explored, weights=[weight])
        part.decide(x)
        if explored or kind == 0:
            rows.append((x, union.index(arm), float(rewards[0]), weight))
    before = [snapshot(part) for part in parts]
    total = parts[0] + parts[1]
    assert [snapshot(part) for part in parts] == before
    assert (total.arms, total.t) == (union, parts[0].t + parts[1].t)
    # N <= 200 additions, in another order: 200 * 2^-53 < 1e-12 of the sum of their sizes
    scale = sizes_of_sums(policy, len(union), stream.dim, rows)
    assert (np.abs(total.state.records() - whole.state.records()) <= 1e-12 * scale).all()
    if abs(stream.contexts).max() < 1e3:  # the ridge keeps M well conditioned: below 1e4 here
        np.testing.assert_allclose(total.state.estimates(), whole.state.estimates(), rtol=1e-9, atol=1e-9)
    parts[0].merge(parts[1])
    assert snapshot(parts[0]) == snapshot(total)


def test_sum_decides_with_the_first_seed_and_both_clocks() -> None:
    a, b = labelled(["x", "y"], 2, seed=5), labelled(["y", "x"], 2, seed=6)
    play(a, make_stream(40, 2, 2, seed=1))
    play(b, make_stream(30, 2, 2, seed=2))
    total, backwards = a + b, b + a
    assert (total.t, total.seed, total.arms) == (70, 5, ["x", "y"])
    assert (backwards.t, backwards.seed, backwards.arms) == (70, 6, ["y", "x"])
    np.testing.assert_array_equal(total.state.records(), backwards.state.records()[::-1])  # x + y is y + x
    decision = total.decide([1.0, 1.0])
    assert decision.t == 71
    total.learn(decision, 1.0)
    assert (a.t, b.t) == (40, 30)


def test_retired_arms_of_a_sum() -> None:
    """Whatever may still be played on the left may be played; new arms come as they were."""
    a, b = labelled(["both", "left", "shared"], 1), labelled(["shared", "both", "old", "new"], 1)
    a.retire_arm("both")
    b.retire_arm("both")
    b.retire_arm("shared")
    b.retire_arm("old")
    assert (a + b).arms.retired == ["both", "old"]
    assert (a + b).arms == ["both", "left", "shared", "old", "new"]


def test_decisions_of_both_parts_may_be_learned_by_the_sum() -> None:
    a, b = labelled(["x", "y"], 1, seed=5), labelled(["y", "z"], 1, seed=6)
    pending = [a.decide([1.0]), a.decide([1.0]), b.decide([1.0]), b.decide([1.0])]
    total = a + b
    total.learn_many(pending, [1.0, 1.0, 1.0, 1.0])
    assert dict(zip(total.arms, total.state.n.tolist(), strict=True)) == {"x": 1.0, "y": 2.0, "z": 1.0}


def test_bandits_with_the_same_seed_have_decisions_with_the_same_id_that_all_count() -> None:
    a, b = labelled(["x"], 1, seed=5), labelled(["x"], 1, seed=5)
    pending = [a.decide([1.0]), b.decide([2.0])]  # two workers that started from one file
    total = a + b
    total.learn_many(pending, [1.0, 1.0])
    assert total.state.n.tolist() == [2.0]


def test_bandit_may_be_added_to_itself() -> None:
    bandit = labelled(["x", "y"], 2)
    play(bandit, make_stream(20, 2, 2, seed=1))
    records = bandit.state.records()
    np.testing.assert_array_equal((bandit + bandit).state.records(), 2 * records)
    bandit.merge(bandit)
    np.testing.assert_array_equal(bandit.state.records(), 2 * records)
    assert bandit.t == 40


BASE: dict[str, Any] = {
    "arms": ["x", "y"],
    "policy": Algorithm1(p=4),
    "features": ["u", "v"],
    "objective": "max",
    "normalize": None,
    "seed": 1,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("policy", Algorithm1(p=5)),
        ("policy", Algorithm1(p=4, ridge="1/n")),
        ("policy", AllDataEpsilonGreedy(p=4)),
        ("policy", InPython(p=4)),
        ("features", ["v", "u"]),
        ("features", None),
        ("features", ["u", "v", "w"]),
        ("objective", "min"),
        ("normalize", "l2"),
    ],
)
def test_bandits_of_different_kinds_do_not_add_up(name: str, value: object) -> None:
    changed = {**BASE, name: value}
    ours, theirs = Bandit(**BASE), Bandit(**changed, dim=2 if value is None else None)
    for bandit in (ours, theirs):
        bandit.decide([1.0] * bandit.settings.dim)
    before = snapshot(ours), snapshot(theirs)
    what = "dim" if name == "features" and value == ["u", "v", "w"] else name
    for attempt in (lambda: ours + theirs, lambda: theirs + ours, lambda: ours.merge(theirs)):
        with pytest.raises(MergeError, match=f"{what} is .* here and .* there"):
            attempt()
        assert (snapshot(ours), snapshot(theirs)) == before


def test_sum_with_too_many_arms_for_the_warmup_is_refused_whole() -> None:
    policy = Algorithm1(p=3)
    a, b = labelled(["a", "b", "c"], 1, policy=policy), labelled(["c", "d"], 1, policy=policy)
    before = snapshot(a)
    with pytest.raises(ValueError, match="use p >= 4"):
        a.merge(b)
    with pytest.raises(ValueError, match="use p >= 4"):
        a + b
    assert snapshot(a) == before


def test_nothing_but_a_bandit_is_added() -> None:
    bandit = labelled(["a"], 1)
    with pytest.raises(TypeError):
        bandit + 3  # type: ignore[operator]
    with pytest.raises((TypeError, MergeError)):
        bandit.merge(3)  # type: ignore[arg-type]


# ---- forgetting and correcting


@settings(max_examples=scaled(80))
@given(
    base=streams(max_dim=5, max_arms=3, work=600),
    ridge=st.sampled_from(["paper", "1/n", 0.5]),
    extra=st.integers(1, 60),
    data=st.data(),
)
def test_forgetting_returns_the_estimates(base: Stream, ridge: Any, extra: int, data: st.DataObject) -> None:
    policy = ScheduledEpsilonGreedy(p=base.n_arms, ridge=ridge)
    X = base.contexts / max(1.0, np.abs(base.contexts).max())  # of order 1, so that 1e-9 means the same everywhere
    bandit = Bandit(range(base.n_arms), base.dim, policy=policy, seed=2)
    for x, rewards in zip(X, base.rewards, strict=True):
        bandit.learn(decision := bandit.decide(x), float(rewards[int(decision.arm)]))
    before = bandit.state.estimates()
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    decisions = [bandit.decide(x) for x in rng.normal(size=(extra, base.dim))]
    rewards, sizes = rng.normal(size=extra).tolist(), rng.choice([1.0, 2.0, 0.3], size=extra).tolist()
    for decision, reward, weight in zip(decisions, rewards, sizes, strict=True):
        bandit.learn(decision, reward, weight=weight)
    for row in rng.permutation(extra).tolist():
        bandit.forget(decisions[row], rewards[row])
    # 120 roundings of sums of size 100 leave 1e-12; the ridge is at least 0.5, but see the next two for n = 0
    known = bandit.state.n > 0.5
    np.testing.assert_allclose(bandit.state.estimates()[known], before[known], rtol=0, atol=1e-9)


@settings(max_examples=scaled(60))
@given(stream=streams(max_dim=6, max_arms=3, work=600), seed=st.integers(0, 99))
def test_forgetting_everything_of_unit_weight_returns_to_exactly_zero(stream: Stream, seed: int) -> None:
    bandit = Bandit(range(stream.n_arms), stream.dim, policy=AllDataEpsilonGreedy(p=stream.n_arms), seed=2)
    decisions = play(bandit, stream)
    for row in np.random.default_rng(seed).permutation(len(decisions)):
        decision = decisions[row]
        assert decision.reward is not None
        bandit.forget(decision, decision.reward)
        assert not decision.learned
    assert not bandit.state.n.any()
    assert not bandit.state.estimates().any()
    assert not bandit.predict_expectations(stream.contexts).any()


@pytest.mark.parametrize("ridge", ["paper", "1/n", 0.5])
@pytest.mark.parametrize("sizes", [[0.1, 0.2, 0.3], [0.1, 0.7, 0.3], [0.7, 0.1, 1.3, 2.9, 0.01]], ids=str)
def test_forgetting_everything_of_any_weight_returns_the_estimates_to_zero(ridge: Any, sizes: list[float]) -> None:
    """0.1 + 0.2 + 0.3 - 0.1 - 0.2 - 0.3 is 1.1e-16, whose root, the paper's ridge, is 1e-8: b must not outweigh it."""
    bandit = Bandit([0], 1, policy=AllDataEpsilonGreedy(p=1, ridge=ridge), seed=2)
    decisions = [bandit.decide([1.0]) for _ in sizes]
    for decision, weight in zip(decisions, sizes, strict=True):
        bandit.learn(decision, 1.0, weight=weight)
    for decision in decisions:
        bandit.forget(decision, 1.0)
    np.testing.assert_allclose(bandit.state.estimates(), 0.0, rtol=0, atol=1e-9)


@settings(max_examples=scaled(60))
@given(st.lists(st.floats(-3, 9), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_whatever_was_learned_can_be_forgotten_in_any_order(logs: list[float], shuffle: Any) -> None:
    """Weights from 0.001 to 10^9: the rest of n that rounding leaves is no reason to refuse."""
    bandit = Bandit([0], 1, policy=AllDataEpsilonGreedy(p=1), seed=2)
    decisions = [bandit.decide([1.0]) for _ in logs]
    for decision, log10 in zip(decisions, logs, strict=True):
        bandit.learn(decision, 1.0, weight=10.0**log10)
    shuffle.shuffle(decisions)
    for decision in decisions:
        bandit.forget(decision, 1.0)
        assert np.isfinite(bandit.state.estimates()).all()
        bandit.decide([1.0])
    # 24 roundings of sums below 1.2e10
    assert abs(bandit.state.n[0]) < 1e-4


def test_bandit_that_forgot_heavy_rewards_can_be_saved_and_loaded(tmp_path: Path) -> None:
    """The rest of n that rounding leaves may be negative, and larger than 1e-9 where weights are large."""
    bandit = Bandit([0], 1, policy=AllDataEpsilonGreedy(p=1), seed=2)
    sizes = (np.random.default_rng(0).random(6) * 1e9).tolist()
    decisions = [bandit.decide([1.0]) for _ in sizes]
    for decision, weight in zip(decisions, sizes, strict=True):
        bandit.learn(decision, 1.0, weight=weight)
    for decision in decisions:
        bandit.forget(decision, 1.0)
    bandit.save(tmp_path / "model.armlet")
    assert snapshot(armlet.load(tmp_path / "model.armlet")) == snapshot(bandit)


def test_forgotten_decision_may_be_learned_again() -> None:
    bandit, twin = make(2, 1), make(2, 1)
    decision, same = bandit.decide([2.0]), twin.decide([2.0])
    bandit.learn(decision, 0.5, weight=4.0)
    bandit.forget(decision, 0.5)
    assert (decision.learned, decision.reward) == (False, None)
    bandit.learn(decision, 0.25)
    twin.learn(same, 0.25)
    assert snapshot(bandit) == snapshot(twin)
    assert facts(decision) == facts(same)


@settings(max_examples=scaled(60))
@given(stream=streams(max_dim=6, max_arms=4, work=1000), objective=st.sampled_from(["max", "min"]), data=st.data())
def test_correcting_equals_having_learned_the_new_reward(stream: Stream, objective: Any, data: st.DataObject) -> None:
    policy = ScheduledEpsilonGreedy(p=stream.n_arms)
    late, right = (
        Bandit(range(stream.n_arms), stream.dim, policy=policy, objective=objective, seed=2) for _ in range(2)
    )
    rows = []
    for x in stream.contexts:
        decision, same = late.decide(x), right.decide(x)
        if facts(decision)[:5] != facts(same)[:5]:
            break  # estimates in their last bits apart may part ways at a tie
        first, *others = data.draw(st.lists(numbers, min_size=1, max_size=3))
        weight = data.draw(st.just(1.0) | weights)
        late.learn(decision, first, weight=weight)
        for old, new in zip([first, *others], others, strict=False):
            late.correct(decision, old, new)
        right.learn(same, [first, *others][-1], weight=weight)
        assert (decision.reward, decision.weight) == (same.reward, same.weight)
        rows += [(x, int(decision.arm), reward, weight) for reward in (first, *others)]
    # each correction rounds a handful of times; N <= 600 of them stay below 1e-12 of the sizes that were added
    scale = sizes_of_sums(policy, stream.n_arms, stream.dim, rows)
    assert (np.abs(late.state.records() - right.state.records()) <= 1e-12 * scale).all()


def test_correcting_or_forgetting_an_exploited_decision_leaves_the_sums_alone() -> None:
    bandit = make(3, 2, p=3)
    decisions = play(bandit, make_stream(200, 2, 3, seed=1))
    exploited = next(decision for decision in decisions if not decision.explored)
    records, reward = bandit.state.records(), exploited.reward
    assert reward is not None
    bandit.correct(exploited, reward, 100.0)
    bandit.forget(exploited, 100.0)
    np.testing.assert_array_equal(bandit.state.records(), records)


# ---- logs


def log(n: int, dim: int, n_arms: int, seed: int) -> tuple[Float64, list[Arm], Float64, Float64, list[bool]]:
    rng = np.random.default_rng(seed)
    arms: list[Arm] = rng.integers(0, n_arms, size=n).tolist()
    return rng.normal(size=(n, dim)), arms, rng.normal(size=n), rng.random(n) + 0.1, (rng.random(n) < 0.5).tolist()


@pytest.mark.parametrize("policy", REPLAYED, ids=str)
@pytest.mark.parametrize("n", [0, 1, 300, 9000])
def test_log_in_one_call_equals_the_log_row_by_row(policy: Policy, n: int) -> None:
    X, arms, rewards, sizes, explored = log(n, 2, 3, seed=n)
    once, rows = (Bandit(range(3), 2, policy=policy, objective="min", seed=1) for _ in range(2))
    once.partial_fit(X, arms, rewards, weights=sizes, explored=explored)
    for i in range(n):
        rows.partial_fit(X[i : i + 1], [arms[i]], [rewards[i]], weights=[sizes[i]], explored=[explored[i]])
    assert snapshot(once) == snapshot(rows)


@pytest.mark.parametrize("policy", REPLAYED[:5], ids=str)
def test_log_of_own_decisions_equals_learning_them(policy: Policy) -> None:
    stream = make_stream(300, 2, 3, seed=4)
    live = Bandit(range(3), 2, policy=policy, seed=1)
    decisions = play(live, stream)
    logged = Bandit(range(3), 2, policy=policy, seed=1)
    logged.partial_fit(
        [decision.x for decision in decisions],
        [decision.arm for decision in decisions],
        [float(decision.reward or 0.0) for decision in decisions],
        explored=[decision.explored for decision in decisions],
    )
    assert live.state.records().tobytes() == logged.state.records().tobytes()
    assert (live.t, logged.t) == (300, 300)


def test_explored_says_which_steps_algorithm_1_learns_from() -> None:
    X, arms, rewards, sizes, explored = log(50, 2, 3, seed=3)
    masked, picked = make(3, 2), make(3, 2)
    masked.partial_fit(X, arms, rewards, explored=explored, weights=sizes, steps=50)
    rows = np.flatnonzero(explored)
    some = [arms[row] for row in rows]
    picked.partial_fit(X[rows], some, rewards[rows], explored=True, weights=sizes[rows], steps=50)
    assert snapshot(masked) == snapshot(picked)
    nothing = make(3, 2)
    nothing.partial_fit(X, arms, rewards, explored=False)
    assert not nothing.state.records().any()


@pytest.mark.parametrize("policy", [Algorithm1(p=3), InPython(p=3)])
@pytest.mark.parametrize("verb", ["partial_fit", "fit"])
def test_explored_is_required_where_only_explored_steps_count(policy: Policy, verb: str) -> None:
    X, arms, rewards, *_ = log(50, 2, 3, seed=3)
    bandit = Bandit(range(3), 2, policy=policy, seed=1)
    before = snapshot(bandit)
    with pytest.raises(ValueError, match=r"explored is missing.*explored=True if all were"):
        getattr(bandit, verb)(X, arms, rewards)
    assert snapshot(bandit) == before


@pytest.mark.parametrize("policy", [AllDataEpsilonGreedy(p=3), Uniform()])
def test_explored_is_optional_where_every_step_counts(policy: Policy) -> None:
    X, arms, rewards, sizes, explored = log(50, 2, 3, seed=3)
    without, with_it = (Bandit(range(3), 2, policy=policy, seed=1) for _ in range(2))
    without.partial_fit(X, arms, rewards, weights=sizes)
    with_it.partial_fit(X, arms, rewards, weights=sizes, explored=explored)
    assert snapshot(without) == snapshot(with_it)
    assert without.state.n.sum() == pytest.approx(sizes.sum(), rel=1e-12)


@pytest.mark.parametrize("policy", REPLAYED, ids=str)
def test_fit_forgets_everything_first(policy: Policy) -> None:
    X, arms, rewards, sizes, explored = log(80, 2, 3, seed=5)
    bandit, fresh = (Bandit(range(3), 2, policy=policy, seed=1) for _ in range(2))
    bandit.retire_arm(2)
    pending = bandit.decide([1.0, 2.0])
    for _ in range(2):
        bandit.partial_fit(X, arms, rewards, explored=True)
        bandit.fit(X, arms, rewards, weights=sizes, explored=explored)
    fresh.fit(X, arms, rewards, weights=sizes, explored=explored)
    assert bandit.state.records().tobytes() == fresh.state.records().tobytes()
    np.testing.assert_array_equal(bandit.state.estimates(), fresh.state.estimates())
    assert (bandit.t, bandit.arms.retired) == (1 + 4 * 80, [2])  # what was decided stays decided, and every row counts
    bandit.learn(pending, 1.0)


# ---- tables and mappings


def shuffled(X: Float64, seed: int) -> dict[str, Float64]:
    order = np.random.default_rng(seed).permutation(len(FEATURES))
    return {FEATURES[j]: X[:, j] for j in order}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("normalize", [None, "l2"])
def test_tables_with_shuffled_columns_give_the_same_as_matrices(frame: Callable[..., Any], normalize: Any) -> None:
    rng = np.random.default_rng(7)
    plain, tabled = (
        Bandit(["a", "b"], features=FEATURES, policy=Algorithm1(p=20), normalize=normalize, seed=1) for _ in range(2)
    )
    for part in range(4):
        X = rng.normal(size=(40, 3))
        table, arms, rewards = frame(shuffled(X, part)), rng.choice(["a", "b"], size=40), rng.normal(size=40)
        plain.partial_fit(X, arms, rewards, explored=True)
        column = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": pa.array}[
            frame.__module__.split(".")[0].rstrip("lib_")
        ]
        tabled.partial_fit(table, column(arms.tolist()), column(rewards.tolist()), explored=True)
        ours, theirs = plain.decide_many(X), tabled.decide_many(table)
        assert [facts(ours[row]) for row in range(40)] == [facts(theirs[row]) for row in range(40)]
        plain.learn_many(ours, rewards)
        tabled.learn_many(theirs, column(rewards.tolist()))
        assert snapshot(plain) == snapshot(tabled)
        np.testing.assert_array_equal(plain.predict(X), tabled.predict(table))
        np.testing.assert_array_equal(plain.predict_proba(X), tabled.predict_proba(table))
        np.testing.assert_array_equal(plain.predict_expectations(X), tabled.predict_expectations(table))
    plain.fit(X, arms, rewards, explored=True)
    tabled.fit(table, arms, rewards, explored=True)
    assert snapshot(plain) == snapshot(tabled)


def test_mappings_by_name_give_the_same_as_rows() -> None:
    rng = np.random.default_rng(8)
    plain, named = (Bandit(["a", "b"], features=FEATURES, policy=AllDataEpsilonGreedy(p=5), seed=1) for _ in range(2))
    for x in rng.normal(size=(50, 3)):
        mapping = dict(zip(reversed(FEATURES), reversed(x.tolist()), strict=True))
        ours, theirs = plain.decide(x), named.decide(mapping)
        assert facts(ours) == facts(theirs)
        plain.learn(ours, 1.0)
        named.learn(theirs, 1.0)
        assert facts(plain.decide_many([x])[0]) == facts(named.decide_many([mapping])[0])
    assert snapshot(plain) == snapshot(named)


def test_missing_and_extra_names_are_told() -> None:
    bandit = Bandit(["a", "b"], features=FEATURES, policy=Uniform(), seed=1)
    wrong = {"age": 1.0, "hight": 2.0, "income": 3.0}
    with pytest.raises(ValueError, match="lacks 'height' and has the unknown 'hight'"):
        bandit.decide(wrong)
    with pytest.raises(ValueError, match="lacks 'height' and has the unknown 'hight'"):
        bandit.decide_many(pd.DataFrame([wrong]))
    with pytest.raises(TypeError, match="no feature names"):
        make(2, 3).decide({"age": 1.0, "height": 2.0, "income": 3.0})
    assert bandit.t == 0


# ---- unit length


def learned_context(bandit: Bandit, x: list[float]) -> Float64:
    """What a bandit without rows learns of a context with reward 1: b is the context itself."""
    bandit.partial_fit([x], [0], [1.0], explored=True)
    b: Float64 = bandit.state.b[0]
    return b


@settings(max_examples=scaled(80))
@given(st.lists(st.floats(-1e40, 1e40).filter(lambda v: v == 0 or abs(v) > 1e-40), min_size=1, max_size=12))
def test_normalised_contexts_have_unit_length_and_zero_stays(x: list[float]) -> None:
    bandit = make(2, len(x), normalize="l2")
    alone, together = bandit.decide(x), bandit.decide_many([x])[0]
    assert alone.x.tolist() == together.x.tolist() == x
    unit = learned_context(bandit, x)
    length = np.linalg.norm(unit)
    # a sum of d <= 12 squares, a root and a division: some 20 roundings of 2^-53
    assert length == 0 if not any(x) else abs(length - 1) < 1e-14
    assert (np.sign(unit) == np.sign(x)).all() or min(abs(v) for v in x if v) < 1e-200


@pytest.mark.parametrize("size", [1e-155, 1e-160, 1e-165, 1e-200, 1e-300])
def test_tiny_contexts_have_unit_length_too(size: float) -> None:
    """Their squares underflow."""
    x = learned_context(make(2, 2, normalize="l2"), [3 * size, 4 * size])
    np.testing.assert_allclose(x, [0.6, 0.8], rtol=1e-12)


def test_normalised_bandit_learns_what_it_saw() -> None:
    X, arms, rewards, *_ = log(200, 3, 2, seed=6)
    X[::9] = 0.0
    scaled, unit = make(2, 3, p=9, normalize="l2"), make(2, 3, p=9)
    lengths = np.sqrt((X[:, 0] * X[:, 0] + X[:, 1] * X[:, 1]) + X[:, 2] * X[:, 2])  # in the order of the features
    U = X / np.where(lengths > 0, lengths, 1.0)[:, None]
    for x, u, reward in zip(X, U, rewards.tolist(), strict=True):
        ours, theirs = scaled.decide(x), unit.decide(u)
        assert (facts(ours)[:5], ours.tag) == (facts(theirs)[:5], theirs.tag)
        assert (ours.x.tolist(), theirs.x.tolist()) == (x.tolist(), u.tolist())
        scaled.learn(ours, reward)
        unit.learn(theirs, reward)
    for bandit, contexts in ((scaled, X), (unit, U)):
        bandit.partial_fit(contexts, arms, rewards, explored=True)
    assert snapshot(scaled) == snapshot(unit)
    np.testing.assert_array_equal(scaled.predict_proba(X), unit.predict_proba(U))
    np.testing.assert_array_equal(scaled.predict_expectations(X), unit.predict_expectations(U))


def test_normalisation_is_off_by_default_and_kept_in_the_file(tmp_path: Path) -> None:
    plain, scaled = make(2, 2), make(2, 2, normalize="l2")
    assert (plain.settings.normalize, scaled.settings.normalize) == (None, "l2")
    assert plain.decide([3.0, 4.0]).x.tolist() == [3.0, 4.0]
    for bandit in (plain, scaled):
        bandit.save(tmp_path / "model.armlet")
        again = armlet.load(tmp_path / "model.armlet")
        assert again.settings.normalize == bandit.settings.normalize
        assert again.decide([3.0, 4.0]).x.tolist() == bandit.decide([3.0, 4.0]).x.tolist()


def test_unknown_scaling_or_objective_is_refused() -> None:
    with pytest.raises(ValueError, match="normalize is 'l1'; choose one of None, 'l2'"):
        make(2, 2, normalize="l1")
    with pytest.raises(ValueError, match="objective is 'best'; choose one of 'max', 'min'"):
        make(2, 2, objective="best")


# ---- refused calls change nothing

NAN, INF = float("nan"), float("inf")
GOOD_X = [[1.0, 2.0], [3.0, 4.0]]
BAD_MATRICES: list[tuple[str, Any]] = [
    ("nan in the last row", [[1.0, 2.0], [3.0, NAN]]),
    ("infinite", [[1.0, 2.0], [INF, 4.0]]),
    ("too large", [[1.0, 2.0], [1e101, 4.0]]),
    ("wrong length", [[1.0, 2.0, 3.0]] * 2),
    ("ragged", [[1.0, 2.0], [3.0]]),
    ("string", [[1.0, 2.0], [3.0, "4"]]),
    ("none", [[1.0, 2.0], [3.0, None]]),
    ("complex", np.ones((2, 2)) * 1j),
    ("one row", [1.0, 2.0]),
    ("a number", 3.0),
    ("nothing", None),
]
BAD_REWARDS: list[tuple[str, Any]] = [
    ("nan", [1.0, NAN]),
    ("infinite", [1.0, -INF]),
    ("too large", [1.0, 1e101]),
    ("short", [1.0]),
    ("long", [1.0, 2.0, 3.0]),
    ("string", [1.0, "2"]),
    ("none", [1.0, None]),
    ("a number", 1.0),
]
BAD_WEIGHTS: list[tuple[str, Any]] = [*BAD_REWARDS, ("zero", [1.0, 0.0]), ("negative", [1.0, -1.0])]
BAD_ARMS: list[tuple[str, Any]] = [
    ("unknown", [0, 7]),
    ("unknown string", [0, "1"]),
    ("float", [0, 1.0]),
    ("bool", [0, True]),
    ("none", [0, None]),
    ("short", [0]),
    ("a number", 0),
]
BAD_COINS: list[tuple[str, Any]] = [
    ("neither true nor false", [True, 2]),
    ("short", [True]),
    ("string", ["yes", "no"]),
    ("nan", [1.0, NAN]),
]

BAD_NUMBERS: list[tuple[str, Any]] = [
    ("nan", NAN),
    ("infinite", INF),
    ("too large", 1e101),
    ("string", "1"),
    ("none", None),
    ("list", [1.0]),
]
COLUMNS = {"rewards": BAD_REWARDS, "weights": BAD_WEIGHTS, "arms": BAD_ARMS, "explored": BAD_COINS}


def foreign(
    *, arm: Arm = 0, x: list[float] | None = None, reward: float | None = None, weight: float = 1.0
) -> Decision:
    """A decision that a bandit of seed 0 could have made, and did not."""
    return Decision.restore(f"12-{coins(0, 12).mark:016x}", arm, 0.5, True, x or [1.0, 2.0], reward, weight)


def stranger(**what: Any) -> Callable[[Decision, Decision], Decision]:
    return lambda _pending, _done: foreign(**what)


def pending(pending: Decision, _done: Decision) -> Decision:
    return pending


def done(_pending: Decision, done: Decision) -> Decision:
    return done


Case = tuple[str, str, tuple[Any, ...], dict[str, Any]]


def case(why: str, verb: str, *given: Any, **named: Any) -> Case:
    """Describe a call to be refused; functions among its arguments give decisions of the bandit at hand."""
    return f"{verb}: {why}", verb, given, named


def log_cases(verb: str) -> list[Case]:
    good: dict[str, Any] = {"arms": [0, 1], "rewards": [1.0, 2.0], "explored": True}
    return [
        *[case(f"{why} context", verb, X, **good) for why, X in BAD_MATRICES],
        *[case(f"{why} {name}", verb, GOOD_X, **{**good, name: bad}) for name in COLUMNS for why, bad in COLUMNS[name]],
    ]


CASES: list[Case] = [
    *[case(why, "decide", X[-1]) for why, X in BAD_MATRICES if isinstance(X, list) and why != "one row"],
    *[case(why, "decide_many", X) for why, X in BAD_MATRICES],
    case("nothing eligible", "decide", [1.0, 2.0], eligible=[]),
    case("nothing eligible", "decide_many", GOOD_X, eligible=[]),
    *log_cases("partial_fit"),
    *log_cases("fit"),
    *[case(f"{why} rewards", "learn_many", [pending, stranger()], bad) for why, bad in BAD_REWARDS],
    *[case(f"{why} weights", "learn_many", [pending, stranger()], [1.0, 1.0], weights=bad) for why, bad in BAD_WEIGHTS],
    case("one learned already", "learn_many", [pending, done], [1.0, 1.0]),
    case("one twice", "learn_many", [pending, pending], [1.0, 1.0]),
    case("no decision", "learn_many", [pending, 3], [1.0, 1.0]),
    case("unknown arm", "learn_many", [pending, stranger(arm=7)], [1.0, 1.0]),
    case("another dim", "learn_many", [pending, stranger(x=[1.0])], [1.0, 1.0]),
    *[case(why, "learn", pending, bad) for why, bad in BAD_NUMBERS],
    *[case(f"{why} weight", "learn", pending, 1.0, weight=bad) for why, bad in BAD_NUMBERS],
    case("zero weight", "learn", pending, 1.0, weight=0.0),
    case("negative weight", "learn", pending, 1.0, weight=-1.0),
    case("twice", "learn", done, 1.0),
    case("no decision", "learn", 3, 1.0),
    case("without reward", "learn", pending),
    case("unknown arm", "learn", stranger(arm=7), 1.0),
    case("another dim", "learn", stranger(x=[1.0]), 1.0),
    *[case(f"to {why}", "correct", done, 0.5, bad) for why, bad in BAD_NUMBERS],
    *[case(f"from {why}", "correct", done, bad, 1.0) for why, bad in BAD_NUMBERS],
    case("the wrong reward", "correct", done, 0.25, 1.0),
    case("before learning", "correct", pending, 0.5, 1.0),
    case("unknown arm", "correct", stranger(arm=7, reward=1.0), 1.0, 2.0),
    case("another dim", "correct", stranger(x=[1.0], reward=1.0), 1.0, 2.0),
    *[case(why, "forget", done, bad) for why, bad in BAD_NUMBERS],
    case("the wrong reward", "forget", done, 0.25),
    case("before learning", "forget", pending, 0.5),
    case("unknown arm", "forget", stranger(arm=7, reward=1.0), 1.0),
    case("again", "add_arm", 1),
    case("float", "add_arm", 1.5),
    case("bool", "add_arm", True),
    case("beyond p", "add_arm", "new"),
    case("another kind", "merge", lambda _pending, _done: make(3, 2, p=50)),
    case("a number", "merge", 3),
]


@pytest.mark.parametrize(("verb", "given", "named"), [call for _, *call in CASES], ids=[name for name, *_ in CASES])
@pytest.mark.parametrize("policy", [Algorithm1(p=3.5), InPython(p=3.5)], ids=["compiled", "python"])
def test_refused_call_changes_nothing(verb: str, given: tuple[Any, ...], named: dict[str, Any], policy: Policy) -> None:
    """In the middle of a warm-up, with one decision pending and one learned."""
    bandit = Bandit(range(3), 2, policy=policy, seed=1)
    bandit.partial_fit([[0.5, 0.1], [0.2, 0.7]], [0, 1], [1.0, -1.0], explored=True, steps=0)
    waiting, known = bandit.decide([1.0, 0.5]), bandit.decide([0.5, 1.0])
    bandit.learn(known, 0.5, weight=2.0)

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(item) for item in value]
        return value(waiting, known) if callable(value) else value

    def everything() -> tuple[object, ...]:
        return snapshot(bandit), facts(waiting), facts(known), bandit.predict_proba(GOOD_X).tolist()

    before = everything()
    with pytest.raises((ValueError, TypeError, KeyError, ArmletError)) as caught:
        getattr(bandit, verb)(*[filled(value) for value in given], **named)
    assert str(caught.value)
    assert everything() == before


def test_wrong_old_reward_is_refused_with_the_right_one() -> None:
    bandit = make(2, 1)
    decision = bandit.decide([1.0])
    unlearned = pytest.raises(DecisionError, match=r"has no reward yet; learn\(decision, reward\) comes first")
    with unlearned:
        bandit.correct(decision, 0.5, 1.0)
    with unlearned:
        bandit.forget(decision, 0.5)
    bandit.learn(decision, 0.5)
    with pytest.raises(ValueError, match=r"old_reward is 0\.25 but decision .* was learned with 0\.5; pass that"):
        bandit.correct(decision, 0.25, 1.0)
    with pytest.raises(ValueError, match=r"reward is 0\.25 but decision .* was learned with 0\.5; pass that"):
        bandit.forget(decision, 0.25)


@pytest.mark.parametrize("policy", [Algorithm1(p=1), InPython(p=1)], ids=["compiled", "python"])
def test_forgetting_more_than_was_learned_is_refused(policy: Policy) -> None:
    bandit = Bandit([0], 1, policy=policy, seed=0)
    bandit.partial_fit([[0.1]], [0], [1.0], explored=True)
    before = snapshot(bandit)
    for stranger in (foreign(x=[0.1], reward=1.0, weight=1.5), foreign(x=[0.1], reward=1.0, weight=100.0)):
        with pytest.raises(DecisionError, match="nothing to forget"):
            bandit.forget(stranger, 1.0)
        assert snapshot(bandit) == before
        assert stranger.learned


def test_decisions_go_on_whatever_was_forgotten_and_alike_in_batches() -> None:
    """Nobody can know that a foreign decision was never learned here; its sums are those of no rows."""
    one, many = (Bandit([0, 1], 1, policy=Algorithm1(p=3), seed=0) for _ in range(2))
    for bandit in (one, many):
        bandit.partial_fit([[0.1]] * 5, [0] * 5, [1.0] * 5, explored=True)
        bandit.forget(foreign(x=[100.0], reward=1.0), 1.0)
    alone = [facts(one.decide([1.0])) for _ in range(20)]
    together = many.decide_many([[1.0]] * 20)
    assert [facts(together[row]) for row in range(20)] == alone
    assert np.isfinite(one.predict_expectations([[1.0]])).all()


def test_shallow_copy_never_shares_its_state() -> None:
    bandit = make(2, 1)
    try:
        twin = copy.copy(bandit)
    except TypeError:
        return  # refusing is fine; two bandits that learn as one are not
    bandit.decide([1.0])
    assert twin.t == 0
