"""Intervals, contrasts, summaries and explanations: exact from sums, in the user's units, or a sentence."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from scipy import stats

import armlet
from armlet.inference.model import CONSTANT
from armlet.inference.summary import Coefficient
from armlet.types import Float64, Policy

FEATURES = ["age", "income"]
SCALES, MIDDLES = np.array([10.0, 2e4]), np.array([40.0, 1.5e5])
SLOPES = {"a": np.array([0.3, 1e-4]), "b": np.array([-0.2, 3e-4])}


def rows(n: int, seed: int = 0) -> tuple[Float64, list[str], Float64]:
    rng = np.random.default_rng(seed)
    X, arms = MIDDLES + SCALES * rng.standard_normal((n, 2)), rng.choice(["a", "b"], n).tolist()
    means = np.array([x @ SLOPES[arm] for x, arm in zip(X, arms, strict=True)])
    return X, arms, 500.0 + means + 3.0 * rng.standard_normal(n)


def fitted(n: int = 90, policy: Policy | None = None, **settings: Any) -> armlet.Bandit:
    policy = armlet.ContextualEpsilonGreedy(p=20) if policy is None else policy
    bandit = armlet.Bandit(["a", "b"], features=FEATURES, policy=policy, seed=1, **settings)
    X, arms, rewards = rows(n)
    bandit.partial_fit(X, arms, rewards, explored=True)
    return bandit


def least_squares(arm: str, n: int = 90, *, constant: bool = True) -> tuple[Float64, Float64, int]:
    """Coefficients, standard errors and degrees of freedom, from rows."""
    X, arms, rewards = rows(n)
    mine = np.array(arms) == arm
    Z = np.column_stack([np.ones(n), X])[mine] if constant else X[mine]
    theta, squares, _, _ = np.linalg.lstsq(Z, rewards[mine], rcond=None)
    freedom = len(Z) - Z.shape[1]
    return theta, np.sqrt(np.diag(np.linalg.inv(Z.T @ Z)) * squares[0] / freedom), freedom


@pytest.mark.parametrize("objective", ["max", "min"])
@pytest.mark.parametrize("arm", ["a", "b"])
def test_intervals_are_those_of_least_squares_on_the_rows(arm: str, objective: Any) -> None:
    found = fitted(objective=objective).inference.intervals()
    theta, errors, freedom = least_squares(arm)
    for name, value, error in zip([CONSTANT, *FEATURES], theta, errors, strict=True):
        row, half = found.of(arm, name), stats.t.ppf(0.975, freedom) * error
        assert row.value == pytest.approx(value, rel=1e-7)
        assert row.error == pytest.approx(error, rel=1e-7)
        assert (row.low, row.high) == pytest.approx((value - half, value + half), rel=1e-6)


def test_units_as_given_have_no_constant() -> None:
    found = fitted(policy=armlet.Algorithm1(p=20)).inference.intervals()
    theta, errors, _ = least_squares("b", constant=False)
    assert [row.feature for row in found if row.arm == "b"] == FEATURES
    assert [found.of("b", name).value for name in FEATURES] == pytest.approx(theta.tolist(), rel=1e-7)
    assert [found.of("b", name).error for name in FEATURES] == pytest.approx(errors.tolist(), rel=1e-7)


def test_a_model_file_is_enough() -> None:
    bandit, file = fitted(), io.BytesIO()
    bandit.save(file)
    file.seek(0)
    loaded = armlet.load(file)
    assert str(loaded.inference.intervals()) == str(bandit.inference.intervals())
    assert str(loaded.inference.contrast("a", "b")) == str(bandit.inference.contrast("a", "b"))


def test_other_units_change_the_numbers_and_not_what_they_say() -> None:
    X, arms, rewards = rows(90)
    other = armlet.Bandit(["a", "b"], features=FEATURES, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    other.partial_fit(X * [1e-3, 1e3], arms, 1e4 * rewards, explored=True)
    for name, factor in ((CONSTANT, 1e4), ("age", 1e7), ("income", 10.0)):
        plain, scaled = fitted().inference.intervals().of("a", name), other.inference.intervals().of("a", name)
        assert [scaled.value, scaled.low, scaled.high] == pytest.approx(
            [factor * float(end) for end in (plain.value, plain.low, plain.high) if end is not None], rel=1e-6
        )


def test_merged_and_corrected_rows_are_rows_like_any() -> None:
    X, arms, rewards = rows(90)
    halves = [
        armlet.Bandit(["a", "b"], features=FEATURES, policy=armlet.ContextualEpsilonGreedy(p=20), seed=s)
        for s in (1, 2)
    ]
    for half, part in zip(halves, (slice(0, 40), slice(40, 90)), strict=True):
        half.partial_fit(X[part], arms[part], rewards[part], explored=True)
    together, whole = (halves[0] + halves[1]).inference.intervals(), fitted().inference.intervals()
    assert [row.low for row in together] == pytest.approx([row.low for row in whole], rel=1e-7)


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        (lambda X: np.full(len(X), 7.0), "does not vary in the rows of this arm"),
        (lambda X: X[:, 0] - 2.0, "do not tell it from other features"),
    ],
)
def test_a_coefficient_that_rows_do_not_tell_says_so(extra: Any, why: str) -> None:
    X, arms, rewards = rows(90)
    bandit = armlet.Bandit(["a", "b"], dim=3, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    bandit.partial_fit(np.column_stack([X, extra(X)]), arms, rewards, explored=True)
    found = bandit.inference.intervals()
    assert why in str(found.of("a", "2").why)
    assert found.of("a", "2").low is None
    theta, errors, _ = least_squares("a")
    slope = found.of("a", "1")
    assert slope.value == pytest.approx(theta[2], rel=1e-6)
    assert slope.error == pytest.approx(errors[2], rel=0.05)  # one degree of freedom more or less


def test_too_few_rows_say_so() -> None:
    bandit = fitted(5)
    assert all(
        row.low is None and "rows are too few for 3 coefficients" in str(row.why)
        for row in bandit.inference.intervals()
    )
    blank = armlet.Bandit(["a"], 1, policy=armlet.ContextualEpsilonGreedy(p=20))
    assert [row.value for row in blank.inference.intervals()] == [None, None]
    assert "0 rows" in str(blank.inference.summary())


def test_a_perfect_fit_is_not_certain() -> None:
    bandit = armlet.Bandit(["a"], 1, policy=armlet.ContextualEpsilonGreedy(p=20))
    x = np.arange(20.0)
    bandit.partial_fit(x[:, None], ["a"] * 20, 3 * x + 1, explored=True)
    row = bandit.inference.intervals().of("a", "0")
    assert row.low is not None
    assert row.high is not None
    assert row.low < 3 < row.high < row.low + 1e-5


def test_rows_chosen_by_what_was_learned_have_no_plain_intervals() -> None:
    for policy in (armlet.LinUCB(), armlet.OccasionalOptimism(), armlet.ThompsonSampling(v=0.5), armlet.Greedy()):
        bandit = fitted(policy=policy)
        assert all(row.low is None and row.error is None for row in bandit.inference.intervals())
        assert "too short" in bandit.inference.intervals().words
        assert bandit.inference.contrast("a", "b", MIDDLES).low is None


def test_ellipsoids_are_wider_than_what_rows_that_were_explored_allow() -> None:
    chosen, explored = fitted(policy=armlet.LinUCB()), fitted()
    for row in chosen.inference.intervals(noise_scale=3.0):
        plain = explored.inference.intervals().of(row.arm, row.feature)
        assert row.low is not None
        assert plain.low is not None
        assert row.value == pytest.approx(plain.value, rel=1e-6)
        assert row.low < plain.low
    ranged = fitted(policy=armlet.LinUCB(), reward_range=(400.0, 700.0))
    assert (
        ranged.inference.intervals().of("a", "age").low
        == chosen.inference.intervals(noise_scale=150.0).of("a", "age").low
    )


def test_ellipsoids_hold_at_all_looks_where_plain_intervals_do_not() -> None:
    missed = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.LinUCB(), seed=seed)
        for t in range(300):
            decision = bandit.decide(rng.standard_normal(2))
            bandit.learn(decision, 0.5 * decision.x[0] + rng.standard_normal())
            if t in (30, 100, 299):
                found = bandit.inference.intervals(noise_scale=1.0)
                ends = [(row.low, row.high, 0.5 * (row.feature == "0")) for row in found]
                missed += any(low is not None and high is not None and not low <= v <= high for low, high, v in ends)
    assert missed == 0  # a bound at .95 for two arms at all looks; in practice it is far wider than needed


@pytest.mark.parametrize("name", ["ContextualEpsilonGreedy", "Algorithm1", "LinUCB", "Uniform"])
def test_explanations_add_up_to_estimates(name: str) -> None:
    settings = {"p": 20} if name in ("ContextualEpsilonGreedy", "Algorithm1") else {}
    policy = armlet.policies.POLICIES[name](**settings)
    bandit = fitted(policy=policy, objective="min")
    x = {"age": 33.0, "income": 2e5}
    found = bandit.inference.explain(x)
    assert found.total.tolist() == pytest.approx(bandit.predict_expectations([x])[0].tolist(), rel=1e-12)
    assert list(found.of("a")) == FEATURES
    assert found.to_pandas()["arm"].tolist() == ["a", "b"]


def test_an_explanation_is_about_the_mean_context() -> None:
    bandit = fitted(2000)
    X, _, _ = rows(2000)
    at_mean = bandit.inference.explain(X.mean(axis=0))
    assert np.abs(at_mean.contributions).max() < 0.5  # units are looked at every tenth row more, so not exactly 0
    up = bandit.inference.explain(X.mean(axis=0) + np.array([10.0, 0.0])).of("a")["age"] - at_mean.of("a")["age"]
    assert up == pytest.approx(10 * SLOPES["a"][0], abs=0.2)


def test_contrasts_are_welchs() -> None:
    bandit, x = fitted(), np.array([45.0, 1.4e5])
    parts = []
    X, arms, rewards = rows(90)
    for arm in ("a", "b"):
        mine = np.array(arms) == arm
        Z = np.column_stack([np.ones(90), X])[mine]
        theta, squares, _, _ = np.linalg.lstsq(Z, rewards[mine], rcond=None)
        c, freedom = np.array([1.0, *x]), len(Z) - 3
        parts.append((c @ theta, squares[0] / freedom * (c @ np.linalg.inv(Z.T @ Z) @ c), freedom))
    (v1, s1, f1), (v2, s2, f2) = parts
    freedom = (s1 + s2) ** 2 / (s1**2 / f1 + s2**2 / f2)
    found, half = bandit.inference.contrast("a", "b", x), stats.t.ppf(0.975, freedom) * math.sqrt(s1 + s2)
    assert found.freedom == pytest.approx(freedom, rel=1e-6)
    assert (found.low, found.high) == pytest.approx((v1 - v2 - half, v1 - v2 + half), rel=1e-6)
    back = bandit.inference.contrast("b", "a", x)
    assert back.value == pytest.approx(-float(found.value or 0.0))


def test_the_mean_context_has_an_error_of_its_own() -> None:
    bandit = fitted()
    X, _, _ = rows(90)
    average, there = bandit.inference.contrast("a", "b"), bandit.inference.contrast("a", "b", X.mean(axis=0))
    assert average.value == pytest.approx(there.value, rel=1e-6)
    assert average.error is not None
    assert there.error is not None
    assert average.error > there.error
    assert "on average over contexts" in str(average)


def test_anytime_is_wider_than_one_look() -> None:
    bandit = fitted()
    for row in bandit.inference.intervals(interval="anytime"):
        once = bandit.inference.intervals().of(row.arm, row.feature)
        assert row.low is not None
        assert once.low is not None
        assert row.low < once.low
    wide, narrow = (bandit.inference.contrast("a", "b", MIDDLES, interval=word) for word in ("anytime", "fixed"))
    assert wide.low is not None
    assert narrow.low is not None
    assert wide.low < narrow.low


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda b: b.inference.intervals(interval="always"), "interval is 'always'; choose 'fixed' or 'anytime'"),
        (lambda b: b.inference.intervals(level=1.5), "level is 1.5"),
        (lambda b: b.inference.contrast("a", "a"), "first and second are both 'a'"),
        (lambda b: b.inference.contrast("a", "z"), "arm 'z' is not one of"),
        (lambda b: b.inference.contrast("a", "b", interval="anytime"), "the mean context moves as rows come; give x"),
    ],
)
def test_what_cannot_be_asked_is_refused(call: Any, message: str) -> None:
    with pytest.raises((ValueError, KeyError), match=message):
        call(fitted())


def test_a_summary_is_a_table_a_frame_and_a_figure() -> None:
    bandit = fitted(objective="min")
    bandit.retire_arm("b")
    found = bandit.inference.summary()
    _, arms, costs = rows(90)
    mine = costs[np.array(arms) == "a"]
    assert found.arms[0].mean == pytest.approx(mine.mean(), rel=1e-9)
    assert [row.state for row in found.arms] == ["plays", "retired"]
    assert "90 decisions; costs" in str(found)
    frame, table = found.to_pandas(), pa.table(found)
    assert frame["feature"].tolist() == table["feature"].to_pylist() == [CONSTANT, *FEATURES] * 2
    assert len(found.plot().axes) == 3


# ---- how logged rows came about


def _logged(design: Any = "adaptive", policy: Policy | None = None) -> armlet.Bandit:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 2))
    arms = np.where(X[:, 0] > 0.3, "a", "b")  # a rule that looks at contexts and at no reward
    rewards = X @ [0.5, -0.2] + rng.normal(size=300)
    bandit = armlet.Bandit(["a", "b"], 2, policy=policy or armlet.LinUCB(), seed=1)
    bandit.partial_fit(X, arms, rewards, explored=True, design=design)
    return bandit


def width(found: Coefficient) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low


def test_rows_of_a_fixed_rule_have_ordinary_intervals() -> None:
    found = _logged("fixed").inference.intervals()
    ordinary = _logged(policy=armlet.ContextualEpsilonGreedy(p=20)).inference.intervals()
    assert [(each.value, each.low, each.high) for each in found] == [(e.value, e.low, e.high) for e in ordinary]
    wide = _logged().inference.intervals(noise_scale=1.0)
    assert all(width(w) > 2 * width(f) for w, f in zip(wide, found, strict=True))
    assert "ordinary regression" in found.words
    assert "chosen by what had been learned" in wide.words


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.learn(b.decide([1.0, 1.0]), 0.5),
        lambda b: b.partial_fit([[1.0, 1.0]], ["a"], [0.5]),
        lambda b: b.merge(_logged()),
    ],
    ids=["a decision of its own", "adaptive rows", "a merge"],
)
def test_one_row_that_may_have_been_chosen_ends_it(change: Any) -> None:
    bandit = _logged("randomized")
    assert "ordinary regression" in str(bandit.inference.summary())
    change(bandit)
    assert "chosen by what had been learned" in bandit.inference.intervals().words


def test_copies_files_and_merges_know_of_a_fixed_rule() -> None:
    bandit = _logged("fixed")
    twice = bandit + _logged("fixed")
    for other in (bandit.copy(), armlet.from_bytes(bandit.to_bytes()), twice, twice.difference(bandit)):
        assert "ordinary regression" in other.inference.intervals().words
    bandit.fit([[1.0, 1.0]] * 3, ["a"] * 3, [0.5, 0.1, 0.2])
    assert "chosen by what had been learned" in bandit.inference.intervals().words


def test_a_design_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="design is 'random'; choose one of 'adaptive', 'fixed', 'randomized'"):
        _logged("random")
