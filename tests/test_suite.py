"""What the tests promise about themselves: what `pytest` runs and does not run, and what is kept between runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import examples, kept

ROOT = Path(__file__).parent.parent


def collected(*arguments: str) -> set[str]:
    """Return the files whose tests `pytest` would run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return {line.partition("::")[0] for line in found.splitlines() if "::" in line}


def test_a_browser_or_node_is_needed_only_where_it_is_asked_for() -> None:
    """Anyone who starts one lives in the folder that is left out, and that folder can be named."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    starts = ("import Browser\n", "\nimport playwright\n")
    needy = {str(path.relative_to(ROOT)) for path in tests if any(start in path.read_text() for start in starts)}
    assert len(needy) > 1
    assert collected("tests/page") == needy
    others = [path for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name not in ("page", "theory")]
    usual = collected("tests", *(f"--ignore={path}" for path in others))
    assert "tests/theory/test_theory.py" in usual
    assert not needy & usual


def test_tests_of_a_file_stay_on_one_worker_unless_they_are_spread(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text())
    tests = "import pytest\n@pytest.mark.parametrize('i', range({}))\ndef test_it(i): pass\n"
    for name, n, mark in (("a", 6, ""), ("b", 6, ""), ("spread", 400, "pytestmark = pytest.mark.spread\n")):
        (tmp_path / f"test_{name}.py").write_text(
            tests.format(n) + mark
        )  # a worker that is late still gets some of 400
    options = [
        "-c",
        "/dev/null",
        "--rootdir",
        str(tmp_path),
        "-p",
        "no:cacheprovider",
        "-o",
        f"pythonpath={ROOT}/tests",
    ]
    command = [sys.executable, "-m", "pytest", "-v", "-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder"]
    ended = subprocess.run(
        [*command, *options, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    ran = re.findall(r"\[(gw\d)\].* PASSED test_(\w+)\.py", ended.stdout)
    assert len(ran) == 412, ended.stdout + ended.stderr
    assert [len({worker for worker, name in ran if name == each}) for each in ("a", "b", "spread")] == [1, 1, 2]


def test_every_command_of_the_tests_is_run_where_it_should_be() -> None:
    assert [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("make")] == [
        "make test",
        "make test-postgresql",
        "make test-page",
    ]


@pytest.mark.parametrize(("profile", "expected"), [("", 12), ("dev", 12), ("ci", 60), ("nightly", 600)])
def test_a_profile_scales_the_examples(profile: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYPOTHESIS_PROFILE", profile)
    assert examples.scaled(60) == expected
    assert examples.scaled(1) >= examples.FEWEST


def test_an_unknown_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYPOTHESIS_PROFILE", "weekly")
    with pytest.raises(ValueError, match="HYPOTHESIS_PROFILE is 'weekly'; choose one of dev, ci, nightly"):
        examples.scaled(60)


def test_every_number_of_examples_is_scaled() -> None:
    asked = [line for path in (ROOT / "tests").rglob("test_*.py") for line in path.read_text().splitlines()]
    assert [line for line in asked if "max_examples=" in line and "scaled(" not in line and "asked" not in line] == []


def test_a_kept_folder_is_made_once_for_each_digest(tmp_path: Path) -> None:
    source, made = tmp_path / "source.py", []

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "text").write_text(source.read_text())
        made.append(folder)

    for text, times in (("one", 1), ("one", 1), ("two", 2)):
        source.write_text(text)
        folder = kept.keep(tmp_path / "shelf", kept.digest([source], 7), make)
        assert (folder / "text").read_text() == text
        assert len(made) == times
    assert kept.digest([source], 8) != folder.name
    assert [path.name for path in (tmp_path / "shelf").iterdir() if path.is_dir()] == [folder.name]


def test_a_folder_that_was_not_finished_is_made_anew(tmp_path: Path) -> None:
    def stop(folder: Path) -> None:
        folder.mkdir()
        (folder / "half").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.keep(tmp_path, "name", stop)
    assert list(kept.keep(tmp_path, "name", Path.mkdir).iterdir()) == []
