"""The figures of an advice: what policies lose, and for exploring by p, regret against p and the bill over time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from armlet.advice import Advice
from armlet.advice.runs import explorations
from armlet.advice.words import exact, number
from armlet.inference.intervals import Estimate
from armlet.report import plots
from armlet.report.pictures import INK, Picture
from armlet.report.plots import COLOURS, DASHES, legend, plain_numbers, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEAR: Final = 4  # times the largest p tried: up to there the axis stretches for the theorem's p


def regret_by_p(advice: Advice) -> Picture:
    """Draw regret against p on log scales, as multiples of that of the recommended p."""
    unit = advice.row.mean or 1.0
    marks = [mark for mark in _marks(advice) if mark is not None]
    with plots.frame(height=3.6, labels=[*(label for label, *_ in marks), "every p tried", "random play"]) as (
        figure,
        axes,
    ):
        _curve(axes, advice)
        for label, p, mean, marker, size in marks:
            axes.plot(p, mean / unit, marker, color=COLOURS[1], markersize=size, label=label, zorder=3)
        axes.axhline(_random(advice) / unit, color=INK, linestyle=DASHES[2], linewidth=1.5, label="random play")
        axes.set(xscale="log", xlabel="p (log scale)", ylabel=f"regret / that of p = {exact(advice.p)}")
        _scale(axes, advice)
        _mark_theorem(axes, advice)
        plain_numbers(axes.xaxis)
        legend(figure, axes)
    return _picture(figure, key="regret", alt=_alt(advice), caption=_caption(advice))


def bill_over_time(advice: Advice, per_day: int | None) -> Picture:
    """Draw what exploration has cost by each decision, or day."""
    steps = np.unique(np.geomspace(1, advice.horizon, 200).round())
    shape = np.array([explorations(advice.p, advice.n_arms, int(t)) for t in steps])
    lost = advice.bill.lost * shape / shape[-1]
    unit = 1 if per_day is None else per_day
    time = "decisions" if per_day is None else "days"
    with plots.frame(height=3.0, labels=["lost by exploring", "expected regret in all"]) as (figure, axes):
        axes.plot(steps / unit, lost, color=COLOURS[0], label="lost by exploring")
        axes.axhline(advice.row.mean, color=COLOURS[1], linestyle=DASHES[1], label="expected regret in all")
        if advice.found_by is not None:
            _mark_found(axes, advice.found_by / unit, advice.horizon / unit)
        top = 1.15 * max(advice.row.mean, advice.bill.lost) or 1.0
        axes.set(xlabel=time, ylabel=f"lost, {advice.unit}", xlim=(0, advice.horizon / unit), ylim=(0, top))
        axes.xaxis.set_major_locator(_few_ticks())
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: short(value))
        legend(figure, axes)
    ends = f"{number(advice.bill.lost)} {advice.unit} for {advice.bill.explored:,.0f} explored decisions at the end"
    return _picture(
        figure,
        key="bill",
        alt=f"What exploration has cost over time: it rises quickly, then ever more slowly, to {ends}",
        caption=f"Paid for exploring: {ends}. Most of it comes early: arms with many rows are tried rarely.",
    )


def policies(advice: Advice) -> Picture:
    """Draw what every policy loses, with the interval of one run."""
    o = advice.policies
    names = [row.code.removeprefix("armlet.") if row.setting else "the default" for row in o.rows]
    bars = [
        Estimate(row.mean, *(row.interval if math.isfinite(row.interval.high) else (row.mean, row.mean)))
        for row in o.rows
    ]
    figure = plots.bars([name.replace("(", "\n(") for name in names], bars, xlabel=f"lost, {advice.unit}")
    told = ", ".join(f"{name} {number(row.mean)}" for name, row in zip(names, o.rows, strict=True))
    return _picture(
        figure,
        key="policies",
        alt=f"What policies lose: {told}",
        caption=f"Lost by decision {o.horizon:,}, on average; lines hold 95 of 100 single runs.",
    )


def _picture(figure: Figure, *, key: str, alt: str, caption: str) -> Picture:
    return Picture(plots.svg(figure, key=key, alt=alt), b"", caption)  # stands in a page only, so there is no PNG


def _curve(axes: Axes, advice: Advice) -> None:
    unit = advice.row.mean or 1.0
    p, mean = (np.array(values) for values in zip(*((row.p, row.mean / unit) for row in advice.grid), strict=True))
    low, high = (np.array([row.interval[end] / unit for row in advice.grid]) for end in (0, 1))
    ceiling = 10 * max(_random(advice) / unit, float(mean.max()))  # an unknown interval reaches beyond the frame
    axes.fill_between(p, low, np.minimum(high, ceiling), color=COLOURS[0], alpha=0.22, linewidth=0)
    axes.plot(p, mean, color=COLOURS[0], marker=".", label="every p tried")


def _marks(advice: Advice) -> list[tuple[str, float, float, str, int] | None]:
    half, double = advice.half, advice.double
    return [
        (f"p = {exact(advice.p)}, recommended", advice.p, advice.row.mean, "o", 9),
        None if half is None else (f"p = {exact(half.p)}, half", half.p, half.mean, "v", 7),
        None if double is None else (f"p = {exact(double.p)}, twice", double.p, double.mean, "^", 7),
    ]


def _scale(axes: Axes, advice: Advice) -> None:
    """Make the frame hold all means and random play, on a log scale if nothing is 0."""
    unit = advice.row.mean or 1.0
    means = [mean / unit for mean in (_random(advice), *(row.mean for row in advice.grid))]
    if min(means) > 0:
        axes.set(yscale="log", ylim=(0.6 * min(means), 1.8 * max(means)))
        plain_numbers(axes.yaxis)
    else:
        axes.set_ylim(0, 1.1 * max(means) or 1.0)
        axes.yaxis.set_major_formatter(lambda value, _: short(value))


def _random(advice: Advice) -> float:
    """Give what random play loses on all problems of the grid."""
    return advice.bill.lost / advice.bill.share


def _mark_theorem(axes: Axes, advice: Advice) -> None:
    asked, last, random = advice.theorem_p, advice.grid[-1].p, _random(advice) / (advice.row.mean or 1.0)
    if asked is None:
        return
    words = f"Theorem 2: p = {_brief(asked)}"
    # just below random play, where the theorem's p would end and the curve seldom is
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center"}
    if asked <= NEAR * last:
        axes.axvline(asked, color=INK, linestyle=DASHES[3], linewidth=1.3)
        axes.annotate(words, (asked, random), (-4, -14), **style)
        return
    axes.annotate(f"{words} →", (1.0, random), (0, -14), xycoords=("axes fraction", "data"), **style)


def _brief(value: float) -> str:
    if value < 1e7:
        return number(value)
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·10" + str(int(exponent)).translate(plots.RAISED)


def _mark_found(axes: Axes, found: float, end: float) -> None:
    axes.axvline(found, color=INK, linestyle=DASHES[2], linewidth=1.3)
    late = found > 0.6 * end
    style: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    axes.annotate("best arm found", (found, 0.05), (-4 if late else 4, 0), ha="right" if late else "left", **style)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=5)


def _alt(advice: Advice) -> str:
    unit = advice.row.mean or 1.0
    tried = ", ".join(f"{number(row.mean / unit)} at p = {exact(row.p)}" for row in advice.grid)
    random = number(_random(advice) / unit)
    return f"Regret against p: {tried}; p = {exact(advice.p)} is recommended; {random} for random play"


def _caption(advice: Advice) -> str:
    text = (
        f"Mean regret over {advice.horizon:,} decisions for every p, as multiples of that of p = {exact(advice.p)}, "
        "all on the same runs, with 95 % intervals of the mean."
    )
    if advice.theorem_p is not None and advice.theorem_p > advice.horizon:
        text += (
            f" The theorem's p = {number(advice.theorem_p)} lies beyond the horizon, where everything is random play."
        )
    return text
