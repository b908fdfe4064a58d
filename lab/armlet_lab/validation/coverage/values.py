"""One log valued in all ways that are compared: as `armlet.evaluate` chooses, by explored rows, at all looks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.monitor import AnytimeIntervals
from armlet.evaluation.rows import Rows
from armlet.policies import ContextualEpsilonGreedy, Uniform
from armlet.types import Bool, Float64
from armlet_lab.validation.coverage.logs import Held, play
from armlet_lab.validation.coverage.past import value_by_past

Function: TypeAlias = Callable[[Float64, Bool], Float64]

NAME: Final = "target"
LEVEL: Final = 0.95
LOOKS: Final = 12
FIRST_LOOK: Final = 100  # decisions
OWN_ROWS: Final = 300
OWN_ARMS: Final = 5
OWN_DIM: Final = 5
FRESH: Final = 4096  # contexts for the truth


def values(log: Held, target: Function, truth: float) -> dict[str, float]:
    """Give values and ends of intervals by name, and whether intervals covered at all looks."""
    result = evaluate(log, {NAME: target}, interval="fixed", checks="none")
    points, auto = result.estimates[NAME], result[NAME]
    told = {word: (points[word].value, points[word].interval) for word in ("weighted", "explored")}
    found: dict[str, float] = {}
    for word, (value, span) in (told | {"auto": (auto.value, auto.interval)}).items():
        low, high = span or (math.nan, math.nan)
        found |= {f"{word} value": value, f"{word} low": low, f"{word} high": high}
    rows = log[0]
    past = value_by_past(rows, target(rows.X, rows.eligible), LEVEL)
    found |= dict(zip(("past value", "past low", "past high"), past, strict=True))
    return found | _naive(rows, target) | _at_looks(log, rows, target, truth)


def _naive(rows: Rows, target: Function) -> dict[str, float]:
    """Take the rows in which the target's arm was played for a sample of what it would earn."""
    same = target(rows.X, rows.eligible)[np.arange(len(rows)), rows.arm] == 1.0
    paid = rows.reward[same]
    mean, reach = float(paid.mean()), 1.96 * float(paid.std(ddof=1)) / math.sqrt(len(paid))
    return {"naive low": mean - reach, "naive high": mean + reach}


def _at_looks(log: Held, rows: Rows, target: Function, truth: float) -> dict[str, float]:
    """Follow the sequence, and beside it a fixed interval of explored rows, from look to look."""
    if log.reward_range is None:
        return dict.fromkeys(("at all looks", "fixed at all looks", "anytime low", "anytime high"), math.nan)
    ends = np.unique(np.geomspace(FIRST_LOOK, len(rows), LOOKS).astype(np.int64))
    sequences = AnytimeIntervals([NAME], log.reward_range, LEVEL)
    law = target(rows.X, rows.eligible)
    explored = rows.explored == 1
    w = law[np.arange(len(rows)), rows.arm][explored] / rows.given_exploring[explored]
    held = fixed = True
    start, low, high = 0, -math.inf, math.inf
    for end in ends:
        sequences.add(rows.take(slice(start, end)), {NAME: law[start:end]})
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
    """Say whether the usual interval of a weighted mean covers."""
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
    log = Held(rows, range(OWN_ARMS))
    own = evaluate(log, "own", interval="fixed", checks="none")["own"]
    same = evaluate(log, {NAME: model}, estimator="replay", interval="fixed", checks="none")[NAME]
    fresh = rng.standard_normal((FRESH, OWN_DIM))
    low, high = own.interval or (math.nan, math.nan)
    return {
        "truth": float((model.greedy_proba(fresh) * (fresh @ slopes.T)).sum(axis=1).mean()),
        "own value": own.value,
        "own low": low,
        "own high": high,
        "same rows": same.value,
    }
