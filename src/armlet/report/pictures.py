"""How a figure becomes a picture: SVG with text as text, and PNG; the same figure gives the same bytes.

Backgrounds are transparent and ink takes the colour of the page around it. No dates, no random names.
Needs matplotlib, `armlet[plots]`, imported when something is drawn.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from armlet.errors import require_package

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK: Final = "#1a1b1c"  # text, axes and grid; in an SVG it becomes the colour of the text around
NEUTRAL: Final = "#7b7b7b"  # what that colour is where there is no page around: legible on white and on black
SVG: Final = "{http://www.w3.org/2000/svg}"
XLINK: Final = "{http://www.w3.org/1999/xlink}"

STYLE: Final[Any] = {  # matplotlib's own type for it lists every key it knows
    "svg.hashsalt": "armlet",
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 12,
    "legend.fontsize": 11.5,
    "legend.frameon": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.15,
    "lines.linewidth": 2,
    **{f"{name}.color": INK for name in ("text", "xtick", "ytick", "grid")},
    **{f"axes.{name}color": INK for name in ("edge", "label")},
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure for a page and for a file: an SVG element that names what it shows, a PNG, and a caption."""

    svg: str
    png: bytes
    caption: str


def require_matplotlib() -> None:
    """Say how to get what draws, if it is not there: better before a computation than after it."""
    require_package("matplotlib", "plots need")


def picture(figure: Figure, *, key: str, alt: str, caption: str) -> Picture:
    """Give a figure as SVG and PNG; see `svg` for the key and the alternative text.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> picture(Figure(), key="one", alt="Nothing", caption="Empty.").caption
    'Empty.'
    """
    return Picture(svg(figure, key=key, alt=alt), png(figure), caption)


def svg(figure: Figure, *, key: str, alt: str) -> str:
    """Give a figure as an SVG element that can stand in a file or, with others, in a page.

    Parameters
    ----------
    key
        Put before every name inside, so that the names of two figures on one page differ.
    alt
        What the figure shows, for those who cannot see it.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> figure = Figure()
    >>> _ = figure.text(0, 0, "word", color=INK)
    >>> text = svg(figure, key="one", alt="A bar")
    >>> "currentColor" in text, 'aria-label="A bar"' in text
    (True, True)
    """
    root = ElementTree.fromstring(_save(figure, "svg", transparent=True, metadata=dict.fromkeys(_METADATA)))
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in (f"{SVG}metadata", f"{SVG}style")]:
            parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        element.attrib = {name.removeprefix(XLINK): _own(name, value, key) for name, value in element.items()}
    # what the page says of svg { color } comes before the attribute; in a file of its own there is only this
    about = {"role": "img", "aria-label": alt, "color": NEUTRAL, "stroke-linejoin": "round"}
    root.attrib = {"xmlns": SVG.strip("{}"), **about, **root.attrib}
    return ElementTree.tostring(root, encoding="unicode")


def png(figure: Figure) -> bytes:
    """Give a figure as a PNG, dark on white.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> png(Figure())[1:4]
    b'PNG'
    """
    return _save(figure, "png", dpi=220, facecolor="white", metadata={"Software": None})


_METADATA: Final = ("Date", "Creator", "Format", "Type")


def _save(figure: Figure, kind: str, **options: Any) -> bytes:
    import matplotlib as mpl

    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


def _own(name: str, value: str, key: str) -> str:
    """Prefix names and the references to them, and let ink follow the page."""
    if name == "id":
        return f"{key}-{value}"
    if name.endswith("href"):
        return value.replace("#", f"#{key}-")
    value = value.replace("url(#", f"url(#{key}-")
    return value.replace(INK, "currentColor") if name == "style" else value
