"""A loop as its users hold it: decisions, rewards and changes from any thread or event loop, durable on return."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Unpack, cast, overload

from armlet.bandit import Bandit
from armlet.cast.cast import Cast
from armlet.errors import (
    ArmletError,
    InvalidTypeError,
    LoopGoneError,
    LostDigitsWarning,
    StoreError,
    refusing,
)
from armlet.inputs.ask import ACTIONS, MANY, OPTIONS, REPORT, Ask, AskMany, Report
from armlet.inputs.columns import check_label, check_text, listed
from armlet.inputs.options import taking, with_options
from armlet.inputs.settings import HUGE, chance, number
from armlet.kernel import Decision
from armlet.report.notebook import fragment, note
from armlet.stores import choosing, maintenance
from armlet.stores.asking import Asking, reward_of, rewarding, rewarding_many
from armlet.stores.gains import Gain
from armlet.stores.health import Alarm
from armlet.stores.ledger import Ledger, Moment
from armlet.stores.overview import Details, Glimpse, alarms_of, details_of, glimpse, last_decisions
from armlet.stores.promotion import Gate, Promotion, check_gate
from armlet.stores.refit import Refit
from armlet.stores.rewards import Status, Value
from armlet.stores.rows.log import LoopLog
from armlet.stores.runner import LoopRunner
from armlet.stores.spec import LIVE, LoopChange
from armlet.stores.stats import Stats
from armlet.stores.transaction import Draft, Transaction
from armlet.stores.writer import Writer
from armlet.types import Arm, Context, Contexts, Policy

if TYPE_CHECKING:
    from armlet.actions.bandit import Actions
    from armlet.actions.decision import ActionDecision
    from armlet.actions.table import ActionTable
    from armlet.inputs.settings import Reader

NEVER: Final = 2**63 - 1  # in steady time

log = logging.getLogger("armlet.store")


class Loop:
    """Decide and reward from any thread; `Store.loop` makes it.

    Examples
    --------
    >>> import armlet
    >>> with armlet.open_store("shop.db") as store:
    ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
    ...     decision = loop.decide([1.0], event="order-17")
    ...     loop.reward("order-17", 1.0), loop.reward("order-17", 1.0), loop.reward("order-18", 0.0)
    ('accepted', 'duplicate', 'unknown')
    >>> with armlet.open_store("shop.db") as store:  # later, in another process
    ...     loop = store.loop("homepage")
    ...     loop.decide([1.0], event="order-17").id == decision.id, loop.reward("order-17", 0.5)
    (True, 'conflict')
    """

    def __init__(self, runner: LoopRunner, writer: Writer, ledger: Ledger) -> None:
        self._runner, self._writer, self._ledger = runner, writer, ledger
        self._asking = Asking(runner, writer, is_shared=ledger.is_shared)

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self._runner.name

    @property
    def reader(self) -> Reader:
        """What reads its contexts, with the features that it has now."""
        return self._asking.reader()

    @property
    def action_reader(self) -> Reader | None:
        """What reads the features of its actions; None for a loop with arms."""
        settings = self._runner.action_settings
        return None if settings is None else settings.action_reader

    # ---- decisions

    @overload
    def decide(self, x: Context, actions: None = None, **ask: Unpack[Ask]) -> Decision: ...
    @overload
    def decide(self, x: Context | None, actions: Actions, **ask: Unpack[Ask]) -> ActionDecision: ...
    @with_options(OPTIONS, x="The context.", actions=ACTIONS)
    def decide(
        self, x: Context | None, actions: Actions | None = None, **ask: Unpack[Ask]
    ) -> Decision | ActionDecision:
        """Choose an arm, or an action; durable on return. Its propensity is marginal: over all coins.

        Parameters
        ----------
        {options}

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     outcomes = {"quality": 1.0, "cost": -40.0}
        ...     loop = store.loop("router", arms=["small", "large"], dim=1, outcomes=outcomes, seed=1)
        ...     decision = loop.decide([0.5], event="order-17", weights={"cost": -400.0})
        ...     loop.reward("order-17", {"cost": 0.002}), loop.reward("order-17", {"quality": 0.9})
        ...     decision.weights, int(loop.model().state.n.sum())
        ('accepted', 'accepted')
        ({'quality': 1.0, 'cost': -400.0}, 1)
        """
        return self._asking.call(self._asking.one(x, actions, ask))

    @overload
    async def adecide(self, x: Context, actions: None = None, **ask: Unpack[Ask]) -> Decision: ...
    @overload
    async def adecide(self, x: Context | None, actions: Actions, **ask: Unpack[Ask]) -> ActionDecision: ...
    @with_options(OPTIONS)
    async def adecide(
        self, x: Context | None, actions: Actions | None = None, **ask: Unpack[Ask]
    ) -> Decision | ActionDecision:
        """Choose an arm, or an action, as `decide` does, without a thread that waits."""
        return await self._asking.acall(self._asking.one(x, actions, ask))

    @overload
    def decide_many(self, X: Contexts, actions: None = None, **ask: Unpack[AskMany]) -> list[Decision]: ...
    @overload
    def decide_many(
        self, X: Contexts, actions: Actions | list[Actions], **ask: Unpack[AskMany]
    ) -> list[ActionDecision]: ...
    @with_options(MANY)
    def decide_many(
        self, X: Contexts, actions: Actions | list[Actions] | None = None, **ask: Unpack[AskMany]
    ) -> list[Decision] | list[ActionDecision]:
        """Choose for many contexts in one transaction, all or none: the same decisions as one by one.

        Parameters
        ----------
        X
            One context a row, 10,000 at most.
        actions
            As in `decide`, for all of them; or a list of tables or of names, one for each decision.
        **ask
            The options of `decide`. Those in the plural have one value for each decision, or None; all decisions share
            the others.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
        ...     decisions = loop.decide_many([[1.0], [0.5]], events=["order-1", "order-2"])
        ...     loop.reward_many([("order-1", 1.0), ("order-2", 0.0), ("order-3", 0.0)])
        ['accepted', 'accepted', 'unknown']
        """
        return self._asking.call(self._asking.many(X, actions, ask))

    @overload
    async def adecide_many(self, X: Contexts, actions: None = None, **ask: Unpack[AskMany]) -> list[Decision]: ...
    @overload
    async def adecide_many(
        self, X: Contexts, actions: Actions | list[Actions], **ask: Unpack[AskMany]
    ) -> list[ActionDecision]: ...
    @with_options(MANY)
    async def adecide_many(
        self, X: Contexts, actions: Actions | list[Actions] | None = None, **ask: Unpack[AskMany]
    ) -> list[Decision] | list[ActionDecision]:
        """Choose for many contexts, as `decide_many` does, without a thread that waits."""
        return await self._asking.acall(self._asking.many(X, actions, ask))

    # ---- actions

    def prepare(self, name: str, actions: Actions) -> ActionTable:
        """Give a table of actions a name, by which decisions of any process are made among them; durable on return.

        Parameters
        ----------
        name
            What to call it; a table that had this name before is no longer called so. Decisions that were made among
            its actions are learned all the same, and asked again are answered the same.
        actions
            As in `decide`. If few have changed, only these are written.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("films", dim=1, action_dim=2, seed=1)
        ...     films = loop.prepare("all", {"Alien": [1.0, 0.5], "Heat": [0.0, 1.5]})
        ...     first = loop.decide([31.0], actions="all", event="visit-17")
        ...     _ = loop.prepare("all", films.changed(remove=["Heat"]))
        ...     loop.decide([31.0], actions="all").arm, loop.reward("visit-17", 1.0), loop.tables()
        ('Alien', 'accepted', {'all': <ActionTable of 1 actions with 2 features: 'Alien'>})
        """
        called = check_text("name", name)
        if isinstance(actions, str):
            raise InvalidTypeError(f"actions is {actions!r}, the name of a table; give its actions")
        table = self._asking.call(lambda: self._asking.preparing(called, actions))
        log.info("loop %s: %d actions prepared as %s", self.name, len(table), called)
        return table

    def remove_table(self, name: str) -> None:
        """Remove a table that was prepared, for all processes; durable on return.

        Decisions that were made among its actions are learned all the same, and asked again are answered the same.
        """
        called = check_text("name", name)
        self._writer.call(
            self._runner, lambda _, draft, now: choosing.remove_table(self._runner, draft, now, called), size=1
        )
        log.info("loop %s: table %s removed", self.name, called)

    def tables(self) -> dict[str, ActionTable]:
        """Return the tables of actions that were prepared, by name."""
        return self._writer.call(
            self._runner, lambda tx, draft, _: choosing.named_tables(self._runner, tx, draft), size=0
        )

    def activate(self, event: str) -> bool:
        """Let a decision that was deferred count, since its action is shown; return whether it was deferred until now.

        Its window begins now, with the rewards that have come before; without a window these are learned now. Asked
        again, or for a decision that was never deferred, nothing happens. An event that there is not is refused with
        an EventError.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("films", dim=1, action_dim=1, seed=1)
        ...     _ = loop.decide([31.0], actions={"Alien": [1.0], "Heat": [0.0]}, event="visit-17", defer=True)
        ...     reward, before = loop.reward("visit-17", 1.0), loop.model().state.n
        ...     reward, before, loop.activate("visit-17"), loop.activate("visit-17"), loop.model().state.n
        ('accepted', 0.0, True, False, 1.0)
        """
        name = check_text("event", event)
        return self._writer.call(self._runner, choosing.activating(self._runner, name), (name,))

    async def aactivate(self, event: str) -> bool:
        """Let a decision count that was deferred, as `activate` does, without a thread that waits."""
        name = check_text("event", event)
        return await self._writer.acall(self._runner, choosing.activating(self._runner, name), (name,))

    # ---- rewards

    @with_options(REPORT)
    def reward(self, event: str, value: Value, **report: Unpack[Report]) -> Status:
        """Record a reward; durable on return. Rewards may arrive in any order, repeatedly or never.

        Parameters
        ----------
        event
            The name of the decision, or its `id` if it was given none.
        value
            The reward; a cost if the objective is "min". Of a loop with outcomes, a mapping of one or more of them:
            each is a reward of its own, with names, a rank and an aggregation of its own, and the row is learned when
            all that are learned are there.
        {options}

        Returns
        -------
        str
            "accepted": it counts. "duplicate": it was reported before. "conflict": another value was reported before,
            and stays. "outranked": a reward of a higher rank was reported before, and stays. "replaced": it counts
            instead of an earlier one. "late": the window had closed, and it counts instead of what was learned then.
            "counted": it is kept, but not learned, since another arm was played. "early": there is no such event yet,
            and the loop lets rewards wait. "unknown": there is no such event. "out_of_range": the loop takes no such
            values. Of several outcomes: "out_of_range" if one of them is, and then none counts; else the first of
            "accepted", "late", "replaced", "conflict", "outranked", "duplicate" that one of them is.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("checkout", arms=["a", "b"], dim=1, aggregation="last", seed=1)
        ...     _ = loop.decide([1.0], event="order-17")
        ...     click = loop.reward("order-17", 0.1, name="click")
        ...     paid = loop.reward("order-17", 1.0, name="paid", rank=1)
        ...     click, paid, loop.reward("order-17", 0.1, name="click"), loop.reward("order-17", 0.3, name="scroll")
        ('accepted', 'replaced', 'duplicate', 'outranked')
        """
        with refusing():
            pair = reward_of(event, value, report)
        return self._writer.call(*rewarding(self._runner, *pair))

    @with_options(REPORT)
    async def areward(self, event: str, value: Value, **report: Unpack[Report]) -> Status:
        """Record a reward, as `reward` does, without a thread that waits."""
        with refusing():
            pair = reward_of(event, value, report)
        return await self._writer.acall(*rewarding(self._runner, *pair))

    def reward_many(self, rewards: Iterable[tuple[str, Value] | Mapping[str, Any]]) -> list[Status]:
        """Record many rewards in one transaction; return what became of each.

        Parameters
        ----------
        rewards
            Pairs of an event and a value, or mappings with the arguments of `reward`: event, value, name, rank, played.
            10,000 at most.
        """
        with refusing():
            call = rewarding_many(self._runner, rewards)
        return self._writer.call(self._runner, *call)

    async def areward_many(self, rewards: Iterable[tuple[str, Value] | Mapping[str, Any]]) -> list[Status]:
        """Record many rewards, as `reward_many` does, without a thread that waits."""
        with refusing():
            call = rewarding_many(self._runner, rewards)
        return await self._writer.acall(self._runner, *call)

    def bill(self, event: str, cost: float) -> bool:
        """Count what a decision costs in the budget, and learn nothing from it; return whether there is one.

        A cost of 0 releases what a hard budget keeps back for it. A later bill or cost takes its place.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     budget = armlet.Budget("cost", total=5.0, horizon=100, hard=True)
        ...     how = {"outcomes": {"quality": 1.0, "cost": 0.0}, "reward_range": {"cost": (0, 5)}, "budget": budget}
        ...     loop = store.loop("router", arms=["small", "large"], dim=1, seed=1, **how)
        ...     _ = loop.decide([0.5], event="order-17")
        ...     loop.bill("order-17", 0.0), loop.decide([0.5], event="order-18").t
        (True, 2)
        """
        with refusing():
            name, amount = check_text("event", event), cast(float, number(-HUGE)("cost", cost)) + 0.0
        return self._writer.call(
            self._runner, lambda tx, draft, now: self._runner.bill(tx, draft, now, name, amount), (name,)
        )

    # ---- forgetting, arms and changes

    def forget(self, event: str) -> bool:
        """Unlearn a decision and delete all about it; return whether there was one.

        What remains is the step, the arm and its probability: its context, its event and its rewards are overwritten
        in the store's files on return. Where SQLite has moved rows between pages before, a copy may stay in the unused
        part of a page until the file is vacuumed. Unlearning is exact but for rounding; the rows before are no longer
        needed to rebuild the state, which goes on from a model. Backups are not touched.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
        ...     _ = loop.decide([1.0], event="order-17")
        ...     _ = loop.reward("order-17", 1.0)
        ...     loop.forget("order-17"), loop.reward("order-17", 1.0), loop.model().state.n.sum()
        (True, 'unknown', np.float64(0.0))
        """
        return self.forget_many([event]) == 1

    def forget_many(self, events: Iterable[str]) -> int:
        """Forget many decisions, in slices between which other calls are served; return how many there were.

        Calls of several threads share what takes longest: to clear the store's files of what was deleted. If it is
        broken off by an error, some are forgotten; ask again for all of them.
        """
        with refusing():
            names = [check_text("event", event) for event in listed("events", events)]
        losses: list[str] = []
        chore = maintenance.forgetting(self._runner, names, losses)
        found = self._writer.maintain(chore, self._runner, scrubs=True)
        if losses and (why := self._mend()):
            warnings.warn(why, LostDigitsWarning, stacklevel=3)
        return found

    def _mend(self) -> str:
        """Learn all rows that are left again, if sums have lost digits; return why that cannot be done."""
        with self._runner.mending:
            loss = self._writer.do(partial(maintenance.keep_losses, self._runner), deadline=None)
            if not loss:
                return ""
            try:
                self.change(policy=self.model().policy, how="refit")
            except ArmletError as error:
                return f"{loss}; the loop cannot learn its rows again: {error}"
        log.warning("loop %s: %s; its rows were learned again", self.name, loss)
        return ""

    def add_arm(self, arm: Arm, *, known: Mapping[str, float] | None = None) -> None:
        """Add an arm without data; with what is `known` of it, by outcome, where there are such ones."""
        if known is not None and not isinstance(known, Mapping):
            raise InvalidTypeError(
                f"known is {known!r}; give what is known of the arm by outcome, such as {{'cost': 0.03}}"
            )
        with refusing():
            label, prices = check_label(arm), dict(known or {})
        self._writer.do(lambda tx, now: maintenance.add_arm(self._runner, tx, now, label, prices))

    def retire_arm(self, arm: Arm) -> None:
        """Stop playing an arm; its data is kept, and its late rewards are learned."""
        self._change_arm("retire_arm", arm)

    def restore_arm(self, arm: Arm) -> None:
        """Play a retired arm again."""
        self._change_arm("restore_arm", arm)

    def _change_arm(self, kind: str, arm: Arm) -> None:
        with refusing():
            label = check_label(arm)
        self._writer.do(lambda tx, now: maintenance.add_rows(self._runner, tx, now, [(kind, label)]))

    @taking(LoopChange, "change")
    def change(self, change: LoopChange) -> bool:
        """Change options of the loop, all of them or none; what is not said stays, and so does what was learned.

        It is a row of the log. Windows that are open keep their end; what closes later has the default of then, or the
        last one there was.

        Parameters
        ----------
        {options}

        Returns
        -------
        bool
            Whether anything changed. A call that asks for what the loop has already writes no row.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], features=["age"], policy=armlet.LinUCB(), seed=1)
        ...     loop.change(features=["age", "visits"], window=60.0, default_reward=0.0)
        ...     loop.change(features=["age", "visits"], window=60.0)
        ...     loop.decide({"age": 31, "visits": 2}).x
        ...     _ = loop.change(control=armlet.stores.Control(arm="a", share=0.25))
        ...     loop.decide({"age": 31, "visits": 2}, probabilities="all").probabilities
        True
        False
        array([31.,  2.])
        array([0.625, 0.375])
        """
        if change.is_empty:
            raise InvalidTypeError("change got nothing to change; give policy, window, features, arms or the like")
        refits = self._refits(change) if change.how == "refit" else None
        is_other = self._writer.do(lambda tx, now: maintenance.change(self._runner, tx, now, change, refits))
        log.info("loop %s: %s %s", self.name, "changed" if is_other else "had already", ", ".join(change.names))
        return is_other

    def _refits(self, change: LoopChange) -> dict[str, Refit]:
        """Let each policy that is given learn the log."""
        policies: dict[str, Policy | None] = {LIVE: None} if not change.learners else {**change.learners}
        refits = {
            role: Refit(self._ledger, self._runner.id, policy, self._runner.policy) for role, policy in policies.items()
        }
        for refit in refits.values():
            refit.prepare()
        return refits

    def freeze(self) -> None:
        """Let the policy decide from what it knows now; what rewards teach from now on waits for `thaw`.

        Rewards are learned and logged as ever, by a copy that decides nothing. Frozen twice is frozen once.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
        ...     loop.freeze()
        ...     _ = loop.decide([1.0], event="order-17")
        ...     _ = loop.reward("order-17", 1.0)
        ...     before = loop.model().state.n.sum()
        ...     loop.thaw()
        ...     before, loop.model().state.n.sum()
        (np.float64(0.0), np.float64(1.0))
        """
        if self._writer.do(lambda tx, now: maintenance.recast(self._runner, tx, now, Cast.frozen)):
            log.info("loop %s: frozen", self.name)

    def thaw(self) -> None:
        """Go on with all that was learned while the loop was frozen; nothing happens if it is not."""
        if self._writer.do(lambda tx, now: maintenance.recast(self._runner, tx, now, Cast.thawed)):
            log.info("loop %s: thawed", self.name)
            if why := self._mend():  # a frozen loop does not learn its rows again
                warnings.warn(why, LostDigitsWarning, stacklevel=2)

    def promote(self, *, gate: Gate = "better", control: float | None = None, shadow: str | None = None) -> Promotion:
        """Let a shadow play from now on, if it passes the gate; else nothing changes. One transaction.

        Parameters
        ----------
        gate
            "better": only if its comparison with the live policy says "yes", at whatever moment that is asked.
            "not worse": unless it says "no". "off": in any case.
        control
            The share of the steps that the policy so far plays from then on, as a control, instead of any other; None
            for none. The control that there is stays it then.
        shadow
            The name of the shadow; may be left out where there is only one. The others stay.

        Returns
        -------
        Promotion
            Whether it was promoted, and the gain of the shadow over the live policy that the gate was shown.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.FixedEpsilon(epsilon=0.2), seed=1)
        ...     _ = loop.change(shadow=armlet.LinUCB(), how="refit")
        ...     _ = loop.decide([1.0], event="order-17")
        ...     loop.promote().promoted, loop.promote(gate="off", control=0.1).promoted, type(loop.model().policy)
        (False, True, <class 'armlet.policies.linucb.LinUCB'>)
        """
        with refusing():
            check_gate(gate)
            if control is not None:
                fix = "give the share of steps that the policy so far plays, above 0 and below 1"
                chance(fix=fix)("control", control)
        done = self._writer.do(lambda tx, now: maintenance.promote(self._runner, tx, now, gate, control, shadow))
        if done.promoted:
            log.info("loop %s: shadow promoted", self.name)
        return done

    # ---- what there is to see

    @property
    def log(self) -> LoopLog:
        """The events of the loop as a log, for every reader of an `armlet.Log`.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
        ...     _ = loop.decide([1.0], event="order-17")
        ...     _ = loop.reward("order-17", 0.5)
        ...     [event["kind"] for event in loop.log], armlet.audit(loop.log.replayable, loop.log.start).ok
        (['start', 'decide', 'learn'], True)
        """
        record = next((each for each in self._ledger.loops() if each.id == self._runner.id), None)
        if record is None or self._runner.is_gone:
            raise LoopGoneError(f"there is no loop {self.name!r} any more; make it again, with arms")
        return LoopLog(self._ledger, record, self._runner.policy)

    def model(self) -> Bandit:
        """Return a copy of the bandit, with all windows closed that are due: to predict with, to save, to inspect.

        It is the one that decides: without a control or shadow, and as it was frozen, if it was. Of a loop with actions
        it is an `armlet.ActionBandit`, without the tables that were prepared: those are `tables`.
        """
        return self._writer.maintain(maintenance.copying(self._runner), self._runner)

    def stats(self) -> Stats:
        """Return counts: decisions, rewards by status, what waits, arms and their means; in constant time."""
        size = self._ledger.size()
        return self._writer.call(self._runner, lambda tx, _, now: self._stats(tx, now, size), size=0)

    def _stats(self, tx: Transaction, now: Moment, size: int) -> Stats:
        runner = self._runner
        oldest = tx.session.due(runner.id, NEVER, 1) if runner.terms.has_windows else ()
        return Stats.of(
            self.name,
            runner.tally,
            now.wall,
            oldest_open_at=oldest[0].row.ts if oldest else None,
            rows_since_snapshot=runner.rows_since_snapshot,
            size=size,
            spending=getattr(runner.bandit, "budget", None),  # where actions come with each decision there is none
            ranges=None if runner.reader is None else runner.reader.ranges,
        )

    def health(self) -> list[Alarm]:
        """Return what is wrong with the loop, in words; nothing if it is well. In constant time.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
        ...     loop.health()
        []
        """
        return self._writer.call(self._runner, self._health, size=0)

    def _health(self, _: Transaction, __: Draft, now: Moment) -> list[Alarm]:
        return alarms_of(self._runner.tally, now.wall, self._runner.bandit.settings, self._runner.terms)

    def version(self) -> tuple[int, int]:
        """Return its last row and its epoch: another pair if anything has changed. Reads one row, and locks nothing."""
        head = self._ledger.head(self._runner.id)
        if head is None:
            raise LoopGoneError(f"there is no loop {self.name!r} any more; make it again, with arms")
        return head.seq, head.epoch

    def details(self) -> Details:
        """Return all there is to see of the loop: what it gains, explores and lacks, its arms and last decisions.

        It costs the same after a thousand decisions and after ten million.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.FixedEpsilon(epsilon=0.1), seed=1)
        ...     for _ in range(50):
        ...         decisions = loop.decide_many([[1.0]] * 10)
        ...         _ = loop.reward_many([(each.id, float(each.arm == "b")) for each in decisions])
        ...     found = loop.details()
        >>> found.gains[0].answer, found.exploring.explored, found.by_arm[1].rewards
        ('yes', 51, 474)
        """
        return details_of(self._writer.call(self._runner, self._glimpse))

    def _glimpse(self, tx: Transaction, draft: Draft, now: Moment) -> Glimpse:
        """Return what details are made of; the last decisions are read by their numbers."""
        tx.flush()
        runner, tally = self._runner, self._runner.tally
        rows = tx.session.pick(runner.id, list(tally.traffic.last_rows))
        events = [row.fields["event"] for row in rows if "event" in row.fields]
        outcomes = (decided.pending for decided in tx.session.decided(runner.id, events))
        values = {pending.seq: pending.reward for pending in outcomes if pending.reward is not None}
        counts, last = (draft.entered.head.early, runner.rows_since_snapshot), last_decisions(rows, values)
        return glimpse(self.name, now.wall, tally, runner.terms, runner.bandit, last, counts)

    def gains(self) -> tuple[Gain, ...]:
        """Return whether the live policy is better than random play and than the control, and each shadow than it.

        The answers hold at all looks together, with probability 0.95 each. They need a share of decisions that explore
        or that a control plays; where there is none, they say which share would answer, and by when.
        """
        return self.details().gains

    def __repr__(self) -> str:
        return self._runner.text()

    def _repr_html_(self) -> str:
        try:
            return self.details()._repr_html_()
        except StoreError as error:  # closed or deleted, for instance
            return fragment(repr(self), note(str(error)))
