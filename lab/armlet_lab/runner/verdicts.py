"""Verdicts in words: the answer in a few sentences, a terminal's lines, a table in Markdown, and JSON.

All of it is a function of the verdicts. A verdict brings the clause that it adds to the conclusion, for each outcome.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Final

from armlet_lab.runner.experiment import Outcome, Role, Statistic, Verdict
from armlet_lab.runner.formulas import FORMULA, plain

PHRASES: Final = {  # of one claim, of several
    Outcome.HOLDS: ("holds", "hold"),
    Outcome.UNDER_READING: ("holds only under a stated reading", "hold only under a stated reading"),
    Outcome.FAILS: ("does not hold", "do not hold"),
    Outcome.UNSETTLED: ("is not settled by these runs", "are not settled by these runs"),
}


def answer(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what was tested, how many claims had each outcome, and what follows: a sentence each.

    Examples
    --------
    >>> from armlet.types import Estimate
    >>> from armlet_lab.runner.experiment import Claim, Criterion
    >>> claim = Claim(key="fig-a", where="Figure (a)", says="Regret grows as log t.", reading="At p = 600.")
    >>> ratio = Statistic("doubling ratio", Estimate(1.9, 1.7, 2.1), Criterion("within", 0.8, 1.3))
    >>> clauses = {Outcome.FAILS: "regret grows faster"}
    >>> for sentence in answer([Verdict(claim=claim, statistics=(ratio,), conclusions=clauses)]):
    ...     print(sentence)
    Tested: 1 claim of the paper, by 1 check against a bound set before the runs.
    1 does not hold.
    Regret grows faster.
    """
    if not verdicts:
        return ["Nothing was tested."]
    return [_tested(verdicts), f"{_listed(counts(verdicts))}.", _concluded(verdicts)]


def _tested(verdicts: Sequence[Verdict]) -> str:
    sources = Counter(_within(verdict.claim.source) for verdict in verdicts)
    (first, many), *others = sources.items()
    counts = [f"{many} {'claim' if many == 1 else 'claims'} of {first}", *(f"{n} of {source}" for source, n in others)]
    checks = [statistic for verdict in verdicts for statistic in verdict.statistics]
    controls = sum(check.role is Role.CONTROL for check in checks)
    by = "1 check against a bound" if len(checks) == 1 else f"{len(checks):,} checks against bounds"
    shown = f"; {controls} of them {'is a control' if controls == 1 else 'are controls'}" if controls else ""
    return f"Tested: {_listed(counts)}, by {by} set before the runs{shown}."


def _within(source: str) -> str:
    return source.replace("The paper", "the paper")


def counts(verdicts: Iterable[Verdict]) -> list[str]:
    """Return how many claims had each outcome that came.

    Examples
    --------
    >>> counts([])
    []
    """
    found = Counter(verdict.outcome for verdict in verdicts)
    return [f"{found[each]} {PHRASES[each][found[each] > 1]}" for each in Outcome if found[each]]


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _concluded(verdicts: Sequence[Verdict]) -> str:
    """Join the clauses of the verdicts that have one, source by source, what holds first; or tell the first verdict."""
    first, sources = verdicts[0], list(dict.fromkeys(verdict.claim.source for verdict in verdicts))
    ordered = sorted(verdicts, key=lambda each: (sources.index(each.claim.source), list(Outcome).index(each.outcome)))
    clauses = [each.conclusions[each.outcome] for each in ordered if each.outcome in each.conclusions]
    whole = "; ".join(clauses) or f"{first.claim.says.rstrip('.')}: {first.outcome}"
    return f"{whole[0].upper()}{whole[1:]}."


def to_text(verdicts: Sequence[Verdict], width: int = 100) -> str:
    """Lay the verdicts out for a terminal: a line each, what it rests on below it, and the answer at the end.

    Examples
    --------
    >>> from armlet.types import Estimate
    >>> from armlet_lab.runner.experiment import Claim, Criterion
    >>> claim = Claim(key="fig-a", where="Figure (a)", says="Regret grows as log t.", reading="At p = 600.")
    >>> ratio = Statistic("doubling ratio", Estimate(1.9, 1.7, 2.1), Criterion("within", 0.8, 1.3))
    >>> print(to_text([Verdict(claim=claim, statistics=(ratio,))], width=60))
    fig-a  Figure (a)  does not hold
        Regret grows as log t.
        As written, 0 of 1 check passed: doubling ratio is 1.90
        [1.70 to 2.10], but passes if the interval lies within
        0.8 to 1.3.
    <BLANKLINE>
    Tested: 1 claim of the paper, by 1 check against a bound set
    before the runs.
    1 does not hold.
    Regret grows as log t: does not hold.
    """
    keys = max((len(verdict.claim.key) for verdict in verdicts), default=0)
    places = max((len(verdict.claim.where) for verdict in verdicts), default=0)
    lines = []
    for verdict in verdicts:
        lines.append(f"{verdict.claim.key:{keys}}  {verdict.claim.where:{places}}  {verdict.outcome}")
        for text in (verdict.claim.says, verdict.reason):
            lines += textwrap.wrap(plain(text), width, initial_indent=" " * 4, subsequent_indent=" " * 4)
    sentences = [line for sentence in answer(verdicts) for line in textwrap.wrap(plain(sentence), width)]
    return "\n".join([*lines, "", *sentences])


def to_markdown(verdicts: Sequence[Verdict]) -> str:
    """Return the answer and a table of the verdicts in Markdown; formulas keep their marks.

    Examples
    --------
    >>> print(to_markdown([]))
    Nothing was tested.
    <BLANKLINE>
    | claim | where | what it says | verdict | reason |
    |---|---|---|---|---|
    """
    rows = [(v.claim.key, v.claim.where, v.claim.says, v.outcome, v.reason) for v in verdicts]
    sentences = " ".join(map(in_a_cell, answer(verdicts)))
    head = [sentences, "", "| claim | where | what it says | verdict | reason |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(map(in_a_cell, row))} |" for row in rows)])


def in_a_cell(text: str) -> str:
    r"""Keep a text inside its cell, and its signs from being markup; formulas are markup.

    Examples
    --------
    >>> in_a_cell(r"a_b | $K_2$")
    'a\\_b \\| $K_2$'
    """
    pieces = re.split(f"({FORMULA.pattern.replace('(', '(?:', 1)})", " ".join(text.split()))
    return "".join(piece if at % 2 else re.sub(r"([\\`*_|<>\[\]#])", r"\\\1", piece) for at, piece in enumerate(pieces))


def to_json(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts and every number behind them as JSON, the same bytes for the same verdicts.

    Examples
    --------
    >>> to_json([])
    '[]'
    """
    return json.dumps([_record(verdict) for verdict in verdicts], indent=1, sort_keys=True, allow_nan=False)


def _record(verdict: Verdict) -> dict[str, object]:
    claim = {name: plain(text) for name, text in asdict(verdict.claim).items()}
    numbers = [_numbers(statistic) for statistic in verdict.statistics]
    return {**claim, "outcome": verdict.outcome, "reason": plain(verdict.reason), "statistics": numbers}


def _numbers(statistic: Statistic) -> dict[str, object]:
    return {
        "name": plain(statistic.name),
        "role": statistic.role,
        "estimate": None if statistic.estimate is None else asdict(statistic.estimate),
        "passes_if": statistic.passes_if,
        "finding": statistic.finding,
        "passed": statistic.passed,
    }
