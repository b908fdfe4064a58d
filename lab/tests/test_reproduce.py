"""The reproduction: it writes all its files, goes on after a failure, and says what went wrong."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from armlet.parallel import Progress, WorkerError, silent
from armlet.report import plots
from armlet.simulation.lab import Arrays, Lab
from armlet.types import Estimate
from armlet_lab.cli import main
from armlet_lab.experiments import EXPERIMENTS
from armlet_lab.paper import lemma_2
from armlet_lab.runner import reproduce as paper
from armlet_lab.runner.experiment import Claim, Criterion, Experiment, Findings, Section, Statistic, Verdict


def quiet(_: str) -> Progress:
    return silent


@dataclass(frozen=True)
class Task:
    number: int


COMPUTED: list[int] = []


def compute(task: Task) -> Arrays:
    COMPUTED.append(task.number)
    return {"square": np.array([task.number**2])}


def findings(key: str) -> Findings:
    claim = Claim(key=key, where="Section 1", says="It works.", reading="As it stands.")
    verdict = Verdict(claim=claim, statistics=(Statistic("number", Estimate(1, 1, 1), Criterion("below", 2)),))
    figure = plots.bars(["a"], [Estimate(1, 1, 1)], xlabel="x")
    pictures = tuple(plots.picture(figure, key=f"{key}-{i}", alt="A bar", caption="A bar.") for i in range(2))
    return Findings((verdict,), (Section(claim=key, heading=f"The claim {key}", pictures=pictures),))


def fake(name: str) -> Experiment:
    def run(lab: Lab) -> Findings:
        lab.map("squares", compute, [Task(lab.seeds.root)], f"{name} at {lab.scale} with {lab.seeds.root}")
        if name == "fig-b":
            raise RuntimeError("out of luck")
        if name == "section-7":
            raise KeyboardInterrupt
        if name == "lemma-2":
            raise WorkerError("a worker died")
        return findings("fig-a" if name == "merge" else name)  # merge repeats a claim of fig-a

    return Experiment(name, name, run)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "load", fake)


def reproduce(names: list[str], out: Path) -> int:
    return paper.reproduce(names, "quick", 5, out, engine="serial", progress=quiet)


def test_every_file_is_written_and_the_table_printed(
    fakes: None,  # noqa: ARG001
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    labels: list[str] = []

    def listen(label: str) -> Progress:
        labels.append(label)
        return silent

    out = tmp_path / "deep" / "paper"
    assert paper.reproduce(["theorem-1", "fig-a"], "quick", 5, out, engine="serial", progress=listen) == 0
    assert labels == ["theorem-1 at quick with 5", "fig-a at quick with 5"]
    figures = [
        f"{name}{part}.{kind}" for name in ("fig-a", "theorem-1") for part in ("", "-2") for kind in ("png", "svg")
    ]
    assert sorted(path.name for path in (out / "figures").iterdir()) == sorted(figures)
    assert (out / "figures" / "fig-a.png").read_bytes()[1:4] == b"PNG"
    assert sorted(path.name for path in out.iterdir()) == [
        "data",
        "figures",
        "manifest.json",
        "report.html",
        "tables",
        "verdicts.json",
        "verdicts.md",
    ]
    assert [each["key"] for each in json.loads((out / "verdicts.json").read_text())] == ["theorem-1", "fig-a"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["status"], manifest["seed"], manifest["scale"]) == ("finished", 5, "quick")
    printed = capsys.readouterr().out
    assert "2 hold." in printed
    assert str(out / "report.html") in printed


def test_a_failing_experiment_is_reported_and_the_rest_goes_on(
    fakes: None,  # noqa: ARG001
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert reproduce(["fig-b", "fig-a", "merge"], tmp_path) == 1
    printed = capsys.readouterr().out
    assert "fig-b failed: RuntimeError: out of luck" in printed
    assert "merge failed: ValueError: claim fig-a was judged before" in printed
    assert "1 holds." in printed
    assert "out of luck" in (tmp_path / "report.html").read_text()


def test_an_interrupted_reproduction_keeps_what_was_finished_and_goes_on(
    fakes: None,  # noqa: ARG001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ["fig-a", "section-7", "theorem-2"]
    with pytest.raises(KeyboardInterrupt):
        reproduce(names, tmp_path)
    assert [each["key"] for each in json.loads((tmp_path / "verdicts.json").read_text())] == ["fig-a"]
    assert json.loads((tmp_path / "manifest.json").read_text())["status"] == "interrupted"
    monkeypatch.setattr(paper, "load", lambda name: fake("theorem-1" if name == "section-7" else name))
    COMPUTED.clear()
    assert reproduce(names, tmp_path) == 0
    assert COMPUTED == [5]  # theorem-2's task; the others were there
    assert len(json.loads((tmp_path / "manifest.json").read_text())["sessions"]) == 2


@pytest.mark.usefixtures("fakes")
def test_lost_workers_end_the_reproduction_which_can_go_on(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="a worker died"):
        reproduce(["fig-a", "lemma-2", "theorem-1"], tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["status"], [*manifest["seconds"]]) == ("interrupted", ["fig-a"])


@pytest.mark.usefixtures("fakes")
def test_a_finished_reproduction_begins_anew(tmp_path: Path) -> None:
    COMPUTED.clear()
    for _ in range(2):
        assert reproduce(["fig-a"], tmp_path) == 0
    assert COMPUTED == [5, 5]


@pytest.mark.usefixtures("fakes")
def test_a_report_is_rebuilt_without_computing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce(["fig-a", "theorem-1"], tmp_path) == 0
    page = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").unlink()
    (tmp_path / "data" / "theorem-1" / "squares.parquet").unlink()
    COMPUTED.clear()
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path)])
    assert COMPUTED == []
    assert "theorem-1 failed: not finished: tasks still to be computed: 1" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="1"):
        main(["report", str(tmp_path), "--json"])
    assert json.loads(capsys.readouterr().out)["verdicts"][0]["outcome"]
    assert page.startswith(b"<!DOCTYPE html>")
    assert 'id="claim-fig-a"' in (tmp_path / "report.html").read_text()


def test_an_unknown_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no experiment 'fig-c'; did you mean 'fig-"):
        reproduce(["lemma-2", "fig-c"], tmp_path / "none")
    with pytest.raises(ValueError, match="names is empty"):
        reproduce([], tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("capsys")
def test_a_real_experiment_gives_the_same_bytes_on_any_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tiny = lemma_2.Settings(p=60, steps=(100, 400), checked=400, runs=20)
    monkeypatch.setitem(lemma_2.SCALES, "quick", tiny)
    engines = {"serial": 1, "processes": 2, "dask": 2}
    for name, workers in engines.items():
        out = tmp_path / name
        assert paper.reproduce(["lemma-2"], "quick", 5, out, engine=name, workers=workers, progress=quiet) == 0
    files = [path.relative_to(tmp_path / "serial") for path in (tmp_path / "serial").rglob("*.*") if path.is_file()]
    for file in files:
        if file.name not in ("manifest.json", "report.html"):  # these tell times
            contents = [(tmp_path / name / file).read_bytes() for name in engines]
            assert contents[0] == contents[1] == contents[2], file


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_the_registry_leads_to_the_experiment_of_that_name(name: str) -> None:
    assert paper.load(name).name == name


def data_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted((folder / "data").rglob("*.parquet"))}


def test_a_reproduction_that_was_killed_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """kill -9 of the whole run, as a machine that loses its power would."""
    command = [sys.executable, "-m", "armlet_lab", "paper", "--only", "fig-b", "--workers", "2", "--out"]
    subprocess.run([*command, tmp_path / "whole"], check=True, capture_output=True)
    killed = subprocess.Popen(
        [*command, tmp_path / "killed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    chunks = tmp_path / "killed" / "data" / "fig-b" / "play"
    while len(list(chunks.glob("*.armlet"))) < 2:
        with pytest.raises(subprocess.TimeoutExpired):  # it goes on, and leaves the processor to its workers
            killed.wait(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not data_of(tmp_path / "killed")  # it was in the middle of its work
    again = subprocess.run([*command, tmp_path / "killed"], check=True, capture_output=True, text=True)
    assert "Going on with what was interrupted" in again.stdout
    assert data_of(tmp_path / "killed") == data_of(tmp_path / "whole")
    for name in ("verdicts.json", "figures/fig-b.svg"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.parametrize("name", paper.ALL)
def test_all_experiments_have_one_shape(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scale of the lab chooses the settings, which `find` plays and `judge` turns into findings."""
    module = importlib.import_module(paper.ALL[name])
    asked: list[object] = []
    monkeypatch.setattr(module, "find", lambda settings, _lab: asked.append(settings))
    for scale in ("quick", "full"):
        module.EXPERIMENT.run(Lab(seed=3, scale=scale))
    assert asked == [module.SCALES["quick"], module.SCALES["full"]]
    assert all(isinstance(settings, module.Settings) for settings in asked)
    assert module.EXPERIMENT.name == name
    assert module.EXPERIMENT.run is module.run
    assert callable(module.judge)
    assert module.__doc__
