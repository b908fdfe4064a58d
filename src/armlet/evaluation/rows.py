"""A log as blocks of columns, and how the arm of each row was drawn: what every estimator reads.

A row is a decision with the last reward that counts for it. `open_rows` takes logs of all kinds: compacted ones are
read column by column, as they lie, and blocks are runs of whole row groups, so that a worker reads its own and nothing
else. All others are read once, event by event, into temporary files, because a reward may come, or be corrected, long
after its decision. Memory holds one block, however long the log is.
"""

from __future__ import annotations

import copy
import importlib
import json
import os
import shutil
import struct
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from armlet.errors import ArgumentError, LogError
from armlet.evaluation.provenance import RowDigest, micros
from armlet.evaluation.units import unit_codes
from armlet.inputs.columns import LARGEST, LEAST_CHANCE
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.outcomes import Outcomes
from armlet.inputs.settings import Objective
from armlet.log.events import ARM_CHANGES, EXPLORATION, Event, Events, Roster, check_ordinary, parse, reading
from armlet.log.parquet import read_metadata, side_lines
from armlet.log.parts import PART
from armlet.log.reader import Source, read
from armlet.log.tables import open_file
from armlet.types import Arm, Bool, Float64, Int64

BLOCK: Final = 2**16
"""Rows of a block: where sums are cut is part of what they are."""
Int8 = npt.NDArray[np.int8]
_NUMBERS: Final = ("propensity", *EXPLORATION, "reward")
_COLUMNS: Final = ("t", "seq", "arm", "eligible", "explored", "greedy", "design", "probabilities", "weight", *_NUMBERS)
_BATCH: Final = 2**14
_NAME: Final = np.dtype([("t", "<i8"), ("mark", "<u8")])
_REWARD: Final = np.dtype([("t", "<i8"), ("mark", "<u8"), ("place", "<i8"), ("reward", "<f8"), ("weight", "<f8")])
_CHUNK: Final = 2**14
_PART: Final = 2**12  # events that are in memory at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A block of n decisions, in their order, of d features and K arms."""

    t: Int64  # (n,): the step
    X: Float64  # (n, d): contexts as the bandit saw them; zeros where one was erased
    arm: Int64  # (n,): the arm played, an index into `arms`
    reward: Float64  # (n,): the last that counts; NaN where none came, or it was forgotten
    propensity: Float64  # (n,): the probability of that arm, unconditionally
    explored: Int8  # (n,): 1 exploratory, 0 greedy, -1 not known
    exploration_rate: Float64  # (n,): the exploration probability of the step; NaN not known
    exploration_propensity: Float64  # (n,): the probability of the arm given that the step explores; NaN not known
    min_exploration_probability: Float64  # (n,): the smallest such probability among the eligible arms; NaN not known
    greedy: Int8  # (n,): 1 it had the highest estimate, 0 it did not, -1 not known
    turn: Bool  # (n,): it was the arm's turn in a round-robin
    eligible: Bool  # (n, K): the arms that might be played
    weight: Float64  # (n,): with which the reward was learned; 1 where none came
    probabilities: Float64 | None  # (n, K): those of all arms at that step, NaN where not logged; None if in no row
    unit: Int64 | None = None  # (n,): a number for each (epoch, unit), whose decisions share one draw; None if no units
    epoch: Int64 | None = None  # (n,): -1 not known; None if there are no units
    outcomes: dict[str, Float64] | None = None  # (n,) each: what the reward is made of; NaN where a part did not come

    def __len__(self) -> int:
        return len(self.t)

    def take(self, which: Bool | Int64 | slice) -> Self:
        """Return some of the rows."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        parts = values.pop("outcomes")
        some: dict[str, Any] = {name: None if value is None else value[which] for name, value in values.items()}
        some["outcomes"] = None if parts is None else {name: part[which] for name, part in parts.items()}
        return type(self)(**some)

    @property
    def rewarded(self) -> Bool:
        """Which rows have a reward."""
        return ~np.isnan(self.reward)

    def with_reward(self) -> Self:
        """Return the rows that have a reward; all of them without a copy if every one has."""
        mask = self.rewarded
        return self if mask.all() else self.take(mask)


class Blocks(ABC):
    """A log, to be read block by block any number of times; `open_rows` makes it.

    Unpickled on the same machine, or where the file is, it reads the same blocks.
    """

    arms: tuple[Arm, ...]
    """All arms that the log ever had, those added later at the end."""
    n: int
    """Rows in all."""
    name: str = "rows in memory"
    """What the log is called: its file, its loop, or where it comes from."""
    period: tuple[int, int] | None = None
    """The first and the last time of a decision, in microseconds since 1970, if there are times."""
    digest: str | None = None
    """SHA-256 of the rows; None until they have been read once, in order. It does not depend on how they are stored."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.about = dict(about)

    @property
    def dim(self) -> int:
        """Values of a context."""
        return int(self.about["dim"])

    @property
    def features(self) -> tuple[str, ...] | None:
        """Their names, if they have any."""
        names = self.about.get("features")
        return None if names is None else tuple(names)

    @property
    def objective(self) -> Objective:
        """Whether rewards are maximised, or are costs."""
        return "min" if self.about.get("objective") == "min" else "max"

    @property
    def policy(self) -> Mapping[str, Any] | None:
        """The name and the settings of the policy that decided first; None if another system logged."""
        return self.about.get("policy")

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The declared (lowest, highest) reward, if there is one."""
        declared = self.about.get("reward_range")
        return None if declared is None else (float(declared[0]), float(declared[1]))

    @property
    def has_units(self) -> bool:
        """Whether decisions belong to units that share a draw: then every block says to which."""
        return len(self) > 0 and self[0].unit is not None

    @property
    def outcomes(self) -> dict[str, float] | None:
        """What rewards are made of, with the weights of the default dial; None if the log does not say."""
        told = self.about.get("outcomes")
        return None if told is None else {str(name): float(weight) for name, weight in told["weights"]}

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, block: int) -> Rows: ...

    def __iter__(self) -> Iterator[Rows]:
        made = RowDigest() if self.digest is None else None
        for block in range(len(self)):
            rows = self[block]
            if made is not None:
                made.add(rows)
            yield rows
        if made is not None:
            self.digest = made.found()


def rows_of(
    X: Float64, arms: Int64, rewards: Float64, propensities: Float64, *, n_arms: int | None = None, **known: Any
) -> Rows:
    """Return rows from arrays: those of a log where nothing else is known, unless other columns are given."""
    n, k = len(X), int(arms.max(initial=0)) + 1 if n_arms is None else n_arms
    columns = {"t": np.arange(1, n + 1), "X": X, "arm": arms, "reward": rewards, "propensity": propensities}
    return Rows(**(unknown_columns(n, k) | columns | {"probabilities": None} | known))


def unknown_columns(n: int, n_arms: int) -> dict[str, Any]:
    """Return the other columns of a log that holds arms, rewards and propensities alone."""
    unknown, unsaid = np.full(n, np.nan), np.full(n, -1, dtype=np.int8)
    return {
        **dict.fromkeys(("explored", "greedy"), unsaid),
        **dict.fromkeys(EXPLORATION, unknown),
        "turn": np.zeros(n, dtype=np.bool_),
        "eligible": np.ones((n, n_arms), dtype=np.bool_),
        "weight": np.ones(n),
    }


# ---- how arms were drawn


@dataclass(frozen=True, slots=True)
class Design:
    """How the arms of rows that have a reward were drawn, (n,) each.

    A turn of a round-robin is logged with propensity 1, which is true and useless: had the turn fallen otherwise,
    another arm would have been played. Where contexts do not depend on the step, it is a draw of one of the m eligible
    arms, and so it is read here.
    """

    propensity: Float64  # of the arm, unconditionally
    given: Float64  # the same given that the step explores; 1 where that is not known
    rate: Float64  # the exploration probability; NaN where it is not known
    explored: Bool  # drawn at random, or by turn
    n_eligible: Float64  # m
    learned: Bool  # the reward model has the row
    known: Bool  # rate and probability given exploring are known
    step: Float64
    whole: bool  # every arm of the log was eligible in every row

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Read the design of rows that all have a reward."""
        step, whole = rows.t.astype(np.float64), bool(rows.eligible.all())
        m = np.full(len(rows), float(rows.eligible.shape[1])) if whole else rows.eligible.sum(axis=1).astype(np.float64)
        turns, stated = rows.turn.any(), rows.explored >= 0
        propensity = np.where(rows.turn, 1.0 / m, rows.propensity) if turns else rows.propensity
        if not stated.any():  # nothing but propensities is known
            return cls(propensity, np.ones(len(m)), rows.exploration_rate, stated, m, ~stated, stated, step, whole)
        explored = rows.explored == 1
        given = np.where(rows.turn, 1.0 / m, rows.exploration_propensity) if turns else rows.exploration_propensity
        rate = np.where(rows.turn, 1.0, rows.exploration_rate) if turns else rows.exploration_rate
        known = stated & ~np.isnan(rate) & (~np.isnan(given) | _is_aside(rows))
        return cls(
            propensity=propensity,
            given=np.where(np.isnan(given), 1.0, given),
            rate=rate,
            explored=explored & known,
            n_eligible=m,
            learned=np.where(known, explored, ~stated),
            known=known,
            step=step,
            whole=whole,
        )

    def randomized(self) -> tuple[Bool, Float64]:
        """Return which rows were drawn regardless of the context, or all, and the probabilities of their arms."""
        if self.known.all():
            return self.explored, self.given
        return np.ones(len(self.propensity), dtype=np.bool_), self.propensity


def _is_aside(rows: Rows) -> Bool:
    """Return which rows a control played where the live policy explores at a known rate: nobody explored there."""
    return np.asarray((rows.explored == 0) & (rows.min_exploration_probability > 0.0))


def randomized_rows(rows: Rows) -> tuple[Bool, Float64]:
    """Return which rows were drawn regardless of the context, and the probabilities of their arms.

    Where a log does not say what explored, every row counts, by its propensity. A turn of a round-robin was not drawn:
    what is anytime-valid must not depend on its coming round, as a sample of rows may (`Design.randomized`).
    """
    if (rows.explored < 0).any():
        return np.ones(len(rows), dtype=np.bool_), rows.propensity
    used = (rows.explored == 1) & ~rows.turn & ~np.isnan(rows.exploration_propensity)
    return used, np.where(used, rows.exploration_propensity, 1.0)


def deterministic_rows(rows: Rows) -> Bool:
    """Return which of the rows that `randomized_rows` reads by their propensity could have played no other arm.

    Examples
    --------
    >>> deterministic_rows(rows_of(np.ones((2, 1)), np.array([0, 1]), np.ones(2), np.array([1.0, 0.5])))
    array([ True, False])
    """
    if rows.propensity.max(initial=0.0) < 1.0 or not (rows.explored < 0).any():
        return np.zeros(len(rows), dtype=np.bool_)
    return np.asarray((rows.propensity >= 1.0) & ~rows.turn & (rows.eligible.sum(axis=1) > 1))


def check_rows(rows: Rows) -> None:
    """Refuse rows with invalid propensities, arms or rewards."""
    _check_probabilities(rows, rows.propensity, "propensity")
    if (rows.explored == 1).any():
        given = np.where(
            (rows.explored == 1) & ~np.isnan(rows.exploration_propensity), rows.exploration_propensity, 1.0
        )
        _check_probabilities(rows, given, "probability of exploring")
    everyone = bool(rows.eligible.all())
    if not everyone and (wrong := np.flatnonzero(~rows.eligible[np.arange(len(rows)), rows.arm])).size:
        raise ArgumentError("{log} plays an arm at step {t} that was not eligible", t=int(rows.t[wrong[0]]))
    finite = np.isfinite(rows.reward)
    if not finite.all():
        wrong = np.flatnonzero(~finite)
        raise ArgumentError("{log} has a reward at step {t} that is not finite", t=int(rows.t[wrong[0]]))


def _check_probabilities(rows: Rows, values: Float64, name: str) -> None:
    most = 1.0 + 1e-9
    if values.min(initial=1.0) >= LEAST_CHANCE and values.max(initial=0.0) <= most:  # false if one is NaN
        return
    wrong = int(np.flatnonzero(~((values >= LEAST_CHANCE) & (values <= most)))[0])
    text = (
        "{log} has a {name} of {value} at step {t}; give the probability of the arm, above 0 and at most 1 "
        "({least} or more)"
    )
    raise ArgumentError(text, name=name, value=float(values[wrong]), t=int(rows.t[wrong]), least=LEAST_CHANCE)


# ---- logs


def open_rows(log: Source | Blocks) -> Blocks:
    """Open a log to be read in blocks of columns: a path, an `armlet.Log`, a loop's `log`, or `Events` of any origin.

    Examples
    --------
    >>> from armlet.log import from_obp
    >>> feedback = {"action": [1, 0], "reward": [0, 1], "pscore": [0.5, 0.25], "context": [[1.0], [2.0]]}
    >>> blocks = open_rows(from_obp(feedback))
    >>> blocks.arms, [(rows.arm.tolist(), rows.reward.tolist()) for rows in blocks]
    ((0, 1), [([1, 0], [0.0, 1.0])])
    """
    if isinstance(log, Blocks):
        return log
    if isinstance(log, str | os.PathLike) and os.fspath(log).endswith(".parquet"):
        check_ordinary(Path(log), "log")
        return CompactedBlocks(log)
    events = read(log)
    path = getattr(events, "path", None)
    return CompactedBlocks(path) if path and str(path).endswith(".parquet") else SpooledBlocks(events)


class CompactedBlocks(Blocks):
    """The rows of a log that `armlet.log.compact` wrote; if arms came or went, the file next to it is read too."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        with reading(self._path.name), open_file(self._path) as file:
            about, self._layout = read_metadata(file.schema_arrow, self._path.name)
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
            self.name, self.period = self._path.name, _stated_period(file)
            self._units = _has_values(file, "unit")
            self._parts = [name for name in file.schema_arrow.names if name.startswith(PART)]
        super().__init__(about)
        self._groups = list(_runs(sizes))
        self.n = sum(sizes)
        roster = Roster(about)
        self._eras = _eras(self._path, roster, self.about)
        self.arms = tuple(roster.labels)

    @property
    def has_units(self) -> bool:
        """Whether a row names a unit."""
        return self._units

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, block: int) -> Rows:
        if not 0 <= block < len(self):
            raise IndexError(block)
        with reading(self._path.name):
            return self._block(block)

    def _block(self, block: int) -> Rows:
        names = [*_COLUMNS, *self._x_names(), *self._parts, *(("unit", "epoch") if self._units else ())]
        with open_file(self._path, ["arm"] if self._layout.labels != "int" else []) as file:
            options = {"batch_size": _BATCH, "row_groups": self._groups[block], "columns": names}
            parts = [self._read(batch) for batch in file.iter_batches(**options, use_threads=False)]
        probabilities = [part.pop("probabilities") for part in parts]
        columns: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns["probabilities"] = None
        if any(each is not None for each in probabilities):
            filled = [
                np.full((len(part["t"]), len(self.arms)), np.nan) if each is None else each
                for each, part in zip(probabilities, parts, strict=True)
            ]
            columns["probabilities"] = np.concatenate(filled)
        if self._parts:
            columns["outcomes"] = {name.removeprefix(PART): columns.pop(name) for name in self._parts}
        return Rows(**_without_erased(columns))

    def _x_names(self) -> list[str]:
        return ["x"] if self._layout.contexts == "binary" else [f"x.{name}" for name in self._layout.features]

    def _read(self, batch: Any) -> dict[str, Any]:
        name = self._path.name
        for column in ("seq", "t", "propensity"):
            if batch.column(column).null_count:
                raise LogError(f"{name} has a row without {column}; read the log that it was made from")
        seq = _whole(batch.column("seq"))
        columns: dict[str, Any] = {each: _floats(batch.column(each), np.nan) for each in _NUMBERS}
        for each in ("explored", "greedy"):
            columns[each] = batch.column(each).cast("int8").fill_null(-1).to_numpy(zero_copy_only=False)
        columns["arm"] = self._places(batch.column("arm"))
        columns |= {"t": _whole(batch.column("t")), "weight": _floats(batch.column("weight"), 1.0)}
        columns["weight"][np.isnan(columns["reward"])] = 1.0
        columns["turn"] = _is_turn(batch.column("design"))
        columns |= {each: _floats(batch.column(each), np.nan) for each in self._parts}
        if self._units:
            units, epochs = batch.column("unit"), batch.column("epoch")
            columns["unit"] = unit_codes(units.to_pylist(), epochs.to_pylist(), columns["t"])
            columns["epoch"] = _whole(epochs.fill_null(-1))
        _check_ranges(columns, name)
        columns["X"] = self._contexts(batch)
        if (np.abs(columns["X"]) > LARGEST).any():
            raise LogError(f"{name} has a context beyond 1e40; read the log that it was made from")
        columns["eligible"] = self._eligible(batch.column("eligible"), seq)
        columns["probabilities"] = self._probabilities(batch.column("probabilities"), seq)
        return columns

    def _contexts(self, batch: Any) -> Float64:
        if self._layout.contexts == "columns":
            return np.column_stack([_floats(batch.column(name), np.nan) for name in self._x_names()])
        column, dim = batch.column("x"), self._layout.dim
        data = np.frombuffer(column.buffers()[1], "<f8", len(column) * dim, column.offset * dim * 8)
        X = data.reshape(len(column), dim).astype(np.float64)
        X[np.asarray(column.is_null())] = np.nan
        return X

    def _places(self, column: Any) -> Int64:
        """Return labels as indices of arms."""
        name = self._path.name
        if column.null_count:
            raise LogError(f"{name} has a row without an arm; read the log that it was made from")
        known = {label: place for place, label in enumerate(self.arms)}
        coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
        labels = coded.dictionary.to_pylist()
        if self._layout.labels == "json":
            labels = [json.loads(label) for label in labels]
        places = np.array([known.get(label, -1) for label in labels], dtype=np.int64)
        found: Int64 = places[coded.indices.to_numpy(zero_copy_only=False)] if len(labels) else places
        if (found < 0).any():
            unknown = labels[int(np.flatnonzero(places < 0)[0])]
            raise LogError(f"{name} names arm {unknown!r}, which the log does not have")
        return found

    def _eligible(self, column: Any, seq: Int64) -> Bool:
        plays = np.zeros((len(column), len(self.arms)), dtype=np.bool_)
        stated = ~np.asarray(column.is_null())
        for rows, roster in self._by_era(seq):
            active = roster.active()
            plays[rows, : len(active)] = active
        if stated.any():
            lengths = np.asarray(column.value_lengths().fill_null(0))
            plays[stated] = False
            plays[np.repeat(np.arange(len(column)), lengths), self._places(column.flatten())] = True
        return plays

    def _probabilities(self, column: Any, seq: Int64) -> Float64 | None:
        stated = ~np.asarray(column.is_null())
        if not stated.any():
            return None
        out = np.full((len(column), len(self.arms)), np.nan)
        out[stated] = 0.0
        lengths = np.asarray(column.value_lengths().fill_null(0)).astype(np.int64)
        values = _floats(column.flatten(), np.nan)
        starts = np.cumsum(lengths) - lengths
        for rows, roster in self._by_era(seq):
            some = np.arange(len(column))[rows]
            some = some[stated[some]]
            order = roster.order
            out[some[:, None], order] = values[starts[some][:, None] + np.arange(len(order))]
        return out

    def _by_era(self, seq: Int64) -> Iterator[tuple[slice, Roster]]:
        """Yield rows between which arms did not change, with the roster of that time."""
        cuts = np.searchsorted(seq, [begin for begin, _ in self._eras])
        ends = [*cuts[1:].tolist(), len(seq)]
        for begin, end, (_, roster) in zip(cuts.tolist(), ends, self._eras, strict=True):
            if begin < end:
                yield slice(begin, end), roster


def _without_erased(columns: dict[str, Any]) -> dict[str, Any]:
    """Put zeros for contexts that were erased, NaN so far.

    Refuse what no log has: a reward whose context is not known, and a step at which no arm may be played.
    """
    alone = np.flatnonzero(~columns["eligible"].any(axis=1))
    if alone.size:
        raise LogError(
            f"step {columns['t'][alone[0]]:,} has no arm that may be played; read the log that it was made from"
        )
    erased = np.isnan(columns["X"]).any(axis=1)
    wrong = np.flatnonzero(erased & ~np.isnan(columns["reward"]))
    if wrong.size:
        step = columns["t"][wrong[0]]
        raise LogError(f"step {step:,} has a reward but no context: log contexts, or leave such rows out")
    return columns | {"X": np.where(erased[:, None], 0.0, columns["X"])} if erased.any() else columns


def _check_ranges(columns: dict[str, Any], name: str) -> None:
    """Refuse values that no event has; NaN stands for null, except for a propensity."""
    wrong = {
        "propensity": ~((columns["propensity"] >= 0.0) & (columns["propensity"] <= 1.0)),
        **{each: (columns[each] < 0.0) | (columns[each] > 1.0) for each in EXPLORATION},
        "reward": np.abs(columns["reward"]) > LARGEST,
        "weight": ~((columns["weight"] > 0.0) & (columns["weight"] <= LARGEST)),
        "t": columns["t"] < 0,
    }
    for column, rows in wrong.items():
        if rows.any():
            value = columns[column][np.flatnonzero(rows)[0]]
            raise LogError(f"{name} has a row whose {column} is {value}; read the log that it was made from")


def _runs(sizes: list[int]) -> Iterator[list[int]]:
    """Yield runs of row groups of at least a block's size, except for the last."""
    run: list[int] = []
    rows = 0
    for group, size in enumerate(sizes):
        run.append(group)
        rows += size
        if rows >= BLOCK:
            yield run
            run, rows = [], 0
    if rows:
        yield run


def _eras(path: Path, roster: Roster, about: Event) -> list[tuple[int, Roster]]:
    """Return the arms as they were from the event of a number on, each time that they changed; declare all rewards."""
    eras, paid = [(0, copy.deepcopy(roster))], Paid(about)
    marks = [f'"kind":"{kind}"'.encode() for kind in (*ARM_CHANGES, "replace")]
    with reading(path.name):
        for line in side_lines(path, f"it says which arms came and went in {path.name}"):
            if any(mark in line[:60] for mark in marks):
                event = parse(line, None, path.name)
                _widen_range(about, event)
                if "outcomes" in event:
                    paid.replace(event["outcomes"])
                if event["kind"] != "replace":
                    roster.apply(event)
                    eras.append((event["seq"], copy.deepcopy(roster)))
    return eras


def _whole(column: Any) -> Int64:
    return column.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _floats(column: Any, missing: float) -> Float64:
    filled = column.fill_null(missing) if column.null_count else column
    return filled.to_numpy(zero_copy_only=False).astype(np.float64)  # type: ignore[no-any-return]


def _is_turn(column: Any) -> Bool:
    compute = importlib.import_module("pyarrow.compute")
    plain = column.dictionary_decode() if hasattr(column, "dictionary") else column
    return np.asarray(compute.equal(plain, "turn").fill_null(False)).astype(np.bool_)


def _stated_period(file: Any) -> tuple[int, int] | None:
    """Return the first and the last time by the statistics of row groups; None where there are none, or no times."""
    place = [file.metadata.schema.column(i).path for i in range(file.metadata.num_columns)].index("decided_at")
    stated = [file.metadata.row_group(i).column(place).statistics for i in range(file.metadata.num_row_groups)]
    if not stated or not all(each is not None and each.has_min_max for each in stated):
        return None
    first, last = (micros(each) for each in (min(s.min for s in stated), max(s.max for s in stated)))
    return (first, last) if last else None  # 0 where times are not known


def _has_values(file: Any, name: str) -> bool:
    """Whether a column has a value in any row."""
    if name not in file.schema_arrow.names:
        return False
    place = [file.metadata.schema.column(i).path for i in range(file.metadata.num_columns)].index(name)
    for group in range(file.metadata.num_row_groups):
        stated = file.metadata.row_group(group).column(place).statistics
        if stated is None or not stated.has_null_count or stated.null_count < file.metadata.row_group(group).num_rows:
            return True
    return False


def _name(events: Events, about: Event) -> str:
    loop = about.get("loop")
    return str(getattr(events, "name", None) or (f"loop {loop}" if loop else about.get("origin")) or "events in memory")


class SpooledBlocks(Blocks):
    """The rows of any events, read once, now; the temporary files go when the reader does."""

    def __init__(self, events: Events) -> None:
        folder = tempfile.mkdtemp(prefix="armlet-rows-")
        self._gone = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._folder = Path(folder)
        spooler = _Spooler(self._folder)
        about, self.arms, self.n = spooler.spool(events)
        super().__init__(about)
        self.name, self.period = _name(events, about), spooler.period
        self._units, self._paid = spooler.has_units, spooler.paid

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_gone"}

    @property
    def has_units(self) -> bool:
        """Whether a decision names a unit."""
        return self._units

    def __len__(self) -> int:
        return -(-self.n // BLOCK)

    def __getitem__(self, block: int) -> Rows:
        with np.load(self._folder / f"{block}.npz") as saved:
            columns: dict[str, Any] = dict(saved)
        paid = np.memmap(self._folder / "paid", self._paid.dtype, mode="r")[block * BLOCK : (block + 1) * BLOCK]
        columns |= {"weight": np.array(paid["weight"])} | self._paid.read(paid, columns.pop("prices"))
        columns["weight"][np.isnan(columns["reward"])] = 1.0
        if not self._units:
            columns |= {"unit": None, "epoch": None}
        n_arms = len(self.arms)
        columns["eligible"] = _widened(columns["eligible"], n_arms)
        probabilities = columns["probabilities"]
        columns["probabilities"] = _widened(probabilities, n_arms) if probabilities.size else None
        return Rows(**_without_erased(columns))


class _Spooler:
    """Writes columns block by block; rewards are put to their decisions at the end, in the order they came."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names, self._rewards = (folder / "names").open("wb"), (folder / "rewards").open("wb")
        self._buffer: list[Event] = []
        self._eligible: list[Any] = []
        self._probabilities: list[Float64 | None] = []
        self._prices: list[list[float]] = []
        self._parts: list[dict[str, Any]] = []
        self.n = self._blocks = 0
        self.has_units = False
        self.period: tuple[int, int] | None = None

    def spool(self, events: Events) -> tuple[Event, tuple[Any, ...], int]:
        """Write all columns; return the fields of the start, the arms and the number of rows."""
        self._about = about = dict(events.about)
        self._dim = int(about["dim"])
        self._roster = Roster(about)
        self.paid = Paid(about)
        try:
            with reading(getattr(events, "name", "the log")):
                for event in events:
                    self._take(event)
                self._flush()
        finally:
            self._names.close()
            self._rewards.close()
        self._settle()
        return about, tuple(self._roster.labels), self.n

    def _take(self, event: Event) -> None:
        match event["kind"]:
            case "decide":
                self._decide(event)
            case "learn" | "correct" | "forget":
                self._reward(event)
            case "replace":
                self._replace(event)
            case _:
                self._roster.apply(event)

    def _decide(self, event: Event) -> None:
        self._names.write(struct.pack("<qQ", event["t"], int(event["id"].partition("-")[2], 16)))
        self._buffer.append(event)
        self._prices.append(self.paid.prices(event["arm"]))
        self.has_units = self.has_units or event.get("unit") is not None
        if at := event.get("at"):  # 0 where times are not known
            first, last = self.period or (at, at)
            self.period = (min(first, at), max(last, at))
        self._eligible.append(self._may_play(event))
        self._probabilities.append(self._all_probabilities(event))
        self.n += 1
        if self.n % _PART == 0:
            self._convert()
        if self.n % BLOCK == 0:
            self._flush()

    def _may_play(self, event: Event) -> Any:
        if event["eligible"] is None:
            return self._roster.active()
        plays = np.zeros(len(self._roster.labels), dtype=np.bool_)
        plays[[self._place(arm, event) for arm in event["eligible"]]] = True
        return plays

    def _place(self, arm: Any, event: Event) -> int:
        place = self._roster.places.get(arm)
        if place is None:
            raise LogError(f"event {event['seq']:,} names arm {arm!r}, which the log does not have", event["seq"])
        return place

    def _all_probabilities(self, event: Event) -> Float64 | None:
        given, order = event.get("probabilities"), self._roster.order
        if given is None:
            return None
        if len(given) != len(order):
            text = f"event {event['seq']:,} has {len(given)} probabilities, but there are {len(order)} arms"
            raise LogError(text, event["seq"])
        probabilities = np.zeros(len(self._roster.labels))
        probabilities[order] = given
        return probabilities

    def _reward(self, event: Event) -> None:
        if "played" in event:  # of another arm than the one that was decided, and chosen by nobody's coin
            return
        gone = event["kind"] == "forget"
        weight = 1.0 if gone else event.get("weight", 1.0)
        t, _, mark = event["id"].partition("-")
        for place, paid in self.paid.told(event):
            value = np.nan if gone else paid
            self._rewards.write(struct.pack("<qQqdd", int(t), int(mark, 16), place, value, weight))

    def _replace(self, event: Event) -> None:
        """Carry the rows so far to other features, as the bandit did with what it had learned from them."""
        _widen_range(self._about, event)
        if "outcomes" in event:
            self.paid.replace(event["outcomes"])
        if "features" not in event:
            return
        self._convert()
        change = FeatureChange.between(self._about.get("features"), event["features"], event.get("fill"), dim=self._dim)
        for part in self._parts:
            part["X"] = change.carry(part["X"])
        for block in range(self._blocks):
            with np.load(self._folder / f"{block}.npz") as saved:
                columns: dict[str, Any] = dict(saved)
            np.savez(self._folder / f"{block}.npz", **columns | {"X": change.carry(columns["X"])})
        self._dim = change.dim
        self._about |= {"dim": change.dim, "features": list(change.after)}

    def _convert(self) -> None:
        """Turn events into columns, which are much smaller."""
        rows, n_arms = self._buffer, len(self._roster.labels)
        if not rows:
            return
        columns: dict[str, Any] = {
            name: np.array([np.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)
            for name in ("propensity", *EXPLORATION)
        }
        for name in ("explored", "greedy"):
            columns[name] = np.array([-1 if row[name] is None else row[name] for row in rows], dtype=np.int8)
        columns["t"] = np.array([row["t"] for row in rows], dtype=np.int64)
        columns["arm"] = np.array([self._place(row["arm"], row) for row in rows], dtype=np.int64)
        columns["turn"] = np.array([row["design"] == "turn" for row in rows])
        columns["X"] = _stacked([row["x"] for row in rows], np.full(self._dim, np.nan), exact=True)
        columns["eligible"] = _stacked(self._eligible, np.zeros(n_arms, dtype=np.bool_))
        columns["probabilities"] = _stacked(self._probabilities, np.full(n_arms, np.nan))
        columns["prices"] = np.array(self._prices, dtype=np.float64).reshape(len(rows), -1)
        epochs = [row.get("epoch") for row in rows]
        columns["unit"] = unit_codes([row.get("unit") for row in rows], epochs, columns["t"])
        columns["epoch"] = np.array([-1 if each is None else each for each in epochs], dtype=np.int64)
        self._parts.append(columns)
        for kept in (self._buffer, self._eligible, self._probabilities, self._prices):
            kept.clear()

    def _flush(self) -> None:
        self._convert()
        if not self._parts:
            return
        n_arms = len(self._roster.labels)
        for part in self._parts:
            part |= {name: _widened(part[name], n_arms) for name in ("eligible", "probabilities")}
        columns: dict[str, Any] = {
            name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]
        }
        if np.isnan(columns["probabilities"][:, 0]).all():
            columns["probabilities"] = np.empty((0, 0))
        np.savez(self._folder / f"{self._blocks}.npz", **columns)
        self._blocks += 1
        self._parts.clear()

    def _settle(self) -> None:
        if self.n == 0:
            return
        names = np.memmap(self._folder / "names", _NAME, mode="r")
        paid = np.memmap(self._folder / "paid", self.paid.dtype, mode="w+", shape=(self.n,))
        paid["parts"], paid["weight"] = np.nan, 1.0
        if (self._folder / "rewards").stat().st_size:
            rewards = np.memmap(self._folder / "rewards", _REWARD, mode="r")
            find = _Finder(names)
            for begin in range(0, len(rewards), _CHUNK):
                some = np.asarray(rewards[begin : begin + _CHUNK])
                rows = find(some["t"], some["mark"])
                rows, some = rows[rows >= 0], some[rows >= 0]
                paid["parts"][rows, some["place"]] = some["reward"]  # of several the last stays
                paid["weight"][rows] = some["weight"]
        paid.flush()


class Paid:
    """What decisions earned: a number each, or with outcomes the parts of one, some of them known prices."""

    def __init__(self, about: Event) -> None:
        self._about = about
        told = about.get("outcomes")
        self._told = [] if told is None else [Outcomes.from_dict(told)]  # the last of them weighs all rows
        self._known = list(self._told[0].known) if self._told else []
        self._named = list(self._told[0].learned) if self._told else []

    def replace(self, outcomes: Event) -> None:
        """Weigh all rows by other weights; take other prices and ranges for those to come."""
        self._told.append(Outcomes.from_dict(outcomes))
        widest = _widest(self._told)
        self._about |= {"outcomes": outcomes, "reward_range": None if widest is None else list(widest)}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a row: the number, and behind it the outcomes, NaN where one did not come."""
        return np.dtype([("parts", "<f8", (1 + len(self._named),)), ("weight", "<f8")])

    def told(self, event: Event) -> list[tuple[int, float]]:
        """Return what an event says was earned, by place: 0 is the number itself."""
        given = event["new_reward" if event["kind"] == "correct" else "reward"]
        parts = given if isinstance(given, dict) else event.get("outcomes", {})
        self._named += [name for name in parts if name not in self._named]
        found = [(1 + self._named.index(name), float(part)) for name, part in parts.items()]
        return found if isinstance(given, dict) else [(0, given), *found]

    def prices(self, arm: Any) -> list[float]:
        """Return what is known beforehand of an arm."""
        return [float(self._told[-1].known[name].get(arm, np.nan)) for name in self._known]

    def read(self, paid: Any, prices: Float64) -> dict[str, Any]:
        """Return rewards and outcomes of rows; the reward is the number, or what the default weights make of parts."""
        parts = np.array(paid["parts"])
        if not self._named:
            return {"reward": parts[:, 0].copy()}
        outcomes = {name: parts[:, 1 + place].copy() for place, name in enumerate(self._named)}
        outcomes |= {name: prices[:, place].copy() for place, name in enumerate(self._known)}
        if not self._told:
            return {"reward": parts[:, 0].copy(), "outcomes": outcomes}
        weights, worth = self._told[-1].weights, np.zeros(len(parts))
        for name, weight in weights.items():
            worth = worth + weight * outcomes[name]
        outcomes = {name: outcomes[name] for name in (*weights, *(outcomes.keys() - weights.keys()))}
        return {"reward": np.where(np.isnan(worth), parts[:, 0], worth), "outcomes": outcomes}


def _widest(told: list[Outcomes]) -> tuple[float, float] | None:
    """Return the lowest and the highest worth by the last weights, of rows of any time; None if a range is missing."""
    last = told[-1]
    prices = {name: [price for each in told for price in each.known[name].values()] for name in last.known}
    ranges = {name: [each.ranges[name] for each in told if name in each.ranges] for name in last.learned}
    whole = {
        name: (min(low for low, _ in pairs), max(high for _, high in pairs))
        for name, pairs in ranges.items()
        if len(pairs) == len(told)
    }
    return Outcomes(last.weights, {name: dict(enumerate(each)) for name, each in prices.items()}, whole).reward_range()


def _widen_range(about: Event, event: Event) -> None:
    """Declare the range that holds the rewards of before and those after an event that replaces it."""
    if event["kind"] == "replace" and "reward_range" in event and about.get("reward_range") is not None:
        (low, high), (least, most) = about["reward_range"], event["reward_range"]
        about["reward_range"] = [min(low, least), max(high, most)]


class _Finder:
    """Finds rows by the names of decisions; -1 for those that the log does not have."""

    def __init__(self, names: Any) -> None:
        self._names = names
        t = names["t"]
        rises = all(bool((np.diff(t[i : i + BLOCK + 1]) > 0).all()) for i in range(0, len(t), BLOCK))
        self._order: Int64 | None = None if rises else np.argsort(t, kind="stable")
        self._t = t if self._order is None else t[self._order]

    def __call__(self, t: Int64, mark: Any) -> Int64:
        at = np.minimum(np.searchsorted(self._t, t, side="right") - 1, len(self._t) - 1)
        rows = at if self._order is None else self._order[at]
        same = (self._names["t"][rows] == t) & (self._names["mark"][rows] == mark)
        return np.where((at >= 0) & same, rows, -1)


def _stacked(given: Iterable[Any], empty: Any, *, exact: bool = False) -> Any:
    """Stack rows, `empty` for those that are None; shorter ones are filled with zeros, or refused if `exact`."""
    given = list(given)
    out = np.zeros((len(given), len(empty)), dtype=empty.dtype)
    for i, row in enumerate(given):
        if row is None:
            out[i] = empty
        elif exact:
            out[i] = row
        else:
            out[i, : len(row)] = row
    return out


def _widened(columns: Any, n_arms: int) -> Any:
    """Add columns for arms that came later: none of them was there yet."""
    wide = np.zeros((len(columns), n_arms), dtype=columns.dtype)
    wide[:, : columns.shape[1]] = columns
    if columns.dtype == np.float64:
        wide[np.isnan(columns[:, 0])] = np.nan
    return wide
