"""What it costs to have a library: CPU time of its import in a fresh process, and megabytes on disk."""

import importlib.metadata
import importlib.util
import os
import resource
import statistics
import subprocess
from pathlib import Path

from venvs import HERE, tree_bytes

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def one_thread() -> dict[str, str]:
    """Make the environment that every measured process gets: linear algebra on one thread, bytecode kept."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **dict.fromkeys(THREADS, "1")}


def cpu_seconds(command: list[str]) -> float:
    """Measure user and system time of one run of `command`; raise if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=HERE, env=one_thread(), check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cpu_turns(commands: dict[str, list[str]], repeats: int) -> list[dict[str, float]]:
    """Measure the CPU seconds of commands, each once a turn, so that a slow minute hits all of them."""
    for command in commands.values():
        cpu_seconds(command)  # compiles the bytecode, fills the disk cache
    return [{name: cpu_seconds(command) for name, command in commands.items()} for _ in range(repeats)]


def import_seconds(python: Path, import_line: str, repeats: int) -> float:
    """Measure the CPU seconds of an import beyond those of a bare interpreter."""
    commands = {"bare": [str(python), "-c", "pass"], "import": [str(python), "-c", import_line]}
    return statistics.median(turn["import"] - turn["bare"] for turn in cpu_turns(commands, repeats))


def distribution_megabytes(name: str) -> float:
    """Count the megabytes of one installed distribution in our own environment."""
    files = importlib.metadata.files(name) or []
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def package_megabytes(name: str) -> float:
    """Count the megabytes of a package where it was imported from; ours may be an editable installation."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return 0.0
    return sum(tree_bytes(Path(folder)) for folder in spec.submodule_search_locations) / 1e6
