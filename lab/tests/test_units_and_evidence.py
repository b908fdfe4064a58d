"""The experiments on units and on evidence: what they promise is computed, and can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armlet.parallel import Seeds
from armlet.simulation.lab import Lab, as_floats
from armlet.types import Float64
from armlet_lab.contests import evidence, units
from armlet_lab.contests.units import (
    FORMS,
    LENGTHS,
    LEVELS,
    NAMES,
    NO_HORIZON,
    WRONG_HORIZONS,
    FamilyRegret,
    draw_problem,
    judge,
    players,
)
from armlet_lab.experiments import EXPERIMENTS, PRODUCT_EXPERIMENTS
from armlet_lab.runner import reproduce
from armlet_lab.runner.experiment import Outcome, Verdict


def test_they_are_run_only_if_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tried: list[str] = []
    monkeypatch.setattr(reproduce, "_attempt", lambda _done, name, _lab, _seconds: tried.append(name))
    reproduce.reproduce(out=tmp_path / "all", engine="serial")
    assert tried == list(EXPERIMENTS)
    tried.clear()
    reproduce.reproduce(list(PRODUCT_EXPERIMENTS), out=tmp_path / "besides", engine="serial")
    assert tried == ["units", "evidence", "tournament", "life", "dimensions", "coverage", "printed-tables"]
    assert [reproduce.load(name).name for name in PRODUCT_EXPERIMENTS] == tried
    with pytest.raises(ValueError, match=r"no experiment 'unit'; did you mean 'units'"):
        reproduce.reproduce(["unit"], out=tmp_path)


# --- units -----------------------------------------------------------------------------------------------------------

SMALL = replace(units.SCALES["quick"], problems=2, horizon=400, families=("Figure (a)",), ratio=8.0)


def test_a_policy_in_free_units_plays_the_same_at_every_level_and_length() -> None:
    lab = Lab(seed=3, name="units")
    tasks = [
        units.Task(seeds=lab.seeds, environment=family, horizon=1000, ratio=8.0, level=level, length=length)
        for family, level, length in ((LEVELS, 0.0, 1.0), (LEVELS, 1e6, 1.0), (LENGTHS, 0.0, 1.0), (LENGTHS, 0.0, 0.02))
    ]
    level, high, long, short = (as_floats(units.play(task)["regret"])[0] for task in tasks)
    free = np.array([name.startswith("free: ") for name in players(5, 1000, 8.0)])
    for one, other in ((level, high), (long, short)):
        np.testing.assert_allclose(one[free], other[free], rtol=1e-6)
        assert not np.allclose(one[~free], other[~free], rtol=0.1)


def test_a_problem_is_the_same_in_all_units() -> None:
    one, other = (draw_problem(LEVELS, Seeds(1), 4, level=level, length=1.0) for level in (0.0, 30.0))
    assert one.environment == other.environment
    assert other.reward_level == 30.0


def test_the_units_experiment_gives_a_verdict_and_a_table_for_every_claim() -> None:
    found = units.find(SMALL, Lab(seed=3, name="units"))
    assert [verdict.claim.key for verdict in found.verdicts] == [section.claim for section in found.sections]
    assert len(found.verdicts) == 5
    assert all(section.tables for section in found.sections)


def played(free: float, as_given: float, wrong: float = 1.0) -> FamilyRegret:
    rng = np.random.default_rng(1)

    def column(mean: float) -> Float64:
        return mean * rng.uniform(0.9, 1.1, 20)

    names = ("p = 5", "p = 10", *NAMES, *WRONG_HORIZONS, NO_HORIZON)
    regret = {
        f"{form}: {name}": column(size * (wrong if name in WRONG_HORIZONS else 1.0) * (2.0 if name == "p = 5" else 1.0))
        for form, size in zip(FORMS, (as_given, free), strict=True)
        for name in names
    }
    return FamilyRegret({**regret, "random": column(1000.0)}, horizon=400)


def judged(**changes: dict[object, FamilyRegret]) -> dict[str, Verdict]:
    good = {
        "levels": {0.0: played(100.0, 100.0), 30.0: played(100.0, 500.0)},
        "lengths": {1.0: played(100.0, 100.0), 0.02: played(100.0, 900.0)},
        "families": {"Figure (a)": played(110.0, 100.0), "scheduling": played(50.0, 100.0)},
        "ties": {"a tie": played(50.0, 100.0)},
    }
    found = judge(**good | changes, rng=np.random.default_rng(2))  # type: ignore[arg-type]
    return {verdict.claim.key: verdict for verdict in found.verdicts}


def test_units_verdicts_follow_from_the_numbers() -> None:
    assert {verdict.outcome for key, verdict in judged().items() if key not in ("units-levels", "units-lengths")} == {
        Outcome.HOLDS
    }
    # the columns above are drawn apart, so level and length only hold where they are the very same
    same = played(100.0, 100.0)
    free = {name: column for name, column in same.regret.items() if name.startswith("free: ")}
    harmed = replace(same, regret={**played(100.0, 900.0).regret, **free})
    assert judged(levels={0.0: same, 30.0: harmed})["units-levels"].outcome is Outcome.HOLDS
    assert judged(levels={0.0: same, 30.0: same})["units-levels"].outcome is Outcome.UNSETTLED  # the control
    assert judged(lengths={1.0: same, 0.5: played(300.0, 900.0)})["units-lengths"].outcome is Outcome.FAILS
    assert judged(families={"scheduling": played(300.0, 100.0)})["units-families"].outcome is Outcome.FAILS
    assert judged(families={"scheduling": played(100.0, 100.0, wrong=3.0)})["units-horizons"].outcome is Outcome.FAILS
    assert judged(ties={"a tie": played(200.0, 100.0)})["units-ties"].outcome is Outcome.FAILS


def test_the_best_p_is_the_one_with_the_least_mean() -> None:
    assert played(1.0, 1.0).best("free") == "p = 10"


# --- evidence --------------------------------------------------------------------------------------------------------

TINY = evidence.Settings(
    news=(2, 2_000),
    newcomer=(2, 500),
    delay=(2, 400),
    trained=(2, 300),
    closed=(2, 400),
    auto=(2, 400),
    families=("Figure (a)", "gaussian d = 30"),
)


def test_the_evidence_experiment_gives_a_verdict_and_a_table_for_every_claim() -> None:
    found = evidence.find(TINY, Lab(seed=3, name="evidence"))
    assert [verdict.claim.key for verdict in found.verdicts] == [section.claim for section in found.sections]
    assert len(found.verdicts) == 7
    assert all(section.tables for section in found.sections)


def test_the_newcomer_comes_when_it_is_said_to() -> None:
    environment = evidence.newcomer(np.random.default_rng(1), 90)
    assert environment.present(100).sum(axis=1).tolist() == [5] * 90 + [6] * 10


LATE = ("p = 4 K", "p = 12 K", evidence.EVIDENCE, "auto", "random")
CLOSED = ("steps", "evidence", "floor", "steps, explored", "evidence, explored", "formula", "random")


def columns(**means: float) -> dict[str, Float64]:
    rng = np.random.default_rng(1)
    return {name: mean * rng.uniform(0.95, 1.05, 20) for name, mean in means.items()}


def believed(
    *,
    news: float = 10.0,
    tries: float = 40.0,
    late: float = 100.0,
    decide: float = 0.9,
    count: float = 1.0,
    price: float = 0.5,
    auto: float = 10.0,
    noisy: float = 100.0,
) -> dict[str, Outcome]:
    """Judge made-up columns: what matters to each claim, in turn."""
    policies = {"uniform": 100.0, "Algorithm 1, p = 40": 80.0, "evidence, q = 1": news, "evidence, q = 2": 2 * news}
    policies["auto"] = auto
    fixed = {"p = 1 K": 200.0, "p = 16 K": 100.0, "auto": noisy, "auto, told T": noisy, "default": 50.0}
    newcomer = {"Algorithm 1": 5.0, "Algorithm 1, learned": 0.2, "evidence": tries, "evidence, learned": tries}
    shares = {"predict": 0.92, "decide": decide, "explored": 0.02}
    late_means, closed_means = (100.0, 150.0, late, 120.0, 1e3), (100.0, 100.0, 100.0 + 20 * price, 90.0)
    closed = dict(zip(CLOSED, (*closed_means, 100.0 * count, 100.0, 1000.0), strict=True))
    trained = {f"{name}, {what}": np.full(20, share) for name in evidence.BY_SCHEDULE for what, share in shares.items()}
    stages = {
        "news": {"gaussian": columns(**policies), "clicks": columns(**policies)},
        "newcomer": {"newcomer": columns(**newcomer, auto=tries, **{"auto, learned": tries})},
        "delay": {"Figure (a)": columns(**dict(zip(LATE, late_means, strict=True)))},
        "trained": {"gaussian d = 10": trained},
        "closed": {"Figure (a)": columns(**closed)},
        "auto": {evidence.NOISY_ARM: columns(**fixed)},
    }
    found = evidence.judge(TINY, stages, np.random.default_rng(2))
    return {verdict.claim.key.removeprefix("evidence-"): verdict.outcome for verdict in found.verdicts}


def test_evidence_verdicts_follow_from_the_numbers() -> None:
    assert set(believed().values()) == {Outcome.HOLDS}
    assert believed(news=40.0)["news"] is Outcome.FAILS
    assert believed(tries=5.0)["newcomer"] is Outcome.FAILS
    assert believed(late=200.0)["delay"] is Outcome.FAILS
    assert believed(decide=0.8)["trained"] is Outcome.FAILS
    assert believed(count=2.0)["closed"] is Outcome.FAILS
    assert believed(price=5.0)["floor"] is Outcome.FAILS
    assert believed(auto=40.0)["news"] is Outcome.FAILS
    assert believed(noisy=150.0)["auto"] is Outcome.FAILS
