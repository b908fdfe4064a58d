"""What the bake-off shows: who errs least, over tables, and who beats whom on how many."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

import numpy as np

from armlet.parallel.seeds import Seeds
from armlet.report import plots
from armlet.report.tables import Table
from armlet_lab.contests.bakeoff import vowpal
from armlet_lab.contests.bakeoff.fields import PER_TABLE, SINGLE, Field, mean_norm, norms, tallied, with_hindsight
from armlet_lab.contests.bakeoff.verdicts import held_against
from armlet_lab.runner.experiment import Findings, Section, Verdict

LARGE: Final = 1000
WIDTH: Final = 26  # letters beside a bar
MOST: Final = 50  # tables that are told one by one; the data has them all


def judge(fields: Sequence[Field], policies: Sequence[str], seeds: Seeds) -> Findings:
    """Rank, draw and judge, apart for every kind of table."""
    kinds = dict.fromkeys(field.ground.name.partition("/")[0] for field in fields)
    told = [
        _kind(kind, [field for field in fields if field.ground.name.startswith(f"{kind}/")], policies, seeds)
        for kind in kinds
    ]
    return Findings(tuple(verdict for verdict, _ in told), tuple(section for _, section in told))


def _kind(kind: str, played: Sequence[Field], policies: Sequence[str], seeds: Seeds) -> tuple[Verdict, Section]:
    fields = with_hindsight(played)
    rivals = [setting.label for setting in vowpal.USUAL if setting.label in fields[0].runs]
    hindsight = [name for name in (SINGLE, PER_TABLE) if name in fields[0].runs]
    shown = sorted((*policies, *rivals, *hindsight), key=lambda name: norms(fields, name).mean())
    verdict = held_against(kind, fields, policies[0], seeds)
    means = [mean_norm(fields, name, seeds) for name in shown]
    figure = plots.bars([_folded(name) for name in shown], means, xlabel="0 best, 1 uniform play")
    section = Section(
        claim=f"bakeoff-{kind}",
        heading=f"Bake-off, {kind} tables",
        notes=_notes(kind, fields, rivals),
        pictures=(
            plots.picture(
                figure,
                key=f"bakeoff-{kind}",
                alt=f"Mean norm of {len(shown)} learners over {len(fields)} tables",
                caption=f"Mistakes between the best (0) and uniform play (1): means over {len(fields)} tables.",
            ),
        ),
        tables=(
            _ranking(fields, shown, [*rivals[:2], *hindsight], seeds),
            _matrix(fields, shown),
            *([_errors(fields, shown)] if len(fields) <= MOST else []),
        ),
    )
    return verdict, section


def _folded(name: str) -> str:
    """Fold a name over lines, or it leaves no room for the bars."""
    return textwrap.fill(name.replace(":", ": ").replace(",", ", ").replace(",  ", ", "), WIDTH)


def _notes(kind: str, fields: Sequence[Field], rivals: Sequence[str]) -> tuple[str, ...]:
    shuffles = len(next(iter(fields[0].runs.values())).mistakes)
    rows = max(field.ground.played for field in fields)
    how = (
        f"{len(fields)} {kind} tables, {shuffles} shuffles of each, {rows:,} rows at most. Error is the share of "
        "mistakes while learning; norm is (error - best) / (uniform - best), best that of all that was played on the "
        "table."
    )
    tests = (
        "A win is a difference at 5 %: first by the bake-off's z-test, which takes all rows of all shuffles for "
        "independent and finds too many; then, in brackets, by a stricter test of paired differences, whose variance "
        "is that between rows plus that between shuffles."
    )
    if not rivals:
        return (how, tests, "Vowpal Wabbit was not played.")
    settings = sum(name.startswith("VW") for name in fields[0].runs if name not in (SINGLE, PER_TABLE))
    who = (
        f"Vowpal Wabbit {vowpal.VERSION} with {settings} settings. VW RegCB-opt has the mellowness of the bake-off, "
        "0.001, and all else as it comes. Hindsight is a gift: the best of many settings is partly the luckiest."
    )
    return (how, tests, who)


def _ranking(fields: Sequence[Field], shown: Sequence[str], against: Sequence[str], seeds: Seeds) -> Table:
    large = [field for field in fields if field.ground.played >= LARGE]
    head = ("", "norm", f"norm, {LARGE} rows or more ({len(large)})", "error", *(f"against {name}" for name in against))
    rows = [
        (
            name,
            f"{mean_norm(fields, name, seeds):.3f}",
            f"{norms(large, name).mean():.3f}" if large else "",
            f"{np.mean([field.runs[name].error for field in fields]):.3f}",
            *(_score(fields, name, other) for other in against),
        )
        for name in shown
    ]
    return Table(caption="Least norm first; wins-losses over tables", head=head, rows=tuple(rows))


def _matrix(fields: Sequence[Field], shown: Sequence[str]) -> Table:
    head = ("", *(str(place + 1) for place in range(len(shown))))
    rows = [
        (f"{place + 1}. {name}", *(_score(fields, name, other) for other in shown)) for place, name in enumerate(shown)
    ]
    return Table(caption="Wins-losses of every row against every column", head=head, rows=tuple(rows))


def _errors(fields: Sequence[Field], shown: Sequence[str]) -> Table:
    head = ("table", "rows", "arms", "uniform", *(str(place + 1) for place in range(len(shown))))
    rows = [
        (
            ground.name.partition("/")[2],
            f"{ground.played:,}",
            str(ground.n_arms),
            f"{ground.uniform:.3f}",
            *(f"{field.runs[name].error:.3f}" for name in shown),
        )
        for field in fields
        for ground in [field.ground]
    ]
    return Table(caption="Error on every table, columns as in the matrix", head=head, rows=tuple(rows))


def _score(fields: Sequence[Field], name: str, other: str) -> str:
    if name == other:
        return ""
    (wins, losses), (sure, lost) = (tallied(fields, name, other, test) for test in ("z", "strict"))
    return f"{wins}-{losses} ({sure}-{lost})"
