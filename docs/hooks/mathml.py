"""Formulas as MathML, made when the site is built: readers need no network and no script."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes
from latex2mathml.converter import convert

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

PRIME = "<mi>&#x02032;</mi>"  # as a name browsers slant it, and find no such letter
SPACE = '<mspace width="0.167em" />'
BEFORE = re.compile(r"(?<=</m[in]>)(?=<mi>(?:log|exp)</mi>)|(?<=</mfrac>)(?=<mi>(?:log|exp)</mi>)")
AFTER = re.compile(r"(<mi>(?:log|exp)</mi>)(?=<mi>|<mn>|<msub>|<msup>)")


def written(formula: str, display: str) -> str:
    r"""Write a formula as MathML, with the spaces about `log` and `exp` that the converter leaves out.

    Examples
    --------
    >>> written(r"p \log T", "inline").count("mspace"), written(r"\log(t)", "inline").count("mspace")
    (2, 0)
    >>> "<mo>&#x02032;</mo>" in written("l'", "inline")
    True
    """
    found = convert(formula, display=display).replace(PRIME, PRIME.replace("mi>", "mo>"))
    return AFTER.sub(rf"\1{SPACE}", BEFORE.sub(SPACE, found))


def _inline(page: HTML5Translator, node: nodes.math) -> None:
    page.body.append(written(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(page: HTML5Translator, node: nodes.math_block) -> None:
    page.body.append(f'<div class="math">{written(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the way of writing formulas that `html_math_renderer` names."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
