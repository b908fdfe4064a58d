"""Sections 4.1 and 7 and merging as experiments: their structure in small settings, and oracles for their numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import cast

import numpy as np
import pytest

from armlet import kernel
from armlet.environments import FigureA
from armlet.environments.environment import bit_law, scale_bits
from armlet.environments.paper import Rate, Section41
from armlet.parallel import Seeds
from armlet.policies import Algorithm1
from armlet.reference.linear import smallest_eigenvalue
from armlet.simulation.lab import Archive, Lab, Shelf, as_floats
from armlet.types import Float64, Int64
from armlet_lab.experiments import EXPERIMENTS
from armlet_lab.paper import merge, section_4_1, section_7
from armlet_lab.runner.experiment import Findings, Role
from armlet_lab.runner.page import render
from armlet_lab.runner.verdicts import to_json

SMALL_41 = section_4_1.Settings(dims=(3, 4, 5), long_dims=(32, 64, 128), environments=20, draws=50)
SMALL_7 = section_7.Settings(rarities=(5, 20), environments=10, repeats=20, p=60.0, horizon=2_000, runs=13)
SMALL_MERGE = merge.Settings(p=120.0, horizon=4_000, runs=4)

ANALYSES: dict[str, Callable[[Lab], Findings]] = {
    "section-4-1": lambda lab: section_4_1.find(SMALL_41, lab),
    "section-7": lambda lab: section_7.find(SMALL_7, lab),
    "merge": lambda lab: merge.find(SMALL_MERGE, lab),
}
CLAIMS = {
    "section-4-1": ["section41-sigma-min", "section41-noise", "section41-delta-min", "section41-implied-p"],
    "section-7": ["section7-fixed", "section7-growing"],
    "merge": ["merge-state", "merge-regret"],
}
MODULES = [section_4_1, section_7, merge]


@pytest.fixture(scope="module", params=list(ANALYSES))
def analysed(request: pytest.FixtureRequest) -> tuple[str, Findings]:
    return request.param, ANALYSES[request.param](Lab(seed=3))


@pytest.mark.parametrize(("name", "module"), list(zip(ANALYSES, MODULES, strict=True)))
def test_experiments_have_the_names_they_are_registered_under(name: str, module: ModuleType) -> None:
    assert module.EXPERIMENT.name == name
    assert EXPERIMENTS[name] == module.__name__


def test_every_claim_has_a_verdict_a_section_and_a_picture(analysed: tuple[str, Findings]) -> None:
    name, found = analysed
    assert [verdict.claim.key for verdict in found.verdicts] == CLAIMS[name]
    assert [section.claim for section in found.sections] == CLAIMS[name]
    assert all(section.pictures for section in found.sections)
    page = render(name, found.sections, found.verdicts, {"seed": 3})
    assert page.count("<svg") == sum(len(section.pictures) for section in found.sections)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(analysed: tuple[str, Findings]) -> None:
    name, found = analysed
    again, other = (ANALYSES[name](Lab(seed=seed)) for seed in (3, 4))
    assert to_json(again.verdicts) == to_json(found.verdicts)
    assert again.sections == found.sections
    assert to_json(other.verdicts) != to_json(found.verdicts)


def test_what_was_kept_gives_the_same_findings_without_computing(
    analysed: tuple[str, Findings], tmp_path: Path
) -> None:
    name, found = analysed
    first = ANALYSES[name](Lab(seed=3, shelf=Shelf(tmp_path)))
    assert ANALYSES[name](Archive(seed=3, shelf=Shelf(tmp_path))) == first == found


def test_every_statistic_is_measured_whatever_the_outcome(analysed: tuple[str, Findings]) -> None:
    _, found = analysed
    for verdict in found.verdicts:
        assert any(statistic.role is Role.WRITTEN for statistic in verdict.statistics)
        assert all(statistic.estimate is not None for statistic in verdict.statistics)


def test_delta_min_is_that_of_the_environment() -> None:
    for d in SMALL_41.dims:
        task = section_4_1.Losses(seeds=Seeds(5), dim=d, environments=20, n_arms=SMALL_41.n_arms, w=SMALL_41.w)
        found = section_4_1.smallest_losses(task)
        column, entries = as_floats(found["losses"]), as_floats(found["entries"])
        rng = Seeds(5).rng("worlds", d)
        for loss, gap in zip(column[:5], entries[:5], strict=True):
            environment = Section41.draw(rng, n_arms=SMALL_41.n_arms, dim=d, w=SMALL_41.w)
            assert loss == pytest.approx(environment.constants().delta_min, rel=1e-9)
            theta = np.array(environment.theta)
            pairs = [np.abs(a - b).min() for i, a in enumerate(theta) for b in theta[:i]]
            assert gap == pytest.approx(min(pairs), rel=1e-12)


class FixedRows:
    """Stands in for a generator: so many rows of the rare context, and noise that is given."""

    def __init__(self, rare: int, noise: list[float]) -> None:
        self.rare, self.noise = rare, iter(noise)

    def binomial(self, _n: int, _chance: float, size: tuple[int, ...]) -> Int64:
        return np.full(size, self.rare, dtype=np.int64)

    def standard_normal(self, size: tuple[int, ...]) -> Float64:
        return np.full(size, next(self.noise))


@pytest.mark.parametrize("ridge", ["paper", "1/n"])
@pytest.mark.parametrize(("n", "rare"), [(7, 3), (40, 0), (40, 40), (1000, 12)])
def test_a_drawn_prediction_is_what_the_kernel_solves_from_the_same_rows(
    ridge: section_7.RidgeName, n: int, rare: int
) -> None:
    theta, noise = np.array([[[0.7, -1.3], [0.2, 0.9]]]), (0.4, -1.1)
    rng = cast(np.random.Generator, FixedRows(rare, list(noise)))
    drawn = section_7.predictions(theta, n, 5.0, ridge, 0.5, 1, rng)[0, 0]
    state = Algorithm1(p=60, ridge=ridge).init(2, 2)
    for arm, (first, second) in enumerate(theta[0]):
        # a standard normal z stands for a sum of m rows' noise by 0.5 sqrt(m) z, here 0.5 z / sqrt(m) in each row
        for _ in range(rare):
            state.add(arm, np.array([1.0, 1.0]), first + second + 0.5 * noise[0] / np.sqrt(rare))
        for _ in range(n - rare):
            state.add(arm, np.array([1.0, 0.0]), first + 0.5 * noise[1] / np.sqrt(n - rare))
    np.testing.assert_allclose(drawn, state.estimates().sum(axis=1), rtol=1e-9)


def test_environments_of_section_7_have_other_best_arms_in_the_rare_context() -> None:
    theta = section_7._draw_theta(np.random.default_rng(0), 20, gap=0.3)
    means = np.stack([theta.sum(axis=2), theta[:, :, 0]])
    assert (means[0].argmax(axis=1) != means[1].argmax(axis=1)).all()
    assert (np.diff(np.sort(means, axis=2)[:, :, -2:], axis=2) >= 0.3).all()


def test_the_rows_needed_without_noise_grow_with_the_rarity() -> None:
    case = "no noise, ridge 1/sqrt n"
    tasks = [
        section_7.Search(seeds=Seeds(1), case=case, rarity=rarity, environments=10, repeats=20) for rarity in (5, 500)
    ]
    few, many = (as_floats(section_7.rows_needed(task)["rows"]) for task in tasks)
    # without noise, the ridge 1/sqrt n must fall below a multiple of 1/I: 100 times the rarity, 10^4 times the rows
    assert 1e3 < np.median(many / few) < 1e5


RUNS = section_7.Runs(seeds=Seeds(1), rate="log", first=0, stop=3, p=60.0, horizon=2_000)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = section_7.play(RUNS)
    monkeypatch.setattr(section_7, "CHUNK", 700)
    parts = section_7.play(RUNS)
    np.testing.assert_allclose(as_floats(parts["regret"]), as_floats(whole["regret"]), rtol=1e-12)
    wrong, met = as_floats(whole["wrong"]), as_floats(whole["met"])
    assert np.array_equal(parts["wrong"], wrong)
    assert np.array_equal(parts["met"], met)
    assert (np.diff(met, axis=1) >= 0).all()
    assert (wrong <= met).all()


@pytest.mark.parametrize("rate", section_7.RATES)
def test_runs_do_not_depend_on_the_task_they_are_part_of(rate: Rate | None) -> None:
    whole = section_7.play(dataclasses.replace(RUNS, rate=rate))
    first, rest = (section_7.play(dataclasses.replace(RUNS, rate=rate, first=i, stop=j)) for i, j in ((0, 1), (1, 3)))
    for name, array in whole.items():
        assert np.array_equal(np.concatenate([first[name], rest[name]]), array)


@pytest.fixture(scope="module")
def steps() -> merge.Steps:
    environment, rng = FigureA.draw(np.random.default_rng(1)), np.random.default_rng(2)
    X = environment.contexts(rng, 4_000)
    means = environment.means(X)
    return merge.Steps(X, environment.rewards(rng, X), means.max(axis=1, keepdims=True) - means)


def test_a_single_worker_that_merges_with_itself_is_the_policy(steps: merge.Steps) -> None:
    found = merge.share(steps, 120.0, 1.1, [9])
    policy = Algorithm1(p=120)
    whole = kernel.rollout(steps.contexts, steps.rewards, start=policy.init(6, 3), rule=policy.rule(), seed=9)
    losses = steps.losses[np.arange(4_000), whole.arms]
    np.testing.assert_allclose(found.regret, np.cumsum(losses), rtol=1e-12)
    assert found.explored == whole.explored.sum()


def test_workers_with_a_share_of_p_explore_as_much_as_one(steps: merge.Steps) -> None:
    fair, unfair = (merge.share(steps, p, 1.1, [1, 2, 3, 4]) for p in (30.0, 120.0))
    # one with p = 120 explores 120 + the sum of 120/t, 541 steps; a count of coins has a deviation below sqrt(421)
    assert abs(fair.explored - 541) < 5 * np.sqrt(421)
    assert unfair.explored > 2 * fair.explored
    assert max(fair.error, unfair.error) < 1e-10


def test_steps_that_cannot_be_shared_out_evenly_are_refused() -> None:
    with pytest.raises(ValueError, match="horizon is 4001 but must be a multiple of workers, 4"):
        merge.Settings(p=120.0, horizon=4_001, runs=2)


@pytest.mark.parametrize(("dim", "w"), [(1, 0.3), (2, 0.9), (3, 0.5), (6, 0.05), (9, 1.0)])
def test_section_41_formulas_are_the_eigenvalues_of_all_contexts(dim: int, w: float) -> None:
    bits, chances = bit_law((w,) * dim)
    X = scale_bits(bits)
    moment = (X.T * chances) @ X
    assert section_4_1.sigma_min(dim=dim, w=w) == pytest.approx(smallest_eigenvalue(moment), rel=1e-12)
    assert section_4_1.sigma_max(dim=dim, w=w) == pytest.approx(float(np.linalg.eigvalsh(moment)[-1]), rel=1e-12)
    assert section_4_1.sigma_min(dim=dim, w=w) == Section41(theta=((1.0,) * dim,), w=w).sigma_min()


def test_section_41_noise_bound_covers_both_readings_of_the_noise() -> None:
    theta = ((1.0,) * 5, (0.5,) * 5)
    for entries in ("independent", "together"):
        environment = Section41(theta=theta, F=0.5, entries=entries)
        assert environment.constants().sigma <= section_4_1.noise_bound(dim=5, F=0.5)


def test_the_claimed_gap_of_section_41_is_not_reached() -> None:
    """Its median falls by 0.8 bits a dimension below the claim (`armlet-lab paper`); a tenth is enough here."""
    rng, ratios = np.random.default_rng(41), []
    for _ in range(40):
        found = Section41.draw(rng, n_arms=6, dim=9).constants().delta_min
        ratios.append(found / section_4_1.claimed_delta_min(n_arms=6, dim=9, w=0.5))
    assert np.median(ratios) < 0.1
