"""What the site lists, from where it is listed already: pages in the map of the docs, policies in their registry."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import armlet
from armlet.policies import POLICIES as REGISTRY
from armlet_lab.literature import POLICIES as LITERATURE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

MAP = "docs/index"
DECISIONS = "docs/decisions/README"
ARMLET, POLICIES = "docs/reference/api/armlet", "docs/reference/api/policies"
API = Path(__file__).parents[1] / "reference" / "api"
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


def unlisted(page: str) -> list[str]:
    """List what `armlet` offers and neither a page of the reference nor the module of another one has.

    Examples
    --------
    >>> found = unlisted(".. autoclass:: armlet.Bandit")
    >>> "load" in found, "Bandit" in found, "LinUCB" in found, "Log" in found, "log" in found
    (True, False, False, False, False)
    """
    stems = {path.stem for path in API.glob("*.rst")} - {"armlet", "lab"}
    modules = [import_module(f"armlet.{stem}") for stem in stems]
    pages = "\n".join([page, *((API / f"{stem}.rst").read_text() for stem in stems)])
    listed = {*stems, *re.findall(r":: armlet\.(\w+)$", pages, re.MULTILINE), "__version__"}
    names = [name for name in vars(armlet)["__all__"] if name not in listed]
    return [name for name in names if all(getattr(each, name, None) is not getattr(armlet, name) for each in modules)]


def _on_source(_: Sphinx, docname: str, source: list[str]) -> None:
    if docname == MAP:
        source[0] = "\n".join([source[0], *contents(source[0])])
    elif docname == DECISIONS:
        source[0] = "\n".join([source[0], "```{toctree}", ":hidden:", *linked(source[0]), "```\n"])
    elif docname == ARMLET and (names := unlisted(source[0])):
        kinds = {name: "class" if isinstance(getattr(armlet, name), type) else "function" for name in names}
        entries = (f".. auto{kind}:: armlet.{name}" for name, kind in kinds.items())
        source[0] = "\n".join([source[0], "", "More", "----", "", *entries])
    elif docname == POLICIES:
        of_both = [f"armlet.policies.{name}" for name in REGISTRY] + [f"armlet_lab.literature.{n}" for n in LITERATURE]
        source[0] = "\n".join([source[0], *(f".. autoclass:: {name}" for name in of_both)])


def setup(app: Sphinx) -> dict[str, bool]:
    """Add what the sidebar shows."""
    app.connect("source-read", _on_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
