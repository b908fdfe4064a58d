"""The page of an advice: which policy and what it earns, a picture over time, a paragraph, the rest folded."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from armlet.advice import words
from armlet.advice.runs import explorations
from armlet.advice.words import exact
from armlet.report import plots
from armlet.report.document import Section, Table, check_pictures, document, figure, folded_section, table
from armlet.report.numbers import column, show
from armlet.report.plots import COLOURS, DASHES, GREY, INK, Picture, legend, page_picture, plain_numbers, short
from armlet.types import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from armlet.advice.ask import Advice
    from armlet.advice.comparison import Line


def render(advice: Advice) -> str:
    """Return the page; the same advice gives the same bytes."""
    drawn = [gains_picture(advice), regret_by_p(advice), bill_over_time(advice)]
    check_pictures(drawn)
    gains, by_p, bill = map(figure, drawn)
    parts: list[str | Section] = [
        gains,
        f"<p>{escape(_capital(words.your_run(advice)))}</p>",
        folded_section("use", "How to use it", [f"<pre><code>{escape(_code(advice))}</code></pre>"]),
        folded_section("choices", "All choices", [table(words.policies(advice)), _said(words.compared(advice))]),
        folded_section(
            "p", "For a log to evaluate from: p", [table(words.choices(advice)), _said(words.about_p(advice)), by_p]
        ),
        folded_section("bill", "What exploring by p costs", [bill, table(_grid(advice))]),
    ]
    if advice.checks:
        parts.append(folded_section("checks", "Does the model fit the log?", [table(words.checks(advice))]))
    if advice.notes:
        parts.append(folded_section("notes", "Notes", [f"<p>{escape(_capital(note))}.</p>" for note in advice.notes]))
    return document(words.title(advice), words.answer(advice), parts, _made(advice))


def _said(sentences: Iterable[tuple[str, str]]) -> str:
    rows = [f"<dt>{escape(label)}</dt><dd>{escape(_capital(text))}</dd>" for label, text in sentences]
    return "\n".join(["<dl>", *rows, "</dl>"])


def _capital(text: str) -> str:
    return text if text.startswith("p = ") else text[0].upper() + text[1:]


def _grid(advice: Advice) -> Table:
    scale = advice.row.mean or 1.0
    means = column([Estimate(row.mean / scale, *(end / scale for end in row.interval)) for row in advice.grid])
    spreads = column([Estimate(row.mean / scale, *(end / scale for end in row.spread)) for row in advice.grid])
    rows = [
        (f"p = {exact(row.p)}", mean, f"[{spread.partition(' [')[2]}", f"{row.runs:,}")
        for row, mean, spread in zip(advice.grid, means, spreads, strict=True)
    ]
    head = ("p", "loss [95 % interval of the mean]", "nine of ten runs", "runs")
    caption = f"Every p that was tried: losses as multiples of the mean of p = {exact(advice.p)}"
    return Table(caption=caption, head=head, rows=tuple(rows))


def _code(advice: Advice) -> str:
    return "\n".join(["import armlet", "", *words.usage(advice)])


def _made(advice: Advice) -> dict[str, object]:
    optional = {
        "decisions a day": advice.per_day,
        "current arm": None if advice.current is None else str(advice.current),
        "value": None if advice.money is None else words.price(advice.money),
    }
    return {
        "command": advice.command,
        "arms": advice.n_arms,
        "values in a context": advice.dim,
        "decisions": f"{advice.horizon:,}",
        **{name: value for name, value in optional.items() if value is not None},
        "simulated": words.basis(advice),
        "seed": advice.seed,
    }


def gains_picture(advice: Advice) -> Picture:
    """Return what is earned beyond doing nothing over time, as it stands on the page."""
    o, best = advice.policies, advice.policies.recommended
    ends = [show(each.mean[-1]) for each in (o.over_time.policy, o.over_time.ab_test)]
    totals = f"{ends[0]} {advice.unit} by {words.policy(advice)}, {ends[1]} by an A/B test"
    what = "earned" if advice.objective == "max" else "saved"
    return page_picture(
        over_time(advice),
        key="gains",
        alt=f"What is {what} beyond doing nothing over time: at the end {totals}, {show(best.lost)} less than possible",
        caption=(
            f"{what.capitalize()} beyond doing nothing, on average, by decision {o.horizon:,}: {totals}. Bands hold 95 "
            f"of 100 single runs. The A/B test ends its test at {o.ab_test.plan.decisions:,}."
        ),
    )


def over_time(advice: Advice) -> Figure:
    """Draw what is earned beyond doing nothing over time."""
    from armlet.report.drawing import drawing  # matplotlib is heavy

    o, unit = advice.policies.over_time, advice.per_day or 1
    steps = np.array([0, *o.steps]) / unit
    height = 3.4
    what = "more\nthan" if advice.objective == "max" else "saved\nagainst"
    lines = [(_line_name(advice), o.policy, COLOURS[0], DASHES[0]), ("A/B test", o.ab_test, COLOURS[1], DASHES[1])]
    with drawing(5.0, height) as figure:
        axes = figure.subplots()
        for _, line, colour, dash in lines:
            _draw(axes, steps, line, colour, dash)
        axes.plot(steps, [0.0, *o.most], color=INK, linestyle=DASHES[2], linewidth=1.3)
        axes.axhline(0.0, color=GREY, linewidth=1.6)
        axes.set(xlim=(0, steps[-1]), xlabel="decisions" if unit == 1 else "days")
        axes.set_ylabel(f"{advice.unit} {what} doing nothing")
        axes.xaxis.set_major_locator(_few_ticks(3))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: short(value))
        ends = [
            *((name, line.mean[-1]) for name, line, _, _ in lines),
            ("best possible", o.most[-1]),
            ("doing nothing", 0.0),
        ]
        styles = [*({"color": colour, "linestyle": dash} for *_, colour, dash in lines)]
        styles += [{"color": INK, "linestyle": DASHES[2]}, {"color": GREY, "linestyle": "-"}]
        plots.name_ends(axes, ends, styles, height)
    return figure


def _line_name(advice: Advice) -> str:
    o = advice.policies
    return "the default" if o.recommended is o.default else o.recommended.name


def _draw(axes: Axes, steps: Any, line: Line, colour: str, dash: Any) -> None:
    axes.fill_between(steps, [0.0, *line.low], [0.0, *line.high], color=colour, alpha=0.2, linewidth=0)
    axes.plot(steps, [0.0, *line.mean], color=colour, linestyle=dash)


NEAR: Final = 4  # times the largest p tried: up to there the axis stretches for the theorem's p


def regret_by_p(advice: Advice) -> Picture:
    """Draw what is lost against p on log scales, as multiples of that of the recommended p."""
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
        axes.set(xscale="log", xlabel="p (log scale)", ylabel=f"loss / that of p = {exact(advice.p)}")
        _scale(axes, advice)
        _mark_theorem(axes, advice)
        plain_numbers(axes.xaxis)
        legend(figure, axes)
    return page_picture(figure, key="regret", alt=_alt(advice), caption=_caption(advice))


def bill_over_time(advice: Advice) -> Picture:
    """Draw what exploration has cost by each decision, or day."""
    steps = np.unique(np.geomspace(1, advice.horizon, 200).round())
    shape = np.array([explorations(advice.p, advice.n_arms, int(t)) for t in steps])
    lost = advice.bill.lost * shape / shape[-1]
    unit = advice.per_day or 1
    with plots.frame(height=3.0, labels=["lost by exploring", "expected loss in all"]) as (figure, axes):
        axes.plot(steps / unit, lost, color=COLOURS[0], label="lost by exploring")
        axes.axhline(advice.row.mean, color=COLOURS[1], linestyle=DASHES[1], label="expected loss in all")
        if advice.found_by is not None:
            _mark_found(axes, advice.found_by / unit, advice.horizon / unit)
        top = 1.15 * max(advice.row.mean, advice.bill.lost) or 1.0
        axes.set(
            xlabel="decisions" if unit == 1 else "days",
            ylabel=f"lost, {advice.unit}",
            xlim=(0, advice.horizon / unit),
            ylim=(0, top),
        )
        axes.xaxis.set_major_locator(_few_ticks())
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: short(value))
        legend(figure, axes)
    ends = f"{show(advice.bill.lost)} {advice.unit} for {advice.bill.explored:,.0f} explored decisions at the end"
    return page_picture(
        figure,
        key="bill",
        alt=f"What exploration has cost over time: it rises quickly, then ever more slowly, to {ends}",
        caption=f"Paid for exploring: {ends}. Most of it comes early: arms with many rows are tried rarely.",
    )


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
    """Return what random play loses on all problems of the grid."""
    return advice.bill.lost / advice.bill.share


def _mark_theorem(axes: Axes, advice: Advice) -> None:
    p, last, random = advice.theorem_p, advice.grid[-1].p, _random(advice) / (advice.row.mean or 1.0)
    if p is None:
        return
    words = f"Theorem 2: p = {show(p)}"
    # just below random play, where the theorem's p would end and the curve seldom is
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "center"}
    if p <= NEAR * last:
        axes.axvline(p, color=INK, linestyle=DASHES[3], linewidth=1.3)
        axes.annotate(words, (p, random), (-4, -14), **style)
        return
    axes.annotate(f"{words} →", (1.0, random), (0, -14), xycoords=("axes fraction", "data"), **style)


def _mark_found(axes: Axes, decision: float, end: float) -> None:
    axes.axvline(decision, color=INK, linestyle=DASHES[2], linewidth=1.3)
    late = decision > 0.6 * end
    style: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    axes.annotate("best arm found", (decision, 0.05), (-4 if late else 4, 0), ha="right" if late else "left", **style)


def _few_ticks(most: int = 5) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=most)


def _alt(advice: Advice) -> str:
    unit = advice.row.mean or 1.0
    tried = ", ".join(f"{show(row.mean / unit)} at p = {exact(row.p)}" for row in advice.grid)
    random = show(_random(advice) / unit)
    return f"Loss against p: {tried}; p = {exact(advice.p)} is recommended; {random} for random play"


def _caption(advice: Advice) -> str:
    text = (
        f"Mean loss over {advice.horizon:,} decisions for every p, as multiples of that of p = {exact(advice.p)}, "
        "all on the same runs, with 95 % intervals of the mean."
    )
    if advice.theorem_p is not None and advice.theorem_p > advice.horizon:
        text += f" The theorem's p = {show(advice.theorem_p)} lies beyond the horizon, where everything is random play."
    return text
