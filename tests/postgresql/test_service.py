"""Servers as replicas: several processes, one loop in PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

import armlet
from armlet.cli import main
from armlet.stores.postgresql import PostgreSQL
from armlet.stores.verify import verify_loop
from support.postgresql import Server
from support.service.servers import ROUTER, ServerProcess, ask, serving

SETTINGS = 'store_file = "address"\n[loops.home]\narms = ["sale", "new"]\nfeatures = ["age"]\npolicy = "LinUCB"\n'


@pytest.fixture
def address(server: Server) -> Iterator[str]:
    """Make a database of its own, since a server's schema has one name."""
    name = f"armlet_{uuid.uuid4().hex[:12]}"
    server.run(f"CREATE DATABASE {name}")
    with psycopg.connect(server.conninfo) as connection:
        info = connection.info
        place = f"host={quote(info.host, safe='')}&port={info.port}&user={quote(info.user)}"
    yield f"postgresql:///{name}?{place}"
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


def test_two_servers_share_a_loop_and_need_nothing_else(address: str, tmp_path: Path) -> None:
    (tmp_path / "address").write_text(address)
    (tmp_path / "armlet.toml").write_text(SETTINGS)
    with ExitStack() as stack:
        servers = [stack.enter_context(serving("armlet.toml", folder=tmp_path)) for _ in range(2)]

        def decide(i: int, event: str) -> object:
            body = {"context": {"age": float(len(event))}, "event": event}
            return ask(servers[i].url, "POST", "/v1/loops/home/decide", body).json

        def reward(i: int, event: str) -> str:
            body = {"items": [{"loop": "home", "event": event, "value": 1.0}]}
            found: str = ask(servers[i].url, "POST", "/v1/rewards", body).json["items"][0]["status"]
            return found

        for n in range(40):
            assert decide(n % 2, f"order-{n}") == decide(1 - n % 2, f"order-{n}")
            assert reward(1 - n % 2, f"order-{n}") == "accepted"
            assert reward(n % 2, f"order-{n}") == "duplicate"
        servers[0].kill()  # without a word
        assert reward(1, "order-0") == "duplicate"
        assert decide(1, "order-40") == decide(1, "order-40")
        assert servers[1].stop() == 0
    ledger = PostgreSQL(address)
    with ledger.view() as view:
        found = verify_loop(view, view.loops()[0], lambda *_: None)
    ledger.close()
    with armlet.open_store(address) as store:
        model = store.loop("home").model()
    assert model.t == 41
    assert model.state.n.sum() == 40
    assert found.digest == model.digest()


def test_two_servers_share_one_price_and_units_keep_their_arms(address: str, tmp_path: Path) -> None:
    (tmp_path / "address").write_text(address)
    (tmp_path / "armlet.toml").write_text('store_file = "address"\n' + ROUTER)
    arms: dict[str, str] = {}
    with ExitStack() as stack:
        servers = [stack.enter_context(serving("armlet.toml", folder=tmp_path)) for _ in range(2)]

        def post(i: int, path: str, body: object) -> Any:
            return ask(servers[i].url, "POST", path, body).json

        for n in range(60):
            event, unit = f"request-{n}", f"session-{n % 6}"
            asked = {"context": [1.0], "event": event, "unit": unit, "weights": {"delay": 0.0}}
            told = post(n % 2, "/v1/loops/router/decide", asked)
            assert told == post(1 - n % 2, "/v1/loops/router/decide", asked)
            assert arms.setdefault(unit, told["arm"]) == told["arm"]
            parts = ({"delay": 0.5}, {"quality": 0.8 if told["arm"] == "large" else 0.1})
            for i, part in enumerate(parts):  # one at each server
                item = {"loop": "router", "event": event, "value": part}
                assert post(i, "/v1/rewards", {"items": [item]}) == {"items": [{"status": "accepted"}]}
        found = [ask(each.url, "GET", "/v1/loops/router/stats").json for each in servers]
    assert found[0]["budget"] == found[1]["budget"]
    assert found[0]["budget"]["decisions_left"] == 140
    assert found[0]["budget"]["price"] > 0.0
    assert found[0]["units"]["switches"] == 0
    assert found[0]["learned"] == 60


def test_a_check_makes_no_tables(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    loop = ("--loop", "home", "--arms", "sale,new", "--features", "age", "--policy", "LinUCB")
    assert main(["serve", address, *loop, "--check"]) == 0
    assert "would be made\nloop 'home' would be made" in capsys.readouterr().out
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'armlet'").fetchall() == []
    with armlet.open_store(address) as store:
        store.loop("home", arms=["sale", "new"], features=["age"], policy=armlet.LinUCB())
    assert main(["serve", address, *loop, "--check"]) == 0
    assert "is there\nloop 'home' stays as it is" in capsys.readouterr().out


def test_a_database_that_is_not_there_ends_the_server_without_its_password(tmp_path: Path) -> None:
    (tmp_path / "address").write_text(f"postgresql://armlet:hush@localhost/none?host={quote(str(tmp_path), safe='')}")
    (tmp_path / "armlet.toml").write_text(SETTINGS)
    server = ServerProcess("armlet.toml", "--port", "0", folder=tmp_path)
    try:
        assert server.wait() == 1
    finally:
        server.kill()
    told = server.errors.read_text()
    assert "armlet serve: error: the database cannot be opened" in told
    assert "hush" not in told
