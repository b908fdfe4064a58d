"""What a loop's page says besides its answers: exploring, rewards that never came, health, changes, settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final

from armlet.report.notebook import brief
from armlet.service.page import svg, words
from armlet.service.page.catalogue import action_terms
from armlet.service.page.layout import card, html_text, more, sign, terms, text
from armlet.types import Policy

if TYPE_CHECKING:
    from armlet.inputs.ranges import FeatureRanges
    from armlet.stores.health import Alarm, Rule
    from armlet.stores.overview import Details, Exploring, Missing

FEATURES: Final = 24  # that are named
HEALTH: Final = "Is the loop healthy?"
FROZEN: Final = (
    "The loop is frozen: it decides by what it knew then, and what rewards have taught since counts once it is thawed."
)
MISSING: Final = "Rewards that have not come"

_FINE: Final[tuple[tuple[tuple[Rule, ...], str], ...]] = (
    (("propensities",), "No arm is played more often than its probabilities say."),
    (("silence",), "No unusual silence of rewards."),
    (("missing_rewards", "defaults"), "No arm lacks rewards more than others, and no more are missing than usual."),
    (("change",), "No drop of what the same arms usually earn."),
    (("contexts",), "No feature is far beyond its usual size, stands still or is always missing."),
    (("clock",), "No clock that jumps, where rewards are discounted by time."),
    (("unknown", "out_of_range", "conflict"), "No more than 1 in 100 rewards is refused."),
)


# ---- exploring


def exploring_card(found: Exploring, decisions: int) -> str:
    """Return how much the loop explores, as counted, and what that costs."""
    if not decisions:
        return card(
            "exploring", "Exploring", [text("0", "figure"), text("No decision has been made yet.")], width="half"
        )
    if found.expected is None:
        parts = [
            text("Unknown", "figure"),
            text("This policy does not explore with a probability that is known, so there is no share to count."),
        ]
        return card("exploring", "Exploring", parts, width="half")
    share = f"<small>of {words.count(decisions)} decisions ({words.percent(found.explored / decisions)})</small>"
    parts = [
        html_text(f"{words.count(found.explored)} {share}", "figure"),
        html_text(" ".join(_counted(found))),
        _explored_over_time(found),
        html_text(_price(found)),
    ]
    return card("exploring", "Exploring", parts, width="half")


def _counted(found: Exploring) -> Iterator[str]:
    if found.expected is not None:
        yield f"By the probabilities of these decisions it should be about {words.count(found.expected)}."
    if found.rate:
        yield f"The next decision explores with probability {words.percent(found.rate)}."
    else:
        yield "It does not explore now."


def _explored_over_time(found: Exploring) -> str:
    values = [span.explored / span.decisions for span in found.spans if span.decisions]
    if len(values) < 2:
        return ""
    summary = f"The share of explored decisions over time: {words.percent(values[0])} at first, "
    summary += f"{words.percent(values[-1])} of late."
    caption = f'<figcaption class="small soft">{summary}</figcaption>'
    return f'<figure class="inline">{svg.shares(values, "uniform")}{caption}</figure>'


def _price(found: Exploring) -> str:
    if found.price is None:
        return f"What it costs is not known. {escape(words.visible(found.note))}"
    low, high = found.price
    if high <= 0.0:
        return f"It has cost nothing: explored decisions earned <b>{words.between(-high, -low)}</b> more in all."
    ends = f"<b>{words.between(low, high)}</b>" if low > 0.0 else f"at most <b>{_most(low, high)}</b>"
    return f"Its price so far is {ends} in rewards, all explored decisions together."


def _most(low: float, high: float) -> str:
    return words.number(high, words.decimals_of(high - low))


# ---- rewards that never came


def missing_card(found: Missing, decisions: int) -> str:
    """Return how many rewards are missing, and what they could change at worst."""
    if not decisions:
        return card("missing", MISSING, [text("0", "figure"), text("No decision has been made yet.")], width="half")
    lacking = found.open + found.defaulted
    share = "" if found.share is None else f" <small>({words.percent(found.share)} of decisions)</small>"
    parts = [html_text(f"{words.count(lacking)}{share}", "figure"), text(_which(found)), html_text(_at_worst(found))]
    if found.note:
        parts.append(text(words.visible(found.note), "soft"))
    return card("missing", MISSING, parts, width="half")


def _which(found: Missing) -> str:
    if not found.defaulted:
        return f"{words.count(found.open)} decisions still wait for one."
    return (
        f"{words.count(found.defaulted)} windows closed without one, "
        f"and {words.count(found.open)} decisions still wait."
    )


def _at_worst(found: Missing) -> str:
    if found.mean is None:
        return "No reward has come yet."
    if found.lowest is None or found.highest is None or found.lowest == found.highest:
        return f"The mean of those that came is <b>{words.plain(found.mean)}</b>."
    decimals = max(words.decimals_of(found.highest - found.lowest), 2)
    return (
        f"The mean of those that came is <b>{words.number(found.mean, decimals)}</b>. With all of the missing ones, it "
        f"is between <b>{words.number(found.lowest, decimals)}</b> and <b>{words.number(found.highest, decimals)}</b>, "
        "whatever they would have been."
    )


# ---- health


def health_card(alarms: tuple[Alarm, ...], decisions: int, now: int) -> str:
    """Return what is wrong with the loop, and what was looked at without finding anything."""
    if not decisions:
        return card("health", HEALTH, [text("There is nothing to check yet.", "soft")], width="half")
    faulty = {alarm.rule for alarm in alarms}
    found = [_item("fault", _alarm(alarm, now)) for alarm in alarms]
    found += [_item("fine", escape(sentence)) for rules, sentence in _FINE if not faulty.intersection(rules)]
    return card("health", HEALTH, [f'<ul class="list signed">{"".join(found)}</ul>'], width="half")


def _item(kind: str, html: str) -> str:
    word = "In order: " if kind == "fine" else "Alarm: "
    picture = sign("yes" if kind == "fine" else "fault")
    return f'<li class="{kind}">{picture}<div><span class="hidden">{word}</span>{html}</div></li>'


def _alarm(alarm: Alarm, now: int) -> str:
    since = f" {words.when(alarm.since, now)}" if alarm.since else ""
    return f"{escape(words.visible(alarm.text))}{since}"


def notice(found: Details) -> str:
    """Return what a reader must know first: alarms, and that the loop is frozen; nothing if all is well."""
    notices = [escape(words.visible(alarm.text)) for alarm in found.alarms]
    if found.guards.is_frozen:
        notices.insert(0, FROZEN)
    if not notices:
        return '<div id="notice" data-part hidden></div>'
    head = "The loop is frozen" if not found.alarms else _things(len(notices))
    items = "".join(f"<li>{each}</li>" for each in notices)
    return card("notice", head, [f"<ul>{items}</ul>"], kind="notice")


def _things(n: int) -> str:
    return "Something needs attention" if n == 1 else f"{n} things need attention"


# ---- changes and settings


def changes_card(found: Details, now: int) -> str:
    """Return the last changes of the loop."""
    items = [
        f"<li><span>{escape(words.shorten(words.visible(each.text), 300))}</span>{words.when(each.at, now)}</li>"
        for each in found.changes
    ]
    body = (
        f'<ul class="list">{"".join(items)}</ul>' if items else text("Nothing has changed since it was made.", "soft")
    )
    return card("changes", "Changes", [body], width="half")


def settings_card(found: Details) -> str:
    """Return what the loop was made with."""
    return card("settings", "Settings", [more("all-settings", "How this loop is set up", [terms(_settings(found))])])


def _settings(found: Details) -> Iterator[tuple[str, str]]:
    yield "policy", f"<code>{escape(policy_words(found.policy))}</code>"
    yield "rewards", _rewards(found)
    yield "window", _window(found.terms)
    yield "of several rewards", _aggregation(found.terms)
    if found.guards.control is not None:
        yield "control", f"{words.label(found.guards.control)}, in {words.percent(found.guards.share)} of decisions"
    if found.guards.shadow is not None:
        yield "shadow", words.label(found.guards.shadow)
    for name, policy in found.guards.shadows.items():
        yield f"shadow {words.visible(name)}", words.label(policy)
    yield "features", _features(found)
    if found.feature_range is not None:
        yield "feature ranges", ", ".join(_feature_ranges(found.feature_range))
    yield from action_terms(found)
    answered = ", ".join(f"{words.count(n)} {escape(status.replace('_', ' '))}" for status, n in found.statuses.items())
    yield "rewards reported", answered or "none"
    yield "rows since snapshot", words.count(found.rows_since_snapshot)


def policy_words(policy: Policy) -> str:
    """Return a policy with the settings that are not the usual ones.

    Examples
    --------
    >>> import armlet
    >>> policy_words(armlet.OccasionalOptimism(floor=0.1))
    'OccasionalOptimism(floor=0.1)'
    """
    return words.shorten(words.visible(brief(policy)), 200)


def _rewards(found: Details) -> str:
    sense = "costs, the lower the better" if found.objective == "min" else "the higher the better"
    if found.weights is not None:
        return f"worth by outcomes: {words.amount(found.weights)}"
    if found.reward_range is None:
        return sense
    low, high = found.reward_range
    return f"{words.plain(low)} to {words.plain(high)}, {sense}"


def _feature_ranges(ranges: FeatureRanges) -> Iterator[str]:
    for name, (low, high, *_) in list(ranges.items())[:FEATURES]:
        counts = (f"{words.count(n)} {word}" for word, n in ranges.counts[name].items() if n)
        line = f"{words.label(name, 40)} {words.plain(low)} to {words.plain(high)}"
        yield f"{line} ({', '.join(counts)} by this process)" if any(ranges.counts[name].values()) else line


def _window(rules: Mapping[str, Any]) -> str:
    if rules.get("window") is None:
        return "none: rewards are learned as they arrive"
    default = rules.get("default_reward")
    if default == {}:  # several outcomes, none of which has a default
        return f"{words.span(rules['window'])}, then what has not come is not waited for"
    return f"{words.span(rules['window'])}, then the reward is {words.amount(0.0 if default is None else default)}"


def _aggregation(rules: Mapping[str, Any]) -> str:
    counts = {"first": "the first counts", "last": "the last counts", "sum": "their sum counts"}
    return counts.get(rules.get("aggregation", "first"), "")


def _features(found: Details) -> str:
    if found.features is None:
        return f"{words.count(found.dim)} without names"
    named = ", ".join(words.label(name, 40) for name in found.features[:FEATURES])
    return f"{named} and {len(found.features) - FEATURES} more" if len(found.features) > FEATURES else named
