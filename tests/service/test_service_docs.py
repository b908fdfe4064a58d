"""What the docs say about the server: settings, keys, limits, routes and metrics are those that there are."""

from __future__ import annotations

import asyncio
import re
import shlex
import tomllib
from dataclasses import fields
from pathlib import Path

import httpx2
import pytest

import armlet
from armlet import cli
from armlet.service.app import Service, create_app
from armlet.service.config import KIB, MIB, Limits
from armlet.service.keys import SCOPES, digest, new_key
from armlet.service.problems import KINDS
from armlet.service.routes import ROUTES
from armlet.service.schemas import ItemStatus
from armlet.stores import Memory, Store

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "serve.md").read_text()


def block(language: str, part: str = "") -> str:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return next(text for text in found if part in text)


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_settings_of_the_page_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = re.sub(r'"\.\.\."', lambda _: f'"{digest(new_key()).hex()}"', block("toml", "[listen]"))
    Path("armlet.toml").write_text(text)
    lines = [shlex.split(line, comments=True) for line in block("bash", "--check").splitlines()]
    assert [cli.main(words[1:]) for words in lines[:2]] == [0, 0]
    assert lines[2] == ["armlet", "serve", "armlet.toml"]


def test_the_key_of_the_page_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(shlex.split(block("bash", "--new-key"))[1:]) == 0
    printed = capsys.readouterr().out
    key = re.search(r"armlet_\S+", printed)
    assert key is not None
    made = tomllib.loads(printed)["keys"]["web"]
    assert made == {"sha256": digest(key[0]).hex(), "scopes": ["decide", "reward"], "loops": ["home"]}


def test_every_scope_is_on_the_page() -> None:
    assert re.findall(r"^\| `(\w+)` \|", section("Keys"), re.M) == list(SCOPES)


def test_every_limit_is_on_the_page_with_its_default() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (.*?) \|", section("What happens beyond the limits"), re.M)
    limits: dict[str, str] = {}
    for names, values in rows:
        listed = re.findall(r"\w+", names)
        limits |= zip(listed, values.split(", ", len(listed) - 1), strict=True)
    probes = section("Start, stop, probes")
    assert {each.name for each in fields(Limits)} - limits.keys() == set(re.findall(r"`(\w+_seconds)`", probes))
    units = {"KiB": KIB, "MiB": MIB}
    for name, text in limits.items():
        number, unit = re.search(r"([\d,]+)(?: (\w+))?", text).groups()  # type: ignore[union-attr] # or it fails
        assert int(number.replace(",", "")) * units.get(unit, 1) == getattr(Limits(), name), name


def test_every_route_is_on_the_page_with_its_scope() -> None:
    scopes = {}
    for cell, scope in re.findall(r"^\| (`[A-Z].*?) \| (.*?) \|", section("Routes"), re.M):
        method, path = "", ""
        for route in re.findall(r"`(.*?)`", cell):
            method, _, path = route.rpartition(" ") if " " in route else (method, "", _joined(path, route))
            scopes[method, path] = None if scope == "none" else scope.split()[0].strip("`")
    pages = {place for place in scopes if place[1].startswith("/loops")}
    assert {place: scopes[place] for place in scopes if place not in pages} == {
        (route.method, route.path): route.scope for route in ROUTES
    }


def _joined(before: str, path: str) -> str:
    """Return a path that begins with dots, for what it has in common with the one before."""
    if not path.startswith("..."):
        return path
    common = before.split("/")[:4]
    return "/".join(common) + path.removeprefix("...")


def test_every_status_that_the_server_adds_is_on_the_page() -> None:
    added = {word for part in ItemStatus.__args__ for word in getattr(part, "__args__", ())}
    known = set(re.findall(r"`(\w+)`", section("Rewards")))
    assert {"refused", "no_loop", "forbidden", "unavailable", "outcome_unknown"} <= added & known


async def scrape(service: Service) -> str:
    app = httpx2.ASGITransport(create_app(service))
    async with httpx2.AsyncClient(transport=app, base_url="http://127.0.0.1") as client:
        await client.get("/healthz")
        return (await client.get("/metrics")).text


def test_metrics_of_the_alerts_are_those_of_the_server() -> None:
    with Store(Memory()) as store:
        budget = armlet.Budget("cost", total=1.0, horizon=10)
        loop = store.loop("home", arms=["sale", "new"], dim=1, outcomes={"cost": -1.0}, budget=budget)
        loop.decide([1.0], event="order-1")
        loop.reward("order-1", {"cost": 0.1})
        service = Service(store, loops=[loop])
        text = asyncio.run(scrape(service))
        service.close()
    asked = set(re.findall(r"armlet_\w+", block("yaml")))
    assert len(asked) > 2
    assert {name for name in asked if f"\n{name}{{" not in text and f"\n{name} " not in text} == set()


def test_every_promise_names_a_test_that_exists() -> None:
    cells = re.findall(r"^\| .* \| `(\S+)::(\w+)` \|$", section("What is promised, and by which test"), re.M)
    assert len(cells) > 30
    root = Path(__file__).parents[2]
    found = {path: (root / path).read_text() if (root / path).is_file() else "" for path, _ in cells}
    assert [name for path, name in cells if f"\ndef {name}(" not in found[path]] == []


def test_every_kind_of_problem_is_on_the_page() -> None:
    rows = section("Events and retries").split("| answer |")[1]
    codes = {int(status) for status in re.findall(r"\b[45]\d\d\b", re.sub(r"^(\|[^|]*\|).*$", r"\1", rows, flags=re.M))}
    assert {kind.status for kind in KINDS} <= codes
