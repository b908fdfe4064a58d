"""Kill workers of a loop with several outcomes and a budget: it ends as one that was never killed, bit for bit.

A worker makes the calls of a list, one after the other, and says before and after each which it is. The next one begins
with the call that its predecessor was killed in. The list ends where that of a store in memory does, to which nothing
happened: same decisions, same price, same digest.
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

LATE: Final = 7  # decisions until the truth comes
HOW: Final[dict[str, Any]] = {
    "arms": ["small", "medium", "large"],
    "dim": 2,
    "outcomes": {"quality": 1.0, "cost": -0.5, "delay": -0.1},
    "known": {"delay": {"small": 0.1, "medium": 0.5, "large": 2.0}},
    "budget": armlet.Budget("cost", total=20.0, horizon=200),
    "epoch": 16,
    "seed": 11,
}


def calls(decisions: int) -> Iterator[Call]:
    """Yield what is asked: decisions with dials and units, costs, proxies and their truth, and changes."""
    rng = random.Random(decisions)
    late: list[tuple[str, float]] = []
    for i in range(decisions):
        event, truth = f"e{i}", rng.random()
        how: dict[str, Any] = {"weights": {"cost": -rng.random()}} if i % 3 else {"unit": f"session {rng.randrange(5)}"}
        yield "decide", event, [1.0, rng.random()], how
        yield "reward", event, {"quality": rng.random()}, {"name": "proxy"}
        yield "reward", event, {"cost": 0.4 * rng.random()}, {"name": "bill"}
        late.append((event, truth))
        if len(late) > LATE:
            event, truth = late.pop(0)
            yield "reward", event, {"quality": truth}, {"name": "judge", "rank": 1}
        if i % 40 == 20:
            yield "change", event, None, {"outcomes": {"quality": 1.0 + i / 100}}
        if i % 40 == 30:
            yield "change", event, None, {"known": {"delay": {"large": 1.0 + i / 100}}}


def make(loop: Loop, call: Call) -> Any:
    """Make a call; return its answer in plain JSON types."""
    kind, event, value, how = call
    if kind == "decide":
        decision = loop.decide(value, event=event, **how)
        return [decision.id, decision.arm, decision.propensity]
    if kind == "reward":
        return loop.reward(event, value, **how)
    return loop.change(**how)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was survived."""

    kills: int
    calls: int
    spent: float

    def __str__(self) -> str:
        return (
            f"{self.kills} kills of a loop with outcomes and a budget: {self.calls} calls answered; {self.spent:g} "
            f"spent, price and state those of a loop that was never killed, bit for bit"
        )


def soak(path: Path, kills: int, seed: int = 0, *, decisions: int = 200, sabotage: str | None = None) -> Report:
    """Kill so many workers, and finish; raise LostError if anything is not as if none had been killed."""
    rng, todo = random.Random(seed), list(calls(decisions))
    with Store(Memory()) as store:
        loop = store.loop("router", **HOW)
        expected = [make(loop, call) for call in todo]
        digest, budget = loop.model().digest(), loop.stats().budget
    at = 0
    for number in range(kills):
        first, at = at, at + rng.randrange(2, MOST)
        if at >= len(todo):
            raise LostError(f"there was nothing left to be killed in after {number} kills; ask for more decisions")
        run(["soak.outcomes", path, decisions, first, at, *filter(None, [sabotage])], todo, expected, _compare)
    with armlet.open_store(path) as store:
        loop = store.loop("router", **HOW, on_change="apply") if not store.loops else store.loop("router")
        for i, call in enumerate(todo[at:], at):
            _compare(call, make(loop, call), expected[i], is_again=i == at)
        require(loop.model().digest() == digest, "the state is not that of a loop that was never killed")
        now = loop.stats().budget
        require(now is not None and now == budget, f"the budget is {now}, and not {budget}")
        require(verify(store._ledger, "router").digest == digest, "rows lead to another state")
    return Report(kills=kills, calls=len(todo), spent=0.0 if budget is None else budget.spent)


def _compare(call: Call, answer: Any, expected: Any, *, is_again: bool) -> None:
    """Compare an answer; a reward that is reported again is a duplicate if it was kept."""
    known = [expected, "duplicate"] if is_again and call[0] == "reward" else [expected]
    require(answer in known, f"{call} was answered {answer}, and not {expected}")


def work(path: str, decisions: int, first: int, last: int) -> None:
    """Make calls until killed."""
    store = armlet.open_store(path)
    loop = store.loop("router") if store.loops else store.loop("router", **HOW)
    work_on(calls(decisions), first, last, lambda call: make(loop, call))


if __name__ == "__main__":
    work(*begun(sys.argv))
