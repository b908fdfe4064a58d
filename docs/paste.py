"""Puts what a command printed into a page, between its marks, so that nobody types it.

    python docs/paste.py docs/reference/paper.md verdicts results/paper/verdicts.md

replaces what stands between `<!-- verdicts: begin -->` and `<!-- verdicts: end -->` in the page.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def paste(page: str, name: str, text: str) -> str:
    r"""Give the page with the text between the marks of that name.

    Examples
    --------
    >>> print(paste("<!-- n: begin -->\nold\n<!-- n: end -->", "n", "new"))
    <!-- n: begin -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- n: end -->
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"the page needs one {begin} and one {end}")
    marked = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    return marked.sub(lambda _: f"{begin}\n\n{text.strip()}\n\n{end}", page)


if __name__ == "__main__":
    target, name, source = sys.argv[1:]
    page = Path(target)
    page.write_text(paste(page.read_text(), name, Path(source).read_text()))
