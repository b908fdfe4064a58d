"""A propensity is the probability that was used: 10^6 live decisions against what was said before each.

Let q_t be the probabilities announced for step t, and e_t the arm that was played, as a unit vector. If the
announcements are right, D = sum (e_t - q_t) is a martingale with covariance C = sum (diag(q_t) - q_t q_t'), so D' C^+ D
is chi-square with rank(C) degrees of freedom, whatever was learned on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy import stats

from armlet import Algorithm1, Bandit
from armlet.types import Bool, Float64, Int64

STEPS = 50_000  # of each of the 20 runs: 10^6 in all
ACCEPT = 1e-3  # with fixed seeds; a p-value that small comes once in a thousand tests if all is well
REJECT = 1e-7  # what a wrong propensity must fall below, so that the test cannot pass by luck
SHAPES = {4: 20.0, 5: 5000.5, 6: 15_000.0}  # K: p, little to much exploration


@dataclass(frozen=True)
class Run:
    """A live run: what was announced, what was played."""

    n_arms: int
    p: float
    q: Float64  # (T, K): announced before the decision
    arms: Int64  # (T,)
    propensities: Float64  # (T,): of the decisions
    explored: Bool  # (T,)
    eligible: Bool  # (T, K)
    zero: Bool  # (T,): the context was zero, where all arms tie

    @property
    def t(self) -> Int64:
        return np.arange(1, len(self.arms) + 1)

    @property
    def best(self) -> Bool:
        """(T, K): the arms that share the highest probability."""
        return np.asarray(self.q == self.q.max(axis=1, keepdims=True))


def masks(rng: np.random.Generator, n_arms: int) -> Bool:
    """All arms mostly, some of them often, one alone now and then."""
    some = rng.random((STEPS, n_arms)) < np.where(rng.random((STEPS, 1)) < 0.4, 1.0, 0.6)
    some[np.arange(STEPS), rng.integers(0, n_arms, size=STEPS)] = True
    return some


@cache
def run(seed: int, n_arms: int, p: float, warmup: str) -> Run:
    """Play with learning on; four contexts, one of them zero, and clicks, so that estimates tie too."""
    rng = np.random.default_rng(1000 + seed)  # the environment's own
    bandit = Bandit(range(n_arms), 3, policy=Algorithm1(p=p, warmup=warmup), seed=seed)  # type: ignore[arg-type]
    contexts = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [1.0, 1.0, 1.0]])
    kinds, eligible = rng.integers(0, 4, size=STEPS), masks(rng, n_arms)
    clicks = (rng.random((STEPS, n_arms)) < rng.choice([0.2, 0.3], size=(4, n_arms))[kinds]).astype(np.float64)
    q, arms = np.empty((STEPS, n_arms)), np.empty(STEPS, dtype=np.int64)
    propensities, explored = np.empty(STEPS), np.empty(STEPS, dtype=np.bool_)
    rows, labels = [contexts[[kind]] for kind in range(4)], [np.flatnonzero(mask).tolist() for mask in eligible]
    for i, kind in enumerate(kinds.tolist()):
        q[i] = bandit._probabilities(rows[kind], i + 1, labels[i])[0]  # what predict_proba calls, without its checks
        decision = bandit.decide(contexts[kind], eligible=labels[i])
        arms[i], propensities[i], explored[i] = decision.arm, decision.propensity, decision.explored
        if i % 3:  # the others' rewards never come
            bandit.learn(decision, clicks[i, arms[i]])
    return Run(n_arms, p, q, arms, propensities, explored, eligible, kinds == 0)


RUNS = [(seed, 4 + seed % 3, SHAPES[4 + seed % 3], ("round-robin", "uniform")[seed % 2]) for seed in range(20)]


def all_runs(n_arms: int) -> list[Run]:
    return [run(*settings) for settings in RUNS if settings[1] == n_arms]


def p_value(arms: Int64, q: Float64) -> float:
    """Return the probability of counts as far from sum q_t as these, or farther."""
    counts = np.bincount(arms, minlength=q.shape[1])
    D, C = counts - q.sum(axis=0), np.diag(q.sum(axis=0)) - q.T @ q
    variances, directions = np.linalg.eigh(C)
    along = directions.T @ D
    # all counts sum to T, and an arm that never had a choice has no variance: there only rounding may differ
    vary = variances > 1e-9 * len(arms)
    if np.abs(along[~vary]).max(initial=0.0) > 1e-6 * len(arms):
        return 0.0
    return float(stats.chi2.sf((along[vary] ** 2 / variances[vary]).sum(), np.count_nonzero(vary)))


def together(runs: list[Run], rows: list[Bool], q: list[Float64]) -> float:
    """Test the chosen rows of several runs as one."""
    arms = np.concatenate([r.arms[row] for r, row in zip(runs, rows, strict=True)])
    return p_value(arms, np.concatenate([announced[row] for announced, row in zip(q, rows, strict=True)]))


def uniform(marked: Bool) -> Float64:
    return np.asarray(marked / marked.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("n_arms", SHAPES)
def test_decision_tells_exactly_the_probability_announced_for_its_arm(n_arms: int) -> None:
    for r in all_runs(n_arms):
        np.testing.assert_array_equal(r.propensities, r.q[np.arange(STEPS), r.arms])
        np.testing.assert_allclose(r.q.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert not r.q[~r.eligible].any()


def test_runs_hold_a_million_decisions_with_ties_and_exploration() -> None:
    runs = [run(*settings) for settings in RUNS]
    assert sum(len(r.arms) for r in runs) == 1_000_000
    assert sum(np.count_nonzero(r.explored) for r in runs) > 100_000
    assert sum(np.count_nonzero((r.best.sum(axis=1) > 1) & ~r.explored) for r in runs) > 100_000


@pytest.mark.parametrize("n_arms", SHAPES)
def test_empirical_frequencies_match_the_propensities(n_arms: int) -> None:
    runs = all_runs(n_arms)
    assert together(runs, [np.ones(STEPS, dtype=np.bool_)] * len(runs), [r.q for r in runs]) > ACCEPT
    for r in runs:
        assert p_value(r.arms, r.q) > ACCEPT / 20  # twenty tests for one


@pytest.mark.parametrize("n_arms", SHAPES)
def test_frequencies_match_on_contexts_where_arms_tie(n_arms: int) -> None:
    runs = all_runs(n_arms)
    assert together(runs, [r.zero for r in runs], [r.q for r in runs]) > ACCEPT
    tied = [(r.best.sum(axis=1) > 1) & ~r.explored & (r.t > np.ceil(r.p)) for r in runs]
    assert together(runs, tied, [uniform(r.best) for r in runs]) > ACCEPT


@pytest.mark.parametrize("n_arms", SHAPES)
def test_exploration_is_uniform_over_the_eligible_arms(n_arms: int) -> None:
    runs = all_runs(n_arms)
    drawn = [r.explored & ((r.t > np.ceil(r.p)) | (r.q.max(axis=1) < 1)) for r in runs]  # not by turns
    assert sum(np.count_nonzero(rows) for rows in drawn) > 100
    assert together(runs, drawn, [uniform(r.eligible) for r in runs]) > ACCEPT
    for size in range(2, n_arms + 1):
        rows = [row & (r.eligible.sum(axis=1) == size) for r, row in zip(runs, drawn, strict=True)]
        assert together(runs, rows, [uniform(r.eligible) for r in runs]) > ACCEPT / n_arms


def test_exploration_happens_as_often_as_p_over_t_says() -> None:
    for r in (run(*settings) for settings in RUNS):
        rate = np.where(r.t <= np.ceil(r.p), 1.0, r.p / r.t)
        # a sum of independent coins; five deviations
        assert abs(r.explored.sum() - rate.sum()) < 5 * np.sqrt((rate * (1 - rate)).sum())
        assert r.explored[: int(np.ceil(r.p))].all()


# ---- the same test sees propensities that are a little wrong


def after_warmup(r: Run) -> Bool:
    return np.asarray(r.t > np.ceil(r.p))


def first_best(r: Run) -> Bool:
    return np.asarray(np.cumsum(r.best, axis=1) * r.best == 1)


def mixture(rate: Float64, best: Bool, eligible: Bool) -> Float64:
    return rate[:, None] * uniform(eligible) + (1 - rate)[:, None] * uniform(best)


def test_mixture_is_what_was_announced() -> None:
    """So that the wrong ones below differ in nothing else."""
    for r in (run(*settings) for settings in RUNS[:3]):
        rows = after_warmup(r)
        np.testing.assert_allclose(mixture(r.p / r.t, r.best, r.eligible)[rows], r.q[rows], rtol=0, atol=1e-12)


def test_power_to_see_ties_ignored() -> None:
    runs = all_runs(5)
    wrong = [mixture(r.p / r.t, first_best(r), r.eligible) for r in runs]
    assert together(runs, [after_warmup(r) for r in runs], wrong) < REJECT


def test_power_to_see_the_first_of_tied_arms_favoured_by_two_percent() -> None:
    runs = all_runs(5)
    tied = [(r.best.sum(axis=1) > 1) & ~r.explored & after_warmup(r) for r in runs]
    wrong = [uniform(r.best) + 0.02 * (first_best(r) - uniform(r.best)) for r in runs]
    assert together(runs, tied, wrong) < REJECT


def test_power_to_see_eligibility_ignored_in_the_exploration() -> None:
    runs = all_runs(5)
    without = [~r.eligible[:, 0] & after_warmup(r) for r in runs]  # over all steps the arms' shares would be as even
    wrong = [mixture(r.p / r.t, r.best, np.ones_like(r.eligible)) for r in runs]
    assert together(runs, without, [r.q for r in runs]) > ACCEPT
    assert together(runs, without, wrong) < REJECT


def trailing_arm_played(r: Run, factor: float) -> tuple[Int64, Float64]:
    """Return whether the arm played was not the one that leads, and its probability if the rate were factor p / t."""
    leads = (r.best.sum(axis=1) == 1) & (r.eligible.sum(axis=1) > 1) & after_warmup(r)
    chances = mixture(np.minimum(1.0, factor * r.p / r.t), r.best, r.eligible)
    trailing = (chances * ~r.best).sum(axis=1)[leads]
    return (~r.best[np.arange(STEPS), r.arms]).astype(np.int64)[leads], np.stack([1 - trailing, trailing], axis=1)


@pytest.mark.parametrize("factor", [0.98, 1.0, 1.02])
def test_power_to_see_an_exploration_rate_wrong_by_two_percent(factor: float) -> None:
    parts = [trailing_arm_played(run(*settings), factor) for settings in RUNS]
    value = p_value(np.concatenate([played for played, _ in parts]), np.concatenate([q for _, q in parts]))
    assert value > ACCEPT if factor == 1.0 else value < REJECT


# ---- the public calls say the same


@pytest.mark.parametrize("warmup", ["round-robin", "uniform"])
def test_predict_proba_announces_what_decide_tells(warmup: str) -> None:
    rng = np.random.default_rng(5)
    labels = ["a", "b", "c", "d"]
    bandit = Bandit(labels, 2, policy=Algorithm1(p=50, warmup=warmup), seed=3)  # type: ignore[arg-type]
    played, announced = [], []
    for x in rng.integers(0, 2, size=(20_000, 2)).astype(np.float64):
        eligible = None if rng.random() < 0.5 else rng.permutation(labels)[: rng.integers(1, 5)].tolist()
        chances = bandit.predict_proba([x], eligible=eligible)[0]
        decision = bandit.decide(x, eligible=eligible)
        arm = labels.index(str(decision.arm))
        assert decision.propensity == chances[arm]
        bandit.learn(decision, float(rng.random() < 0.3))
        played.append(arm)
        announced.append(chances)
    assert p_value(np.array(played), np.array(announced)) > ACCEPT


def test_batches_follow_their_propensities_too() -> None:
    """The batch path on its own: 10^5 decisions of a bandit that stands still, ties included."""
    rng = np.random.default_rng(6)
    bandit = Bandit(range(5), 2, policy=Algorithm1(p=30_000, warmup="uniform"), seed=4)
    contexts = rng.integers(0, 2, size=(100_000, 2)).astype(np.float64)
    bandit.partial_fit(contexts[:500], rng.integers(0, 5, size=500), rng.random(500), explored=True, steps=0)
    decisions = bandit.decide_many(contexts)
    q = np.concatenate([bandit._probabilities(contexts[i : i + 1], i + 1, None) for i in range(len(contexts))])
    np.testing.assert_array_equal(decisions.propensities, q[np.arange(len(q)), decisions.indices])
    assert p_value(decisions.indices, q) > ACCEPT
    zero = ~contexts.any(axis=1)
    assert p_value(decisions.indices[zero], q[zero]) > ACCEPT
