"""Opens a store that nobody uses at the moment, and compares all of it with what was answered."""

from __future__ import annotations

from time import monotonic
from typing import Final

import armlet
from armlet.stores import Loop, Row, Store
from soak.environment import LOOPS, arms, change_of, policy, window
from soak.oracle import Oracle, require
from support.stores import rebuilt

PATIENCE: Final = 30.0  # seconds until all windows are closed


def inspect(store: Store, oracle: Oracle) -> tuple[int, int]:
    """Compare everything; return how many rewards were learned, and how many rows the loops have written."""
    oracle.check_answers()
    wait_for_windows(store)
    return tuple(map(sum, zip(*(_inspect(store, store.loop(name), oracle) for name in LOOPS), strict=True)))  # type: ignore[return-value]


def wait_for_windows(store: Store) -> None:
    """Wait until all windows are closed."""
    loop, end = store.loop("late"), monotonic() + PATIENCE
    while loop.stats().oldest_open is not None:
        require(monotonic() < end, "windows stay open")
        store.settle()


def _inspect(store: Store, loop: Loop, oracle: Oracle) -> tuple[int, int]:
    model = loop.model()
    check_replay(store, loop)
    rows = list(loop._ledger.rows(loop._runner.id))
    _compare_rows(loop.name, rows, oracle)
    _compare_terms(loop, model, oracle)
    learned = oracle.check_state(loop.name, model)
    audit = armlet.audit(loop.log.replayable, loop.log.start)
    require(audit.ok, f"{loop.name} cannot be audited: {audit}")
    return learned, rows[-1].seq


def check_replay(store: Store, loop: Loop) -> None:
    """Compare a loop, and all that goes along with it, with what its rows make of it."""
    model, found, again = loop.model(), loop._runner.cast, rebuilt(store, loop.name)
    told = f"{loop.name} is not what its rows say"
    require(found is not None and found.to_bytes() == again.to_bytes(), told)
    require(model.to_bytes() == again.live.to_bytes(), told)


def _compare_rows(loop: str, rows: list[Row], oracle: Oracle) -> None:
    """Compare the decisions that are kept with those that were answered."""
    seqs = [row.seq for row in rows]
    require(seqs == sorted(set(seqs)), f"rows of {loop} are not in order")
    made = [row for row in rows if row.kind == "decide"]
    steps = [row.t or 0 for row in made]
    require(steps == sorted(set(steps)), f"a step of {loop} was taken twice, or out of order")
    kept = {row.fields["event"]: row for row in made if "event" in row.fields}
    require(len(kept) == sum("event" in row.fields for row in made), f"an event of {loop} was decided twice")
    for event, known in oracle.of(loop):
        row = kept.pop(event, None)
        if row is None:
            require(oracle.may_be_gone(event), f"{event} was answered, and is not kept")
        else:
            require(not known.is_forgotten, f"{event} was forgotten, and is kept")
            f = row.fields
            record = [f["id"], row.t, f["arm"], f["propensity"], f["explored"]]
            require(record == known.answer[:5], f"{event} was answered {known.answer}, and {record} is kept")
    require(not kept, f"{list(kept)} were decided in {loop}, and nobody asked")


def _compare_terms(loop: Loop, model: armlet.Bandit, oracle: Oracle) -> None:
    """Compare what was changed."""
    last = {kind: oracle.changes.get((loop.name, kind), 0) for kind in ("features", "policy", "arms", "window")}
    played = [arm for arm in model.arms if arm not in model.arms.retired]
    require(change_of(model) == last["features"], f"the features of {loop.name} are {model.settings.features}")
    require(model.policy == policy(loop.name, last["policy"]), f"the policy of {loop.name} is {model.policy}")
    require(sorted(map(str, played)) == arms(last["arms"]), f"the arms of {loop.name} are {played}")
    if loop.name == "late":
        found = loop._runner.terms.window
        require(found == window(last["window"]), f"the window of {loop.name} is {found}")
