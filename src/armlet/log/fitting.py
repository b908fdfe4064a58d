"""`armlet.fit_parquet`: a bandit that has learned all rows of a Parquet data set of any size.

Where a state is sums of rows, pieces are summed by any engine and added in their order: the same bytes on one core, on
many or on a cluster. Other policies learn row by row, in order, here. Memory holds batches of rows and sums alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from armlet.bandit import Bandit
from armlet.errors import ArgumentError
from armlet.inputs.columns import check_labels
from armlet.inputs.encoder import Encoder
from armlet.inputs.outcomes import Outcomes, read_outcomes
from armlet.inputs.settings import Design, Normalize, Objective, Range, Units, check_design
from armlet.kernel import AutoTunedStatistics, Statistics, add_rows
from armlet.log.tables import (
    Data,
    Piece,
    RowReader,
    Rows,
    arm_codes,
    check_one_role_each,
    check_ranges,
    cut,
    find_files,
    first_wrong,
    located,
    matrix,
    open_file,
    read_batches,
    read_rows,
    vector_width,
)
from armlet.parallel import PoolLike, each_in_order, opened
from armlet.policies.base import SumsPolicy
from armlet.policies.epsilon_greedy import EpsilonGreedy
from armlet.types import Arm, Float64, Int64, LearnsFrom, Policy

UPDATES: Final = (SumsPolicy.update, EpsilonGreedy.update)
"""What adds a row to the sums and does nothing else."""
PROBE: Final = 256
"""Rows that a copy of the bandit learns first."""


def fit_parquet(
    data: Data,
    policy: Policy | None = None,
    *,
    x: Sequence[str] | None = None,
    arm: str = "arm",
    reward: str = "reward",
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
    """Make a bandit that has learned every row of Parquet files, as `Bandit.fit` would, to rounding.

    Every row counts as a decision; a row without a reward (null) is counted and not learned. Where the policy's state
    is sums of rows, these are computed by `engine`, and the bytes are the same on any. Other policies, those
    whose rows fade, and bandits with several outcomes learn row by row in this process, in the order of the rows.

    Parameters
    ----------
    data
        A Parquet file, a folder of them, a pattern such as "logs/*.parquet", or several of these. Files of a folder
        or a pattern come in the order of the alphabet.
    policy
        How the bandit chooses; `OccasionalOptimism()` if left out.
    x
        The columns that make a context, in order: numbers, or, with an encoder, text too. One column may hold whole
        contexts: lists, or binary values of float64, of one size. A compacted log says itself.
    arm, reward
        The columns of what was played and what it paid. With outcomes, what their columns begin with: `reward_NAME`.
    explored
        The column that says which rows were played at random, or True if all were. Policies that learn from explored
        steps only insist on it.
    weight
        The column of how much a row counts.
    design
        How the arms of the rows were chosen, as of `Bandit.partial_fit`; "randomized" means that all were explored.
    arms
        All labels; those of the data, in order, if left out, which takes a pass over that column.
    encoder
        What makes numbers of `x`; one that is not fitted yet is fitted on all rows first, which takes a pass.
        Contexts of a compacted log went through one already: give that one, and the bandit has it.
    objective, normalize, units, reward_range, outcomes, known, seed
        As of `Bandit`; a compacted log says itself which outcomes there are, with the weights, prices and ranges that
        it began with. A row that lacks an outcome is counted and not learned.
    engine, workers
        Where to sum: "serial", "processes", "threads", "dask", the address of a Dask scheduler, or any Executor.

    Examples
    --------
    >>> import tempfile, pyarrow, pyarrow.parquet, armlet
    >>> table = pyarrow.table({"age": [31.0, 44.0, 28.0], "ad": ["a", "b", "b"], "click": [0, 1, None]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(table, f"{folder}/log.parquet")
    ...     bandit = armlet.fit_parquet(folder, armlet.LinUCB(), x=["age"], arm="ad", reward="click", seed=1)
    >>> bandit.arms, bandit.t, bandit.state.n
    (['a', 'b'], 3, array([1., 1.]))
    """
    if check_design(design) == "randomized":
        explored = explored or True
    own = None if outcomes is None and known is None else read_outcomes(outcomes, known, reward_range)
    source = _find_source(data, x, arm, reward, explored, weight, encoder, arms, own)
    several = source.outcomes
    if own is None and several is not None and reward_range is not None:
        several = read_outcomes(several.weights, several.known, reward_range)
    bandit = Bandit(
        source.reader.labels,
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
    if bandit.policy.learns_from == "explored steps" and explored is None and source.reader.explored is None:
        raise ArgumentError(
            "{explored} is missing: this policy learns only from steps that were played at random; name the column "
            "that says which were, or give {explored=True} if all were"
        )
    if is_sums(bandit):
        _add_sums(bandit, source, engine, workers)
    else:
        for piece in source.pieces:
            _learn_rows(bandit, piece, source.reader)
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


def _add_sums(bandit: Bandit, source: _Source, engine: PoolLike, workers: int | None) -> None:
    policy, state = bandit.policy, bandit.policy.init(len(bandit.arms), bandit.settings.dim)
    reader = source.reader if policy.learns_from == "explored steps" else replace(source.reader, explored=None)
    records: Float64 = np.zeros(state.arrays()["records"].shape)
    origin = _origin(bandit, source.pieces, reader)
    tasks = [
        SumTask(
            piece=piece,
            reader=reader,
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


def _origin(bandit: Bandit, pieces: Sequence[Piece], reader: RowReader) -> tuple[float, ...] | None:
    """Let a copy of the bandit learn the first rows: it warns of what is to be warned of, and finds the origin."""
    probe = bandit.copy()
    for piece in pieces:
        for start, rows in read_rows(piece, reader):
            is_learned = rows.arms >= 0 if rows.explored is None else (rows.arms >= 0) & rows.explored
            first = np.flatnonzero(is_learned)[:PROBE]
            if first.size:
                _learn(probe, piece, start, rows, reader, first)
                return _origin_of(probe)
    return _origin_of(probe)


def _origin_of(bandit: Bandit) -> tuple[float, ...] | None:
    units = bandit.state.arrays().get("units")
    return None if units is None else tuple(units[1 : 2 + bandit.settings.dim].tolist())


def _learn_rows(bandit: Bandit, piece: Piece, reader: RowReader) -> None:
    """Learn a piece row by row; rows without a reward take their step of the clock."""
    for start, rows in read_rows(piece, reader):
        has_reward = rows.arms >= 0
        edges = np.flatnonzero(np.diff(has_reward)) + 1
        for run in np.split(np.arange(len(has_reward)), edges):
            if has_reward[run[0]]:
                _learn(bandit, piece, start, rows, reader, run)
            else:
                nothing, none = np.empty((0, bandit.settings.dim)), _by_outcome(bandit, rows.rewards[:0])
                bandit.partial_fit(nothing, [], none, explored=True, steps=len(run))


def _learn(bandit: Bandit, piece: Piece, start: int, rows: Rows, reader: RowReader, which: Int64) -> None:
    labels = reader.labels
    with located(piece, start):
        if (wrong := first_wrong(rows, reader)) is not None:
            raise wrong
        check_ranges(rows, reader, _ranges(bandit))
    bandit.partial_fit(
        matrix(rows.X)[which],
        [labels[i] for i in rows.arms[which].tolist()],
        _by_outcome(bandit, rows.rewards[which]),
        explored=True if rows.explored is None else rows.explored[which],
        weights=None if rows.weights is None else rows.weights[which],
    )


def _by_outcome(bandit: Bandit, rewards: Float64) -> Float64 | dict[str, Float64]:
    several = bandit.settings.outcomes
    return rewards if several is None else dict(zip(several.learned, rewards.T, strict=True))


def _ranges(bandit: Bandit) -> list[Range | None]:
    several = bandit.settings.outcomes
    return [bandit.settings.reward_range] if several is None else [several.ranges.get(name) for name in several.learned]


@dataclass(frozen=True, slots=True, kw_only=True)
class SumTask:
    """A piece, and how its rows are summed."""

    piece: Piece
    reader: RowReader
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
    for start, rows in read_rows(task.piece, task.reader):
        with located(task.piece, start):
            check_ranges(rows, task.reader, [task.reward_range])
            arms = rows.arms
            if task.learns_from == "explored steps" and rows.explored is not None:
                arms = np.where(rows.explored, arms, -1)
            X = _scaled(matrix(rows.X)) if task.normalize == "l2" else rows.X
            try:
                add_rows(records, X, arms, task.sign * rows.rewards, rows.weights, origin)
            except ValueError as error:
                raise first_wrong(rows, task.reader) or error from None
    return records


def _scaled(X: Float64) -> Float64:
    """Divide every context by its length; a zero context stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
    return X / np.where(lengths > 0, lengths, 1.0)[:, None]


# ---- what is learned from


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Pieces, and how their rows are read."""

    pieces: tuple[Piece, ...]
    reader: RowReader
    encoder: Encoder | None  # the bandit's; contexts of a log went through it already
    dim: int
    features: tuple[str, ...] | None  # None if the encoder names them, or nobody does
    objective: Objective
    outcomes: Outcomes | None  # where there are several


def _find_source(
    data: Data,
    x: Sequence[str] | None,
    arm: str,
    reward: str,
    explored: str | Literal[True] | None,
    weight: str | None,
    encoder: Encoder | None,
    arms: Iterable[Arm] | None,
    outcomes: Outcomes | None,
) -> _Source:
    if isinstance(x, str):
        x = [x]
    paths = find_files(data)
    with open_file(paths[0]) as file:
        schema = file.schema_arrow
    log = _log_of(schema)
    if log is not None:
        _check_arms(log, paths[0])
        explored = explored or "explored"
        weight = weight or "weight"
        record = log["about"].get("outcomes")
        outcomes = Outcomes.from_dict(record) if outcomes is None and record is not None else outcomes
    reader = RowReader(
        x=_contexts(schema, x, log, encoder, paths[0]),
        arm=arm,
        reward=reward,
        parts=() if outcomes is None else tuple(f"{reward}_{name}" for name in outcomes.learned),
        explored=explored if isinstance(explored, str) else None,
        weight=weight,
        written="json" if log is not None and log["layout"]["labels"] == "json" else "plain",
    )
    roles = [*(("x", name) for name in reader.x), ("arm", arm), *(("reward", name) for name in reader.rewards)]
    check_one_role_each([*roles, ("explored", reader.explored), ("weight", reader.weight)])
    pieces = cut(paths, reader.columns)
    if encoder is not None and log is None:
        encoder = encoder if encoder.is_fitted else _fitted(encoder, pieces, reader)
        reader = replace(reader, encoder=encoder)
    labels = _labels(arms, log, pieces, reader)
    return _Source(
        pieces=tuple(pieces),
        reader=replace(reader, labels=tuple(labels)),
        encoder=encoder,
        dim=_dim(schema, reader),
        features=None if encoder is not None else _features(schema, reader, log),
        objective="max" if log is None else log["about"].get("objective", "max"),
        outcomes=outcomes,
    )


def _log_of(schema: Any) -> dict[str, Any] | None:
    """Return what a compacted log says of itself; None if it is not one."""
    saved = (schema.metadata or {}).get(b"armlet")
    return None if saved is None else dict(json.loads(saved))


def _check_arms(log: dict[str, Any], path: Path) -> None:
    """Refuse a log of actions with features, which this would learn as if they were arms."""
    if "action_dim" in log["about"]:
        text = "{data} is {name}, a log of actions with features; read it, and let an ActionBandit learn the table: "
        raise ArgumentError(f"{text}bandit.partial_fit(pyarrow.parquet.read_table(path))", name=path.name)


def _contexts(
    schema: Any, x: Sequence[str] | None, log: dict[str, Any] | None, encoder: Encoder | None, path: Path
) -> tuple[str, ...]:
    if x is not None and not x:
        raise ArgumentError("{x} is empty; name the columns that make a context")
    if x is not None and len(set(x)) < len(x):
        raise ArgumentError("{x} names a column twice: {names}; give each once", names=", ".join(x))
    if encoder is not None and encoder.is_fitted and log is None:
        if x is not None and set(x) != set(encoder.reads):
            text = "{x} is {names}, but the encoder reads {reads}; leave it out"
            raise ArgumentError(text, names=", ".join(x), reads=", ".join(encoder.reads))
        return encoder.reads
    if x is not None:
        return tuple(x)
    if log is not None:
        layout = log["layout"]
        return ("x",) if layout["contexts"] == "binary" else tuple(f"x.{name}" for name in layout["features"])
    text = "{x} is missing: name the columns that make a context; those of {name} are {there}"
    raise ArgumentError(text, name=path.name, there=", ".join(schema.names))


def _dim(schema: Any, reader: RowReader) -> int:
    if reader.encoder is not None:
        return reader.encoder.dim
    width = vector_width(schema.field(reader.x[0]).type) if len(reader.x) == 1 else 0
    return width or len(reader.x)


def _features(schema: Any, reader: RowReader, log: dict[str, Any] | None) -> tuple[str, ...] | None:
    if log is not None:
        names = log["about"].get("features")
        return None if names is None else tuple(names)
    return None if len(reader.x) == 1 and vector_width(schema.field(reader.x[0]).type) else reader.x


def _fitted(encoder: Encoder, pieces: Sequence[Piece], reader: RowReader) -> Encoder:
    def parts() -> Iterator[Any]:
        for piece in pieces:
            for _, batch in read_batches(piece, reader.x):
                yield batch

    return encoder.copy().fit_many(parts())


def _labels(
    arms: Iterable[Arm] | None, log: dict[str, Any] | None, pieces: Sequence[Piece], reader: RowReader
) -> list[Arm]:
    if arms is not None:
        return check_labels(arms)
    if log is not None and "arms" in log["about"]:
        return check_labels(log["about"]["arms"])
    seen: set[Arm] = set()
    for piece in pieces:
        for start, batch in read_batches(piece, [reader.arm], [reader.arm]):
            with located(piece, start):
                labels, codes = arm_codes(batch.column(0), reader.arm, reader.written)
            seen.update(labels[i] for i in set(codes.tolist()))
    if not seen:
        raise ArgumentError("{data} has no rows; give some to learn from, or name the arms")
    return sorted(seen, key=lambda label: (isinstance(label, str), label))
