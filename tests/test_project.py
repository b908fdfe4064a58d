"""What the project promises about itself: figures in the docs, imports, stubs, versions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import armlet
import rooms
from armlet import cli
from fuzz import __main__ as fuzzer
from fuzz import threads

pytestmark = pytest.mark.spread

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "armlet").rglob("*.py"))


def test_docs_show_what_compare_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The `armlet compare` of the docs is run as it stands there; its tables and rates are there to the letter."""
    page = (ROOT / "docs" / "results" / "comparing-p.md").read_text()
    block = next(part for part in page.split("```")[1::2] if "$ armlet compare" in part)
    command, shown = block.split("$ armlet ", 1)[1].replace("\\\n", " ").split("\n", 1)
    assert cli.main([*command.split(), "--engine", "serial", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    rows = [line for line in shown.splitlines() if line]
    assert len(rows) > 8
    assert [row for row in rows if row not in printed] == []


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_only_the_kernel_module_imports_the_compiled_one() -> None:
    importers = {
        path.name for path in SOURCES if any(name.startswith("armlet._kernel") for name in imported_modules(path))
    }
    assert importers == {"kernel.py"}


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter loads for some code."""
    report = f"{code}; import sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


HEAVY = {"matplotlib", "pandas", "polars", "pyarrow", "scipy", "pickle", "asyncio", "multiprocessing"}


def test_importing_armlet_needs_numpy_alone() -> None:
    standard = set(sys.stdlib_module_names)
    extra = loaded_by("import armlet") - loaded_by("import numpy") - standard
    assert extra == {"armlet"}


def test_importing_armlet_reads_no_theory() -> None:
    """Environments and the constants of the bound are for those who ask; every import would pay for them."""
    report = "import armlet, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    assert {"armlet.environments.environment", "armlet.theory"}.isdisjoint(done.stdout.split())


def test_help_imports_nothing_heavy() -> None:
    code = "import contextlib, armlet.cli\nwith contextlib.suppress(SystemExit): armlet.cli.main(['--help'])\nprint()"
    report = f"{code}\nimport sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "armlet" in loaded
    assert not loaded & (HEAVY - loaded_by("import numpy"))


def test_stubs_describe_the_compiled_module(tmp_path: Path) -> None:
    """`make stubs` would change nothing."""
    stub = tmp_path / "_kernel.pyi"
    patterns = str(ROOT / "kernel" / "bindings" / "stubs.txt")
    options = [
        "--include-private",
        "--module",
        "armlet._kernel",
        "--pattern-file",
        patterns,
        "--output-file",
        str(stub),
    ]
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", *options], check=True, capture_output=True)
    for how in (["check", "--select", "I", "--fix"], ["format"]):
        config = ["--quiet", "--config", str(ROOT / "pyproject.toml"), str(stub)]
        subprocess.run([sys.executable, "-m", "ruff", *how, *config], check=True)
    assert stub.read_text() == (ROOT / "src" / "armlet" / "_kernel.pyi").read_text()


def test_the_version_is_the_same_everywhere() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert armlet.__version__ == settings["project"]["version"]
    assert f"version: {armlet.__version__}" in (ROOT / "CITATION.cff").read_text()


def test_every_pin_is_exact_and_names_no_host() -> None:
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert pins
    assert [pin for pin in pins if pin.count("==") != 1 or "/" in pin] == []


def published() -> dict[str, str]:
    """Read the outcome of each claim from the verdicts in the docs."""
    page = (ROOT / "docs" / "reference" / "paper.md").read_text().split("<!-- verdicts: begin -->")[1]
    rows = [line.split(" | ") for line in page.splitlines() if " | " in line]
    return {row[0].removeprefix("| "): row[3] for row in rows[1:]}


def test_readme_counts_the_published_verdicts() -> None:
    counts = Counter(published().values())
    open_ = counts["not settled by these runs"]
    sentence = (
        f"tests {counts.total()} claims and ends with a verdict for each: {counts['holds']} hold, "
        f"{counts['holds only under a stated reading']} hold only under a stated reading, "
        f"{counts['does not hold']} do not hold, {open_} {'is' if open_ == 1 else 'are'} not settled."
    )
    assert sentence in " ".join((ROOT / "README.md").read_text().split())


def test_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def defined(path: Path) -> set[str]:
    """List what a file defines: functions and classes of Python, what C++ has with a bracket after its name."""
    if not path.is_file():
        return set()
    if path.suffix in {".cpp", ".hpp"}:
        return set(re.findall(r"\b(\w+)\(", path.read_text()))
    return {
        node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def missing(text: str) -> list[str]:
    """List the names of a page, `path::name`, that are nowhere."""
    named = re.findall(r"`([\w/]+\.[ch]?pp|[\w/]+\.py)::(\w+)`", text)
    assert len(named) == text.count("::") > 30
    return [f"{path}::{name}" for path, name in named if name not in defined(ROOT / path)]


def test_every_promise_of_production_names_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "how-to" / "production.md").read_text().split("## What is promised")[1].split("\n## ")[0]
    assert missing(page) == []


def test_the_map_of_algorithm_1_names_what_exists() -> None:
    """And shows the page of numpy as the file has it, and every file of the reference."""
    page = (ROOT / "docs" / "explanation" / "algorithm-1.md").read_text()
    assert missing(page) == []
    example = (ROOT / "examples" / "algorithm_1.py").read_text()
    assert example.partition("import annotations\n\n")[2].partition("\n\n\ndef main")[0] in page
    files = sorted((ROOT / "src" / "armlet" / "reference").glob("[a-z]*.py"))
    assert [file.name for file in files if f"`src/armlet/reference/{file.name}`" not in page] == []


BAKE_OFFS = ("balanced", "imbalanced")
HOW_LONG = re.compile(
    r"\b(an?|half|quarter|few|several|[0-9]+|two|three|four|five|ten|thirty)\s+(of\s+)?(an?\s+)?(minute|hour)s?\b"
)


def test_nobody_is_told_how_long_a_command_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """A duration in words is wrong on the next machine and after the next change; progress lines measure it."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "decisions"]
    texts = {
        str(path.relative_to(ROOT)): path.read_text()
        for path in (*pages, *(ROOT / name for name in ("README.md", "Makefile", "CONTRIBUTING.md")))
    }
    for command in ("paper", "simulate", "compare", "advise", "report", "list", "bakeoff", "data", "log", "audit"):
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        texts[f"armlet {command} --help"] = capsys.readouterr().out
    assert {name: found[0] for name, text in texts.items() if (found := HOW_LONG.search(text))} == {}


def test_contributors_are_told_what_the_fuzzer_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fuzz", "all"])
    given = fuzzer.parse()
    assert (given.calls, given.files) == (10**6, 10**5)
    sentence = (
        "10^6 calls on good and bad paths, 10^5 damaged model files, "
        f"{given.threads} threads for {given.seconds:.0f} seconds on {len(threads.POLICIES)} policies"
    )
    assert sentence in " ".join((ROOT / "CONTRIBUTING.md").read_text().split())


@pytest.mark.parametrize(("where", "most"), [("src", 25), ("tests", 30), ("kernel", 25)])
def test_no_folder_holds_more_than_a_reader_can_take_in(where: str, most: int) -> None:
    """But a catalogue may be as long as it is."""
    catalogue = ROOT / "src" / "armlet" / "policies"
    files = Counter(path.parent for path in (ROOT / where).rglob("*.*") if path.suffix in {".py", ".cpp", ".hpp"})
    assert {str(folder): n for folder, n in files.items() if n > most and folder != catalogue} == {}


def rows_of(text: str) -> dict[str, list[str]]:
    """Return the rows of tables by their first cell."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if "|" in line]
    return {row[0]: row[1:] for row in rows}


def test_readme_shows_the_bake_off_as_it_came() -> None:
    """Error, wins and losses of each row stand in the row of that name of the page that the command writes."""
    shown = rows_of((ROOT / "README.md").read_text().split("## How good it is")[1].split("<!-- speed")[0])
    page = (ROOT / "docs" / "results" / "bakeoff.md").read_text()
    names = {"**Armlet, the default**": "OccasionalOptimism", "Armlet, Greedy": "Greedy", "Armlet, LinUCB": "LinUCB"}
    kinds = [rows_of(page.split(f"<!-- {kind}: begin -->")[1].split("against each;")[0]) for kind in BAKE_OFFS]
    cells_of = {name: row[:4] for name, row in shown.items() if re.fullmatch(r"0\.\d+", row[0])}
    assert len(cells_of) == 7
    for name, cells in cells_of.items():
        found = [kind[names.get(name, name)] for kind in kinds]
        assert cells == [cell for row in found for cell in (row[2], row[5])]


def test_policies_that_the_readme_recommends_play_as_they_are_written() -> None:
    table = (ROOT / "README.md").read_text().split("## Which policy?")[1].split("## ")[0]
    named = re.findall(r"`(\w+)\((.*?)\)`", table)
    assert len(named) == 4
    for name, settings in named:
        policy = eval(f"armlet.{name}({settings})", {"armlet": armlet})
        assert armlet.Bandit(["a", "b"], 1, policy=policy, seed=1).decide([0.5]).arm in {"a", "b"}


def test_readme_tells_what_the_tournament_found() -> None:
    page = (ROOT / "docs" / "results" / "tournament.md").read_text()
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert re.search(r"tournament-families .* does not hold .* 37 of 54 checks passed", page)
    assert "it regrets 1.06 times" in readme
    assert "| occasional optimism | 1.06 [" in page
    assert "does not hold: 37 of 54 checks passed" in readme


def test_a_room_beyond_its_budget_is_named() -> None:
    counted = {"lines": {"log": 12, "new": 3}, "files": {"log": 2}}
    limits = {"lines": {"log": 11, "old": 5}, "files": {"log": 2}}
    assert [line.partition(";")[0] for line in rooms.excesses(counted, limits)] == [
        "lines of log: 12, more than 11",
        "lines of new: 3, without a limit",
        "lines of old: a limit of something that is not there",
    ]


def test_every_module_is_in_one_room() -> None:
    paths = rooms.rooms()
    whole = ("library", "kernel", "laboratory", *rooms.TESTS)
    assert sorted(path for room in paths.keys() - whole for path in paths[room]) == SOURCES
