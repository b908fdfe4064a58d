"""What `armlet advise` says: sentences and tables that the terminal, the page and JSON share.

A policy comes first, with what is earned next to an A/B test and to doing nothing; then p, for a log to evaluate other
policies from. In sentences brackets hold the range for a single run, 95 of 100; tables say what theirs hold.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any, Final

from armlet.advice.ab_test import LEVEL, POWER
from armlet.advice.runs import explorations, explorations_as_printed
from armlet.errors import InvalidValueError
from armlet.report.document import Table
from armlet.report.numbers import column, common_places, percent, show, show_interval
from armlet.types import Estimate

if TYPE_CHECKING:
    from armlet.advice.ask import Advice, Money, Wrong
    from armlet.advice.comparison import Earnings

WIDTH: Final = 100  # of the terminal's lines
LABEL: Final = 20


def title(advice: Advice) -> str:
    """Return what an advice is about."""
    return f"Which policy to take, and what it {_verb(advice)}"


def lines(advice: Advice) -> list[str]:
    """Describe it all for a terminal."""
    listed = [line for sentence in answer(advice) for line in textwrap.wrap(sentence, WIDTH)]
    listed += ["", *columns(policies(advice)), "", *_labelled(sentences(advice)), ""]
    listed += [*columns(choices(advice)), "", *_labelled(about_p(advice))]
    if advice.checks:
        listed += ["", *columns(checks(advice))]
    listed += ["", "How to use it:", *(f"  {line}" for line in usage(advice)), "", *textwrap.wrap(basis(advice), WIDTH)]
    for note in advice.notes:
        listed += textwrap.wrap(f"Note: {note}.", WIDTH, subsequent_indent="  ")
    return listed


def _labelled(said: list[tuple[str, str]]) -> list[str]:
    return [
        line
        for label, text in said
        for line in textwrap.wrap(text, WIDTH, initial_indent=f"{label:{LABEL}}", subsequent_indent=" " * LABEL)
    ]


def answer(advice: Advice) -> list[str]:
    """Return which policy to take and what that earns, in money too if asked; then what to take for a log."""
    return [sentence for sentence in (headline(advice), in_money(advice), for_a_log(advice)) if sentence]


def headline(advice: Advice) -> str:
    """Return which policy to take, and what it earns next to an A/B test and to doing nothing."""
    o, unit, over = advice.policies, advice.unit, _span(advice)
    best, gain = o.recommended, _gain(o.recommended)
    if _test_is_best(advice):
        return (
            f"Run an A/B test of {o.ab_test.plan.decisions:,} decisions and keep the winner: it {_verb(advice)} about "
            f"{_more(advice, _turned(gain), unit)} than {policy(advice)} over {over}."
        )
    take = "the default policy (leave policy= out)" if best is o.default else _short(best)
    if advice.mean == "unknown":
        idle = show(abs(best.gain.value - o.nothing.gain.value), common_places([gain]))
        word = _word(advice, best.gain.value - o.nothing.gain.value)
        return (
            f"Take {take}: it {_verb(advice)} about {_more(advice, gain, unit)} than an A/B test over {over}, and "
            f"{idle} {word} than doing nothing."
        )
    places = common_places([gain])
    total, test, idle = (show(row.total, places) for row in (best, o.ab_test.played, o.nothing))
    return (
        f"Take {take}: it {_verb(advice)} about {total} {unit} over {over} instead of {test} with an A/B test, "
        f"{_more(advice, gain)}; doing nothing {_verb(advice)} {idle}."
    )


def in_money(advice: Advice) -> str:
    """Return what the difference between the policy and an A/B test is worth; nothing if no value was given."""
    if advice.money is None:
        return ""
    gain, than = _gain(advice.policies.recommended), "an A/B test"
    if _test_is_best(advice):
        gain, than = _turned(gain), policy(advice)
    return f"At {price(advice.money)} each, that is about {_worth(advice, gain)} than {than} over {_span(advice)}."


def for_a_log(advice: Advice) -> str:
    """Describe what to take instead for a log to evaluate other policies from, and what that costs."""
    o = advice.policies
    if o.recommended is o.exploring:
        return "Other policies can be evaluated from its log."
    gain = _turned(Estimate(o.price.value, *o.price_range))
    extra = "" if advice.money is None else f" ({_worth(advice, gain)})"
    return (
        f"Only if you will evaluate other policies from this log: {_short(o.exploring)}, which {_verb(advice)} about "
        f"{_more(advice, gain, advice.unit)}{extra}."
    )


def basis(advice: Advice) -> str:
    """Describe what that rests on."""
    o = advice.policies
    environments = "1 environment" if o.problems == 1 else f"{o.problems:,} environments"
    return (
        f"From {advice.source}: every choice was played {_times(o.runs)} in {environments}, on the same contexts, "
        f"rewards and seeds; {advice.runs:,} more runs chose p."
    )


def sentences(advice: Advice) -> list[tuple[str, str]]:
    """Describe what follows for the policy to take, each with the question that it answers in a word or two."""
    return [("Your run", your_run(advice)), *compared(advice)]


def compared(advice: Advice) -> list[tuple[str, str]]:
    """Describe what the policy to take is compared with."""
    return [
        ("The A/B test", _test(advice)),
        ("Doing nothing", _nothing(advice)),
        ("Other policies", _others(advice)),
    ]


def about_p(advice: Advice) -> list[tuple[str, str]]:
    """Describe what follows from exploring by p, each with the question that it answers in a word or two."""
    return [
        ("Exploration", _bill(advice)),
        ("Best arm found", _found(advice)),
        ("Half or twice", _wrongs(advice)),
        ("How sure", _sure(advice)),
        ("A better p", _more_data(advice)),
        ("The theorem", _theorem(advice)),
    ]


def usage(advice: Advice) -> list[str]:
    """Return the code that follows the advice, and the code for a log to evaluate from."""
    o = advice.policies
    costs = "" if advice.objective == "max" else ', objective="min"'
    first = (
        f"bandit = armlet.Bandit(arms, dim{costs})  # policy= left out"
        if o.recommended is o.default
        else f"bandit = armlet.Bandit(arms, dim{costs}, policy={o.recommended.code})"
    )
    return [
        first,
        "# only for a log to evaluate other policies from:",
        f"policy = {o.exploring.code}",
        "# or let it find p as it goes:",
        f"policy = armlet.AutoEpsilonGreedy(horizon={advice.horizon})",
    ]


def listed(advice: Advice) -> list[Earnings]:
    """Return all choices: the recommended one, then by what they earn."""
    o = advice.policies
    others = [*(row for row in o.rows if row is not o.recommended), o.ab_test.played, o.nothing, o.random]
    # doing nothing may be random play: the last bits of equal gains depend on the processor
    return [o.recommended, *sorted(others, key=lambda row: -float(f"{row.gain.value:.9g}"))]


def policies(advice: Advice) -> Table:
    """Set all choices next to each other by what they earn."""
    rows = listed(advice)
    cells = [
        [_label(advice, row) for row in rows],
        column([Estimate(row.total, *row.total_range) for row in rows]),
        column(
            [(_turned(row.gain) if advice.objective == "min" else row.gain) if row.gain.value else 0.0 for row in rows]
        ),
    ]
    head = ["choice", f"{_verb(advice)}, {advice.unit} [single run]", "against the A/B test"]
    if advice.money is not None:
        cells.append(column([row.gain.value * advice.money.value for row in rows]))
        head.append(f"in {advice.money.currency}")
    what = "What every choice" if advice.mean == "known" else "What every choice, beyond a random arm,"
    caption = (
        f"{what} {_verb(advice)} over {_span(advice)}, with 95 % intervals: of the total, the range for a single run; "
        "of the difference, for its average"
    )
    return Table(caption=caption, head=tuple(head), rows=tuple(zip(*cells, strict=True)))


def frame(advice: Advice) -> dict[str, list[Any]]:
    """Return what every choice earns as columns of numbers."""
    rows = listed(advice)
    money = {} if advice.money is None else {"worth": [row.gain.value * advice.money.value for row in rows]}
    return {
        "choice": [_label(advice, row) for row in rows],
        "total": [row.total for row in rows],
        "total_low": [row.total_range.low for row in rows],
        "total_high": [row.total_range.high for row in rows],
        "gain": [row.gain.value for row in rows],
        "gain_low": [row.gain_range.low for row in rows],
        "gain_high": [row.gain_range.high for row in rows],
        **money,
        "lost": [row.lost for row in rows],
    }


def choices(advice: Advice) -> Table:
    """Set the recommended p next to half of it and twice of it."""
    rows = [(f"p = {exact(advice.p)}, recommended", _explored(advice, advice.p), "")]
    for name, wrong in (("half of it", advice.half), ("twice of it", advice.double)):
        if wrong is not None:
            rows.append(
                (f"p = {exact(wrong.p)}, {name}", _explored(advice, wrong.p), f"{wrong.extra:+.0%}".replace("%", " %"))
            )
    caption = f"Exploring by p, for a log to evaluate other policies from, over {advice.horizon:,} decisions"
    return Table(caption=caption, head=("choice", "explored", "loses more"), rows=tuple(rows))


def checks(advice: Advice) -> Table:
    """Set what each arm is worth by the model next to what the propensities say."""
    weighted = column([Estimate(c.weighted, *c.interval) for c in advice.checks])
    rows = [
        (str(c.arm), show(c.model), text, _agrees(c.agrees)) for c, text in zip(advice.checks, weighted, strict=True)
    ]
    head = ("arm", "by the linear model", "by propensities [95 % interval]", "")
    caption = f"What always playing one arm {_verb(advice)} a decision, {advice.unit}"
    return Table(caption=caption, head=head, rows=tuple(rows))


def columns(table: Table) -> list[str]:
    r"""Lay a table out for a terminal: the first column to the left, the others to the right.

    Examples
    --------
    >>> print(*columns(Table(caption="Costs", head=("policy", "regret"), rows=(("LinUCB", "12"),))), sep="\n")
    Costs
      policy   regret
      LinUCB       12
    """
    widths = [max(map(len, cells)) for cells in zip(table.head, *table.rows, strict=True)]
    laid = [
        "  "
        + f"{row[0]:<{widths[0]}}"
        + "".join(f"{cell:>{width + 3}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in (table.head, *table.rows)
    ]
    return [*textwrap.wrap(table.caption, WIDTH), *(line.rstrip() for line in laid)]


def exact(p: float) -> str:
    """Write p so that it can be read back.

    Examples
    --------
    >>> exact(1048576.0), exact(7.5)
    ('1048576', '7.5')
    """
    return str(int(p)) if p == int(p) else repr(p)


def day(decision: int, per_day: int) -> int:
    """Return the day of a decision, the first day being 1.

    Examples
    --------
    >>> day(20_000, 20_000), day(20_001, 20_000)
    (1, 2)
    """
    return math.ceil(decision / per_day)


def your_run(advice: Advice) -> str:
    """Describe what a single run may come to."""
    o, best = advice.policies, advice.policies.recommended
    places = common_places([_gain(best)])
    low, high = (_more(advice, Estimate(end, end, end), places=places) for end in best.gain_range)
    total = ""
    if advice.mean == "known":
        ends = " and ".join(show_interval(best.total_range).strip("[]").split(" to "))
        total = f"between {ends} {advice.unit}, "
    saved = "all arms are alike" if o.random.lost == 0 else f"{percent(1 - best.lost / o.random.lost)} of that is saved"
    return (
        f"yours will be one of many: in 95 of 100 it {_verb(advice)} {total}from {low} to {high} than an A/B test. "
        f"Against always playing the best arm for each context random play loses {show(o.random.lost)} {advice.unit}; "
        f"{saved}. Brackets above hold 95 of 100 single runs."
    )


def _test_is_best(advice: Advice) -> bool:
    """Return whether an A/B test surely earns more, on average."""
    return advice.policies.recommended.gain.high < 0


def policy(advice: Advice) -> str:
    """Name the policy to take in a sentence."""
    o = advice.policies
    return "the default policy" if o.recommended is o.default else _short(o.recommended)


def _verb(advice: Advice) -> str:
    return "earns" if advice.objective == "max" else "costs"


def _word(advice: Advice, gain: float) -> str:
    return "more" if (gain >= 0) == (advice.objective == "max") else "less"


def _gain(row: Earnings) -> Estimate:
    """Return what a choice earns beyond the A/B test, with the range for a single run."""
    return Estimate(row.gain.value, *row.gain_range)


def _turned(estimate: Estimate) -> Estimate:
    return Estimate(-estimate.value, -estimate.high, -estimate.low)


def _more(advice: Advice, gain: Estimate, unit: str = "", places: int | None = None) -> str:
    """Describe how much more is earned, or less; of costs, how much less is spent, or more."""
    text = show(gain if gain.value >= 0 else _turned(gain), places)
    return f"{text} {unit} {_word(advice, gain.value)}" if unit else f"{text} {_word(advice, gain.value)}"


def _worth(advice: Advice, gain: Estimate) -> str:
    """Describe the same in money."""
    if advice.money is None:
        raise InvalidValueError("money is None; ask with value= and currency=")
    worth = Estimate(*(advice.money.value * each for each in (gain.value, gain.low, gain.high)))
    return f"{advice.money.currency} {_more(advice, worth)}"


def price(money: Money) -> str:
    """Write what a unit is worth with the two decimals that money has, or as many as it needs."""
    text = f"{money.value:,.2f}" if round(money.value, 2) == money.value else f"{money.value:,g}"
    return f"{money.currency} {text}"


def _test(advice: Advice) -> str:
    o = advice.policies
    test, plan = o.ab_test, o.ab_test.plan
    cut = "" if plan.asked == plan.decisions else f", of which half of the horizon, {plan.decisions:,}, is taken"
    text = (
        f"every arm equally likely for {plan.decisions:,} decisions, then the winner for all contexts. To find a "
        f"difference of {show(plan.difference)} {advice.unit} between two of {plan.n_arms} arms (two-sided at "
        f"{percent(LEVEL)}, power {percent(POWER)}; a reward deviates by {show(plan.deviation)}) takes {plan.asked:,} "
        f"decisions{cut}."
    )
    if test.best_decisions == plan.decisions:
        return f"{text} No other length that was tried, from a sixteenth of it to twice, does better here."
    gain = abs(test.best_total - test.played.total)
    word = _word(advice, 1.0)
    return f"{text} In hindsight {test.best_decisions:,} decisions are best here: {show(gain)} {advice.unit} {word}."


def _nothing(advice: Advice) -> str:
    o = advice.policies
    if advice.current is not None:
        return f"{advice.current!r}, the current arm, for every decision. Random play draws any arm at every decision."
    return (
        "one arm for every decision, which may be any, since no current arm is named; on average that is what random "
        f"play {_verb(advice)}, with a wider range: {show_interval(o.nothing.total_range)} and "
        f"{show_interval(o.random.total_range)}."
    )


def _explored(advice: Advice, p: float) -> str:
    return f"{100 * explorations(p, advice.n_arms, advice.horizon) / advice.horizon:.2f} %"


def _agrees(agrees: bool) -> str:
    return "they agree" if agrees else "they disagree"


def _bill(advice: Advice) -> str:
    b = advice.bill
    return (
        f"about {b.explored:,.0f} of {advice.horizon:,} decisions ({percent(b.share)}) are made at random to learn "
        f"from; that costs about {show(b.lost)} {advice.unit}."
    )


def _span(advice: Advice) -> str:
    """Describe over how many decisions policies were played."""
    h, T = advice.policies.horizon, advice.horizon
    return f"{T:,} decisions" if h == T else f"the first {h:,} of {T:,} decisions"


def _short(row: Earnings) -> str:
    return row.code.removeprefix("armlet.")


def _label(advice: Advice, row: Earnings) -> str:
    o = advice.policies
    if row is o.ab_test.played:
        return f"A/B test of {o.ab_test.plan.decisions:,} decisions"
    if row is o.nothing:
        return "doing nothing" if advice.current is None else f"doing nothing: always {advice.current}"
    if row is o.random:
        return "random play"
    role = "the default" if row is o.default else _short(row)
    return f"{role}, recommended" if row is o.recommended else role


def _times(runs: int) -> str:
    return "once" if runs == 1 else f"{runs:,} times"


def _others(advice: Advice) -> str:
    o = advice.policies
    least = min(o.rows, key=lambda row: row.lost)
    cut = "" if o.horizon == advice.horizon else " Longer runs of policies that draw every step take too long."
    if least is o.recommended or least.difference is None:
        return f"none that was played is better on average; widths of LinUCB and ThompsonSampling are tuned.{cut}"
    gain = _turned(least.difference)
    clear = "which is not clear" if least.difference.high >= 0 else "which is too little to matter"
    return f"{_short(least)} {_verb(advice)} {_more(advice, gain)} than the default on average, {clear}.{cut}"


def _found(advice: Advice) -> str:
    gain = "at least 95 % of what there is to gain over random play"
    if advice.found_by is None:
        return f"not within {advice.horizon:,} decisions: fewer than 95 of 100 runs come to earn {gain}."
    when = f"by decision {advice.found_by:,}"
    if advice.per_day is not None:
        when += f", day {day(advice.found_by, advice.per_day):,} of {day(advice.horizon, advice.per_day):,}"
    return f"{when}: from there on, 95 of 100 runs earn {gain} when they do not explore."


def _wrongs(advice: Advice) -> str:
    half = _wrong(advice.half, "half of it would not try every arm")
    dear = 4 * advice.p <= advice.horizon  # the grid ends at half of the horizon, unless runs get too dear before
    twice = "twice of it takes too long to simulate" if dear else "twice of it is too much for so few decisions"
    return f"{half}; {_wrong(advice.double, twice)}."


def _wrong(wrong: Wrong | None, otherwise: str) -> str:
    return otherwise if wrong is None else f"p = {exact(wrong.p)} would lose {100 * wrong.extra:.0f} % more"


def _sure(advice: Advice) -> str:
    s = advice.sureness
    alike = (
        f"on average every p from {exact(s.low)} to {exact(s.high)} does"
        if s.low < s.high
        else "on average no other p does"
    )
    return f"p = {exact(advice.p)} is within 10 % of the best p tried with probability {_chance(s.chance)}; {alike}."


def _chance(chance: float) -> str:
    return "above 99 %" if chance > 0.99 else f"{100 * chance:.0f} %"


def _more_data(advice: Advice) -> str:
    saving = advice.more_data
    amount = f"at most {show(saving.regret)} {advice.unit}, {percent(saving.share)} of what this p loses"
    return (
        f"with the environment known, the p that suits it would save {amount}. More data can save no more than that "
        "through p; it would also narrow the intervals above, which this does not count."
    )


def _theorem(advice: Advice) -> str:
    p, T = advice.theorem_p, advice.horizon
    if p is None:
        return f"Theorem 2 gives no p here: {advice.theorem_reason}."
    text = f"Theorem 2 as printed asks for p = {show(p)}"
    if p >= T:
        times = show(p / T)
        return f"{text}, {times} times the horizon: every decision would be random, so it is useless in practice."
    share = explorations_as_printed(p, T) / T
    lost = show(share * advice.bill.lost / advice.bill.share)
    return f"{text}, which explores {percent(share)} of all decisions and loses {lost} {advice.unit} by that alone."
