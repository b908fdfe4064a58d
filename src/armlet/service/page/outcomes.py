"""What a loop's page says of several outcomes, and of what is spent of one of them against its budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from armlet.service.page import svg, words
from armlet.service.page.layout import Column, card, html_text, more, table, text, wide_table

if TYPE_CHECKING:
    from armlet.inputs.budget import Spending
    from armlet.stores.overview import Details
    from armlet.stores.tally import OutcomeCounts

ARMS: Final = 12  # columns of the table by arm
CLOSE: Final = 0.005  # of the total: spending that is as planned

_COLUMNS: Final = (
    Column("outcome", "name"),
    Column("one is worth", "n"),
    Column("mean", "n"),
    Column("decisions with it", "n"),
)


def outcome_cards(found: Details) -> Iterator[str]:
    """Return what there is to say of outcomes and of their budget; nothing of a loop with one reward."""
    if found.weights is not None:
        yield _outcomes(found, found.weights)
        if found.budget is not None:
            yield _budget(found.budget, found.weights)


def _outcomes(found: Details, weights: Mapping[str, float]) -> str:
    of_all = {each.outcome: each for each in found.outcomes if each.arm is None}
    rows = [
        (_name(name, found), words.plain(weight), _mean(of_all.get(name)), _values(of_all.get(name)))
        for name, weight in weights.items()
    ]
    about = (
        "A decision is worth the sum of its outcomes by these weights, which is the reward on the rest of this page. "
        "Means are about the arms that were chosen."
    )
    parts = [text(about, "soft small"), table(_COLUMNS, rows), _by_arm(found, weights)]
    return card("outcomes", "Outcomes", parts, width="half" if found.budget is not None else "")


def _name(name: str, found: Details) -> str:
    return words.label(name, 40) + (' <span class="tag">known</span>' if name in found.known else "")


def _mean(found: OutcomeCounts | None) -> str:
    return "–" if found is None or found.mean is None else words.plain(found.mean)


def _values(found: OutcomeCounts | None) -> str:
    return words.count(0 if found is None else found.values)


def _by_arm(found: Details, weights: Mapping[str, float]) -> str:
    cells = {(each.outcome, each.arm): each for each in found.outcomes if each.arm is not None}
    arms = list(dict.fromkeys(arm for _, arm in cells))
    if not arms:
        return ""
    columns = (Column("mean of"), *(Column(words.shorten(words.visible(arm), 24), "n") for arm in arms[:ARMS]))
    rows = [(words.label(name, 40), *(_mean(cells.get((name, arm))) for arm in arms[:ARMS])) for name in weights]
    parts = [wide_table("Means of outcomes by arm", columns, rows)]
    if len(arms) > ARMS:
        parts.append(text(f"And {words.count(len(arms) - ARMS)} more arms.", "soft"))
    return more("outcomes-by-arm", "Means by arm", parts)


# ---- a budget


def _budget(found: Spending, weights: Mapping[str, float]) -> str:
    of = words.label(found.budget.outcome, 40)
    part = words.percent(max(found.spent, 0.0) / found.total)
    share = f"<small>of {words.plain(found.total)} {of} spent ({part})</small>"
    parts = [
        html_text(f"{words.plain(found.spent)} {share}", "figure"),
        _bar(found),
        text(" ".join(_against_plan(found))),
        html_text(_price(found, weights)),
    ]
    if found.budget.hard:
        sentence = (
            "The budget is hard: arms that could exceed it are not played, and where none is left nothing is decided."
        )
        parts.append(text(sentence, "soft"))
    return card("budget", "Budget", parts, width="half")


def _bar(found: Spending) -> str:
    planned = min(found.decisions / found.budget.length, 1.0)
    ends = "".join(f"<span>{each}</span>" for each in ("0", "the line: as planned", words.plain(found.total)))
    bar = svg.spent_bar(found.spent / found.total, planned)
    return f'<figure class="scale">{bar}<div class="ends" aria-hidden="true">{ends}</div></figure>'


def _against_plan(found: Spending) -> Iterator[str]:
    budget, planned = found.budget, found.total * min(found.decisions / found.budget.length, 1.0)
    span = "this period" if budget.period is not None else "the horizon"
    yield f"After {words.count(found.decisions)} of the {words.count(budget.length)} decisions of {span},"
    ahead = found.spent - planned
    if abs(ahead) <= CLOSE * found.total:
        yield f"that is as planned ({words.plain(planned)})."
    else:
        than = "more than planned" if ahead > 0 else "less than planned"
        yield f"that is {words.plain(abs(ahead))} {than} ({words.plain(planned)})."
    if found.decisions_left:
        each = max(found.left, 0.0) / found.decisions_left
        yield f"{words.plain(found.left)} is left, {words.plain(each)} for each decision to come."
    else:
        yield f"{words.plain(found.left)} is left, and no decision is to come: the price stays as it is."
    if found.waiting:
        yield f"Of {words.count(found.waiting)} decisions it is not yet reported."


def _price(found: Spending, weights: Mapping[str, float]) -> str:
    of = words.label(found.budget.outcome, 40)
    if found.price <= 0.0:
        return f"The price of one {of} is <b>0</b>: the budget does not bind now."
    weight = weights[found.budget.outcome]
    return (
        f"The price of one {of} is <b>{words.plain(found.price)}</b>: it counts as {words.plain(weight - found.price)} "
        f"rather than {words.plain(weight)}."
    )
