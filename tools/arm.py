"""Whether the kernel decides with the same bits on 64-bit ARM: cross-compiled, and run under qemu on any Linux.

    make wheels-arm

Root is needed once, for the compiler and qemu: apt-get install g++-aarch64-linux-gnu qemu-user-static. ARM's Python
comes from the packages of this Debian, unpacked into build/arm/ and installed nowhere; numpy from the package index.
Neither a wheel nor speed is tried here: qemu translates every instruction.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
WORK: Final = ROOT / "build" / "arm"
VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES: Final = (f"python{VERSION}", "libstdc++6")
PLATFORMS: Final = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")
COMPILER: Final = "aarch64-linux-gnu-g++"
EMULATORS: Final = ("qemu-aarch64-static", "qemu-aarch64")


def main() -> int:
    """Fetch, compile, compare; give 1 if a digest differs."""
    emulator = next(filter(None, map(shutil.which, EMULATORS)), None)
    if emulator is None or not shutil.which(COMPILER) or not shutil.which("apt-get"):
        print("needs Debian, and as root: apt-get install g++-aarch64-linux-gnu qemu-user-static", file=sys.stderr)
        return 2
    interpreter, site = python(WORK / "python"), packages(WORK / "site")
    install(compile_kernel(site), site)
    command = [emulator, "-L", str(interpreter.parents[2]), str(interpreter), "-m", "support.digest"]
    settings = {**os.environ, "PYTHONPATH": f"{site}:{ROOT / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    print(f"==> digests of Linux aarch64, Python {VERSION}, under {Path(emulator).name}", flush=True)
    return subprocess.run(command, env=settings).returncode


def python(folder: Path) -> Path:
    """Unpack Debian's packages of Python for ARM with all that they need; give the interpreter."""
    interpreter = folder / "root" / "usr" / "bin" / f"python{VERSION}"
    if interpreter.exists():
        return interpreter
    for name in ("state/lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "status").touch()
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Debug::NoLocking": "1",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in settings.items())]
    run(*apt, "update")
    run(*apt, "install", "--yes", "--download-only", "--no-install-recommends", *PACKAGES)
    for package in sorted((folder / "cache" / "archives").glob("*.deb")):
        run("dpkg-deb", "--extract", package, folder / "root")
    return interpreter


def packages(folder: Path) -> Path:
    """Unpack numpy for ARM."""
    if not (folder / "numpy").exists():
        where = [word for platform in PLATFORMS for word in ("--platform", platform)]
        options = ["--quiet", "--no-deps", "--only-binary=:all:", f"--python-version={VERSION}", "--target", folder]
        run(sys.executable, "-m", "pip", "install", *options, *where, "-c", ROOT / "constraints.txt", "numpy")
    return folder


def compile_kernel(site: Path) -> Path:
    """Compile for ARM against the headers of this Python, which are the same there."""
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    tools.pop("CMAKE_CXX_COMPILER_LAUNCHER", None)
    settings = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_SYSTEM_NAME": "Linux",
        "CMAKE_SYSTEM_PROCESSOR": "aarch64",
        "CMAKE_CXX_COMPILER": COMPILER,
        "Python_EXECUTABLE": sys.executable,
        "Python_NumPy_INCLUDE_DIR": site / "numpy" / "_core" / "include",
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    run("cmake", "-S", ROOT, "-B", WORK / "objects", "-G", "Ninja", *options, env=tools)
    run("cmake", "--build", WORK / "objects", "--parallel", "2", env=tools)
    (made,) = (WORK / "objects").glob("_kernel.*.so")
    return made


def install(kernel: Path, site: Path) -> None:
    """Put the package and its kernel of ARM beside numpy."""
    shutil.rmtree(site / "armlet", ignore_errors=True)
    shutil.copytree(ROOT / "src" / "armlet", site / "armlet", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(kernel, site / "armlet" / f"_kernel.cpython-{VERSION.replace('.', '')}-aarch64-linux-gnu.so")


def run(*words: object, env: dict[str, str] | None = None) -> None:
    """Run a command; on failure show what it printed."""
    command = list(map(str, words))
    print("==>", *command[:4], flush=True)
    done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout, flush=True)
        raise subprocess.CalledProcessError(done.returncode, command)


if __name__ == "__main__":
    sys.exit(main())
