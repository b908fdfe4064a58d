"""What the docs promise: a map that has every page, links that lead somewhere, a reference with every public name."""

from __future__ import annotations

import ast
import codeop
import doctest
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import armlet
import diagrams
from armlet.cli import make_parser
from armlet_lab.cli import make_parser as make_lab_parser
from hooks import cells, commands, contents, downloads, reference
from support.commands import leaves

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
API = DOCS / "reference" / "api"
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(API.glob("*.rst")), *sorted(ROOT.glob("*.md"))]
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
TYPED = re.compile(r"^(?:>>>|\.\.\.) (.*)$", re.MULTILINE)


def pages_of(index: Path) -> set[Path]:
    """List the files that a page links to, without their suffix."""
    return {(index.parent / page).resolve() for page in contents.linked(index.read_text())}


def test_the_map_has_every_page() -> None:
    known = pages_of(DOCS / "index.md") | pages_of(DOCS / "decisions" / "README.md")
    assert [page for page in PAGES if page.with_suffix("") not in known | {DOCS / "index"}] == []


def test_no_two_pages_share_a_title() -> None:
    titles = [page.read_text().partition("\n")[0].casefold() for page in PAGES if page.is_relative_to(DOCS)]
    assert sorted({title for title in titles if titles.count(title) > 1}) == []


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


def copied(page: Path) -> list[str]:
    """What the copy button of each code block of a page gives."""
    if page in TUTORIALS:
        shown = re.findall(r"^```{code-cell} python\n(.*?)^```$", cells.notebook(page.read_text()), re.M | re.S)
        return [re.sub(r"^:tags: .*\n", "", code) for code in shown if "remove-cell" not in code.partition("\n")[0]]
    prompt = re.compile(PROMPT)
    blocks = [cells.session(block) for block in cells.BLOCK.findall(page.read_text())]
    return ["".join(f"{prompt.sub('', x, 1)}\n" for x in block.splitlines() if prompt.match(x)) for block in blocks]


PROMPT = next(line for line in (DOCS / "conf.py").read_text().splitlines() if "prompt_text" in line).split('"')[1]


@pytest.mark.parametrize("page", [page for page in PAGES if page.suffix == ".md"], ids=lambda page: page.stem)
def test_code_blocks_can_be_pasted_into_the_prompt(page: Path) -> None:
    """At the prompt a block ends at an empty line, and nowhere else: as `python -i` compiles, line by line."""
    for block in copied(page):
        typed = ""
        for line in [*block.splitlines(), ""]:
            typed = f"{typed}\n{line}" if typed else line
            if codeop.compile_command(typed) is not None:
                typed = ""
        assert typed == ""


def examples(page: Path) -> list[doctest.Example]:
    """List what pytest runs of a page: all but what needs a network."""
    found = [each for block in cells.BLOCK.findall(page.read_text()) for each in PARSER.get_examples(block)]
    return [each for each in found if doctest.SKIP not in each.options]


PARSER = doctest.DocTestParser()


def python(typed: str, folder: Path, *options: str) -> str:
    """Give Python what somebody typed, see that nothing goes wrong, and return what it shows."""
    start = {**os.environ, "MPLBACKEND": "agg"}
    command = [sys.executable, *options]
    done = subprocess.run(command, input=typed, capture_output=True, text=True, cwd=folder, env=start, check=True)
    assert "Error" not in done.stderr
    return done.stdout


def typed(page: Path) -> str:
    return "".join(cells.pasteable(each.source) for each in examples(page))


def paste(page: Path, folder: Path) -> None:
    """Paste a page into `python -i`, which shows what the page shows."""
    said = python(typed(page), folder, "-q", "-i")
    shown = [each.want.strip() for each in examples(page) if each.want and "..." not in each.want]
    assert shown
    assert [line for line in shown if "\n" not in line and line not in said] == []


def test_the_first_tutorial_works_in_the_prompt(tmp_path: Path) -> None:
    paste(DOCS / "tutorials" / "first-bandit.md", tmp_path)


@pytest.mark.long  # every tutorial is run as doctests already; this is twice more
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_works_in_the_prompt_and_as_a_script(page: Path, tmp_path: Path) -> None:
    for folder in ("prompt", "script"):
        (tmp_path / folder).mkdir()
    paste(page, tmp_path / "prompt")
    python(typed(page), tmp_path / "script", "-")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_code_of_a_tutorial_fits_the_page(page: Path) -> None:
    """At most 88 characters with the prompt, and no comment at the end of a line, where it would be cut."""
    lines = [cells.SKIP.sub("", line) for line in page.read_text().splitlines() if line.startswith((">>> ", "... "))]
    assert [line for line in lines if len(line) > 88 or "  # " in line] == []


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_all_code_of_a_tutorial_is_run(page: Path) -> None:
    """Every Python block is a doctest, and each becomes cells of the site that have all of its lines."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    assert [block for block in blocks if not block.startswith(">>> ")] == []
    shown = cells.notebook(page.read_text())
    typed = [
        cells.SKIP.sub("", line[4:])
        for block in blocks
        for line in block.splitlines()
        if line.startswith((">>> ", "... "))
    ]
    assert [line for line in typed if line not in shown] == []
    assert "\n>>> " not in shown


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_to_download_has_all_of_its_code(page: Path) -> None:
    """As a script and as a notebook; what either prints or catches besides is written around the same lines."""
    text, script = page.read_text(), ast.parse(downloads.script(page.read_text()))
    typed = [cells.SKIP.sub("", line) for block in cells.BLOCK.findall(text) for line in TYPED.findall(block)]
    made = json.loads(downloads.notebook(text))["cells"]
    code = "\n".join(cell["source"] for cell in made if cell["cell_type"] == "code")
    assert [line for line in typed if line not in code and "# in a notebook" not in line] == []
    assert len(script.body) >= len(ast.parse(code).body)


def test_every_public_module_has_a_page_of_the_reference() -> None:
    """Every folder but those inside, which the others show, and the commands, which have their own page."""
    inside = {"inputs", "model_file", "inference", "reference", "record", "cast", "cli"}
    folders = {path.parent.name for path in Path(armlet.__file__).parent.glob("*/__init__.py")} - inside
    assert {name for name, home in armlet._LAZY.items() if home is None} < folders
    assert {name for name in folders if not (API / f"{name}.rst").is_file()} == set()


def test_the_page_of_the_commands_has_what_each_of_them_prints() -> None:
    page = commands.page((DOCS / "reference" / "commands.md").read_text())
    parsers = [*commands.found(make_parser()), *commands.found(make_lab_parser())]
    assert len(parsers) > 15
    for each in parsers:
        assert f"# {each.prog}\n\n```text\nusage: {each.prog} [-h]" in page


def imported(page: Path) -> set[str]:
    """Return the dotted names that the Python blocks of a page import from us."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    parser = doctest.DocTestParser()
    code = ["".join(each.source for each in parser.get_examples(block)) or block for block in blocks]
    lines = [node for each in code for node in ast.walk(ast.parse(each)) if isinstance(node, ast.ImportFrom)]
    return {f"{line.module}.{name.name}" for line in lines for name in line.names if f"{line.module}."[:6] == "armlet"}


def test_what_guides_import_is_in_the_reference() -> None:
    names = set().union(*map(imported, [*TUTORIALS, *(DOCS / "how-to").glob("*.md")]))
    assert "armlet.testing.check_policy" in names
    known = {id(reference.found(name)) for name in reference.documented()}
    modules = {f"armlet.{path.stem}" for path in API.glob("*.rst")}
    assert [name for name in names - modules if id(reference.found(name)) not in known] == []


def test_options_that_pages_show_exist() -> None:
    """Names of commands and options in the text of the docs are those of the parsers."""
    parsers = [*leaves(make_parser()), *leaves(make_lab_parser())]
    known = {each.prog.replace(" STORE", ""): each._option_string_actions.keys() for each in parsers}
    pages = [path for path in DOCS.rglob("*.md") if path.parent.name != "decisions"]
    shown = 0
    for path in [*pages, *(DOCS.parent / name for name in ("README.md", "lab/README.md", "CONTRIBUTING.md"))]:
        text = re.sub(r"armlet store \S+", "armlet store", path.read_text().replace("\\\n", " "))
        for found in re.finditer(r"\b(armlet(?:-lab)?(?: [a-z-]+){1,2})[^\n`|]*", text):
            words = found[1].split()
            prog = next((name for n in (3, 2) if (name := " ".join(words[:n])) in known), None)
            options = set(re.findall(r"(?<=\s)--[a-z-]+", found[0])) if prog else set()
            assert options <= known.get(prog or "", options), f"{path.name}: {found[0]}"
            shown += len(options)
    assert shown > 50


def read(module: str) -> str:
    return (API / f"{module}.rst").read_text()


@pytest.mark.parametrize("module", sorted({path.stem for path in API.glob("*.rst")} - {"armlet", "policies", "lab"}))
def test_a_module_of_the_reference_says_what_is_public(module: str) -> None:
    assert f"automodule:: armlet.{module}\n" in read(module)
    found = importlib.import_module(f"armlet.{module}")
    names = getattr(found, "__all__", ())
    assert [name for name in names if not hasattr(found, name)] == []
    listed = {name for name, value in vars(found).items() if inspect.isclass(value) or inspect.isfunction(value)}
    lines = {line.rpartition(" ")[2] for line in read(module).splitlines()}
    assert [name for name in names if name not in listed and f"armlet.{module}.{name}" not in lines] == []


@pytest.mark.parametrize("name", ["coverage", "evidence", "printed-tables", "units"])
def test_a_conclusion_written_by_hand_is_that_of_the_verdicts(name: str) -> None:
    """The sentence that such a page opens with has no figures, and is true while every claim of the page holds."""
    text = (DOCS / "results" / f"{name}.md").read_text()
    rows = text.partition("<!-- verdicts: begin -->")[2].partition("<!-- verdicts: end -->")[0].strip().splitlines()[2:]
    assert re.search(r"\d", text.split("\n\n")[1]) is None
    assert {row.split(" | ")[3] for row in rows} == {"holds"}


def test_figures_about_others_stand_in_the_results() -> None:
    """Tables under such a mark are lines of the page that it names."""
    page = DOCS / "explanation" / "against-the-others.md"
    parts = re.findall(r"<!-- lines of (\S+) -->\n((?:\|.*\n)+)", page.read_text())
    assert len(parts) == 2
    for source, table in parts:
        written = (page.parent / source).read_text().splitlines()
        assert [line for line in table.splitlines() if line not in written] == []


@pytest.mark.parametrize("name", diagrams.DIAGRAMS)
def test_diagrams_are_what_the_script_draws_and_stand_on_a_page_with_words(name: str) -> None:
    assert (DOCS / "figures" / f"{name}.svg").read_text() == diagrams.DIAGRAMS[name]().svg()
    shown = [re.search(rf"!\[([^]]+)\]\(\S*figures/{name}\.svg\)", page.read_text()) for page in PAGES]
    assert any(found and len(found[1]) > 20 for found in shown)  # the alternative text


def test_the_map_calls_pages_as_the_sidebar_does() -> None:
    """A list item begins with the title of its page, or with the beginning of it."""
    items = re.findall(r"^- \[([^]]+)\]\((\S+)\.md\)", (DOCS / "index.md").read_text(), re.MULTILINE)
    titles = {page: (DOCS / f"{page}.md").read_text().partition("\n")[0].removeprefix("# ") for _, page in items}
    assert len(items) > 50
    assert [title for title, page in items if not titles[page].startswith(title)] == []
