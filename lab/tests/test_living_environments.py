"""Environments whose arms come and go, or whose rewards come late, are played as a user would play them, or refused."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import armlet
from armlet.environments import Delayed, Environment, FigureA, Linear, News
from armlet.kernel import Statistics
from armlet.parallel import Seeds
from armlet.policies import LinUCB, Uniform
from armlet.simulation.play import InPython, Job, StepBlock, draw, play, player, settings_of
from armlet.types import Bool, Choice, Coins, Float64, Int64, Interaction
from armlet_lab.literature.optimistic_epsilon_greedy import OptimisticEpsilonGreedy
from armlet_lab.runner import together
from support.in_python import InPython as InPythonPolicy


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def news(**settings: object) -> News:
    return News.draw(rng(1), **{"horizon": 3000, "life": 300, "alive": 6.0} | settings)  # type: ignore[arg-type]


def whole(environment: Environment, steps: int) -> StepBlock:
    return next(draw(environment, rng(2), rng(3), steps, size=steps))


def play_all(environment: Environment, block: StepBlock, policy: armlet.Policy, size: int) -> tuple[Int64, InPython]:
    chosen = player(environment, policy, 7)
    assert isinstance(chosen, InPython)
    starts = range(0, len(block.X), size)
    arms = [chosen.play(block.X[i : i + size], block.rewards[i : i + size])[0] for i in starts]
    return np.concatenate(arms), chosen


@pytest.mark.parametrize("size", [3000, 171])
@pytest.mark.parametrize("policy", [Uniform(), LinUCB(), OptimisticEpsilonGreedy()], ids=lambda p: type(p).__name__)
def test_only_arms_that_are_there_are_played_and_known(policy: armlet.Policy, size: int) -> None:
    environment = news()
    block = whole(environment, 3000)
    arms, last = play_all(environment, block, policy, size)
    here = environment.present(3000)
    assert here[np.arange(3000), arms].all()
    assert sorted(last.bandit.arms, key=int) == np.flatnonzero(here[-1]).tolist()
    assert len(set(arms.tolist())) > 40  # newcomers too


def test_blocks_of_any_size_play_the_same_news() -> None:
    environment = news()
    block = whole(environment, 3000)
    runs = [play_all(environment, block, LinUCB(), size)[0] for size in (3000, 171, 1)]
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])


def test_regret_is_against_the_best_arm_that_is_there() -> None:
    environment = news()
    block, here = whole(environment, 3000), environment.present(3000)
    mu = environment.means(block.X)
    for step in (0, 500, 2999):
        alive = np.flatnonzero(here[step])
        np.testing.assert_allclose(block.losses[step, alive], mu[step, alive].max() - mu[step, alive])
        assert np.isnan(np.delete(block.losses[step], alive)).all()
    found = play(Job(environment=environment, policy=Uniform(), horizon=3000, runs=1, seed=1), 0)
    expected = np.nanmean(block.losses, axis=1).sum()
    # uniform play loses the mean of the losses: about 1.3 a step with a standard deviation below 1.5
    assert abs(found.regret[-1] - expected) < 5 * 1.5 * np.sqrt(2 * 3000)


def test_a_policy_needs_to_suit_the_arms_that_are_there_not_all_that_ever_come() -> None:
    environment = news()
    assert environment.n_arms > 50
    job = Job(environment=environment, policy=armlet.Greedy(), horizon=100, runs=1, seed=1)
    assert job.method == "python"
    assert np.isfinite(play(job, 0).regret).all()


class Diary(InPythonPolicy):
    """Notes when each reward came: the step of its decision, and how many steps were decided by then."""

    decided = 0
    notes: ClassVar[list[tuple[int, int]]] = []

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        type(self).decided = t
        return super().decide(state, t, x, coins, eligible)

    def update(self, state: Statistics, interaction: Interaction) -> None:
        self.notes.append((interaction.t, type(self).decided))
        super().update(state, interaction)


@pytest.mark.parametrize("delay", [0, 1, 40])
def test_a_reward_comes_as_many_steps_late_as_was_said(delay: int) -> None:
    Diary.notes.clear()
    environment = Delayed(environment=FigureA.draw(rng(1)), delay=delay)
    play_all(environment, whole(environment, 200), Diary(p=1000), 70)
    assert Diary.notes == [(t, t + delay) for t in range(1, 201 - delay)]


@pytest.mark.parametrize("policy", [LinUCB(), OptimisticEpsilonGreedy()], ids=lambda p: type(p).__name__)
def test_no_delay_is_the_environment_itself(policy: armlet.Policy) -> None:
    environment = Linear.draw(rng(1))
    jobs = [
        Job(environment=each, policy=policy, horizon=500, runs=1, seed=3, method="python")
        for each in (environment, Delayed(environment=environment, delay=0))
    ]
    assert np.array_equal(play(jobs[0], 0).regret, play(jobs[1], 0).regret)


def test_late_rewards_of_arms_that_are_gone_are_dropped() -> None:
    environment = Delayed(environment=news(), delay=400)  # longer than any life
    _, last = play_all(environment, whole(environment, 1500), LinUCB(), 1500)
    assert last.bandit.state.n.sum() == 0


def test_delay_costs_regret() -> None:
    environment = Linear.draw(rng(1))
    jobs = [
        Job(environment=Delayed(environment=environment, delay=delay), policy=LinUCB(), horizon=2000, runs=1, seed=3)
        for delay in (0, 1000)
    ]
    prompt, late = (play(job, 0).regret[-1] for job in jobs)
    assert late > 2 * prompt  # half of the run is played without any knowledge


@pytest.mark.parametrize(
    "environment", [news(), Delayed(environment=FigureA.draw(rng(1)), delay=5)], ids=["news", "delayed"]
)
def test_whoever_plays_only_still_environments_refuses_the_others(environment: Environment) -> None:
    entry = together.Entry.of(armlet.ContextualEpsilonGreedy(p=500), environment)
    with pytest.raises(ValueError, match=r"together\.play does not play"):
        together.play(environment, [entry], 100, Seeds(1), 0)
    with pytest.raises(ValueError, match=r"armlet\.advise does not play"):
        armlet.advise(environment, horizon=1000)
    with pytest.raises(ValueError, match="needs a compiled policy and an environment that is a table"):
        Job(environment=environment, policy=LinUCB(), horizon=10, runs=1, seed=1, method="steps")


def test_the_settings_of_a_job_tell_one_delay_from_another() -> None:
    inner = FigureA.draw(rng(1))
    job = Job(environment=Delayed(environment=inner, delay=5), policy=LinUCB(), horizon=10, runs=1, seed=1)
    settings = settings_of(job)["environment"]
    assert settings == {
        "name": "Delayed",
        "settings": {
            "environment": {
                "name": "FigureA",
                "settings": {"theta": [list(row) for row in inner.theta], "zero": "keep"},
            },
            "delay": 5,
        },
    }
    assert settings_of(replace(job, environment=Delayed(environment=inner, delay=6)))["environment"] != settings
