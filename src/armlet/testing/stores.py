"""What every store promises, as checks that can be run over any of them.

`check_store` runs over Armlet's own ledgers in its tests; run it over one of your own in yours. Checks of the ledger
come first (`armlet.testing.ledgers`), then those of loops that are kept in it. They raise AssertionError with the
promise that was broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from warnings import catch_warnings, simplefilter

from armlet.actions.table import ActionTable
from armlet.cast.cast import Cast
from armlet.errors import BudgetError, EventError, StoreError
from armlet.inputs.budget import Budget
from armlet.policies import Algorithm1, AutoEpsilonGreedy, FixedEpsilon, LinUCB
from armlet.stores import Aggregation, ClockWarning, Ledger, Loop, Moment, Status, Store
from armlet.stores.ledger import Session
from armlet.stores.rows.replay import rebuild
from armlet.stores.terms import Terms
from armlet.stores.transaction import Transaction
from armlet.testing.ledgers import LEDGER_CHECKS, Place, StoreCheck, entered, require
from armlet.types import Policy

__all__ = ["STORE_CHECKS", "Place", "StoreCheck", "check_store", "require"]

ARMS = ["a", "b", "c"]
SEVERAL: tuple[tuple[Aggregation, Status, float], ...] = (  # what a second reward is, and what then counts
    ("first", "conflict", 0.5),
    ("last", "replaced", 0.25),
    ("sum", "accepted", 0.75),
)


class _Ticks:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def _play(store: Store, name: str, start: int, n: int) -> None:
    """Decide and reward, some twice and some never, with arms that come and go."""
    loop = store.loop(name)
    for i in range(start, start + n):
        eligible = ["a", "c"] if i % 7 == 3 else None
        loop.decide([1.0, (i % 5) / 4], event=f"e{i}", eligible=eligible)
        if i % 3:
            loop.reward(f"e{i - i % 2}", (i % 4) / 4)
        if i % 20 == 10:
            loop.retire_arm("b")
        if i % 20 == 15:
            loop.restore_arm("b")


def _replayed(store: Store, name: str) -> Cast:
    def work(tx: Transaction, _: Moment) -> Cast:
        record = tx.session.find(name)
        if record is None:
            raise AssertionError(f"loop {name!r} is gone")
        return rebuild(tx.session, record, entered(tx, record.id).seq, None, Terms.read(record).carry)

    return store._writer.do(work)


def check_state_is_what_the_rows_say(place: Place) -> None:
    """Bit for bit: the living bandit, the one after a restart, and the replay without a snapshot."""
    policies: dict[str, Policy] = {"one": Algorithm1(p=30), "auto": AutoEpsilonGreedy(), "ucb": LinUCB()}
    for part in range(3):
        with Store(place()) as store:
            for name, policy in policies.items():
                loop = store.loop(name, arms=ARMS, dim=2, policy=policy, seed=5)
                before = loop.model().to_bytes()
                require(before == _replayed(store, name).to_bytes(), f"{name}: a restart is not the replay")
                _play(store, name, 40 * part, 40)
                after = loop.model().to_bytes()
                require(after == _replayed(store, name).to_bytes(), f"{name}: the living one is not the replay")
                require(before != after, f"{name}: nothing was learned")


def check_units_keep_their_arm(place: Place) -> None:
    """Within an epoch a unit has one arm, after a restart too, no matter what was learned."""
    arms: dict[object, object] = {}
    for part in range(3):
        with Store(place()) as store:
            loop = store.loop("homepage", arms=ARMS, dim=1, policy=FixedEpsilon(epsilon=0.5), epoch=25, seed=5)
            for i in range(20):
                decision = loop.decide([1.0], event=f"{part} {i}", unit=f"unit {i % 7}")
                key, rewarded = (decision.unit, decision.epoch), (i % 4) / 4
                require(arms.setdefault(key, decision.arm) == decision.arm, f"{key} was switched to another arm")
                loop.reward(f"{part} {i}", rewarded)
            units, model = loop.stats().units, loop.model().to_bytes()
            require(units and units.switches == 0, "a switch is counted where there was none")
            require(units and units.decisions == 20 * (part + 1), "decisions of units are missing in the stats")
            require(model == _replayed(store, "homepage").to_bytes(), "units: the living one is not the replay")


def check_events_are_idempotent(place: Place) -> None:
    """The same event with the same context has the same answer, after a restart too; with another it is refused."""
    with Store(place()) as store:
        loop = store.loop("homepage", arms=ARMS, dim=2, policy=Algorithm1(p=30), seed=5)
        first = loop.decide([1.0, 0.5], event="e")
    with Store(place()) as store:
        loop = store.loop("homepage")
        again = loop.decide([1.0, 0.5], event="e")
        same = (again.id, again.arm, again.propensity) == (first.id, first.arm, first.propensity)
        require(same, "an event that was asked again had another answer")
        for x, eligible in (([1.0, 0.25], None), ([1.0, 0.5], ["a"])):
            try:
                loop.decide(x, event="e", eligible=eligible)
            except EventError:
                continue
            raise AssertionError("an event was decided again for another context")
        require(loop.model().t == 1, "an event that was asked again took a step of the clock")


def check_rewards_count_once(place: Place) -> None:
    """Rewards are accepted once, and answered for what they are."""
    with Store(place()) as store:
        for how, again, total in SEVERAL:
            loop = store.loop(
                how, arms=["a"], dim=1, policy=LinUCB(units="as given"), aggregation=how, reward_range=(0, 1), seed=5
            )
            require(loop.reward("e", 0.5) == "unknown", "a reward without a decision is not unknown")
            loop.decide([1.0], event="e")
            require(loop.reward("e", 1.5) == "out_of_range", "a reward outside of the range was taken")
            require(loop.reward("e", 0.5) == "accepted", "a reward was not accepted")
            if how != "sum":
                require(loop.reward("e", 0.5) == "duplicate", "a reward that was told twice is not a duplicate")
            status = loop.reward("e", 0.25)
            require(status == again, f"a second reward is {status}, not {again}, where the {how} counts")
            state = loop.model().state
            require((state.n[0], state.b[0, 0]) == (1.0, total), f"{state.b[0, 0]} was learned, not the {how}: {total}")


def check_windows_close_once(place: Place) -> None:
    """A row is learned when its window closes, with the default if nothing came; a late reward replaces it."""
    ticks = _Ticks()
    with Store(place(), wall=ticks, elapsed=ticks) as store:
        loop = store.loop(
            "homepage", arms=["a"], dim=1, policy=LinUCB(units="as given"), window=60.0, default_reward=0.0, seed=5
        )
        for event in ("told", "silent"):
            loop.decide([1.0], event=event)
        require(loop.reward("told", 0.5) == "accepted", "a reward in its window was not accepted")
        ticks.now += 59.9
        require(loop.model().state.n[0] == 0, "a row was learned before its window closed")
        ticks.now += 0.2
        state = loop.model().state
        require((state.n[0], state.b[0, 0]) == (2.0, 0.5), "windows that closed were not learned, or not as told")
    ticks.now -= 86_400.0  # the wall clock is set back while nobody looks
    with catch_warnings():
        simplefilter("ignore", ClockWarning)
        store = Store(place(), wall=ticks, elapsed=ticks)
    with store:
        loop = store.loop("homepage")
        ticks.now += 3600.0
        require(loop.reward("silent", 1.0) == "late", "a reward after its window is not late")
        require(loop.reward("silent", 1.0) == "duplicate", "a late reward that was told twice is not a duplicate")
        state = loop.model().state
        require((state.n[0], state.b[0, 0]) == (2.0, 1.5), "a late reward did not replace the default")


def check_parts_count_once(place: Place) -> None:
    """Each outcome of a decision is a reward of its own, after a restart too; the row is learned with the last one."""
    outcomes = {"quality": 1.0, "cost": -4.0}
    with Store(place()) as store:
        loop = store.loop("router", arms=["a"], dim=1, policy=LinUCB(units="as given"), outcomes=outcomes, seed=5)
        decision = loop.decide([1.0], event="e", weights={"cost": -8.0})
        require(decision.weights == {"quality": 1.0, "cost": -8.0}, "a dial is not that of the decision")
        require(loop.reward("e", {"cost": 0.25}, name="bill") == "accepted", "a part was not accepted")
        require(loop.model().state.n[0] == 0, "a row was learned before its last part had come")
    with Store(place()) as store:
        loop = store.loop("router")
        again = loop.reward("e", {"cost": 0.5}, name="bill")
        require(again == "duplicate", f"a part that was told again is {again}, not a duplicate")
        require(loop.reward("e", {"cost": 0.75}) == "conflict", "a part with another value is no conflict")
        require(
            loop.reward("e", {"quality": 2.0, "cost": 0.25}) == "out_of_range", "parts were taken, one out of range"
        )
        require(loop.reward("e", {"quality": 0.25}) == "accepted", "the last part was not accepted")
        require(
            loop.reward("e", {"quality": 0.5}, rank=1) == "replaced", "the truth did not replace what was provisional"
        )
    with Store(place()) as store:
        loop = store.loop("router")
        require(loop.reward("e", {"quality": 0.25}) == "outranked", "a provisional part counts after the truth")
        state = loop.model().state
        require((state.n[0], state.b[0, 0]) == (1.0, 0.5 - 4.0 * 0.25), f"{state.b[0, 0]} was learned of its parts")
        require(loop.model().to_bytes() == _replayed(store, "router").to_bytes(), "parts: it is not the replay")
        try:
            loop.decide([1.0], event="e", weights={"cost": -4.0})
        except EventError:
            return
    raise AssertionError("an event was decided again for another dial")


def check_budgets_go_on(place: Place) -> None:
    """What was spent, and the price, are those of the rows, after a restart too; a hard total is never exceeded."""
    prices = {"a": 0.25, "b": 0.5, "c": 0.125}
    budget = Budget("cost", total=8.0, horizon=60, hard=True)
    spent = 0.0
    for part in range(3):
        with Store(place()) as store:
            how: dict[str, Any] = {
                "outcomes": {"quality": 1.0, "cost": 0.0},
                "known": {"cost": prices},
                "budget": budget,
            }
            loop = store.loop("router", arms=ARMS, dim=1, policy=LinUCB(), seed=5, **how)
            for i in range(20):
                with suppress(BudgetError):
                    decision = loop.decide([(i % 5) / 4], event=f"{part} {i}")
                    spent += prices[str(decision.arm)]
                    loop.reward(f"{part} {i}", {"quality": (i % 4) / 4})
            now, model = loop.stats().budget, loop.model().to_bytes()
            require(now and now.spent == spent, f"{now} is told to be spent, not {spent}")
            require(spent <= budget.total, f"{spent} was spent, more than a hard total of {budget.total}")
            require(model == _replayed(store, "router").to_bytes(), "budgets: the living one is not the replay")
    require(spent > 0.9 * budget.total, f"{spent} was spent of {budget.total}, though every arm costs something")


def _table(n: int, first: int = 0) -> ActionTable:
    """Return so many actions, by number."""
    return ActionTable(
        [f"a{i}" for i in range(first, first + n)], [[i % 3 / 2, i % 7] for i in range(first, first + n)]
    )


def check_actions_outlive_their_tables(place: Place) -> None:
    """A decision among actions is answered and learned after its table has changed, and after a restart too."""
    with Store(place()) as store:
        loop = store.loop("films", dim=1, action_dim=2, early_window=60.0, seed=5)
        loop.prepare("all", _table(50))
        first = loop.decide([0.5], actions="all", event="e")
        loop.prepare("all", _table(50).changed(add=_table(1, 90), remove=[first.arm]))
        require(loop.reward("early", 0.25) == "early", "a reward that came before its decision does not wait")
        loop.decide([0.25], actions=_table(3), event="early", defer=True, baseline="a2")
        for i in range(20):
            loop.decide([i / 20], actions=_table(3 + i % 4, i % 5) if i % 3 else "all", event=f"e{i}")
            loop.reward(f"e{i}", (i % 4) / 4)
    with Store(place()) as store:
        loop = store.loop("films")
        again = loop.decide([0.5], actions="all", event="e")
        require(again.to_dict() == first.to_dict(), "a decision has another answer since its table has changed")
        require("a90" in loop.tables()["all"], "a table has not the name that it was given last")
        require(first.arm not in loop.tables()["all"], "a table has an action that was removed")
        require(loop.reward("e", 1.0) == "accepted", "an action cannot be rewarded after it is gone")
        require(loop.model().state.n == 21, "a decision was learned that was not activated, or a reward is missing")
        require(loop.activate("early") and not loop.activate("early"), "a decision was not activated once")
        require(loop.model().state.n == 22, "a decision was not learned when it was activated")
        _require_events_of_tables(loop)
        digest = loop.model().digest()
        require(_replayed(store, "films").digest() == digest, "actions: the living one is not the replay")
        require(store.prune(2.0**33) == 22, "not all old decisions were pruned")
        loop.decide([0.5], actions="all", event="later")
        require(
            _replayed(store, "films").digest() == loop.model().digest(), "actions: it is not the replay once pruned"
        )
    with Store(place()) as store:
        require("a90" in store.loop("films").tables()["all"], "a table with a name is gone once others are pruned")


def _require_events_of_tables(loop: Loop) -> None:
    """Refuse an event that is asked for other actions."""
    for actions in (_table(4), _table(50).changed(remove=["a0"])):
        try:
            loop.decide([0.5], actions=actions, event="e")
        except EventError:
            continue
        raise AssertionError("an event was decided again among other actions")


def check_loops_go_on_after_a_failure(place: Place) -> None:
    """A transaction that fails is answered with a StoreError, and leaves what was there; the next one works."""
    failing = _Failing(place())
    with Store(failing) as store:
        failing.fails = True
        with suppress(StoreError):
            store.loop("homepage", arms=["other"], dim=1, policy=LinUCB(), window=9.0, default_reward=0.0)
        failing.fails = False
        require(store.loops == [], "a loop was kept in a transaction that failed")
        loop = store.loop("homepage", arms=ARMS, dim=2, policy=Algorithm1(p=30), seed=5)
        _play(store, "homepage", 0, 20)
        require(loop.model().state.n.sum() > 0, "a loop keeps to the terms of one that was not kept")
        before = loop.model().to_bytes()
        for call in (lambda: loop.decide([1.0, 0.0], event="new"), lambda: loop.reward("e3", 0.75)):
            failing.fails = True
            try:
                call()
            except StoreError:
                pass
            else:
                raise AssertionError("a call was answered though nothing was kept")
            failing.fails = False
            require(loop.model().to_bytes() == before, "a transaction that failed left something in memory")
        require(loop.decide([1.0, 0.0], event="new").t == 21, "a transaction that failed took a step of the clock")
        require(loop.model().to_bytes() == _replayed(store, "homepage").to_bytes(), "it did not recover")


class _Failing:
    """A ledger that can be told to fail at the end of each transaction."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger, self.fails = ledger, False
        self.failures, self.refusals = (*ledger.failures, OSError), ledger.refusals
        self.is_shared, self.size, self.head = ledger.is_shared, ledger.size, ledger.head
        self.newest, self.loops, self.rows, self.scrub = ledger.newest, ledger.loops, ledger.rows, ledger.scrub
        self.decided, self.backup, self.close = ledger.decided, ledger.backup, ledger.close
        self.view = ledger.view

    @contextmanager
    def session(self) -> Iterator[Session]:
        with self._ledger.session() as session:
            yield session
            if self.fails:
                raise OSError("no space left")


STORE_CHECKS: tuple[StoreCheck, ...] = (
    *LEDGER_CHECKS,
    check_state_is_what_the_rows_say,
    check_units_keep_their_arm,
    check_events_are_idempotent,
    check_rewards_count_once,
    check_parts_count_once,
    check_windows_close_once,
    check_budgets_go_on,
    check_actions_outlive_their_tables,
    check_loops_go_on_after_a_failure,
)


def check_store(new: Callable[[], Place]) -> None:
    """Run every check over a kind of ledger, each over one of its own.

    Parameters
    ----------
    new
        Gives a place where no ledger is yet: a function that opens it, the same one again after it was closed.

    Examples
    --------
    >>> from armlet.stores import Memory
    >>> from armlet.testing import check_store
    >>> def new():
    ...     ledger = Memory()
    ...     return lambda: ledger
    >>> check_store(new)
    """
    for check in STORE_CHECKS:
        check(new())
