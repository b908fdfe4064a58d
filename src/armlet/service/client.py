"""A client of `armlet serve`, synchronous and asynchronous, whose calls are safe to repeat, and are repeated.

Every decision gets an event and every reward a name before it is first sent, so that an attempt finds what the one
before has left. Both clients run the same steps, which say what to send and how long to wait, and know nothing of
sockets. Needs httpx2 and msgspec (`pip install 'armlet[client]'`), not the packages of the server.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias, TypeVar, Unpack
from urllib.parse import quote
from uuid import UUID

from armlet.errors import InvalidTypeError, InvalidValueError, ServiceError, require_package
from armlet.inputs.ask import ACTIONS, MANY, OPTIONS, REPORT, Ask, AskMany, Report, read, read_many, read_report
from armlet.inputs.options import with_options
from armlet.types import Arm

require_package("httpx2", "a client needs")
require_package("msgspec", "a client needs")

import httpx2  # noqa: E402 (after the words that say how to install it)
import msgspec  # noqa: E402

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Context: TypeAlias = "Mapping[str, object] | ArrayLike"
Actions: TypeAlias = "Mapping[str, Mapping[str, object] | ArrayLike] | str"
"""Features by action, or the name of a table that was prepared."""
T = TypeVar("T")

CONNECTIONS: Final = 32  # of one client; calls beyond wait for their turn. httpx2 looks at all of them at every call
LIMITS: Final = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
FIRST_PAUSE: Final = 0.05  # seconds, doubled by every attempt
LONGEST_PAUSE: Final = 2.0
REPEATED: Final = (502, 503, 504)  # the two others are a proxy's, which does not know what the server has done
AGAIN: Final = ("unavailable", "outcome_unknown")
UNKNOWN: Final = "urn:armlet:problem:outcome-unknown"
UNAVAILABLE: Final = "urn:armlet:problem:unavailable"
NOT_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
FAULTS: Final = {
    "refused": (422, "urn:armlet:problem:invalid"),
    "no_loop": (404, "urn:armlet:problem:not-found"),
    "forbidden": (403, "urn:armlet:problem:forbidden"),
    "unavailable": (503, UNAVAILABLE),
    "outcome_unknown": (503, UNKNOWN),
    "failed": (500, "urn:armlet:problem:internal"),
}
"""Why a reward was not recorded: the status and problem that a request of its own would have."""


@dataclass(frozen=True, slots=True)
class Probability:
    """How likely an arm or an action was."""

    arm: Arm
    probability: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A decision, which is durable. `propensity` and `explored` are None if the key was made without them.

    So are the epoch of a unit, the weights of outcomes and the probabilities of all arms, of decisions that were asked
    with a unit, weights or probabilities.
    """

    event: str
    arm: Arm
    propensity: float | None = None
    explored: bool | None = None
    probabilities: Sequence[Probability] | None = None
    unit: str | None = None
    epoch: int | None = None
    weights: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of a reward; `detail` says why it was refused."""

    status: str
    detail: str | None = None


class _Problem(msgspec.Struct):
    type: str = "about:blank"
    detail: str = ""
    field: str | None = None


class Post(NamedTuple):
    """What to send, and how many seconds that may take."""

    path: str
    body: bytes
    seconds: float
    method: str = "POST"


Failed: TypeAlias = httpx2.RequestError
Steps: TypeAlias = Generator[Post | float, httpx2.Response | Failed | None, T]
"""Yields what to send, and is given the answer or what failed; or seconds to wait."""


def new_event() -> str:
    """Return a new name for a decision: a UUID of version 7. They grow with time, which keeps the store's index small.

    Examples
    --------
    >>> len(new_event()), new_event()[14]
    (36, '7')
    """
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = (rest << 12) // 1_000_000  # the clock continues in the bits that RFC 9562 leaves free
    return str(UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | secrets.randbits(62)))


# ---- what both clients do


class _Calls:
    def __init__(self, url: str, key: str | None, timeout: float) -> None:
        if not 0 < timeout < float("inf"):
            raise InvalidValueError(f"timeout is {timeout!r}; give seconds, such as 10.0")
        if not url.startswith(("http://", "https://")):
            raise InvalidValueError(f"url is {url!r}; give one such as 'http://127.0.0.1:8080'")
        self._url, self._timeout = url, timeout
        self._headers = {"content-type": "application/json"}
        if key is not None:
            self._headers["authorization"] = f"Bearer {key}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._url!r})"  # without the key

    def _decide(self, loop: str, context: Context, actions: Actions | None, ask: Ask) -> Steps[Answer]:
        options = read(ask, has_actions=actions is not None)
        body = {"context": context, "event": new_event(), **options, **_among(actions)}
        answer = yield from self._post(f"/v1/loops/{quote(loop, safe='')}/decide", body, self._end())
        return _decode(answer, Answer)

    def _decide_many(
        self, loop: str, contexts: Iterable[Context], actions: Actions | None, ask: AskMany
    ) -> Steps[list[Answer]]:
        asks, rows = read_many(ask, has_actions=actions is not None), list(contexts)
        own = asks._replace(shared={}).of(len(rows))
        items = [{"context": row, "event": new_event(), **each} for row, each in zip(rows, own, strict=True)]
        body = {"items": items, **asks.shared, **_among(actions)}
        answer = yield from self._post(f"/v1/loops/{quote(loop, safe='')}/decide/batch", body, self._end())
        return _decode(answer, dict[str, list[Answer]])["items"]

    def _prepare(self, loop: str, table: str, actions: Mapping[str, object]) -> Steps[None]:
        path = f"/v1/loops/{quote(loop, safe='')}/actions/{quote(table, safe='')}"
        yield from self._post(path, {"actions": actions}, self._end(), "PUT")

    def _remove_table(self, loop: str, table: str) -> Steps[None]:
        path = f"/v1/loops/{quote(loop, safe='')}/actions/{quote(table, safe='')}"
        yield from self._post(path, None, self._end(), "DELETE")

    def _activate(self, loop: str, event: str) -> Steps[bool]:
        answer = yield from self._post(f"/v1/loops/{quote(loop, safe='')}/activate", {"event": event}, self._end())
        return _decode(answer, dict[str, bool])["activated"]

    def _bill(self, loop: str, event: str, cost: float) -> Steps[bool]:
        body = {"event": event, "cost": cost}
        answer = yield from self._post(f"/v1/loops/{quote(loop, safe='')}/bill", body, self._end())
        return _decode(answer, dict[str, bool])["billed"]

    def _reward(self, item: Mapping[str, object]) -> Steps[str]:
        [judgement] = yield from self._rewards([item])
        if judgement.status in FAULTS:
            status, kind = FAULTS[judgement.status]
            detail = judgement.detail or f"the reward for loop {item['loop']!r} is {judgement.status}"
            raise ServiceError(detail, status=status, type=kind)
        return judgement.status

    def _rewards(self, items: Iterable[Mapping[str, object]]) -> Steps[list[Judgement]]:
        """Send rewards; those whose loop could not write are sent again alone."""
        batch = [item if item.get("name") is not None else {**item, "name": secrets.token_urlsafe(8)} for item in items]
        judged: dict[int, Judgement] = {}
        end, left = self._end(), list(range(len(batch)))
        for attempt in count():
            try:
                answer = yield from self._post("/v1/rewards", {"items": [batch[at] for at in left]}, end)
            except ServiceError as error:
                if not judged:
                    raise
                judged.update((at, Judgement(_word(error))) for at in left)  # of the others it is known
                break
            judged.update(zip(left, _decode(answer, dict[str, list[Judgement]])["items"], strict=True))
            left = [at for at in left if judged[at].status in AGAIN]
            pause = _pause(attempt)
            if not left or time.monotonic() + pause >= end:
                break
            yield pause
        return [judged[at] for at in range(len(batch))]

    def _end(self) -> float:
        return time.monotonic() + self._timeout

    def _post(self, path: str, content: object, end: float, method: str = "POST") -> Steps[bytes]:
        """Send until there is an answer that is final, or until there is no time for another attempt."""
        body, is_unknown = b"" if content is None else _encode(content), False
        for attempt in count():
            left = end - time.monotonic()
            answer = yield Post(path, body, left / 2 if left > 2 else max(min(left, 1.0), 0.001), method)
            if isinstance(answer, httpx2.Response) and answer.status_code == 200:
                return answer.content
            error = _error(answer, self._url)
            is_unknown |= error.type == UNKNOWN
            pause = _pause(attempt, answer)
            if error.status not in (None, *REPEATED):
                raise error
            if time.monotonic() + pause >= end:
                error.type = UNKNOWN if is_unknown else error.type
                raise error
            yield pause
        raise AssertionError  # count() has no end


def _pause(attempt: int, answer: httpx2.Response | Failed | None = None) -> float:
    """Return seconds before the next attempt, by chance: clients that failed together must not come back together."""
    seconds = answer.headers.get("retry-after", "") if isinstance(answer, httpx2.Response) else ""
    least = float(seconds) if seconds.isdecimal() else 0.0
    return least + random.uniform(0.5, 1.0) * min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt, 10))


def _error(answer: httpx2.Response | Failed | None, url: str) -> ServiceError:
    if not isinstance(answer, httpx2.Response):
        kind = UNAVAILABLE if isinstance(answer, NOT_SENT) else UNKNOWN
        return ServiceError(f"no answer from {url}: {type(answer).__name__}: {answer}", type=kind)
    try:
        problem = msgspec.json.decode(answer.content, type=_Problem)
    except msgspec.DecodeError:
        kind = UNKNOWN if answer.status_code in REPEATED else "about:blank"
        problem = _Problem(kind, f"{url} answered something that is not a problem of an Armlet server")
    return ServiceError(problem.detail, status=answer.status_code, type=problem.type, field=problem.field)


def _word(error: ServiceError) -> str:
    return "outcome_unknown" if error.type == UNKNOWN else "unavailable"


def _among(actions: Actions | None) -> dict[str, Actions]:
    return {} if actions is None else {"actions": actions}


def _encode(content: object) -> bytes:
    try:
        return msgspec.json.encode(content, enc_hook=_plain)
    except TypeError as error:
        raise InvalidTypeError(f"{error}; give numbers, text, and lists or mappings of them") from None


def _plain(value: object) -> object:
    """Return arrays and numbers of numpy and others as Python's, and any mapping as a dict."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise ServiceError(f"the answer is not that of an Armlet server: {error}", status=200) from None


def _item(loop: str, event: str, value: float | Mapping[str, float], report: Report) -> Mapping[str, object]:
    return {"loop": loop, "event": event, "value": value, **read_report(report)}


def _limits(seconds: float) -> httpx2.Timeout:
    """Divide the seconds of an attempt over its parts; waiting for the answer gets half."""
    return httpx2.Timeout(seconds / 6, read=seconds / 2)


# ---- the clients


class Client(_Calls):
    """Asks a server for decisions, and tells it rewards; any thread may call.

    Calls are repeated, after a pause that grows, if there is no connection or no answer, if the server is not ready or
    overloaded (503, by its Retry-After), and if it does not know what became of a call; never if they were refused.

    Parameters
    ----------
    url
        Where the server is.
    key
        Its key, if it asks for one.
    timeout
        Seconds for a call with all its attempts.
    transport
        How to connect, if not as usual: `httpx2.HTTPTransport(uds="/run/armlet.sock")`.
    """

    def __init__(
        self, url: str, key: str | None = None, *, timeout: float = 10.0, transport: httpx2.BaseTransport | None = None
    ) -> None:
        super().__init__(url, key, timeout)
        self._http = httpx2.Client(base_url=url, headers=self._headers, limits=LIMITS, transport=transport)

    @with_options(OPTIONS, actions=ACTIONS)
    def decide(self, loop: str, context: Context, actions: Actions | None = None, **ask: Unpack[Ask]) -> Answer:
        """Choose an arm for a context, or an action.

        Parameters
        ----------
        loop
            Its name.
        context
            Values by feature, or numbers in the order of the features.
        {options}

        Raises
        ------
        armlet.errors.ServiceError
            If it was refused, or if there was no answer in time.
        """
        return self._run(self._decide(loop, context, actions, ask))

    @with_options(MANY)
    def decide_many(
        self, loop: str, contexts: Iterable[Context], actions: Actions | None = None, **ask: Unpack[AskMany]
    ) -> list[Answer]:
        """Choose for many contexts in one transaction, all or none.

        Options in the plural have one value for each of them, or None; they share the others, and the actions.
        """
        return self._run(self._decide_many(loop, contexts, actions, ask))

    def prepare(self, loop: str, table: str, actions: Mapping[str, Mapping[str, object] | ArrayLike]) -> None:
        """Give actions a name, by which later decisions choose among them; the key needs the scope `admin`."""
        self._run(self._prepare(loop, table, actions))

    def remove_table(self, loop: str, table: str) -> None:
        """Take the name of actions away; pending decisions among them are still learned. The scope is `admin`."""
        self._run(self._remove_table(loop, table))

    def activate(self, loop: str, event: str) -> bool:
        """Say that a deferred decision was played; return whether it was deferred until now."""
        return self._run(self._activate(loop, event))

    @with_options(REPORT)
    def reward(self, loop: str, event: str, value: float | Mapping[str, float], **report: Unpack[Report]) -> str:
        """Tell what came of a decision: a number, or some of its outcomes by name.

        `armlet.stores.Loop.reward` says what the arguments and the status mean.
        """
        return self._run(self._reward(_item(loop, event, value, report)))

    def bill(self, loop: str, event: str, cost: float) -> bool:
        """Count the cost of a decision in the budget, and learn nothing from it; return whether there is one.

        A cost of 0 releases the money that a hard budget keeps back. Repeated, it counts once.
        """
        return self._run(self._bill(loop, event, cost))

    def rewards(self, items: Iterable[Mapping[str, object]]) -> list[Judgement]:
        """Tell rewards of any loops, each a mapping with "loop", "event", "value" and more if needed.

        What is refused, or could not be written in time ("unavailable", "outcome_unknown"), is said by its judgement.
        """
        return self._run(self._rewards(items))

    def _run(self, steps: Steps[T]) -> T:
        answer: httpx2.Response | Failed | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return] # StopIteration is not generic
            if isinstance(step, Post):
                answer = self._send(step)
            else:
                time.sleep(step)

    def _send(self, post: Post) -> httpx2.Response | Failed:
        try:
            return self._http.request(post.method, post.path, content=post.body, timeout=_limits(post.seconds))
        except httpx2.RequestError as error:
            return error

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_Calls):
    """The same as `Client`, to be awaited.

    Examples
    --------
    Without a server, as in tests of your own:

    >>> from armlet.service.app import Service, create_app
    >>> from armlet.stores import Memory, Store
    >>> async def play(store: Store) -> str:
    ...     app = httpx2.ASGITransport(create_app(Service(store)))
    ...     async with AsyncClient("http://127.0.0.1", transport=app) as client:
    ...         answer = await client.decide("home", {"age": 31.0})
    ...         return await client.reward("home", answer.event, 1.0)
    >>> with Store(Memory()) as store:
    ...     _ = store.loop("home", arms=["sale", "new"], features=["age"])
    ...     asyncio.run(play(store))
    'accepted'
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, key, timeout)
        self._http = httpx2.AsyncClient(base_url=url, headers=self._headers, limits=LIMITS, transport=transport)
        self._turns = asyncio.Semaphore(CONNECTIONS)  # httpx2 would look at all that wait, too

    @with_options(OPTIONS)
    async def decide(self, loop: str, context: Context, actions: Actions | None = None, **ask: Unpack[Ask]) -> Answer:
        """Choose an arm for a context, or an action."""
        return await self._run(self._decide(loop, context, actions, ask))

    @with_options(MANY)
    async def decide_many(
        self, loop: str, contexts: Iterable[Context], actions: Actions | None = None, **ask: Unpack[AskMany]
    ) -> list[Answer]:
        """Choose for many contexts in one transaction, all or none."""
        return await self._run(self._decide_many(loop, contexts, actions, ask))

    async def prepare(self, loop: str, table: str, actions: Mapping[str, Mapping[str, object] | ArrayLike]) -> None:
        """Give actions a name, by which later decisions choose among them."""
        await self._run(self._prepare(loop, table, actions))

    async def remove_table(self, loop: str, table: str) -> None:
        """Take the name of actions away; pending decisions among them are still learned."""
        await self._run(self._remove_table(loop, table))

    async def activate(self, loop: str, event: str) -> bool:
        """Say that a deferred decision was played; return whether it was deferred until now."""
        return await self._run(self._activate(loop, event))

    @with_options(REPORT)
    async def reward(self, loop: str, event: str, value: float | Mapping[str, float], **report: Unpack[Report]) -> str:
        """Tell what came of a decision."""
        return await self._run(self._reward(_item(loop, event, value, report)))

    async def bill(self, loop: str, event: str, cost: float) -> bool:
        """Count the cost of a decision in the budget, and learn nothing from it; return whether there is one."""
        return await self._run(self._bill(loop, event, cost))

    async def rewards(self, items: Iterable[Mapping[str, object]]) -> list[Judgement]:
        """Tell rewards of any loops."""
        return await self._run(self._rewards(items))

    async def _run(self, steps: Steps[T]) -> T:
        answer: httpx2.Response | Failed | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return] # StopIteration is not generic
            if isinstance(step, Post):
                answer = await self._send(step)
            else:
                await asyncio.sleep(step)

    async def _send(self, post: Post) -> httpx2.Response | Failed:
        end = time.monotonic() + post.seconds
        try:
            await asyncio.wait_for(self._turns.acquire(), post.seconds)
        except TimeoutError:
            return httpx2.PoolTimeout(f"{CONNECTIONS} other calls of this client are pending")
        try:
            left = max(end - time.monotonic(), 0.001)
            return await self._http.request(post.method, post.path, content=post.body, timeout=_limits(left))
        except httpx2.RequestError as error:
            return error
        finally:
            self._turns.release()

    async def aclose(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
