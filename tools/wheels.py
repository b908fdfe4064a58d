"""Build the wheels that this machine can build, and try each one where no clone is in sight.

    make wheels                      every Python that is found, here or among Debian's packages
    make wheels WHEELS="3.11 3.13"   those alone

Every wheel is compiled by zig against the symbols of glibc 2.17, repaired by auditwheel, packed tight,
installed into an empty environment of its Python, and has to pass a part of the tests from a folder outside the clone.
Gaps are reported.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import pythons
from package import ROOT, faults, metadata_faults
from pythons import Python
from rooms import wheel_limit

WORK: Final = ROOT / "build" / "wheels"
DIST: Final = ROOT / "dist"
SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
PLATFORM: Final = "manylinux_2_17_x86_64"
TARGET: Final = "x86_64-linux-gnu.2.17"
TESTS: Final = (
    "support",
    "bandit/test_bandit_loop.py",
    "bandit/test_bandit_files.py",
    "reference/test_elementary.py",
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


def main(wanted: list[str]) -> int:
    """Build and try; give 1 if a wheel fails."""
    found = pythons.find(wanted or SUPPORTED, WORK / "pythons")
    outcomes = {version: attempt(found.get(version)) for version in wanted or SUPPORTED}
    print("\nwheels")
    for version, outcome in outcomes.items():
        print(f"  Python {version}, Linux x86_64: {outcome}")
    print("  Linux aarch64, macOS: not built here; .github/workflows/wheels.yml would. make wheels-arm tries the bits")
    return 1 if any(outcome.startswith("FAILED") for outcome in outcomes.values()) else 0


def attempt(python: Python | None) -> str:
    """Build and try one wheel; say what came of it."""
    if python is None:
        return "not run: no such Python here"
    try:
        wheel = build(python)
        passed = trial(python, wheel)
    except subprocess.CalledProcessError as error:
        return f"FAILED: {' '.join(map(str, error.cmd))[:120]}"
    found = [*faults(wheel), *metadata_faults([wheel])]
    if (size := wheel.stat().st_size) > (most := wheel_limit()):
        found.append(f"{wheel.name} has {size:,} bytes, above {most:,}")
    return f"FAILED: {'; '.join(found)}" if found else f"{wheel.name}, {size:,} bytes; {passed} ({python.origin})"


def build(python: Python) -> Path:
    """Compile a wheel, let auditwheel prove and rename it, and pack it."""
    raw, repaired = WORK / "raw" / python.version, WORK / "repaired" / python.version
    for folder in (raw, repaired):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    compiling = {
        "CXX": str(compiler()),
        "LDFLAGS": "-Os",  # of the C++ library, which zig compiles when it links
        "CMAKE_CXX_COMPILER_LAUNCHER": "",
        "CMAKE_BUILD_PARALLEL_LEVEL": "2",
    }
    objects = f"--config-settings=build-dir={WORK}/objects/{python.version}"
    pip(venv(python, "build"), "wheel", "--no-deps", objects, "--wheel-dir", raw, ROOT, env={**os.environ, **compiling})
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    options = ["--plat", PLATFORM, "--wheel-dir", repaired]
    run(sys.executable, "-m", "auditwheel", "repair", *options, *raw.glob("*.whl"), env=tools)
    (made,) = repaired.glob("*.whl")
    DIST.mkdir(exist_ok=True)
    return pack(made, DIST / made.name)


def compiler() -> Path:
    """Write the command that compiles: zig, for an old glibc. One of nanobind's flags it does not know."""
    path = WORK / "zig-c++"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(COMPILER.format(python=sys.executable, target=TARGET))
    path.chmod(0o755)
    return path


def pack(wheel: Path, target: Path) -> Path:
    """Compress a wheel's files again, by a search for the shortest deflate; what they hold stays as it is."""
    from zopfli import ZipFile  # only `make wheels` installs it

    with zipfile.ZipFile(wheel) as loose, ZipFile(target, "w", zipfile.ZIP_DEFLATED) as tight:
        for entry in loose.infolist():
            tight.writestr(entry, loose.read(entry))
    return target


def trial(python: Python, wheel: Path) -> str:
    """Install a wheel into an empty environment and run tests on it, out of sight of the clone."""
    environment = venv(python, "trial")
    pip(environment, "install", "--only-binary=:all:", wheel, *NEEDED)
    with tempfile.TemporaryDirectory() as folder:
        for name in TESTS:
            copy(ROOT / "tests" / name, Path(folder) / name)
        settings = {**os.environ, "PYTHONPATH": folder}
        run(environment, "-m", "support.digest", cwd=folder, env=settings)
        code = f"import armlet, pathlib; print(pathlib.Path(armlet.__file__).is_relative_to('{ROOT / 'src'}'))"
        if run(environment, "-c", code, cwd=folder).strip() != "False":
            raise RuntimeError("the tests would run on the clone, not on the wheel")
        options = ["-q", "-p", "no:cacheprovider", "--rootdir", folder, folder]
        printed = run(environment, "-m", "pytest", *options, cwd=folder, env=settings)
    return re.sub(r" in .*", "", printed.strip().splitlines()[-1])


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)


def venv(python: Python, name: str) -> Path:
    """Make an environment with nothing in it; give its interpreter."""
    folder = WORK / name / python.version
    run(python.path, "-m", "venv", "--clear", "--without-pip", folder)
    return folder / "bin" / "python"


def pip(environment: Path, command: str, *words: object, env: dict[str, str] | None = None) -> None:
    """Let the pip of this environment work for another one."""
    run(sys.executable, "-m", "pip", "--python", environment, command, "--quiet", *words, env=env)


def run(*words: object, cwd: str | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command and give what it printed; on failure show it."""
    command = list(map(str, words))
    print("==>", *command[1:7], flush=True)
    done = subprocess.run(command, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout, flush=True)
        raise subprocess.CalledProcessError(done.returncode, command)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
