"""The experiments on Theorem 1, Theorem 2 and Lemma 2: known truths, structure, and the same numbers every time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from armlet.experiments import lemma2, theorem1, theorem2
from armlet.experiments.experiment import SEED, Findings
from armlet.experiments.report import render
from armlet.experiments.verdicts import Finding, Outcome, Role, to_json

LEMMA = lemma2.Settings(p=60, steps=(100, 200, 400, 3_000), checked=400, runs=60)
THEOREM = theorem2.Settings(runs=5, horizon=10**5, long_runs=2, long_horizon=10**6, cap=2_000, thetas=8)
TIMED = theorem1.Settings(
    times=(100, 200, 400), dims=(4, 32), arms=(2, 8), stored=(100, 3_000), window=50, busy_steps=50, runs=3, tries=1
)


def quiet(_: str) -> None:
    pass


def small_theorem2(seed: int) -> Findings:
    parts = (theorem2.find_small, theorem2.find_own, theorem2.find_size)
    verdicts, sections = zip(*(part(THEOREM, seed, quiet) for part in parts), strict=True)
    return Findings(verdicts, sections)


def all_findings() -> list[Findings]:
    return [theorem1.find(TIMED, SEED, quiet), small_theorem2(SEED), lemma2.find(LEMMA, SEED, quiet)]


def test_every_claim_has_a_section_with_a_figure_and_the_page_takes_them() -> None:
    found = all_findings()
    verdicts = [verdict for each in found for verdict in each.verdicts]
    sections = [section for each in found for section in each.sections]
    assert [verdict.claim.key for verdict in verdicts] == [section.claim for section in sections]
    assert all(section.pictures for section in sections)
    page = render("The theorems", sections, verdicts, {"seed": SEED})
    assert page.count("<figure") == sum(len(section.pictures) for section in sections)


def test_what_is_not_timed_repeats_to_the_byte() -> None:
    for find in (small_theorem2, lambda seed: lemma2.find(LEMMA, seed, quiet)):
        first, second = find(7), find(7)
        assert to_json(first.verdicts) == to_json(second.verdicts)
        assert first.sections == second.sections


# ---- Lemma 2


def test_the_law_of_the_count_is_that_of_a_sum_of_coins() -> None:
    # convolve all coins in full, and compare every chance
    p, K = 12, 3
    settings = lemma2.Settings(p=p, n_arms=K, steps=(40, 90), checked=90)
    for t in settings.steps:
        law = np.ones(1)
        for i in range(p + 1, t):
            law = np.convolve(law, [1 - p / (K * i), p / (K * i)])
        for most in (3.5, 4.0, 6.0, 9.2):
            expected = law[: max(math.ceil(most) - p // K, 0)].sum()
            found = lemma2.chances(settings, [t], [lambda _, most=most: most])  # type: ignore[misc]
            assert found[0, 0] == pytest.approx(expected, rel=1e-12)


def test_steps_computed_together_agree_with_steps_computed_alone() -> None:
    together = lemma2.chances(LEMMA, LEMMA.steps, [LEMMA.printed, LEMMA.repaired])
    for column, t in enumerate(LEMMA.steps):
        alone = lemma2.chances(LEMMA, [t], [LEMMA.printed, LEMMA.repaired])
        np.testing.assert_allclose(together[:, column], alone[:, 0], rtol=1e-12)


def test_chances_of_the_published_settings_agree_with_the_normal_law() -> None:
    settings, t = lemma2.Settings(), 20_000
    coins = settings.p / (settings.n_arms * np.arange(settings.p + 1, t))
    mean, spread = coins.sum() + 50, math.sqrt((coins * (1 - coins)).sum())
    found = lemma2.chances(settings, [1_000, t], [settings.printed])[0]
    assert found[0] > 0.999
    # Berry-Esseen: off by at most 0.56 / spread, here 0.04
    expected = stats.norm.cdf((math.ceil(settings.printed(t)) - 0.5 - mean) / spread)
    assert found[1] == pytest.approx(expected, abs=0.56 / spread)


def test_the_printed_count_lies_above_the_true_mean_up_to_p_over_e_squared() -> None:
    settings = lemma2.Settings()
    turn = (settings.p / math.e) ** 2
    assert settings.printed(0.99 * turn) > 2 * settings.repaired(0.99 * turn)
    assert settings.printed(1.01 * turn) < 2 * settings.repaired(1.01 * turn)


def test_lemma_2_fails_as_printed_and_holds_in_our_reading() -> None:
    (verdict,) = lemma2.find(LEMMA, SEED, quiet).verdicts
    assert verdict.outcome is Outcome.UNDER_READING
    findings = {role: {each.finding for each in verdict.statistics if each.role is role} for role in Role}
    assert Finding.FAILS in findings[Role.WRITTEN]
    assert findings[Role.READING] == findings[Role.CONTROL] == {Finding.PASSES}


# ---- Theorem 2


def test_the_printed_p_and_bound_are_those_computed_by_hand() -> None:
    one, two = theorem2.one_context(), theorem2.two_contexts()
    assert [one.p, two.p] == pytest.approx([256, 1024])
    T = np.array([10**4])
    by_hand = 256 + 14 * 2 * math.exp(1 / 4) + 256 * math.log(1e4)
    assert one.bound(256, T)[0] == pytest.approx(by_hand)
    by_hand = math.sqrt(2) * math.sqrt(2) * (1024 + 28 * math.exp(1 / 4) + 1024 * math.log(1e4))
    assert two.bound(1024, T)[0] == pytest.approx(by_hand)


def test_regret_at_the_theorems_p_is_the_price_of_exploring() -> None:
    # one context: half of all explored steps lose 1; 128 in the warm-up, then a coin of 128/t at step t
    problem, runs = theorem2.one_context(), 50
    regret, exploiting = theorem2.play(problem, problem.p, 10**5, runs, seed=3)
    coins = 128 / np.arange(257, 10**5 + 1)
    mean, spread = 128 + coins.sum(), math.sqrt((coins * (1 - coins)).sum() / runs)
    assert abs(regret[:, -1].mean() - mean) < 4 * spread
    assert (exploiting == 0).all()


def test_theorem_2_holds_where_p_is_small_and_a_p_too_small_breaks_the_bound() -> None:
    settings = theorem2.Settings(runs=100, horizon=10**6)
    verdict, _ = theorem2.find_small(settings, SEED, quiet)
    assert verdict.outcome is Outcome.HOLDS
    assert [each.passed for each in verdict.statistics if each.role is Role.CONTROL] == [True]


def test_a_capped_p_is_called_a_reading() -> None:
    verdict, _ = theorem2.find_own(THEOREM, SEED, quiet)
    assert {each.role for each in verdict.statistics} == {Role.READING}
    assert "2,000" in verdict.claim.reading


def test_the_theorems_p_outlasts_the_figures_horizon() -> None:
    verdict, section = theorem2.find_size(theorem2.Settings(thetas=40), SEED, quiet)
    assert verdict.outcome is Outcome.FAILS
    assert "inside the warm-up" in section.notes[0]


# ---- Theorem 1


def test_bytes_do_not_depend_on_t_and_grow_as_the_theorem_allows() -> None:
    found = theorem1.sizes(theorem1.Settings(times=(100, 1_000, 5_000)), SEED)
    assert len(set(found["t"])) == 1
    assert all(later <= 4 * sooner for sooner, later in zip(found["d"], found["d"][1:], strict=False))
    assert all(later <= 2 * sooner for sooner, later in zip(found["K"], found["K"][1:], strict=False))


def test_space_is_settled_by_counting_and_time_is_measured_for_every_setting() -> None:
    time, space = theorem1.find(TIMED, SEED, quiet).verdicts
    assert space.outcome is Outcome.HOLDS
    assert len(time.statistics) == 7
    assert all(each.estimate is not None for each in time.statistics)
    assert theorem1.along_time(TIMED, SEED).shape == (3,)
    assert (theorem1.along_time(TIMED, SEED) > 0).all()


def test_the_clock_moves_to_each_t_before_timing() -> None:
    bandit, contexts = theorem1.make(2, 3, 10, seed=1)
    assert theorem1.steps(bandit, contexts, 25) > 0
    assert bandit.t == 25
