"""What the files for containers say; `make container-check` runs the steps of the Dockerfile."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from armlet.service.keys import digest, new_key
from armlet.service.settings import load, variables
from container import Stage, ignored, parse
from package import ROOT

STAGES = parse((ROOT / "Dockerfile").read_text())


@pytest.fixture
def final() -> Stage:
    return STAGES[-1]


def test_the_image_runs_the_server_as_a_user_of_its_own(final: Stage) -> None:
    assert final.last("USER") == "10001:10001"
    assert json.loads(final.last("ENTRYPOINT")) == ["armlet", "serve"]
    assert final.last("STOPSIGNAL") == "SIGTERM"


def test_the_image_has_nothing_of_the_stage_that_compiles_but_the_environment(final: Stage) -> None:
    assert [step.text for step in final.steps if step.verb == "COPY"] == ["--from=build /opt/armlet /opt/armlet"]
    assert len(STAGES) == 2


def test_the_variables_of_the_image_are_settings(final: Stage) -> None:
    named = {name for name in final.environment if name.startswith("ARMLET_")}
    assert named
    assert named <= variables({}).keys()
    environ = {name: final.environment[name] for name in named}
    with pytest.raises(ValueError, match="but there are no keys"):  # closed unless somebody opens it
        load(None, environ, store="shop.db")


def test_what_docker_is_told_to_ignore_is_not_copied() -> None:
    ignore = ignored("# caches\n.git\n**/*.so\n")
    assert ignore(str(ROOT), [".git", "src", "x.so"]) == {".git", "x.so"}
    assert ignore(str(ROOT / "src"), [".git", "x.so", "x.py"]) == {"x.so"}


def test_the_build_gets_what_it_compiles() -> None:
    lines = (ROOT / ".dockerignore").read_text().split()
    assert not {"src", "kernel", "pyproject.toml", "constraints.txt", "CMakeLists.txt", "README.md"} & set(lines)
    assert {".git", ".venv", "tests"} <= set(lines)


def test_an_unknown_step_is_refused() -> None:
    with pytest.raises(SystemExit, match="the Dockerfile has ADD, which this cannot follow"):
        parse("FROM python\nADD x y\n")


def test_the_settings_of_compose_and_kubernetes_are_valid(tmp_path: Path) -> None:
    (tmp_path / "hash").write_text(digest(new_key()).hex())
    (tmp_path / "store").write_text("postgresql://armlet:hush@postgresql/armlet\n")
    table: Any = tomllib.loads((ROOT / "deploy" / "armlet.toml").read_text())
    table["keys"]["shop"]["sha256_file"] = str(tmp_path / "hash")
    config = load(None, {"ARMLET_STORE_FILE": str(tmp_path / "store"), "ARMLET_LISTEN_HOST": "0.0.0.0"}, **table)
    assert config.is_database
    assert config.loops[0].control is not None
    grace = config.limits.notice_seconds + config.limits.drain_seconds
    assert "stop_grace_period: 30s" in (ROOT / "compose.yaml").read_text()
    assert "terminationGracePeriodSeconds: 30" in (ROOT / "deploy" / "kubernetes.yaml").read_text()
    assert grace < 30
