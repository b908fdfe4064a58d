"""The process around the application: it listens at once, opens the store in a thread, serves, and drains at the end.

Until all loops are ready and their due windows are closed, /healthz is answered and all else is a 503. Asked to stop by
SIGTERM or SIGINT, it says so at /readyz, answers pending requests, and closes the store, which keeps snapshots.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import resource
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import uvicorn

from armlet.errors import ArmletError, InvalidValueError, StoreError, StoreFailedError
from armlet.service.app import Service, create_app
from armlet.service.config import Listen, LogConfig, ServerConfig
from armlet.service.guard import GuardedProtocol, error_parts, guarded
from armlet.service.page import ROUTES as PAGES
from armlet.service.problems import no_loop
from armlet.stores import Loop, Memory, Store, open_store
from armlet.stores.overview import Details, details
from armlet.stores.writer import stop_all

if TYPE_CHECKING:
    from armlet.stores.ledger import LedgerReader, LoopRecord

BACKLOG: Final = 1024  # connections that wait to be accepted
SPARE: Final = 128  # files besides connections
OPENING: Final = "armlet opens a store"
PATIENCE: Final = 5.0  # seconds for a thread to see that it should end
GRACE: Final = 3  # seconds for pending requests of pages at the end
SETTLE_EVERY: Final = 50  # ticks of a tenth of a second: windows of idle loops

T = TypeVar("T")

log = logging.getLogger("armlet.service")


def run(config: ServerConfig, on_ready: Callable[[str, Service], None]) -> None:
    """Serve until the process is asked to stop.

    Parameters
    ----------
    config
        What to serve, where, and to whom.
    on_ready
        Called with the address and the service as soon as requests are answered.
    """
    configure_logging(config.log)
    with listening(config.listen) as listener:
        raise_file_limit(config.limits.connections)
        server = Server(config, url_of(listener), on_ready)
        server.run(sockets=[listener])
    end_opening()
    if server.failure is not None:
        raise server.failure


# ---- the server


class Server(uvicorn.Server):
    """Uvicorn's, which opens a store meanwhile, watches over connections, and ends well when it is asked to stop."""

    def __init__(self, config: ServerConfig, url: str, on_ready: Callable[[str, Service], None]) -> None:
        super().__init__(_uvicorn_config(config))
        self._settings, self._url, self._on_ready = config, url, on_ready
        self._service: Service | None = None
        self._opening: asyncio.Task[None] | None = None
        self._settling: asyncio.Future[StoreFailedError | None] | None = None
        self._stop_at: float | None = None
        self.failure: BaseException | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and open the store."""
        await super().startup(sockets)
        log.info("listening at %s", self._url)
        self._opening = asyncio.create_task(self._open())

    async def _open(self) -> None:
        try:
            store, loops = await _in_daemon(partial(open_loops, self._settings))
        except Exception as error:  # else the server would be about to start for ever
            self.failure, self.should_exit = error, True
            return
        self._service = Service(
            store,
            keyring=self._settings.keyring,
            limits=self._settings.limits,
            loops=loops,
            phase="ready",
            personalizer=self._settings.personalizer,
        )
        if not self.should_exit:
            self.config.loaded_app = create_app(self._service)
            log.info("ready at %s, loops: %d", self._url, len(loops))
            await asyncio.to_thread(self._on_ready, self._url, self._service)

    async def on_tick(self, counter: int) -> bool:
        """Close the connections of those who are late; end as soon as everybody was told."""
        now = asyncio.get_running_loop().time()
        for connection in list(self.server_state.connections):
            if isinstance(connection, GuardedProtocol):
                connection.sweep(now)
        if counter % SETTLE_EVERY == 0:
            self._settle()
        if not await super().on_tick(counter):
            return False
        if self._stop_at is None:
            self._stop_at = now + (self._settings.limits.notice_seconds if self._service is not None else 0.0)
            self._drain()
        return now >= self._stop_at

    def _settle(self) -> None:
        """Close windows that are due, in a thread; end where only a new start can mend the store."""
        if self._settling is not None:
            if not self._settling.done():
                return
            self.failure = self.failure or self._settling.result()
            self.should_exit = self.should_exit or self.failure is not None
        if self._service is not None:
            loop = asyncio.get_running_loop()
            self._settling = loop.run_in_executor(None, _settle, self._service.store)

    def _drain(self) -> None:
        log.info("stopping")
        if self._service is not None:
            self._service.phase = "draining"

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer pending requests, then close the store."""
        await super().shutdown(sockets)
        if self._opening is not None:
            await asyncio.wait([self._opening], timeout=self._settings.limits.drain_seconds)
            if not self._opening.done():  # what was written is kept, and the next start continues from it
                self._opening.cancel()
                log.warning("stopped while the store was being opened")
                return
        if self._settling is not None:
            await self._settling
        if self._service is not None:
            try:
                await asyncio.to_thread(_close, self._service)
            except StoreError as error:
                self.failure = self.failure or error
        log.info("stopped")

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop; asked a second time, at once."""
        if self.should_exit:
            self._stop_at = 0.0
            self.force_exit = sig == signal.SIGINT
        self.should_exit = True


class WatchService(Service):
    """Pages of a store that another process may have open: it reads the ledger, and neither writes nor locks."""

    def __init__(self, ledger: LedgerReader) -> None:
        super().__init__(Store(Memory()))  # which no page touches
        self._ledger = ledger

    async def names(self) -> Sequence[str]:
        """Return the names of all loops, the oldest first."""
        return [record.name for record in await self.ask(self._ledger.loops)]

    async def details(self, name: str) -> Details:
        """Return what there is to see of a loop; rows since its snapshot are played again."""
        return await self.ask(self._details, name)

    def _details(self, name: str) -> Details:
        with self._ledger.view() as view:
            return details(view, _record(view.loops(), name), time.time_ns() // 1000)

    async def version(self, name: str) -> str:
        """Return a short text that is another one if the loop has changed."""
        head = await self.ask(lambda: self._ledger.head(_record(self._ledger.loops(), name).id))
        if head is None:
            raise no_loop(name)
        return f"{head.seq}.{head.epoch}"

    def close(self) -> None:
        """End its threads."""
        super().close()
        self.store.close()


def _record(records: Sequence[LoopRecord], name: str) -> LoopRecord:
    for record in records:
        if record.name == name:
            return record
    raise no_loop(name)


class WatchServer(uvicorn.Server):
    """Uvicorn's, of pages alone."""

    def __init__(self, service: Service) -> None:
        self._service = service
        super().__init__(
            uvicorn.Config(
                create_app(service, PAGES),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE,
            )
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop: streams end first, since browsers would keep them open."""
        self._service.phase = "draining"
        super().handle_exit(sig, frame)


def watch(ledger: LedgerReader, listener: socket.socket) -> None:
    """Serve the pages of a ledger until the process is asked to stop, by SIGTERM or SIGINT."""
    service = WatchService(ledger)
    server = WatchServer(service)
    # uvicorn raises the signal again when it has ended, which would make an error of it
    before = {sig: signal.signal(sig, lambda *_: None) for sig in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listener])
    finally:
        for sig, handler in before.items():
            signal.signal(sig, handler)
        service.close()


def _uvicorn_config(config: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        starting,
        http=guarded(config.limits),
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=config.log.access,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=math.ceil(config.limits.drain_seconds),
    )


async def starting(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001
    """Answer while the store is being opened; the connection is closed, so that the next request finds more."""
    if scope["path"] == "/healthz":
        status, body = HTTPStatus.OK, b'{"status":"ok"}'
        length = str(len(body)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length), (b"connection", b"close")]
    else:
        status = HTTPStatus.SERVICE_UNAVAILABLE
        headers, body = error_parts(status, "the loops are being opened; try again")
    await send({"type": "http.response.start", "status": status.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _in_daemon(call: Callable[[], T]) -> T:
    """Run something in a thread that does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: object) -> None:
        if not future.done():
            set_it(value)

    def run() -> None:
        try:
            outcome = partial(settle, future.set_result, call())
        except BaseException as error:
            outcome = partial(settle, future.set_exception, error)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(outcome)

    threading.Thread(target=run, name=OPENING, daemon=True).start()
    return await future


def end_opening() -> None:
    """Break off what is still being opened: the interpreter cannot free what a thread holds."""
    for thread in threading.enumerate():
        if thread.name == OPENING:
            stop_all()  # of the process, which is about to end
            thread.join(PATIENCE)


# ---- the store


def open_loops(config: ServerConfig) -> tuple[Store, list[Loop]]:
    """Open the store and all of its loops, make those that are missing, and close the windows that are due."""
    store = open_store(config.store, deadline=config.limits.deadline, queue=config.limits.queue)
    try:
        loops = [store.open(each.spec) for each in config.loops]
        known = {loop.name for loop in loops}
        loops += [found for name in store.loops if name not in known and (found := _go_on(store, name)) is not None]
        store.settle()
    except BaseException:
        store.close()
        raise
    for text in config.personalizer.faults({loop.name: loop.action_reader is not None for loop in loops}):
        log.warning("%s", text)
    return store, loops


def _go_on(store: Store, name: str) -> Loop | None:
    """Open a loop that the settings do not name; one whose policy is not known here must not stop the others."""
    try:
        return store.loop(name)
    except ArmletError as error:
        log.warning("loop %r is not served: %s", name, error)
        return None


def _settle(store: Store) -> StoreFailedError | None:
    """Close windows that are due; return why the store must be opened again, if it must."""
    try:
        store.settle()
    except StoreError as error:
        log.warning("windows could not be closed: %s", error)
        return next((each for each in (error, error.__cause__) if isinstance(each, StoreFailedError)), None)
    return None


def _close(service: Service) -> None:
    service.close()
    service.store.close()


# ---- where it listens


@contextmanager
def listening(listen: Listen) -> Iterator[socket.socket]:
    """Bind a socket at an address or a path; a path is gone at the end."""
    path = None if listen.socket is None else Path(listen.socket)
    with _bind(listen) if path is None else _bind_path(path) as bound:
        try:
            yield bound
        finally:
            if path is not None:
                path.unlink(missing_ok=True)


def _bind(listen: Listen) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:  # whose text says twice what is said here, but for names that lead nowhere
        why = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise OSError(f"cannot listen at {listen.host} port {listen.port}: {why}; choose another") from None


def _bind_path(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.exists() and stat.S_ISSOCK(path.stat().st_mode):
            with suppress(ConnectionRefusedError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
                other.connect(str(path))
                raise FileExistsError(0, "another process listens there")
            path.unlink()  # of a process that was killed
        bound.bind(str(path))
        path.chmod(0o660)  # a proxy of the same group may connect
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise OSError(f"cannot listen at {path}: {error.strerror or error}; choose another") from None
    return bound


def url_of(listener: socket.socket) -> str:
    """Return the address at which a socket can be reached from this machine.

    Examples
    --------
    >>> with socket.create_server(("127.0.0.1", 0)) as listener:
    ...     url_of(listener).rpartition(":")[0]
    'http://127.0.0.1'
    """
    if listener.family == socket.AF_UNIX:
        return f"unix:{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def raise_file_limit(connections: int) -> None:
    """Let the process open a file for each connection, or refuse: else it would take fewer, without a word."""
    wanted = connections + SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            raise InvalidValueError(
                f"limits.connections is {connections}, but this process may open {hard} files; "
                f"give at most {hard - SPARE}, or raise the limit (ulimit -n {wanted})"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# ---- what it writes


class JSONFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        fields: dict[str, object] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__  # what it says may hold a context
        return json.dumps(fields, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """Plain lines, for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatException(self, ei: Any) -> str:
        """Return the kind of an error; what it says may hold a context."""
        return f"  {ei[0].__name__}"


def configure_logging(config: LogConfig) -> None:
    """Write what Armlet, uvicorn and Python say to standard error."""
    logging.captureWarnings(True)  # a store warns of clocks
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JSONFormatter() if config.format == "json" else TextFormatter())
    levels: Mapping[str, str] = {
        "armlet": config.level.upper(),
        "asyncio": "ERROR",
        "py.warnings": "WARNING",
        "uvicorn.error": "ERROR",
        "uvicorn.access": "INFO" if config.access else "ERROR",
    }
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
