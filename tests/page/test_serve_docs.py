"""What the docs say about `armlet serve`, run as it stands there: by a shell with curl, by Node, and by Python."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import playwright
import pytest

from support.service.servers import PATIENCE, ServerProcess, serving

ROOT = Path(__file__).parents[2]
PAGES = {"serve": ROOT / "docs" / "how-to" / "serve.md", "README": ROOT / "README.md"}
NODE = Path(playwright.__file__).parent / "driver" / "node"
PLACE = "127.0.0.1:8080"
BY_CHANCE = {"arm", "propensity", "explored", "gain"}


class Block(NamedTuple):
    language: str
    text: str


def blocks(name: str) -> list[Block]:
    return [Block(*found) for found in re.findall(r"^```(\w+)\n(.*?)^```$", PAGES[name].read_text(), re.M | re.S)]


def first(name: str, language: str, part: str = "") -> str:
    return next(block.text for block in blocks(name) if block.language == language and part in block.text)


@contextmanager
def started(name: str, folder: Path) -> Iterator[ServerProcess]:
    """Run the first server of a page."""
    line = next(line for line in first(name, "bash", "armlet serve shop.db").splitlines() if "armlet serve" in line)
    arguments = shlex.split(line, comments=True)[2:]
    assert arguments[0] == "shop.db"
    with serving(*[word for word in arguments if word != "&"], folder=folder) as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with started("serve", tmp_path_factory.mktemp("serve")) as server:
        yield server


def host(url: str) -> str:
    return url.removeprefix("http://")


def shell(text: str, folder: Path, url: str) -> str:
    """Return what a shell prints for commands of a page, with the port of this test and the command of this tree."""
    assert shutil.which("curl"), "curl is not installed; `make test-page` installs it where it may"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-e"],
        input="\n".join(line for line in text.replace(PLACE, host(url)).splitlines() if "armlet serve" not in line),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def values(text: str) -> list[Any]:
    """Return values that stand one after the other."""
    found, decoder = [], json.JSONDecoder()
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def plain(value: Any) -> Any:
    """Return what is shown of an answer, with kinds in place of values that are drawn."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: type(each) if name in BY_CHANCE else plain(each) for name, each in value.items()}
    return value


def curls(name: str) -> list[tuple[str, str | None]]:
    """Return the requests of a page, and the answer that is shown below each."""
    pairs = pairwise([*blocks(name), Block("", "")])
    return [
        (block.text, after.text if after.language == "json" else None)
        for block, after in pairs
        if block.language == "bash" and "curl " in block.text
    ]


def test_requests_of_the_page_have_the_answers_that_it_shows(server: ServerProcess, tmp_path: Path) -> None:
    found = curls("serve")
    assert len(found) >= 5
    for command, shown in found:
        assert shown is not None, command
        assert plain(values(shell(command, tmp_path, server.url))) == plain(values(shown)), command


def test_the_lines_of_the_readme_decide_and_reward(tmp_path: Path) -> None:
    with started("README", tmp_path) as server:
        told = shell("\n".join(command for command, _ in curls("README")), tmp_path, server.url)
    assert re.search(r'"arm":"(sale|new)"', told)
    assert told.endswith('{"items":[{"status":"accepted"}]}')


def test_the_typescript_of_the_page_decides_and_rewards(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "ask.mts"  # a module; Node leaves the types out
    path.write_text(first("serve", "typescript"))
    environ = {**os.environ, "ARMLET_URL": server.url}
    done = subprocess.run([NODE, path], capture_output=True, text=True, env=environ, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"(sale|new) \{ status: 'accepted' \}\n", done.stdout)


def test_the_typescript_of_the_page_repeats_only_what_may_be_repeated(server: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "ask.mts"
    path.write_text(first("serve", "typescript").replace("age: 31", 'age: "x"'))
    environ = {**os.environ, "ARMLET_URL": server.url}
    done = subprocess.run([NODE, path], capture_output=True, text=True, env=environ, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert '"field":"context.age"' in done.stderr


def test_the_python_of_the_page_decides_and_rewards(
    server: ServerProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(first("serve", "python").replace(PLACE, host(server.url)), str(tmp_path), "exec"), {})
    decided, status, statuses = capsys.readouterr().out.splitlines()
    assert decided.split()[1] in ("sale", "new")
    assert status == "accepted"
    assert statuses == "['accepted', 'accepted']"
