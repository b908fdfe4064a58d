"""What a folder of results says of itself: settings, versions, machines, times."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from armlet.disk import write_atomically
from armlet.errors import ArmletError, InvalidTypeError
from armlet.model_file.encoding import Json
from armlet.simulation.play import Job
from armlet.simulation.results import Settings, settings_of
from armlet.types import __version__

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


class Manifest:
    """DIR/manifest.json of some jobs; opening it again goes on where it stopped.

    Parameters
    ----------
    folder
        Made if it is not there. One that holds other jobs, or was written by other versions, is refused.
    jobs
        What is to be simulated.
    engine
        Where, for the record.
    """

    def __init__(self, folder: Path, jobs: Sequence[Job], *, engine: str) -> None:
        self.folder = folder
        self._jobs = [_storable(job) for job in jobs]
        self._began = time.monotonic()
        self._told = self._start(engine)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write()

    def stop(self, status: str) -> None:
        """Note how it ended, and when."""
        self._told["sessions"][-1]["seconds"] = round(time.monotonic() - self._began, 3)
        self._told["status"] = status
        self._write()

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

    def _write(self) -> None:
        text = json.dumps(self._told, indent=1, allow_nan=False)
        write_atomically(self.folder / "manifest.json", [text.encode(), b"\n"])


def _storable(job: Job) -> Settings:
    settings = settings_of(job)
    for name in ("world", "policy"):
        match settings[name]:
            case {"name": kind, "settings": None}:
                raise InvalidTypeError(
                    f"{name} is a {kind}, no dataclass of plain data; a store cannot tell it from others"
                )
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
