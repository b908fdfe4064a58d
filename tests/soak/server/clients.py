"""Clients of one or more servers, which ask until they are answered; the oracle hears every question and answer.

A request that a server has refused is given up or sent again; one of which nobody knows, to any server. Some clients
lose patience, and ask another server while the first answer is still to come: it is compared when it comes.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from soak.environment import CHANGING, is_private, kind_of, loop_of, named_context, reward, terms
from soak.oracle import Call, LostError, Oracle, require
from soak.server.connections import Address, Answer, Connection, CutError, NotSentError
from soak.worker import UPKEEP, Events

CLIENTS: Final = 12
IMPATIENT: Final = 1.0  # seconds, for what may safely be asked twice
CHANGES: Final = 0.3  # share of client 0's requests that change loops
BATCHED: Final = 0.15  # share of requests with several calls
GIVES_UP: Final = 0.5  # share of refused calls that are not repeated
PAUSE: Final = 0.01  # seconds between tries
PASSING: Final = ("unavailable", "outcome_unknown")  # statuses of rewards that were not judged
GUARDS: Final[tuple[tuple[str, object], ...]] = (
    ("change", {"shadow": {"policy": "AllDataEpsilonGreedy", "policy_settings": {"p": 20.0, "units": "as given"}}}),
    ("change", {"shadow": None}),
    ("freeze", None),
    ("thaw", None),
)
SLOW: Final = ("forget", "change", "guard")  # calls that are worth to be killed in


@asynccontextmanager
async def meanwhile(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run something next to a block, and end it with the block; raise what was raised first."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
            yield
            for task in tasks:
                task.cancel()
    except ExceptionGroup as raised:
        raise raised.exceptions[0] from raised


class Asked(NamedTuple):
    """A call, and the key under which the oracle waits for its answer."""

    key: str
    call: Call


class Fleet:
    """Clients that ask on, regardless of what happens to the servers.

    Parameters
    ----------
    addresses
        Of the servers; each try goes to any of them.
    oracle
        Hears everything.
    seed
        Of what they ask.
    """

    def __init__(self, addresses: Sequence[Address], oracle: Oracle, seed: int = 0, clients: int = CLIENTS) -> None:
        self.addresses, self.oracle, self._clients = list(addresses), oracle, clients
        self._seed, self._known, self._changes = seed, Events(), 0
        self.statuses: Counter[int] = Counter()
        self.heard: Counter[str] = Counter()  # tries by how they ended, but for those that were answered
        self.answers: Counter[Address] = Counter()
        self._held, self._is_closed = 0, False
        self._changed = asyncio.Condition()
        self._late: list[asyncio.Task[None]] = []
        self.sent: Callable[[Call], None] = lambda _: None  # called when a call is sent

    # ---- from outside

    async def run(self, work: Awaitable[Any]) -> None:
        """Ask until some work is done; raise what a client raises."""
        async with meanwhile(*(self._run_client(i) for i in range(self._clients))):
            await work

    async def hold(self) -> None:
        """Let clients finish what they ask, and no more; wait for late answers too."""
        async with self._changed:
            self._is_closed = True
            await self._changed.wait_for(lambda: self._held == self._clients)
        await asyncio.gather(*self._late)
        self._late.clear()

    async def go_on(self) -> None:
        """Let them ask again."""
        async with self._changed:
            self._is_closed = False
            self._changed.notify_all()

    async def wait_for_answers(self, n: int, address: Address | None = None) -> None:
        """Wait until so many requests more are answered, by any server or by one."""
        end = self._count(address) + n
        while self._count(address) < end:
            await asyncio.sleep(0.001)

    def _count(self, address: Address | None) -> int:
        return self.answers.total() if address is None else self.answers[address]

    # ---- a client

    async def _run_client(self, number: int) -> None:
        rng, own = random.Random(f"{self._seed} {number}"), Events()
        connections = {address: Connection(address) for address in self.addresses}
        try:
            for i in range(10**9):
                await self._enter()
                await self._ask(rng, connections, own, number, f"{number}.{i}")
        finally:
            for connection in connections.values():
                connection.close()

    async def _ask(
        self, rng: random.Random, connections: dict[Address, Connection], own: Events, number: int, mark: str
    ) -> None:
        """Ask for something until it is answered."""
        asked = [Asked(f"{number}.{at}", call) for at, call in enumerate(self._next(rng, own, number, mark))]
        for each in asked:
            self.oracle.ask(each.key, time.time(), each.call)
        await self._settle(rng, connections, asked)
        for _, call in asked:
            if call[0] == "decide" and call[1] in self.oracle.decided and call[1].startswith(f"e{mark}."):
                (own if is_private(call[1]) else self._known).add(call[1])

    async def _enter(self) -> None:
        if not self._is_closed:
            return
        async with self._changed:
            self._held += 1
            self._changed.notify_all()
            await self._changed.wait_for(lambda: not self._is_closed)
            self._held -= 1

    def _next(self, rng: random.Random, own: Events, number: int, mark: str) -> list[Call]:
        """Decide, repeat decisions, or reward some; client 0 changes loops, and all forget what is theirs."""
        if rng.random() < (CHANGES if number == 0 else UPKEEP) and (call := self._upkeep(rng, own, number)) is not None:
            return [call]
        n = rng.randrange(2, 9) if rng.random() < BATCHED else 1
        old = list(dict.fromkeys(e for _ in range(n) if (e := (own if rng.random() < 0.3 else self._known).pick(rng))))
        what = rng.random()
        if not old or what < 0.5:
            return _of_one_loop([["decide", f"e{mark}.{k}"] for k in range(3 * n)])[:n]
        if what < 0.6:
            return _of_one_loop([["decide", event] for event in old])
        ranks = [int(rng.random() < 0.3) for _ in old]
        others = [int(rng.random() < 0.2) for _ in old]
        return [["reward", e, reward(e, other, rank), rank] for e, other, rank in zip(old, others, ranks, strict=True)]

    def _upkeep(self, rng: random.Random, own: Events, number: int) -> Call | None:
        if number == 0 and rng.random() < 0.4:
            return ["guard", "late", rng.randrange(len(GUARDS))]
        if number == 0 and rng.random() < 0.6:  # one after the other, so that it is known which was last
            self._changes += 1
            name = rng.choice(CHANGING)
            if kind_of(name, self._changes) == "features":  # an answer does not say which features it was asked with
                self._changes += 1
            return ["change", name, self._changes]
        event = own.pick(rng, takes=True)
        return None if event is None else ["forget", event]

    async def _settle(self, rng: random.Random, connections: dict[Address, Connection], asked: list[Asked]) -> None:
        """Ask until everything is answered, or given up."""
        refused = uncertain = 0
        while asked:
            address = rng.choice(self.addresses)
            try:
                answer = await self._send(connections, address, asked)
            except NotSentError:
                self.heard["not sent"] += 1
                await asyncio.sleep(PAUSE)
                continue
            except (CutError, TimeoutError) as error:
                self.heard["cut off" if isinstance(error, CutError) else "too late"] += 1
                uncertain += 1
                continue
            asked, is_uncertain = self._hear(asked, answer, refused, uncertain)
            self.answers[address] += answer.status != 503
            uncertain += is_uncertain
            refused += not is_uncertain
            if asked:
                if not uncertain and rng.random() < GIVES_UP:
                    for each in asked:
                        self.oracle.give_up(each.key)
                    return
                await asyncio.sleep(PAUSE)

    async def _send(self, connections: dict[Address, Connection], address: Address, asked: list[Asked]) -> Answer:
        connection = connections[address]
        method, path, content = to_http([call for _, call in asked])
        sending = asyncio.ensure_future(connection.ask(method, path, content))
        self.sent(asked[0].call)
        if not all(_may_be_asked_twice(call) for _, call in asked):
            return await sending
        try:
            done, _ = await asyncio.wait([sending], timeout=IMPATIENT)
        except asyncio.CancelledError:
            sending.cancel()
            raise
        if done:
            return sending.result()
        connections[address] = Connection(address)
        late = self._compare(sending, connection, [call for _, call in asked])
        self._late.append(asyncio.create_task(late))
        raise TimeoutError

    def _hear(self, asked: list[Asked], answer: Answer, refused: int, uncertain: int) -> tuple[list[Asked], bool]:
        """Tell the oracle what was answered; return what was not, and whether nobody knows what became of it."""
        self.statuses[answer.status] += 1
        if answer.status == 503:
            self.heard["outcome unknown" if answer.is_uncertain else "refused"] += 1
            return asked, answer.is_uncertain
        left, is_uncertain = [], False
        for each, found in zip(asked, from_http([call for _, call in asked], answer), strict=True):
            if found in PASSING:
                self.heard[f"item {found}"] += 1
                left.append(each)
                is_uncertain |= found == "outcome_unknown"
            else:
                self.oracle.answer(each.key, found, refused, uncertain)
        return left, is_uncertain

    async def _compare(self, sending: asyncio.Future[Answer], connection: Connection, calls: list[Call]) -> None:
        """Wait for the answer to what was asked elsewhere meanwhile; a decision must be the same."""
        try:
            answer = await sending
        except (CutError, NotSentError):
            return
        finally:
            connection.close()
        self.statuses[answer.status] += 1
        if answer.status == 503 or calls[0][0] != "decide":
            return
        for call, found in zip(calls, from_http(calls, answer), strict=True):
            known = self.oracle.decided.get(call[1])
            require(known is None or known.says(found), f"{call[1]} was answered {known} and then, late, {found}")


def _of_one_loop(calls: list[Call]) -> list[Call]:
    return [call for call in calls if loop_of(call[1]) == loop_of(calls[0][1])]


def _may_be_asked_twice(call: Call) -> bool:
    """Whether it does no harm if a request that nobody waits for is served at last: nothing is forgotten meanwhile."""
    return call[0] in ("decide", "reward") and not is_private(call[1])


# ---- calls as requests


def to_http(calls: list[Call]) -> tuple[str, str, object]:
    """Return the request that asks some calls of one kind: several decisions of one loop, or several rewards."""
    kind, *words = calls[0]
    if kind == "reward":
        items = [{"loop": loop_of(e), "event": e, "value": value, "rank": rank} for _, e, value, rank in calls]
        return "POST", "/v1/rewards", {"items": items}
    if kind == "guard":
        route, content = GUARDS[words[1]]
        return "POST", f"/v1/loops/{words[0]}/{route}", content
    if kind == "change":
        name, number = words
        return "POST", f"/v1/loops/{name}/change", _change(name, number)
    path = f"/v1/loops/{loop_of(words[0])}"
    if kind == "forget":
        return "POST", f"{path}/forget", {"events": words}
    items = [{"context": named_context(event, 0), "event": event} for _, event in calls]
    return (
        ("POST", f"{path}/decide", items[0]) if len(items) == 1 else ("POST", f"{path}/decide/batch", {"items": items})
    )


def _change(name: str, number: int) -> dict[str, Any]:
    [(kind, value)] = terms(name, kind_of(name, number), number).items()
    if kind != "policy":
        return {kind: value}
    return {"policy": type(value).__name__, "policy_settings": asdict(value)}


def from_http(calls: list[Call], answer: Answer) -> list[Any]:
    """Return the answers to calls, as the oracle knows them."""
    kind = calls[0][0]
    if kind == "guard" and answer.status == 409:  # of two guards that go together no better than a thaw with no frost
        return [None]
    if answer.status != 200:
        raise LostError(f"{calls} were answered {answer.status}: {answer.body[:1000]!r}")
    found = answer.json
    if kind == "reward":
        return [item["status"] for item in found["items"]]
    if kind == "forget":
        return [found["forgotten"] == 1]
    if kind in ("change", "guard"):
        return [None]
    items = [found] if len(calls) == 1 else found["items"]
    return [_decided(event, item) for (_, event), item in zip(calls, items, strict=True)]


def _decided(event: str, item: dict[str, Any]) -> list[Any]:
    require(item["event"] == event, f"{event} was asked, and {item['event']} answered")
    x = list(named_context(event, 0).values())
    return [None, None, item["arm"], item["propensity"], item["explored"], x]
