"""A Contextual Bandit Bake-off (Bietti, Agarwal and Langford, JMLR 22, 2021) on the tables of KEEL.

A classification table becomes a bandit: a row is a context, its classes are the arms, the right one pays 1. A learner
plays the rows in a random order and is told the reward of its choice alone; what counts is the share of mistakes over
the whole run, learning included. All meet the same orders.

DIR/report.html, verdicts.*, figures/, tables/    what was found, as `armlet-lab paper` writes it
DIR/data/vowpal/*.parquet                         every mistake of Vowpal Wabbit, kept from one call to the next
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
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from armlet import datasets
from armlet.bandit import Bandit
from armlet.inference.intervals import Estimate
from armlet.parallel import Pool, PoolLike, Progress, Seeds, opened, reporter
from armlet.report import plots
from armlet.report.document import Table
from armlet.report.plots import require_matplotlib
from armlet.simulation.compare import make_policy, parse_policy
from armlet.simulation.lab import Archive, Arrays, Lab, ResultsError, Scale, Shelf, new_session, read_manifest, versions
from armlet.types import Float64, Int64, Policy
from armlet_lab.contests import contest, vowpal
from armlet_lab.contests.comparing import Runs, Test, tally
from armlet_lab.contests.contest import Part, mean, part, play_all, table
from armlet_lab.runner.experiment import SEED, Claim, Criterion, Experiment, Findings, Outcome, Role, Statistic, certain
from armlet_lab.runner.reproduce import Reproduction, to_text, write_manifest, write_report

COLLECTION: Final = "keel"
KIND: Final = "bakeoff"
FIXED: Final = ("tables", "rows", "shuffles", "seed")  # of a folder
Rivals: TypeAlias = Literal["none", "usual", "grid"]
Side: TypeAlias = Literal["armlet", "vowpal"]
USUAL: Final = (
    "OccasionalOptimism",
    "OptimisticEpsilonGreedy",
    "LinUCB",
    "ThompsonSampling",
    "Greedy",
    "AutoEpsilonGreedy",
    "OptimisticEpsilonGreedy:units=as given",
    "Uniform",
)
"""What is played if nothing else is asked for; the first is held against the rivals, the last is the floor."""
SINGLE: Final = "VW, best setting of all in hindsight"
PER_TABLE: Final = "VW, best setting of each table in hindsight"
RIVAL: Final = vowpal.USUAL[0].label
FLOOR: Final = "Uniform"
ASKED: Final[dict[str, dict[str, float]]] = {
    "balanced": {RIVAL: 20 / 43, SINGLE: 0.0},
    "imbalanced": {RIVAL: -0.005},  # a tie will do
}
"""Wins minus losses must be above these, as a share of the tables, by kind and rival."""
SAYS: Final = {
    "balanced": (
        "it wins more tables than it loses against Vowpal Wabbit's RegCB-opt as it comes, by more than 20 of 43, and "
        "more than it loses against the one setting that is best in hindsight."
    ),
    "imbalanced": "it does no worse than tie with Vowpal Wabbit's RegCB-opt as it comes where one class is rare.",
}
READING: Final = (
    "Wins and losses are counted by the bake-off's own z-test; the stricter one is our reading. Control: uniform play "
    "errs as it must."
)
WHY: Final = {Outcome.FAILS: "Some setting of Vowpal Wabbit does better on these tables."}
TESTS: Final[dict[Test, tuple[str, Role]]] = {"z": ("z-test", Role.WRITTEN), "strict": ("stricter test", Role.READING)}
LARGE: Final = 1000
WIDTH: Final = 26  # letters next to a bar
MOST: Final = 50  # tables that are told one by one; the data has them all


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to play, and who plays."""

    rows: int  # of a table, at most
    shuffles: int
    rivals: Rivals  # what is played of Vowpal Wabbit
    policies: tuple[str, ...] = USUAL
    tables: tuple[str, ...] = ()  # KIND/NAME; empty for all


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(rows=1000, shuffles=3, rivals="usual"),
    "full": Settings(rows=10_000, shuffles=5, rivals="grid"),
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
    known = datasets.names(COLLECTION)
    wanted = {name: [each for each in known if name in (each, each.partition("/")[0])] for name in settings.tables}
    if unknown := [name for name, found in wanted.items() if not found]:
        raise ValueError(f"there is no table {unknown[0]!r}; armlet data list {COLLECTION} names them")
    return replace(settings, tables=tuple(dict.fromkeys(chain(*wanted.values()))))


# --- one table in one order ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(contest.Task):
    """One policy, or one group of Vowpal Wabbit's settings, on one table (`environment`) in one order (`first`)."""

    side: Side
    data: str = datasets.collection(COLLECTION).sha256[:16]  # other tables or another Vowpal Wabbit: another task
    version: str = ""


def play(task: Task) -> Arrays:
    """Return the share of mistakes of every setting, and the mistakes themselves, packed: (settings, ceil(n / 32))."""
    table = datasets.load(COLLECTION, task.environment)
    order = shuffled(task.seeds, task.environment, task.first, len(table), task.horizon)
    seed = task.seeds.seed("coins of a shuffle", task.environment, task.first)
    if task.side == "armlet":
        found = np.array([mistakes(table, order, task.player, seed=seed)])
    else:
        found = np.array(vowpal.mistakes(table, order, vowpal.GROUPS[task.player], seed=seed % 2**31))
    return {"errors": found.mean(axis=1), "mistakes": pack(found)}


def shuffled(seeds: Seeds, table: str, shuffle: int, n: int, rows: int) -> Int64:
    """Return the order in which the rows of a table are played, the first so many of them."""
    return seeds.rng("shuffle", table, shuffle).permutation(n)[:rows].astype(np.int64)


def make(text: str, rows: int) -> Policy:
    """Make a policy from NAME or NAME:KEY=VALUE,...; {rows} stands for how many rows there are.

    Examples
    --------
    >>> make("AutoEpsilonGreedy:horizon={rows}", 500).horizon
    500
    """
    return make_policy(*parse_policy(text.replace("{rows}", str(rows))))


def contexts(table: datasets.Table, policy: Policy) -> Float64:
    """Return the numbers of a table as they are; with a constant for a policy that has no level of its own.

    A policy in free units finds a level by itself; one in units as given needs a feature that is always 1.
    """
    if getattr(policy, "units", "as given") == "free":
        return table.X
    return np.column_stack([table.X, np.ones(len(table))])


def mistakes(table: datasets.Table, order: Int64, text: str, *, seed: int) -> Float64:
    """Play a policy on rows in an order; return 1 for each wrong choice and 0 for each right one."""
    policy = make(text, len(order))
    X, y = contexts(table, policy), table.y
    bandit = Bandit(arms=range(table.n_arms), dim=X.shape[1], policy=policy, seed=seed)
    wrong = np.ones(len(order))
    for place, row in enumerate(order.tolist()):
        decision = bandit.decide(X[row])
        right = decision.arm == y[row]
        bandit.learn(decision, float(right))
        wrong[place] -= right
    return wrong


def pack(wrong: Float64) -> Int64:
    """Put the zeros and ones of each row into integers, 32 in each."""
    bits = np.packbits(wrong.astype(np.bool_), axis=1, bitorder="little")
    return np.pad(bits, ((0, 0), (0, -bits.shape[1] % 4))).view("<u4").astype(np.int64)


def unpack(packed: Int64 | Float64, n: int) -> Float64:
    """Return the zeros and ones again."""
    bits = np.ascontiguousarray(packed.astype("<u4")).view(np.uint8)
    return np.unpackbits(bits, axis=1, count=n, bitorder="little").astype(np.float64)


# --- all tables ------------------------------------------------------------------------------------------------------


class Ground(NamedTuple):
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


def run(lab: Lab) -> Findings:
    """Run the contest at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab, rivals: Lab | None = None) -> Findings:
    """Play all and judge; `rivals` is the lab of Vowpal Wabbit, whose results outlive a change of ours."""
    grounds = survey(settings)
    fields: dict[str, dict[str, Runs]] = {ground.name: {} for ground in grounds}

    def gather(where: Lab, stage: str, side: Side, players: Sequence[str], label: str) -> None:
        common: dict[str, Any] = {"seeds": lab.seeds, "horizon": settings.rows, "side": side}
        common["version"] = vowpal.VERSION if side == "vowpal" else ""
        tasks = {
            (ground, player): [
                Task(environment=ground.name, player=player, first=shuffle, **common)
                for shuffle in range(settings.shuffles)
            ]
            for player in players
            for ground in grounds
        }
        for (ground, player), columns in play_all(where, stage, play, tasks, f"Bake-off: {label}").items():
            names = [player] if side == "armlet" else [setting.label for setting in vowpal.GROUPS[player]]
            orders = [shuffled(lab.seeds, ground.name, i, ground.n, settings.rows) for i in range(settings.shuffles)]
            wrong = unpack(columns["mistakes"], ground.played)  # shuffle by shuffle, a row for each name
            for i, name in enumerate(names):
                fields[ground.name][name] = Runs(tuple(wrong[i :: len(names)]), tuple(orders))

    for group in {"none": (), "usual": ("usual",), "grid": tuple(vowpal.GROUPS)}[settings.rivals]:
        label = f"Vowpal Wabbit, {group} ({len(vowpal.GROUPS[group])} settings)"
        gather(rivals or lab, f"vowpal-{group}", "vowpal", [group], label)
    gather(lab, "policies", "armlet", settings.policies, f"{len(settings.policies)} of our policies")
    return judge([Field(ground, fields[ground.name]) for ground in grounds], settings.policies, lab.seeds)


EXPERIMENT: Final = Experiment("bakeoff", "Bake-off: real tables, next to Vowpal Wabbit", run)


def survey(settings: Settings) -> list[Ground]:
    """Look at the tables that are asked for."""
    tables = {name: datasets.load(COLLECTION, name) for name in settings.tables or datasets.names(COLLECTION)}
    return [Ground(name, len(each), min(len(each), settings.rows), each.n_arms) for name, each in tables.items()]


# --- what follows ----------------------------------------------------------------------------------------------------


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


def _norm(fields: Sequence[Field], name: str, seeds: Seeds) -> Estimate:
    """Return the mean norm, and its interval over tables: they are what is independent here."""
    found = np.array([field.norm(name) for field in fields])
    return certain(found.mean()) if len(found) < 2 else mean(found, seeds.rng("tables drawn again", name))


def judge(fields: Sequence[Field], policies: Sequence[str], seeds: Seeds) -> Findings:
    """Rank, draw and judge, apart for every kind of table."""
    kinds: dict[str, list[Field]] = {}
    for field in fields:
        kinds.setdefault(field.ground.name.partition("/")[0], []).append(field)
    return Findings.of(_kind(kind, with_hindsight(played), policies, seeds) for kind, played in kinds.items())


def _kind(kind: str, fields: Sequence[Field], policies: Sequence[str], seeds: Seeds) -> Part:
    rivals = [setting.label for setting in vowpal.USUAL if setting.label in fields[0].runs]
    hindsight = [name for name in (SINGLE, PER_TABLE) if name in fields[0].runs]
    norms = {name: _norm(fields, name, seeds) for name in (*policies, *rivals, *hindsight)}
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
    scores = {
        (name, other): "" if name == other else "{}-{} ({}-{})".format(*_won(fields, name, other))
        for name in shown
        for other in shown
    }
    tables = _tables(fields, {name: norms[name] for name in shown}, [*rivals[:2], *hindsight], scores)
    statistics, notes = _statistics(kind, fields, policies[0], norms.get(FLOOR)), _notes(kind, fields, rivals)
    heading = f"Bake-off, {kind} tables"
    return part(claim, heading, statistics, *tables, notes=notes, pictures=[picture], why=WHY)


def _won(fields: Sequence[Field], name: str, other: str) -> list[int]:
    """Count tables won and lost, by each test."""
    ours, theirs = ([field.runs[each] for field in fields] for each in (name, other))
    return [count for test in TESTS for count in tally(ours, theirs, test)]


def _statistics(kind: str, fields: Sequence[Field], ours: str, floor: Estimate | None) -> list[Statistic]:
    """Hold one policy against the rivals of a kind of tables; one that was not played leaves it open."""
    out = []
    for rival, share in ASKED[kind].items():
        won = _won(fields, ours, rival) if rival in fields[0].runs else None
        above = Criterion("above", share * len(fields))
        for i, (name, role) in enumerate(TESTS.values()):
            found = certain(won[2 * i] - won[2 * i + 1]) if won else None
            out.append(Statistic(f"wins minus losses against {rival}, {name}", found, above, role))
    if floor:
        out.append(Statistic("norm of uniform play", floor, Criterion("within", 0.9, 1.1), Role.CONTROL))
    return out


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


def _tables(
    fields: Sequence[Field],
    norms: Mapping[str, Estimate],
    against: Sequence[str],
    scores: Mapping[tuple[str, str], str],
) -> list[Table]:
    large = [field for field in fields if field.ground.played >= LARGE]
    places = {name: str(place) for place, name in enumerate(norms, start=1)}
    ranking: dict[str, dict[str, str]] = {
        "norm": {name: f"{norm:.3f}" for name, norm in norms.items()},
        f"norm, {LARGE} rows or more ({len(large)})": {
            name: f"{np.mean([field.norm(name) for field in large]):.3f}" if large else "" for name in norms
        },
        "error": {name: f"{np.mean([field.runs[name].error for field in fields]):.3f}" for name in norms},
        **{f"against {other}": {name: scores[name, other] for name in norms} for other in against},
    }
    matrix = {places[other]: {f"{places[name]}. {name}": scores[name, other] for name in norms} for other in norms}
    grounds = {field.ground.name.partition("/")[2]: field for field in fields}
    errors: dict[str, dict[str, str]] = {
        "rows": {name: f"{field.ground.played:,}" for name, field in grounds.items()},
        "arms": {name: str(field.ground.n_arms) for name, field in grounds.items()},
        "uniform": {name: f"{field.ground.uniform:.3f}" for name, field in grounds.items()},
        **{places[who]: {name: f"{field.runs[who].error:.3f}" for name, field in grounds.items()} for who in norms},
    }
    shown = [
        table("Least norm first; wins-losses over tables", "", ranking),
        table("Wins-losses of every row against every column", "", matrix),
    ]
    if len(fields) <= MOST:
        shown.append(table("Error on every table, columns as in the matrix", "table", errors))
    return shown


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

    What Vowpal Wabbit did is kept in the folder and not played again; our policies are, unless they were interrupted.
    """
    require_matplotlib()  # better now than after the computation
    survey(settings)  # refuses tables that are not here
    if settings.rivals != "none":
        vowpal.prepare(tell)
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
    return Shelf(folder / "data" / "armlet"), Shelf(folder / "data" / "vowpal")


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
    manifest |= {"vowpal": vowpal.VERSION, "sessions": sessions}
    write_manifest(folder, manifest)
    return manifest


def _tell(found: Findings, folder: Path, manifest: dict[str, Any], tell: Callable[[str], None]) -> Path:
    page = write_report(Reproduction({KIND: found}), folder, manifest, EXPERIMENT.title)
    for section in found.sections:
        tell(f"\n{section.heading}: {section.tables[0].caption.lower()}\n")
        tell(section.tables[0].markdown())
    tell(f"\n{to_text(found.verdicts)}")
    tell(f"Report: {page}")
    return page
