"""`armlet.fit`: a bandit that has learned all rows of a labelled table, or of Parquet files of any size.

Where a state is sums of rows, pieces of files are summed by any engine and added in their order: the same bytes on one
core, on many or on a cluster. Other policies learn row by row, in order, here. Memory holds batches of rows and sums
alone; a table that is not Parquet is read as a whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.errors import ArgumentError, InvalidValueError
from armlet.inputs.columns import check_labels
from armlet.inputs.encoder import Encoder
from armlet.inputs.outcomes import Outcomes, read_outcomes
from armlet.inputs.settings import Design, Normalize, Objective, Range, Units, check_design
from armlet.inputs.table import Data, Roles, Table, find_roles, in_order, listed_features
from armlet.inputs.tables import TableColumns, vector_width
from armlet.kernel import AutoTunedStatistics, Statistics, add_rows
from armlet.log.tables import Files, Piece, cut, find_files, have_gaps, open_file, read_batches
from armlet.parallel import PoolLike, each_in_order, opened
from armlet.policies.base import SumsPolicy
from armlet.policies.epsilon_greedy import EpsilonGreedy
from armlet.types import Arm, Float64, Int64, LearnsFrom, Policy

UPDATES: Final = (SumsPolicy.update, EpsilonGreedy.update)
"""What adds a row to the sums and does nothing else."""
PROBE: Final = 256
"""Rows that a copy of the bandit learns first."""

Source: TypeAlias = Table | Data | Files
"""A table, what becomes one, or Parquet files: a file, a folder, a pattern with * and ?, or several of them."""


def fit(
    data: Source,
    policy: Policy | None = None,
    *,
    features: Sequence[str] | None = None,
    arm: str | None = None,
    reward: str | None = None,
    explored: str | Literal[True] | None = None,
    weight: str | None = None,
    design: Design = "adaptive",
    arms: Iterable[Arm] | None = None,
    encoder: Encoder | None = None,
    objective: Objective | None = None,
    normalize: Normalize | None = None,
    units: Units | None = None,
    reward_range: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None,
    outcomes: Mapping[str, float] | None = None,
    known: Mapping[str, Mapping[Arm, float]] | None = None,
    seed: int | None = None,
    engine: PoolLike = "serial",
    workers: int | None = None,
) -> Bandit:
    """Make a bandit that has learned every row of a table or of Parquet files, as `Bandit.fit` would, to rounding.

    Every row counts as a decision; a row without a reward is counted and not learned. Where the policy's state
    is sums of rows, those of Parquet files are computed by `engine`, and the bytes are the same on any. Other policies,
    those whose rows fade, and bandits with several outcomes learn row by row in this process, in the order of the rows.

    Parameters
    ----------
    data
        An `armlet.Table`, or what it takes; or Parquet of any size: a file, a folder, a pattern such as
        "logs/*.parquet", or several of these. Files of a folder or a pattern come in the order of the alphabet.
    policy
        How the bandit chooses; `OccasionalOptimism()` if left out.
    features, arm, reward, explored, weight, arms
        As of `armlet.Table`, unless that is given. One column may hold whole contexts: lists, or binary values of
        float64, of one size. A compacted log says itself. Policies that learn from explored steps only insist on
        `explored`, a column or True.
    design
        How the arms of the rows were chosen, as of `Bandit.partial_fit`; "randomized" means that all were explored.
    encoder
        What makes numbers of the features; one that is not fitted yet is fitted on all rows first, which takes a pass.
        Left out, there is one where some features are text or dates, or have no value in some row.
        Contexts of a compacted log went through one already: give that one, and the bandit has it.
    objective, normalize, units, reward_range, outcomes, known, seed
        As of `Bandit`; a compacted log says itself which outcomes there are, with the weights, prices and ranges that
        it began with. A row that lacks an outcome is counted and not learned.
    engine, workers
        Where to sum: "serial", "processes", "threads", "dask", the address of a Dask scheduler, or any Executor.

    Examples
    --------
    >>> import armlet
    >>> rows = {"age": [31.0, 44.0, 28.0], "country": ["no", "fr", None], "ad": ["b", "a", "b"], "click": [0, 1, None]}
    >>> bandit = armlet.fit(rows, armlet.LinUCB(), features=["age", "country"], arm="ad", seed=1)
    >>> bandit.arms, bandit.t, bandit.state.n
    (['a', 'b'], 3, array([1., 1.]))
    """
    if check_design(design) == "randomized" and not isinstance(data, Table):
        explored = explored or True
    roles = {"features": features, "arm": arm, "reward": reward, "explored": explored, "weight": weight, "arms": arms}
    own = read_outcomes(outcomes, known, reward_range)
    files = _files(data)
    source = _of_table(data, roles, encoder, own) if files is None else _of_files(files, roles, encoder, own)
    several = source.outcomes
    if own is None and several is not None and reward_range is not None:
        several = read_outcomes(several.weights, several.known, reward_range)
    bandit = Bandit(
        source.labels,
        source.dim,
        policy=policy,
        features=source.features,
        encoder=source.encoder,
        objective=objective or source.objective,
        normalize=normalize,
        units=units,
        reward_range=reward_range if several is None else several.ranges,
        outcomes=None if several is None else several.weights,
        known=None if several is None else several.known,
        seed=seed,
    )
    if bandit.policy.learns_from == "explored steps" and not source.says_explored and design != "randomized":
        raise ArgumentError(
            "{explored} is missing: this policy learns only from steps that were played at random; name the column "
            "that says which were, or give {explored=True} if all were"
        )
    if isinstance(source, _TableSource):
        return bandit.fit(source.table, design=design)
    if is_sums(bandit):
        _add_sums(bandit, source, engine, workers)
    else:
        for piece in source.pieces:
            _learn_rows(bandit, source.reader, piece)
    if design != "adaptive" and isinstance(bandit.state, Statistics):
        bandit._fixed_rows = float(bandit.state.n.sum())
    return bandit


def is_sums(bandit: Bandit) -> bool:
    """Whether all that a bandit knows is sums of rows, regardless of their order.

    Examples
    --------
    >>> import armlet
    >>> [is_sums(armlet.Bandit(["a"], 1, policy=p)) for p in (armlet.LinUCB(), armlet.LinUCB(discount=0.99))]
    [True, False]
    """
    policy, state = bandit.policy, bandit.state
    return (
        isinstance(state, Statistics)
        and bandit.settings.outcomes is None
        and not isinstance(state, AutoTunedStatistics)
        and state.fades is None
        and type(state).add is Statistics.add
        and getattr(type(policy), "update", None) in UPDATES
        and policy.rewards == "any"
    )


def _add_sums(bandit: Bandit, source: _FileSource, engine: PoolLike, workers: int | None) -> None:
    policy, state = bandit.policy, bandit.policy.init(len(bandit.arms), bandit.settings.dim)
    records: Float64 = np.zeros(state.arrays()["records"].shape)
    origin = _origin(bandit, source)
    tasks = [
        SumTask(
            piece=piece,
            reader=source.reader,
            shape=records.shape,
            origin=origin,
            sign=bandit._settings.sign,
            learns_from=policy.learns_from,
            normalize=bandit.settings.normalize,
            reward_range=bandit.settings.reward_range,
        )
        for piece in source.pieces
    ]
    with opened(engine, workers=workers) as pool:
        for some in each_in_order(sum_piece, tasks, pool):
            records += some
    arrays = {**state.arrays(), "records": records}
    if origin is not None:
        arrays["units"] = np.array([0.0, *origin, *[0.0] * (2 * len(origin))])
    state.restore_arrays(arrays)
    state.restore(records)  # means, deviations and estimates are taken from the sums
    bandit._restore(state, bandit.arms, sum(piece.rows for piece in source.pieces))


def _origin(bandit: Bandit, source: _FileSource) -> tuple[float, ...] | None:
    """Let a copy of the bandit learn the first rows: it warns of what is to be warned of, and finds the origin."""
    probe = bandit.copy()
    for piece in source.pieces:
        for table in source.reader.read(piece):
            first = np.flatnonzero(_played(table, bandit.policy.learns_from) >= 0)[:PROBE]
            if first.size:
                _learn(probe, table, source.reader.contexts(table), first)
                return _origin_of(probe)
    return _origin_of(probe)


def _origin_of(bandit: Bandit) -> tuple[float, ...] | None:
    units = bandit.state.arrays().get("units")
    return None if units is None else tuple(units[1 : 2 + bandit.settings.dim].tolist())


def _played(table: Table, learns_from: LearnsFrom) -> Int64:
    """Return the arms of rows that are learned; -1 for those that are not."""
    is_learned = table.rewarded
    if learns_from == "explored steps" and table.explored is not None:
        is_learned &= table.explored
    return np.where(is_learned, table.played, -1)


def _learn_rows(bandit: Bandit, reader: _Reader, piece: Piece) -> None:
    """Learn a piece row by row; rows without a reward take their step of the clock."""
    for table in reader.read(piece):
        X, has_reward = reader.contexts(table), table.rewarded
        edges = np.flatnonzero(np.diff(has_reward)) + 1
        for run in np.split(np.arange(len(table)), edges):
            if has_reward[run[0]]:
                _learn(bandit, table, X, run)
            else:
                nothing, none = np.empty((0, bandit.settings.dim)), _by_outcome(bandit, table.rewards[:0])
                bandit.partial_fit(nothing, [], none, explored=True, steps=len(run))


def _learn(bandit: Bandit, table: Table, X: Float64, which: Int64) -> None:
    _check_ranges(table, _ranges(bandit))
    bandit.partial_fit(
        X[which],
        [table.arms[place] for place in table.played[which].tolist()],
        _by_outcome(bandit, table.rewards[which]),
        explored=True if table.explored is None else table.explored[which],
        weights=None if table.weights is None else table.weights[which],
    )


def _by_outcome(bandit: Bandit, rewards: Float64) -> Float64 | dict[str, Float64]:
    several = bandit.settings.outcomes
    return rewards[:, 0] if several is None else dict(zip(several.learned, rewards.T, strict=True))


def _ranges(bandit: Bandit) -> list[Range | None]:
    several = bandit.settings.outcomes
    return [bandit.settings.reward_range] if several is None else [several.ranges.get(name) for name in several.learned]


def _check_ranges(table: Table, ranges: Sequence[Range | None]) -> None:
    """Refuse rewards, or outcomes, that the bandit would refuse."""
    for name, column, allowed in zip(table.roles.rewards, table.rewards.T, ranges, strict=True):
        if allowed is not None and (wrong := np.flatnonzero((column < allowed[0]) | (column > allowed[1]))).size:
            text = f"{table.where(wrong[0], name)} is {column[wrong[0]]}"
            raise InvalidValueError(f"{text}; reward_range is from {allowed[0]} to {allowed[1]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SumTask:
    """A piece, and how its rows are summed."""

    piece: Piece
    reader: _Reader
    shape: tuple[int, int]  # of the records
    origin: tuple[float, ...] | None  # no array: those that come over a wire may not be aligned
    sign: float
    learns_from: LearnsFrom
    normalize: Normalize | None
    reward_range: tuple[float, float] | None


def sum_piece(task: SumTask) -> Float64:
    """Sum the rows of a piece, in their order; return the records."""
    records = np.zeros(task.shape)
    origin = None if task.origin is None else np.array(task.origin)
    for table in task.reader.read(task.piece):
        _check_ranges(table, [task.reward_range])
        X = task.reader.contexts(table)
        rewards = task.sign * np.where(table.rewarded, table.rewards[:, 0], 0.0)
        X = _scaled(X) if task.normalize == "l2" else X
        add_rows(records, X, _played(table, task.learns_from), rewards, table.weights, origin)
    return records


def _scaled(X: Float64) -> Float64:
    """Divide every context by its length; a zero context stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    return X / np.where(lengths > 0, lengths, 1.0)[:, None]


# ---- what is learned from


@dataclass(frozen=True, slots=True, kw_only=True)
class _TableSource:
    """A table, as a bandit is made for it."""

    table: Table
    outcomes: Outcomes | None
    encoder: Encoder | None
    dim: int
    features: tuple[str, ...] | None
    objective: Objective = "max"

    @property
    def labels(self) -> Sequence[Arm]:
        return self.table.arms

    @property
    def says_explored(self) -> bool:
        return self.table.explored is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """How the rows of files are read."""

    roles: Roles
    columns: tuple[str, ...]
    outcomes: Outcomes | None = None
    encoder: Encoder | None = None
    labels: tuple[Arm, ...] = ()

    def read(self, piece: Piece) -> Iterator[Table]:
        """Read a piece, batch by batch."""
        for start, batch in read_batches(piece, self.columns, [self.roles.arm]):
            columns = TableColumns(batch, file=piece.path, first=start)
            yield Table.of_part(columns, self.roles, self.outcomes, self.labels)

    def contexts(self, table: Table) -> Float64:
        """Return the contexts of a batch."""
        return table.contexts(self.encoder, self.roles.features)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileSource:
    """Pieces, and how their rows are read."""

    pieces: tuple[Piece, ...]
    reader: _Reader
    encoder: Encoder | None  # the bandit's; contexts of a log went through it already
    dim: int
    features: tuple[str, ...] | None  # None if the encoder names them, or they have no names
    objective: Objective
    outcomes: Outcomes | None  # where there are several

    @property
    def labels(self) -> Sequence[Arm]:
        return self.reader.labels

    @property
    def says_explored(self) -> bool:
        return self.reader.roles.explored is not None


def _files(data: Source) -> list[Path] | None:
    """Return the Parquet files that data name; None if they are one table."""
    several = [data] if isinstance(data, str | os.PathLike) else data
    if not isinstance(several, list | tuple) or not all(isinstance(each, str | os.PathLike) for each in several):
        return None
    paths = find_files(several)
    if len(paths) == 1 and paths[0].suffix.lower() != ".parquet":
        return None
    return paths


def _of_table(data: Any, roles: Mapping[str, Any], encoder: Encoder | None, outcomes: Outcomes | None) -> _TableSource:
    if isinstance(data, Table):
        for name, value in {**roles, "encoder": encoder, "outcomes": outcomes}.items():
            if value is not None:
                text = "{" + name + "} is {value!r}, but a Table says that itself; leave it out"
                raise ArgumentError(text, value=value)
        table, several = data, data.outcomes
    else:
        (source,) = data if isinstance(data, list | tuple) and isinstance(data[0], str | os.PathLike) else [data]
        weights: dict[str, Any] = (
            {} if outcomes is None else {"outcomes": outcomes.weights, "known": outcomes.known or None}
        )
        table = Table(source, **roles, encoder=encoder, **weights)
        several = (
            table.outcomes
            if table.outcomes is None or outcomes is None
            else replace(outcomes, known=table.outcomes.known)
        )
    if not table.roles.features:
        raise ArgumentError(MISSING, name=table.name or "the table", names=", ".join(table.columns))
    return _TableSource(
        table=table,
        outcomes=several,
        encoder=table.encoder,
        dim=table.X.shape[1],
        features=None if table.encoder is not None else table.features,
    )


MISSING: Final = (
    "{features} is missing: name the columns that were known before the arm was chosen; those of {name} are {names}"
)


def _of_files(
    paths: list[Path], given: Mapping[str, Any], encoder: Encoder | None, outcomes: Outcomes | None
) -> _FileSource:
    with open_file(paths[0]) as file:
        schema = file.schema_arrow
    log = _log_of(schema, paths[0])
    features = _feature_names(schema, given["features"], log, encoder, paths[0])
    named: dict[str, Any] = {name: given[name] for name in ("arm", "explored", "weight")}
    if log is not None:
        record = log["about"].get("outcomes")
        outcomes = Outcomes.from_dict(record) if outcomes is None and record is not None else outcomes
        named = {name: named[name] or name for name in named}
    roles = find_roles(schema.names, paths[0].name, named, given["reward"], features, outcomes)
    if log is not None and log["layout"]["labels"] == "json":
        roles = replace(roles, written="json")
    columns = tuple(name for name in roles.columns if name in schema.names)
    pieces = cut(paths, columns)
    if log is None:
        encoder = _fitted(encoder, paths, pieces, schema, roles)
    reader = _Reader(roles=roles, columns=columns, outcomes=outcomes, encoder=None if log is not None else encoder)
    width = vector_width(schema.field(features[0]).type) if len(features) == 1 and features[0] in schema.names else 0
    return _FileSource(
        pieces=tuple(pieces),
        reader=replace(reader, labels=tuple(_labels(given["arms"], log, pieces, reader))),
        encoder=encoder,
        dim=encoder.dim if log is None and encoder is not None else width or len(features),
        features=None if encoder is not None else _named(log, features, width),
        objective="max" if log is None else log["about"].get("objective", "max"),
        outcomes=outcomes,
    )


def _named(log: dict[str, Any] | None, features: tuple[str, ...], width: int) -> tuple[str, ...] | None:
    if log is None:
        return None if width else features
    names = log["about"].get("features")
    return None if names is None else tuple(names)


def _log_of(schema: Any, path: Path) -> dict[str, Any] | None:
    """Return what a compacted log says of itself; None if it is not one, and refuse one of actions with features."""
    saved = (schema.metadata or {}).get(b"armlet")
    if saved is None:
        return None
    log = dict(json.loads(saved))
    if "action_dim" in log["about"]:
        text = "{data} is {name}, a log of actions with features; read it, and let an ActionBandit learn the table: "
        raise ArgumentError(f"{text}bandit.partial_fit(pyarrow.parquet.read_table(path))", name=path.name)
    return log


def _feature_names(
    schema: Any, given: Sequence[str] | None, log: dict[str, Any] | None, encoder: Encoder | None, path: Path
) -> tuple[str, ...]:
    features = None if given is None else listed_features(given)
    if given is not None and not features:
        raise ArgumentError("{features} is empty; name the columns that make a context")
    if encoder is not None and encoder.is_fitted and log is None:
        if features is not None and set(features) != set(encoder.reads):
            text = "{features} is {names}, but the encoder reads {reads}; leave it out"
            raise ArgumentError(text, names=", ".join(features), reads=", ".join(encoder.reads))
        return encoder.reads
    if features is not None:
        return features
    if log is not None:
        layout = log["layout"]
        return ("x",) if layout["contexts"] == "binary" else tuple(f"x.{name}" for name in layout["features"])
    raise ArgumentError(MISSING, name=path.name, names=", ".join(schema.names))


def _fitted(
    encoder: Encoder | None, paths: Sequence[Path], pieces: Sequence[Piece], schema: Any, roles: Roles
) -> Encoder | None:
    """Return an encoder that is fitted on all rows; one of Armlet's own where features are not all numbers."""
    if encoder is not None and encoder.is_fitted:
        return encoder
    reads = [name for name in roles.features if name in schema.names]
    if encoder is None:
        if len(reads) == 1 and vector_width(schema.field(reads[0]).type):
            return None
        empty = TableColumns(schema.empty_table())
        has_gaps = have_gaps(paths, reads)
        if not has_gaps and all(empty.kind(name) == "number" for name in reads):
            return None
        encoder = Encoder(list(roles.features), missing="flag" if has_gaps else "refuse")
    return encoder.copy().fit_many(batch for piece in pieces for _, batch in read_batches(piece, reads))


def _labels(
    arms: Iterable[Arm] | None, log: dict[str, Any] | None, pieces: Sequence[Piece], reader: _Reader
) -> Sequence[Arm]:
    if arms is not None:
        return check_labels(arms)
    if log is not None and "arms" in log["about"]:
        return check_labels(log["about"]["arms"])
    seen: set[Arm] = set()
    for piece in pieces:
        for start, batch in read_batches(piece, [reader.roles.arm], [reader.roles.arm]):
            columns = TableColumns(batch, file=piece.path, first=start)
            labels, codes = columns.labels(reader.roles.arm)
            seen.update(labels[code] for code in set(codes.tolist()))
    if not seen:
        raise ArgumentError("{data} has no rows; give some to learn from, or name the arms")
    return in_order(seen)
