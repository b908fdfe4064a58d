"""Eight environments whose truth is known exactly, and every way to value another policy by the log of a bandit in one.

Contexts come from a table of `POINTS`, and sets of eligible arms from one of `SETS`, so that a value is a sum over them
and not another estimate. A log is valued as `armlet.evaluate` chooses, by explored rows, at all
looks, and by a reward model that knows only rows before the one in question. Leaving out a row's own reward is exact
cross-fitting where later draws do not depend on it: at p/t. Under the evidence clock they do, a little; with nothing
later known, what that costs shows in the comparison. O(n K d^3) time: a solve an arm for every row that taught it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.evaluation.estimators import ESTIMATORS, estimate, kernel_constants, t_interval, wilson
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.model import RIDGE, RUNNING, contributions, row_weights
from armlet.evaluation.monitor import AnytimeIntervals
from armlet.evaluation.rows import Design, HeldBlocks, Rows
from armlet.evaluation.targets import ArmLaw, prob_of_played
from armlet.kernel import gram, row_features
from armlet.parallel import Seeds
from armlet.policies import Algorithm1, AutoEpsilonGreedy, ContextualEpsilonGreedy, Uniform
from armlet.testing.logs import play
from armlet.types import Bool, Float64, Int64, Policy

Function: TypeAlias = Callable[[Float64, Bool], Float64]
NAME: Final = "target"
LEVEL: Final = 0.95
LOOKS: Final = 12
FIRST_LOOK: Final = 100  # decisions
OWN_ROWS: Final = 300
OWN_ARMS: Final = 5
OWN_DIM: Final = 5
FRESH: Final = 4096  # contexts for the truth
POINTS: Final = 512
SETS: Final = 16

Paid = Literal["gaussian", "0 or 1"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentKind:
    """What an environment is like, who logs in it and for how long."""

    policy: Policy
    n_arms: int = 3
    dim: int = 3
    paid: Paid = "0 or 1"
    level: float = 0.5  # mean reward of all arms
    spread: float = 0.15  # standard deviation of an arm's mean over contexts
    bend: float = 0.0  # as much again that no linear model sees
    eligible: float = 1.0  # chance of an arm to be eligible; two always are
    horizon: int = 5_000


KINDS: Final[dict[str, EnvironmentKind]] = {
    "p/t": EnvironmentKind(policy=Algorithm1(p=60, warmup="uniform")),
    "equal arms": EnvironmentKind(policy=Algorithm1(p=60, warmup="uniform"), paid="gaussian", spread=0.0),
    "3 % clicks": EnvironmentKind(policy=Algorithm1(p=600, warmup="uniform"), level=0.03, spread=0.008),
    "evidence": EnvironmentKind(policy=ContextualEpsilonGreedy(p=60), n_arms=5, dim=4),
    "auto": EnvironmentKind(policy=AutoEpsilonGreedy(horizon=5_000), n_arms=4, paid="gaussian", spread=0.5),
    "eligible sets": EnvironmentKind(policy=ContextualEpsilonGreedy(p=60), n_arms=5, eligible=0.6),
    "floor": EnvironmentKind(policy=ContextualEpsilonGreedy(p=20, floor=0.05), paid="gaussian", spread=0.4),
    "not linear": EnvironmentKind(policy=Algorithm1(p=90, warmup="uniform"), paid="gaussian", spread=0.3, bend=0.4),
}
"""The environments by name. "p/t" is that of the study that the library was built on."""
EXPLORES_BY_EVIDENCE: Final = (ContextualEpsilonGreedy, AutoEpsilonGreedy)
BY_EVIDENCE: Final = tuple(name for name, kind in KINDS.items() if isinstance(kind.policy, EXPLORES_BY_EVIDENCE))
"""Those in which what was seen of an arm decides how soon it is explored again."""


@dataclass(frozen=True, slots=True)
class CoverageEnvironment:
    """Contexts, what arms pay there on average, and a policy to be valued: always the best of other slopes."""

    kind: EnvironmentKind
    contexts: Float64  # (POINTS, d)
    means: Float64  # (POINTS, K)
    slopes: Float64  # (K, d): of the target
    sets: Bool  # (sets, K): which arms are eligible, one set at a time

    def target(self, X: Float64, eligible: Bool) -> Float64:
        """Return what the policy to be valued plays, (n, K) probabilities."""
        scores = np.where(eligible, X @ self.slopes.T, -np.inf)
        return np.asarray(np.eye(self.kind.n_arms)[scores.argmax(axis=1)])

    def value(self) -> float:
        """Return the mean reward of the target over all contexts and sets of eligible arms."""
        every = np.ones((POINTS, 1), dtype=np.bool_)
        paid = [(self.target(self.contexts, every & plays) * self.means).sum(axis=1).mean() for plays in self.sets]
        return float(np.mean(paid))


def draw_environment(name: str, seeds: Seeds) -> CoverageEnvironment:
    """Draw the one environment of a kind."""
    kind = KINDS[name]
    rng = seeds.rng("worlds", name)
    contexts = rng.standard_normal((POINTS, kind.dim)) / np.sqrt(kind.dim)
    contexts[:, 0] = 1.0
    slopes = rng.standard_normal((kind.n_arms, kind.dim))
    means = kind.spread * (contexts @ slopes.T) / np.sqrt(2.0)
    means += kind.bend * np.sin(3.0 * contexts @ rng.standard_normal((kind.dim, kind.n_arms)))
    means += kind.level - means.mean()
    if kind.paid == "0 or 1":
        means = np.clip(means, 0.2 * kind.level, 1.0 - 0.2 * kind.level)
    other = slopes + 0.7 * rng.standard_normal(slopes.shape)
    return CoverageEnvironment(kind, contexts, means, other, _draw_sets(kind, rng))


def draw_steps(environment: CoverageEnvironment, rng: np.random.Generator) -> tuple[Int64, Float64, Bool]:
    """Draw the steps of one log: which contexts, what every arm would pay, and which arms are eligible."""
    kind = environment.kind
    points = rng.integers(POINTS, size=kind.horizon)
    mu = environment.means[points]
    noisy = rng.random(mu.shape) < mu if kind.paid == "0 or 1" else mu + 0.5 * rng.standard_normal(mu.shape)
    return points, noisy.astype(np.float64), environment.sets[rng.integers(len(environment.sets), size=kind.horizon)]


def _draw_sets(kind: EnvironmentKind, rng: np.random.Generator) -> Bool:
    """Draw sets of eligible arms, two arms at least in each; all arms, if all are always eligible."""
    if kind.eligible == 1.0:
        return np.ones((1, kind.n_arms), dtype=np.bool_)
    luck = rng.random((SETS, kind.n_arms))
    return np.asarray((luck < kind.eligible) | (luck <= np.sort(luck, axis=1)[:, 1:2]))


def values(log: HeldBlocks, target: Function, truth: float) -> dict[str, float]:
    """Return values and ends of intervals by name, and whether intervals covered at all looks."""
    result = evaluate(log, {NAME: target}, interval="fixed", checks="none")
    points, auto = result.estimates[NAME], result[NAME]
    estimates = {word: (points[word].value, points[word].interval) for word in ("weighted", "explored")}
    values: dict[str, float] = {}
    for word, (value, span) in (estimates | {"auto": (auto.value, auto.interval)}).items():
        low, high = span or (math.nan, math.nan)
        values |= {f"{word} value": value, f"{word} low": low, f"{word} high": high}
    rows = log[0]
    past = value_by_past(rows, target(rows.X, rows.eligible), LEVEL)
    values |= dict(zip(("past value", "past low", "past high"), past, strict=True))
    return values | _naive(rows, target) | _at_looks(log, rows, target, truth)


def _naive(rows: Rows, target: Function) -> dict[str, float]:
    """Take the rows in which the target's arm was played for a sample of what it would earn."""
    same = target(rows.X, rows.eligible)[np.arange(len(rows)), rows.arm] == 1.0
    paid = rows.reward[same]
    mean, reach = float(paid.mean()), 1.96 * float(paid.std(ddof=1)) / math.sqrt(len(paid))
    return {"naive low": mean - reach, "naive high": mean + reach}


def _at_looks(log: HeldBlocks, rows: Rows, target: Function, truth: float) -> dict[str, float]:
    """Follow the sequence, and next to it a fixed interval of explored rows, from look to look."""
    if log.reward_range is None:
        return dict.fromkeys(("at all looks", "fixed at all looks", "anytime low", "anytime high"), math.nan)
    ends = np.unique(np.geomspace(FIRST_LOOK, len(rows), LOOKS).astype(np.int64))
    sequences = AnytimeIntervals([NAME], log.reward_range, LEVEL)
    law = target(rows.X, rows.eligible)
    explored = rows.explored == 1
    w = law[np.arange(len(rows)), rows.arm][explored] / rows.exploration_propensity[explored]
    held = fixed = True
    start, low, high = 0, -math.inf, math.inf
    for end in ends:
        sequences.add(rows.take(slice(start, end)), {NAME: ArmLaw(law[start:end], rows.arm[start:end])})
        low, high = sequences.interval(NAME)
        held &= low <= truth <= high
        fixed &= _covered(rows.reward[:end][explored[:end]], w[: int(explored[:end].sum())], truth)
        start = end
    return {
        "at all looks": float(held),
        "fixed at all looks": float(fixed),
        "anytime low": low,
        "anytime high": high,
    }


def _covered(rewards: Float64, w: Float64, truth: float) -> bool:
    """Return whether the usual interval of a weighted mean covers."""
    value = float(w @ rewards / w.sum()) if w.sum() > 0 else math.nan
    se = math.sqrt(float((w * w) @ (rewards - value) ** 2)) / float(w.sum()) if w.sum() > 0 else math.nan
    return bool(abs(value - truth) <= 1.96 * se)


def own_values(kind: str, rng: np.random.Generator, seed: int) -> dict[str, float]:
    """Value the model of a uniform log by its own rows, and as if they were another's; where arms differ, or do not."""
    slopes = np.zeros((OWN_ARMS, OWN_DIM)) if kind == "noise" else 0.5 * rng.standard_normal((OWN_ARMS, OWN_DIM))
    X = rng.standard_normal((OWN_ROWS, OWN_DIM))
    rewards = X @ slopes.T + rng.standard_normal((OWN_ROWS, OWN_ARMS))
    rows, _ = play(Uniform(), X, rewards, seed)
    model = Bandit(range(OWN_ARMS), OWN_DIM, policy=ContextualEpsilonGreedy(p=1.0), seed=seed)
    model.fit(rows.X, rows.arm, rows.reward, explored=True)
    log = HeldBlocks(rows, range(OWN_ARMS))
    own = evaluate(log, "own", interval="fixed", checks="none")["own"]
    same = evaluate(log, {NAME: model}, estimator="replay", interval="fixed", checks="none")[NAME]
    fresh = rng.standard_normal((FRESH, OWN_DIM))
    low, high = own.interval or (math.nan, math.nan)
    return {
        "truth": float((model.predict_proba(fresh, mode="greedy") * (fresh @ slopes.T)).sum(axis=1).mean()),
        "own value": own.value,
        "own low": low,
        "own high": high,
        "same rows": same.value,
    }


def expected(X: Float64, arms: Int64, rewards: Float64, learned: Bool, n_arms: int) -> Float64:
    """Predict the reward of every arm in every row by ridge regression on the rows before it, (n, K).

    Examples
    --------
    >>> flags = np.array([True, True, True])
    >>> expected(np.zeros((3, 1)), np.array([0, 0, 0]), np.ones(3), flags, 2)[:, 0].round(3).tolist()
    [0.0, 0.5, 0.667]
    """
    n = len(X)
    Y = np.column_stack([np.ones(n), X])
    q = np.empty((n, n_arms))
    for arm in range(n_arms):
        taught = np.flatnonzero(learned & (arms == arm))
        theta = _thetas(Y[taught], rewards[taught])
        q[:, arm] = np.einsum("ij,ij->i", Y, theta[np.searchsorted(taught, np.arange(n))])  # strictly earlier rows
    return q


def _thetas(Y: Float64, rewards: Float64) -> Float64:
    """Return what is estimated before the first row, after it, ..., after the last: (n + 1, d + 1)."""
    size = Y.shape[1]
    V, b = np.zeros((len(Y) + 1, size, size)), np.zeros((len(Y) + 1, size))
    V[1:], b[1:] = np.cumsum(Y[:, :, None] * Y[:, None, :], axis=0), np.cumsum(Y * rewards[:, None], axis=0)
    return np.asarray(np.linalg.solve(V + RIDGE * np.eye(size), b[:, :, None])[:, :, 0])


def value_by_past(rows: Rows, law: Float64, level: float) -> tuple[float, float, float]:
    """Return the value of a target that plays by a law, (n, K), and the ends of its interval."""
    design = Design.of(rows)
    q = expected(rows.X, rows.arm, rows.reward, design.learned, law.shape[1])
    pi = prob_of_played(law, rows.arm)
    h = row_weights(contributions(law, pi, design), np.zeros(RUNNING), design)
    played = np.ascontiguousarray(q[np.arange(len(rows)), rows.arm])
    direct, explored = (law * q).sum(axis=1), design.explored.astype(np.float64)
    parts = (pi, direct, rows.reward, design.propensity, design.given, explored, played, h)
    F = row_features(*parts, **kernel_constants(ESTIMATORS.values()))
    own = gram(F, F)
    estimated = estimate("weighted", own)
    statistics = (estimated.value, math.sqrt(estimated.variance(own)), estimated.ess, level)
    clicks = bool(np.isin(rows.reward, (0.0, 1.0)).all())
    return (estimated.value, *(wilson(*statistics, (0.0, 1.0)) if clicks else t_interval(*statistics)))
