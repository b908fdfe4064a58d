"""Printed tables, rebuilt: the designs are what they say, and a table that differs is reported."""

from __future__ import annotations

import numpy as np
import pytest

from armlet.datasets import read_table
from armlet_lab.runner.experiment import Outcome, Verdict
from armlet_lab.validation.printed_tables import adaptive, classifiers, digits
from armlet_lab.validation.printed_tables.experiment import Adaptive, Classified, Digits, judge
from support.tables import made_text


def test_estimates_of_a_classifier_are_unbiased_but_for_the_model_alone() -> None:
    table = read_table("balanced/made", made_text(1, 400))
    errors, covered, truth = classifiers.errors(table, np.random.default_rng(2), 80)
    spread = errors.std(axis=0) / 80**0.5
    place = {word: i for i, word in enumerate(classifiers.WORDS)}
    assert 0.8 < truth <= 1.0
    for word in ("ips", "dr"):
        assert abs(errors[:, place[word]].mean()) < 4 * spread[place[word]]
    assert errors[:, place["dr"]].std() < errors[:, place["ips"]].std()
    assert classifiers.share(covered[:, place["dm"]]) is None  # its error is bias: no interval
    assert (classifiers.share(covered[:, place["dr"]]) or 0.0) > 0.87  # .95 less 3.3 standard errors of 80 logs


def test_thompson_sampling_keeps_to_its_floor_and_scores_are_unbiased() -> None:
    means = adaptive.MEANS["high signal"]
    logs = adaptive.thompson(means, 300, 400, np.random.default_rng(3))
    floor = np.arange(1, 301) ** -adaptive.DECAY / 3
    assert np.abs(logs.chances.sum(axis=2) - 1).max() < 1e-12
    assert (logs.chances >= floor[:, None, None] - 1e-12).all()
    assert (logs.arms[200:] == 2).mean() > 0.5
    errors, covered = adaptive.weigh(logs, means)
    uniform = errors[0]
    assert np.all(np.abs(uniform.mean(axis=0)) < 4 * uniform.std(axis=0) / 400**0.5)
    assert covered.shape == (4, 400, 3)


def test_two_point_weights_allocate_all_of_the_variance() -> None:
    chances = adaptive.thompson(adaptive.MEANS["no signal"], 200, 5, np.random.default_rng(4)).chances
    h = adaptive._two_point(chances)
    assert (h**2 / chances).sum(axis=0) == pytest.approx(1.0, abs=1e-9)


def test_algorithm_1_covers_the_means_of_arms() -> None:
    _, covered = adaptive.by_algorithm_1(adaptive.MEANS["low signal"], 600, 60, np.random.default_rng(5))
    assert covered.mean() > 0.82  # .90 less 3.5 standard errors of 180 intervals


def verdicts(shift: float = 0.0, bias: float = 0.0, uniform: int = 3) -> tuple[Verdict, ...]:
    """Judge made tables: digits so far off, DR so biased, and uniform weights that miss so often in ten."""
    rng = np.random.default_rng(6)
    printed = np.array([mean for mean, _ in digits.PRINTED.values()])
    spreads = np.array([spread for _, spread in digits.PRINTED.values()])
    rows = [[*(printed + shift * spreads + rng.normal(0, 0.1, len(printed)) * spreads), 0.01, 1.0] for _ in range(20)]
    errors = rng.normal([0.2, 0, 0, bias], [0.01, 0.03, 0.02, 0.02], (400, 4))
    covered = np.where(np.arange(400)[:, None] < 380, 1.0, 0.0) * np.ones(4)
    covered[:, 0] = np.nan
    table = Classified(errors=errors, covered=covered, rows=10, n_arms=3, truth=0.9)
    hits = (np.arange(400)[None, :, None] % 10 > 0) * np.ones((5, 1, 3))
    hits[0] = np.arange(400)[:, None] % 10 >= uniform
    design = Adaptive(rng.normal(size=(5, 400, 3)), hits)
    found = judge(
        split=Digits(np.array(rows)),
        classified={"ecoli": table, "glass": table},
        designs={"no signal": design, "low signal": design},
        horizon=100,
        rng=rng,
    )
    assert len(found.sections) == len(found.verdicts) == 3
    return found.verdicts


def test_tables_that_agree_hold_and_those_that_differ_do_not() -> None:
    assert [verdict.outcome for verdict in verdicts()] == [Outcome.HOLDS] * 3
    assert verdicts(shift=2.0)[0].outcome == Outcome.FAILS
    assert verdicts(bias=0.01)[1].outcome == Outcome.FAILS  # ten standard errors
    assert verdicts(uniform=0)[2].outcome == Outcome.FAILS  # they cover, and others gain nothing


def test_one_split_of_digits_is_near_the_printed_errors() -> None:
    found, covers = digits.relative_errors(np.random.default_rng(1))
    assert set(found) == {*digits.PRINTED, digits.OURS}
    assert covers in (0.0, 1.0)
    for name, (mean, spread) in digits.PRINTED.items():
        assert abs(found[name] - mean) < 4 * spread, name
