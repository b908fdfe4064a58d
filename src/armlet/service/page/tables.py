"""Tables on a loop's page: outcomes, their budget, arms or actions, features, last decisions, changes, settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from armlet.report.notebook import brief
from armlet.service.page import svg, words
from armlet.service.page.html import Column, View, absent, card, html_text, more, table, terms, text, wide_table
from armlet.types import Policy

if TYPE_CHECKING:
    from armlet.inputs.budget import Spending
    from armlet.inputs.ranges import FeatureRanges
    from armlet.stores.folds import OutcomeCounts
    from armlet.stores.overview import ArmDetails, Details, LastDecision

ARMS: Final = 50  # that are shown, those that were played most
ACTIONS: Final = 20
COLUMNS: Final = 12  # arms that have a column
COEFFICIENTS: Final = 30  # features that have a row, those with the largest coefficients
NAMED: Final = 24  # features in a setting
VALUES: Final = 8  # of a context
MISFITS: Final = 30  # names of features that do not fit, those that were counted most
CLOSE: Final = 0.005  # of a budget: spending that is as planned
ADMIN_ONLY: Final = "are shown to keys with the scope “admin”."


# ---- outcomes and their budget


def outcomes(view: View) -> str:
    """Return what outcomes are worth and their means; nothing of a loop with one reward."""
    loop = view.loop
    if loop.weights is None:
        return ""
    of_all = {each.outcome: each for each in loop.outcomes if each.arm is None}
    columns = (
        Column("outcome", "name"),
        Column("one is worth", "n"),
        Column("mean", "n"),
        Column("decisions with it", "n"),
    )
    rows = []
    for name, weight in loop.weights.items():
        counts = of_all.get(name)
        known = ' <span class="tag">known</span>' if name in loop.known else ""
        values = words.count(0 if counts is None else counts.values)
        rows.append((words.label(name, 40) + known, words.plain(weight), _mean(counts), values))
    about = (
        "A decision is worth the sum of its outcomes by these weights, which is the reward on the rest of this page. "
        "Means are about the arms that were chosen."
    )
    parts = [text(about, "soft small"), table(columns, rows), _outcomes_by_arm(loop, loop.weights)]
    return card("outcomes", "Outcomes", parts, width="half" if loop.budget is not None else "")


def _mean(counts: OutcomeCounts | None) -> str:
    return "–" if counts is None or counts.mean is None else words.plain(counts.mean)


def _outcomes_by_arm(loop: Details, weights: Iterable[str]) -> str:
    cells = {(each.outcome, each.arm): each for each in loop.outcomes if each.arm is not None}
    arms = list(dict.fromkeys(arm for _, arm in cells))
    if not arms:
        return ""
    columns = (Column("mean of"), *(Column(words.shorten(words.visible(arm), 24), "n") for arm in arms[:COLUMNS]))
    rows = [(words.label(name, 40), *(_mean(cells.get((name, arm))) for arm in arms[:COLUMNS])) for name in weights]
    parts = [wide_table("Means of outcomes by arm", columns, rows)]
    if len(arms) > COLUMNS:
        parts.append(text(f"And {words.count(len(arms) - COLUMNS)} more arms.", "soft"))
    return more("outcomes-by-arm", "Means by arm", parts)


def budget(view: View) -> str:
    """Return what is spent of an outcome against its budget; nothing of a loop without one."""
    spending, weights = view.loop.budget, view.loop.weights
    if spending is None or weights is None:
        return ""
    name = words.label(spending.budget.outcome, 40)
    part = words.percent(max(spending.spent, 0.0) / spending.total)
    share = f"<small>of {words.plain(spending.total)} {name} spent ({part})</small>"
    planned = min(spending.decisions / spending.budget.length, 1.0)
    ends = "".join(f"<span>{each}</span>" for each in ("0", "the line: as planned", words.plain(spending.total)))
    bar = svg.spent_bar(spending.spent / spending.total, planned)
    parts = [
        html_text(f"{words.plain(spending.spent)} {share}", "figure"),
        f'<figure class="scale">{bar}<div class="ends" aria-hidden="true">{ends}</div></figure>',
        text(" ".join(_against_plan(spending, spending.total * planned))),
        html_text(_price(spending, weights[spending.budget.outcome], name)),
    ]
    if spending.budget.hard:
        sentence = (
            "The budget is hard: arms that could exceed it are not played, and where none is left nothing is decided."
        )
        parts.append(text(sentence, "soft"))
    return card("budget", "Budget", parts, width="half")


def _against_plan(spending: Spending, planned: float) -> Iterator[str]:
    span = "this period" if spending.budget.period is not None else "the horizon"
    yield f"After {words.count(spending.decisions)} of the {words.count(spending.budget.length)} decisions of {span},"
    ahead = spending.spent - planned
    if abs(ahead) <= CLOSE * spending.total:
        yield f"that is as planned ({words.plain(planned)})."
    else:
        than = "more than planned" if ahead > 0 else "less than planned"
        yield f"that is {words.plain(abs(ahead))} {than} ({words.plain(planned)})."
    if spending.decisions_left:
        each = max(spending.left, 0.0) / spending.decisions_left
        yield f"{words.plain(spending.left)} is left, {words.plain(each)} for each decision to come."
    else:
        yield f"{words.plain(spending.left)} is left, and no decision is to come: the price stays as it is."
    if spending.waiting:
        yield f"Of {words.count(spending.waiting)} decisions it is not yet reported."


def _price(spending: Spending, weight: float, name: str) -> str:
    if spending.price <= 0.0:
        return f"The price of one {name} is <b>0</b>: the budget does not bind now."
    return (
        f"The price of one {name} is <b>{words.plain(spending.price)}</b>: it counts as "
        f"{words.plain(weight - spending.price)} rather than {words.plain(weight)}."
    )


# ---- arms and actions


def arms(view: View) -> str:
    """Return how often arms or actions are played, what they are worth, and how arms follow from features."""
    loop = view.loop
    heading, parts = ("Arms", _arms(loop)) if loop.action_dim is None else ("Actions", _actions(loop))
    return card("arms", heading, parts)


def _arms(loop: Details) -> list[str]:
    ranked = sorted(loop.by_arm, key=lambda each: each.is_retired)
    if len(ranked) > ARMS:
        ranked = sorted(ranked, key=lambda each: (each.is_retired, -each.decisions))
    shown, rest = ranked[:ARMS], ranked[ARMS:]
    values = [end for each in shown if each.value is not None for end in each.value]
    scale = (min(values), max(values)) if values else (0.0, 1.0)
    known = "valid at 95 % for each arm, however often you look" if values else "there are none with a reward yet"
    about = (
        "What an arm is worth if always played is estimated from decisions that explored independently of the context; "
        f"{known}. The mean when played is about the contexts for which it was chosen."
    )
    columns = (
        Column("arm", "name"),
        Column("played"),
        Column("share over time", "sparks"),
        Column("worth if always played", "bars across"),
        Column("mean when played", "n"),
        Column("rewards reported", "n"),
    )
    rows = []
    for arm in shown:
        name, *shares, mean, coverage = _arm(arm, loop)
        tag = ' <span class="tag">retired</span>' if arm.is_retired else ""
        rows.append((name + tag, *shares, _worth(arm, scale), mean, coverage))
    parts = [text(about, "soft small"), table(columns, rows)]
    if rest:
        decisions = sum(each.decisions for each in rest)
        sentence = f"And {words.count(len(rest))} more arms, with {words.count(decisions)} decisions together."
        parts.append(text(sentence, "soft"))
    return [*parts, _coefficients(shown[:COLUMNS])]


def _actions(loop: Details) -> list[str]:
    ranked = sorted(loop.by_arm, key=lambda each: -each.decisions)
    about = (
        "Those that were played most; more are counted together. The mean when played is about the contexts for which "
        "an action was chosen."
    )
    columns = (
        Column("action", "name"),
        Column("played"),
        Column("share over time", "sparks"),
        Column("mean when played", "n"),
        Column("rewards reported", "n"),
    )
    parts = [text("None has been played yet.", "soft")]
    if ranked:
        parts = [text(about, "soft small"), table(columns, [_arm(each, loop) for each in ranked[:ACTIONS]])]
    rest = sum(each.decisions for each in ranked[ACTIONS:]) + (0 if loop.others is None else loop.others.decisions)
    if rest:
        parts.append(text(f"All others together: {words.count(rest)} decisions.", "soft"))
    return parts


def _arm(arm: ArmDetails, loop: Details) -> tuple[str, ...]:
    """Return the cells that arms and actions have: name, shares, mean and how many rewards were reported."""
    trend = "never played"
    if arm.shares:
        trend = f"{words.percent(arm.shares[0])} at first, {words.percent(arm.shares[-1])} of late"
    played = f"{words.count(arm.decisions)} <small>{words.percent(arm.share)}</small>"
    return (
        words.arm_label(arm.arm),
        played + svg.share_bar(arm.share, "arm"),
        f'{svg.shares(arm.shares, "arm")}<span class="hidden">{trend}</span>',
        _mean_when_played(arm, loop),
        "–" if arm.coverage is None else words.percent(arm.coverage),
    )


def _mean_when_played(arm: ArmDetails, loop: Details) -> str:
    """Return the mean reward of an arm, with as many digits as its number of rewards supports."""
    counts = next((each for each in loop.counts if each.arm == arm.arm), None)
    if counts is None or counts.mean is None:
        return "–"
    if not counts.variance:
        return words.plain(counts.mean)
    return words.number(counts.mean, words.decimals_of(4.0 * math.sqrt(counts.variance / counts.learned)))


def _worth(arm: ArmDetails, scale: tuple[float, float]) -> str:
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
    largest = set(sorted(sizes, key=lambda name: -sizes[name])[:COEFFICIENTS])
    decimals = words.decimals_of(0.1 * max(sizes.values()))  # three digits of the largest
    rows = [("of a context of zeros", *(words.number(arm.intercept or 0.0, decimals) for arm in shown))]
    rows += [
        (words.label(name, 40), *(words.number(each[name], decimals) for each in by_arm))
        for name in sizes
        if name in largest
    ]
    columns = (Column("feature"), *(Column(words.shorten(words.visible(arm.arm), 24), "n") for arm in shown))
    note = "What an arm is expected to earn of a context of zeros, and for one more of each feature"
    if len(sizes) > COEFFICIENTS:
        note += f"; the {COEFFICIENTS} features of {len(sizes)} with the largest numbers"
    parts = [text(f"{note}.", "soft small"), wide_table("Coefficients by feature", columns, rows)]
    return more("coefficients", "Coefficients by feature", parts)


# ---- features that Personalizer's clients sent or did not send


def features(view: View) -> str:
    """Return how often features did not fit; their names, which may hold texts of users, to those who may see them."""
    counts = view.features
    if counts is None or not counts.totals:
        return absent("features")
    faults = {"unknown": "sent, but not read", "missing": "read, but not sent"}
    totals = {fault: sum(n for (_, each), n in counts.totals.items() if each == fault) for fault in faults}
    summary = (
        f"Since the server started, {words.count(totals['unknown'])} values were sent that the loop does not read, and "
        f"{words.count(totals['missing'])} that it reads were not sent. A name that is always unknown is misspelt, or "
        "missing in the settings of the loop."
    )
    parts = [text(summary)]
    if view.viewer.is_admin:
        of = {"context": "context", "actions": "action"}
        columns = Column("feature", "name"), Column("of"), Column("what"), Column("times", "n")
        rows = [
            (words.label(name, 60), of[side], faults[fault], words.count(n))
            for (side, fault, name), n in counts.names.most_common(MISFITS)
        ]
        parts.append(more("feature-names", "Which ones", [table(columns, rows)]))
    else:
        parts.append(text(f"Their names {ADMIN_ONLY}", "soft small"))
    return card("features", "Features that do not fit", parts)


# ---- the last decisions

_BY: Final = {"live": "live policy", "exploration": "exploring", "control": "control"}


def last_decisions(view: View) -> str:
    """Return the last decisions; events and contexts only to those who may see them."""
    loop, is_admin = view.loop, view.viewer.is_admin
    if not loop.last:
        return card("last", "Last decisions", [text("There is none yet.", "soft")])
    columns = [
        Column("step"),
        Column("when"),
        Column("arm"),
        Column("probability", "n"),
        Column("chosen by"),
        Column("reward", "n"),
    ]
    if is_admin:
        columns += [Column("event"), Column("context", "across")]
    rows = [_decision(each, view.now) + (_secrets(each, loop.features) if is_admin else ()) for each in loop.last]
    parts = [more("last-rows", f"The last {len(rows)}", [wide_table("Last decisions", columns, rows)])]
    if not is_admin:
        parts.append(text(f"Events and contexts {ADMIN_ONLY}", "soft small"))
    return card("last", "Last decisions", parts)


def _decision(one: LastDecision, now: int) -> tuple[str, ...]:
    return (
        words.count(one.t),
        words.when(one.at, now),
        words.arm_label(one.arm, 24),
        words.number(one.propensity, 3),
        _BY[one.played_by],
        "–" if one.reward is None else words.amount(one.reward),
    )


def _secrets(one: LastDecision, features: Sequence[str] | None) -> tuple[str, ...]:
    context = '<span class="soft">erased</span>'
    if one.context is not None:
        numbers = [escape(words.plain(value)) for value in one.context[:VALUES]]
        if features is not None:
            numbers = [f"{words.label(name, 20)} {each}" for name, each in zip(features, numbers, strict=False)]
        context = _some(numbers, len(one.context) - VALUES)
    return ("–" if one.event is None else words.label(one.event, 24), context)


def _some(items: Iterable[str], left: int) -> str:
    return ", ".join(items) + (f" and {left} more" if left > 0 else "")


# ---- changes and settings


def changes(view: View) -> str:
    """Return the last changes of the loop."""
    items = [
        f"<li><span>{escape(words.shorten(words.visible(each.text), 300))}</span>{words.when(each.at, view.now)}</li>"
        for each in view.loop.changes
    ]
    body = (
        f'<ul class="list">{"".join(items)}</ul>' if items else text("Nothing has changed since it was made.", "soft")
    )
    return card("changes", "Changes", [body], width="half")


def settings(view: View) -> str:
    """Return what the loop was made with."""
    parts = [terms(_settings(view.loop))]
    return card("settings", "Settings", [more("all-settings", "How this loop is set up", parts)])


def _settings(loop: Details) -> Iterator[tuple[str, str]]:
    guards = loop.guards
    yield "policy", f"<code>{escape(policy_words(loop.policy))}</code>"
    yield "rewards", _rewards(loop)
    yield "window", _window(loop.terms)
    yield "of several rewards", _AGGREGATION.get(loop.terms.get("aggregation", "first"), "")
    if guards.control is not None:
        yield "control", f"{words.label(guards.control)}, in {words.percent(guards.share)} of decisions"
    if guards.shadow is not None:
        yield "shadow", words.label(guards.shadow)
    for name, policy in guards.shadows.items():
        yield f"shadow {words.visible(name)}", words.label(policy)
    yield "features", _names(loop.features, loop.dim)
    if loop.feature_range is not None:
        yield "feature ranges", ", ".join(_feature_ranges(loop.feature_range))
    if loop.action_dim is not None:
        yield "features of actions", _names(loop.action_features, loop.action_dim)
        if loop.tables:
            yield "prepared tables", _names(tuple(loop.tables), 0)
    answered = ", ".join(f"{words.count(n)} {escape(status.replace('_', ' '))}" for status, n in loop.statuses.items())
    yield "rewards reported", answered or "none"
    yield "rows since snapshot", words.count(loop.rows_since_snapshot)


_AGGREGATION: Final = {"first": "the first counts", "last": "the last counts", "sum": "their sum counts"}


def policy_words(policy: Policy) -> str:
    """Return a policy with the settings that are not the usual ones.

    Examples
    --------
    >>> import armlet
    >>> policy_words(armlet.OccasionalOptimism(floor=0.1))
    'OccasionalOptimism(floor=0.1)'
    """
    return words.shorten(words.visible(brief(policy)), 200)


def _rewards(loop: Details) -> str:
    sense = "costs, the lower the better" if loop.objective == "min" else "the higher the better"
    if loop.weights is not None:
        return f"worth by outcomes: {words.amount(loop.weights)}"
    if loop.reward_range is None:
        return sense
    low, high = loop.reward_range
    return f"{words.plain(low)} to {words.plain(high)}, {sense}"


def _feature_ranges(ranges: FeatureRanges) -> Iterator[str]:
    for name, (low, high, *_) in list(ranges.items())[:NAMED]:
        counts = (f"{words.count(n)} {word}" for word, n in ranges.counts[name].items() if n)
        line = f"{words.label(name, 40)} {words.plain(low)} to {words.plain(high)}"
        yield f"{line} ({', '.join(counts)} by this process)" if any(ranges.counts[name].values()) else line


def _window(rules: Mapping[str, Any]) -> str:
    if rules.get("window") is None:
        return "none: rewards are learned as they arrive"
    default = rules.get("default_reward")
    if default == {}:  # several outcomes, none of which has a default
        return f"{words.span(rules['window'])}, then outcomes that were not reported stay unknown"
    return f"{words.span(rules['window'])}, then the reward is {words.amount(0.0 if default is None else default)}"


def _names(names: Sequence[str] | None, dim: int) -> str:
    if names is None:
        return f"{words.count(dim)} without names"
    return _some((words.label(name, 40) for name in names[:NAMED]), len(names) - NAMED)
