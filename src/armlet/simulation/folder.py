"""The folder that keeps what simulations found: a shelf with one stage, and a manifest.

DIR/manifest.json       settings, versions, machines, times
DIR/results/*.armlet    finished tasks, each written whole or not at all; a run that was killed goes on from them
DIR/results.parquet     all runs in one table, which takes their place at the end
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from armlet.errors import ModelFileError
from armlet.model_file.encoding import read_model
from armlet.simulation.manifest import read_manifest
from armlet.simulation.play import Curves
from armlet.simulation.results import Result, joined, read_parquet

STAGE = "results"


def read(folder: str | os.PathLike[str]) -> list[Result]:
    """Read the results in a folder: of all jobs, or of the runs that were finished before an interrupt.

    Jobs of which no run is finished are left out.
    """
    manifest, table = read_manifest(folder), Path(folder) / f"{STAGE}.parquet"
    if table.exists():
        return read_parquet(table)
    tasks = sorted(_finished(Path(folder) / STAGE), key=lambda task: task[:2])
    found = []
    for job, settings in enumerate(manifest["jobs"]):
        mine = [(np.arange(first, first + len(curves.regret)), curves) for j, first, curves in tasks if j == job]
        if mine:
            runs = np.concatenate([numbers for numbers, _ in mine])
            steps = np.array(settings["checkpoints"], dtype=np.int64)
            found.append(Result(settings=settings, runs=runs, steps=steps, curves=joined([c for _, c in mine])))
    return found


def as_curves(arrays: Mapping[str, Any]) -> Curves:
    """Give what a task found as the curves that it was."""
    return Curves(arrays["regret"], arrays["exploring"], arrays["explored"])


def _finished(folder: Path) -> Iterator[tuple[int, int, Curves]]:
    for path in folder.glob("*.armlet"):
        try:
            header, arrays = read_model(path)
        except ModelFileError:
            continue
        task = json.loads(str(header["task"]))
        yield task["index"], task["first"], as_curves(arrays)
