"""A folder that takes long to make, kept from one run of the tests to the next while the sources are the same."""

from __future__ import annotations

import fcntl
import hashlib
import platform
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np


def digest(files: Iterable[Path], *words: object) -> str:
    """Name what something was made from: the contents of files, the interpreter, numpy, and words."""
    made_by = hashlib.sha256(repr((platform.python_version(), np.__version__, words)).encode())
    for path in sorted(files):
        made_by.update(f"{path}\n{path.stat().st_size}\n".encode() + path.read_bytes())
    return made_by.hexdigest()[:16]


def keep(shelf: Path, name: str, make: Callable[[Path], None]) -> Path:
    """Return the folder of that name, made now if missing; other processes wait, and others than it are removed.

    A folder that was not made to its end is not there: it gets its name when it is whole.
    """
    shelf.mkdir(parents=True, exist_ok=True)
    with (shelf / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = shelf / name
        if not folder.is_dir():
            for old in filter(Path.is_dir, shelf.iterdir()):
                shutil.rmtree(old)
            make(shelf / "unfinished")
            (shelf / "unfinished").rename(folder)
    return folder
