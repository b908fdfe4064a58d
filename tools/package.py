"""What belongs into a source distribution and into a wheel, and what does not."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent

IN_SDIST: Final = (
    "CHANGELOG.md",
    "CMakeLists.txt",
    "LICENSE",
    "Makefile",
    "PKG-INFO",
    "README.md",
    "kernel/bindings/module.cpp",
    "pyproject.toml",
    "src/armlet/_kernel.pyi",
    "src/armlet/bandit.py",
    "src/armlet/py.typed",
    "tests/kernel/test_digest.py",
    "tests/support/digests.json",
)
NOT_IN_SDIST: Final = ("benchmarks/", "docs/figures/", "build/", "dist/", "results/", ".ci/", ".github/", ".venv")
IN_WHEEL: Final = ("armlet/__init__.py", "armlet/__main__.py", "armlet/_kernel.pyi", "armlet/py.typed")
NOT_IN_WHEEL: Final = ("tests/", "kernel/", "benchmarks/", "docs/", "examples/", "tools/")


def build_sdist(folder: Path) -> Path:
    """Build the source distribution with the tools of this environment."""
    return _build("--sdist", folder, "*.tar.gz")


def build_wheel(folder: Path) -> Path:
    """Build a wheel of what is compiled here: for looking into it, not for an index."""
    return _build("--wheel", folder, "*.whl")


def _build(kind: str, folder: Path, pattern: str) -> Path:
    command = [sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (made,) = folder.glob(pattern)
    return made


def names_in(archive: Path) -> list[str]:
    """List the files of a distribution; without the first folder of a source distribution, which is its own name."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.namelist()
    with tarfile.open(archive) as sdist:
        return [one.name.partition("/")[2] for one in sdist.getmembers() if one.isfile()]


def faults(archive: Path) -> list[str]:
    """Describe what a distribution lacks, and what it should not hold."""
    names = names_in(archive)
    needed, unwanted = (IN_WHEEL, NOT_IN_WHEEL) if archive.suffix == ".whl" else (IN_SDIST, NOT_IN_SDIST)
    lacking = [f"{archive.name} lacks {name}" for name in needed if name not in names]
    if archive.suffix == ".whl" and not any(name.startswith("armlet/_kernel.") and ".so" in name for name in names):
        lacking.append(f"{archive.name} lacks the compiled kernel")
    return lacking + [f"{archive.name} holds {name}" for name in names if name.startswith(unwanted)]


def metadata_faults(archives: list[Path]) -> list[str]:
    """Let twine read what an index would get."""
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, archives)]
    done = subprocess.run(command, capture_output=True, text=True)
    return [] if done.returncode == 0 else [f"twine check: {done.stdout.strip()}{done.stderr.strip()}"]
