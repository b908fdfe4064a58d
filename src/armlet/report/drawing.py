"""Figures for notebooks: they show themselves, which matplotlib's own do only where pyplot was imported.

Drawn in the style of `plots`, so that a page can take them over in its own ink. Imported when something is drawn; needs
matplotlib, `armlet[plots]`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import matplotlib as mpl
from matplotlib.figure import Figure

from armlet.report.plots import STYLE

WIDTH: Final = 9.6  # inches: 960 pixels in a notebook, which has room for about 1,000
DPI: Final = 100


class Drawing(Figure):
    """A matplotlib Figure with the PNG that a notebook shows, white behind."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        with mpl.rc_context(STYLE):
            self.savefig(out, format="png", dpi=DPI, facecolor="white")
        return out.getvalue()


@contextmanager
def drawing(width: float, height: float) -> Iterator[Drawing]:
    """Return an empty figure, to be drawn in while the style holds; wider than a notebook it never is.

    Examples
    --------
    >>> with drawing(42.0, 2.0) as figure:
    ...     axes = figure.subplots()
    >>> figure.get_size_inches().tolist(), figure._repr_png_()[1:4]
    ([9.6, 2.0], b'PNG')
    """
    with mpl.rc_context(STYLE):
        yield Drawing(figsize=(min(width, WIDTH), height), dpi=DPI, layout="constrained")
