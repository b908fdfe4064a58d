"""`armlet serve` as users start it: the banner, readiness, draining, exit codes."""

from __future__ import annotations

import http.client
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

import armlet
from armlet.cli import main
from armlet.cli.serve import announce, check
from armlet.cli.sources import open_view
from armlet.errors import StoreError
from armlet.service import server as module
from armlet.service.app import Service
from armlet.service.config import Limits, Listen, LogConfig, LoopConfig, PersonalizerConfig, ServerConfig
from armlet.service.keys import digest, new_key
from armlet.service.server import open_loops
from armlet.service.settings import load
from armlet.stores.overview import details
from support.service.servers import LISTENING, PATIENCE, ServerProcess, ServerThread, ask, serving, serving_here

SHOP = ("shop.db", "--loop", "home", "--arms", "sale,new", "--features", "age,basket")


def run_line(line: str, folder: Path) -> Any:
    """Run a line as a shell does, and read the JSON that it prints."""
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, check=True, timeout=PATIENCE)
    return json.loads(done.stdout)


def curl_lines(server: ServerProcess) -> list[str]:
    return [line.strip() for line in server.banner if line.startswith("  curl")]


def config_of(tmp_path: Path, **settings: Any) -> ServerConfig:
    home = LoopConfig(name="home", arms=("sale", "new"), features=("age",), seed=1)
    return ServerConfig(
        **{"store": str(tmp_path / "shop.db"), "listen": Listen(port=0), "loops": (home,), **settings},
    )


# ---- the first minute


def test_the_lines_of_the_banner_work_as_printed(tmp_path: Path) -> None:
    more = ("--categories", "country=de,fr", "--window", "3600", "--default-reward", "0", "--control", "sale")
    with serving(*SHOP, *more, folder=tmp_path) as server:
        decide, reward = curl_lines(server)
        decision = run_line(decide, tmp_path)
        assert decision["arm"] in ("sale", "new")
        assert run_line(decide, tmp_path) == decision  # pasted twice
        assert run_line(reward, tmp_path) == {"items": [{"status": "accepted"}]}
        assert f"  {server.url}/loops/home" in server.banner
        assert server.stop() == 0
    with armlet.open_store(tmp_path / "shop.db") as store:
        start, decided, *_ = store.loop("home").log
    assert (start["kind"], decided["event"], decided["control"]["share"]) == ("start", decision["event"], 0.1)


def test_a_name_that_a_shell_could_misread_is_quoted(tmp_path: Path) -> None:
    loop = ("--loop", 'it\'s $(touch x) & ünï/"c"', "--arms", "a b,`c`", "--features", "x y")
    with serving("shop.db", *loop, folder=tmp_path) as server:
        decide, reward = curl_lines(server)
        assert run_line(decide, tmp_path)["arm"] in ("a b", "`c`")
        assert run_line(reward, tmp_path) == {"items": [{"status": "accepted"}]}
    assert not (tmp_path / "x").exists()


def test_it_goes_on_with_all_loops_of_a_store(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        store.loop("home", arms=["a", "b"], dim=2)
        store.loop("costs", arms=["a", "b"], features=["x"], objective="min", reward_range=(0.0, 10.0))
    with serving("shop.db", folder=tmp_path) as server:
        for name in ("home", "costs"):
            body = {"context": [1.0] * (2 if name == "home" else 1)}
            assert ask(server.url, "POST", f"/v1/loops/{name}/decide", body).status == 200
        assert [run_line(line, tmp_path) for line in curl_lines(server)][1] == {"items": [{"status": "accepted"}]}


def test_a_file_of_settings_with_keys(tmp_path: Path) -> None:
    key = new_key()
    (tmp_path / "armlet.toml").write_text(
        'store = "missing.db"\n[loops.home]\narms = ["sale", "new"]\nfeatures = ["age"]\n'
        f'[keys.web]\nsha256 = "{digest(key).hex()}"\nscopes = ["decide", "reward"]\npropensity = false\n'
    )
    environ = {"ARMLET_STORE": "shop.db", "ARMLET_LOG_ACCESS": "true"}
    with serving("armlet.toml", folder=tmp_path, **environ) as server:
        assert ask(server.url, "POST", "/v1/loops/home/decide", {"context": {"age": 1}}).status == 401
        decide, reward = curl_lines(server)
        assert key not in "".join(server.banner)
        decision = run_line(f"export ARMLET_KEY={key}; {decide}", tmp_path)
        assert decision.keys() == {"event", "arm"}  # the key is made without propensities
        assert run_line(f"export ARMLET_KEY={key}; {reward}", tmp_path) == {"items": [{"status": "accepted"}]}
        assert server.stop() == 0
    errors = server.errors.read_text()
    assert re.search(r"stopping\n.*stopped\n$", errors)
    assert "POST /v1/loops/home/decide" in errors  # access is logged, but not with what
    assert key not in errors
    assert "context" not in errors
    assert (tmp_path / "shop.db").exists()
    assert not (tmp_path / "missing.db").exists()


def test_logs_of_json_are_one_object_a_line_without_contexts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("armlet", "asyncio", "py.warnings", "uvicorn.access", "uvicorn.error")
    for name in names:
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "propagate", logger.propagate)
        monkeypatch.setattr(logger, "level", logger.level)
    monkeypatch.setattr(logging, "captureWarnings", lambda _: None)
    config = config_of(tmp_path, log=LogConfig(format="json"))
    module.configure_logging(config.log)
    with serving_here(config) as server:
        announce(config, server.url, cast("Service", server.service))
        try:
            raise ValueError("context['age'] is 31")
        except ValueError:
            logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
    output = capsys.readouterr()
    assert output.out == ""  # no lines to paste
    lines = [json.loads(line) for line in output.err.splitlines()]
    assert [line["message"].partition(" at ")[0] for line in lines if line["logger"] == "armlet.service"] == [
        "listening",
        "ready",
        "stopping",
        "stopped",
    ]
    assert [line["error"] for line in lines if "error" in line] == ["ValueError"]
    assert "context" not in output.err


def test_a_unix_socket(tmp_path: Path) -> None:
    settings = 'store = "shop.db"\n[listen]\nsocket = "s"\n[loops.home]\narms = ["a", "b"]\ndim = 1\n'
    (tmp_path / "armlet.toml").write_text(settings)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "s"))  # what a process that was killed leaves behind
    server = ServerProcess("armlet.toml", folder=tmp_path)
    try:
        server.wait_until_ready()
        decide, reward = curl_lines(server)
        assert run_line(decide, tmp_path)["arm"] in ("a", "b")
        assert run_line(reward, tmp_path) == {"items": [{"status": "accepted"}]}
        (tmp_path / "second").mkdir()
        (tmp_path / "second.toml").write_text(settings.replace("shop.db", "second/shop.db"))
        assert fails(tmp_path, "second.toml")[1].endswith("at s: another process listens there; choose another\n")
        assert server.stop() == 0
    finally:
        server.kill()
    assert not (tmp_path / "s").exists()


# ---- readiness


def test_it_is_alive_at_once_and_ready_when_the_loops_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_open, opens = threading.Event(), module.open_loops

    def wait_and_open(config: ServerConfig) -> Any:
        assert may_open.wait(PATIENCE)
        return opens(config)

    monkeypatch.setattr(module, "open_loops", wait_and_open)
    server = ServerThread(config_of(tmp_path))
    try:
        assert ask(server.url, "GET", "/healthz").status == 200
        not_ready = ask(server.url, "GET", "/readyz")
        assert (not_ready.status, not_ready.headers["retry-after"]) == (503, "1")
        assert ask(server.url, "POST", "/v1/loops/home/decide", {"context": {"age": 1}}).status == 503
        may_open.set()
        assert server.ready.wait(PATIENCE)
        assert ask(server.url, "GET", "/readyz").status == 200
        assert ask(server.url, "POST", "/v1/loops/home/decide", {"context": {"age": 1}}).status == 200
    finally:
        may_open.set()
        server.stop()


def test_due_windows_are_closed_before_it_is_ready(tmp_path: Path) -> None:
    n, path = 2_000, tmp_path / "shop.db"
    settings: Any = {"arms": ("a", "b"), "dim": 1, "window": 60.0, "default_reward": 0.0, "seed": 1}
    with armlet.open_store(path, wall=lambda: time.time() - 3600) as store:
        store.loop("home", **settings).decide_many([[1.0]] * n)
    home = LoopConfig(name="home", **settings)
    with serving_here(config_of(tmp_path, loops=(home,))), open_view(path) as view:
        record = view.loops()[0]
        assert details(view, record, 0).open == 0
        assert sum(row.kind == "learn" for row in view.rows(record.id, 0)) == n


def cpu_seconds(server: ServerProcess) -> float:
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.long
def test_a_hundred_thousand_due_windows_do_not_delay_life_nor_the_first_decision(tmp_path: Path) -> None:
    settings: Any = {"window": 3600.0, "default_reward": 0.0}
    with armlet.open_store(tmp_path / "shop.db", wall=lambda: time.time() - 7200) as store:
        loop = store.loop("home", arms=["sale", "new"], features=["age", "basket"], **settings)
        for _ in range(10):
            loop.decide_many([[1.0, 2.0]] * 10_000)
    server = ServerProcess(*SHOP, "--window", "3600", "--default-reward", "0", "--port", "0", folder=tmp_path)
    try:
        while (found := LISTENING.search(server.errors.read_text())) is None:
            assert server.process.poll() is None
        assert ask(found[1], "GET", "/healthz").status == 200
        assert ask(found[1], "GET", "/readyz").status == 503
        server.wait_until_ready()
        before = cpu_seconds(server)
        body = {"context": {"age": 1, "basket": 1}}
        assert ask(found[1], "POST", "/v1/loops/home/decide", body).status == 200
        assert cpu_seconds(server) - before <= 0.1
    finally:
        server.kill()


def test_a_server_that_is_stopped_while_it_opens_closes_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_open, opens = threading.Event(), threading.Event(), module.open_loops

    def wait_and_open(config: ServerConfig) -> Any:
        begun.set()
        assert may_open.wait(PATIENCE)
        return opens(config)

    monkeypatch.setattr(module, "open_loops", wait_and_open)
    server = ServerThread(config_of(tmp_path))
    assert begun.wait(PATIENCE)
    server.server.should_exit = True
    may_open.set()
    server.stop()
    assert not server.ready.is_set()
    armlet.open_store(tmp_path / "shop.db").close()  # which one process at a time can


def test_a_store_that_takes_too_long_to_open_does_not_keep_it_from_stopping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_open, ended = threading.Event(), threading.Event()

    def wait(_: ServerConfig) -> Any:
        assert may_open.wait(PATIENCE)
        ended.set()
        raise StoreError("nobody asks any more")

    monkeypatch.setattr(module, "open_loops", wait)
    server = ServerThread(config_of(tmp_path, limits=Limits(drain_seconds=0.1)))
    assert ask(server.url, "GET", "/readyz").status == 503
    server.stop()
    assert server.server.failure is None
    may_open.set()
    assert ended.wait(PATIENCE)


# ---- the end


def half_a_request(url: str, event: str) -> tuple[socket.socket, bytes]:
    """Send a request but for its last byte; the server has begun it when it asks for the body."""
    place = urlsplit(url)
    connection = socket.create_connection((place.hostname, place.port), timeout=PATIENCE)
    body = json.dumps({"context": {"age": 1, "basket": 1}, "event": event}).encode()
    head = f"POST /v1/loops/home/decide HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    connection.sendall(head.encode() + b"content-type: application/json\r\nexpect: 100-continue\r\n\r\n")
    assert connection.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
    connection.sendall(body[:-1])
    return connection, body[-1:]


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_it_answers_what_is_under_way_and_takes_no_more(tmp_path: Path, sig: int) -> None:
    with serving(*SHOP, folder=tmp_path) as server:
        place = urlsplit(server.url)
        idle = http.client.HTTPConnection(cast("str", place.hostname), place.port, timeout=PATIENCE)
        idle.request("GET", "/healthz")
        assert idle.getresponse().read()
        under_way = [half_a_request(server.url, f"order-{i}") for i in range(10)]
        server.process.send_signal(sig)
        assert cast("socket.socket", idle.sock).recv(1) == b""  # a connection without a request is closed
        idle.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((place.hostname, place.port))
        for connection, last in under_way:
            connection.sendall(last)
            answer = b"".join(iter(lambda connection=connection: connection.recv(1 << 16), b""))  # type: ignore[misc]
            connection.close()
            assert answer.startswith(b"HTTP/1.1 200")
            assert b"connection: close" in answer
        assert server.wait() == 0
    assert "stopped" in server.errors.read_text()
    with armlet.open_store(tmp_path / "shop.db") as store:
        events = {event.get("event") for event in store.loop("home").log if event["kind"] == "decide"}
        assert events == {f"order-{i}" for i in range(10)}


def test_who_does_not_finish_in_time_does_not_keep_it_from_stopping(tmp_path: Path) -> None:
    with serving(*SHOP, folder=tmp_path, ARMLET_LIMITS_DRAIN_SECONDS="1") as server:
        connection, _ = half_a_request(server.url, "order-1")
        assert server.stop() == 0
        connection.close()


def test_a_proxy_that_asks_is_told_before_it_stops(tmp_path: Path) -> None:
    with serving(*SHOP, folder=tmp_path, ARMLET_LIMITS_NOTICE_SECONDS="3600") as server:
        server.process.send_signal(signal.SIGTERM)
        while ask(server.url, "GET", "/readyz").status == 200:  # until the signal has arrived
            pass
        assert ask(server.url, "GET", "/readyz").status == 503
        assert ask(server.url, "GET", "/healthz").status == 200
        decision = ask(server.url, "POST", "/v1/loops/home/decide", {"context": {"age": 1, "basket": 1}})
        assert decision.status == 200  # those who do not know yet are served
        assert server.stop() == 0  # asked again


# ---- what fails


def fails(folder: Path, *arguments: str, **environ: str) -> tuple[int, str]:
    server = ServerProcess(*arguments, folder=folder, **environ)
    try:
        return server.wait(), server.errors.read_text()
    finally:
        server.kill()


def test_a_port_that_is_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, errors = fails(tmp_path, *SHOP, "--port", str(port))
    assert code == 1
    assert f"cannot listen at 127.0.0.1 port {port}: Address already in use; choose another" in errors
    assert not (tmp_path / "shop.db").exists()


def test_a_store_that_is_open_elsewhere(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db"):
        code, errors = fails(tmp_path, *SHOP, "--port", "0")
    assert code == 1
    assert "armlet serve: error: shop.db is open already" in errors


def test_a_store_that_only_a_new_start_can_mend_ends_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SETTLE_EVERY", 1)
    server = ServerThread(config_of(tmp_path))
    assert server.ready.wait(PATIENCE)
    assert server.service is not None
    monkeypatch.setattr(server.service.store._ledger, "_broken", "disk I/O error")  # an fsync that failed
    server.wait()
    assert "failed before (disk I/O error); close it and open it again" in str(server.server.failure)


def test_a_full_disk_does_not_end_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = threading.Semaphore(0)

    def settle(_: Any) -> None:
        tried.release()
        raise StoreError("nothing of this call was kept: database or disk is full")

    monkeypatch.setattr(module, "SETTLE_EVERY", 1)
    with serving_here(config_of(tmp_path)) as server:
        monkeypatch.setattr("armlet.stores.Store.settle", settle)
        for _ in range(3):
            assert tried.acquire(timeout=PATIENCE)
        assert ask(server.url, "GET", "/readyz").status == 200
    assert server.server.failure is None


def test_a_loop_that_was_made_otherwise(tmp_path: Path) -> None:
    with armlet.open_store(tmp_path / "shop.db") as store:
        store.loop("home", arms=["sale", "new"], features=["age"])
    code, errors = fails(tmp_path, *SHOP, "--port", "0")
    assert code == 1
    assert "features is ('age', 'basket'), but loop 'home' has ('age',)" in errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "PLACE is missing; give armlet.toml, or a store such as shop.db"),
        (("nothing.toml",), "nothing.toml: no such file or directory"),
        ((*SHOP, "--host", "0.0.0.0"), "--host: listen.host is '0.0.0.0', where others can reach it"),
        ((*SHOP, "--window", "60"), "window is 60.0 and default_reward is None; give both or neither"),
        ((*SHOP, "--share", "0.5"), "--share is given, but --control is not"),
        ((*SHOP, "--control", "sail"), "control.arm is 'sail'; did you mean 'sale'?"),
        ((*SHOP, "--policy", "LinUBC"), "there is no policy 'LinUBC'; did you mean 'LinUCB'?"),
        ((*SHOP, "--categories", "country"), "--categories is 'country'; give a column and its values"),
        (("shop.db", "--arms", "a,b"), "--arms is given, but --loop is not; name the loop"),
        (("shop.db", "--loop", "home", "--dim", "2"), "--arms is missing; give the arms of the loop"),
        (("armlet.toml", "--arms", "a,b"), "--arms is given, but PLACE is a file of settings; write it there"),
        (("--new-key", "decide,rewards"), "scopes has 'rewards'; did you mean 'reward'?"),
    ],
)
def test_a_wrong_call_ends_with_a_line_that_says_how(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["serve", *arguments])
    assert end.value.code == (1 if "no such file" in message else 2)
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# ---- what starts nothing


def test_check_says_what_would_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *SHOP, "--check"]) == 0
    assert "store shop.db would be made\nloop 'home' would be made\nno keys" in capsys.readouterr().out
    with armlet.open_store("shop.db") as store:
        store.loop("home", arms=["sale", "new"], features=["age"])
    with pytest.raises(SystemExit) as end:
        main(["serve", *SHOP, "--check"])
    assert end.value.code == 1
    assert "loop 'home' would be refused: features is" in capsys.readouterr().out


def test_a_new_key_comes_with_the_lines_that_allow_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--new-key", "decide,reward", "--key-loops", "home", "--without-propensity"]) == 0
    output = capsys.readouterr().out
    key = re.findall(r"shown this once: (armlet_\S+)$", output, re.M)[0]
    config = load(None, {}, store="shop.db", **tomllib.loads(output))
    grant = config.keyring.find(key)
    assert grant is not None
    assert grant.scopes == frozenset({"decide", "reward"})
    assert grant.loops == frozenset({"home"})
    assert not grant.propensity


def test_print_config_is_a_file_of_settings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "shop.db", "--loop", "home", "--arms", "a,b", "--features", "x", "--print-config"]) == 0
    (tmp_path / "armlet.toml").write_text(capsys.readouterr().out)
    config = load(tmp_path / "armlet.toml", {})
    assert (config.store, config.loops[0].arms) == ("shop.db", ("a", "b"))


ROUTER = (
    *("router.db", "--loop", "router", "--arms", "small,large", "--features", "tokens"),
    *("--outcomes", "quality=1,cost=-40", "--known", "cost:small=0.001,large=0.03"),
    *("--budget", "cost:total=250,horizon=100k"),
)


def test_outcomes_and_a_budget_are_options_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    more = ("--reward-range", "quality=0..1", "--window", "60", "--default-reward", "quality=0.5")
    assert main(["serve", *ROUTER, *more, "--print-config"]) == 0
    Path("armlet.toml").write_text(capsys.readouterr().out)
    [router] = load(Path("armlet.toml"), {}).loops
    assert (router.outcomes, router.known) == ({"quality": 1, "cost": -40}, {"cost": {"small": 0.001, "large": 0.03}})
    assert router.budget == armlet.Budget("cost", total=250.0, horizon=100_000)
    assert (router.reward_range, router.default_reward) == ({"quality": (0.0, 1.0)}, {"quality": 0.5})
    apart = ("--outcome", "quality=1", "--outcome", "cost=-40", "--known", "cost:small=1", "--known", "cost:large=2")
    assert main(["serve", *ROUTER[:7], *apart, "--print-config"]) == 0  # an abbreviation, and in parts
    Path("armlet.toml").write_text(capsys.readouterr().out)
    [router] = load(Path("armlet.toml"), {}).loops
    assert (router.outcomes, router.known) == ({"quality": 1, "cost": -40}, {"cost": {"small": 1, "large": 2}})
    assert main(["serve", *ROUTER, "--check"]) == 0
    output = capsys.readouterr().out
    assert "loop 'router' would be made" in output
    assert "loop 'router' weighs quality=1, cost=-40 (known)" in output
    assert "loop 'router' spends 250 cost within 100,000 decisions" in output


@pytest.mark.parametrize(
    ("option", "given", "message"),
    [
        ("--outcomes", "quality", "invalid values: 'quality'; write them as in"),
        ("--known", "cost", "invalid values: 'cost'; write the outcome and its value for every arm"),
        ("--known", "cost:small=0.001", "--known: cost is given twice; give it once"),
        ("--known", "delay:small=0.001", "known has 'delay', which is no outcome"),
        ("--outcomes", "quality=1,quality=2", "invalid values: 'quality=1,quality=2'; write them"),
        ("--outcomes", "quality=2", "--outcomes: quality is given twice; give it once"),
        ("--budget", "cost:total=1,total=2,period=9", "invalid budget: 'cost:total=1,total=2,period=9'"),
        ("--reward-range", "quality=0..1,quality=0..2", "invalid range: 'quality=0..1,quality=0..2'"),
        ("--reward-range", "quality=0..1,0..2", "invalid range: 'quality=0..1,0..2'"),
        ("--budget", "cost=250/100000", "invalid budget: 'cost=250/100000'; write it as in cost:total=250"),
        ("--budget", "cost:total=250", "neither horizon nor period"),
        ("--budget", "price:total=250,period=1k", "budget is of 'price', which is no outcome"),
        ("--reward-range", "quality=1", "invalid range: 'quality=1'; write two numbers"),
        ("--default-reward", "much", "invalid number: 'much'; write a number"),
    ],
)
def test_wrong_options_of_outcomes_are_refused(
    capsys: pytest.CaptureFixture[str], option: str, given: str, message: str
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["serve", *ROUTER, option, given, "--print-config"])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


def test_the_lines_of_the_banner_decide_and_reward_where_there_are_outcomes(tmp_path: Path) -> None:
    with serving(*ROUTER, folder=tmp_path) as server:
        decide, reward = curl_lines(server)
        assert run_line(decide, tmp_path)["arm"] in ("small", "large")
        assert run_line(reward, tmp_path) == {"items": [{"status": "accepted"}]}


FILMS = ("shop.db", "--loop", "films", "--features", "age", "--action-features", "year")


@pytest.mark.parametrize("more", [("--action-categories", "genre=crime,horror"), ()], ids=["texts", "numbers"])
def test_the_lines_of_the_banner_decide_and_reward_where_actions_come_with_decisions(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    with serving(*FILMS, *more, folder=tmp_path) as server:
        decide, reward = curl_lines(server)
        assert run_line(decide, tmp_path)["arm"] in ("one", "other")
        assert run_line(reward, tmp_path) == {"items": [{"status": "accepted"}]}


def test_options_of_actions_are_those_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hashed = (
        "shop.db",
        "--loop",
        "news",
        "--hashed",
        "8",
        "--action-hashed",
        "6",
        "--policy",
        "SharedThompson:draws=5",
    )
    for words, names in ((FILMS, ("year",)), (hashed, tuple(f"#{i}" for i in range(6)))):
        assert main(["serve", *words, "--print-config"]) == 0
        (tmp_path / "armlet.toml").write_text(capsys.readouterr().out)
        loop = load(tmp_path / "armlet.toml", {}).loops[0]
        assert loop.spec.cast().live.settings.action_features == names  # type: ignore[union-attr]
    for wrong, message in (
        (("shop.db", "--action-features", "year"), "--action-features is given, but --loop is not"),
        ((*FILMS, "--arms", "a,b"), "arms and action_features are given"),
        ((*FILMS, "--action-categories", "genre"), "--action-categories is 'genre'; give a column and its values"),
    ):
        with pytest.raises(SystemExit):
            main(["serve", *wrong, "--print-config"])
        assert message in capsys.readouterr().err


def test_loops_that_personalizer_cannot_use_are_told_at_the_start_and_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = PersonalizerConfig(loop="home", apprentice=("homes",))
    config = config_of(tmp_path, personalizer=asked)
    assert check(config) == 0
    store, loops = open_loops(config)
    store.close()
    assert [loop.name for loop in loops] == ["home"]
    for text in (caplog.text, capsys.readouterr().out):
        assert "personalizer names loop 'home', which has arms" in text
        assert "personalizer names loop 'homes', which is not there; did you mean 'home'?" in text


@pytest.mark.parametrize(("given", "epoch"), [("10k", 10_000), ("12h", timedelta(hours=12)), ("90s", timedelta(0, 90))])
def test_an_epoch_is_a_number_of_decisions_or_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, epoch: object
) -> None:
    assert main(["serve", *SHOP, "--epoch", given, "--print-config"]) == 0
    (tmp_path / "armlet.toml").write_text(capsys.readouterr().out)
    assert load(tmp_path / "armlet.toml", {}).loops[0].epoch == epoch
    with pytest.raises(SystemExit):
        main(["serve", *SHOP, "--epoch", "soon", "--print-config"])
    assert "invalid count: 'soon'" in capsys.readouterr().err


def test_more_connections_than_files_are_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "armlet", "serve", *SHOP, "--port", "0"]
    limited = f"ulimit -n 256; exec {' '.join(command)}"
    done = subprocess.run(["/bin/sh", "-c", limited], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "limits.connections is 2000, but this process may open 256 files; give at most 128" in done.stderr


def test_limits_of_a_config_are_those_of_its_connections(tmp_path: Path) -> None:
    with serving_here(config_of(tmp_path, limits=Limits(headers=100))) as server:
        assert ask(server.url, "GET", "/healthz", x_fill="y" * 200).status == 431
