"""The answers at the top of a loop's page, and their bands over time.

Each is about the mean gain a decision so far, in the units of rewards, by a confidence sequence: it holds at all looks
at once with 95 %, so that nobody has to promise when to look.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from armlet.service.page import svg, words
from armlet.service.page.layout import Column, Sign, card, html_text, more, sign, table, text
from armlet.stores.gains import RANDOM, Gain, shadow_words

SIGNS: Final[dict[str, Sign]] = {"yes": "yes", "not yet": "open", "no": "no", "nothing to say": "none"}
BIG: Final = {"yes": "Yes", "not yet": "Not yet", "no": "No", "nothing to say": "Nothing to say"}
VALID: Final = f"Valid at 95{words.SPACE}%, however often you look."
ROWS: Final = 8  # of the table of numbers below the chart


def question(gain: Gain) -> str:
    """Return what an answer is about."""
    if gain.against == "shadow":
        who = "the shadow policy" if gain.shadow is None else _shadow(gain)
        return f"Is {who} better than the live one?"
    return f"Is the live policy better than {words.visible(gain.label)}?"


def _shadow(gain: Gain) -> str:
    return words.visible(shadow_words(gain.shadow))


def in_short(gain: Gain) -> str:
    """Return an answer for a list."""
    return f'<span class="brief {SIGNS[gain.answer]}">{sign(SIGNS[gain.answer])}{BIG[gain.answer]}</span>'


def answers(gains: Sequence[Gain], pace: float | None, *, has_arms: bool = True) -> str:
    """Return all answers.

    Parameters
    ----------
    gains
        The comparisons.
    pace
        Decisions a second, to say how long more of them take; None if that is not known.
    has_arms
        Whether there could be a control.
    """
    said = " ".join(f"{question(gain)} {BIG[gain.answer]}." for gain in gains)
    found = "".join(_answer(gain, pace, place) for place, gain in enumerate(gains))
    if has_arms and not any(gain.against == "control" for gain in gains):
        found += _NO_CONTROL
    return f'<div class="answers" id="answers" data-part data-answers="{escape(said)}">{found}</div>\n'


_NO_CONTROL: Final = (
    '<section class="card" aria-labelledby="answer-control"><h2 id="answer-control">Is it better than a control?</h2>'
    f'<p class="answer none">{sign("none")}<span>No control</span></p>'
    + text(
        "A control is an arm, or the policy of before, that plays a fixed share of decisions. It is chosen beforehand: "
        "the arm that looks best afterwards is not a fair rival.",
        "told",
    )
    + "</section>"
)


def _answer(gain: Gain, pace: float | None, place: int) -> str:
    key = f"answer-{gain.against}" if gain.shadow is None else f"answer-{gain.against}-{place}"
    asked = escape(words.shorten(question(gain), 120))
    return (
        f'<section class="card" aria-labelledby="{key}"><h2 id="{key}">{asked}</h2>'
        f'<p class="answer {SIGNS[gain.answer]}">{sign(SIGNS[gain.answer])}<span>{BIG[gain.answer]}</span></p>'
        f"{_gain_text(gain, pace)}{_scale(gain)}</section>"
    )


def _gain_text(gain: Gain, pace: float | None) -> str:
    if gain.interval is None or gain.answer == "nothing to say":
        return text(words.visible(gain.note), "told")
    low, high = gain.interval
    ends = f"<b>{words.gain_between(low, high)}</b>"
    who = "It" if gain.against != "shadow" else f"The{escape(_shadow(gain))[3:]}"
    if gain.answer == "yes":
        line = f"{who} gains {ends} per decision, so far, on average."
    elif gain.answer == "no":
        line = f"{who} loses: the gain is {ends} per decision, so far, on average."
    else:
        line = f"The gain is {ends} per decision, so far, on average, so it may still be none. {_longer(gain, pace)}"
    return html_text(line, "told")


def _longer(gain: Gain, pace: float | None) -> str:
    """Return how long an answer may take."""
    if gain.longer is None:
        return "How much longer this takes cannot be told yet."
    time = f", {words.span(gain.longer / pace)} at the pace so far" if pace else ""
    return f"At the gain seen so far, an answer may take about {words.about(gain.longer)} more decisions{time}."


def _scale(gain: Gain) -> str:
    if gain.interval is None or gain.answer == "nothing to say":
        return ""
    worse, better = ("shadow worse", "shadow better") if gain.against == "shadow" else ("worse", "better")
    bar = svg.gain_bar(*gain.interval, gain.against)
    ends = f'<div class="ends" aria-hidden="true"><span>{worse}</span><span>0</span><span>{better}</span></div>'
    counted = f"{words.count(gain.rows)} decisions, {words.count(gain.compared)} of them {_by(gain)}"
    since = f", since {words.clock(gain.since)}" if gain.since else ""
    note = f" {escape(words.visible(gain.note))}" if gain.note else ""
    return f'<div class="scale">{bar}{ends}<p class="small soft">{counted}{since}. {VALID}{note}</p></div>'


def _by(gain: Gain) -> str:
    return {"uniform": "explored", "control": "by the control", "shadow": "explored as the shadow would"}[gain.against]


# ---- over time


def chart(gains: Sequence[Gain], decisions: int) -> str:
    """Return the bands of all comparisons that have one over time, with the numbers as a table."""
    found = [(gain, _points(gain, decisions)) for gain in gains if gain.interval is not None]
    series = [_band(gain, points) for gain, points in found if points]
    if not series:
        return ""
    alt = "Gain per decision over time, with zero dashed. " + " ".join(f"{band.title}: {band.note}." for band in series)
    rows = [row for gain, points in found for row in _numbers(gain, points)]
    columns = (Column("decisions"), Column("comparison"), Column("gain per decision"))
    return card(
        "bands",
        "Gain per decision, over time",
        [
            text("A band that leaves the dashed line has settled the question, whenever you looked.", "soft small"),
            f"<figure>{svg.bands(series, alt)}</figure>",
            more("bands-table", "The same in numbers", [table(columns, rows)]),
        ],
    )


def _points(gain: Gain, decisions: int) -> list[svg.Point]:
    points = [(float(n), low, high) for n, low, high in gain.history]
    if gain.interval is not None and gain.rows and (not points or points[-1][0] < decisions):
        points.append((float(max(decisions, 1)), *gain.interval))
    return points


def _band(gain: Gain, points: Sequence[svg.Point]) -> svg.Band:
    title, (_, low, high) = _title(gain), points[-1]
    short = (gain.shadow or gain.against) if gain.against != "uniform" else title.split()[1]
    return svg.Band(gain.against, title, short, words.gain_between(low, high), points)


def _title(gain: Gain) -> str:
    if gain.against == "shadow":
        return "shadow over live" if gain.shadow is None else words.visible(f'shadow "{gain.shadow}" over live')
    if gain.against == "control":
        return "over the control"
    return f"over {RANDOM}" if gain.label == RANDOM else "over exploring"


def _numbers(gain: Gain, points: Sequence[svg.Point]) -> list[tuple[str, str, str]]:
    step = max(1, -(-len(points) // ROWS))
    kept = points[::-1][::step][::-1]  # the last one is always there
    return [(words.count(n), escape(_title(gain)), words.gain_between(low, high)) for n, low, high in kept]
