"""A Contextual Bandit Bake-off (Bietti, Agarwal and Langford, JMLR 22, 2021) on the tables of KEEL.

A classification table becomes a bandit: a row is a context, its classes are the arms, the right one pays 1. A learner
plays the rows in a random order and is told the reward of its choice alone; what counts is the share of mistakes over
the whole run, learning included. All meet the same orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from armlet import datasets
from armlet.parallel.seeds import Seeds
from armlet.simulation.lab import Arrays, Lab, Scale
from armlet.types import Float64, Int64
from armlet_lab.contests.bakeoff import contenders, vowpal
from armlet_lab.contests.bakeoff.comparing import Runs
from armlet_lab.contests.bakeoff.fields import Field, Ground
from armlet_lab.contests.bakeoff.report import judge
from armlet_lab.runner.experiment import Experiment, Findings

COLLECTION: Final = "keel"
KINDS: Final = ("balanced", "imbalanced")
Rivals: TypeAlias = Literal["none", "usual", "grid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to play, and who plays."""

    rows: int  # of a table, at most
    shuffles: int
    rivals: Rivals  # what is played of Vowpal Wabbit
    policies: tuple[str, ...] = contenders.USUAL
    tables: tuple[str, ...] = ()  # KIND/NAME; empty for all


SCALES: Final[Mapping[Scale, Settings]] = {
    "quick": Settings(rows=1000, shuffles=3, rivals="usual"),
    "full": Settings(rows=10_000, shuffles=5, rivals="grid"),
}


def configured(scale: Scale, given: Mapping[str, Any]) -> Settings:
    """Give the settings of a scale with some of them changed; None or nothing leaves one as it is.

    Examples
    --------
    >>> configured("quick", {"rows": 50, "policies": ["Greedy"]}).policies
    ('Greedy',)
    """
    changed: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in given.items() if value
    }
    settings = replace(SCALES[scale], **changed)
    if settings.rows < 1 or settings.shuffles < 1:
        raise ValueError(f"rows is {settings.rows} and shuffles {settings.shuffles}; give at least 1 of each")
    if twice := [each for each in settings.policies if settings.policies.count(each) > 1]:
        raise ValueError(f"policy {twice[0]!r} is given twice; give each once")
    for policy in settings.policies:
        contenders.make(policy, settings.rows)  # better now than after an hour
    if not settings.tables:
        return settings
    known = datasets.names(COLLECTION)
    wanted = {name: [each for each in known if name in (each, each.partition("/")[0])] for name in settings.tables}
    if unknown := [name for name, found in wanted.items() if not found]:
        raise ValueError(f"there is no table {unknown[0]!r}; armlet data list {COLLECTION} names them")
    return replace(settings, tables=tuple(dict.fromkeys(chain(*wanted.values()))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One policy, or one group of Vowpal Wabbit's settings, on one table in one order."""

    seeds: Seeds
    table: str
    shuffle: int
    rows: int
    side: Literal["armlet", "vowpal"]
    contender: str
    data: str = datasets.collection(COLLECTION).sha256[:16]  # other tables or another Vowpal Wabbit: another task
    version: str = ""


def play(task: Task) -> Arrays:
    """Give the share of mistakes of every setting, and the mistakes themselves, packed: (settings, ceil(n / 64))."""
    table = datasets.load(COLLECTION, task.table)
    order = shuffled(task.seeds, task.table, task.shuffle, len(table), task.rows)
    seed = task.seeds.seed("coins of a shuffle", task.table, task.shuffle)
    if task.side == "armlet":
        found = np.array([contenders.mistakes(table, order, task.contender, seed=seed)])
    else:
        found = np.array(vowpal.mistakes(table, order, vowpal.GROUPS[task.contender], seed=seed % 2**31))
    return {"errors": found.mean(axis=1), "mistakes": pack(found)}


def shuffled(seeds: Seeds, table: str, shuffle: int, n: int, rows: int) -> Int64:
    """Give the order in which the rows of a table are played, the first so many of them.

    Examples
    --------
    >>> sorted(shuffled(Seeds(1), "balanced/iris", 0, 4, 10).tolist())
    [0, 1, 2, 3]
    """
    return seeds.rng("shuffle", table, shuffle).permutation(n)[:rows].astype(np.int64)


def pack(mistakes: Float64) -> Int64:
    """Put the zeros and ones of each row into integers, 64 in each.

    Examples
    --------
    >>> pack(np.array([[1.0, 0.0, 1.0]]))
    array([[5]])
    """
    bits = np.packbits(mistakes.astype(np.bool_), axis=1, bitorder="little")
    padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8)))
    return padded.view("<i8").astype(np.int64)


def unpack(packed: Int64, n: int) -> Float64:
    """Give the zeros and ones again.

    Examples
    --------
    >>> unpack(np.array([[5]]), 3)
    array([[1., 0., 1.]])
    """
    bits = np.ascontiguousarray(packed.astype("<i8")).view(np.uint8)
    return np.unpackbits(bits, axis=1, count=n, bitorder="little").astype(np.float64)


def find(settings: Settings, lab: Lab, rivals: Lab | None = None) -> Findings:
    """Play all and judge.

    Parameters
    ----------
    lab
        For our policies.
    rivals
        For Vowpal Wabbit, whose results outlive a change of ours; the same lab if left out.
    """
    grounds = survey(settings)
    found: dict[str, dict[str, Runs]] = {ground.name: {} for ground in grounds}
    for group in groups(settings.rivals):
        tasks = _tasks(settings, lab.seeds, grounds, group, "vowpal")
        label = f"Bake-off: Vowpal Wabbit, {group} ({len(vowpal.GROUPS[group])} settings)"
        _gather(found, grounds, tasks, (rivals or lab).map(f"vowpal-{group}", play, tasks, label))
    ours = [_tasks(settings, lab.seeds, grounds, policy, "armlet") for policy in settings.policies]
    label = f"Bake-off: {len(ours)} of our policies"
    results = iter(lab.map("policies", play, list(chain(*ours)), label))
    for tasks in ours:
        _gather(found, grounds, tasks, list(islice(results, len(tasks))))
    return judge([Field(ground, found[ground.name]) for ground in grounds], settings.policies, lab.seeds)


def groups(rivals: Rivals) -> tuple[str, ...]:
    """Name what is played of Vowpal Wabbit.

    Examples
    --------
    >>> groups("none"), groups("usual"), len(groups("grid"))
    ((), ('usual',), 8)
    """
    return {"none": (), "usual": ("usual",), "grid": tuple(vowpal.GROUPS)}[rivals]


def survey(settings: Settings) -> list[Ground]:
    """Look at the tables that are asked for."""
    names = settings.tables or datasets.names(COLLECTION)
    out = []
    for name in names:
        table = datasets.load(COLLECTION, name)
        out.append(Ground(name=name, n=len(table), played=min(len(table), settings.rows), n_arms=table.n_arms))
    return out


def _tasks(settings: Settings, seeds: Seeds, grounds: Sequence[Ground], contender: str, side: str) -> list[Task]:
    theirs = side == "vowpal"
    return [
        Task(
            seeds=seeds,
            table=ground.name,
            shuffle=shuffle,
            rows=settings.rows,
            side="vowpal" if theirs else "armlet",
            contender=contender,
            version=vowpal.VERSION if theirs else "",
        )
        for ground in grounds
        for shuffle in range(settings.shuffles)
    ]


def _gather(
    found: dict[str, dict[str, Runs]], grounds: Sequence[Ground], tasks: Sequence[Task], results: Sequence[Arrays]
) -> None:
    """Put what tasks found under their table and contender, all shuffles together."""
    for ground in grounds:
        mine = [(task, each) for task, each in zip(tasks, results, strict=True) if task.table == ground.name]
        orders = tuple(shuffled(task.seeds, task.table, task.shuffle, ground.n, task.rows) for task, _ in mine)
        rows = [unpack(np.asarray(each["mistakes"], dtype=np.int64), ground.played) for _, each in mine]
        for setting in range(len(rows[0])):
            label = named(mine[0][0], setting)
            found[ground.name][label] = Runs(tuple(each[setting] for each in rows), orders)


def named(task: Task, setting: int) -> str:
    """Name a policy by its text, and a setting of Vowpal Wabbit by its label."""
    return task.contender if task.side == "armlet" else vowpal.GROUPS[task.contender][setting].label


def _run(lab: Lab) -> Findings:
    return find(SCALES[lab.scale], lab)


EXPERIMENT: Final = Experiment("bakeoff", "Bake-off: real tables, beside Vowpal Wabbit", _run)
