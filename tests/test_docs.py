"""What the docs promise: a map that has every page, links that lead somewhere, a reference with every public name."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest

import armlet
from armlet.cli.parser import make_parser
from hooks import cells, commands, contents

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
API = DOCS / "reference" / "api"
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(API.glob("*.rst")), *sorted(ROOT.glob("*.md"))]
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))


def pages_of(index: Path) -> set[Path]:
    """List the files that a page links to, without their suffix."""
    return {(index.parent / page).resolve() for page in contents.linked(index.read_text())}


def test_the_map_has_every_page() -> None:
    known = pages_of(DOCS / "index.md") | pages_of(DOCS / "decisions" / "README.md")
    assert [page for page in PAGES if page.with_suffix("") not in known | {DOCS / "index"}] == []


def links(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    places = [link.partition("#")[0] for link in links(page)]
    assert [place for place in places if place and not (page.parent / place).is_file()] == []


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_says_first_what_you_will_have(page: Path) -> None:
    assert page.read_text().split("\n\n")[1].startswith("At the end you will have")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_all_code_of_a_tutorial_is_run(page: Path) -> None:
    """Every Python block is a doctest, and each becomes cells of the site that have all of its lines."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    assert [block for block in blocks if not block.startswith(">>> ")] == []
    shown = cells.notebook(page.read_text())
    typed = [line[4:] for block in blocks for line in block.splitlines() if line.startswith((">>> ", "... "))]
    assert [line for line in typed if line not in shown] == []
    assert "\n>>> " not in shown


def test_every_public_module_has_a_page_of_the_reference() -> None:
    """Every folder of the library, but the core, which the others show, and the commands, which have their own page."""
    folders = {path.parent.name for path in Path(armlet.__file__).parent.glob("*/__init__.py")} - {"core", "cli"}
    assert set(armlet._MODULES) < folders
    assert {name for name in folders if not (API / f"{name}.rst").is_file()} == set()


def test_the_page_of_the_commands_has_what_each_of_them_prints() -> None:
    page = commands.page((DOCS / "reference" / "commands.md").read_text())
    parsers = list(commands.found(make_parser()))
    assert len(parsers) > 15
    for each in parsers:
        assert f"# {each.prog}\n\n```text\nusage: {each.prog} [-h]" in page


def read(module: str) -> str:
    return (API / f"{module}.rst").read_text()


@pytest.mark.parametrize("module", sorted({path.stem for path in API.glob("*.rst")} - {"armlet", "policies"}))
def test_a_module_of_the_reference_says_what_is_public(module: str) -> None:
    assert f"automodule:: armlet.{module}\n" in read(module)
    found = importlib.import_module(f"armlet.{module}")
    names = getattr(found, "__all__", ())
    assert [name for name in names if not hasattr(found, name)] == []
    listed = {name for name, value in vars(found).items() if inspect.isclass(value) or inspect.isfunction(value)}
    lines = {line.rpartition(" ")[2] for line in read(module).splitlines()}
    assert [name for name in names if name not in listed and f"armlet.{module}.{name}" not in lines] == []


def test_figures_about_others_stand_in_the_results() -> None:
    """Tables under such a mark are lines of the page that it names."""
    page = DOCS / "explanation" / "against-the-others.md"
    parts = re.findall(r"<!-- lines of (\S+) -->\n((?:\|.*\n)+)", page.read_text())
    assert len(parts) == 3
    for source, table in parts:
        written = (page.parent / source).read_text().splitlines()
        assert [line for line in table.splitlines() if line not in written] == []
