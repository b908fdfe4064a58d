"""The folder that keeps what simulations found, while they run and afterwards.

DIR/manifest.json      settings, versions, machines, times
DIR/chunks/*.armlet    finished tasks, each written whole or not at all; a run that was killed goes on from them
DIR/results.parquet    all runs in one table, written at the end
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from armlet.core.disk import write_atomically
from armlet.core.errors import ArmletError, ModelFileError
from armlet.core.files import Json, read_model, write_model
from armlet.core.version import __version__
from armlet.log.tables import load_pyarrow
from armlet.simulation.play import Curves, Job
from armlet.simulation.results import Result, Settings, read_parquet, settings_of, write_parquet

FORMAT = 1


class ResultsError(ArmletError):
    """A folder holds results of something else, or none."""


def versions() -> dict[str, Json]:
    """Give the versions that numbers may depend on.

    Examples
    --------
    >>> sorted(versions())
    ['armlet', 'numpy']
    """
    return {"armlet": __version__, "numpy": np.__version__}


class Store:
    """A folder of finished tasks of some jobs; opening it again goes on where it stopped.

    Parameters
    ----------
    folder
        Made if it is not there. One that holds other jobs, or was written by other versions, is refused.
    jobs
        What is to be simulated.
    engine
        Where, for the record.
    """

    def __init__(self, folder: str | os.PathLike[str], jobs: Sequence[Job], *, engine: str) -> None:
        load_pyarrow()  # better now than after the computation
        self.folder = Path(folder)
        self._chunks = self.folder / "chunks"
        self._jobs = [_storable(job) for job in jobs]
        self._keys = [_digest([index, job, versions()]) for index, job in enumerate(self._jobs)]
        self._began = time.monotonic()
        self._chunks.mkdir(parents=True, exist_ok=True)
        self._manifest = self._start(engine)
        self._write_manifest()

    def load(self, job: int, first: int, last: int) -> Curves | None:
        """Read runs first..last-1 of a job, if they are finished."""
        try:
            _, arrays = read_model(self._path(job, first, last))
            return _curves(arrays)
        except (FileNotFoundError, ModelFileError):  # a damaged file is computed again
            return None

    def save(self, job: int, first: int, last: int, curves: Curves) -> None:
        """Keep runs first..last-1 of a job, whole or not at all."""
        header: dict[str, Json] = {"job": job, "first": first, "last": last}
        write_model(self._path(job, first, last), header, curves._asdict())

    def finish(self, results: Sequence[Result]) -> None:
        """Write the table of all results."""
        write_parquet(self.folder / "results.parquet", results)
        self.stop("finished")

    def stop(self, status: str) -> None:
        """Note how it ended, and when."""
        session = self._manifest["sessions"][-1]
        session["seconds"] = round(time.monotonic() - self._began, 3)
        self._manifest["status"] = status
        self._write_manifest()

    def _path(self, job: int, first: int, last: int) -> Path:
        return self._chunks / f"{self._keys[job][:24]}-{first:06d}-{last:06d}.armlet"

    def _start(self, engine: str) -> dict[str, Any]:
        path = self.folder / "manifest.json"
        manifest = read_manifest(self.folder) if path.exists() else _fresh(self._jobs)
        if manifest["jobs"] != self._jobs:
            raise ResultsError(f"{self.folder} holds results of other settings ({self._difference(manifest['jobs'])})")
        for session in manifest["sessions"]:
            if session["versions"] | versions() != session["versions"]:
                was = ", ".join(f"{name} {session['versions'][name]}" for name in versions())
                raise ResultsError(f"{self.folder} was begun with {was}; go on with these, or choose another folder")
        manifest["status"] = "running"
        manifest["sessions"].append(new_session(engine))
        return manifest

    def _difference(self, jobs: list[Settings]) -> str:
        if len(jobs) != len(self._jobs):
            return f"{len(jobs)} jobs, not {len(self._jobs)}; choose another folder"
        ours, theirs = next((a, b) for a, b in zip(self._jobs, jobs, strict=True) if a != b)
        name = next(name for name in ours if ours[name] != theirs.get(name))
        return f"{name} is {theirs.get(name)!r:.80} there and {ours[name]!r:.80} here; choose another folder"

    def _write_manifest(self) -> None:
        text = json.dumps(self._manifest, indent=1, allow_nan=False)
        write_atomically(self.folder / "manifest.json", [text.encode(), b"\n"])


def _storable(job: Job) -> Settings:
    settings = settings_of(job)
    for name in ("world", "policy"):
        match settings[name]:
            case {"name": kind, "settings": None}:
                raise TypeError(f"{name} is a {kind}, no dataclass of plain data; a store cannot tell it from others")
    return settings


def _fresh(jobs: Sequence[Settings]) -> dict[str, Any]:
    return {"format": FORMAT, "status": "running", "jobs": list(jobs), "sessions": []}


def new_session(engine: str) -> dict[str, Json]:
    """Say when, where and with what something is being computed."""
    machine: dict[str, Json] = {
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "processors": os.cpu_count(),
    }
    others = {name: _installed(name) for name in ("pyarrow", "distributed")}
    return {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": None,  # until it ends
        "engine": engine,
        "versions": {**versions(), "python": sys.version.split()[0], **others},
        "machine": machine,
    }


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _digest(settings: Json) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True, allow_nan=False).encode()).hexdigest()


def read_manifest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a folder says of itself."""
    path = Path(folder) / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        if manifest["format"] == FORMAT:
            return manifest
    except FileNotFoundError:
        raise ResultsError(f"{folder} has no manifest.json, so it holds no results") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise ResultsError(f"{path} is not a manifest that this version reads; choose another folder")


def read(folder: str | os.PathLike[str]) -> list[Result]:
    """Read the results in a folder: of all jobs, or of the runs that were finished before an interrupt.

    Jobs of which no run is finished are left out.
    """
    manifest = read_manifest(folder)
    if manifest["status"] == "finished":
        return read_parquet(Path(folder) / "results.parquet")
    chunks = sorted(_read_chunks(Path(folder) / "chunks"), key=lambda chunk: chunk[:2])
    found = []
    for job, settings in enumerate(manifest["jobs"]):
        mine = [(np.arange(first, first + len(curves.regret)), curves) for j, first, curves in chunks if j == job]
        if mine:
            runs = np.concatenate([numbers for numbers, _ in mine])
            steps = np.array(settings["checkpoints"], dtype=np.int64)
            found.append(Result(settings=settings, runs=runs, steps=steps, curves=joined([c for _, c in mine])))
    return found


def stack(runs: Iterable[Curves]) -> Curves:
    """Put single runs, (C,), into one table of runs, (n, C)."""
    regret, exploring, explored = zip(*runs, strict=True)
    return Curves(np.stack(regret), np.stack(exploring), np.stack(explored))


def joined(parts: Iterable[Curves]) -> Curves:
    """Put the runs of several tasks, (n, C) each, one below the other."""
    regret, exploring, explored = zip(*parts, strict=True)
    return Curves(np.concatenate(regret), np.concatenate(exploring), np.concatenate(explored))


def _read_chunks(folder: Path) -> Iterator[tuple[int, int, Curves]]:
    for path in folder.glob("*.armlet"):
        try:
            header, arrays = read_model(path)
        except ModelFileError:
            continue
        job, first = header["job"], header["first"]
        if isinstance(job, int) and isinstance(first, int):
            yield job, first, _curves(arrays)


def _curves(arrays: Mapping[str, Any]) -> Curves:
    return Curves(arrays["regret"], arrays["exploring"], arrays["explored"])
