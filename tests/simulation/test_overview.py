"""The page of a folder of simulations: finished, unfinished, or none at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.environments import FigureA
from armlet.simulation import run as runner
from armlet.simulation.lab import Manifest, ResultsError
from armlet.simulation.overview import describe, write_overview
from armlet.simulation.play import Curves, Job, play, settings_of
from armlet.simulation.run import simulate_all

ENVIRONMENT = FigureA.draw(np.random.default_rng(3))
SIZE: dict[str, Any] = {"horizon": 500, "runs": 3, "seed": 1}


@pytest.fixture
def jobs() -> list[Job]:
    policies = (armlet.Algorithm1(p=60), armlet.Uniform())
    return [Job(environment=ENVIRONMENT, policy=policy, **SIZE) for policy in policies]


def test_a_page_shows_every_policy(jobs: list[Job], tmp_path: Path) -> None:
    simulate_all(jobs, engine="serial", store=tmp_path)
    page = write_overview(tmp_path).read_text()
    assert page.count("<svg") == 1
    for name in ("Algorithm1(p=60)", "Uniform()"):
        assert name in page
    assert "after 500 steps, in the mean of 3 runs" in page
    assert "6 in all" in page


def test_the_finished_runs_of_an_interrupted_simulation_are_shown(
    jobs: list[Job], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "TASK_SECONDS", 1e-9)  # one run a task
    left = [1, 2]

    def interrupt(job: Job, run: int) -> Curves:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return play(job, run)

    monkeypatch.setattr(runner, "play", interrupt)
    with pytest.raises(KeyboardInterrupt):
        simulate_all(jobs[:1], engine="serial", store=tmp_path)
    assert "2 in all" in write_overview(tmp_path).read_text()


def test_a_folder_without_results_is_refused(jobs: list[Job], tmp_path: Path) -> None:
    Manifest(tmp_path, jobs, engine="serial").stop("interrupted")
    with pytest.raises(ResultsError, match="holds no finished run yet; run the same command again"):
        write_overview(tmp_path)
    with pytest.raises(ResultsError, match=r"has no manifest\.json, so it holds no results"):
        write_overview(tmp_path / "nowhere")


def test_a_policy_is_named_with_what_is_short_and_not_its_default() -> None:
    assert describe({"name": "Oracle", "settings": {"theta": [[1.0]]}}) == "Oracle()"
    assert describe({"name": "Mine", "settings": None}) == "Mine"
    assert describe({"name": "Mine", "settings": {"ridge": "paper"}}) == "Mine(ridge='paper')"
    for policy, name in ((armlet.Uniform(), "Uniform()"), (armlet.Uniform(ridge=2.0), "Uniform(ridge=2.0)")):
        job = Job(environment=ENVIRONMENT, policy=policy, **SIZE)
        assert describe(settings_of(job)["policy"]) == name
