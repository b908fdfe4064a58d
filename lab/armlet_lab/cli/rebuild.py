"""What `armlet-lab report` does: the page of a folder of results, written anew."""

from __future__ import annotations

import os

from armlet.simulation.overview import write_overview
from armlet.simulation.results import read_manifest
from armlet_lab.contests.bakeoff import command
from armlet_lab.runner import reproduce


def report(folder: str | os.PathLike[str]) -> int:
    """Write the report of a folder anew; give the exit code."""
    kind = read_manifest(folder).get("kind")
    if kind == reproduce.KIND:
        return reproduce.rebuild(folder)
    if kind == command.KIND:
        command.rebuild(folder)
        return 0
    print(f"Report: {write_overview(folder)}")
    return 0
