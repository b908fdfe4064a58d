"""Tutorials are doctests on disk and notebooks on the site: one text, run by pytest and again by the build.

A block of `>>>` lines becomes code cells without prompts. What the page shows below a cell, the build has computed;
pytest compares the same with what is written in the text. Examples on data that has to be fetched are marked `+SKIP`:
pytest needs no network. The build runs them too, and then compares all of the page with its text.

What is copied from a page can be pasted into Python's prompt, where only an empty line ends an indented block.
"""

from __future__ import annotations

import ast
import doctest
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

KIND = "docs/tutorials/"
BLOCK = re.compile(r"^```python\n(>>> .*?)^```$", re.MULTILINE | re.DOTALL)
END = re.compile(r"\n\n```\n")  # a doctest needs the empty line that ends its block, a reader does not
SKIP = re.compile(r" *# doctest: \+SKIP")
HEAD = """---
file_format: mystnb
kernelspec:
  name: python3
---
"""
# A figure is drawn where a cell ends with it, and nowhere else; grey lines are seen on light and on dark pages.
START = """
import matplotlib
from IPython import get_ipython
from matplotlib_inline.backend_inline import flush_figures, set_matplotlib_formats

get_ipython().run_line_magic("matplotlib", "inline")
get_ipython().run_line_magic("xmode", "Minimal")
get_ipython().events.unregister("post_execute", flush_figures)
set_matplotlib_formats("svg")
inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
papers = ("figure.facecolor", "axes.facecolor", "legend.facecolor")
matplotlib.rcParams |= dict.fromkeys(inks, "#808080") | dict.fromkeys(papers, "none") | {"svg.fonttype": "none"}
from armlet.report import plots

plots.INK = "#808080"
plots.STYLE.update(dict.fromkeys(inks, plots.INK))
"""
# A page that pytest skips in part, run as a doctest of which nothing is skipped.
COMPARISON = """
import doctest

page = doctest.DocTestParser().get_doctest({text!r}, {{"__name__": "__main__"}}, "page", None, 0)
runner, said = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), []
if runner.run(page, out=said.append).failed:
    raise AssertionError("".join(said))
"""


def cell(code: str, *tags: str) -> str:
    """Write one code cell.

    Examples
    --------
    >>> print(cell("1 + 1"))
    ```{code-cell} python
    1 + 1
    ```
    """
    head = f":tags: [{', '.join(tags)}]\n" if tags else ""
    return f"```{{code-cell}} python\n{head}{code.strip()}\n```"


def cells(block: str) -> Iterator[str]:
    r"""Cut the examples of a block after each that shows something; those after the last of them show nothing.

    Examples
    --------
    >>> [each.splitlines()[1:-1] for each in cells(">>> x = 1\n>>> x + 1\n2\n>>> y = x\n")]
    [['x = 1', 'x + 1'], [':tags: [remove-output]', 'y = x']]
    """
    code = ""
    for example in doctest.DocTestParser().get_examples(block):
        code += pasteable(example.source)
        if example.exc_msg is not None:
            yield cell(code, "raises-exception")
            code = ""
        elif example.want:
            yield cell(code)
            code = ""
    if code:
        yield cell(code, "remove-output")


def is_block(source: str) -> bool:
    r"""Return whether a statement ends with an indented block, which a prompt ends at an empty line.

    Examples
    --------
    >>> is_block("for x in y:\n    f(x)\n"), is_block("f(x,\n  y)\n")
    (True, False)
    """
    return hasattr(ast.parse(source).body[-1], "body")


def pasteable(source: str) -> str:
    r"""Write one statement as Python's prompt wants it: no empty line within an indented block, and one after it.

    Examples
    --------
    >>> pasteable("class A:\n    x = 1\n\n    y = 2\n")
    'class A:\n    x = 1\n    y = 2\n\n'
    """
    if not is_block(source):
        return source
    return "".join(f"{line}\n" for line in source.splitlines() if line.strip()) + "\n"


def session(block: str) -> str:
    r"""End the indented blocks of a session as the prompt does.

    Examples
    --------
    >>> session(">>> for x in (1, 2):\n...     y = x\n>>> y\n2\n").splitlines()
    ['>>> for x in (1, 2):', '...     y = x', '...', '>>> y', '2']
    """
    lines = block.splitlines()
    for example in reversed(doctest.DocTestParser().get_examples(block)):
        if is_block(example.source):
            lines.insert(example.lineno + len(example.source.splitlines()), "...")
    return "".join(f"{line}\n" for line in lines)


def notebook(text: str) -> str:
    r"""Turn a page of doctests into one of code cells.

    Examples
    --------
    >>> page = notebook("# Page\n\n```python\n>>> 1 + 1\n2\n\n```\n")
    >>> page.startswith("---\nfile_format: mystnb"), page.endswith("python\n1 + 1\n```\n")
    (True, True)
    """
    title, rest = SKIP.sub("", text).split("\n", 1)
    found = BLOCK.sub(lambda block: "\n\n".join(cells(block[1])), rest)
    if SKIP.search(text):
        found = f"{found}\n{cell(COMPARISON.format(text=SKIP.sub('', text)), 'remove-cell')}\n"
    return f"{HEAD}\n{title}\n\n{cell(START, 'remove-cell')}\n{found}"


def _on_source(_: Sphinx, docname: str, source: list[str]) -> None:
    if docname.startswith(KIND):
        source[0] = notebook(source[0])
    else:
        text = BLOCK.sub(lambda block: f"```python\n{session(block[1])}```", SKIP.sub("", source[0]))
        source[0] = END.sub("\n```\n", text)


def _on_start(app: Sphinx) -> None:
    """Keep the kernels quiet: that they talk to the build over TCP is no news."""
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    profile = Path(app.outdir).parent / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text("get_config().IPKernelApp.log_level = 40\n")
    os.environ["IPYTHONDIR"] = str(profile.parent)


def setup(app: Sphinx) -> dict[str, bool]:
    """Have every tutorial run when it is read."""
    app.connect("builder-inited", _on_start)
    app.connect("source-read", _on_source)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
