"""A durable loop: decisions and rewards that outlive their process."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable

from armlet.bandit import Bandit
from armlet.errors import InvalidValueError, refusing
from armlet.inputs import columns
from armlet.inputs.columns import check_label, listed
from armlet.inputs.contexts import ContextReader
from armlet.kernel import Decision
from armlet.stores.ledger import Ledger
from armlet.stores.rewards import Reward, Status
from armlet.stores.rows import LoopLog
from armlet.stores.runner import LoopRunner
from armlet.stores.writer import Writer
from armlet.types import Arm, Context

LONGEST = 256  # characters of a name


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

    def __init__(self, runner: LoopRunner, reader: ContextReader, writer: Writer, ledger: Ledger) -> None:
        self._runner, self._reader, self._writer, self._ledger = runner, reader, writer, ledger

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self._runner.record.name

    @refusing()
    def decide(self, x: Context, *, event: str | None = None, eligible: Iterable[Arm] | None = None) -> Decision:
        """Choose an arm; durable on return.

        Parameters
        ----------
        x
            The context.
        event
            A name for the decision, by which it is rewarded; that of `decision.id` if left out. Asked again with the
            same context and eligible arms, it is answered the same again, and no step of the clock is taken; with
            others, it is refused with an EventError.
        eligible
            The arms that may be played this time; all that are not retired if left out.
        """
        name = None if event is None else check_text("event", event)
        row = self._reader.row(x).copy()  # the caller may change his own while this waits
        arms = None if eligible is None else [check_label(arm) for arm in listed("eligible", eligible)]
        return self._writer.do(lambda tx, now: self._runner.decide(tx, now, row, name, arms), self._runner)

    @refusing()
    def reward(self, event: str, value: float, *, name: str | None = None, rank: int = 0) -> Status:
        """Record a reward; durable on return. Rewards may arrive in any order, repeatedly or never.

        Parameters
        ----------
        event
            The name of the decision, or its `id` if it was given none.
        value
            The reward; a cost if the objective is "min".
        name
            A name for this reward, unique within its decision, such as the id of the message that brings it. One that
            has counted before is a duplicate, regardless of its value, so that retries are safe with any aggregation.
        rank
            How far it can be trusted, 0 or more. Only rewards of the highest rank reported so far count, and the
            aggregation says which of these: the truth replaces a provisional reward, never the reverse.

        Returns
        -------
        str
            "accepted": it counts. "duplicate": it was reported before. "conflict": another value was reported before,
            and stays. "outranked": a reward of a higher rank was reported before, and stays. "replaced": it counts
            instead of an earlier one. "late": the window had closed, and it counts instead of what was learned then.
            "unknown": there is no such event. "out_of_range": the loop takes no such values.

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
        of = check_text("event", event)
        told = Reward(columns.reward(value, "value"), None if name is None else check_text("name", name), rank)
        return self._writer.do(lambda tx, now: self._runner.reward(tx, now, of, told), self._runner)

    @refusing()
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
        names = [check_text("event", event) for event in events]
        return self._writer.maintain(self._runner.forgetting(names), scrubs=True)

    def add_arm(self, arm: Arm) -> None:
        """Add an arm without data."""
        self._change("add_arm", arm)

    def retire_arm(self, arm: Arm) -> None:
        """Stop playing an arm; its data is kept, and its late rewards are learned."""
        self._change("retire_arm", arm)

    def restore_arm(self, arm: Arm) -> None:
        """Play a retired arm again."""
        self._change("restore_arm", arm)

    @refusing()
    def _change(self, kind: str, arm: Arm) -> None:
        label = check_label(arm)
        self._writer.do(lambda tx, now: self._runner.change(tx, now, kind, label), self._runner)

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
        record = next((each for each in self._ledger.loops() if each.name == self.name), self._runner.record)
        return LoopLog(self._ledger, record, self._runner.policy)

    @refusing()
    def model(self) -> Bandit:
        """Return a copy of the bandit, with all windows closed that are due: to predict with, to save, to inspect."""
        return self._writer.maintain(self._runner.copying())

    def __repr__(self) -> str:
        return f"<Loop {self.name!r}>"


def check_text(argument: str, value: object) -> str:
    """Return a name, or refuse what is not one.

    Examples
    --------
    >>> check_text("event", "")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: event is ''; give text of 1 to 256 characters
    """
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST:
        raise InvalidValueError(f"{argument} is {reprlib.repr(value)}; give text of 1 to {LONGEST} characters")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidValueError(f"{argument} is {value!r}; give text that can be written as UTF-8") from error
    return value
