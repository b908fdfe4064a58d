"""Limits on connections, with real sockets. Limits are small so that tests are quick; nothing depends on how long."""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from armlet.service.config import Limits, Listen, LoopConfig, ServerConfig
from armlet.service.guard import PIPELINED
from support.service.servers import PATIENCE, ServerThread, ask, serving_here

JSON = {"content-type": "application/json"}
GET = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
# a client that stalls for two seconds between two lines of a test would be late
QUICK = Limits(header_seconds=2.0, idle_seconds=0.3, write_seconds=0.3, body_seconds=0.3)
LASTING = Limits(batch_body=64 * 1024)  # nobody is late


@contextlib.contextmanager
def server_with(tmp_path: Path, limits: Limits) -> Iterator[ServerThread]:
    home = LoopConfig(name="home", arms=("sale", "new"), features=("age",), seed=1)
    config = ServerConfig(store=str(tmp_path / "shop.db"), listen=Listen(port=0), limits=limits, loops=(home,))
    with serving_here(config) as server:
        yield server


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[ServerThread]:
    with server_with(tmp_path, QUICK) as server:
        yield server


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[ServerThread]:
    with server_with(tmp_path, LASTING) as server:
        yield server


def connect(server: ServerThread, receive_buffer: int | None = None) -> socket.socket:
    place = urlsplit(server.url)
    found = socket.socket()
    if receive_buffer is not None:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    found.settimeout(PATIENCE)
    found.connect((place.hostname, place.port))
    return found


def read_to_the_end(connection: socket.socket) -> bytes:
    found = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            found += part
    return bytes(found)


def send_until_refused(connection: socket.socket, part: bytes, most: int) -> int:
    """Send the same again and again until there is an answer, or an end; return how many bytes were taken."""
    sent = 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while sent < most and not select.select([connection], [], [], 0)[0]:
            connection.sendall(part)
            sent += len(part)
    return sent


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


# ---- headers


def test_half_open_connections_are_closed_while_others_are_served(quick: ServerThread) -> None:
    with contextlib.ExitStack() as stack:
        held = []
        for i in range(300):
            held.append(stack.enter_context(connect(quick)))
            if i % 2:
                held[-1].sendall(GET[:20])
        answer = ask(quick.url, "POST", "/v1/loops/home/decide", {"context": {"age": 1.0}})
        assert answer.status == 200
        answers = [read_to_the_end(each) for each in held]
    assert {status(answer) for answer in answers[1::2]} == {408}
    assert set(answers[::2]) == {b""}  # nothing was asked, so nothing is answered


def test_headers_in_drops_are_late_though_each_drop_is_in_time(quick: ServerThread) -> None:
    with connect(quick) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        drop = threading.Event()
        answer = bytearray()

        def listen() -> None:
            answer.extend(read_to_the_end(connection))
            drop.set()

        reader = threading.Thread(target=listen)
        reader.start()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while not drop.wait(0.02):
                connection.sendall(b"x")
        reader.join()
    assert status(bytes(answer)) == 408


@pytest.mark.parametrize("line", [b"a: b\r\n", b"x" * 1000])  # many headers, and one that never ends
def test_eight_megabytes_of_headers_are_cut(lasting: ServerThread, line: bytes) -> None:
    with connect(lasting) as connection:
        connection.sendall(GET[:-2])
        send_until_refused(connection, line * 100, 8 << 20)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        assert status(read_to_the_end(connection)) == 431
    assert ask(lasting.url, "GET", "/healthz").status == 200


@pytest.mark.parametrize(("size", "expected"), [(-200, 200), (200, 431)])
def test_headers_in_one_piece_are_counted_to_the_byte(lasting: ServerThread, size: int, expected: int) -> None:
    with connect(lasting) as connection:
        fill = b"x-fill: " + b"y" * (LASTING.headers + size) + b"\r\n"
        connection.sendall(GET[:-2] + fill + b"connection: close\r\n\r\n")
        assert status(read_to_the_end(connection)) == expected


def test_a_long_address_counts_as_headers(lasting: ServerThread) -> None:
    with connect(lasting) as connection:
        connection.sendall(b"GET /" + b"a" * LASTING.headers + b" HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert status(read_to_the_end(connection)) == 431


# ---- bodies

POST = b"POST /v1/loops/home/decide HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"


def test_endless_chunks_are_cut(lasting: ServerThread) -> None:
    with connect(lasting) as connection:
        connection.sendall(CHUNKED)
        send_until_refused(connection, b"1000\r\n" + b" " * 4096 + b"\r\n", 1 << 26)
        assert status(read_to_the_end(connection)) == 413


@pytest.mark.parametrize(
    ("start", "endless"),
    [(b"0\r\n", b"x: y\r\n"), (b"0\r\n", b"x" * 100), (b"1;", b"x" * 100), (b"", b"1;a=b\r\nx\r\n")],
    ids=["trailers", "a trailer", "an extension", "extensions"],
)
def test_endless_frames_of_chunks_are_cut(lasting: ServerThread, start: bytes, endless: bytes) -> None:
    with connect(lasting) as connection:
        connection.sendall(CHUNKED + start)
        sent = send_until_refused(connection, endless * 100, 1 << 26)
    assert sent < 1 << 26


def test_trailers_are_not_taken_for_headers(lasting: ServerThread) -> None:
    async def tell(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["more_body"]:
            pass
        names = b" ".join(name for name, _ in scope["headers"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": names})

    lasting.server.config.loaded_app = tell
    with connect(lasting) as connection:
        connection.sendall(CHUNKED + b"1\r\n1\r\n0\r\nauthorization: Bearer x\r\n\r\n")
        answer = read_to_the_end(connection)
    assert b"transfer-encoding" in answer
    assert b"authorization" not in answer


def test_a_slow_body_is_late(quick: ServerThread) -> None:
    with connect(quick) as connection:
        connection.sendall(POST + b'content-length: 1000\r\n\r\n{"context"')
        assert status(read_to_the_end(connection)) == 408


def test_who_sends_too_much_still_reads_the_answer(lasting: ServerThread) -> None:
    size = 4 << 20
    with connect(lasting) as connection:
        connection.sendall(POST + f"content-length: {size}\r\n\r\n".encode())
        connection.sendall(b" " * size)  # after the answer was written
        assert status(read_to_the_end(connection)) == 413


# ---- several requests


def test_pipelined_requests_are_answered_in_order(lasting: ServerThread) -> None:
    last = GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    with connect(lasting) as connection:
        connection.sendall((GET + GET.replace(b"healthz", b"nothing")) * 10 + last)
        answers = read_to_the_end(connection)
    assert [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]] == [200, 404] * 10 + [200]


def test_too_many_pipelined_requests_end_the_connection(lasting: ServerThread) -> None:
    with connect(lasting) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(GET * 100 * PIPELINED)
        assert read_to_the_end(connection).count(b"HTTP/1.1 200") < 100 * PIPELINED
    assert ask(lasting.url, "GET", "/healthz").status == 200


def test_an_idle_connection_is_closed(quick: ServerThread) -> None:
    with connect(quick) as connection:
        connection.sendall(GET)
        assert status(read_to_the_end(connection)) == 200  # and its end was read, without a request for it


def test_connections_beyond_the_limit_are_refused_until_one_has_ended(tmp_path: Path) -> None:
    with server_with(tmp_path, Limits(connections=5)) as server, contextlib.ExitStack() as stack:
        held = [stack.enter_context(connect(server)) for _ in range(5)]
        for each in held:
            each.sendall(GET)
            assert status(each.recv(1 << 16)) == 200
        with connect(server) as connection:
            answer = read_to_the_end(connection)
        assert status(answer) == 503
        assert b"retry-after: 1" in answer
        held[0].sendall(GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        assert status(read_to_the_end(held[0])) == 200
        assert ask(server.url, "GET", "/healthz").status == 200


@pytest.mark.parametrize("junk", [b"\x16\x03\x01\x02", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nbad header\r\n\r\n"])
def test_what_is_not_http_is_refused(lasting: ServerThread, junk: bytes) -> None:
    with connect(lasting) as connection:
        connection.sendall(junk)
        answer = read_to_the_end(connection)
    assert status(answer) == 400
    assert b"application/problem+json" in answer


@pytest.mark.parametrize(
    "headers",
    [
        b"content-length: 1\r\ntransfer-encoding: chunked\r\n",
        b"content-length: 1\r\ncontent-length: 2\r\n",
        b"content-length: +1\r\n",
        b"transfer-encoding: chunked, identity\r\n",
        b"x: y\nz: a\r\n",
        b"x\x00: y\r\n",
    ],
)
def test_a_request_that_two_servers_could_read_differently_is_refused(lasting: ServerThread, headers: bytes) -> None:
    with connect(lasting) as connection:
        connection.sendall(POST + headers + b"\r\n0\r\n\r\n")
        assert status(read_to_the_end(connection)) == 400


def test_a_wish_for_another_protocol_is_answered_in_this_one(lasting: ServerThread) -> None:
    with connect(lasting) as connection:
        connection.sendall(GET[:-2] + b"connection: upgrade, close\r\nupgrade: websocket\r\n\r\n")
        assert status(connection.recv(1 << 16)) == 200


def test_answers_say_nothing_of_the_server(lasting: ServerThread) -> None:
    assert not {"server", "date", "x-powered-by"} & ask(lasting.url, "GET", "/healthz").headers.keys()


# ---- a client that does not read


def test_a_client_that_does_not_read_holds_little_memory_and_is_cut_off(quick: ServerThread) -> None:
    written, ended = [0], threading.Event()

    async def endless(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(64):
            await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})
            written[0] += 1
        ended.set()

    quick.server.config.loaded_app = endless
    with connect(quick, receive_buffer=4096) as connection:
        connection.sendall(GET)
        assert ended.wait(PATIENCE)  # it goes on as soon as nobody is there to read
        answer = read_to_the_end(connection)
    assert written[0] == 64
    assert len(answer) < 32 << 20  # the kernel's buffers and one part; the rest was never kept


# ---- bodies that no route reads


@pytest.mark.parametrize("size", [1, 1000, 60_000, 256 * 1024, 300_000])
@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [("POST", "/v1/nothing", 404), ("PUT", "/v1/loops/home/decide", 405), ("GET", "/healthz", 200)],
)
def test_unread_body_leaves_the_connection_open_or_said_closed(
    lasting: ServerThread, method: str, path: str, expected: int, size: int
) -> None:
    place = urlsplit(lasting.url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE)
    for body in (b"x" * size, iter([b"x" * size])):  # with a length, and in chunks
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == expected
        is_closed = answer.getheader("connection") == "close"
        assert size > LASTING.body or not is_closed
        connection.auto_open = is_closed  # otherwise the next request is sent on the same one
        connection.request("POST", "/v1/loops/home/decide", b'{"context": {"age": 1.0}}', JSON)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    connection.close()


def test_body_that_waits_to_be_asked_for_is_not_read(lasting: ServerThread) -> None:
    with connect(lasting) as connection:
        head = b"POST /v1/nothing HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n"
        connection.sendall(head)
        answer = read_to_the_end(connection)
    assert status(answer) == 404
    assert b"connection: close" in answer.lower()
