"""Kill workers of a loop whose actions come with each decision: it ends as one that was never killed, bit for bit.

As `soak.outcomes`: a worker makes the calls of a list, and the next one begins with the call that its predecessor was
killed in. Tables change, callers play baselines, and decisions wait to be activated.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import armlet
from armlet.stores import Loop, Memory, Store
from armlet.stores.verify import verify
from soak.calls import MOST, Call, begun, run, work_on
from soak.oracle import LostError, require

LATE: Final = 7  # decisions until a reward comes
HOW: Final[dict[str, Any]] = {"dim": 1, "action_dim": 2, "early_window": 1e6, "aggregation": "last", "seed": 11}


def films(n: int, first: int) -> dict[str, list[float]]:
    """Return so many actions, by number."""
    return {f"film {i}": [i % 5 / 4, i % 11 / 10] for i in range(first, first + n)}


def calls(decisions: int) -> Iterator[Call]:
    """Yield what is asked: tables, decisions among them, and rewards before and after."""
    rng = random.Random(decisions)
    late: list[tuple[str, bool]] = []
    for i in range(decisions):
        event = f"e{i}"
        if i % 8 == 0:
            yield "prepare", "all", films(40, i), {}
        if i % 9 == 5:
            yield "reward", event, rng.random(), {"name": "first"}
        how: dict[str, Any] = {"actions": "all" if i % 3 else films(2 + i % 4, i % 6), "defer": i % 7 == 3}
        if i % 5 == 2:
            how["baseline"] = f"film {i % 8 + 8 * (i // 8)}" if i % 3 else f"film {i % 6}"
        yield "decide", event, [rng.random()], how
        late.append((event, i % 14 == 3))
        if len(late) > LATE:
            event, is_shown = late.pop(0)
            yield "reward", event, rng.random(), {"name": "truth"}
            if is_shown:
                yield "activate", event, None, {}


def make(loop: Loop, call: Call) -> Any:
    """Make a call; return its answer in plain JSON types."""
    kind, event, value, how = call
    if kind == "decide":
        decision: Any = loop.decide(value, event=event, **how)
        return [decision.id, decision.arm, decision.propensity, decision.actions]
    if kind == "prepare":
        return loop.prepare(event, value).hash
    return loop.activate(event) if kind == "activate" else loop.reward(event, value, **how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was survived."""

    kills: int
    calls: int
    tables: int

    def __str__(self) -> str:
        return (
            f"{self.kills} kills of a loop with actions: {self.calls} calls answered; {self.tables} rows of tables, "
            f"state that of a loop that was never killed, bit for bit"
        )


def soak(path: Path, kills: int, seed: int = 0, *, decisions: int = 200, sabotage: str | None = None) -> Report:
    """Kill so many workers, and finish; raise LostError if anything is not as if none had been killed."""
    rng, todo = random.Random(seed), list(calls(decisions))
    with Store(Memory()) as store:
        loop = store.loop("films", **HOW)
        expected = [make(loop, call) for call in todo]
        digest, tables, baseline = loop.model().digest(), loop.tables(), loop.stats().baseline
    at = 0
    for number in range(kills):
        first, at = at, at + rng.randrange(2, MOST)
        if at >= len(todo):
            raise LostError(f"there was nothing left to be killed in after {number} kills; ask for more decisions")
        run(["soak.actions", path, decisions, first, at, *filter(None, [sabotage])], todo, expected, compare)
    with armlet.open_store(path) as store:
        loop = store.loop("films") if store.loops else store.loop("films", **HOW)
        for i, call in enumerate(todo[at:], at):
            compare(call, make(loop, call), expected[i], is_again=i == at)
        require(loop.model().digest() == digest, "the state is not that of a loop that was never killed")
        require(loop.tables() == tables, "the tables are not those of a loop that was never killed")
        require(loop.stats().baseline == baseline, f"the baseline is {loop.stats().baseline}, and not {baseline}")
        require(verify(store._ledger, "films").digest == digest, "rows lead to another state")
        log = loop.log
        require(armlet.audit(log, log.start).ok, "an audit finds another decision")
        n_tables = sum(row.kind == "actions" for row in store._ledger.rows(store._ledger.loops()[0].id))
    return Report(kills=kills, calls=len(todo), tables=n_tables)


def compare(call: Call, answer: Any, expected: Any, *, is_again: bool) -> None:
    """Compare an answer; what is told again is a duplicate if it was kept, and what is activated is."""
    known = [expected, "duplicate", False] if is_again and call[0] in ("reward", "activate") else [expected]
    require(answer in known, f"{call} was answered {answer}, and not {expected}")


def work(path: str, decisions: int, first: int, last: int) -> None:
    """Make calls until killed."""
    store = armlet.open_store(path)
    loop = store.loop("films") if store.loops else store.loop("films", **HOW)
    work_on(calls(decisions), first, last, lambda call: make(loop, call))


if __name__ == "__main__":
    work(*begun(sys.argv))
