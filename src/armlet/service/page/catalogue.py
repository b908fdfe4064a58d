"""What the page of a loop says of actions that come with each decision: those played most, and what callers play."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from armlet.service.page import svg, words
from armlet.service.page.arms import mean_of, trend
from armlet.service.page.layout import Column, card, html_text, table, text

if TYPE_CHECKING:
    from armlet.stores.overview import ArmDetails, Details

ACTIONS: Final = 20  # that are shown, those that were played most
FEATURES: Final = 24  # that are named
ABOUT: Final = (
    "Those that were played most; more are counted together. The mean when played is about the contexts for which an "
    "action was chosen."
)
EXPLORING: Final = (
    "No decision is made at random among all actions. A private coin picks those that play the highest bound, or a "
    "draw, rather than the highest estimate; the log has the probability of every action that could be played."
)
_COLUMNS: Final = (
    Column("action", "name"),
    Column("played"),
    Column("share over time", "sparks"),
    Column("mean when played", "n"),
    Column("rewards reported", "n"),
)


def actions_card(found: Details) -> str:
    """Return the actions that were played most, and all others as one."""
    ranked = sorted(found.by_arm, key=lambda each: -each.decisions)
    rows = [_action(each, mean_of(each, found)) for each in ranked[:ACTIONS]]
    parts = [text(ABOUT, "soft small"), table(_COLUMNS, rows)] if rows else [text("None has been played yet.", "soft")]
    rest = sum(each.decisions for each in ranked[ACTIONS:]) + (0 if found.others is None else found.others.decisions)
    if rest:
        parts.append(text(f"All others together: {words.count(rest)} decisions.", "soft"))
    return card("arms", "Actions", parts)


def _action(arm: ArmDetails, mean: str) -> tuple[str, ...]:
    return (
        words.arm_label(arm.arm),
        f"{words.count(arm.decisions)} <small>{words.percent(arm.share)}</small>{svg.share_bar(arm.share, 'arm')}",
        svg.shares(arm.shares, "arm") + f'<span class="hidden">{trend(arm.shares)}</span>',
        mean,
        "–" if arm.coverage is None else words.percent(arm.coverage),
    )


def baseline_card(found: Details) -> str:
    """Return how often the policy would have played what callers play; how it explores, if they leave it the choice."""
    counts = found.baseline
    if counts is None:
        return card("exploring", "Exploring", [text(EXPLORING), *_deferred(found)], width="half")
    share = f"<small>of {words.count(counts.decisions)} decisions with a baseline</small>"
    sentence = (
        f"In {words.count(counts.agreed)} of them the policy would have played what you play anyway. What it would "
        "have earned by playing something else is not known: your own choice was shown."
    )
    parts = [html_text(f"{words.percent(counts.share)} {share}", "figure"), text(sentence), *_deferred(found)]
    return card("exploring", "Agreement with the baseline", parts, width="half")


def _deferred(found: Details) -> Iterator[str]:
    if found.deferred:
        yield text(f"{words.count(found.deferred)} decisions are deferred, and have not been activated.", "soft")


def action_terms(found: Details) -> Iterator[tuple[str, str]]:
    """Return the settings that only loops with actions have."""
    if found.action_dim is None:
        return
    names = found.action_features
    if names is None:
        yield "features of actions", f"{words.count(found.action_dim)} without names"
    else:
        more = f" and {len(names) - FEATURES} more" if len(names) > FEATURES else ""
        yield "features of actions", ", ".join(words.label(name, 40) for name in names[:FEATURES]) + more
    tables = list(found.tables)
    if tables:
        more = f" and {len(tables) - FEATURES} more" if len(tables) > FEATURES else ""
        yield "prepared tables", ", ".join(words.label(name, 40) for name in tables[:FEATURES]) + more
