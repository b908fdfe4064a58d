"""The reproduction: it writes all its files, goes on after a failure, and says what went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from armlet.experiments import lemma2, paper, plots
from armlet.experiments.experiment import Experiment, Findings, Scale
from armlet.experiments.rates import Estimate
from armlet.experiments.report import Picture, Section
from armlet.experiments.verdicts import Claim, Criterion, Statistic, Verdict


def quiet(_: str) -> None:
    pass


def findings(key: str) -> Findings:
    claim = Claim(key=key, where="Section 1", says="It works.", reading="As it stands.")
    verdict = Verdict(claim=claim, statistics=(Statistic("number", Estimate(1, 1, 1), Criterion("below", 2)),))
    figure = plots.bars(["a"], [Estimate(1, 1, 1)], xlabel="x")
    pictures = tuple(Picture(plots.svg(figure, key=f"{key}-{i}", alt="A bar"), "A bar.") for i in range(2))
    return Findings((verdict,), (Section(claim=key, heading=key, pictures=pictures),))


def fake(name: str) -> Experiment:
    def run(scale: Scale, seed: int, say: Callable[[str], None]) -> Findings:
        say(f"{name} at {scale} with {seed}")
        if name == "fig-b":
            raise RuntimeError("out of luck")
        if name == "section-7":
            raise KeyboardInterrupt
        return findings("fig-a" if name == "merge" else name)  # merge tells a claim that fig-a told

    return Experiment(name, name, run)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "load", fake)


def test_every_file_is_written_and_the_table_printed(
    fakes: None,  # noqa: ARG001
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told: list[str] = []
    code = paper.reproduce(["theorem-1", "fig-a"], "quick", 5, tmp_path / "deep" / "paper", told.append)
    out = tmp_path / "deep" / "paper"
    assert code == 0
    assert told == ["theorem-1 at quick with 5", "fig-a at quick with 5"]
    assert {path.name for path in out.iterdir()} == {
        "report.html",
        "verdicts.json",
        "verdicts.md",
        "theorem-1.svg",
        "theorem-1-2.svg",
        "fig-a.svg",
        "fig-a-2.svg",
    }
    assert [each["key"] for each in json.loads((out / "verdicts.json").read_text())] == ["theorem-1", "fig-a"]
    printed = capsys.readouterr().out
    assert "Claims: 2; holds: 2" in printed
    assert str(out / "report.html") in printed


def test_a_failing_experiment_is_reported_and_the_rest_goes_on(
    fakes: None,  # noqa: ARG001
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert paper.reproduce(["fig-b", "fig-a", "merge"], "quick", 5, tmp_path, quiet) == 1
    printed = capsys.readouterr().out
    assert "fig-b failed: RuntimeError: out of luck" in printed
    assert "merge failed: ValueError: claim fig-a was judged before" in printed
    assert "Claims: 1; holds: 1" in printed
    assert "out of luck" in (tmp_path / "report.html").read_text()


def test_an_interrupted_reproduction_keeps_what_was_finished(fakes: None, tmp_path: Path) -> None:  # noqa: ARG001
    with pytest.raises(KeyboardInterrupt):
        paper.reproduce(["fig-a", "section-7", "theorem-2"], "quick", 5, tmp_path, quiet)
    assert [each["key"] for each in json.loads((tmp_path / "verdicts.json").read_text())] == ["fig-a"]


def test_an_unknown_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no experiment 'fig-c'; choose from fig-a, fig-b"):
        paper.reproduce(["lemma-2", "fig-c"], "quick", 5, tmp_path / "none", quiet)
    with pytest.raises(ValueError, match="names is empty"):
        paper.reproduce([], "quick", 5, tmp_path / "none", quiet)
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("capsys")
def test_a_real_experiment_gives_the_same_verdicts_every_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tiny = lemma2.Settings(p=60, steps=(100, 400), checked=400, runs=20)
    monkeypatch.setitem(lemma2.SCALES, "quick", tiny)
    for name in ("first", "second"):
        assert paper.reproduce(["lemma-2"], "quick", 5, tmp_path / name, quiet) == 0
    for name in ("verdicts.json", "verdicts.md", "lemma-2.svg"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


@pytest.mark.parametrize("name", ["theorem-1", "theorem-2", "lemma-2"])
def test_the_registry_leads_to_the_experiment_of_that_name(name: str) -> None:
    assert paper.load(name).name == name
