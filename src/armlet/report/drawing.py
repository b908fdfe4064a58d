"""A figure that shows itself in a notebook: matplotlib's own does so only where pyplot was imported.

Imported when something is drawn; needs matplotlib, `armlet[plots]`.
"""

from __future__ import annotations

import io
from typing import Final

from matplotlib.figure import Figure

WIDTH: Final = 9.6  # inches: 960 pixels in a notebook, which has room for about 1,000
DPI: Final = 100


class Drawing(Figure):
    """A matplotlib Figure of this width at most, white behind, with the PNG that a notebook shows."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(min(width, WIDTH), height), dpi=DPI, layout="constrained", facecolor="white")

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=DPI)
        return out.getvalue()
