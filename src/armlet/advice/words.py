"""What `armlet advise` says: sentences and tables that the terminal and the page share."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from armlet.advice.runs import explorations, explorations_as_printed
from armlet.report.document import Table
from armlet.types import Estimate

if TYPE_CHECKING:
    from armlet.advice.ask import Advice, Wrong
    from armlet.advice.comparison import Played

WIDTH: Final = 100  # of the terminal's lines
LABEL: Final = 20


def lines(advice: Advice, per_day: int | None) -> list[str]:
    """Describe it all for a terminal."""
    listed = [*textwrap.wrap(headline(advice), WIDTH), *textwrap.wrap(for_a_log(advice), WIDTH)]
    listed += [*textwrap.wrap(basis(advice), WIDTH), "", *columns(policies(advice)), ""]
    listed += _labelled(sentences(advice))
    listed += ["", *columns(choices(advice)), "", *_labelled(about_p(advice, per_day))]
    if advice.checks:
        listed += ["", *columns(checks(advice))]
    listed += ["", "How to use it:", *(f"  {line}" for line in usage(advice))]
    for note in advice.notes:
        listed += textwrap.wrap(f"Note: {note}.", WIDTH, subsequent_indent="  ")
    return listed


def _labelled(said: list[tuple[str, str]]) -> list[str]:
    return [
        line
        for label, text in said
        for line in textwrap.wrap(text, WIDTH, initial_indent=f"{label:{LABEL}}", subsequent_indent=" " * LABEL)
    ]


def headline(advice: Advice) -> str:
    """Return which policy to take, and what it loses."""
    o = advice.policies
    best, unit = o.recommended, advice.unit
    loses = f"loses about {number(best.mean)} {interval(best.interval)} {unit} over {_span(advice)}"
    if best.difference is None:
        return f"Leave policy= out: the default {loses}."
    return f"Take {_short(best)}: it {loses}, {more(best.difference)} than the default."


def for_a_log(advice: Advice) -> str:
    """Describe what to take instead for a log to evaluate other policies from, and what that costs."""
    o = advice.policies
    if o.recommended is o.exploring:
        return "Other policies can be evaluated from its log."
    what = f"{_short(o.exploring)}, which loses about {more(o.price)}"
    return f"Only if you will evaluate other policies from this log: {what}."


def basis(advice: Advice) -> str:
    """Describe what that rests on."""
    o = advice.policies
    environments = "1 environment" if advice.problems == 1 else f"{advice.problems:,} environments"
    first = "it" if o.problems == advice.problems == 1 else f"the first {o.problems:,}"
    return (
        f"Based on {advice.source}: {environments}, {advice.runs:,} simulated runs for the choice of p; "
        f"every policy {_times(o.runs)} on {first}, on the same contexts and seeds."
    )


def sentences(advice: Advice) -> list[tuple[str, str]]:
    """Describe what follows for the policy to take, each with the question that it answers in a word or two."""
    return [("Your run", _run(advice)), ("Other policies", _others(advice))]


def about_p(advice: Advice, per_day: int | None) -> list[tuple[str, str]]:
    """Describe what follows from exploring by p, each with the question that it answers in a word or two."""
    return [
        ("Exploration", _bill(advice)),
        ("Best arm found", _found(advice, per_day)),
        ("Half or twice", _wrongs(advice)),
        ("How sure", _sure(advice)),
        ("A better p", _more_data(advice)),
        ("The theorem", _theorem(advice)),
    ]


def usage(advice: Advice) -> list[str]:
    """Return the code that follows the advice, and the code for a log to evaluate from."""
    o = advice.policies
    first = (
        "bandit = armlet.Bandit(arms, dim)  # policy= left out"
        if o.recommended is o.default
        else f"bandit = armlet.Bandit(arms, dim, policy={o.recommended.code})"
    )
    return [
        first,
        "# only for a log to evaluate other policies from:",
        f"policy = {o.exploring.code}",
        "# or let it find p as it goes:",
        f"policy = armlet.AutoEpsilonGreedy(horizon={advice.horizon})",
    ]


def policies(advice: Advice) -> Table:
    """Set the policies that were played next to each other."""
    o = advice.policies
    rows = [
        (
            _label(row, advice),
            f"{number(row.mean)} {interval(row.interval)}",
            "" if row.difference is None else f"{signed(row.difference.value)} {signed_interval(row.difference)}",
        )
        for row in o.rows
    ]
    random = (("random play", number(o.random), signed(o.random - o.default.mean)),)
    head = ("policy", f"loses, {advice.unit} [one run]", "beyond the default [average]")
    caption = (
        f"What is lost against the best arm over {_span(advice)}, with 95 % intervals: of the loss, for one run such "
        "as yours; of the difference, for its average"
    )
    return Table(caption=caption, head=head, rows=(*rows, *random))


def choices(advice: Advice) -> Table:
    """Set the recommended p next to half of it and twice of it."""
    rows = [(f"p = {exact(advice.p)}, recommended", _explored(advice, advice.p), "")]
    for name, wrong in (("half of it", advice.half), ("twice of it", advice.double)):
        if wrong is not None:
            rows.append((f"p = {exact(wrong.p)}, {name}", _explored(advice, wrong.p), f"{wrong.extra:+.0%}"))
    caption = f"Exploring by p, for a log to evaluate other policies from, over {advice.horizon:,} decisions"
    return Table(caption=caption, head=("choice", "explored", "loses more"), rows=tuple(rows))


def checks(advice: Advice) -> Table:
    """Set what each arm is worth by the model next to what the propensities say."""
    rows = [
        (
            str(c.arm),
            f"{c.model:.4g}",
            f"{c.weighted:.4g} [{c.interval[0]:.4g} to {c.interval[1]:.4g}]",
            _agrees(c.agrees),
        )
        for c in advice.checks
    ]
    head = ("arm", "by the linear model", "by propensities [95 % interval]", "")
    caption = f"What always playing one arm would earn a decision, {advice.unit}"
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


def number(value: float) -> str:
    """Write a number with three digits, or all before the point.

    Examples
    --------
    >>> number(4814285.2), number(12.345), number(0.0)
    ('4,814,285', '12.3', '0')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.3g}"


def exact(p: float) -> str:
    """Write p so that it can be read back.

    Examples
    --------
    >>> exact(1048576.0), exact(7.5)
    ('1048576', '7.5')
    """
    return str(int(p)) if p == int(p) else repr(p)


def interval(ends: Sequence[float]) -> str:
    """Write an interval, or that there is none: one run has no spread.

    Examples
    --------
    >>> interval((1.0, 2.5)), interval((0.0, math.inf))
    ('[1 to 2.5]', '[unknown]')
    """
    return f"[{number(ends[0])} to {number(ends[1])}]" if math.isfinite(ends[1]) else "[unknown]"


def signed(value: float) -> str:
    """Write a difference.

    Examples
    --------
    >>> signed(12.34), signed(-0.5)
    ('+12.3', '-0.5')
    """
    return f"+{number(value)}" if value >= 0 else number(value)


def signed_interval(found: Estimate) -> str:
    """Write the interval of a difference.

    Examples
    --------
    >>> signed_interval(Estimate(1.0, -0.5, 2.5))
    '[-0.5 to +2.5]'
    """
    return f"[{signed(found.low)} to {signed(found.high)}]" if math.isfinite(found.high) else "[unknown]"


def more(found: Estimate) -> str:
    """Describe how much more is lost, or less.

    Examples
    --------
    >>> more(Estimate(62.0, 40.0, 84.0)), more(Estimate(-3.0, -10.0, 4.0))
    ('62 [40 to 84] more', '3 [-4 to 10] less')
    """
    if found.value < 0:
        return f"{number(-found.value)} {interval((-found.high, -found.low))} less"
    return f"{number(found.value)} {interval((found.low, found.high))} more"


def day(decision: int, per_day: int) -> int:
    """Return the day of a decision, the first day being 1.

    Examples
    --------
    >>> day(20_000, 20_000), day(20_001, 20_000)
    (1, 2)
    """
    return math.ceil(decision / per_day)


def _explored(advice: Advice, p: float) -> str:
    return f"{explorations(p, advice.n_arms, advice.horizon) / advice.horizon:.2%}"


def _agrees(agrees: bool) -> str:
    return "they agree" if agrees else "they disagree"


def _bill(advice: Advice) -> str:
    b = advice.bill
    return (
        f"about {b.explored:,.0f} of {advice.horizon:,} decisions ({b.share:.2%}) are made at random to learn from; "
        f"that costs about {number(b.lost)} {advice.unit}."
    )


def _span(advice: Advice) -> str:
    """Describe over how many decisions policies were played."""
    h, T = advice.policies.horizon, advice.horizon
    return f"{T:,} decisions" if h == T else f"the first {h:,} of {T:,} decisions"


def _short(row: Played) -> str:
    return row.code.removeprefix("armlet.")


def _label(row: Played, advice: Advice) -> str:
    o = advice.policies
    role = "the default" if row is o.default else _short(row)
    return f"{role}, recommended" if row is o.recommended else role


def _times(runs: int) -> str:
    return "once" if runs == 1 else f"{runs:,} times"


def _run(advice: Advice) -> str:
    o, unit = advice.policies, advice.unit
    best = o.recommended
    ends = (
        f"between {number(best.interval.low)} and {number(best.interval.high)} {unit} in 95 of 100 cases"
        if math.isfinite(best.interval.high)
        else "of unknown size, with a single run behind it"
    )
    text = (
        f"yours will be one of many: its loss is {ends}. The mean is {number(1000 * best.mean / o.horizon)} {unit} in "
        f"1,000 decisions. Random play would lose {number(o.random)}"
    )
    saved = f"; {1 - best.mean / o.random:.0%} of that is saved." if o.random > 0 else ": all arms are alike."
    return text + saved


def _others(advice: Advice) -> str:
    o = advice.policies
    least = min(o.rows, key=lambda row: row.mean)
    cut = "" if o.horizon == advice.horizon else " Longer runs of policies that draw every step take too long."
    if least is o.recommended or least.difference is None:
        return f"none that was played loses less on average; widths of LinUCB and ThompsonSampling are tuned.{cut}"
    clear = "which is not clear" if least.difference.high >= 0 else "which is too little to matter"
    return f"{_short(least)} loses {more(least.difference)} than the default, {clear}.{cut}"


def _found(advice: Advice, per_day: int | None) -> str:
    gain = "at least 95% of what there is to gain over random play"
    if advice.found_by is None:
        return f"not within {advice.horizon:,} decisions: fewer than 95 of 100 runs come to earn {gain}."
    when = f"by decision {advice.found_by:,}"
    if per_day is not None:
        when += f", day {day(advice.found_by, per_day):,} of {day(advice.horizon, per_day):,}"
    return f"{when}: from there on, 95 of 100 runs earn {gain} when they do not explore."


def _wrongs(advice: Advice) -> str:
    half = _wrong(advice.half, "half of it would not try every arm")
    dear = 4 * advice.p <= advice.horizon  # the grid ends at half of the horizon, unless runs get too dear before
    twice = "twice of it takes too long to simulate" if dear else "twice of it is too much for so few decisions"
    return f"{half}; {_wrong(advice.double, twice)}."


def _wrong(wrong: Wrong | None, otherwise: str) -> str:
    return otherwise if wrong is None else f"p = {exact(wrong.p)} would regret {wrong.extra:.0%} more"


def _sure(advice: Advice) -> str:
    s = advice.sureness
    alike = (
        f"on average every p from {exact(s.low)} to {exact(s.high)} does"
        if s.low < s.high
        else "on average no other p does"
    )
    return f"p = {exact(advice.p)} is within 10% of the best p tried with probability {_chance(s.chance)}; {alike}."


def _chance(chance: float) -> str:
    return "above 99%" if chance > 0.99 else f"{chance:.0%}"


def _more_data(advice: Advice) -> str:
    saving = advice.more_data
    amount = f"at most {number(saving.regret)} {advice.unit}, {saving.share:.0%} of what this p loses"
    return (
        f"with the environment known, the p that suits it would save {amount}. More data can save no more than that "
        "through p; it would also narrow the intervals above, which this does not count."
    )


def _theorem(advice: Advice) -> str:
    asked, T = advice.theorem_p, advice.horizon
    if asked is None:
        return f"Theorem 2 gives no p here: {advice.theorem_reason}."
    text = f"Theorem 2 as printed asks for p = {number(asked)}"
    if asked >= T:
        times = number(asked / T)
        return f"{text}, {times} times the horizon: every decision would be random, so it is useless in practice."
    share = explorations_as_printed(asked, T) / T
    lost = number(share * advice.bill.lost / advice.bill.share)
    return f"{text}, which explores {share:.0%} of all decisions and loses {lost} {advice.unit} by that alone."
