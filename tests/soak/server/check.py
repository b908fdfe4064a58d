"""Compares servers with what they have answered: what they say of themselves, and the store once they have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from time import monotonic

from armlet.stores import Store
from soak.environment import LOOPS
from soak.inspection import PATIENCE, inspect
from soak.oracle import Oracle, require
from soak.server.connections import Address, ask


async def models(addresses: Sequence[Address]) -> dict[str, bytes]:
    """Return the models of all loops once their windows are closed; all servers must say the same bytes."""
    await ask(addresses[0], "POST", "/v1/loops/late/thaw")  # what is frozen has not learned what the oracle has heard
    for address in addresses:
        await _wait_for_windows(address)
    found: dict[str, bytes] = {}
    for name in LOOPS:
        said = {(await _ask(address, f"/v1/loops/{name}/model")) for address in addresses}
        require(len(said) == 1, f"replicas differ in {name}")
        found[name] = said.pop()
    return found


async def _wait_for_windows(address: Address) -> None:
    end = monotonic() + PATIENCE
    while True:
        open_ = [await _is_open(address, name) for name in LOOPS]
        if not any(open_):
            return
        require(monotonic() < end, "windows stay open")
        await asyncio.sleep(0.05)


async def _is_open(address: Address, name: str) -> bool:
    """Whether a window of a loop is open; without windows, decisions wait for ever."""
    answer = await ask(address, "GET", f"/v1/loops/{name}/stats")
    require(answer.status == 200, f"stats of {name} are answered {answer.status}: {answer.body!r}")
    return name == "late" and answer.json["oldest_open"] is not None


async def _ask(address: Address, path: str) -> bytes:
    answer = await ask(address, "GET", path)
    require(answer.status == 200, f"{path} is answered {answer.status}: {answer.body!r}")
    return answer.body


def compare(store: Store, oracle: Oracle, said: dict[str, bytes]) -> tuple[int, int]:
    """Compare a store that nobody serves with all answers, and with the models that its servers had."""
    complete(store, oracle)
    found = inspect(store, oracle)
    for name, model in said.items():
        require(store.loop(name).model().to_bytes() == model, f"{name} was served in another state than it is kept")
    return found


def complete(store: Store, oracle: Oracle) -> None:
    """Add what HTTP does not say of a decision, its id and step, from its row, if there is one still."""
    steps = count(-1, -1)  # of those that nobody can know any more
    for name in LOOPS:
        loop = store.loop(name)
        rows = {row.fields.get("event"): row for row in loop._ledger.rows(loop._runner.id) if row.kind == "decide"}
        for event, known in oracle.of(name):
            row = rows.get(event)
            if row is not None and known.answer[0] in (None, ""):
                known.answer[:2] = [row.fields["id"], row.t]
            elif known.answer[0] in (None, ""):
                known.answer[:2] = ["", next(steps)]
