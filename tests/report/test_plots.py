"""Figures: what they show is in them as text, they suit any background, and they repeat to the byte."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
import pytest

from armlet.report import plots
from armlet.report.plots import Curve, Series
from armlet.types import Estimate, Float64

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
    assert used <= {*plots.COLOURS, plots.GREY, "currentColor", "none"}
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
    return float(channels(colour) @ [0.2126, 0.7152, 0.0722])


def channels(colour: str) -> Float64:
    """Return red, green and blue in linear light."""
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("background", ["#ffffff", "#15171a"])
@pytest.mark.parametrize("colour", [*plots.COLOURS, plots.NEUTRAL])
def test_colours_stand_out_on_light_and_on_dark(colour: str, background: str) -> None:
    # 3 to 1 is what the rules ask of graphics
    light, dark = sorted((luminance(colour), luminance(background)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 3


def test_eight_curves_differ_without_colour() -> None:
    assert len(set(map(str, plots.DASHES))) == len(set(plots.MARKERS)) == len(plots.COLOURS) == 8


# what eyes without one kind of cones see, in linear light (Machado, Oliveira and Fernandes 2009, severity 1)
MISSING = {
    "none": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    "red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def cielab(linear: Float64) -> Float64:
    scaled = np.clip(linear, 0, 1) @ XYZ.T / [0.95047, 1, 1.08883]
    f = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


@pytest.mark.parametrize("missing", list(MISSING))
def test_colours_differ_for_eyes_that_miss_one(missing: str) -> None:
    """Steps of 2.3 in CIELAB are just seen; without blue-sensitive cones 16 is what can be had, else 23."""
    linear = np.array([channels(colour) for colour in (*plots.COLOURS, plots.GREY)])
    seen = cielab(linear @ np.array(MISSING[missing]).T)
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=2)[np.triu_indices(len(seen), 1)]
    assert apart.min() > (16 if missing == "blue" else 23)


def curve(label: str, slope: float) -> Curve:
    return Curve(label, STEPS, np.array([slope * np.log(STEPS)] * 3))


def test_names_at_the_ends_of_lines_do_not_touch() -> None:
    from matplotlib.text import Text  # not of an annotation, whose extent has the line to it too

    figure = plots.regret([curve(f"policy {i}", 3 + 0.01 * i) for i in range(8)])
    axes = figure.axes[0]
    boxes = sorted((Text.get_window_extent(text) for text in axes.texts), key=lambda box: box.y0)
    assert len(boxes) == 8
    assert all(one.y1 <= other.y0 + 2 for one, other in itertools.pairwise(boxes))
    assert all(box.x0 > axes.get_window_extent().x1 and box.x1 <= figure.bbox.x1 for box in boxes)


def test_a_line_that_leaves_the_frame_says_so() -> None:
    figure = plots.regret([curve("flat", 1.0), curve("Uniform", 100.0)], top=10.0, grey=["Uniform"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["flat ↑", "Uniform ↑"]
    assert plots.GREY in plots.svg(figure, key="a", alt="b")


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
