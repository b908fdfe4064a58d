"""Whether the kernel decides with the same bits on 64-bit ARM: cross-compiled, and run under qemu on any Linux.

    make wheels-arm

Root is needed once, for the compiler and qemu: apt-get install g++-aarch64-linux-gnu qemu-user-static. ARM's Python
comes from the packages of this Debian, unpacked into build/arm/ and installed nowhere; numpy from the package index.
Neither a wheel nor speed is tried here: qemu translates every instruction.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import debian

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
    if emulator is None or not shutil.which(COMPILER) or not debian.available():
        print("needs Debian, and as root: apt-get install g++-aarch64-linux-gnu qemu-user-static", file=sys.stderr)
        return 2
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    root = debian.unpack(WORK / "python", PACKAGES, release=release, architecture="arm64")
    site = packages(WORK / "site")
    install(compile_kernel(site), site)
    command = [emulator, "-L", str(root), str(root / "usr" / "bin" / f"python{VERSION}"), "-m", "support.digest"]
    settings = {**os.environ, "PYTHONPATH": f"{site}:{ROOT / 'tests'}", "PYTHONDONTWRITEBYTECODE": "1"}
    print(f"==> digests of Linux aarch64, Python {VERSION}, under {Path(emulator).name}", flush=True)
    return subprocess.run(command, env=settings).returncode


def packages(folder: Path) -> Path:
    """Unpack numpy for ARM."""
    if not (folder / "numpy").exists():
        where = [word for tag in PLATFORMS for word in ("--platform", tag)]
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
    """Put the package and its kernel of ARM next to numpy."""
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
