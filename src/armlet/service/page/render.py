"""Pages of loops as HTML: a list of all, and one for each; O(arms x features), however many decisions there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from armlet.service.page import words
from armlet.service.page.answers import answers, chart, in_short
from armlet.service.page.arms import arms_card, last_card
from armlet.service.page.catalogue import actions_card, baseline_card
from armlet.service.page.facts import (
    changes_card,
    exploring_card,
    health_card,
    missing_card,
    notice,
    policy_words,
    settings_card,
)
from armlet.service.page.features import features_card
from armlet.service.page.layout import Column, Page, Viewer, card, document, html_text, table, text
from armlet.service.page.login import HOME, loop_url
from armlet.service.page.outcomes import outcome_cards
from armlet.types import __version__

if TYPE_CHECKING:
    from armlet.service.personalizer.features import FeatureCounts
    from armlet.stores.overview import Details

SECOND: Final = 1_000_000  # microseconds
DAY: Final = 86_400.0  # seconds
FOOTER: Final = (
    "<p>Intervals on this page are anytime-valid confidence sequences at 95 %: look as often as you like, and stop "
    "when you like. There are no p-values, no intervals for a fixed sample, and no regret, which nobody knows.</p>"
    f"<p>Made by Armlet {__version__} from the rows of this loop, each folded in when it was committed.</p>"
)


def loop_page(found: Details, now: int, version: str, viewer: Viewer, features: FeatureCounts | None = None) -> bytes:
    """Return the page of a loop.

    Parameters
    ----------
    found
        What there is to see.
    now
        Microseconds since 1970.
    version
        Of what is seen: the script asks again when the stream tells another one.
    viewer
        Who looks at it.
    features
        How often features did not fit, where that is known.
    """
    url = loop_url(found.name)
    page = Page(
        title=f"{words.shorten(words.visible(found.name), 60)} · Armlet",
        crumbs=[("Loops", HOME)],
        parts=[_title(found, now), '<main id="main">\n', *_parts(found, now, viewer, features), "</main>\n"],
        footer=FOOTER,
        stream=f"{url}/stream",
        version=version,
        now=now // SECOND,
        may_log_out=viewer.has_key,
    )
    return document(page)


def _title(found: Details, now: int) -> str:
    facts = [f"<strong>{words.count(found.decisions)}</strong> decisions"]
    if found.last_decision is not None:
        facts.append(f"the last one {words.when(found.last_decision, now)}")
    arms = f"{len(found.arms)} arms" if found.action_dim is None else "actions with each decision"
    facts += [arms, f"<code>{words.label(policy_words(found.policy), 80)}</code>"]
    line = " · ".join(["<strong>Frozen</strong>", *facts] if found.guards.is_frozen else facts)
    return (
        f'<header class="title" id="title" data-part><h1>{words.label(found.name, 80)}</h1>{html_text(line)}</header>\n'
    )


def _parts(found: Details, now: int, viewer: Viewer, features: FeatureCounts | None) -> list[str]:
    pace = None if found.pace is None else found.pace / DAY
    return [
        notice(found),
        answers(found.gains, pace, has_arms=found.action_dim is None),
        chart(found.gains, found.decisions),
        *outcome_cards(found),
        exploring_card(found.exploring, found.decisions) if found.action_dim is None else baseline_card(found),
        missing_card(found.missing, found.decisions),
        features_card(features, viewer),
        arms_card(found) if found.action_dim is None else actions_card(found),
        health_card(found.alarms, found.decisions, now),
        changes_card(found, now),
        last_card(found, now, viewer),
        settings_card(found),
    ]


# ---- the list

_COLUMNS: Final = (
    Column("loop", "name"),
    Column("decisions", "n"),
    Column("last decision"),
    Column("better than random?"),
    Column("than the control?"),
    Column("health"),
)


def list_page(found: Sequence[Details], others: Sequence[str], now: int, viewer: Viewer) -> bytes:
    """Return the list of loops: some with what there is to see, and the names of others."""
    n = len(found) + len(others)
    body = [table(_COLUMNS, [_line(each, now) for each in found])]
    if not n:
        body = [text("There is no loop yet, or none that this key may see.", "soft")]
    if others:
        links = ", ".join(f'<a href="{loop_url(name)}">{words.label(name)}</a>' for name in others)
        body.append(html_text(f"And {words.count(len(others))} more: {links}"))
    page = Page(
        title="Loops · Armlet",
        crumbs=[],
        parts=[
            '<header class="title"><h1>Loops</h1></header>\n<main id="main">\n',
            card("loops", "1 loop" if n == 1 else f"{words.count(n)} loops", body),
            "</main>\n",
        ],
        may_log_out=viewer.has_key,
    )
    return document(page)


def _line(found: Details, now: int) -> tuple[str, ...]:
    said = {gain.against: in_short(gain) for gain in found.gains}
    last = "never" if found.last_decision is None else words.when(found.last_decision, now)
    alarms = f"{len(found.alarms)} to look at" if found.alarms else "in order"
    return (
        f'<a href="{loop_url(found.name)}">{words.label(found.name)}</a>',
        words.count(found.decisions),
        last,
        said.get("uniform", "–"),
        said.get("control", "–"),
        alarms,
    )
