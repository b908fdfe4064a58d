"""Logs of all kinds as blocks of rows, and the targets that play what a log has: arms, or actions of tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from armlet.errors import ArgumentError
from armlet.evaluation.actions import LoggedActions, read_action_target
from armlet.evaluation.compacted import CompactedBlocks
from armlet.evaluation.paid import held_rewards
from armlet.evaluation.rows import Blocks, HeldBlocks, without_gaps
from armlet.evaluation.spooled import SpooledBlocks
from armlet.evaluation.targets import Target, named_targets, read_arm_target
from armlet.evaluation.units import unit_codes
from armlet.log.imported import ImportedColumns
from armlet.log.log import Log
from armlet.log.parquet import ParquetLog
from armlet.log.reader import Source, read
from armlet.record.faults import check_ordinary
from armlet.types import Arm, Mode

T = TypeVar("T", bound=Target)


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
    events = read(log)
    if isinstance(events, ImportedColumns):
        return _held(events)
    if events.about.get("action_dim") is not None:
        return LoggedActions(events)
    if isinstance(events, Log):
        events = events.file()
    return CompactedBlocks(events.path) if isinstance(events, ParquetLog) else SpooledBlocks(events)


def _held(log: ImportedColumns) -> HeldBlocks:
    """Return the rows of another system's columns, as they are."""
    columns, about = log.columns, dict(log.about)
    known: dict[str, Any] = {"arm": columns.arm, "propensity": columns.propensity}
    known |= held_rewards(about, columns.reward, columns.outcomes, columns.arm, log.arms)
    t = np.arange(1, len(columns) + 1)
    if columns.units is not None and any(unit is not None for unit in columns.units):
        alone = [unit is None for unit in columns.units]
        epochs = columns.epochs or [None] * len(columns)
        said = [None if is_alone else epoch for is_alone, epoch in zip(alone, epochs, strict=True)]
        known["unit"] = unit_codes(columns.units, said, t)
        known["epoch"] = np.array([-1 if epoch is None else epoch for epoch in said], dtype=np.int64)
    known |= {} if columns.weight is None else {"weight": np.where(np.isnan(known["reward"]), 1.0, columns.weight)}
    known |= {} if columns.eligible is None else {"eligible": columns.eligible}
    known["X"] = without_gaps(columns.X, known["reward"], t)
    blocks = HeldBlocks.of(known, log.arms, about)
    blocks.name = str(about["origin"])
    at = np.zeros(0) if columns.at is None else columns.at[columns.at != 0]  # 0 where times are not known
    blocks.period = (int(at.min()), int(at.max())) if at.size else None
    return blocks


def read_target(name: str, target: object, blocks: Blocks, mode: Mode, order: tuple[Arm, ...] | None = None) -> Target:
    """Read one target of a log; `order` is that of arms in matrices without labels."""
    if blocks.has_tables:
        return read_action_target(name, target, mode)
    return read_arm_target(name, target, blocks.arms, mode, order)


def read_several(
    targets: object, baseline: object, read: Callable[[str, object], T], own: Collection[str]
) -> tuple[list[T], list[str]]:
    """Read targets as users give them, each under a name of its own: all of them, the baseline last.

    `own` are words for what no target plays, such as "own"; the names of those are returned apart.
    """
    named = named_targets(targets)
    if not named:
        raise ArgumentError("{targets} is empty; give a policy to value")
    apart = [name for name, target in named.items() if isinstance(target, str) and target in own]
    several = {name: read(name, target) for name, target in named.items() if name not in apart}
    base_name = baseline if isinstance(baseline, str) else "baseline"
    base = read(base_name, baseline)
    return [*(each for each in several.values() if each.name != base.name), base], apart
