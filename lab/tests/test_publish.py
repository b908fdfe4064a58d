"""Pages of the documentation: every mark is there, and what a command made goes between them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from armlet_lab import publish as publishing
from armlet_lab.publish import PAGES, DocPage, PublishError, paste, publish
from armlet_lab.runner import reproduce

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = "# Results\n\n<!-- one: begin -->\n\nold\n\n<!-- one: end -->\n\nkept\n"


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_its_marks_and_figures(name: str) -> None:
    page = PAGES[name]
    for path, parts in page.texts.items():
        text = (DOCS / path).read_text()
        for mark in parts:
            assert "new" in paste(text, mark, "new")
    assert all((DOCS / "figures" / figure).exists() for figure in page.figures)


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_a_page_names_experiments_and_writes_where_it_is_read(name: str) -> None:
    page = PAGES[name]
    written = set()
    for step in page.steps:
        if isinstance(step, tuple):
            written.add(step[step.index("--out") + 1].removeprefix("results/"))
            if "--only" in step:
                assert set(step[step.index("--only") + 1].split(",")) <= set(reproduce.ALL)
    read = {Path(file).parts[0] for file in (*page.parts.values(), *page.figures.values())}
    assert read - {"calibration.md", "speed", "router", "proxy", "catalogue"} == written  # by functions


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    page = DocPage(
        path="page.md",
        steps=(("paper", "--only", "units", "--out", "results/units"),),
        parts={"one": "units/one.md"},
        figures={"one.svg": "units/one.svg"},
        quoted_on={"../README.md": {"one": "units/one.md"}},
    )
    monkeypatch.setattr(publishing, "PAGES", {"units": page})
    (tmp_path / "docs" / "figures").mkdir(parents=True)
    (tmp_path / "docs" / "page.md").write_text(TEXT)
    (tmp_path / "README.md").write_text(TEXT.replace("kept", "kept there"))
    return tmp_path


def test_what_a_command_made_goes_between_the_marks(root: Path) -> None:
    def run(argv: Sequence[str]) -> int:
        folder = Path(argv[-1])
        folder.mkdir(parents=True)
        (folder / "one.md").write_text("| new |\n")
        (folder / "one.svg").write_text("<svg/>")
        return 0

    page = publish("units", run, root)
    assert page.read_text() == TEXT.replace("old", "| new |")
    assert (root / "README.md").read_text() == TEXT.replace("old", "| new |").replace("kept", "kept there")
    assert (root / "docs" / "figures" / "one.svg").read_text() == "<svg/>"


def test_a_command_that_fails_leaves_the_page_as_it_was(root: Path) -> None:
    with pytest.raises(PublishError, match="ended with 1"):
        publish("units", lambda _: 1, root)
    assert (root / "docs" / "page.md").read_text() == TEXT


def test_a_page_without_its_mark_is_refused_before_anything_runs(root: Path) -> None:
    (root / "docs" / "page.md").write_text("# Results\n")
    with pytest.raises(PublishError, match="one: begin"):
        publish("units", lambda _: pytest.fail("it ran"), root)


def test_a_page_that_is_not_there_is_refused_by_name(root: Path) -> None:
    with pytest.raises(ValueError, match="there is no page 'unit'; did you mean 'units'"):
        publish("unit", lambda _: 0, root)
