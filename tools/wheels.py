"""Build the wheels that this machine can build, and try each one where no clone is in sight.

    make wheels                      every Python that is found
    make wheels WHEELS="3.11 3.13"   those alone

Every wheel is compiled by zig against the symbols of glibc 2.17, repaired by auditwheel, installed into an empty
environment of its Python, and has to pass a part of the tests from a folder outside the clone. Gaps are told.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
WORK: Final = ROOT / "build" / "wheels"
DIST: Final = ROOT / "dist"
SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
PLATFORM: Final = "manylinux_2_17_x86_64"
TARGET: Final = "x86_64-linux-gnu.2.17"
LARGEST: Final = 1_300_000
"""Bytes of a wheel."""
TESTS: Final = (
    "support",
    "bandit/test_bandit_loop.py",
    "bandit/test_bandit_files.py",
    "core/test_elementary.py",
    "kernel/test_digest.py",
    "kernel/test_widths.py",
)
"""What an installed wheel has to pass, and what that needs."""
NEEDED: Final = ("pytest", "hypothesis", "mpmath", "scipy")
COMPILER: Final = """\
#!{python}
import os, sys
given = [word for word in sys.argv[1:] if not word.startswith("-mtls-dialect")]
os.execv({python!r}, [{python!r}, "-m", "ziglang", "c++", "-target", {target!r}, *given])
"""


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter to build for."""

    version: str
    path: Path


def main(wanted: list[str]) -> int:
    """Build and try; give 1 if a wheel fails."""
    found = {each.version: each for each in pythons()}
    outcomes = {version: attempt(found.get(version)) for version in wanted or SUPPORTED}
    print("\nwheels")
    for version, outcome in outcomes.items():
        print(f"  Python {version}, Linux x86_64: {outcome}")
    print("  Linux aarch64, macOS: not built here; .github/workflows/wheels.yml would. make wheels-arm tries the bits")
    return 1 if any(outcome.startswith("FAILED") for outcome in outcomes.values()) else 0


def pythons() -> list[Python]:
    """Find interpreters: on the path, and those of pyenv."""
    named = [shutil.which(f"python{version}") for version in SUPPORTED]
    listed = sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    asked = [Python(version_of(Path(path)), Path(path)) for path in [*listed, *named] if path]
    return [each for each in asked if each.version in SUPPORTED]


def version_of(path: Path) -> str:
    """Ask an interpreter for its version; "" if it does not run."""
    done = subprocess.run(
        [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True
    )
    return done.stdout.strip()


def attempt(python: Python | None) -> str:
    """Build and try one wheel; say what came of it."""
    if python is None:
        return "not run: no such Python here"
    try:
        wheel = build(python)
        passed = trial(python, wheel)
    except subprocess.CalledProcessError as error:
        return f"FAILED: {' '.join(map(str, error.cmd))[:120]}"
    size = wheel.stat().st_size
    if size > LARGEST:
        return f"FAILED: {wheel.name} has {size:,} bytes, above {LARGEST:,}"
    return f"{wheel.name}, {size:,} bytes; {passed}"


def build(python: Python) -> Path:
    """Compile a wheel and let auditwheel prove and rename it."""
    raw, repaired = WORK / "raw" / python.version, WORK / "repaired" / python.version
    for folder in (raw, repaired):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    environment = venv(python, "build")
    settings = {
        **os.environ,
        "CXX": str(compiler()),
        "CMAKE_CXX_COMPILER_LAUNCHER": "",
        "CMAKE_BUILD_PARALLEL_LEVEL": "2",
    }
    options = [
        "--no-deps",
        "--quiet",
        "--wheel-dir",
        raw,
        f"--config-settings=build-dir={WORK}/objects/{python.version}",
    ]
    run(environment, "-m", "pip", "wheel", *options, ROOT, env=settings)
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    options = ["--plat", PLATFORM, "--zip-compression-level", "9", "--wheel-dir", repaired]
    run(Path(sys.executable), "-m", "auditwheel", "repair", *options, *raw.glob("*.whl"), env=tools)
    DIST.mkdir(exist_ok=True)
    (made,) = repaired.glob("*.whl")
    return Path(shutil.copy(made, DIST))


def compiler() -> Path:
    """Write the command that compiles: zig, for an old glibc. One of nanobind's flags it does not know."""
    path = WORK / "zig-c++"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(COMPILER.format(python=sys.executable, target=TARGET))
    path.chmod(0o755)
    return path


def trial(python: Python, wheel: Path) -> str:
    """Install a wheel into an empty environment and run tests on it, out of sight of the clone."""
    environment = venv(python, "trial")
    run(environment, "-m", "pip", "install", "--quiet", wheel, *NEEDED)
    with tempfile.TemporaryDirectory() as folder:
        for name in TESTS:
            copy(ROOT / "tests" / name, Path(folder) / name)
        settings = {**os.environ, "PYTHONPATH": folder}
        run(environment, "-m", "support.digest", cwd=folder, env=settings)
        code = "import armlet, pathlib; print(pathlib.Path(armlet.__file__).is_relative_to('{}'))".format(ROOT / "src")
        if run(environment, "-c", code, cwd=folder).strip() != "False":
            raise RuntimeError("the tests would run on the clone, not on the wheel")
        told = run(
            environment,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            folder,
            folder,
            cwd=folder,
            env=settings,
        )
    return re.sub(r" in .*", "", told.strip().splitlines()[-1])


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)


def venv(python: Python, name: str) -> Path:
    """Make an empty environment; give its interpreter."""
    folder = WORK / name / python.version
    run(python.path, "-m", "venv", "--clear", folder)
    return folder / "bin" / "python"


def run(program: Path, *words: object, cwd: str | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command and give what it printed; on failure show it."""
    command = [str(program), *map(str, words)]
    print("==>", *command[1:5], flush=True)
    done = subprocess.run(command, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout, flush=True)
        raise subprocess.CalledProcessError(done.returncode, command)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
