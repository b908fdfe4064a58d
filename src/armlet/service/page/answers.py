"""Answers on a loop's page: whether it is better, what exploring costs, which rewards are missing, its health.

Gains are the mean gain a decision so far, in the units of rewards, by a confidence sequence: it holds at all looks
at once with 95 %, so a reader may look at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from armlet.service.page import svg, words
from armlet.service.page.html import Column, Sign, View, absent, card, html_text, more, sign, table, text
from armlet.stores.gains import RANDOM, Gain, shadow_words

if TYPE_CHECKING:
    from armlet.stores.health import Alarm, Rule
    from armlet.stores.overview import Details, Exploring, Missing

DAY: Final = 86_400.0  # seconds
SIGNS: Final[dict[str, Sign]] = {"yes": "yes", "not yet": "open", "no": "no", "nothing to say": "none"}
BIG: Final = {"yes": "Yes", "not yet": "Not yet", "no": "No", "nothing to say": "Nothing to say"}
VALID: Final = f"Valid at 95{words.SPACE}%, however often you look."
ROWS: Final = 8  # of the table of numbers below the chart
NO_DECISION: Final = "No decision has been made yet."


# ---- is it better?


def question(gain: Gain) -> str:
    """Return what an answer is about."""
    if gain.against == "shadow":
        policy = "the shadow policy" if gain.shadow is None else _shadow(gain)
        return f"Is {policy} better than the live one?"
    return f"Is the live policy better than {words.visible(gain.label)}?"


def _shadow(gain: Gain) -> str:
    return words.visible(shadow_words(gain.shadow))


def in_short(gain: Gain) -> str:
    """Return an answer for a list."""
    return f'<span class="brief {SIGNS[gain.answer]}">{sign(SIGNS[gain.answer])}{BIG[gain.answer]}</span>'


def answers(view: View) -> str:
    """Return whether the live policy is better than each rival, and a control that is missing."""
    gains = view.loop.gains
    summary = " ".join(f"{question(gain)} {BIG[gain.answer]}." for gain in gains)
    html = "".join(_answer(gain, view.loop.pace, place) for place, gain in enumerate(gains))
    if view.loop.action_dim is None and not any(gain.against == "control" for gain in gains):
        html += _NO_CONTROL
    return f'<div class="answers" id="answers" data-part data-answers="{escape(summary)}">{html}</div>\n'


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
    heading = escape(words.shorten(question(gain), 120))
    return (
        f'<section class="card" aria-labelledby="{key}"><h2 id="{key}">{heading}</h2>'
        f'<p class="answer {SIGNS[gain.answer]}">{sign(SIGNS[gain.answer])}<span>{BIG[gain.answer]}</span></p>'
        f"{_gain_text(gain, pace)}{_scale(gain)}</section>"
    )


def _gain_text(gain: Gain, pace: float | None) -> str:
    if gain.interval is None or gain.answer == "nothing to say":
        return text(words.visible(gain.note), "told")
    ends = f"<b>{words.gain_between(*gain.interval)}</b>"
    policy = "It" if gain.against != "shadow" else f"The{escape(_shadow(gain))[3:]}"
    if gain.answer == "yes":
        line = f"{policy} gains {ends} per decision, so far, on average."
    elif gain.answer == "no":
        line = f"{policy} loses: the gain is {ends} per decision, so far, on average."
    else:
        line = f"The gain is {ends} per decision, so far, on average, so it may still be none. {_longer(gain, pace)}"
    return html_text(line, "told")


def _longer(gain: Gain, pace: float | None) -> str:
    """Return how long an answer may take; `pace` is decisions a day."""
    if gain.longer is None:
        return "How much longer this takes cannot be told yet."
    time = f", {words.span(gain.longer / (pace / DAY))} at the pace so far" if pace else ""
    return f"At the gain seen so far, an answer may take about {words.about(gain.longer)} more decisions{time}."


def _scale(gain: Gain) -> str:
    if gain.interval is None or gain.answer == "nothing to say":
        return ""
    worse, better = ("shadow worse", "shadow better") if gain.against == "shadow" else ("worse", "better")
    bar = svg.gain_bar(*gain.interval, gain.against)
    ends = f'<div class="ends" aria-hidden="true"><span>{worse}</span><span>0</span><span>{better}</span></div>'
    counted = f"{words.count(gain.rows)} decisions, {words.count(gain.compared)} of them {_BY[gain.against]}"
    since = f", since {words.clock(gain.since)}" if gain.since else ""
    note = f" {escape(words.visible(gain.note))}" if gain.note else ""
    return f'<div class="scale">{bar}{ends}<p class="small soft">{counted}{since}. {VALID}{note}</p></div>'


_BY: Final = {"uniform": "explored", "control": "by the control", "shadow": "explored as the shadow would"}


def chart(view: View) -> str:
    """Return the bands of all comparisons that have one over time, with the numbers as a table."""
    bands = [(gain, _points(gain, view.loop.decisions)) for gain in view.loop.gains if gain.interval is not None]
    series = [_band(gain, points) for gain, points in bands if points]
    if not series:
        return ""
    alt = "Gain per decision over time, with zero dashed. " + " ".join(f"{band.title}: {band.note}." for band in series)
    rows = [row for gain, points in bands for row in _numbers(gain, points)]
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
    shown = points[::-1][::step][::-1]  # the last one is always there
    return [(words.count(n), escape(_title(gain)), words.gain_between(low, high)) for n, low, high in shown]


# ---- how much does it explore?

_CATALOGUE: Final = (
    "No decision is made at random among all actions. A private coin picks those that play the highest bound, or a "
    "draw, rather than the highest estimate; the log has the probability of every action that could be played."
)


def exploring(view: View) -> str:
    """Return how much the loop explores, as counted, and what that costs; of actions, agreement with a baseline."""
    loop = view.loop
    heading, parts = ("Exploring", _explored(loop)) if loop.action_dim is None else _agreement(loop)
    return card("exploring", heading, parts, width="half")


def _explored(loop: Details) -> list[str]:
    explored = loop.exploring
    if not loop.decisions:
        return [text("0", "figure"), text(NO_DECISION)]
    if explored.expected is None:
        sentence = "This policy does not explore with a probability that is known, so there is no share to count."
        return [text("Unknown", "figure"), text(sentence)]
    share = f"<small>of {words.count(loop.decisions)} decisions ({words.percent(explored.explored / loop.decisions)})"
    expected = f"By the probabilities of these decisions it should be about {words.count(explored.expected)}."
    rate = f"The next decision explores with probability {words.percent(explored.rate or 0.0)}."
    return [
        html_text(f"{words.count(explored.explored)} {share}</small>", "figure"),
        html_text(f"{expected} {rate if explored.rate else 'It does not explore now.'}"),
        _explored_over_time(explored),
        html_text(_cost(explored)),
    ]


def _explored_over_time(explored: Exploring) -> str:
    values = [span.explored / span.decisions for span in explored.spans if span.decisions]
    if len(values) < 2:
        return ""
    summary = f"The share of explored decisions over time: {words.percent(values[0])} at first, "
    summary += f"{words.percent(values[-1])} of late."
    caption = f'<figcaption class="small soft">{summary}</figcaption>'
    return f'<figure class="inline">{svg.shares(values, "uniform")}{caption}</figure>'


def _cost(explored: Exploring) -> str:
    if explored.price is None:
        return f"What it costs is not known. {escape(words.visible(explored.note))}"
    low, high = explored.price
    if high <= 0.0:
        return f"It has cost nothing: explored decisions earned <b>{words.between(-high, -low)}</b> more in all."
    most = words.number(high, words.decimals_of(high - low))
    ends = f"<b>{words.between(low, high)}</b>" if low > 0.0 else f"at most <b>{most}</b>"
    return f"Its price so far is {ends} in rewards, all explored decisions together."


def _agreement(loop: Details) -> tuple[str, list[str]]:
    """Return how often the policy would have played what callers play; how it explores, if they leave it the choice."""
    deferred = f"{words.count(loop.deferred)} decisions are deferred, and have not been activated."
    notes = [text(deferred, "soft")] if loop.deferred else []
    counts = loop.baseline
    if counts is None:
        return "Exploring", [text(_CATALOGUE), *notes]
    share = f"<small>of {words.count(counts.decisions)} decisions with a baseline</small>"
    sentence = (
        f"In {words.count(counts.agreed)} of them the policy would have played what you play anyway. What it would "
        "have earned by playing something else is not known: your own choice was shown."
    )
    parts = [html_text(f"{words.percent(counts.share)} {share}", "figure"), text(sentence), *notes]
    return "Agreement with the baseline", parts


# ---- which rewards are missing?


def missing(view: View) -> str:
    """Return how many rewards are missing, and what they could change at worst."""
    rewards = view.loop.missing
    if not view.loop.decisions:
        parts = [text("0", "figure"), text(NO_DECISION)]
    else:
        share = "" if rewards.share is None else f" <small>({words.percent(rewards.share)} of decisions)</small>"
        number = words.count(rewards.open + rewards.defaulted)
        parts = [html_text(f"{number}{share}", "figure"), text(_which(rewards)), html_text(_at_worst(rewards))]
        if rewards.note:
            parts.append(text(words.visible(rewards.note), "soft"))
    return card("missing", "Rewards that have not come", parts, width="half")


def _which(rewards: Missing) -> str:
    if not rewards.defaulted:
        return f"{words.count(rewards.open)} decisions still wait for one."
    return (
        f"{words.count(rewards.defaulted)} windows closed without one, "
        f"and {words.count(rewards.open)} decisions still wait."
    )


def _at_worst(rewards: Missing) -> str:
    if rewards.mean is None:
        return "No reward has come yet."
    if rewards.lowest is None or rewards.highest is None or rewards.lowest == rewards.highest:
        return f"The mean of those that came is <b>{words.plain(rewards.mean)}</b>."
    decimals = max(words.decimals_of(rewards.highest - rewards.lowest), 2)
    mean, low, high = (words.number(each, decimals) for each in (rewards.mean, rewards.lowest, rewards.highest))
    return (
        f"The mean of those that came is <b>{mean}</b>. With all of the missing ones, it is between <b>{low}</b> and "
        f"<b>{high}</b>, whatever they would have been."
    )


# ---- is it healthy?

FROZEN: Final = (
    "The loop is frozen: it decides by what it knew then, and what rewards have taught since counts once it is thawed."
)
_FINE: Final[tuple[tuple[tuple[Rule, ...], str], ...]] = (
    (("propensities",), "No arm is played more often than its probabilities say."),
    (("silence",), "No unusual silence of rewards."),
    (("missing_rewards", "defaults"), "No arm lacks rewards more than others, and no more are missing than usual."),
    (("change",), "No drop of what the same arms usually earn."),
    (("contexts",), "No feature is far beyond its usual size, stands still or is always missing."),
    (("clock",), "No clock that jumps, where rewards are discounted by time."),
    (("unknown", "out_of_range", "conflict"), "No more than 1 in 100 rewards is refused."),
)


def health(view: View) -> str:
    """Return what is wrong with the loop, and what was looked at without finding anything."""
    alarms = view.loop.alarms
    if not view.loop.decisions:
        parts = [text("There is nothing to check yet.", "soft")]
    else:
        faulty = {alarm.rule for alarm in alarms}
        items = [_item("fault", _alarm(alarm, view.now)) for alarm in alarms]
        items += [_item("fine", escape(sentence)) for rules, sentence in _FINE if not faulty.intersection(rules)]
        parts = [f'<ul class="list signed">{"".join(items)}</ul>']
    return card("health", "Is the loop healthy?", parts, width="half")


def _item(kind: str, html: str) -> str:
    word = "In order: " if kind == "fine" else "Alarm: "
    picture = sign("yes" if kind == "fine" else "fault")
    return f'<li class="{kind}">{picture}<div><span class="hidden">{word}</span>{html}</div></li>'


def _alarm(alarm: Alarm, now: int) -> str:
    since = f" {words.when(alarm.since, now)}" if alarm.since else ""
    return f"{escape(words.visible(alarm.text))}{since}"


def notice(view: View) -> str:
    """Return what a reader must know first: alarms, and that the loop is frozen; nothing if all is well."""
    loop = view.loop
    notices = [escape(words.visible(alarm.text)) for alarm in loop.alarms]
    if loop.guards.is_frozen:
        notices.insert(0, FROZEN)
    if not notices:
        return absent("notice")
    head = "Something needs attention" if len(notices) == 1 else f"{len(notices)} things need attention"
    items = "".join(f"<li>{each}</li>" for each in notices)
    return card("notice", head if loop.alarms else "The loop is frozen", [f"<ul>{items}</ul>"], kind="notice")
