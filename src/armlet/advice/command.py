"""The command `armlet advise`: from what is known of a problem to advice in words, as JSON and as one HTML page."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from armlet.advice import Advice, Prior, advise, words
from armlet.advice.pilot import SourceLike, read_pilot
from armlet.advice.runs import explorations
from armlet.advice.words import exact, interval, number
from armlet.disk import write_atomically
from armlet.environments import ENVIRONMENTS, Environment
from armlet.errors import InvalidValueError
from armlet.inputs.named import parse_named
from armlet.inputs.settings import Objective
from armlet.log.tables import Roles
from armlet.parallel import Progress
from armlet.report import plots
from armlet.report.document import Section, Table, check_pictures, document, figure, section, table
from armlet.report.numbers import RAISED
from armlet.report.plots import (
    COLOURS,
    DASHES,
    INK,
    Picture,
    legend,
    page_picture,
    plain_numbers,
    require_matplotlib,
    short,
)
from armlet.simulation.compare import make_environment
from armlet.types import Estimate, __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LONGEST_UNIT: Final = 20  # next to the axis of a figure on a phone

LAW, TABLE, GUESSED = "--environment", "--log", "--arms, --dim and --effect"
GUESS: Final = ("arms", "dim", "effect", "noise", "mean", "clicks")
LOG: Final = ("features", "arm", "reward", "propensity", "arm_names", "objective")
KINDS: Final = {LAW: ("environment",), TABLE: ("log", *LOG), GUESSED: GUESS}
ABOUT: Final = {
    "environment": f"one of {', '.join(ENVIRONMENTS)}",
    "log": "a table of earlier decisions",
    "features": "its columns that make a context",
    "arm": "the column of what was played",
    "reward": "the column of what it paid",
    "arms": "how many",
    "dim": "values in a context",
    "effect": "what random play loses a decision",
}
"""What the arguments are that cannot be left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the command line asks for."""

    source: SourceLike
    horizon: int
    per_day: int | None
    unit: str
    objective: Objective
    seed: int
    problems: int | None
    runs: int | None
    out: Path | None
    notes: tuple[str, ...] = ()  # on how a log was read


def read_request(options: Mapping[str, Any]) -> Request:
    """Turn what the command line says into a request, or say what is wrong with it."""
    _check_complete(options)
    source, notes = _source(options)
    return Request(
        source=source,
        horizon=options["horizon"] or options["per_day"] * options["days"],
        per_day=options["per_day"],
        unit=_unit(options["unit"]),
        objective=options["objective"] or "max",
        seed=options["seed"],
        problems=options["problems"],
        runs=options["runs"],
        out=None if options["out"] is None else _target(Path(options["out"])),
        notes=notes,
    )


def ask(request: Request, progress: Progress) -> Advice:
    """Simulate, telling how far it is."""
    advice = advise(
        request.source,
        horizon=request.horizon,
        seed=request.seed,
        problems=request.problems,
        runs=request.runs,
        unit=request.unit,
        objective=request.objective,
        progress=progress,
    )
    return dataclasses.replace(advice, notes=(*request.notes, *advice.notes))


def save(request: Request, advice: Advice, path: Path) -> None:
    """Write the page."""
    html = render(advice, per_day=request.per_day, seed=request.seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [html.encode()])


def to_json(advice: Advice, per_day: int | None) -> dict[str, Any]:
    """Return the advice as JSON can hold it; with traffic, also the day on which the best arm is found."""
    if per_day is None:
        return advice.to_json()
    day = None if advice.found_by is None else words.day(advice.found_by, per_day)
    return {**advice.to_json(), "per_day": per_day, "found_by_day": day}


def _check_complete(options: Mapping[str, Any]) -> None:
    """Refuse what does not go together, and name all that is missing at once."""
    horizon, days, kinds = options["horizon"], options["days"], _kinds(options)
    for name in ("horizon", "per_day", "days"):
        if options[name] is not None and options[name] < 1:
            raise InvalidValueError(f"{_option(name)} is {options[name]}; give 1 or more")
    if horizon is not None and days is not None:
        raise InvalidValueError(f"--horizon is {horizon} but --days is {days} too; give one of them")
    if len(kinds) > 1:
        found = " and ".join(_option(next(name for name in KINDS[kind] if options[name])) for kind in kinds)
        raise InvalidValueError(f"{found} do not go together; give one of {'; '.join(KINDS)}")
    missing = _missing_traffic(options)
    missing += _missing_source(options, kinds[0]) if kinds else [f"what is known (one of {'; '.join(KINDS)})"]
    if missing:
        raise InvalidValueError(f"missing: {'; '.join(missing)}")


def _missing_traffic(options: Mapping[str, Any]) -> list[str]:
    if options["horizon"] is None and options["days"] is None:
        return ["--horizon (how many decisions there will be), or --per-day and --days"]
    if options["horizon"] is None and options["per_day"] is None:
        return ["--per-day (decisions a day), or --horizon in place of --days"]
    return []


def _missing_source(options: Mapping[str, Any], kind: str) -> list[str]:
    needed = {LAW: ("environment",), TABLE: ("log", "features", "arm", "reward"), GUESSED: ("arms", "dim", "effect")}[
        kind
    ]
    missing = [f"{_option(name)} ({ABOUT[name]})" for name in needed if options[name] is None]
    if kind == GUESSED and options["clicks"] is None and options["noise"] is None:
        missing.append("--noise (the standard deviation of a reward), or --clicks if rewards are 0 or 1")
    return missing


def _kinds(options: Mapping[str, Any]) -> list[str]:
    """Return the kinds of knowledge that the options are about."""
    return [kind for kind, names in KINDS.items() if any(options[name] for name in names)]


def _source(options: Mapping[str, Any]) -> tuple[SourceLike, tuple[str, ...]]:
    (kind,) = _kinds(options)
    if kind == TABLE:
        return _pilot(options)
    return _law(options["environment"]) if kind == LAW else _prior(options), ()


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _law(text: str) -> Callable[[np.random.Generator], Environment]:
    """Return an environment's law, which draws other arms every time, with some of its settings fixed."""
    name, settings = parse_named(text)
    make_environment(name, settings, seed=0)  # says what is wrong with the name or a setting

    def draw(rng: np.random.Generator) -> Environment:
        return ENVIRONMENTS[name].draw(rng, **settings)

    draw.__qualname__ = f"{name}.draw" + (f" with {text.partition(':')[2]}" if settings else "")
    return draw


def _prior(options: Mapping[str, Any]) -> Prior:
    if options["clicks"] is not None and options["mean"] is not None:
        raise InvalidValueError(
            "--mean and --clicks do not go together: the share of clicks is a mean; give one of them"
        )
    return Prior(
        n_arms=options["arms"],
        dim=options["dim"],
        effect=options["effect"],
        noise=options["noise"],
        rewards="numbers" if options["clicks"] is None else "clicks",
        base_rate=options["mean"] if options["clicks"] is None else options["clicks"],
    )


def _pilot(options: Mapping[str, Any]) -> tuple[SourceLike, tuple[str, ...]]:
    named = {name: options[name] for name in LOG if name != "objective"}
    return read_pilot(options["log"], Roles(**named))


def _unit(word: str) -> str:
    if not 1 <= len(word) <= LONGEST_UNIT:
        raise InvalidValueError(f"--unit is {word!r}; give a word of at most {LONGEST_UNIT} letters, such as clicks")
    return word


def _target(path: Path) -> Path:
    """Refuse a page that could not be written before anything is computed."""
    require_matplotlib()
    if path.is_dir():
        raise IsADirectoryError(f"--out is {path}, a directory; add a file name, such as advice.html")
    return path


def render(advice: Advice, *, per_day: int | None = None, seed: int) -> str:
    """Return the page; the same advice gives the same bytes.

    Parameters
    ----------
    advice
        What `armlet.advise` found.
    per_day
        Decisions a day, to tell times in days.
    seed
        That it was found with.
    """
    drawn = [
        policy_losses(advice),
        regret_by_p(advice),
        bill_over_time(advice, per_day),
    ]
    check_pictures(drawn)
    policies, by_p, bill = map(figure, drawn)
    about_p = _said(words.about_p(advice, per_day))
    parts: list[str | Section] = [
        f"<p>{escape(words.for_a_log(advice))}</p>",
        section("policies", "Policies", [table(words.policies(advice)), policies, _said(words.sentences(advice))]),
        section("choice", "For a log to evaluate from: p", [table(words.choices(advice)), about_p, by_p]),
        section("bill", "The bill of exploring by p", [bill, table(_grid(advice))]),
        *([section("checks", "Does the model fit the log?", [table(words.checks(advice))])] if advice.checks else []),
        section("use", "How to use it", [f'<div class="wide"><pre><code>{escape(_code(advice))}</code></pre></div>']),
        *([section("notes", "Notes", [f"<p>{escape(note)}.</p>" for note in advice.notes])] if advice.notes else []),
    ]
    return document(words.headline(advice), words.basis(advice), parts, _manifest(advice, per_day, seed))


def _said(sentences: Iterable[tuple[str, str]]) -> str:
    rows = [f"<dt>{escape(label)}</dt><dd>{escape(_capital(text))}</dd>" for label, text in sentences]
    return "\n".join(["<dl>", *rows, "</dl>"])


def _capital(text: str) -> str:
    return text if text.startswith("p = ") else text[0].upper() + text[1:]


def _grid(advice: Advice) -> Table:
    scale = advice.row.mean or 1.0
    rows = [
        (
            f"p = {exact(row.p)}",
            f"{number(row.mean / scale)} {interval([end / scale for end in row.interval])}",
            interval([end / scale for end in row.spread]),
            f"{row.runs:,}",
        )
        for row in advice.grid
    ]
    head = ("p", "loss [95 % interval of the mean]", "nine of ten runs", "runs")
    caption = f"Every p that was tried: losses as multiples of the mean of p = {exact(advice.p)}"
    return Table(caption=caption, head=head, rows=tuple(rows))


def _code(advice: Advice) -> str:
    return "\n".join(["import armlet", "", *words.usage(advice)])


def _manifest(advice: Advice, per_day: int | None, seed: int) -> dict[str, object]:
    traffic = {} if per_day is None else {"decisions a day": per_day}
    return {
        "made by": f"armlet {__version__}, armlet advise",
        "from": advice.source,
        "arms": advice.n_arms,
        "values in a context": advice.dim,
        "decisions": advice.horizon,
        **traffic,
        "problems": advice.problems,
        "runs": advice.runs,
        "seed": seed,
    }


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
    return page_picture(figure, key="regret", alt=_alt(advice), caption=_caption(advice))


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
    return page_picture(
        figure,
        key="bill",
        alt=f"What exploration has cost over time: it rises quickly, then ever more slowly, to {ends}",
        caption=f"Paid for exploring: {ends}. Most of it comes early: arms with many rows are tried rarely.",
    )


def policy_losses(advice: Advice) -> Picture:
    """Draw what every policy loses, with the interval of one run."""
    o = advice.policies
    names = [row.code.removeprefix("armlet.") if row.setting else "the default" for row in o.rows]
    bars = [
        Estimate(row.mean, *(row.interval if math.isfinite(row.interval.high) else (row.mean, row.mean)))
        for row in o.rows
    ]
    figure = plots.bars([name.replace("(", "\n(") for name in names], bars, xlabel=f"lost, {advice.unit}")
    told = ", ".join(f"{name} {number(row.mean)}" for name, row in zip(names, o.rows, strict=True))
    return page_picture(
        figure,
        key="policies",
        alt=f"What policies lose: {told}",
        caption=f"Lost by decision {o.horizon:,}, on average; lines hold 95 of 100 single runs.",
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
    return f"{mantissa}·10" + str(int(exponent)).translate(RAISED)


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
