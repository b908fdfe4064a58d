"""Pages through the application: who may see them, logging in, files, streams, and a store that is only watched."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import armlet
from armlet.errors import StoreError
from armlet.service import page
from armlet.service.app import Service, create_app
from armlet.service.config import Limits
from armlet.service.http import Message
from armlet.service.keys import Grant, Keyring, Scope, digest
from armlet.service.page import RETRY, Streams
from armlet.service.page.html import POLICY, SCRIPT, STYLE
from armlet.stores import Memory, Store
from armlet.stores.overview import Details
from support.service.calls import Caller
from support.service.pages import make_loop, play, read

FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(Memory()) as store:
        play(make_loop(store), 40)
        make_loop(store, "other / loop")
        yield store


def key(name: str, *scopes: Scope, loops: frozenset[str] | None = None) -> tuple[bytes, Grant]:
    return digest(name), Grant(name=name, scopes=frozenset(scopes), loops=loops)


KEYS = dict(
    [
        key("reader", "read"),
        key("boss", "read", "admin"),
        key("guest", "read", loops=frozenset({"home"})),
        key("web", "decide"),
    ]
)


@pytest.fixture
def service(store: Store) -> Iterator[Service]:
    service = Service(store, keyring=Keyring(KEYS), limits=Limits(streams=2))
    service.streams.period = service.streams.age = 0.01
    yield service
    service.close()


def cookie(name: str) -> dict[str, str]:
    return {"cookie": f"armlet_key={name}"}


# ---- who sees what


def test_a_page_is_shown_to_a_key_that_may_read(caller: Caller) -> None:
    answer = caller.get("/loops/home", cookie("reader"))
    seen = read(answer.text)
    assert answer.status == 200
    assert "40 decisions" in seen.parts["title"]
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert caller.get("/loops/home", {"authorization": "Bearer reader"}).status == 200


def test_only_admins_see_events_and_contexts(caller: Caller) -> None:
    assert "secret-event" not in caller.get("/loops/home", cookie("reader")).text
    assert "secret-event" in caller.get("/loops/home", cookie("boss")).text


def test_whoever_has_no_key_is_asked_for_one(caller: Caller) -> None:
    for headers in ({}, cookie("stranger")):
        answer = caller.get("/loops/other%20%2F%20loop", headers)
        assert (answer.status, answer.body) == (303, b"")
        assert answer.headers["location"] == "/login?next=%2Floops%2Fother%2520%252F%2520loop"
    assert caller.get("/").headers["location"] == "/loops"
    assert caller.get("/loops").headers["location"] == "/login?next=%2Floops"
    assert caller.get("/loops/home/stream").status == 401


def test_a_key_sees_its_own_loops_only(caller: Caller) -> None:
    listed = caller.get("/loops", cookie("guest")).text
    assert "1 loop" in listed
    assert "other / loop" not in listed
    assert 'href="/loops/other%20%2F%20loop"' in caller.get("/loops", cookie("reader")).text
    for path, name, status in [
        ("/loops/other%20%2F%20loop", "guest", 403),
        ("/loops/home", "web", 403),
        ("/loops/nothing", "reader", 404),
    ]:
        answer = caller.get(path, cookie(name))
        assert answer.status == status
        assert answer.headers["content-security-policy"] == POLICY
        assert read(answer.text).tags["h2"] == 1


def test_of_many_loops_most_are_only_named(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "LISTED", 1)
    seen = read(caller.get("/loops", cookie("reader")).text)
    assert "2 loops" in seen.text
    assert "And 1 more: other / loop" in seen.parts["loops"]


def test_a_loop_that_cannot_be_shown_does_not_hide_the_others(service: Service, caller: Caller, store: Store) -> None:
    def fail() -> Details:
        raise StoreError("the tally of the loop is damaged; go back to a backup")

    loop = service.loops["home"] = store.loop("home")
    loop.details = fail  # type: ignore[method-assign]
    seen = read(caller.get("/loops", cookie("reader")).text)
    assert "And 1 more: home" in seen.parts["loops"]
    assert "other / loop" in seen.parts["loops"]
    assert caller.get("/loops/home", cookie("reader")).status == 503


def test_a_cookie_cannot_change_anything(caller: Caller, store: Store) -> None:
    before = store.loop("home").version()
    for path, value in [("/v1/loops/home/arms", {"arm": "x", "action": "add"}), ("/v1/loops/home/decide", {})]:
        assert caller.post(path, value, cookie("boss")).status == 401
    assert store.loop("home").version() == before


# ---- logging in and out


def log_in(caller: Caller, headers: dict[str, str] | None = None, **fields: str) -> Any:
    return caller.send("POST", "/login", urlencode(fields).encode(), {**FORM, **(headers or {})})


def test_a_key_is_kept_in_a_cookie_for_pages_alone(caller: Caller) -> None:
    answer = log_in(caller, key="reader", next="/loops/home")
    assert (answer.status, answer.headers["location"]) == (303, "/loops/home")
    assert answer.headers["set-cookie"] == "armlet_key=reader; HttpOnly; Path=/loops; SameSite=Strict"
    secure = log_in(caller, {"x-forwarded-proto": "https"}, key="reader", next="")
    assert "; Secure" in secure.headers["set-cookie"]
    assert secure.headers["location"] == "/loops"


def test_a_wrong_key_is_refused_without_being_repeated(caller: Caller) -> None:
    for wrong in ("guess-7391", "", "schlüssel-7391", "x" * 3000):
        answer = log_in(caller, key=wrong, next="/loops/home")
        assert answer.status == 401
        assert "set-cookie" not in answer.headers
        assert "7391" not in answer.text
        assert 'value="/loops/home"' in answer.text
    assert log_in(caller, key="x" * 5000).status == 413


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/loops\\@evil", "/loops/../login", "/loops/a\r\nx: y", "/v1"]
)
def test_logging_in_leads_to_a_page_of_this_server(caller: Caller, target: str) -> None:
    assert log_in(caller, key="reader", next=target).headers["location"] == "/loops"
    page = caller.get("/login?" + urlencode({"next": target}))
    assert 'name="next" type="hidden" value="/loops"' in page.text


def test_logging_out_deletes_the_cookie(caller: Caller) -> None:
    answer = caller.send("POST", "/logout", b"", {**FORM, **cookie("reader")})
    assert (answer.status, answer.headers["location"]) == (303, "/login")
    assert answer.headers["set-cookie"].startswith('armlet_key=""; HttpOnly; Max-Age=0; Path=/loops')
    assert 'action="/logout"' in caller.get("/loops", cookie("reader")).text


def test_without_keys_pages_are_open_on_this_machine_and_nowhere_else(store: Store) -> None:
    service = Service(store)
    with Caller(create_app(service)) as caller:
        assert caller.get("/loops/home").status == 200
        assert "Log out" not in caller.get("/loops").text
        for headers in ({"host": "rebound.example"}, {"x-forwarded-for": "192.0.2.1"}):
            assert caller.get("/loops/home", headers).status == 303
    service.close()


# ---- files


def test_files_are_kept_forever_and_need_no_key(caller: Caller) -> None:
    for asset in (STYLE, SCRIPT):
        answer = caller.get(asset.url)
        assert (answer.status, answer.body) == (200, asset.body)
        assert answer.headers["content-type"] == asset.media_type
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    for name in ("page.css", "page.0000000000000000.css", "..%2Fassets.py"):
        assert caller.get(f"/static/{name}").status == 404


def test_files_come_from_here_and_pages_have_no_inline_code(caller: Caller) -> None:
    for asset in (STYLE, SCRIPT):
        assert b"http:" not in asset.body
        assert b"https:" not in asset.body
    for path in ("/loops/home", "/loops", "/login"):
        seen = read(caller.get(path, cookie("boss")).text)
        assert not [at for _, at, _ in seen.attributes if at.startswith("on") or at == "style"]
        assert seen.tags["style"] == 0


# ---- streams


class Stream:
    """A browser that listens to a stream."""

    def __init__(self, service: Service, name: str = "home", key: str = "reader") -> None:
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self._gone = asyncio.Event()
        path = f"/loops/{name}/stream"
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(b"host", b"127.0.0.1"), (b"cookie", f"armlet_key={key}".encode())],
        }
        self.task = asyncio.ensure_future(create_app(service)(scope, self._receive, self.sent.put))

    async def _receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def next(self) -> Message:
        return await asyncio.wait_for(self.sent.get(), 30)

    async def start(self) -> bytes:
        """Return the first event."""
        assert (await self.next())["status"] == 200
        assert (await self.next())["body"] == RETRY
        body: bytes = (await self.next())["body"]
        return body

    async def leave(self) -> None:
        self._gone.set()
        await asyncio.wait_for(self.task, 30)


def version(store: Store) -> bytes:
    seq, epoch = store.loop("home").version()
    return f"event: version\ndata: {seq}.{epoch}\n\n".encode()


def test_a_stream_tells_the_version_at_once_and_again_when_it_has_changed(service: Service, store: Store) -> None:
    async def watch() -> None:
        stream = Stream(service)
        assert await stream.start() == version(store)
        await service.run(play, store.loop("home"), 20, first=40)
        changed = await stream.next()
        assert changed["body"].startswith(b"event: version\n")
        while changed["body"] != version(store):  # a look may fall between the decisions and their rewards
            changed = await stream.next()
        await stream.leave()

    asyncio.run(watch())


def test_nothing_is_sent_while_nothing_changes() -> None:
    looks = 0

    async def read_version() -> str:
        nonlocal looks
        looks += 1
        return "1.0"

    async def watch() -> list[bytes]:
        return [
            piece async for piece in Streams(1, period=0.001, age=0.0).events("home", read_version, lambda: looks >= 20)
        ]

    assert asyncio.run(watch()) == [RETRY, b"event: version\ndata: 1.0\n\n"]
    assert looks == 20


def test_all_who_watch_a_loop_share_a_look() -> None:
    looks = []

    async def read_version() -> str:
        looks.append(1)
        return "1.0"

    async def watch() -> None:
        streams = Streams(50, period=3600.0, age=3600.0)
        watching = [streams.events("home", read_version, lambda: False) for _ in range(50)]
        for each in watching:
            assert await anext(each) == RETRY
            assert (await anext(each)).startswith(b"event")
        assert streams.is_full
        for each in watching:
            await each.aclose()
        assert streams.open == 0

    asyncio.run(watch())
    assert len(looks) == 1


def test_pages_that_refresh_at_once_share_what_they_show(service: Service, caller: Caller, store: Store) -> None:
    read_details = store.loop("home").details
    calls = []
    loop = store.loop("home")
    loop.details = lambda: calls.append(1) or read_details()  # type: ignore[method-assign, func-returns-value]
    service.loops["home"] = loop
    service.streams.age = 3600.0
    refreshing = {**cookie("reader"), "armlet-refresh": "1"}
    first = caller.get("/loops/home", refreshing).text
    play(loop, 20, first=40)
    for _ in range(5):
        assert read(caller.get("/loops/home", refreshing).text).parts["title"] == read(first).parts["title"]
    assert len(calls) == 1
    assert "secret-event" in caller.get("/loops/home", {**refreshing, **cookie("boss")}).text
    assert "secret-event" not in caller.get("/loops/home", refreshing).text
    assert "60 decisions" in caller.get("/loops/home", cookie("reader")).text.replace(
        "</strong>", ""
    )  # if loaded again


def test_streams_are_bounded_and_their_places_are_given_back(service: Service) -> None:
    async def watch() -> None:
        first, second = Stream(service), Stream(service)
        await first.start()
        await second.start()
        assert (await Stream(service).next())["status"] == 503
        await first.leave()
        third = Stream(service)
        assert (await third.start()).startswith(b"event")
        for each in (second, third):
            await each.leave()
        assert service.streams.open == 0

    asyncio.run(watch())


@pytest.mark.parametrize("end", ["drained", "deleted"])
def test_a_stream_ends_when_the_server_drains_or_the_loop_is_gone(service: Service, store: Store, end: str) -> None:
    async def watch() -> None:
        stream = Stream(service)
        await stream.start()
        if end == "drained":
            service.phase = "draining"
        else:
            await service.run(store.delete, "home")
        await asyncio.wait_for(stream.task, 30)
        assert service.streams.open == 0

    asyncio.run(watch())


def test_a_stream_of_no_loop_is_refused(caller: Caller) -> None:
    answer = caller.get("/loops/nothing/stream", cookie("reader"))
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


# ---- armlet watch


def test_watch_shows_a_store_next_to_the_process_that_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with armlet.open_store(path) as store:
        loop = make_loop(store)
        play(loop, 40)
        with subprocess.Popen(
            [sys.executable, "-m", "armlet", "watch", str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "page:\n"
            url = process.stdout.readline().strip()
            assert url.endswith("/loops/home")
            assert "40 decisions" in read(fetch(url)).parts["title"]
            play(loop, 20, first=40)  # nothing is locked
            seen = read(fetch(url))
            assert "60 decisions" in seen.parts["title"]
            assert "secret-event-59" in seen.parts["last"]
            assert "1 loop" in fetch(url.removesuffix("/home"))
            with urllib.request.urlopen(f"{url}/stream", timeout=30) as stream:
                assert stream.readline() == b"retry: 3000\n"
                process.send_signal(signal.SIGTERM)  # with a page open
                process.wait(30)
            assert (process.returncode, process.stderr and process.stderr.read()) == (0, "")


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        body: bytes = answer.read()
    return body.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["missing.db"], 1, "missing.db"),
        (["shop.db", "hom"], 2, "did you mean 'home'"),
        (["shop.db", "--port", "99999"], 2, "--port is 99999"),
    ],
)
def test_watch_refuses_what_it_cannot_show(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    from armlet.cli import main

    monkeypatch.chdir(tmp_path)
    with armlet.open_store("shop.db") as store:
        make_loop(store)
    with pytest.raises(SystemExit) as ended:
        main(["watch", *arguments])
    assert ended.value.code == code
    assert words in capsys.readouterr().err
    assert not (tmp_path / "missing.db").exists()
