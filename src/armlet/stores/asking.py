"""What callers ask of a loop: their arguments, checked and read, as work for a transaction.

Contexts are read in the caller's thread with the features that the loop has then, and again if these have changed by
the time the thread that writes comes to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from armlet.actions.decision import ActionDecision
from armlet.actions.table import ActionTable
from armlet.errors import InvalidTypeError, InvalidValueError, StoreError, refusing
from armlet.inputs import columns
from armlet.inputs.ask import REPORT, Ask, AskMany, Asks, Report, read, read_many, read_report
from armlet.inputs.columns import check_text, listed
from armlet.kernel import Decision
from armlet.stores import choosing
from armlet.stores.choosing import Actions, Choice
from armlet.stores.ledger import Moment
from armlet.stores.rewards import Reward, Status, Value
from armlet.stores.runner import LoopRunner
from armlet.stores.transaction import ContextChangedError, Draft, Transaction, Work
from armlet.stores.writer import Writer
from armlet.types import Contexts

if TYPE_CHECKING:
    from armlet.actions.bandit import Actions as TableSource
    from armlet.actions.settings import ActionSettings
    from armlet.inputs.settings import Reader

MOST: Final = 10_000  # calls of a batch
TRIES: Final = 5  # of a call whose loop changes meanwhile
WORDS: Final = f"event, value and perhaps {', '.join(REPORT)}"
PARTS: Final = frozenset(("event", "value", *REPORT))

T = TypeVar("T")
Call: TypeAlias = tuple[Work[T], Sequence[str], int]
"""What to do in a transaction, the events to look up for it, and for how many calls it counts."""
Rewarding: TypeAlias = tuple[LoopRunner, Work[Status], Sequence[str]]


# ---- decisions


class Asking:
    """Asks a loop for decisions."""

    def __init__(self, runner: LoopRunner, writer: Writer, *, is_shared: bool) -> None:
        self._runner, self._writer, self._is_shared = runner, writer, is_shared

    @refusing()
    def one(self, x: Any, actions: TableSource | None, ask: Ask) -> Callable[[], Call[Decision | ActionDecision]]:
        """Read the options of a decision; return what reads its context as the loop is then, and decides."""
        options, runner = read(ask, has_actions=actions is not None), self._runner
        event = options.get("event")
        events = () if event is None else (event,)

        def among_arms() -> Call[Decision | ActionDecision]:
            reader = self.reader()
            row = reader.row(x).copy()  # the caller may change his own while this waits
            return lambda tx, draft, now: runner.decide(tx, draft, now, row, options, reader), events, 1

        def among_actions() -> Call[Decision | ActionDecision]:
            choice = Choice(choosing.context_of(self._settings(), x), self.table(actions), options)
            return lambda tx, draft, now: choosing.decide(runner, tx, draft, now, choice), events, 1

        return among_arms if actions is None else among_actions

    @refusing()
    def many(
        self, X: Contexts, actions: TableSource | list[TableSource] | None, ask: AskMany
    ) -> Callable[[], Call[list[Decision] | list[ActionDecision]]]:
        """Read the options of many decisions; return what reads their contexts as the loop is then, and decides."""
        asks, runner = read_many(ask, has_actions=actions is not None), self._runner
        events = [event for event in asks.own.get("event", ()) if isinstance(event, str)]

        def among_arms() -> Call[list[Decision] | list[ActionDecision]]:
            reader = self.reader()
            rows = reader.matrix(X).copy()
            each = _some(asks, len(rows))

            def work(tx: Transaction, draft: Draft, now: Moment) -> list[Decision]:
                with runner.counting():
                    return [runner.decide(tx, draft, now, *pair, reader) for pair in zip(rows, each, strict=True)]

            return work, events, max(len(rows), 1)

        def among_actions() -> Call[list[Decision] | list[ActionDecision]]:
            rows = choosing.contexts_of(self._settings(), X)
            each = _some(asks, len(rows))
            choices = [*map(Choice, rows, self._tables(actions, len(rows)), each)]

            def work(tx: Transaction, draft: Draft, now: Moment) -> list[ActionDecision]:
                with runner.counting():
                    return [choosing.decide(runner, tx, draft, now, choice) for choice in choices]

            return work, events, max(len(rows), 1)

        return among_arms if actions is None else among_actions

    def preparing(self, name: str, actions: Any) -> Call[ActionTable]:
        """Return what gives a table of actions a name."""
        table, runner = self._settings().table(actions), self._runner

        def work(tx: Transaction, draft: Draft, now: Moment) -> ActionTable:
            choosing.prepare(runner, tx, draft, now, name, table)
            return table

        return work, (), 1

    def _settings(self) -> ActionSettings:
        settings = self._runner.action_settings
        if settings is None:
            raise InvalidTypeError(
                f"actions are given, but loop {self._runner.name!r} has arms; leave them out, or make a loop with "
                "action_features"
            )
        return settings

    def table(self, actions: Any) -> Actions:
        """Read a table of actions; the name of one that was prepared stays a name."""
        settings = self._settings()
        return check_text("actions", actions) if isinstance(actions, str) else settings.table(actions)

    def _tables(self, actions: Any, n: int) -> list[Actions]:
        """Read one table for all of so many decisions, or one for each of them, given as a list."""
        if not isinstance(actions, list):
            return [self.table(actions)] * n
        if len(actions) != n:
            raise InvalidValueError(
                f"actions has {len(actions)} tables for {n} contexts; give one for all, or for each"
            )
        return [self.table(each) for each in actions]

    def call(self, ask: Callable[[], Call[T]]) -> T:
        """Ask, and again where features have changed since the context was read."""
        for _ in range(TRIES):
            if self._runner.reader is None:  # nobody has asked yet
                self._writer.call(self._runner, _look, size=0)
            try:
                call = _read(ask)
            except (TypeError, ValueError):
                if not self._is_shared:
                    raise
                self._writer.call(self._runner, _look, size=0)  # another replica may have changed the features
                call = _read(ask)
            try:
                return self._writer.call(self._runner, *call)
            except ContextChangedError:
                continue
        raise self._restless()

    async def acall(self, ask: Callable[[], Call[T]]) -> T:
        """Ask as `call` does, without a thread that waits."""
        for _ in range(TRIES):
            if self._runner.reader is None:
                await self._writer.acall(self._runner, _look, size=0)
            try:
                call = _read(ask)
            except (TypeError, ValueError):
                if not self._is_shared:
                    raise
                await self._writer.acall(self._runner, _look, size=0)
                call = _read(ask)
            try:
                return await self._writer.acall(self._runner, *call)
            except ContextChangedError:
                continue
        raise self._restless()

    def _restless(self) -> StoreError:
        return StoreError(f"the features of loop {self._runner.name!r} change all the time; try again")

    def reader(self) -> Reader:
        """Return what reads contexts, with the features of now."""
        reader = self._runner.reader
        if reader is None:
            raise StoreError(f"loop {self._runner.name!r} is not ready")
        return reader


def _read(ask: Callable[[], Call[T]]) -> Call[T]:
    """Read the arguments of a call."""
    with refusing():
        return ask()


def _look(_: Transaction, __: Draft, ___: Moment) -> None:
    """Do nothing: whoever asks has the loop brought up to date."""


def _some(asks: Asks, n: int) -> list[Ask]:
    """Return the options of each of so many decisions, if they are not too many."""
    each = asks.of(n)
    if n > MOST:
        raise InvalidValueError(f"X has {n:,} rows; give {MOST:,} at most at once")
    return each


# ---- rewards


def reward_of(event: str, value: Value, report: Report) -> tuple[str, Reward]:
    """Return the event of a reward, and the reward, checked."""
    of = check_text("event", event)
    options = read_report(report)
    return of, Reward(_value(value), options.get("name"), options.get("rank", 0), options.get("played"))


def _value(value: object) -> Value:
    if type(value) is float or not isinstance(value, Mapping):
        return columns.reward(value, "value")  # type: ignore[arg-type]  # which refuses what is no number
    if not value:
        raise InvalidValueError("value is {}; give at least one outcome, such as {'quality': 0.9}")
    return {name: columns.reward(each, f"value[{name!r}]") for name, each in value.items()}


def rewarding(runner: LoopRunner, of: str, reward: Reward) -> Rewarding:
    """Return what to do with a reward of a loop."""
    return runner, lambda tx, draft, now: runner.reward(tx, draft, now, of, reward), (of,)


def rewarding_many(runner: LoopRunner, rewards: Iterable[tuple[str, Value] | Mapping[str, Any]]) -> Call[list[Status]]:
    """Return what to do with many rewards of a loop, all or none."""
    pairs = [reward_of(*named(each)) for each in listed("rewards", rewards)]
    if len(pairs) > MOST:
        raise InvalidValueError(f"rewards has {len(pairs):,} items; give {MOST:,} at most at once")

    def work(tx: Transaction, draft: Draft, now: Moment) -> list[Status]:
        with runner.counting():
            return [runner.reward(tx, draft, now, of, reward) for of, reward in pairs]

    return work, [of for of, _ in pairs], max(len(pairs), 1)


def named(given: object) -> tuple[Any, Any, Report]:
    """Return the arguments of a reward that was given as a pair or as a mapping: its event, its value, its options."""
    if isinstance(given, tuple) and len(given) == 2:
        return given[0], given[1], {}
    if not isinstance(given, Mapping) or not {"event", "value"} <= given.keys() <= PARTS:
        raise InvalidTypeError(f"rewards has {given!r}; give pairs of event and value, or mappings with {WORDS}")
    report = {name: value for name, value in given.items() if name in REPORT}
    return given["event"], given["value"], cast("Report", report)
