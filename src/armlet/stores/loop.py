"""A durable loop: decisions and rewards that outlive their process."""

from __future__ import annotations

from collections.abc import Iterable

from armlet.bandit import Bandit
from armlet.errors import refusing
from armlet.inputs import columns
from armlet.inputs.columns import check_label, listed
from armlet.inputs.contexts import ContextReader
from armlet.kernel import Decision
from armlet.stores.events import LoopLog
from armlet.stores.ledger import Ledger
from armlet.stores.player import Player
from armlet.stores.rewards import LONGEST, Status, Told, check_text
from armlet.stores.writer import Writer
from armlet.types import Arm, Context


class Loop:
    """Decide and reward from any thread; `Store.loop` makes it.

    Examples
    --------
    >>> import armlet
    >>> with armlet.open("shop.db") as store:
    ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
    ...     decision = loop.decide([1.0], event="order-17")
    ...     loop.reward("order-17", 1.0), loop.reward("order-17", 1.0), loop.reward("order-18", 0.0)
    ('accepted', 'duplicate', 'unknown')
    >>> with armlet.open("shop.db") as store:  # later, in another process
    ...     loop = store.loop("homepage")
    ...     loop.decide([1.0], event="order-17").id == decision.id, loop.reward("order-17", 0.5)
    (True, 'conflict')
    """

    def __init__(self, player: Player, reader: ContextReader, writer: Writer, ledger: Ledger) -> None:
        self._player, self._reader, self._writer, self._ledger = player, reader, writer, ledger

    @property
    def name(self) -> str:
        """Its name in the store."""
        return self._player.kept.name

    @refusing()
    def decide(self, x: Context, *, event: str | None = None, eligible: Iterable[Arm] | None = None) -> Decision:
        """Choose an arm; the answer is on disk when it comes.

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
        name = None if event is None else check_event(event)
        row = self._reader.row(x).copy()  # the caller may change his own while this waits
        arms = None if eligible is None else [check_label(arm) for arm in listed("eligible", eligible)]
        return self._writer.do(lambda pen, now: self._player.decide(pen, now, row, name, arms), self._player)

    @refusing()
    def reward(self, event: str, value: float, *, name: str | None = None, rank: int = 0) -> Status:
        """Tell what a decision earned, in any order, once, twice or never; it is on disk when the answer comes.

        Parameters
        ----------
        event
            The name of the decision, or its `id` if it was given none.
        value
            The reward; a cost if the objective is "min".
        name
            A name for this reward, unique within its decision, such as the id of the message that brings it. One that
            has counted before is a duplicate, whatever its value, so that retries are safe with any aggregation.
        rank
            How much it is to be believed, 0 or more. Only rewards of the highest rank told so far count, and the
            aggregation says which of these: the truth replaces a provisional reward, never the reverse.

        Returns
        -------
        str
            "accepted": it counts. "duplicate": it was told before. "conflict": another value was told before, and
            stays. "outranked": a reward of a higher rank was told before, and stays. "replaced": it counts instead of
            what was told before. "late": the window had closed, and it counts instead of what was learned then.
            "unknown": there is no such event. "out_of_range": the loop takes no such values.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open("shop.db") as store:
        ...     loop = store.loop("checkout", arms=["a", "b"], dim=1, aggregation="last", seed=1)
        ...     _ = loop.decide([1.0], event="order-17")
        ...     click = loop.reward("order-17", 0.1, name="click")
        ...     paid = loop.reward("order-17", 1.0, name="paid", rank=1)
        ...     click, paid, loop.reward("order-17", 0.1, name="click"), loop.reward("order-17", 0.3, name="scroll")
        ('accepted', 'replaced', 'duplicate', 'outranked')
        """
        of = check_event(event)
        told = Told(columns.reward(value, "value"), name, rank)
        return self._writer.do(lambda pen, now: self._player.reward(pen, now, of, told), self._player)

    @refusing()
    def forget(self, event: str) -> bool:
        """Take back what was learned from a decision and delete all about it; tell whether there was one.

        What remains is the step, the arm and its probability: its context, its event and its rewards are overwritten
        in the store's files on return. Where SQLite has moved rows between pages before, a copy may stay in the unused
        part of a page until the file is vacuumed. Unlearning is exact but for rounding; the rows before are needed no
        more to make the state again, which goes on from a model. Backups are yours to care for.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open("shop.db") as store:
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
        names = [check_event(event) for event in events]
        return self._writer.maintain(self._player.forgetting(names), scrubs=True)

    def add_arm(self, arm: Arm) -> None:
        """Add an arm of which nothing is known yet."""
        self._change("add_arm", arm)

    def retire_arm(self, arm: Arm) -> None:
        """Play an arm no more, but keep what is known of it and learn its late rewards."""
        self._change("retire_arm", arm)

    def restore_arm(self, arm: Arm) -> None:
        """Play a retired arm again."""
        self._change("restore_arm", arm)

    @refusing()
    def _change(self, kind: str, arm: Arm) -> None:
        label = check_label(arm)
        self._writer.do(lambda pen, now: self._player.change(pen, now, kind, label), self._player)

    @property
    def log(self) -> LoopLog:
        """What happened, as a log: whatever evaluates an `armlet.Log` evaluates a loop.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8), seed=1)
        ...     _ = loop.decide([1.0], event="order-17")
        ...     _ = loop.reward("order-17", 0.5)
        ...     [event["kind"] for event in loop.log], armlet.audit(loop.log.replayable, loop.log.start).ok
        (['start', 'decide', 'learn'], True)
        """
        kept = next((each for each in self._ledger.loops() if each.name == self.name), self._player.kept)
        return LoopLog(self._ledger, kept, self._player.policy)

    @refusing()
    def model(self) -> Bandit:
        """Give a copy of the bandit, windows that have closed by now included: to predict with, to save, to look at."""
        return self._writer.maintain(self._player.copying())

    def __repr__(self) -> str:
        return f"<Loop {self.name!r}>"


def check_event(event: object) -> str:
    """Return the name of an event."""
    return check_text("event", event, LONGEST)
