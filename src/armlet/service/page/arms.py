"""Tables of a loop's page: arms with shares, values and coefficients, and the last decisions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from armlet.service.page import svg, words
from armlet.service.page.layout import Column, Viewer, card, more, table, text, wide_table

if TYPE_CHECKING:
    from armlet.stores.overview import ArmDetails, Details, LastDecision

ARMS: Final = 50  # that are shown, those that were played most
COLUMNS: Final = 12  # arms of the table of coefficients
FEATURES: Final = 30  # and its features, those with the largest coefficients
VALUES: Final = 8  # of a context
BY: Final = {"live": "live policy", "exploration": "exploring", "control": "control"}

_COLUMNS: Final = (
    Column("arm", "name"),
    Column("played"),
    Column("share over time", "sparks"),
    Column("worth if always played", "bars across"),
    Column("mean when played", "n"),
    Column("rewards reported", "n"),
)


def arms_card(found: Details) -> str:
    """Return all arms: how often they are played, what they are worth, how they follow from features."""
    arms = sorted(found.by_arm, key=lambda each: each.is_retired)
    if len(arms) > ARMS:
        arms = sorted(arms, key=lambda each: (each.is_retired, -each.decisions))
    values = [end for each in arms[:ARMS] if each.value is not None for end in each.value]
    scale = (min(values), max(values)) if values else (0.0, 1.0)
    parts = [
        text(_about(bool(values)), "soft small"),
        table(_COLUMNS, [_arm(each, scale, mean_of(each, found)) for each in arms[:ARMS]]),
    ]
    if len(arms) > ARMS:
        rest = sum(each.decisions for each in arms[ARMS:])
        sentence = f"And {words.count(len(arms) - ARMS)} more arms, with {words.count(rest)} decisions together."
        parts.append(text(sentence, "soft"))
    return card("arms", "Arms", [*parts, _coefficients(arms[:COLUMNS])])


def _about(has_values: bool) -> str:
    known = "valid at 95 % for each arm, however often you look" if has_values else "there are none with a reward yet"
    return (
        "What an arm is worth if always played is estimated from decisions that explored independently of the context; "
        f"{known}. The mean when played is about the contexts for which it was chosen."
    )


def mean_of(arm: ArmDetails, found: Details) -> str:
    """Return the mean reward of an arm, with as many digits as its number of rewards supports."""
    counts = next((each for each in found.counts if each.arm == arm.arm), None)
    if counts is None or counts.mean is None:
        return "–"
    if not counts.variance:
        return words.plain(counts.mean)
    return words.number(counts.mean, words.decimals_of(4.0 * math.sqrt(counts.variance / counts.learned)))


def _arm(arm: ArmDetails, scale: tuple[float, float], mean: str) -> tuple[str, ...]:
    name = words.arm_label(arm.arm) + (' <span class="tag">retired</span>' if arm.is_retired else "")
    played = f"{words.count(arm.decisions)} <small>{words.percent(arm.share)}</small>"
    coverage = "–" if arm.coverage is None else words.percent(arm.coverage)
    return (
        name,
        played + svg.share_bar(arm.share, "arm"),
        svg.shares(arm.shares, "arm") + f'<span class="hidden">{trend(arm.shares)}</span>',
        _value(arm, scale),
        mean,
        coverage,
    )


def trend(shares: Sequence[float]) -> str:
    """Return in words how the share of an arm has changed."""
    if not shares:
        return "never played"
    return f"{words.percent(shares[0])} at first, {words.percent(shares[-1])} of late"


def _value(arm: ArmDetails, scale: tuple[float, float]) -> str:
    if arm.value is None:
        return '<span class="soft small">not known</span>'
    bar = svg.value_bar(arm.value, scale, "arm")
    return f"{bar}{words.between(*arm.value)} <small>from {words.count(arm.value_rows)} decisions</small>"


def _coefficients(arms: Sequence[ArmDetails]) -> str:
    shown = [arm for arm in arms if arm.coefficients]
    if not shown:
        return ""
    by_arm = [dict(arm.coefficients) for arm in shown]
    sizes = {name: max(abs(each[name]) for each in by_arm) for name in by_arm[0]}
    kept = set(sorted(sizes, key=lambda name: -sizes[name])[:FEATURES])
    decimals = words.decimals_of(0.1 * max(sizes.values()))  # three digits of the largest
    rows = [("of a context of zeros", *(words.number(arm.intercept or 0.0, decimals) for arm in shown))]
    rows += [
        (words.label(name, 40), *(words.number(each[name], decimals) for each in by_arm))
        for name in sizes
        if name in kept
    ]
    columns = (Column("feature"), *(Column(words.shorten(words.visible(arm.arm), 24), "n") for arm in shown))
    note = "What an arm is expected to earn of a context of zeros, and for one more of each feature"
    some = f"; the {FEATURES} features of {len(sizes)} with the largest numbers" if len(sizes) > FEATURES else ""
    parts = [text(f"{note}{some}.", "soft small"), wide_table("Coefficients by feature", columns, rows)]
    return more("coefficients", "Coefficients by feature", parts)


# ---- the last decisions


def last_card(found: Details, now: int, viewer: Viewer) -> str:
    """Return the last decisions; events and contexts only to those who may see them."""
    columns = [
        Column("step"),
        Column("when"),
        Column("arm"),
        Column("probability", "n"),
        Column("chosen by"),
        Column("reward", "n"),
    ]
    if viewer.is_admin:
        columns += [Column("event"), Column("context", "across")]
    if not found.last:
        return card("last", "Last decisions", [text("There is none yet.", "soft")])
    rows = [_decision(each, now) + (_secrets(each, found.features) if viewer.is_admin else ()) for each in found.last]
    parts = [more("last-rows", f"The last {len(rows)}", [wide_table("Last decisions", columns, rows)])]
    if not viewer.is_admin:
        parts.append(text("Events and contexts are shown to keys with the scope “admin”.", "soft small"))
    return card("last", "Last decisions", parts)


def _decision(one: LastDecision, now: int) -> tuple[str, ...]:
    return (
        words.count(one.t),
        words.when(one.at, now),
        words.arm_label(one.arm, 24),
        words.number(one.propensity, 3),
        BY[one.played_by],
        "–" if one.reward is None else words.amount(one.reward),
    )


def _secrets(one: LastDecision, features: Sequence[str] | None) -> tuple[str, ...]:
    return ("–" if one.event is None else words.label(one.event, 24), _context(one.context, features))


def _context(values: Sequence[float] | None, features: Sequence[str] | None) -> str:
    if values is None:
        return '<span class="soft">erased</span>'
    numbers = [escape(words.plain(value)) for value in values[:VALUES]]
    if features is not None:
        numbers = [f"{words.label(name, 20)} {each}" for name, each in zip(features, numbers, strict=False)]
    left = len(values) - VALUES
    return ", ".join(numbers) + (f" and {left} more" if left > 0 else "")
