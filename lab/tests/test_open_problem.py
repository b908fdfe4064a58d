"""The experiment on the open problem: exact simulators, contexts as described, and statistics that can fail."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from armlet.parallel import Seeds
from armlet.simulation.lab import Lab
from armlet.types import Float64
from armlet_lab.paper.open_problem import experiment
from armlet_lab.paper.open_problem.environments import (
    BY_ROWS,
    CASES,
    ENVIRONMENTS,
    GAP,
    HONEST,
    NOISE,
    PUBLIC,
    SELDOM,
    draw,
    scheduled,
    theta_norm,
)
from armlet_lab.paper.open_problem.experiment import (
    WIDTHS,
    Counts,
    Settings,
    bound,
    mean_with_limits,
    share_with_limits,
)
from armlet_lab.paper.open_problem.simulator import Game, GameRun, Policy, play_blocks, play_steps
from armlet_lab.paper.open_problem.tasks import LEVEL, Ellipsoids, Runs, look, play, play_armlet
from armlet_lab.runner.experiment import Finding, Outcome, Role
from armlet_lab.runner.page import render

SEEDS = Seeds(71_500, "open-problem")
TINY = Settings(
    horizons=(100, 300, 1_000),
    runs=4,
    late_runs=(4, 4, 4),
    by_rows_runs=(4, 4, 4),
    seldom_runs=(4, 4, 4),
    ellipsoid_runs=20,
    ellipsoid_steps=50,
    product_horizons=(1_000,),
    product_runs=4,
)


def policy_of(case: str, **changes: float) -> Policy:
    """Return the policy of a case, with room for changes."""
    known = Policy(ridge=0.05, noise_scale=NOISE, theta_norm=theta_norm(CASES[case].environment))
    return replace(known, refresh=CASES[case].refresh, **changes)


# ---- the simulators


@pytest.mark.parametrize("case", CASES)
def test_blocks_play_what_steps_play_to_the_last_bit(case: str) -> None:
    games = [draw(SEEDS, CASES[case], 700, run)[0] for run in range(3)]
    policy = policy_of(case)
    together, _ = play_steps(games, policy)
    for game, one in zip(games, together, strict=True):
        for mine, other in zip(play_blocks(game, policy), one, strict=True):
            np.testing.assert_array_equal(mine, other)


def loop(game: Game, policy: Policy) -> tuple[GameRun, bool]:
    """Play by the definitions alone: matrices, one step after the other."""
    T, d = len(game.coins), 2
    V, b, n = [policy.ridge * np.eye(d) for _ in range(2)], [np.zeros(d) for _ in range(2)], [0, 0]
    solved, last, outside = [(V[a], b[a]) for a in range(2)], policy.last_solve(T), False
    out = GameRun(np.empty(T, dtype=np.int64), game.shown.copy(), np.empty(T))
    for t in range(T):
        level = policy.delta or 1 / ((t + 1) * (t + 2))
        theta, beta = [], []
        for A, sums in solved:
            log_det = np.linalg.slogdet(A / policy.ridge)[1]
            spread = policy.noise_scale * math.sqrt(log_det + 2 * math.log(2 / level))
            beta.append(policy.width * (spread + math.sqrt(policy.ridge) * policy.theta_norm))
            theta.append(np.linalg.solve(A, sums))
        for a in range(2):
            off = theta[a] - game.theta[a]
            outside = outside or bool(math.sqrt(off @ solved[a][0] @ off) > beta[a])
        if game.adaptive:
            losses = [game.losses[m, np.argmax([x @ each for each in theta])] for m, x in enumerate(game.pool)]
            out.shown[t] = np.argmax(losses) if max(losses) > 0 else game.shown[t]
        x = game.pool[out.shown[t]]
        means = np.array([x @ each for each in theta])
        bonus = np.array([beta[a] * math.sqrt(x @ np.linalg.solve(solved[a][0], x)) for a in range(2)])
        hopeful = int(np.argmax(means + bonus))
        out.arms[t] = arm = hopeful if game.coins[t] else int(np.argmax(means))
        out.bonus[t] = bonus[hopeful]
        reward = x @ game.theta[arm] + game.noise[t]
        V[arm], b[arm], n[arm] = V[arm] + np.outer(x, x), b[arm] + reward * x, n[arm] + 1
        if last[n[arm]] == n[arm]:
            solved[arm] = V[arm], b[arm]
    return out, outside


@pytest.mark.parametrize("case", ["late", "growing", "adaptive", BY_ROWS])
def test_steps_follow_the_definitions(case: str) -> None:
    games = [draw(SEEDS, CASES[case], 250, run)[0] for run in range(2)]
    for policy in (policy_of(case), policy_of(case, width=0.1, delta=0.5)):
        played, outside = play_steps(games, policy)
        for game, one, out in zip(games, played, outside, strict=True):
            by_hand, hand_out = loop(game, policy)
            np.testing.assert_array_equal(one.arms, by_hand.arms)
            np.testing.assert_array_equal(one.shown, by_hand.shown)
            np.testing.assert_allclose(one.bonus, by_hand.bonus, rtol=1e-9)
            assert out == hand_out
    assert outside.any()  # a tenth of the radius: else nothing was compared


def test_an_arm_is_solved_at_a_share_of_its_rows() -> None:
    last = policy_of(BY_ROWS).last_solve(1_000)
    np.testing.assert_array_equal(last[:50], np.arange(50))
    assert (last <= np.arange(1_001)).all()
    assert (np.arange(1_001) < np.maximum(1.02 * last + 1, 1)).all()
    assert len(set(last)) < 250


# ---- the environments


def test_contexts_are_as_described() -> None:
    T = 5_000
    games = {name: draw(SEEDS, case, T, 0)[0] for name, case in HONEST.items()}
    for name, game in games.items():
        losses = game.losses
        assert losses[losses > 0].min() >= GAP - 1e-12, name
        assert np.linalg.norm(game.pool, axis=1).max() <= 1 + 1e-12, name
        assert game.noise.std() == pytest.approx(NOISE, rel=4 / math.sqrt(2 * T))
        assert abs(game.coins.mean() - 0.2) < 4 * math.sqrt(0.16 / T)
    late = np.flatnonzero(games["late"].shown)
    assert 0.4 * T <= late[0] <= 0.6 * T
    assert len(late) == T - late[0]
    assert not games["off schedule"].shown[scheduled(T)].any()
    assert abs(games["off schedule"].shown[~scheduled(T)].mean() - 0.2) < 4 * math.sqrt(0.16 / (0.8 * T))
    assert set(games["growing"].losses.argmin(axis=1)) == {0, 1}  # each arm is best somewhere


def test_cases_of_one_environment_meet_the_same_draws() -> None:
    honest, public = (draw(SEEDS, CASES[case], 400, 1)[0] for case in ("off schedule", PUBLIC))
    np.testing.assert_array_equal(honest.shown, public.shown)
    np.testing.assert_array_equal(honest.noise, public.noise)
    np.testing.assert_array_equal(public.coins, scheduled(400))


def test_the_adversary_knows_where_greedy_play_is_wrong() -> None:
    game, _ = draw(SEEDS, HONEST["adaptive"], 300, 0)
    shown = play_blocks(game, policy_of("adaptive")).shown
    assert game.losses[shown[0], 0] == game.losses[:, 0].max()  # nothing is known yet: ties go to arm 0
    assert not (shown == game.shown).all()


# ---- the statistics


@pytest.mark.parametrize(("cases", "n"), [(0, 50), (3, 400), (50, 50), (24, 100)])
def test_limits_of_a_share_are_those_of_the_binomial_law(cases: int, n: int) -> None:
    exact = stats.binomtest(cases, n).proportion_ci(confidence_level=0.998, method="exact")
    found = share_with_limits(cases, n)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_limits_of_a_mean_are_students() -> None:
    column = np.random.default_rng(3).gamma(4.0, 3.0, 30)
    low, high = stats.t.interval(0.998, 29, column.mean(), stats.sem(column))
    found = mean_with_limits(column, 2.0)
    assert (found.low, found.high) == pytest.approx((low / 2, high / 2))


def counts(at: tuple[float, ...], z: float = 0.5, n: int = 20) -> Counts:
    """Return runs with these mean numbers of mistakes."""
    rng = np.random.default_rng(1)
    mistakes = [np.maximum(0.0, mean + rng.normal(0.0, 0.01 * mean, n)) for mean in at]
    return Counts(tuple(mistakes), "independent", z)


def played(**changes: Counts) -> dict[str, Counts]:
    """Return what is expected of each case, but for some."""
    last = 2 * bound("off schedule", 10**5)
    rejected = {
        PUBLIC: counts((last / 100, last / 10, last), z=-99.0),
        BY_ROWS: counts((20, 200, 2_000)),
        SELDOM: counts((10, 70, 480)),
    }
    return {**{name: counts((10, 13, 16)) for name in HONEST}, **rejected, **changes}


SETTINGS = experiment.SCALES["quick"]


def mistakes_of(found: dict[str, Counts]) -> Outcome:
    rng = np.random.default_rng(0)
    slopes = {name: experiment.growth(counts, rng) for name, counts in found.items()}
    return experiment.mistakes_verdict(SETTINGS, found, slopes).outcome


def test_mistakes_are_held_to_the_bound_and_to_log_growth() -> None:
    assert mistakes_of(played()) is Outcome.HOLDS
    above = 1.1 * bound("rare", 10**4)  # the decade before is as large, so that only the bound is broken
    assert mistakes_of(played(rare=counts((1, above, above)))) is Outcome.FAILS
    assert mistakes_of(played(rare=counts((20, 200, 2_000)))) is Outcome.FAILS  # within the bound, but linear
    assert mistakes_of(played(rare=counts((5, 6, 9)))) is Outcome.HOLDS  # twice as many of few


@pytest.mark.parametrize("control", [PUBLIC, BY_ROWS, SELDOM])
def test_nothing_is_settled_if_a_control_passes_for_the_theorems_policy(control: str) -> None:
    assert mistakes_of(played() | {control: counts((10, 13, 16))}) is Outcome.UNSETTLED


def test_growth_is_one_for_logs_and_ten_for_what_is_linear() -> None:
    rng = np.random.default_rng(0)
    for at, expected in (((10, 20, 30), 1.0), ((10, 100, 1_000), 10.0), ((10, 10, 12), 2 / 5)):
        found = experiment.growth(counts(at), rng)
        assert found is not None
        assert found.low < expected < found.high


def test_coins_that_contexts_can_tell_are_found_out() -> None:
    assert experiment.judge_coin(played())[0].outcome is Outcome.HOLDS
    assert experiment.judge_coin(played(late=counts((1, 2, 3), z=-4.5)))[0].outcome is Outcome.FAILS
    assert experiment.judge_coin(played() | {PUBLIC: counts((1, 2, 3), z=1.0)})[0].outcome is Outcome.UNSETTLED


def test_a_radius_that_is_too_small_is_found_out() -> None:
    def outcome(*shares: float) -> Outcome:
        counted = [share_with_limits(round(400 * share), 400) for share in shares]
        return experiment.radius_verdict(SETTINGS, dict(zip(WIDTHS, counted, strict=True))).outcome

    assert outcome(0.01, 0.2, 0.8) is Outcome.HOLDS
    assert outcome(0.15, 0.2, 0.8) is Outcome.FAILS
    assert outcome(0.01, 0.01, 0.8) is Outcome.UNSETTLED


def test_armlets_policy_is_held_to_its_bound() -> None:
    def findings(mistakes: Float64) -> list[Finding]:
        verdict, _ = experiment.judge_product(SETTINGS, {("late", 10**5): mistakes}, played())
        assert (verdict.outcome is Outcome.HOLDS) == all(each.passed for each in verdict.statistics)
        return [each.finding for each in verdict.statistics]

    works, breaks = Finding.PASSES, Finding.FAILS
    steady = np.array([0.0, 1.0, 2.0, 3.0] * 5)
    assert findings(steady + 15) == [works, works, works]
    assert findings(steady + 100) == [works, breaks, works]  # played() has 16 there
    assert findings(steady + 60_000) == [breaks, breaks, works]


# ---- the runs


def test_a_public_coin_is_told_by_its_contexts_and_a_private_one_is_not() -> None:
    z = {}
    for case in ("off schedule", PUBLIC):
        found = play(Runs(seeds=SEEDS, case=case, horizons=(1_000,), first=0, last=8))
        z[case] = float(np.sum(found["coins"])) / math.sqrt(float(np.sum(found["variance"])))
    assert abs(z["off schedule"]) < 4
    assert z[PUBLIC] < -10


def test_half_of_the_radius_is_left_by_most_runs() -> None:
    shares = {}
    for width in (1.0, 0.5):
        task = Ellipsoids(seeds=SEEDS, width=width, horizon=100, first=0, last=150)
        shares[width] = share_with_limits(int(look(task)["outside"].sum()), 150)
    assert shares[1.0].low < LEVEL
    assert shares[0.5].low > LEVEL


def test_armlets_own_policy_learns_a_late_context_at_once() -> None:
    task = Runs(seeds=SEEDS, case="late", horizons=(2_000, 10_000), first=0, last=3)
    mistakes = play_armlet(task)["mistakes"]
    assert mistakes.shape == (3, 2)
    # 1,600 greedy steps see the new context for each 400 optimistic ones: at most some dozen may go wrong
    assert mistakes.max() < 100


def test_findings_have_a_section_for_each_claim() -> None:
    found = experiment.find(TINY, Lab(seed=71_501))
    keys = [f"open-problem-{word}" for word in ("mistakes", "coin", "radius", "policy")]
    assert [verdict.claim.key for verdict in found.verdicts] == [section.claim for section in found.sections] == keys
    assert render("The open problem", found.sections, found.verdicts, {"seed": 1}).count("<figure") == 2
    roles = [each.role for verdict in found.verdicts for each in verdict.statistics]
    assert roles.count(Role.WRITTEN) == 5 * 3 + 5 + 5 + 1 + 4  # A, D, B, C; A and E of Armlet's own policy
    assert roles.count(Role.CONTROL) == 3 + 1 + 2 + 1


def test_runs_do_not_depend_on_how_they_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = experiment.play_all(TINY, Lab(seed=71_502))
    monkeypatch.setattr(experiment, "BATCH", 1_000)
    for name, parts in experiment.play_all(TINY, Lab(seed=71_502)).items():
        assert parts.z == pytest.approx(whole[name].z)
        for mine, other in zip(parts.mistakes, whole[name].mistakes, strict=True):
            np.testing.assert_array_equal(mine, other)


def test_every_environment_is_played() -> None:
    assert {case.environment for case in HONEST.values()} == set(ENVIRONMENTS)
