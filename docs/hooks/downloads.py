"""Tutorials to take along: every one as a notebook and as a script, from the text that the page is made of.

A script prints what a prompt would show and says which error an example is about, so that it runs to its end.
"""

from __future__ import annotations

import ast
import doctest
import json
import re
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from hooks.cells import BLOCK, KIND, SKIP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[2] / KIND
BEFORE_CELLS = 100
COMMENT = re.compile(r"^<!-- .* -->\n", re.MULTILINE)
RELATIVE = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")
FIGURE = re.compile(r"^\w+  # in a notebook; elsewhere (.*)\n", re.MULTILINE)
CAUGHT = """try:
{}except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}")
"""
LINKS = (
    '<p class="downloads">Download this page: <a href="{0}.ipynb" download>notebook (.ipynb)</a>, '
    '<a href="{0}.py" download>script (.py)</a></p>'
)
ABOUT = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def parts(text: str) -> Iterator[tuple[str, str]]:
    r"""Cut a page into words and blocks of examples; links that lead nowhere outside of the site are words.

    Examples
    --------
    >>> list(parts("# Page\n\nSee [this](../a.md).\n\n```python\n>>> 1 + 1\n2\n\n```\n"))
    [('words', '# Page\n\nSee this.'), ('code', '>>> 1 + 1\n2\n\n')]
    """
    for place, part in enumerate(BLOCK.split(SKIP.sub("", COMMENT.sub("", text)))):
        if part.strip():
            yield ("code", part) if place % 2 else ("words", RELATIVE.sub(r"\1", part).strip())


def printed(example: doctest.Example) -> str:
    r"""Write an example as a script has it: what it shows is printed, what it refuses is caught.

    Examples
    --------
    >>> one, = doctest.DocTestParser().get_examples(">>> x + 1  # more\n2\n")
    >>> printed(one)
    'print(x + 1)  # more\n'
    """
    source, last = example.source, ast.parse(example.source).body[-1]
    if example.exc_msg is not None:
        return CAUGHT.format(indent(source, "    "))
    if drawn := FIGURE.fullmatch(source):
        return f"{drawn[1]}\n"
    if not (example.want and isinstance(last, ast.Expr)) or source.startswith("print("):
        return source
    expression = ast.get_source_segment(source, last)
    return source.replace(str(expression), f"print({expression})", 1)


def script(text: str) -> str:
    r"""Write a page as a script in cells, its words as comments.

    Examples
    --------
    >>> print(script("# Page\n\n```python\n>>> 1 + 1\n2\n\n```\n"))
    # %% [markdown]
    # # Page
    <BLANKLINE>
    # %%
    print(1 + 1)
    <BLANKLINE>
    """
    found = []
    for kind, part in parts(text):
        if kind == "code":
            found.append("# %%\n" + "".join(map(printed, doctest.DocTestParser().get_examples(part))))
        else:
            found.append("# %% [markdown]\n" + indent(part, "# ", lambda _: True) + "\n")
    return "\n".join(found)


def notebook(text: str) -> str:
    r"""Write a page as a notebook that has not been run; Jupyter itself draws a figure that a cell has made.

    Examples
    --------
    >>> made = json.loads(notebook("# Page\n\n```python\n>>> 1 + 1\n2\n\n```\n"))
    >>> [(cell["cell_type"], cell["source"]) for cell in made["cells"]]
    [('markdown', '# Page'), ('code', '1 + 1')]
    """
    found: list[dict[str, Any]] = []
    for kind, part in parts(text):
        if kind == "words":
            found.append({"cell_type": "markdown", "metadata": {}, "source": part})
        else:
            found += map(_cell, _cut(doctest.DocTestParser().get_examples(part)))
    made = {"cells": found, "metadata": ABOUT, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _cut(examples: list[doctest.Example]) -> Iterator[list[doctest.Example]]:
    """End a cell at every example that shows something: a notebook shows the last line of a cell alone."""
    cell: list[doctest.Example] = []
    for example in examples:
        cell.append(example)
        if example.want:
            yield cell
            cell = []
    if cell:
        yield cell


def _cell(examples: list[doctest.Example]) -> dict[str, Any]:
    source = "".join(example.source for example in examples)
    if "plt.subplots" in source:
        source = FIGURE.sub("", source)
    tags = {"tags": ["raises-exception"]} if examples[-1].exc_msg is not None else {}
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": tags,
        "outputs": [],
        "source": source.strip(),
    }


def _on_source(_: Sphinx, docname: str, source: list[str]) -> None:
    if docname.startswith(KIND):
        title, rest = source[0].split("\n", 1)
        source[0] = f"{title}\n\n{LINKS.format(Path(docname).name)}\n\n{rest}"


def _on_end(app: Sphinx, failed: Exception | None) -> None:
    if failed is None and app.builder.format == "html":
        for page in sorted(FOLDER.glob("*.md")):
            place = Path(app.outdir) / KIND / page.stem
            place.with_suffix(".ipynb").write_text(notebook(page.read_text()))
            place.with_suffix(".py").write_text(script(page.read_text()))


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer every tutorial for download."""
    app.connect("source-read", _on_source, priority=BEFORE_CELLS)
    app.connect("build-finished", _on_end)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
