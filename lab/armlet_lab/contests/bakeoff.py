"""A Contextual Bandit Bake-off (Bietti, Agarwal and Langford, JMLR 22, 2021) on the tables of KEEL.

Classification tables are played as bandits; what counts is the share of mistakes over the whole run, learning included.
The constants of our default were chosen on the tables with an even place in the list of their kind, counted from 0; so
those and the others are counted apart.

DIR/report.html, verdicts.*, figures/, tables/    what was found, as `armlet-lab paper` writes it
DIR/data/rivals/*.parquet                         every mistake of the rivals, kept from one call to the next
DIR/data/armlet/*.parquet                         those of our policies, played again unless they were interrupted
DIR/manifest.json                                 settings, versions, machine, durations
"""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from armlet import datasets
from armlet.parallel import Pool, PoolLike, Progress, Seeds, opened, reporter
from armlet.report import plots
from armlet.report.document import Table
from armlet.report.plots import require_matplotlib
from armlet.simulation.lab import Archive, Lab, ResultsError, Scale, Shelf, new_session, read_manifest, versions
from armlet.types import Estimate, Int64
from armlet_lab.contests import mabwiser, vowpal, warm_start
from armlet_lab.contests.classification import COLLECTION, DIGITS, GROUPS, Side, Task, load, make, play, unpack
from armlet_lab.contests.comparing import (
    PER_TABLE,
    SINGLE,
    Field,
    Ground,
    Runs,
    best_of,
    extra_mistakes,
    winners,
    with_hindsight,
)
from armlet_lab.contests.contest import Part, mean, part, play_all, table
from armlet_lab.runner.experiment import SEED, Claim, Criterion, Experiment, Findings, Outcome, Role, Statistic, certain
from armlet_lab.runner.reproduce import Reproduction, write_manifest, write_report
from armlet_lab.runner.verdicts import to_text

KIND: Final = "bakeoff"
FIXED: Final = ("tables", "rows", "shuffles", "seed")  # of a folder
Rivals: TypeAlias = Literal["none", "vowpal", "usual", "grid"]
USUAL: Final = (
    "OccasionalOptimism",
    "OccasionalOptimism:ridge=1.0,width_scale=0.7",
    "OptimisticEpsilonGreedy",
    "LinUCB",
    "ThompsonSampling",
    "Greedy",
    "AutoEpsilonGreedy",
    "OptimisticEpsilonGreedy:units=as given",
    "Uniform",
)
"""What is played if nothing else is asked for; the first is held against the rivals, the last is the floor."""
PLAYED: Final[dict[Rivals, tuple[tuple[Side, str], ...]]] = {
    "none": (),
    "vowpal": (("vowpal", "usual"),),
    "usual": (("vowpal", "usual"), ("mabwiser", "mabwiser")),
    "grid": tuple((side, group) for side, groups in GROUPS.items() for group in groups),
}
"""Groups of settings of the rivals."""
VERSIONS: Final[dict[Side, str]] = {"vowpal": vowpal.VERSION, "mabwiser": mabwiser.VERSION}
MAKERS: Final = {"VW": "Vowpal Wabbit", "MABWiser": "MABWiser"}
RIVAL: Final = vowpal.USUAL[0].label
FLOOR: Final = "Uniform"
ASKED: Final[dict[str, dict[str, float]]] = {
    "balanced": {RIVAL: 20 / 43, SINGLE: 0.0},
    "imbalanced": {RIVAL: -0.005},  # a tie will do
}
"""Wins minus losses must be above these, as a share of the tables, by kind and rival."""
FIRST: Final = 1000
BARS: Final = {"balanced": 0.2714, "imbalanced": 0.069}
"""Mean error in the first rows of tables that chose no constant, by kind."""
SAYS: Final = {
    "balanced": (
        "it wins more tables than it loses against Vowpal Wabbit's RegCB-opt as it comes, by more than 20 of 43, and, "
        "where its grid is played, against the one setting that is best in hindsight; it errs no more than before."
    ),
    "imbalanced": (
        "it does no worse than tie with Vowpal Wabbit's RegCB-opt as it comes where one class is rare; it errs less "
        "than before."
    ),
}
READING: Final = (
    "Wins and losses are counted by a paired test over orders, corrected for the number of tables. How much it errs is "
    f"its error in the first {FIRST:,} rows of tables that chose no constant. Control: uniform play errs as it must."
)
WHY: Final = {Outcome.FAILS: "Some setting of a rival does better on these tables."}
PARITY: Final = ("even", "odd")
LARGE: Final = 1000
WIDTH: Final = 26  # letters next to a bar
MOST: Final = 50  # tables that are listed one by one; the data has them all


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to play, and who plays."""

    rows: int  # of a table, at most
    shuffles: int
    rivals: Rivals
    policies: tuple[str, ...] = USUAL
    tables: tuple[str, ...] = ()  # KIND/NAME; empty for all, and for digits after a log


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(rows=1000, shuffles=3, rivals="usual"),
    "full": Settings(rows=10_000, shuffles=10, rivals="usual"),
}


def configured(scale: Scale, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a scale with some of them changed; None or nothing leaves one as it is."""
    changed: dict[str, Any] = {name: _tuple(value) for name, value in given.items() if value}
    settings = replace(SCALES[scale], **changed)
    if settings.rows < 1 or settings.shuffles < 1:
        raise ValueError(f"rows is {settings.rows} and shuffles {settings.shuffles}; give at least 1 of each")
    if twice := [each for each in settings.policies if settings.policies.count(each) > 1]:
        raise ValueError(f"policy {twice[0]!r} is given twice; give each once")
    for policy in settings.policies:
        make(policy, settings.rows)  # better now than after an hour
    if not settings.tables:
        return settings
    known = places()
    wanted = {
        name: [each for each, place in known.items() if name in (each, each.partition("/")[0], PARITY[place % 2])]
        for name in settings.tables
    }
    if unknown := [name for name, found in wanted.items() if not found]:
        raise ValueError(f"there is no table {unknown[0]!r}; armlet data list {COLLECTION} names them")
    return replace(settings, tables=tuple(dict.fromkeys(chain(*wanted.values()))))


# --- all tables ------------------------------------------------------------------------------------------------------


def run(lab: Lab) -> Findings:
    """Run the contest at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab, rivals: Lab | None = None) -> Findings:
    """Play all and judge; `rivals` is the lab of the rivals, whose results outlive a change of ours."""
    grounds, theirs = survey(settings), rivals or lab
    fields: dict[str, dict[str, Runs]] = {ground.name: {} for ground in grounds}

    def gather(where: Lab, stage: str, side: Side, players: Sequence[str], label: str) -> None:
        common: dict[str, Any] = {"seeds": lab.seeds, "horizon": settings.rows, "side": side}
        common["version"] = VERSIONS.get(side, "")
        common["runs"] = settings.shuffles  # a table is read, and a worker begun, once for all orders
        tasks = {
            (ground, player): [Task(environment=ground.name, player=player, **common)]
            for player in players
            for ground in grounds
        }
        for (ground, player), columns in play_all(where, stage, play, tasks, f"Bake-off: {label}").items():
            names = [player] if side == "armlet" else [setting.label for setting in GROUPS[side][player]]
            wrong = unpack(columns["mistakes"], ground.played)  # shuffle by shuffle, a row for each name
            for i, name in enumerate(names):
                fields[ground.name][name] = Runs(tuple(wrong[i :: len(names)]))

    for side, group in PLAYED[settings.rivals]:
        gather(theirs, f"{side}-{group}", side, [group], f"{side}, {group} ({len(GROUPS[side][group])} settings)")
    gather(lab, "policies", "armlet", settings.policies, f"{len(settings.policies)} of our policies")
    parts = judge([Field(ground, fields[ground.name]) for ground in grounds], settings.policies, lab.seeds)
    if _has_digits(settings):
        parts.append(warm_start.find(settings.policies, settings.shuffles, lab, theirs))
    return Findings.of(parts)


def _has_digits(settings: Settings) -> bool:
    return ("mabwiser", "mabwiser") in PLAYED[settings.rivals] and not settings.tables


EXPERIMENT: Final = Experiment("bakeoff", "Bake-off: real tables, next to Vowpal Wabbit and MABWiser", run)


def places() -> dict[str, int]:
    """Return the place of every table among those of its kind, counted from 0."""
    found: dict[str, list[str]] = {}
    for name in datasets.names(COLLECTION):
        found.setdefault(name.partition("/")[0], []).append(name)
    return {name: place for names in found.values() for place, name in enumerate(sorted(names))}


def survey(settings: Settings) -> list[Ground]:
    """Look at the tables that are asked for."""
    known = places()
    tables = {name: load(name) for name in settings.tables or known}
    return [
        Ground(name, len(each), min(len(each), settings.rows), each.n_arms, known[name])
        for name, each in tables.items()
    ]


# --- what follows ----------------------------------------------------------------------------------------------------


def _norm(fields: Sequence[Field], name: str, seeds: Seeds) -> Estimate:
    """Return the mean norm, and its interval over tables: they are what is independent here."""
    found = np.array([field.norm(name) for field in fields])
    return certain(found.mean()) if len(found) < 2 else mean(found, seeds.rng("tables drawn again", name))


def judge(fields: Sequence[Field], policies: Sequence[str], seeds: Seeds) -> list[Part]:
    """Rank, draw and judge, apart for every kind of table."""
    kinds: dict[str, list[Field]] = {}
    for field in fields:
        kinds.setdefault(field.ground.name.partition("/")[0], []).append(field)
    return [_kind(kind, with_hindsight(played), policies, seeds) for kind, played in kinds.items()]


def _kind(kind: str, fields: Sequence[Field], policies: Sequence[str], seeds: Seeds) -> Part:
    usual = [setting.label for setting in (*vowpal.USUAL, *mabwiser.USUAL)]
    rivals = [name for name in (*usual, SINGLE, PER_TABLE) if name in fields[0].runs]
    norms = {name: _norm(fields, name, seeds) for name in (*policies, *rivals)}
    shown = sorted(norms, key=lambda name: norms[name].value)
    claim = Claim(
        key=f"bakeoff-{kind}",
        where="A Contextual Bandit Bake-off, JMLR 22, 2021",
        source="Armlet",
        says=f"{policies[0]}: {SAYS[kind]}",
        reading=READING,
    )
    # folded over lines, or names leave no room for the bars
    names = [textwrap.fill(each.replace(":", ": ").replace(",", ", ").replace(",  ", ", "), WIDTH) for each in shown]
    picture = plots.picture(
        plots.bars(names, [norms[name] for name in shown], xlabel="0 best, 1 uniform play"),
        key=claim.key,
        alt=f"Mean norm of {len(shown)} learners over {len(fields)} tables",
        caption=f"Mistakes between the best (0) and uniform play (1): means over {len(fields)} tables.",
    )
    scores = {(name, other): _winners(fields, name, other) for name in shown for other in shown if name != other}
    tables = _tables(fields, {name: norms[name] for name in shown}, policies[0], scores)
    statistics = _statistics(kind, fields, policies[0], scores, seeds)
    if FLOOR in norms:
        statistics.append(Statistic("norm of uniform play", norms[FLOOR], Criterion("within", 0.9, 1.1), Role.CONTROL))
    notes = _notes(kind, fields, rivals)
    ends = _conclusion(kind, policies[0], scores.get((policies[0], RIVAL)))
    heading = f"Bake-off, {kind} tables"
    return part(claim, heading, statistics, *tables, notes=notes, pictures=[picture], why=WHY, conclusions=ends)


def _conclusion(kind: str, ours: str, won: Int64 | None) -> dict[Outcome, str]:
    """Return the score against the first rival, which is the same whatever is concluded of the claim."""
    if won is None:
        return {}
    wins, losses = (won > 0).sum(), (won < 0).sum()
    score = f"{ours} wins {wins} and loses {losses} of {len(won)} {kind} tables against {RIVAL}"
    return dict.fromkeys(Outcome, score)


def _winners(fields: Sequence[Field], name: str, other: str) -> Int64:
    return winners([field.runs[name] for field in fields], [field.runs[other] for field in fields])


def _apart(fields: Sequence[Field]) -> dict[str, list[int]]:
    """Return which tables chose constants, and which did not, by their place in the list."""
    chose = [i for i, field in enumerate(fields) if field.ground.chose]
    return {"that chose constants": chose, "that chose none": [i for i in range(len(fields)) if i not in chose]}


def _statistics(
    kind: str, fields: Sequence[Field], ours: str, scores: Mapping[tuple[str, str], Int64], seeds: Seeds
) -> list[Statistic]:
    """Hold one policy against the rivals of a kind of tables; it stays open if the first of them was not played."""
    out = []
    for rival, share in ASKED[kind].items():
        won = scores.get((ours, rival))
        if won is None and rival == SINGLE:
            continue
        found = None if won is None else certain(float(won.sum()))
        out.append(Statistic(f"wins minus losses against {rival}", found, Criterion("above", share * len(fields))))
    other = [fields[i].runs[ours].first(FIRST).errors for i in _apart(fields)["that chose none"]]
    error = np.mean(other, axis=0) if other else np.zeros(0)  # (shuffles,): the tables are given, orders are drawn
    found = mean(error, seeds.rng("orders drawn again", ours)) if len(error) > 1 else None
    name = f"error in the first {FIRST:,} rows, {len(other)} tables that chose no constant"
    return [*out, Statistic(name, found, Criterion("below", BARS[kind]))]


def _notes(kind: str, fields: Sequence[Field], rivals: Sequence[str]) -> tuple[str, ...]:
    shuffles = len(next(iter(fields[0].runs.values())).mistakes)
    rows = max(field.ground.played for field in fields)
    how = (
        f"{len(fields)} {kind} tables, {shuffles} orders of each, {rows:,} rows at most. Error is the share of "
        "mistakes while learning; norm is (error - best) / (uniform - best), best that of all that was played on the "
        "table."
    )
    test = (
        "A win is a difference by Student's t over orders, paired, after Benjamini and Hochberg's correction for "
        f"{len(fields)} tables: of those called won or lost, at most 5 % are called wrongly on average."
    )
    if not rivals:
        return (how, test, "No rival was played.")
    who = []
    for maker, version in zip(MAKERS, VERSIONS.values(), strict=True):
        played = sum(name.startswith(maker) for name in fields[0].runs if name not in (SINGLE, PER_TABLE))
        if played:
            best = f"; best over these tables, in hindsight: {best_of(fields, maker)}"
            who.append(f"{MAKERS[maker]} {version} with {played} settings{best}.")
    gift = "Hindsight is a gift: the best of many settings is partly the luckiest."
    return (how, test, " ".join([*who, gift]))


def _tables(
    fields: Sequence[Field],
    norms: Mapping[str, Estimate],
    ours: str,
    scores: Mapping[tuple[str, str], Int64],
) -> list[Table]:
    large = [i for i, field in enumerate(fields) if field.ground.played >= LARGE]
    numbers = {name: str(number) for number, name in enumerate(norms, start=1)}
    errors = {name: np.array([field.runs[name].error for field in fields]) for name in norms}
    ranking: dict[str, dict[str, str]] = {
        "norm": {name: f"{norm:.3f}" for name, norm in norms.items()},
        f"norm, {LARGE} rows or more ({len(large)})": {
            name: f"{np.mean([fields[i].norm(name) for i in large]):.3f}" if large else "" for name in norms
        },
        "error": {name: f"{errors[name].mean():.3f}" for name in norms},
        **{
            f"error, {len(which)} tables {word}": {
                name: f"{errors[name][which].mean():.3f}" if which else "" for name in norms
            }
            for word, which in _apart(fields).items()
        },
    }
    if RIVAL in norms:
        ranking[f"against {RIVAL}"] = {name: _score(scores.get((name, RIVAL))) for name in norms}
    matrix = {
        numbers[other]: {f"{numbers[name]}. {name}": _score(scores.get((name, other))) for name in norms}
        for other in norms
    }
    shown = [table("Least norm first; wins-losses over tables", "", ranking), _duels(fields, norms, ours, scores)]
    shown.append(table("Wins-losses of every row against every column", "", matrix))
    if len(fields) <= MOST:
        grounds = {field.ground.name.partition("/")[2]: field for field in fields}
        each: dict[str, dict[str, str]] = {
            "rows": {name: f"{field.ground.played:,}" for name, field in grounds.items()},
            "arms": {name: str(field.ground.n_arms) for name, field in grounds.items()},
            "chose": {name: "constants" if field.ground.chose else "" for name, field in grounds.items()},
            "uniform": {name: f"{field.ground.uniform:.3f}" for name, field in grounds.items()},
            **{
                numbers[who]: {name: f"{field.runs[who].error:.3f}" for name, field in grounds.items()} for who in norms
            },
        }
        shown.append(table("Error on every table, columns as in the matrix", "table", each))
    return shown


def _duels(
    fields: Sequence[Field],
    norms: Mapping[str, Estimate],
    ours: str,
    scores: Mapping[tuple[str, str], Int64],
) -> Table:
    """Hold one policy against everyone else."""
    others = [name for name in norms if name != ours]
    won = {other: scores[ours, other] for other in others}
    more = {other: np.array([extra_mistakes(f.runs[ours], f.runs[other]) for f in fields]) for other in others}
    columns: dict[str, dict[str, str]] = {
        "wins": {other: str((won[other] > 0).sum()) for other in others},
        "losses": {other: str((won[other] < 0).sum()) for other in others},
        "ties": {other: str((won[other] == 0).sum()) for other in others},
        **{
            f"wins-losses, {len(which)} tables {word}": {other: _score(won[other][which]) for other in others}
            for word, which in _apart(fields).items()
        },
        "extra mistakes, mean": {other: f"{more[other].mean():+.1f}" for other in others},
        "extra mistakes, median": {other: f"{np.median(more[other]):+.1f}" for other in others},
    }
    return table(f"{ours} against each; extra mistakes in an order of a table, negative if it makes fewer", "", columns)


def _score(won: Int64 | None) -> str:
    return "" if won is None else f"{(won > 0).sum()}-{(won < 0).sum()}"


# --- the command -----------------------------------------------------------------------------------------------------


def reproduce(
    settings: Settings,
    *,
    seed: int = SEED,
    out: str | os.PathLike[str] = "results/bakeoff",
    engine: PoolLike = "processes",
    workers: int | None = None,
    progress: Callable[[str], Progress] = reporter,
    tell: Callable[[str], None] = print,
) -> Path:
    """Play what the settings say and return the path of the report.

    What the rivals did is kept in the folder and not played again; our policies are, unless they were interrupted.
    """
    require_matplotlib()  # better now than after the computation
    survey(settings)  # refuses tables that are not here
    if _has_digits(settings):
        load(DIGITS)
    for side in dict.fromkeys(side for side, _ in PLAYED[settings.rivals]):
        (vowpal if side == "vowpal" else mabwiser).prepare(tell)
    folder = Path(out)
    ours, theirs = _shelves(folder)
    with opened(engine, workers=workers) as where:
        manifest = _begin(folder, settings, seed, where, ours)
        start = time.monotonic()
        try:
            lab, rivals = (
                Lab(seed=seed, name=KIND, where=where, shelf=shelf, progress=progress) for shelf in (ours, theirs)
            )
            found = find(settings, lab, rivals)
            manifest["status"] = "finished"
        except BaseException:
            manifest["status"] = "interrupted"
            raise
        finally:
            manifest["sessions"][-1]["seconds"] = round(time.monotonic() - start, 1)
            write_manifest(folder, manifest)
    return _tell(found, folder, manifest, tell)


def rebuild(folder: str | os.PathLike[str], tell: Callable[[str], None] = print) -> Path:
    """Judge what was played once more and write the report again."""
    manifest, place = read_manifest(folder), Path(folder)
    settings = Settings(**{name: _tuple(manifest[name]) for name in Settings.__dataclass_fields__})
    lab, rivals = (Archive(seed=manifest["seed"], name=KIND, shelf=shelf) for shelf in _shelves(place))
    return _tell(find(settings, lab, rivals), place, manifest, tell)


def _shelves(folder: Path) -> tuple[Shelf, Shelf]:
    return Shelf(folder / "data" / "armlet"), Shelf(folder / "data" / "rivals")


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _begin(folder: Path, settings: Settings, seed: int, where: Pool, ours: Shelf) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}
    wanted = {**plain, "seed": seed, "versions": versions()}
    before: dict[str, Any] = read_manifest(folder) if (folder / "manifest.json").exists() else {}
    if before and before.get("kind") != KIND:
        raise ResultsError(f"{folder} holds results of something else; choose another folder")
    for name in FIXED:
        if before and (was := before[name]) != wanted[name]:
            short = f"of {len(was)} names" if isinstance(was, list) and was else f"{was or 'of all'}"
            raise ResultsError(f"{folder} holds a bake-off with {name} {short}; choose another folder with --out")
    if before.get("status") == "finished" or before.get("versions") != versions():
        ours.clear()
    sessions = [*before.get("sessions", []), new_session(where.name)]
    manifest = {"format": 1, "kind": KIND, "status": "running", **wanted}
    manifest |= {"vowpal": vowpal.VERSION, "mabwiser": mabwiser.VERSION, "sessions": sessions}
    write_manifest(folder, manifest)
    return manifest


def _tell(found: Findings, folder: Path, manifest: dict[str, Any], tell: Callable[[str], None]) -> Path:
    page = write_report(Reproduction({KIND: found}), folder, manifest, EXPERIMENT.title)
    for section in found.sections:
        for shown in section.tables[:2]:
            tell(f"\n{section.heading}. {shown.caption}:\n")
            tell(shown.markdown())
    tell(f"\n{to_text(found.verdicts)}")
    tell(f"Report: {page}")
    return page
