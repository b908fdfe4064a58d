"""Cells of figures are marked, so that an interval is not broken over lines, and tables that have many columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FIGURES = re.compile(r"[-+~<>=\d.,:;/%()\[\] \u00b1e]|\u00b5s|\b(?:to|none|s|ms|us|ns|kB|MB|GB)\b")
WIDEST = 32  # letters: a longer cell may break, or tables would be wider than need be
LONG = 24
FEW, MANY = 6, 12  # columns


def kind(text: str) -> str:
    """Describe what a cell holds: figures, words that want some width, or neither.

    Examples
    --------
    >>> [kind(text) for text in ("0.031 [0.019 to 0.047]", "34-3 (27-1)", "3.945 %", "8.9e+09", "0.5 \u00b5s")]
    ['figures', 'figures', 'figures', 'figures', 'figures']
    >>> kind("VW RegCB-opt"), kind("an arm here is a label with a model of its own"), kind("")
    ('', 'words', '')
    """
    if any(letter.isdigit() for letter in text) and len(text) <= WIDEST and not FIGURES.sub("", text):
        return "figures"
    return "words" if len(text) > LONG and " " in text else ""


def width(columns: int) -> list[str]:
    """Say how a table of so many columns is set: as others, smaller, or as small as can be read.

    Examples
    --------
    >>> width(3), width(10), width(24)
    ([], ['wide'], ['widest'])
    """
    return [] if columns <= FEW else ["wide"] if columns <= MANY else ["widest"]


def _on_tree(_: Sphinx, tree: Any) -> None:
    for entry in tree.findall(lambda node: node.tagname == "entry"):
        if found := kind(entry.astext()):
            entry["classes"].append(found)
    for group in tree.findall(lambda node: node.tagname == "tgroup"):
        group.parent["classes"] += width(group["cols"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Mark cells when a page has been read."""
    app.connect("doctree-read", _on_tree)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
