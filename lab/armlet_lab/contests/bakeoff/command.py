"""What `armlet-lab bakeoff` does: play, keep, judge, and write the report.

DIR/report.html, verdicts.*, figures/, tables/    what was found, as `armlet-lab paper` writes it
DIR/data/vowpal/*.parquet                         every mistake of Vowpal Wabbit, kept from one call to the next
DIR/data/armlet/*.parquet                         those of our policies, played anew unless they were interrupted
DIR/manifest.json                                 settings, versions, machine, durations
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from armlet.parallel.pool import Pool, PoolLike, opened
from armlet.parallel.progress import Progress, reporter
from armlet.report.pictures import require_matplotlib
from armlet.simulation.lab import Archive, Lab
from armlet.simulation.manifest import ResultsError, new_session, read_manifest, versions
from armlet.simulation.shelf import Shelf
from armlet_lab.contests.bakeoff import vowpal
from armlet_lab.contests.bakeoff.experiment import EXPERIMENT, Settings, find, survey
from armlet_lab.runner.experiment import SEED
from armlet_lab.runner.reproduce import Reproduction, to_text, write_manifest, write_report

KIND: Final = "bakeoff"
FIXED: Final = ("tables", "rows", "shuffles", "seed")  # of a folder


def bakeoff(
    settings: Settings,
    *,
    seed: int = SEED,
    out: str | os.PathLike[str] = "results/bakeoff",
    engine: PoolLike = "processes",
    workers: int | None = None,
    progress: Callable[[str], Progress] = reporter,
    tell: Callable[[str], None] = print,
) -> Path:
    """Play what the settings say and give the path of the report.

    What Vowpal Wabbit did is kept in the folder and not played again; our policies are, unless they were interrupted.
    """
    require_matplotlib()  # better now than after the computation
    survey(settings)  # refuses tables that are not here
    if settings.rivals != "none":
        vowpal.prepare(tell)
    folder = Path(out)
    ours, theirs = (Shelf(folder / "data" / side) for side in ("armlet", "vowpal"))
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
    return _tell(Reproduction({KIND: found}), folder, manifest, tell)


def rebuild(folder: str | os.PathLike[str], tell: Callable[[str], None] = print) -> Path:
    """Judge what was played once more and write the report anew."""
    manifest, place = read_manifest(folder), Path(folder)
    settings = Settings(**{name: _tuple(manifest[name]) for name in Settings.__dataclass_fields__})
    lab, rivals = (
        Archive(seed=manifest["seed"], name=KIND, shelf=Shelf(place / "data" / side)) for side in ("armlet", "vowpal")
    )
    return _tell(Reproduction({KIND: find(settings, lab, rivals)}), place, manifest, tell)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _begin(folder: Path, settings: Settings, seed: int, where: Pool, ours: Shelf) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()}
    wanted = {**plain, "seed": seed, "versions": versions()}
    before: dict[str, Any] = read_manifest(folder) if (folder / "manifest.json").exists() else {}
    if before and before.get("kind") != KIND:
        raise ResultsError(f"{folder} holds results of something else; choose another folder")
    if other := [name for name in FIXED if before and before[name] != wanted[name]]:
        was, name = before[other[0]], other[0]
        raise ResultsError(f"{folder} holds a bake-off with {name} {_short(was)}; choose another folder with --out")
    if before.get("status") == "finished" or before.get("versions") != versions():
        ours.clear()
    sessions = [*before.get("sessions", []), new_session(where.name)]
    manifest = {
        "format": 1,
        "kind": KIND,
        "status": "running",
        **wanted,
        "vowpal": vowpal.VERSION,
        "sessions": sessions,
    }
    write_manifest(folder, manifest)
    return manifest


def _short(value: object) -> str:
    return f"of {len(value)} names" if isinstance(value, list) and value else f"{value or 'of all'}"


def _tell(done: Reproduction, folder: Path, manifest: dict[str, Any], tell: Callable[[str], None]) -> Path:
    page = write_report(done, folder, manifest, EXPERIMENT.title)
    for section in done.sections:
        tell(f"\n{section.heading}: {section.tables[0].caption.lower()}\n")
        tell(section.tables[0].markdown())
    tell(f"\n{to_text(done.verdicts)}")
    tell(f"Report: {page}")
    return page
