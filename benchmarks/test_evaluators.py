"""Points and intervals of off-policy evaluation next to OBP 0.4.1 and vw-estimators 0.2.2, to 1e-9 on the same rows.

    .venv/bin/pytest -s benchmarks/test_evaluators.py     # part of `make bench`; installs and fetches what it needs

The logs are synthetic ones and the three campaigns of the Open Bandit sample; -s prints how far apart they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import armlet
from armlet import datasets
from armlet.datasets.feedback import OPEN_BANDIT
from armlet.evaluation.estimators import Shrunk, Switch, estimate
from armlet.inference.intervals import Z
from armlet.inference.sequences import MeanSequence, mixed_margin
from armlet.types import Bool, Float64, Int64
from armlet_lab.validation.printed_tables.digits import gram_with
from evaluators import ask

CLOSE = 1e-9
MOST, SHRINK = 3.0, 2.0  # of Switch-DR and DRos: both bite on these logs
LOGS = ("uniform", "softmax", "all", "men", "women")
WORDS: tuple[str, ...] = ("ips", "snips", "dm", "dr", "sndr", "switch", "shrunk")


@dataclass(frozen=True, slots=True)
class Case:
    """A log, a target and a reward model."""

    X: Float64
    arms: Int64
    rewards: Float64
    chances: Float64  # (n,): with which the arms were played
    pi: Float64  # (n, K)
    q: Float64  # (n, K)

    @property
    def chance(self) -> Float64:
        """What the target has for the arms that were played."""
        return np.ascontiguousarray(self.pi[np.arange(len(self.arms)), self.arms])


@cache
def case(name: str) -> Case:
    """Make a synthetic log, or read a campaign of the uniform logger with the shares of the other one as the target."""
    rng = np.random.default_rng([5, LOGS.index(name)])
    if name in ("uniform", "softmax"):
        n, n_arms = 3000, 6
        X = rng.normal(size=(n, 4))
        scores = X @ rng.normal(size=(4, n_arms)) * (name == "softmax")
        law = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        arms = (law.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        rewards = (rng.random(n) < 0.2 + 0.1 * arms).astype(np.float64)
        chances = law[np.arange(n), arms]
        pi = rng.dirichlet(np.ones(n_arms), n)
    else:
        datasets.fetch(OPEN_BANDIT)
        log, other = (datasets.open_bandit(logger, name) for logger in ("random", "bts"))  # type: ignore[arg-type]
        X, arms, rewards, chances, n_arms = log.X, log.arms, log.rewards, log.propensities, log.n_arms
        shares = np.bincount(other.arms, minlength=n_arms) / len(other)
        pi = np.tile(shares, (len(log), 1))
    return Case(X, arms, rewards, chances, pi, rng.random(pi.shape) * rewards.mean() * 2)


def own_gram(given: Case) -> Float64:
    """Return the sums that every estimate is read off, from the same reward model."""
    return gram_with(given.arms, given.rewards, given.chances, given.pi, given.q, Switch(MOST), Shrunk(SHRINK))


def guesses(scores: Float64) -> Float64:
    """Return what is guessed of each score from those before it, as vw-estimators does."""
    return np.asarray((np.append(0.0, scores.cumsum()[:-1]) + 0.5) / np.arange(1, len(scores) + 1))


def uncut_bound(scores: Float64) -> float:
    """Return our lower bound, but about guesses that are not cut at 1."""
    squares = float(((scores - guesses(scores)) ** 2).sum())
    bound = (scores.sum() - float(mixed_margin(squares, math.log(40.0)))) / len(scores)
    return float(np.clip(bound, 0.0, 1.0))


def tell(name: str, what: str, apart: float) -> None:
    print(f"{name:>8}  {what:24} {apart:.1e} apart")


@pytest.mark.parametrize("name", LOGS)
def test_seven_points_are_those_of_obp(name: str) -> None:
    given, own = case(name), own_gram(case(name))
    arrays = {"reward": given.rewards, "action": given.arms, "pscore": given.chances, "pi": given.pi, "q": given.q}
    theirs = ask("obp", "points", **arrays, most=MOST, shrink=SHRINK)
    for word in WORDS:
        apart = abs(estimate(word, own).value - theirs[word])
        tell(name, f"OBP {word}", apart)
        assert apart < CLOSE


def as_log(given: Case) -> object:
    feedback = {"context": given.X, "action": given.arms, "reward": given.rewards, "pscore": given.chances}
    return armlet.log.from_obp(feedback | {"n_actions": given.pi.shape[1]})


@pytest.mark.parametrize("name", LOGS)
def test_points_and_intervals_are_those_of_vw_estimators(name: str) -> None:
    given = case(name)

    def target(X: Float64, eligible: Bool) -> Float64:
        assert len(X) == len(eligible) == len(given.pi)
        return given.pi

    arrays = {"reward": given.rewards, "pscore": given.chances, "chance": given.chance}
    theirs = ask("vw_estimators", "points", **arrays, low=0.0, high=1.0)
    own = own_gram(given)
    ips = estimate("ips", own)
    half = Z * math.sqrt(ips.variance(own))
    low, high = (given.chance / given.chances * u for u in (given.rewards, 1.0 - given.rewards))
    ours = {"gaussian": [ips.value - half, ips.value + half], "cs": [uncut_bound(low), 1.0 - uncut_bound(high)]}
    for word in ("ips", "snips"):
        found = armlet.evaluate(as_log(given), target, estimator=word, interval="fixed")  # type: ignore[arg-type]
        ours[word] = [found["target"].value]
    for word, value in ours.items():
        apart = float(np.abs(np.array(value) - np.array(theirs[word])).max())
        tell(name, f"vw-estimators {word}", apart)
        assert apart < CLOSE


@pytest.mark.parametrize("name", LOGS)
def test_our_sequence_is_that_of_vw_estimators_unless_it_guesses_a_mean_above_1(name: str) -> None:
    """Armlet is right: scores less a guess above 1 may fall below -1, where the bet's inequality does not hold."""
    given = case(name)
    weights = given.chance / given.chances
    sequence = MeanSequence((0.0, 1.0), kind="gamma-exponential")
    sequence.add(given.rewards, weights=weights)
    ours = sequence.interval()
    low, high = weights * given.rewards, weights * (1.0 - given.rewards)
    for end, theirs, scores in ((ours.low, uncut_bound(low), low), (1.0 - ours.high, uncut_bound(high), high)):
        apart = abs(end - theirs)
        wild = int((guesses(scores) > 1.0).sum())
        tell(name, f"a sequence, {wild} guesses cut", apart)
        assert apart < (CLOSE if wild == 0 else 1e-2)
