"""Every argument of loops and stores is read before the transaction: nonsense is a refusal, never a fault."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import armlet
from armlet.stores import Loop, Memory, Store
from support.faults.hostile import HOSTILE, fault_in

ARMS: dict[str, Any] = {"arms": ["a", "b"], "features": ["u"], "policy": armlet.LinUCB(), "seed": 1}
OUTCOMES = {"outcomes": {"quality": 1.0, "cost": -1.0}, "known": {"cost": {"a": 0.1, "b": 0.2}}}
FILMS: dict[str, Any] = {"actions": {"p": [1.0], "q": [2.0]}}
LOOPS: dict[str, dict[str, Any]] = {
    "arms": ARMS,
    "outcomes": {**ARMS, **OUTCOMES},
    "actions": {"dim": 1, "action_dim": 1, "seed": 1},
}


def calls(store: Store, loop: Loop, kind: str) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    """Return calls, with arguments that they need."""
    more = FILMS if kind == "actions" else {}
    loop.decide([1.0], event="e", **more)
    return [
        (loop.decide, {"x": [1.0], **more}),
        (loop.decide_many, {"X": [[1.0]], **more}),
        (loop.reward, {"event": "e", "value": 1.0}),
        (loop.reward_many, {"rewards": [("e", 1.0)]}),
        (loop.forget, {"event": "unknown"}),
        (loop.forget_many, {"events": ["unknown"]}),
        (loop.add_arm, {"arm": "c"}),
        (loop.retire_arm, {"arm": "a"}),
        (loop.restore_arm, {"arm": "a"}),
        (loop.change, {}),
        (loop.promote, {}),
        (loop.prepare, {"name": "films", **FILMS}),
        (loop.remove_table, {"name": "films"}),
        (loop.bill, {"event": "e", "cost": 1.0}),
        (loop.activate, {"event": "e"}),
        (store.loop, {"name": "new", **LOOPS[kind]}),
        (store.prune, {"before": 0.0}),
        (store.delete, {"name": "unknown"}),
    ]


@pytest.mark.parametrize("kind", LOOPS)
@pytest.mark.parametrize("nonsense", HOSTILE)
def test_nonsense_is_a_refusal_and_never_a_fault(kind: str, nonsense: str) -> None:
    with Store(Memory()) as store:
        loop = store.loop("homepage", **LOOPS[kind])
        for call, given in calls(store, loop, kind):
            for argument in inspect.signature(call).parameters:
                fault = fault_in(call, {**given, argument: HOSTILE[nonsense]}, {"loop", "shadow", "event"})
                assert fault is None, f"{argument}: {fault}"
        assert "armlet_faults_total 0\n" in store.metrics()
