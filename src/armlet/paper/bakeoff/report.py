"""What the bake-off shows: who errs least, over tables, and who beats whom on how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.core.intervals import Estimate, bootstrap, mean_of_runs
from armlet.core.types import Float64
from armlet.paper.bakeoff import vowpal
from armlet.paper.bakeoff.comparing import Runs, Test, tally
from armlet.paper.experiment import Findings
from armlet.paper.page import Section
from armlet.paper.verdicts import Claim, Criterion, Outcome, Role, Statistic, Verdict
from armlet.parallel.seeds import Seeds
from armlet.report import plots
from armlet.report.tables import Table

SINGLE: Final = "VW, best setting of all in hindsight"
PER_TABLE: Final = "VW, best setting of each table in hindsight"
LARGE: Final = 1000
MOST: Final = 50  # tables that are told one by one; the data has them all
ASKED: Final = {"balanced": 20 / 43, "imbalanced": -0.005}  # wins minus losses against the rival, as a share of tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A table, in numbers."""

    name: str
    n: int
    played: int  # rows, in each shuffle
    n_arms: int

    @property
    def uniform(self) -> float:
        """The share of mistakes of uniform play."""
        return 1 - 1 / self.n_arms


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """All that was played on one table."""

    ground: Ground
    runs: Mapping[str, Runs]

    @property
    def best(self) -> float:
        """The least share of mistakes of any contender or setting."""
        return min(each.error for each in self.runs.values())

    def norm(self, name: str) -> float:
        """Place a contender between the best, 0, and uniform play, 1; all are 0 where nobody beats it."""
        room = self.ground.uniform - self.best
        return (self.runs[name].error - self.best) / room if room > 0 else 0.0


def judge(fields: Sequence[Field], policies: Sequence[str], seeds: Seeds) -> Findings:
    """Rank, draw and judge, apart for every kind of table."""
    kinds = dict.fromkeys(field.ground.name.partition("/")[0] for field in fields)
    told = [
        _kind(kind, [field for field in fields if field.ground.name.startswith(f"{kind}/")], policies, seeds)
        for kind in kinds
    ]
    return Findings(tuple(verdict for verdict, _ in told), tuple(section for _, section in told))


def with_hindsight(fields: Sequence[Field]) -> list[Field]:
    """Add the one setting of Vowpal Wabbit that is best over all these tables, and the best of each."""
    theirs = [name for name in fields[0].runs if name.startswith("VW")]
    if len(theirs) <= len(vowpal.USUAL):
        return list(fields)
    single = min(theirs, key=lambda name: np.mean([field.norm(name) for field in fields]))
    out = []
    for field in fields:
        each = min(theirs, key=lambda name: field.runs[name].error)
        out.append(Field(field.ground, {**field.runs, SINGLE: field.runs[single], PER_TABLE: field.runs[each]}))
    return out


def norms(fields: Sequence[Field], name: str) -> Float64:
    """Give the norm of a contender on every table."""
    return np.array([field.norm(name) for field in fields])


def _kind(kind: str, played: Sequence[Field], policies: Sequence[str], seeds: Seeds) -> tuple[Verdict, Section]:
    fields = with_hindsight(played)
    rivals = [setting.label for setting in vowpal.USUAL if setting.label in fields[0].runs]
    hindsight = [name for name in (SINGLE, PER_TABLE) if name in fields[0].runs]
    shown = sorted((*policies, *rivals, *hindsight), key=lambda name: norms(fields, name).mean())
    verdict = _verdict(kind, fields, policies, rivals, hindsight, seeds)
    figure = plots.bars(shown, [_norm(fields, name, seeds) for name in shown], xlabel="0 best, 1 uniform play")
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
            f"{_norm(fields, name, seeds):.3f}",
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
    (wins, losses), (sure, lost) = (_tally(fields, name, other, test) for test in ("z", "strict"))
    return f"{wins}-{losses} ({sure}-{lost})"


def _tally(fields: Sequence[Field], name: str, other: str, test: Test) -> tuple[int, int]:
    return tally([field.runs[name] for field in fields], [field.runs[other] for field in fields], test)


def _norm(fields: Sequence[Field], name: str, seeds: Seeds) -> Estimate:
    """Give the mean norm, and its interval over tables: they are what is independent here."""
    found = norms(fields, name)
    if len(found) < 2:
        return _exact(float(found.mean()))
    return bootstrap(mean_of_runs, found, rng=seeds.rng("tables drawn again", name))


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)


def _verdict(
    kind: str,
    fields: Sequence[Field],
    policies: Sequence[str],
    rivals: Sequence[str],
    hindsight: Sequence[str],
    seeds: Seeds,
) -> Verdict:
    ours = policies[0]
    claim = Claim(
        key=f"bakeoff-{kind}",
        where="A Contextual Bandit Bake-off, JMLR 22, 2021",
        source="Armlet",
        says=_SAYS.get(kind, _SAYS["imbalanced"]),
        reading=(
            "As it comes: no setting is chosen, neither ours nor theirs. Wins and losses are counted by the bake-off's "
            "own z-test; the stricter one is our reading. Control: uniform play errs as it must."
        ),
    )
    bounds = [(each, ASKED.get(kind, 0.0) * len(fields)) for each in rivals[:1]]
    if kind == "balanced":
        bounds += [(each, 0.0) for each in hindsight[:1]]
    statistics = [
        Statistic("norm of uniform play", _norm(fields, _FLOOR, seeds), Criterion("within", 0.9, 1.1), Role.CONTROL)
        for _ in range(_FLOOR in fields[0].runs)
    ]
    for name, least in bounds:
        for test, role in _ROLES.items():
            wins, losses = _tally(fields, ours, name, test)
            label = f"wins minus losses against {name}, {'z-test' if test == 'z' else 'stricter test'}"
            statistics.append(Statistic(label, _exact(float(wins - losses)), Criterion("above", least), role))
    if not rivals:
        statistics.append(Statistic("norm", _norm(fields, ours, seeds), Criterion("below", 0.5)))
    return Verdict(claim=claim, statistics=tuple(statistics), explanations=_WHY)


_FLOOR: Final = "Uniform"
_ROLES: Final[dict[Test, Role]] = {"z": Role.WRITTEN, "strict": Role.READING}
_SAYS: Final = {
    "balanced": (
        "With nothing set, the first policy wins more tables than it loses against Vowpal Wabbit's RegCB-opt as it "
        "comes, by more than 20 of 43, and more than it loses against the one setting that is best in hindsight."
    ),
    "imbalanced": (
        "With nothing set, the first policy does no worse than tie with Vowpal Wabbit's RegCB-opt as it comes where "
        "one class is rare."
    ),
}
_WHY: Final = {
    Outcome.HOLDS: "Nothing had to be set for it.",
    Outcome.FAILS: "Some setting of Vowpal Wabbit is better on these tables.",
}
