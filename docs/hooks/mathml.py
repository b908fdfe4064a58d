"""Formulas as MathML, made when the site is built: readers need no network and no script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes

from armlet_lab.runner.formulas import mathml

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator


def _inline(page: HTML5Translator, node: nodes.math) -> None:
    page.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(page: HTML5Translator, node: nodes.math_block) -> None:
    page.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the way of writing formulas that `html_math_renderer` names."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
