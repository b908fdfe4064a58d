"""Logs of all kinds, as blocks of rows."""

from __future__ import annotations

import os
from pathlib import Path

from armlet.evaluation.actions.rows import LoggedActions
from armlet.evaluation.compacted import CompactedBlocks
from armlet.evaluation.rows import Blocks
from armlet.evaluation.spooled import SpooledBlocks
from armlet.log.reader import Source, read
from armlet.record.faults import check_ordinary


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
    if events.about.get("action_dim") is not None:
        return LoggedActions(events)
    path = getattr(events, "path", None)
    return CompactedBlocks(path) if path and str(path).endswith(".parquet") else SpooledBlocks(events)
