"""Run the steps of the Dockerfile where there is no Docker: in an empty folder, without the clone's environment.

    make container-check

Paths of the image lie below a temporary folder, `python` is the one that runs this, and what changes the system itself
(apt-get, groupadd, useradd, install) is listed and left out; all other RUN and COPY steps of all stages are done. Then
the server is started as the image would, by its user if this is root and it can, asked by the image's HEALTHCHECK,
asked for a decision, and stopped. What this cannot say is whether the base image has all that is needed.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from package import ROOT

SYSTEM: Final = ("apt-get", "groupadd", "useradd", "install")
FOLLOWED: Final = ("FROM", "RUN", "WORKDIR", "COPY", "ENV", "USER")
READ: Final = ("VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD")
PATIENCE: Final = 60.0  # seconds until the server answers


@dataclass(frozen=True, slots=True)
class Step:
    """A line of a Dockerfile."""

    verb: str
    text: str


@dataclass(slots=True)
class Stage:
    """What a FROM begins: its steps, and what they have set so far."""

    name: str
    steps: list[Step] = field(default_factory=list)

    def last(self, verb: str) -> str:
        """Return the last setting of a kind."""
        return [step.text for step in self.steps if step.verb == verb][-1]

    @property
    def environment(self) -> dict[str, str]:
        """What its ENV lines set."""
        words = [word for step in self.steps if step.verb == "ENV" for word in shlex.split(step.text)]
        return dict(word.split("=", 1) for word in words)


def parse(text: str) -> list[Stage]:
    """Read a Dockerfile into its stages; refuse what this cannot follow."""
    stages: list[Stage] = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        verb, _, rest = line.partition(" ")
        if verb not in FOLLOWED + READ:
            raise SystemExit(f"the Dockerfile has {verb}, which this cannot follow")
        if verb == "FROM":
            stages.append(Stage(rest.partition(" AS ")[2] or str(len(stages))))
        stages[-1].steps.append(Step(verb, rest.strip()))
    return stages


class Image:
    """The file system of the stage that is being built, as a folder; programs in it know its path."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._root = folder, folder / "root"
        self._programs = folder / "programs"
        self._programs.mkdir()
        (self._programs / "python").symlink_to(getattr(sys, "_base_executable", sys.executable))

    def path(self, path: str) -> Path:
        """Return where a path of the image is."""
        return self._root / path.lstrip("/")

    def inside(self, text: str) -> str:
        """Return a command with its paths below the root of the image."""
        places = "|".join(("/opt/armlet", "/src", "/data", "/etc/armlet"))
        return re.sub(rf"(?<![\w.])({places})\b", lambda found: str(self.path(found[1])), text)

    def environ(self, stage: Stage) -> dict[str, str]:
        """Return the variables of a step: the image's, and where packages come from."""
        passed = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name == "HOME"}
        given = {name: self.inside(value) for name, value in stage.environment.items()}
        path = f"{given.pop('PATH', '')}:{self._programs}:{os.defpath}".lstrip(":")
        return {**passed, "LANG": "C.UTF-8", **given, "PATH": path}

    def build(self, stage: Stage) -> None:
        """Do the steps of a stage."""
        where = "/"
        self._root.mkdir()
        for step in stage.steps:
            if step.verb == "WORKDIR":
                where = step.text
                self.path(where).mkdir(parents=True, exist_ok=True)
            elif step.verb == "COPY":
                self._copy(step.text, where)
            elif step.verb == "RUN":
                self._run(stage, step.text, where)

    def put_away(self, stage: Stage) -> None:
        """Make room for the next stage, which has only what it copies."""
        self._root.rename(self._folder / f"stage-{stage.name}")

    def _copy(self, text: str, where: str) -> None:
        *sources, target = text.split()
        print(f"  COPY {text}", flush=True)
        if sources[0].startswith("--from="):
            stage = self._folder / f"stage-{sources.pop(0).removeprefix('--from=')}"
            for source in sources:
                shutil.copytree(stage / source.lstrip("/"), self.path(target), symlinks=True)
            return
        names = ignored((ROOT / ".dockerignore").read_text())
        for source in sources:
            shutil.copytree(ROOT / source, self.path(where) / target, dirs_exist_ok=True, ignore=names)

    def _run(self, stage: Stage, text: str, where: str) -> None:
        if text.split()[0] in SYSTEM:
            print(f"  RUN {text}\n    left out: it changes the system", flush=True)
            return
        print(f"  RUN {text}", flush=True)
        started = time.monotonic()
        command = ["/bin/sh", "-e", "-c", self.inside(text)]
        subprocess.run(command, cwd=self.path(where), env=self.environ(stage), check=True)
        print(f"    {time.monotonic() - started:.0f} s", flush=True)


def ignored(text: str) -> Callable[[str, list[str]], set[str]]:
    """Return what `shutil.copytree` asks which names to leave out, by a .dockerignore of plain names and **/names."""
    patterns = [line for line in text.splitlines() if line and not line.startswith("#")]

    def ignore(folder: str, names: list[str]) -> set[str]:
        is_top = Path(folder).resolve() == ROOT
        found = {line.removeprefix("**/") for line in patterns if is_top or line.startswith("**/")}
        return {name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in found)}

    return ignore


# ---- the server


def try_server(image: Image, stage: Stage) -> None:
    """Start the server as the image would, ask it for its health and for a decision, and stop it."""
    data = image.path("/data")
    data.mkdir(parents=True, exist_ok=True)
    environ = image.environ(stage) | {"ARMLET_LISTEN_PORT": str(free_port()), "HOME": str(data)}
    settings, key = write_settings(image, stage, environ)
    user = user_of(stage, image)
    os.chown(data, user, -1)
    command = [*json.loads(stage.last("ENTRYPOINT")), str(settings)]
    print(f"  ENTRYPOINT {shlex.join(command)}, as user {user}", flush=True)
    program = shutil.which(command[0], path=environ["PATH"])
    if program is None:
        raise SystemExit(f"{command[0]} is not in the image's PATH")
    process = subprocess.Popen([program, *command[1:]], cwd=data, env=environ, user=user, group=user)
    try:
        ask(environ, key, stage)
        process.send_signal(getattr(signal, stage.last("STOPSIGNAL")))
        code = process.wait(PATIENCE)
    finally:
        process.kill()
    if code:
        raise SystemExit(f"the server ended with {code}")
    print("  stopped, with 0", flush=True)


def user_of(stage: Stage, image: Image) -> int:
    """Return who runs the server: the image's user, or oneself where that is not possible."""
    wanted = int(stage.last("USER").partition(":")[0])
    if os.geteuid() == 0:
        try:
            subprocess.run([image.path("/opt/armlet/bin/python"), "-c", ""], user=wanted, group=wanted, check=True)
        except (PermissionError, subprocess.CalledProcessError):
            print(f"  user {wanted} cannot run this machine's Python: the server runs as root", flush=True)
        else:
            return wanted
    return os.geteuid()


def free_port() -> int:
    """Return a port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def write_settings(image: Image, stage: Stage, environ: Mapping[str, str]) -> tuple[Path, str]:
    """Make a key by the image's own command, and a file of settings with it."""
    settings = image.path(json.loads(stage.last("CMD"))[0])
    settings.parent.mkdir(parents=True, exist_ok=True)
    clean = {name: value for name, value in environ.items() if not name.startswith("ARMLET_")}
    made = ["armlet", "serve", "--new-key", "decide,reward,read"]
    printed = subprocess.run(
        [shutil.which(made[0], path=environ["PATH"]) or made[0], *made[1:]],
        env=clean,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    key = re.findall(r"armlet_\S+", printed)[0]
    loop = '[loops.home]\narms = ["sale", "new"]\nfeatures = ["age", "basket"]\n'
    settings.write_text(f'store = "shop.db"\n{loop}{printed}')
    return settings, key


def ask(environ: Mapping[str, str], key: str, stage: Stage) -> None:
    """Wait until it is ready, run the HEALTHCHECK, and ask for a decision."""
    url = f"http://127.0.0.1:{environ['ARMLET_LISTEN_PORT']}"
    end = time.monotonic() + PATIENCE
    while not is_ready(url):
        if time.monotonic() > end:
            raise SystemExit(f"the server is not ready after {PATIENCE:g} seconds")
        time.sleep(0.1)
    health = json.loads(stage.last("HEALTHCHECK").partition("CMD")[2])
    program = shutil.which(health[0], path=environ["PATH"]) or health[0]
    subprocess.run([program, *health[1:]], env=dict(environ), check=True)
    print("  HEALTHCHECK: well", flush=True)
    body = json.dumps({"context": {"age": 31, "basket": 2}, "event": "first"}).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/loops/home/decide", body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        print(f"  a decision: {answer.read().decode()}", flush=True)
    page = urllib.request.Request(f"{url}/loops/home", headers=headers)
    with urllib.request.urlopen(page, timeout=PATIENCE) as answer:
        print(f"  its page: {len(answer.read()):,} bytes of {answer.headers['content-type']}", flush=True)


def is_ready(url: str) -> bool:
    """Whether the server is ready."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=PATIENCE):
            return True
    except (urllib.error.URLError, ConnectionError):
        return False


def main() -> int:
    """Do all steps, then start the server."""
    stages = parse((ROOT / "Dockerfile").read_text())
    with tempfile.TemporaryDirectory(prefix="armlet-container-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the image's user must get there
        image = Image(folder)
        for stage in stages:
            print(f"==> stage {stage.name}", flush=True)
            image.build(stage)
            if stage is not stages[-1]:
                image.put_away(stage)
        print("==> the image's server", flush=True)
        try_server(image, stages[-1])
    print("==> the steps of the Dockerfile work; the image itself was not built")
    return 0


if __name__ == "__main__":
    sys.exit(main())
