"""Docstrings are plain words, code in backticks and examples: in words a bar or a star means itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CODE = re.compile(r"(`[^`]*`)")
MARKS = re.compile(r"[|*]")
BEFORE_NUMPYDOC = 100


def plain(lines: list[str]) -> list[str]:
    r"""Escape what would be markup outside of code and examples.

    Examples
    --------
    >>> print(*plain(["Needs |x| <= 1, see `a | b`.", ">>> 1 | 2", "3 | 4", "", "2 * x"]), sep=" / ")
    Needs \|x\| <= 1, see `a | b`. / >>> 1 | 2 / 3 | 4 /  / 2 \* x
    """
    found, shown = [], False
    for line in lines:
        shown = line.lstrip().startswith(">>>") or (shown and bool(line.strip()))
        parts = CODE.split(line)
        parts[::2] = [MARKS.sub(r"\\\g<0>", part) for part in parts[::2]]
        found.append(line if shown else "".join(parts))
    return found


def _on_docstring(*given: object) -> None:
    lines = given[-1]
    assert isinstance(lines, list)
    lines[:] = plain(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Read docstrings as they are meant."""
    app.connect("autodoc-process-docstring", _on_docstring, priority=BEFORE_NUMPYDOC)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
