"""The experiments on Theorem 1, Theorem 2 and Lemma 2: known truths, structure, and the same numbers every time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from armlet import theory
from armlet.parallel import Seeds
from armlet.simulation.lab import Lab, as_floats
from armlet_lab.paper import lemma_2, theorem_1, theorem_2
from armlet_lab.runner.experiment import SEED, Finding, Findings, Outcome, Role
from armlet_lab.runner.page import render
from armlet_lab.runner.verdicts import to_json

LEMMA = lemma_2.Settings(p=60, steps=(100, 200, 400, 3_000), checked=400, runs=60)
THEOREM = theorem_2.Settings(runs=5, horizon=10**5, long_runs=2, long_horizon=10**6, cap=2_000, thetas=8)
TIMED = theorem_1.Settings(
    times=(100, 200, 400), dims=(4, 32), arms=(2, 8), stored=(100, 3_000), window=50, busy_steps=50, runs=3, tries=1
)


def all_findings() -> list[Findings]:
    return [
        theorem_1.find(TIMED, Lab(seed=SEED)),
        theorem_2.find(THEOREM, Lab(seed=SEED)),
        lemma_2.find(LEMMA, Lab(seed=SEED)),
    ]


def test_every_claim_has_a_section_with_a_figure_and_the_page_takes_them() -> None:
    found = all_findings()
    verdicts = [verdict for each in found for verdict in each.verdicts]
    sections = [section for each in found for section in each.sections]
    assert [verdict.claim.key for verdict in verdicts] == [section.claim for section in sections]
    assert all(section.pictures for section in sections)
    page = render("The theorems", sections, verdicts, {"seed": SEED})
    assert page.count("<figure") == sum(len(section.pictures) for section in sections)


def test_what_is_not_timed_repeats_to_the_byte() -> None:
    first, second = ([theorem_2.find(THEOREM, lab), lemma_2.find(LEMMA, lab)] for lab in (Lab(seed=7), Lab(seed=7)))
    for one, other in zip(first, second, strict=True):
        assert to_json(one.verdicts) == to_json(other.verdicts)
        assert one.sections == other.sections


def test_runs_do_not_depend_on_how_they_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(seed=7)
    whole = theorem_2.play_small(THEOREM, lab), lemma_2.simulate(LEMMA, lab)
    monkeypatch.setattr(theorem_2, "BATCH", 2)
    monkeypatch.setattr(lemma_2, "BATCH", 7)
    parts = theorem_2.play_small(THEOREM, lab), lemma_2.simulate(LEMMA, lab)
    for name, played in parts[0].items():
        np.testing.assert_array_equal(played.regret, whole[0][name].regret)
    np.testing.assert_array_equal(parts[1], whole[1])


# ---- Lemma 2


def test_the_law_of_the_count_is_that_of_a_sum_of_coins() -> None:
    # convolve all coins in full, and compare every chance
    p, K = 12, 3
    for t in (40, 90):
        law = np.ones(1)
        for i in range(p + 1, t):
            law = np.convolve(law, [1 - p / (K * i), p / (K * i)])
        for most in (3.5, 4.0, 6.0, 9.2):
            expected = law[: max(math.ceil(most) - p // K, 0)].sum()
            asked = lemma_2.CountLaw(p=p, n_arms=K, steps=(t,), rows=((math.ceil(most),),))
            assert lemma_2.chances(asked)["chances"] == pytest.approx(expected, rel=1e-12)


def test_steps_computed_together_agree_with_steps_computed_alone() -> None:
    together = lemma_2.compute(LEMMA, LEMMA.steps, Lab(seed=SEED))
    for column, t in enumerate(LEMMA.steps):
        alone = lemma_2.compute(LEMMA, [t], Lab(seed=SEED))
        np.testing.assert_allclose(together[:, column], alone[:, 0], rtol=1e-12)


def test_chances_of_the_published_settings_agree_with_the_normal_law() -> None:
    settings, t = lemma_2.Settings(), 20_000
    coins = settings.p / (settings.n_arms * np.arange(settings.p + 1, t))
    mean, spread = coins.sum() + 50, math.sqrt((coins * (1 - coins)).sum())
    found = lemma_2.compute(settings, [1_000, t], Lab(seed=SEED))[0]
    assert found[0] > 0.999
    # Berry-Esseen: off by at most 0.56 / spread, here 0.04
    expected = stats.norm.cdf((math.ceil(settings.printed(t)) - 0.5 - mean) / spread)
    assert found[1] == pytest.approx(expected, abs=0.56 / spread)


def test_the_printed_count_lies_above_the_true_mean_up_to_p_over_e_squared() -> None:
    settings = lemma_2.Settings()
    turn = (settings.p / math.e) ** 2
    assert settings.printed(0.99 * turn) > 2 * settings.repaired(0.99 * turn)
    assert settings.printed(1.01 * turn) < 2 * settings.repaired(1.01 * turn)


def test_lemma_2_fails_as_printed_and_holds_in_our_reading() -> None:
    (verdict,) = lemma_2.find(LEMMA, Lab(seed=SEED)).verdicts
    assert verdict.outcome is Outcome.UNDER_READING
    findings = {role: {each.finding for each in verdict.statistics if each.role is role} for role in Role}
    assert Finding.FAILS in findings[Role.WRITTEN]
    assert findings[Role.READING] == findings[Role.CONTROL] == {Finding.PASSES}


# ---- Theorem 2


def test_the_printed_p_and_bound_are_those_computed_by_hand() -> None:
    one, two = theorem_2.one_context(), theorem_2.two_contexts()
    assert [one.p, two.p] == pytest.approx([256, 1024])
    T = np.array([10**4])
    by_hand = 256 + 14 * 2 * math.exp(1 / 4) + 256 * math.log(1e4)
    assert one.bound(256, T)[0] == pytest.approx(by_hand)
    by_hand = math.sqrt(2) * math.sqrt(2) * (1024 + 28 * math.exp(1 / 4) + 1024 * math.log(1e4))
    assert two.bound(1024, T)[0] == pytest.approx(by_hand)


def test_a_p_below_the_condition_is_held_against_a_theorem_with_a_smaller_constant() -> None:
    one, T = theorem_2.one_context(), np.array([10**4])
    with pytest.raises(theory.AssumptionError, match="C = 128"):
        theory.theorem_bound(one.known, p=2.0, horizon=10**4, C=128)
    for p in (2.0, 100.0):
        needed = theory.theorem_p(one.constants, n_arms=2, C=one.allowed(p))
        assert 0.998 * p < needed < p
        assert one.bound(p, T)[0] == pytest.approx(p + 28 * math.exp(1 / 4) + p * math.log(1e4))
    assert one.allowed(one.p) == 128


def test_regret_at_the_theorems_p_is_the_price_of_exploring() -> None:
    # one context: half of all explored steps lose 1; 128 in the warm-up, then a coin of 128/t at step t
    runs = 50
    found = theorem_2.play(theorem_2.Task(seeds=Seeds(3), environment="one context", p=256, horizon=10**5, last=runs))
    coins = 128 / np.arange(257, 10**5 + 1)
    mean, spread = 128 + coins.sum(), math.sqrt((coins * (1 - coins)).sum() / runs)
    assert abs(as_floats(found["regret"])[:, -1].mean() - mean) < 4 * spread
    assert not found["exploiting"].any()


def test_theorem_2_holds_where_p_is_small_and_a_p_too_small_breaks_the_bound() -> None:
    settings = theorem_2.Settings(runs=100, horizon=10**6)
    lab = Lab(seed=SEED)
    verdict, _ = theorem_2.judge_small(settings, theorem_2.play_small(settings, lab), lab.seeds)
    assert verdict.outcome is Outcome.HOLDS
    assert [each.passed for each in verdict.statistics if each.role is Role.CONTROL] == [True]


def test_a_capped_p_is_called_a_reading() -> None:
    lab = Lab(seed=SEED)
    verdict, _ = theorem_2.judge_own(THEOREM, theorem_2.play_own(THEOREM, lab), lab.seeds)
    assert {each.role for each in verdict.statistics} == {Role.READING}
    assert "2,000" in verdict.claim.reading


def test_the_theorems_p_outlasts_the_figures_horizon() -> None:
    settings, lab = theorem_2.Settings(thetas=40), Lab(seed=SEED)
    verdict, section = theorem_2.judge_size(settings, theorem_2.ask(settings, lab), lab.seeds)
    assert verdict.outcome is Outcome.FAILS
    assert "inside the warm-up" in section.notes[0]


# ---- Theorem 1


def test_bytes_do_not_depend_on_t_and_grow_as_the_theorem_allows() -> None:
    settings = theorem_1.Settings()
    task = theorem_1.Sizes(seeds=Seeds(SEED), times=(100, 1_000, 5_000), dims=settings.dims, arms=settings.arms)
    found = {name: as_floats(array).tolist() for name, array in theorem_1.sizes(task).items()}
    assert len(set(found["t"])) == 1
    assert all(later <= 4 * sooner for sooner, later in zip(found["d"], found["d"][1:], strict=False))
    assert all(later <= 2 * sooner for sooner, later in zip(found["K"], found["K"][1:], strict=False))


def test_space_is_settled_by_counting_and_time_is_measured_for_every_setting() -> None:
    time, space = theorem_1.find(TIMED, Lab(seed=SEED)).verdicts
    assert space.outcome is Outcome.HOLDS
    assert len(time.statistics) == 7
    assert all(each.estimate is not None for each in time.statistics)
    seconds = theorem_1.along_time(TIMED.times, TIMED.window, Seeds(SEED), 0)
    assert seconds.shape == (3,)
    assert (seconds > 0).all()


def test_the_clock_moves_to_each_t_before_timing() -> None:
    bandit, contexts = theorem_1.make(2, 3, 10, Seeds(1), 0)
    assert theorem_1.steps(bandit, contexts, 25) > 0
    assert bandit.t == 25


def test_the_p_of_the_experiment_is_equation_4_with_C_of_128() -> None:
    for environment in (theorem_2.one_context(), theorem_2.figure_a(np.random.default_rng(1))):
        c, K = environment.constants, environment.table.means.shape[1]
        by_hand = 128 * K * max(1, c.L) ** 2 / (min(1, c.delta_min) ** 2 * min(1, c.sigma_min) ** 2)
        assert environment.p == pytest.approx(by_hand, rel=1e-14)  # the same number in another order of products


def test_the_bound_of_the_experiment_is_the_printed_one_to_the_letter() -> None:
    environment, T = theorem_2.figure_a(np.random.default_rng(1)), np.array([10**3, 10**6])
    c, (K, d) = environment.constants, (environment.table.means.shape[1], environment.table.contexts.shape[1])
    assert c.Q > 1  # so that e^(Q/4) tells rewards in their own unit from divided ones
    by_hand = c.delta_max * math.sqrt(d) * (environment.p + 14 * K * math.exp(c.Q / 4) + environment.p * np.log(T))
    assert environment.bound(environment.p, T) == pytest.approx(by_hand, rel=1e-14)
