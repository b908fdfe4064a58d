"""Whatever number the border accepts is survived: no crash, no NaN, no warning, no endless loop, in any policy."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import armlet
from armlet.errors import DecisionError, MergeError, PolicyError
from armlet.inputs.columns import LARGEST, LEAST_WEIGHT
from armlet.inputs.settings import Ridge, Units
from armlet.kernel import Statistics
from armlet.policies import subset_search
from armlet.policies.base import sums
from armlet.policies.contextual_ucb import SEARCHES
from armlet.policies.subset_search import ArmPast
from armlet.reference.linear import BEYOND_ANY
from armlet.reference.schedule import Reference
from armlet.types import Float64
from support.policies import DIM, N_ARMS, REGISTRY, SETTINGS, of_registry
from support.sums import dot

pytestmark = pytest.mark.spread

ENDLESS = 900  # seconds: far more than any of these takes
NAMES = list(REGISTRY)
FEW = [NAMES[i::8] for i in range(8)]  # a process of their own for each: most of the time of one is its start


@pytest.mark.parametrize("names", FEW, ids="-".join)
def test_policy_survives_all_numbers_that_are_accepted(names: list[str]) -> None:
    command, tests = [sys.executable, "-X", "faulthandler", "-m", "support.extremes", *names], Path(__file__).parents[1]
    ended = subprocess.run(command, cwd=tests, capture_output=True, text=True, timeout=ENDLESS, check=False)
    found = ended.stdout.splitlines()
    assert not found, f"{len(found)} findings, the first: {found[0]}"
    assert ended.returncode == 0, ended.stderr


# ---- the border


@pytest.mark.parametrize("value", [1.0001e40, -1e41, 1e100])
def test_numbers_beyond_the_border_are_refused_by_name(value: float) -> None:
    bandit = armlet.Bandit([0, 1], 1, policy=armlet.Algorithm1(p=2), seed=1)
    decision = bandit.decide([LARGEST])
    advice = "give a finite number of at most 1e\\+40 in size"
    with pytest.raises(ValueError, match=advice):
        bandit.decide([value])
    with pytest.raises(ValueError, match=f"reward is .*{advice}"):
        bandit.learn(decision, value)
    with pytest.raises(ValueError, match=f"weight is .*{advice}"):
        bandit.learn(decision, 1.0, weight=value)
    bandit.learn(decision, LARGEST, weight=LARGEST)


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 9e-41, 0.0, -1.0])
def test_weights_below_the_border_are_refused_by_name(weight: float) -> None:
    bandit = armlet.Bandit([0, 1], 1, policy=armlet.ThompsonSampling(), seed=1)
    decision, before = bandit.decide([1.0]), bandit.digest()
    advice = "give a positive number, at least 1e-40"
    row = {name: [value] for name, value in {**decision.to_dict(), "reward": 1.0, "weight": weight}.items()}
    with pytest.raises(ValueError, match=f"weight is {weight}; {advice}"):
        bandit.learn(decision, 1.0, weight=weight)
    with pytest.raises(ValueError, match=rf"weights\[0\] is {weight}; {advice}"):
        bandit.learn_many([decision], [1.0], weights=[weight])
    with pytest.raises(ValueError, match=rf"weights\[0\] is {weight}; {advice}"):
        bandit.partial_fit([[1.0]], [0], [1.0], weights=[weight])
    with pytest.raises(ValueError, match=advice):
        bandit.partial_fit(row)
    assert bandit.digest() == before
    bandit.learn(decision, 1.0, weight=LEAST_WEIGHT)


@pytest.mark.filterwarnings("ignore::armlet.errors.LostDigitsWarning")
@pytest.mark.parametrize("n_arms", [1, 2])
@pytest.mark.parametrize("units", ["free", "as given"])
def test_samples_have_probabilities_after_the_smallest_weights_are_taken_back(n_arms: int, units: Units) -> None:
    rng = np.random.default_rng(n_arms)
    for seed in range(40):
        policy = armlet.ThompsonSampling(units=units)
        bandit = armlet.Bandit(range(n_arms), 2, policy=policy, objective="min", seed=seed)
        for _ in range(8):
            x = rng.choice([0.0, 1.0, -1.0, 1e-320, 1e-160, 3.0, LARGEST], size=2)
            decision = bandit.decide(x)
            assert 0.0 < decision.propensity <= 1.0
            rewards = [float(r) for r in rng.choice([1e-320, 0.0, 1.0, LARGEST], size=2)]
            bandit.learn(decision, rewards[0], weight=float(rng.choice([LEAST_WEIGHT, 1e-20, 1.0])))
            bandit.correct(decision, *rewards)
            if rng.random() < 0.5:
                with suppress(DecisionError):  # the correction has emptied the arm
                    bandit.forget(decision, rewards[1])


@pytest.mark.parametrize("n_arms", [1, 2])
def test_sums_without_probabilities_are_refused_rather_than_searched_without_end(n_arms: int) -> None:
    bandit = armlet.Bandit(range(n_arms), 1, policy=armlet.ThompsonSampling(), seed=1)
    for x, reward in ((3.0, 1e-320), (1.0, LARGEST)):
        bandit.state.add(0, np.array([x]), reward, 1e-310)  # past the border
    with pytest.raises(PolicyError, match="not a finite number"):
        bandit.decide([0.0])
    with pytest.raises(PolicyError, match="not a finite number"):
        bandit.predict_proba([[0.0]])
    assert bandit.t == 0


def test_every_float32_is_accepted() -> None:
    bandit = armlet.Bandit([0, 1], 2, policy=armlet.Algorithm1(p=2), seed=1)
    largest = float(np.finfo(np.float32).max)
    bandit.learn(bandit.decide(np.full(2, largest)), largest, weight=largest)
    assert np.isfinite(bandit.state.records()).all()


@pytest.mark.parametrize(
    ("policy", "settings", "message"),
    of_registry(
        [
            ("LinUCB", {"ridge": 1e-41}, "ridge is 1e-41; give a positive number from 1e-40 to 1e\\+40"),
            ("GreedyFirst", {"h": 1e41}, "h is 1e\\+41; give a number from 0 to 1e\\+40"),
            ("Algorithm1", {"p": 4, "ridge": 1e41}, "ridge is 1e\\+41; .* positive number from 1e-40 to 1e40"),
            ("ContextualUCB", {"alpha": 1e41}, "alpha is 1e\\+41; give a number from 0 to 1e\\+40"),
            ("Oracle", {"theta": [[1e41]]}, "of at most 1e\\+40 in size"),
            ("UCB1", {"reward_range": (0.0, 1e41)}, "reward_range is .* at most 1e\\+40 in size"),
            ("LinRel", {"horizon": 2**63}, "horizon is 9223372036854775808; give a whole number of at most"),
            ("EXP4", {"gamma": 0.1, "seed": 2**128}, "seed is .*; give a whole number of at most"),
        ]
    ),
)
def test_settings_beyond_the_border_are_refused_by_name(policy: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        REGISTRY[policy](**settings)


def _restored(d: armlet.Decision, propensity: float) -> armlet.Decision:
    return armlet.Decision.restore(id=d.id, arm=d.arm, propensity=propensity, explored=d.explored, x=d.x, tag=d.tag)


@pytest.mark.parametrize("name", REGISTRY)
def test_a_restored_decision_of_the_least_propensity_is_survived(name: str) -> None:
    for settings in SETTINGS[name]:
        policy = REGISTRY[name](**settings)
        bandit = armlet.Bandit(range(N_ARMS), DIM, policy=policy, seed=1)
        for reward in (0.0, 1.0, 0.0, 1.0):
            d = bandit.decide([LARGEST, 0.5, -LARGEST])
            with pytest.raises(ValueError, match="propensity is 1e-101; it must be at least 1e-100 and at most 1"):
                _restored(d, 1e-101)
            bandit.learn(_restored(d, 1e-100), reward)
            chances = bandit.predict_proba([[1.0, 2.0, 3.0]])[0]
            assert np.isfinite(chances).all()
            assert chances.sum() == pytest.approx(1.0, abs=1e-9)


# ---- sums that have lost their digits


def _row(rng: np.random.Generator, dim: int) -> tuple[Float64, float, float]:
    x = rng.choice([LARGEST, -LARGEST, 1e20, 1e-20, 1.0, 0.0], dim) * rng.uniform(0.5, 1.0, dim)
    return x, float(rng.choice([LARGEST, -1.0, 0.0])), float(rng.choice([LARGEST, 1.0, 1e-20]))


def _learned_and_taken_back(rng: np.random.Generator, dim: int) -> tuple[Statistics, Reference]:
    """Some huge rows, most of them taken back in another order: nothing but rounding is left of the sums."""
    ridge = Ridge.parse(1e-40)
    kernel, reference = sums(ridge, 2, dim), Reference(2, dim, 2, 1, ridge=ridge)
    rows = [_row(rng, dim) for _ in range(6)]
    for x, reward, weight in rows:
        kernel.add(0, x, reward, weight)
        reference.add(0, x, reward, weight)
    for i in rng.permutation(6)[:4]:
        x, reward, weight = rows[i]
        kernel.add(0, x, reward, -weight)
        reference.add(0, x, reward, -weight)
    return kernel, reference


def test_sums_without_a_right_digit_are_those_of_an_arm_without_rows() -> None:
    rng, lost = np.random.default_rng(1), 0
    for _ in range(400):
        dim = int(rng.integers(1, 12))
        kernel, reference = _learned_and_taken_back(rng, dim)
        x = rng.normal(size=dim)
        theta, widths = kernel.estimates(), kernel.widths(x)
        assert np.abs(theta).max() <= BEYOND_ANY
        assert widths.max() <= BEYOND_ANY
        assert np.array_equal(theta, reference.estimates())
        with np.errstate(over="ignore", invalid="ignore"):
            assert widths.tolist() == reference.widths(x).tolist()
            assert kernel.log_determinants().tolist() == reference.log_determinants().tolist()
        lost += widths[0] == widths[1]  # the second arm has no rows
    assert lost > 0


def test_an_arm_whose_sums_are_lost_comes_back_with_new_rows() -> None:
    rng = np.random.default_rng(1)
    while True:
        kernel, _ = _learned_and_taken_back(rng, 4)
        if kernel.n[0] > 0 and not kernel.estimates()[0].any():
            break
    for x in np.eye(4) * LARGEST:
        kernel.add(0, x, 1.0, LARGEST)
    assert kernel.estimates()[0].any()


# ---- merging


def test_sums_too_large_to_be_added_are_refused() -> None:
    bandit = armlet.Bandit([0, 1], 1, policy=armlet.Algorithm1(p=2), seed=1)
    bandit.partial_fit([[LARGEST]], [1], [LARGEST], explored=True, weights=[LARGEST], steps=0)
    while 2 * bandit.state.records().max() <= 1e200:
        bandit.merge(bandit)
    before = bandit.state.records()
    with pytest.raises(MergeError, match="too large to be added"):
        bandit.merge(bandit)
    assert np.array_equal(bandit.state.records(), before)
    assert np.isfinite(before).all()
    with pytest.raises(ValueError, match="not those of any rows"):
        bandit.state.restore_arrays({"records": before * 1e5})


# ---- searches of a past


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("dim", [1, 4, 9])
def test_search_finds_rows_whatever_their_size(search: str, dim: int) -> None:
    rng = np.random.default_rng(dim)
    for n in (1, 2, 3, 7, 12):
        for size in (1e-200, 1e-40, 1.0, 1e25, LARGEST):
            rows = np.outer(rng.uniform(0.5, 1.0, n), np.ones(dim)) * size  # one direction but for rounding
            rows[:, 0] *= rng.choice([1.0, 1e-30], n)
            x, past = rows[0] * rng.choice([1.0, -1.0], dim), ArmPast.of(rows, rewards=np.full(n, LARGEST))
            found = SEARCHES[search](x, past)
            assert found.n >= 1
            assert 0.0 <= found.value <= dot(x, x)
            assert np.isfinite(subset_search.estimate(past, found)).all()


@pytest.mark.parametrize("search", ["relaxed", "counts"])
def test_search_ends_where_counts_do_not_add_up(search: str) -> None:
    """1e40 + 1 is 1e40: what is taken off one by one leaves something else than what was added up."""
    rng = np.random.default_rng(2)
    for n in (2, 5, 30, 70, 300):
        counts = np.where(rng.random(n) < 0.5, np.floor(LARGEST * rng.random(n)), 1.0)
        past = ArmPast.of(rng.normal(size=(n, 3)), counts=counts)
        x = rng.normal(size=3)
        found = SEARCHES[search](x, past)
        assert found.weights.sum() >= 1.0
