"""The policy that an advice names first: when it is the default, when another, and how often its interval holds."""

from __future__ import annotations

import dataclasses
import html

import numpy as np
import pytest

from armlet.advice import Advice, Pilot, Prior, advise, comparison, page, words
from armlet.advice.ab_test import Plan
from armlet.advice.comparison import Compiled, Contest, PolicyComparison, StepTask, compared, play_steps
from armlet.advice.pilot import as_source
from armlet.advice.problem import Stakes
from armlet.advice.runs import Sample, mean_interval, predictive
from armlet.policies import ContextualEpsilonGreedy, LinUCB, OccasionalOptimism, ThompsonSampling
from armlet.report.numbers import common_places, show
from armlet.types import Estimate, Float64, Interval
from support import advices

POLICIES: tuple[Compiled, ...] = (
    OccasionalOptimism(),
    OccasionalOptimism(floor=0.02),
    LinUCB(alpha=0.5),
    ThompsonSampling(v=1.0),
    ContextualEpsilonGreedy(p=64.0),
)


def contest(*means: float, spread: float = 10.0, test: float = 140.0) -> PolicyComparison:
    """Compare made-up regrets in 40 environments: what they have in common is 10 wide, what they have not `spread`.

    The best arm pays 1 a decision, so 1,000 in all; `test` is what an A/B test loses.
    """
    rng = np.random.default_rng(1)
    shared = rng.normal(0.0, 10.0, (40, 1, 1))

    def lost(mean: float) -> Float64:
        return mean + shared + rng.normal(0.0, spread, (40, 1, 1))

    regrets: list[tuple[Compiled, Float64]] = [
        (policy, lost(mean)) for policy, mean in zip(POLICIES, means, strict=True)
    ]
    return compared(made_up(regrets, (100, lost(test))))


def made_up(policies: list[tuple[Compiled, Float64]], test: tuple[int, Float64]) -> Contest:
    """A contest over 1,000 decisions in which random play loses 0.3 of them."""
    n = len(test[1])
    stakes = [Stakes(1.0, np.array([0.2, 0.4]), 0.5, "gaussian")] * n
    plan = Plan(decisions=test[0], asked=test[0], difference=0.3, deviation=0.5, n_arms=2)
    luck = np.zeros((n, 1))
    steps = np.array([1000])
    return Contest(steps=steps, policies=policies, test=plan, tests=[test], stakes=stakes, luck=luck, sign=1.0)


def words_of(policies: PolicyComparison) -> str:
    advice = dataclasses.replace(advices.usual(), policies=policies, horizon=1000, unit="clicks")
    return f"{words.headline(advice)} {words.for_a_log(advice)}"


@pytest.mark.parametrize(
    ("means", "spread"),
    [
        ((100.0, 100.0, 120.0, 120.0, 170.0), 10.0),  # it loses least
        ((100.0, 100.0, 99.0, 101.0, 170.0), 10.0),  # another may lose less: 1 +- 2.2
        ((100.0, 100.0, 98.0, 101.0, 170.0), 0.1),  # another surely does, by too little to matter
    ],
)
def test_the_default_is_named_first_unless_another_policy_is_clearly_better(
    means: tuple[float, ...], spread: float
) -> None:
    found = contest(*means, spread=spread)
    assert found.recommended is found.default
    gain = Estimate(found.default.gain.value, *found.default.gain_range)
    earned, tested, nothing = (
        show(row.total, common_places([gain])) for row in (found.default, found.ab_test.played, found.nothing)
    )
    assert words_of(found).startswith(
        f"Take the default policy (leave policy= out): it earns about {earned} clicks over 1,000 decisions "
        f"instead of {tested} with an A/B test, {show(gain)} more; doing nothing earns {nothing}. "
    )
    assert found.price.value == pytest.approx(found.exploring.lost - found.default.lost)
    only = "Only if you will evaluate other policies from this log: ContextualEpsilonGreedy(p=64), which earns about "
    assert f"{only}{show(Estimate(found.price.value, *found.price_range))} clicks less." in words_of(found)


def test_a_policy_that_is_clearly_better_is_named_first_with_what_it_earns() -> None:
    found = contest(100.0, 100.0, 60.0, 70.0, 170.0)
    assert found.recommended.code == "armlet.LinUCB(alpha=0.5)"
    assert words_of(found).startswith(
        f"Take LinUCB(alpha=0.5): it earns about {show(found.recommended.total, 0)} clicks "
    )
    assert found.price.value == pytest.approx(found.exploring.lost - found.recommended.lost)


def test_where_exploring_by_p_is_clearly_better_it_serves_both_ends() -> None:
    found = contest(100.0, 100.0, 90.0, 95.0, 50.0)
    assert found.recommended is found.exploring
    assert words_of(found).startswith("Take ContextualEpsilonGreedy(p=64): it earns about ")
    assert words_of(found).endswith("doing nothing earns 700. Other policies can be evaluated from its log.")


def test_an_ab_test_that_surely_earns_more_is_what_to_run() -> None:
    found = contest(100.0, 100.0, 99.0, 101.0, 170.0, test=50.0)
    start = "Run an A/B test of 100 decisions and keep the winner: it earns about "
    assert words_of(found).startswith(start + show(-found.default.gain.value, 0))
    assert " clicks more than the default policy over 1,000 decisions. " in words_of(found)


def test_many_settings_that_are_all_alike_seldom_beat_the_default() -> None:
    """The luckiest of ten settings must not pass for better: in 5 of 100 at most, and 3 deviations."""
    rng = np.random.default_rng(2)
    wrong = 0
    for _ in range(100):
        regrets: list[tuple[Compiled, Float64]] = [
            (policy, 100 + rng.normal(0.0, 30.0, (20, 1, 1))) for policy in POLICIES
        ]
        luckiest = min((rng.normal(100.0, 30.0, (20, 1, 1)) for _ in range(6)), key=np.mean)
        regrets[2] = (POLICIES[2], luckiest)
        wrong += compared(made_up(regrets, (100, regrets[0][1] + 40))).best != 0
    assert wrong <= 5 + 3 * 2.2


@pytest.fixture(scope="module")
def advice() -> Advice:
    return advices.usual()


def test_terminal_page_json_and_frame_give_the_same_answer(advice: Advice) -> None:
    document = advice.to_dict()
    answer, log = document["answer"], document["for_a_log"]
    assert (answer, log) == (words.headline(advice), words.for_a_log(advice))
    assert " ".join(advice.lines()).startswith(f"{answer} {log}")
    assert repr(advice) == f"{answer}\n{log}"
    text = html.unescape(page.render(advice))
    assert f'<p class="answer">{answer}</p>' in text
    assert f'<p class="answer">{log}</p>' in text
    assert answer in html.unescape(advice._repr_html_())
    frame = advice.to_pandas()
    assert document["policy"] == advice.policies.recommended.code
    for (name, total, gain), *numbers in zip(
        words.policies(advice).rows, frame.choice, frame.total, frame.gain, strict=True
    ):
        assert (name in text, total in text, gain in text) == (True, True, True)
        assert name == numbers[0]
        for cell, number in zip((total, gain), numbers[1:], strict=True):
            assert float(cell.split(" ")[0].replace(",", "")) == pytest.approx(number, abs=0.51)


def test_what_policies_earn_lose_and_gain_adds_up(advice: Advice) -> None:
    o = advice.policies
    best = o.default.total + o.default.lost
    for row in (*o.rows, o.ab_test.played, o.nothing, o.random):
        assert row.total + row.lost == pytest.approx(best)
        assert row.gain.value == pytest.approx(row.total - o.ab_test.played.total, abs=1e-9)
        assert row.gain.low <= row.gain.value <= row.gain.high
        assert row.lost_range.low <= row.lost <= row.lost_range.high
    for row in o.rows[1:]:
        assert row.difference is not None
        assert row.difference.value == pytest.approx(row.lost - o.default.lost)
    assert o.nothing.total == pytest.approx(o.random.total)  # no arm is named: on average any arm is as good
    assert o.over_time.policy.mean[-1] == pytest.approx(o.recommended.total - o.nothing.total)
    assert o.over_time.ab_test.mean[-1] == pytest.approx(o.ab_test.played.total - o.nothing.total)


def test_a_better_p_is_said_to_be_all_that_more_data_could_save(advice: Advice) -> None:
    text = dict(words.about_p(advice))["A better p"]
    assert "through p; it would also narrow the intervals above" in text
    assert "change little" not in " ".join(advice.lines())


def prediction(prior: Prior, seed: int) -> tuple[float, Interval, Interval]:
    """Draw an environment and a pilot of it; give what a fresh run loses, and the intervals of one run and the mean."""
    rng, T = np.random.default_rng(seed), 2000
    environment = prior.sample(1, seed)[0].table
    at, arms = rng.choice(len(environment.chances), size=1000, p=environment.chances), rng.integers(4, size=1000)
    rewards = environment.means[at, arms] + environment.scale * rng.standard_normal(1000)
    problems = as_source(Pilot(environment.contexts[at], arms, rewards), T, "max").sample(20, seed)
    at = np.array([T])
    tasks = [StepTask(problem.table, comparison.DEFAULT, at, (seed, i)) for i, problem in enumerate(problems)]
    sample = Sample(np.concatenate([play_steps(task) for task in tasks]), np.arange(20))
    one = predictive(sample, T * max(problem.table.gap for problem in problems))
    lost = float(play_steps(StepTask(environment, comparison.DEFAULT, at, (seed, 10**6)))[-1])
    return lost, one, mean_interval(sample)


def test_a_run_after_a_pilot_loses_what_was_predicted_for_one_run() -> None:
    """What simulation knows of the mean is not what one run will lose: its interval, once printed, misses most runs."""
    prior = Prior(n_arms=4, dim=6, effect=(0.1, 0.5), noise=1.0)
    found = [prediction(prior, seed) for seed in range(24)]
    # of 22.8 promised; 3.5 standard deviations of a binomial are 3.7
    assert sum(one.low <= lost <= one.high for lost, one, _ in found) >= 19
    assert sum(mean.low <= lost <= mean.high for lost, _, mean in found) < 12


def test_the_default_is_played_on_the_environments_and_seeds_of_the_search_for_p() -> None:
    found = advise(Prior(n_arms=2, dim=2, effect=0.3, noise=1.0), horizon=500, problems=4, runs=2, seed=3)
    assert (found.policies.problems, found.policies.runs) == (4, 2)
    assert found.policies.exploring.lost == pytest.approx(found.row.mean)  # those very runs
