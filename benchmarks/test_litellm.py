"""LiteLLM itself, in its environment: the example of a router, whole and killed.

.venv/bin/pytest benchmarks/test_litellm.py       # part of `make bench`; installs LiteLLM if it is not there
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import armlet
from armlet_lab.runner.venvs import Recipe
from armlet_lab.runner.venvs import environment as make
from support.litellm.runs import EXAMPLE, REQUESTS, STAND_IN, Left, served
from venvs import PINS, ROOT

RECIPE = Recipe(
    name="litellm",
    without_dependencies=("litellm",),  # it asks for a certifi that is newer than ours, and for boto3
    requires=(
        *("aiohttp", "click", "fastuuid", "filelock", "httpx[http2]", "huggingface-hub<2", "importlib-metadata<9"),
        *("jinja2", "jsonschema", "openai<4", "pydantic", "pydantic-settings", "python-dotenv", "pyyaml", "tiktoken"),
        "tokenizers",
    ),
    constraints=PINS.read_text(),
)
COMMAND = (sys.executable, EXAMPLE)


@pytest.fixture(scope="module")
def packages() -> dict[str, str]:
    """Return the variables with which our Python finds LiteLLM, and what it needs, before what it has itself."""
    place = make(RECIPE, ROOT / ".venvs" / RECIPE.name, print)
    found = next(place.python.parents[1].glob("[Ll]ib/**/site-packages"))
    return {**os.environ, "PYTHONPATH": str(found), "PYTHONWARNINGS": "error::DeprecationWarning:__main__"}


@pytest.fixture(scope="module")
def whole(packages: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Left:
    return served(COMMAND, tmp_path_factory.mktemp("whole") / "router.db", env=packages)


def test_a_router_that_was_killed_decides_as_one_that_was_not(
    whole: Left, packages: dict[str, str], tmp_path: Path
) -> None:
    killed = served(COMMAND, tmp_path / "router.db", kills=[1, 60, 90], env=packages)
    assert set(killed.said) == set(whole.said)
    assert len(whole.said) == REQUESTS
    assert killed.events == whole.events
    assert (killed.digest, killed.spending) == (whole.digest, whole.spending)


def test_the_stand_in_of_the_tests_does_as_the_package(whole: Left, tmp_path: Path) -> None:
    stood_in = served(STAND_IN, tmp_path / "router.db")
    assert stood_in.said == whole.said
    assert stood_in.events == whole.events


def test_a_model_that_cools_down_is_not_eligible(packages: dict[str, str], tmp_path: Path) -> None:
    program = (
        "import asyncio, runpy, sys, armlet\n"
        "example = runpy.run_path(sys.argv[1])\n"
        "async def ask():\n"
        "    with armlet.open_store(sys.argv[2]) as store:\n"
        "        loop = example['make_loop'](store, 100)\n"
        "        router = example['make_router'](loop, down='mini', cooldown_time=3600)\n"
        "        for n in range(20):\n"
        "            await example['ask'](router, loop, 'Hello!', event=str(n), session=str(n))\n"
        "asyncio.run(ask())\n"
    )
    path = tmp_path / "router.db"
    subprocess.run([sys.executable, "-c", program, EXAMPLE, str(path)], env=packages, check=True)
    with armlet.open_store(path) as store:
        decided = [event for event in store.loop("models").log if event["kind"] == "decide"]
    first = [event["arm"] for event in decided].index("mini")
    assert all(set(event["eligible"]) == {"nano", "full"} for event in decided[first + 1 :])
    assert len(decided) == 20
