"""What `armlet advise` says: sentences and tables that the terminal and the page share."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from armlet.advice.runs import explorations, explorations_as_printed
from armlet.report.tables import Table

if TYPE_CHECKING:
    from armlet.advice.answer import Advice, Wrong

WIDTH: Final = 100  # of the terminal's lines
LABEL: Final = 20


def lines(advice: Advice, per_day: int | None) -> list[str]:
    """Say it all for a terminal."""
    listed = [headline(advice), *textwrap.wrap(basis(advice), WIDTH), "", *columns(choices(advice)), ""]
    for label, text in sentences(advice, per_day):
        listed += textwrap.wrap(text, WIDTH, initial_indent=f"{label:{LABEL}}", subsequent_indent=" " * LABEL)
    listed += ["", *columns(rivals(advice)), *textwrap.wrap(advice.others.sentence + ".", WIDTH)]
    if advice.checks:
        listed += ["", *columns(checks(advice))]
    listed += ["", "How to use it:", *(f"  {line}" for line in usage(advice))]
    for note in advice.notes:
        listed += textwrap.wrap(f"Note: {note}.", WIDTH, subsequent_indent="  ")
    return listed


def headline(advice: Advice) -> str:
    """Say what to do."""
    return f"Explore with p = {exact(advice.p)} over {advice.horizon:,} decisions."


def basis(advice: Advice) -> str:
    """Say what that rests on."""
    problems = "1 problem" if advice.problems == 1 else f"{advice.problems:,} problems"
    return f"Based on {advice.source}: {problems}, {advice.runs:,} simulated runs of ContextualEpsilonGreedy."


def sentences(advice: Advice, per_day: int | None) -> list[tuple[str, str]]:
    """Give what follows from the choice, each with the question that it answers in a word or two."""
    return [
        ("Exploration", _bill(advice)),
        ("Expected regret", _regret(advice)),
        ("One rollout", _rollout(advice)),
        ("Best arm found", _found(advice, per_day)),
        ("Half or twice", _wrongs(advice)),
        ("How sure", _sure(advice)),
        ("More data", _more_data(advice)),
        ("The theorem", _theorem(advice)),
    ]


def usage(advice: Advice) -> list[str]:
    """Give the code that follows the advice, and the code that does without."""
    return [
        f"policy = armlet.ContextualEpsilonGreedy(p={exact(advice.p)})",
        "# or let it find p as it goes:",
        f'policy = armlet.ContextualEpsilonGreedy(p="auto", horizon={advice.horizon})',
    ]


def choices(advice: Advice) -> Table:
    """Set the recommended p beside half of it, twice of it and no choice at all."""
    r = advice.regret
    rows = [
        (
            f"p = {exact(advice.p)}, recommended",
            f"{number(r.mean)} {interval(r.interval)}",
            _explored(advice, advice.p),
            "",
        )
    ]
    for name, wrong in (("half of it", advice.half), ("twice of it", advice.double)):
        if wrong is not None:
            cells = number(wrong.mean), _explored(advice, wrong.p), f"{wrong.extra:+.0%}"
            rows.append((f"p = {exact(wrong.p)}, {name}", *cells))
    extra = f"{r.random / r.mean - 1:+,.0%}" if r.mean > 0 else ""
    rows.append(("random play throughout", number(r.random), "100%", extra))
    head = ("choice", f"regret, {advice.unit} [95 % interval]", "explored", "more regret")
    return Table(caption=f"Regret over {advice.horizon:,} decisions", head=head, rows=tuple(rows))


def rivals(advice: Advice) -> Table:
    """Set LinUCB and Thompson sampling beside ContextualEpsilonGreedy."""
    o = advice.others
    rows = [("ContextualEpsilonGreedy", f"p = {exact(advice.p)}", f"{number(o.ours)} {interval(o.interval)}")]
    rows += [(each.name, each.setting, f"{number(each.mean)} {interval(each.interval)}") for each in o.rivals]
    head = ("policy", "setting", f"regret, {advice.unit} [95 % interval]")
    return Table(caption=f"Other policies by decision {o.horizon:,}: {o.note}", head=head, rows=tuple(rows))


def checks(advice: Advice) -> Table:
    """Set what each arm is worth by the model beside what the propensities say."""
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


def day(decision: int, per_day: int) -> int:
    """Give the day of a decision, the first day being 1.

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


def _regret(advice: Advice) -> str:
    r, unit = advice.regret, advice.unit
    text = (
        f"{number(r.mean)} {unit} {interval(r.interval)} in all, exploration included: what is missing beside always "
        f"choosing the best arm, {number(1000 * r.mean / advice.horizon)} {unit} in 1,000 decisions. "
        f"Playing at random would miss {number(r.random)}"
    )
    return f"{text}; {1 - r.mean / r.random:.0%} of that is saved." if r.random > 0 else f"{text}: all arms are alike."


def _rollout(advice: Advice) -> str:
    low, high = advice.regret.predictive
    return f"yours will be one of many: between {number(low)} and {number(high)} {advice.unit} in 95 of 100 cases."


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
    saving, unit = advice.more_data, advice.unit
    amount = f"at most {number(saving.regret)} {unit} ({saving.share:.0%} of the regret)"
    if saving.share < 0.05:
        return f"would change little: knowing the problem fully would save {amount} through a better p."
    return (
        f"knowing the problem fully would save {amount} through a better p; a pilot that costs less than that can pay."
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
    lost = number(share * advice.regret.random)
    return f"{text}, which explores {share:.0%} of all decisions and loses {lost} {advice.unit} by that alone."
