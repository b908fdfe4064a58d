"""The experiment on coverage: its environments are exact, its logs are those of bandits, and its verdicts can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armlet.evaluation.rows import HeldBlocks
from armlet.parallel import Seeds
from armlet.policies import ContextualEpsilonGreedy, Uniform
from armlet.simulation.lab import Lab
from armlet.testing.logs import play
from armlet.types import Float64
from armlet_lab.runner.experiment import Outcome, Verdict
from armlet_lab.validation.coverage import experiment
from armlet_lab.validation.coverage.environments import (
    KINDS,
    draw_environment,
    draw_steps,
    expected,
    own_values,
    values,
)
from armlet_lab.validation.coverage.experiment import SPOILT, judge
from armlet_lab.validation.coverage.shares import Columns, share

SMALL = experiment.Settings(
    environments=("p/t", "auto"), logs=3, own=3, runs=2, tested=3, laws=("evidence",), horizon=300
)


@pytest.mark.parametrize("name", KINDS)
def test_the_truth_is_what_the_target_earns(name: str) -> None:
    """By playing it: 40,000 rewards of standard deviation below 1 have a mean within 4 x 0.005 of theirs."""
    environment = draw_environment(name, Seeds(4, "try"))
    environment = replace(environment, kind=replace(environment.kind, horizon=40_000))
    points, rewards, eligible = draw_steps(environment, np.random.default_rng(1))
    played = environment.target(environment.contexts[points], eligible)
    assert (played[~eligible] == 0).all()
    earned = (played * rewards).sum(axis=1)
    assert abs(earned.mean() - environment.value()) < 4 * earned.std() / 200
    assert eligible.sum(axis=1).min() >= min(2, environment.kind.n_arms)


def test_a_log_in_memory_is_the_log_of_the_bandit() -> None:
    rng = np.random.default_rng(1)
    X, rewards = rng.standard_normal((400, 2)), rng.standard_normal((400, 3))
    rows, bandit = play(ContextualEpsilonGreedy(p=10), X, rewards, seed=5)
    assert bandit.t == 400
    counts = np.bincount(rows.arm[rows.explored == 1], minlength=3)
    assert bandit.state.n.tolist() == counts.tolist()
    np.testing.assert_array_equal(rows.reward, rewards[np.arange(400), rows.arm])
    greedy = rows.greedy == 0
    np.testing.assert_allclose(rows.propensity[greedy], (rows.exploration_rate * rows.exploration_propensity)[greedy])


def test_a_uniform_log_values_an_arm_by_its_mean() -> None:
    rng = np.random.default_rng(2)
    X, rewards = rng.standard_normal((500, 2)), (rng.random((500, 2)) < 0.5).astype(float)
    rows, _ = play(Uniform(), X, rewards, seed=5)
    found = values(
        HeldBlocks(rows, range(2), {"reward_range": (0.0, 1.0)}), lambda X, _: np.tile([0.0, 1.0], (len(X), 1)), 0.5
    )
    assert found["auto value"] == pytest.approx(rows.reward[rows.arm == 1].mean(), abs=0.03)
    assert found["naive low"] < 0.5 < found["naive high"]
    assert found["anytime low"] < found["auto low"] < found["auto high"] < found["anytime high"]


def test_a_model_seems_better_by_its_own_rows_than_it_is() -> None:
    # study: the bias is +.32 with a standard deviation of .12 over logs, so that one log in hundreds has none
    found = own_values("noise", np.random.default_rng(3), 7)
    assert found["truth"] == 0.0
    assert found["same rows"] > found["own value"]
    assert found["own low"] < found["own high"]


def test_the_experiment_gives_a_verdict_and_a_table_for_every_claim() -> None:
    found = experiment.find(SMALL, Lab(seed=3, name="coverage"))
    assert [verdict.claim.key for verdict in found.verdicts] == [section.claim for section in found.sections]
    assert len(found.verdicts) == 7
    assert all(section.tables for section in found.sections)
    assert found.sections[0].pictures


def test_propensities_that_are_wrong_are_found_and_right_ones_are_not_accused() -> None:
    seeds = Lab(seed=3, name="coverage").seeds
    for kind in (*experiment.TRUSTED, SPOILT):
        task = experiment.Task(seeds=seeds, kind=kind, first=0, logs=4, horizon=experiment.TESTED)
        (flags,) = experiment.play_tested(task).values()
        assert np.asarray(flags).tolist() == [float(kind not in experiment.TRUSTED)] * 4


# --- verdicts --------------------------------------------------------------------------------------------------------

N = 1000


def environment(*, covers: float, width: float = 0.1, worse: float = 0.6, looks: float = 0.99) -> Columns:
    """Make logs whose intervals cover so often."""
    rng = np.random.default_rng(1)

    def first(part: float) -> Float64:
        return (np.arange(N) < round(part * N)).astype(float)

    error = 0.03 * rng.standard_normal(N)
    low = np.where(first(covers) > 0, 0.5 - width, 0.6)
    return {
        "truth": np.full(N, 0.5),
        **{f"{word} low": low for word in ("auto", "explored", "weighted", "past")},
        **{f"{word} high": low + 2 * width for word in ("auto", "explored", "weighted", "past")},
        "naive low": np.full(N, 0.7),
        "naive high": np.full(N, 0.8),
        "auto value": 0.5 + worse * error,
        "weighted value": 0.5 + worse * error,
        "explored value": 0.5 + error,
        "past value": 0.5 + 0.6 * error,
        "at all looks": first(looks),
        "fixed at all looks": first(0.6),
        "anytime low": np.zeros(N),
        "anytime high": np.ones(N),
    }


def own(*, bias: float = 0.0, covers: float = 0.95) -> dict[str, Columns]:
    rng = np.random.default_rng(2)
    low = np.where(np.arange(N) < covers * N, -0.3, 0.1)
    value = bias + 0.15 * rng.standard_normal(N)
    value -= value.mean() - bias
    noise = {"truth": np.zeros(N), "own value": value, "own low": low, "own high": low + 0.6, "same rows": value + 0.3}
    return {"noise": noise, "signal": noise}


def verdicts(
    environments: dict[str, Columns] | None = None,
    by_evidence: dict[str, Columns] | None = None,
    own_values: dict[str, Columns] | None = None,
    slopes: float = 0.95,
    accused: int = 0,
    found: float = 1.0,
) -> dict[str, Verdict]:
    hits = (np.arange(N) < slopes * N).astype(float)
    tested = {
        "Algorithm 1": {"accused": (np.arange(200) < accused).astype(float)},
        SPOILT: {"accused": (np.arange(100) < 100 * found).astype(float)},
    }
    judged = judge(
        environments=(environments or {"p/t": environment(covers=0.95)})
        | {"evidence": environment(covers=0.945)}
        | (by_evidence or {}),
        own=own_values or own(),
        slopes={"gaps, p/t": {"coefficients": hits, "contrasts": hits, "anytime": hits}},
        propensities=tested,
        horizon=5000,
        rng=np.random.default_rng(1),
    )
    return {verdict.claim.key.removeprefix("coverage-"): verdict for verdict in judged.verdicts}


def test_what_is_promised_holds_where_it_is_kept() -> None:
    assert {key: verdict.outcome for key, verdict in verdicts().items()} == dict.fromkeys(
        ("fixed", "sequences", "errors", "past", "own", "coefficients", "propensities"), Outcome.HOLDS
    )


def test_every_promise_can_fail() -> None:
    short = verdicts({"p/t": environment(covers=0.95), "b": environment(covers=0.85)})
    assert short["fixed"].outcome is Outcome.FAILS
    assert verdicts({"p/t": environment(covers=0.99)})["fixed"].outcome is Outcome.FAILS
    assert verdicts({"p/t": environment(covers=0.95, looks=0.9)})["sequences"].outcome is Outcome.FAILS
    assert verdicts({"p/t": environment(covers=0.95, worse=0.9)})["errors"].outcome is Outcome.FAILS
    assert (
        verdicts({"p/t": environment(covers=0.95), "b": environment(covers=0.95, worse=1.3)})["errors"].outcome
        is Outcome.FAILS
    )
    assert verdicts(own_values=own(bias=0.05))["own"].outcome is Outcome.FAILS
    assert verdicts(own_values=own(covers=0.85))["own"].outcome is Outcome.FAILS
    assert verdicts(slopes=0.9)["coefficients"].outcome is Outcome.FAILS
    assert verdicts(accused=2)["propensities"].outcome is Outcome.FAILS
    assert verdicts(found=0.94)["propensities"].outcome is Outcome.FAILS


def test_a_reward_model_that_does_harm_is_told() -> None:
    biased = dict(environment(covers=0.95))
    biased["weighted value"] = biased["weighted value"] + 0.003  # 5 standard errors of 0.6 x 0.03 / sqrt(1000)
    assert verdicts(by_evidence={"auto": biased})["past"].outcome is Outcome.FAILS
    assert verdicts(by_evidence={"auto": environment(covers=0.85)})["past"].outcome is Outcome.FAILS
    assert verdicts(by_evidence={"auto": environment(covers=0.95, worse=0.9)})["past"].outcome is Outcome.FAILS


def test_a_model_of_the_past_knows_only_earlier_rows() -> None:
    rng = np.random.default_rng(4)
    X, arms, rewards, learned = rng.random((60, 2)), rng.integers(3, size=60), rng.random(60), rng.random(60) < 0.7
    found = expected(X, arms, rewards, learned, 3)
    Y = np.column_stack([np.ones(60), X])
    for t in (0, 1, 17, 59):
        for arm in range(3):
            some = np.flatnonzero(learned[:t] & (arms[:t] == arm))
            theta = np.linalg.solve(Y[some].T @ Y[some] + np.eye(3), Y[some].T @ rewards[some])
            assert found[t, arm] == pytest.approx(Y[t] @ theta, abs=1e-12)


def test_a_control_that_does_not_fail_leaves_it_open() -> None:
    easy = dict(environment(covers=0.95))
    easy["naive low"], easy["naive high"] = np.full(N, 0.4), np.full(N, 0.6)
    assert verdicts({"p/t": easy}, {"evidence": easy})["fixed"].outcome is Outcome.UNSETTLED


def test_a_share_of_all_logs_has_an_interval_too() -> None:
    found = share(np.ones(100))
    assert found.value == found.high == 1.0
    assert 0.95 < found.low < 1.0
