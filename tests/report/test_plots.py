"""Figures: what they show is in them as text, they suit any background, and they repeat to the byte."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import pytest

from armlet.report import plots
from armlet.report.plots import Curve, Series
from armlet.types import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = np.geomspace(1, 1e5, 40)
MEAN = 100 * np.log(STEPS)


def regret() -> Figure:
    band = np.array([MEAN, 0.8 * MEAN, 1.2 * MEAN])
    return plots.regret([Curve(f"p = {p}", STEPS, band * p / 100) for p in (24, 120, 600)])


def power_law() -> Figure:
    points = tuple(Estimate(v, 0.8 * v, 1.2 * v) for v in (2400.0, 3800.0, 20500.0))
    fitted = Series("p = 20 I", (5, 10, 100), points, Estimate(0.75, 0.7, 0.8))
    return plots.power_law([fitted, Series("p = 60", (5, 10, 100), points[::-1])], xlabel="I", ylabel="regret at T")


def bars() -> Figure:
    found = [Estimate(1.9, 1.6, 2.2), Estimate(1.02, 0.97, 1.08), None]
    return plots.bars(["p = 24", "p = 600", "p = 6"], found, xlabel="doubling ratio", marks={"log": 1.0, "linear": 2.0})


FIGURES = [regret, power_law, bars]


@pytest.fixture(params=FIGURES, ids=lambda draw: draw.__name__)
def draw(request: pytest.FixtureRequest) -> Callable[[], Figure]:
    function: Callable[[], Figure] = request.param
    return function


def words(svg: str) -> list[str]:
    return [
        "".join(element.itertext()).strip() for element in ElementTree.fromstring(svg).iter() if "text" in element.tag
    ]


def test_equal_numbers_give_equal_bytes(draw: Callable[[], Figure]) -> None:
    assert plots.svg(draw(), key="a", alt="b") == plots.svg(draw(), key="a", alt="b")
    assert plots.png(draw()) == plots.png(draw())
    same = draw()
    assert plots.svg(same, key="a", alt="b") == plots.svg(same, key="a", alt="b")


def test_nothing_is_loaded_and_no_date_is_kept(draw: Callable[[], Figure]) -> None:
    svg = plots.svg(draw(), key="a", alt="b")
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "date" not in svg.lower()
    assert "<style" not in svg
    assert svg.startswith("<svg ")
    assert svg.endswith("</svg>")


def test_names_and_references_carry_the_key(draw: Callable[[], Figure]) -> None:
    svg = plots.svg(draw(), key="fig-a", alt="b")
    names = re.findall(r' id="([^"]*)"', svg)
    references = re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg)
    assert len(names) == len(set(names))
    assert references
    assert {one or other for one, other in references} <= set(names)
    assert all(name.startswith("fig-a-") for name in names)


def test_the_background_is_transparent_and_ink_follows_the_page(draw: Callable[[], Figure]) -> None:
    svg = plots.svg(draw(), key="a", alt="b")
    used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]+|currentColor|none)", svg))
    assert used <= {*plots.COLOURS, "currentColor", "none"}
    assert 'color="#7b7b7b"' in svg[: svg.index(">")]


def test_labels_are_text_that_can_be_read_and_searched() -> None:
    assert {"p = 24", "p = 120", "p = 600", "10⁵", "step t (log scale)"} <= set(
        words(plots.svg(regret(), key="a", alt="b"))
    )
    assert {"p = 20 I: slope 0.75 [0.70 to 0.80]", "p = 60", "5", "10", "100"} <= set(
        words(plots.svg(power_law(), key="a", alt="b"))
    )
    assert {"p = 24", "not defined", "log", "linear", "doubling ratio"} <= set(
        words(plots.svg(bars(), key="a", alt="b"))
    )


def test_letters_keep_their_size_on_a_phone(draw: Callable[[], Figure]) -> None:
    """A phone gives about 360 pixels; the drawing is as many units wide, and no letter is below 11 of them."""
    svg = plots.svg(draw(), key="a", alt="b")
    width = float(ElementTree.fromstring(svg).attrib["viewBox"].split()[2])
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: (?:[a-z]+ )*([0-9.]+)px", svg)]
    assert width == pytest.approx(360)
    assert sizes
    assert min(sizes) >= 11


def luminance(colour: str) -> float:
    """Return the relative luminance, as the web's contrast rules define it."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("background", ["#ffffff", "#15171a"])
@pytest.mark.parametrize("colour", [*plots.COLOURS, plots.NEUTRAL])
def test_colours_stand_out_on_light_and_on_dark(colour: str, background: str) -> None:
    # 3 to 1 is what the rules ask of graphics
    light, dark = sorted((luminance(colour), luminance(background)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


def test_six_curves_differ_without_colour() -> None:
    assert len(set(map(str, plots.DASHES))) == len(set(plots.MARKERS)) == len(plots.COLOURS) == 6


def test_hostile_labels_stay_text() -> None:
    label = '<script>alert("1")</script> $x_1$ & id="x" #1a1b1c'
    svg = plots.svg(plots.bars([label], [Estimate(1.0, 0.5, 2.0)], xlabel="x"), key="a", alt='"><script>')
    assert "<script" not in svg
    assert label in words(svg)
    assert ElementTree.fromstring(svg).attrib["aria-label"] == '"><script>'


def test_a_png_is_opaque_and_wide_enough_for_print() -> None:
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(plots.png(regret())))
    assert pixels.shape[1] == 1100
    assert pixels[0, 0].tolist() == [1, 1, 1, 1]


def test_every_bar_has_a_label() -> None:
    with pytest.raises(ValueError, match="there are 1 labels but 0 estimates"):
        plots.bars(["a"], [], xlabel="x")


def test_log_scales_refuse_what_they_cannot_show() -> None:
    flat = Series("p = 60", (5, 10), (Estimate(0.0, 0.0, 0.0), Estimate(1.0, 0.5, 2.0)))
    with pytest.raises(ValueError, match=r"p = 60 has 0.0 but log scales show positive numbers only"):
        plots.power_law([flat], xlabel="I", ylabel="regret")


def test_a_seventh_curve_differs_from_the_first() -> None:
    band = np.array([MEAN, MEAN, MEAN])
    axes = plots.regret([Curve(str(index), STEPS, band) for index in range(7)]).axes[0]
    looks = {(str(line.get_color()), str(line._dash_pattern)) for line in axes.lines}  # type: ignore[attr-defined]
    assert len(looks) == 7
