"""What the sidebar lists and what the search finds, from where it is said already: the map of the docs, and its pages.

A line `<!-- search: cold start, new arms -->` has the field's words for what a page or a section is about: a search
for one of them leads there first. Decision records and the change log speak of everything, and are not searched.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

MAP = "docs/index"
DECISIONS = "docs/decisions/README"
UNSEARCHED = ("docs/decisions/", "CHANGELOG")
WORDS = re.compile(r"^<!-- search: (.*) -->$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)\.(?:md|rst)(?:#[^)\s]*)?\)")
CAPTIONS = {
    "tutorials/": "Tutorials",
    "how-to/": "How-to guides",
    "reference/": "Reference",
    "explanation/": "Explanation",
    "results/": "Results",
    "decisions/": "Decisions",
    "../": "Project",
}


def linked(text: str) -> list[str]:
    """List the pages that a text links to, each once, in their order and without their suffix.

    Examples
    --------
    >>> linked("[a](how-to/a.md), [b](b.md#part), [a](how-to/a.md), [c](reference/c.rst)")
    ['how-to/a', 'b', 'reference/c']
    """
    return list(dict.fromkeys(LINK.findall(text)))


def contents(text: str) -> Iterator[str]:
    """Write a table of contents for every kind of page that the map knows.

    Examples
    --------
    >>> print(*contents("[Digits](tutorials/digits.md), [Why](decisions/README.md)"))
    ```{toctree}
    :hidden:
    :caption: Tutorials
    tutorials/digits
    ```
     ```{toctree}
    :hidden:
    :caption: Decisions
    decisions/README
    ```
    """
    pages = linked(text)
    for folder, caption in CAPTIONS.items():
        if within := [page for page in pages if page.startswith(folder)]:
            yield "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", *within, "```\n"])


def indexed(text: str) -> str:
    r"""Turn the words to search by into entries of the index, each of them a main one.

    Examples
    --------
    >>> print(indexed("# Title\n<!-- search: cold start, new arms -->"))
    # Title
    <BLANKLINE>
    ```{index} ! cold start, ! new arms
    ```
    <BLANKLINE>
    """
    return WORDS.sub(lambda line: f"\n```{{index}} ! {line[1].replace(', ', ', ! ')}\n```\n", text)


def _on_source(_: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = indexed(source[0])
    if docname == MAP:
        source[0] = "\n".join([source[0], *contents(source[0])])
    elif docname == DECISIONS:
        source[0] = "\n".join([source[0], "```{toctree}", ":hidden:", *linked(source[0]), "```\n"])


def _on_tree(app: Sphinx, _: object) -> None:
    if app.env.docname.startswith(UNSEARCHED):
        app.env.metadata[app.env.docname]["nosearch"] = ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Add what the sidebar shows, and what the search knows."""
    app.connect("source-read", _on_source)
    app.connect("doctree-read", _on_tree)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
