"""What callers ask of a loop: their arguments, checked and read, as work for a transaction.

Contexts are read in the caller's thread with the features that the loop has then, and again if these have changed by
the time the thread that writes comes to them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, TypeVar

from armlet.actions.decision import ActionDecision
from armlet.actions.table import ActionTable
from armlet.errors import InvalidTypeError, InvalidValueError, StoreError, refusing
from armlet.inputs import columns
from armlet.inputs.columns import check_label, listed
from armlet.kernel import Decision
from armlet.stores import choosing
from armlet.stores.choosing import Actions, Choice
from armlet.stores.draft import Draft, Transaction
from armlet.stores.ledger import Moment
from armlet.stores.rewards import Reward, Status, Value
from armlet.stores.runner import LoopRunner
from armlet.stores.spec import check_text
from armlet.stores.tickets import ContextChangedError, Work
from armlet.stores.writer import Writer
from armlet.types import Arm, Context, Contexts, Float64

if TYPE_CHECKING:
    from armlet.actions.settings import ActionSettings
    from armlet.inputs.settings import Reader

MOST: Final = 10_000  # calls of a batch
TRIES: Final = 5  # of a call whose loop changes meanwhile
WORDS: Final = "event, value and perhaps name, rank, played"
PARTS: Final = frozenset(("event", "value", "name", "rank", "played"))

Probabilities: TypeAlias = Literal["all"]
T = TypeVar("T")
Asked: TypeAlias = tuple[Work[T], Sequence[str], int]
"""What to do in a transaction, the events to look up for it, and for how many calls it counts."""
Rewarding: TypeAlias = tuple[LoopRunner, Work[Status], Sequence[str]]


# ---- decisions


class Asking:
    """Asks a loop for decisions."""

    def __init__(self, runner: LoopRunner, writer: Writer, *, is_shared: bool) -> None:
        self._runner, self._writer, self._is_shared = runner, writer, is_shared

    def one(self, x: Context, event: str | None, options: Mapping[str, Any]) -> Callable[[], Asked[Decision]]:
        """Return what reads a context as the loop is now, and says what to do with it and which events to look up."""
        name = None if event is None else check_text("event", event)
        names, decide = () if name is None else (name,), self._runner.decide

        def ask() -> Asked[Decision]:
            reader = self.reader()
            row = reader.row(x).copy()  # the caller may change his own while this waits
            return lambda tx, draft, now: decide(tx, draft, now, row, name, options, reader), names, 1

        return ask

    def many(
        self,
        X: Contexts,
        events: Iterable[str] | None,
        options: Mapping[str, Any],
        units: Iterable[str | None] | None = None,
    ) -> Callable[[], Asked[list[Decision]]]:
        """Return what reads contexts, as `one` does."""
        names = None if events is None else [check_text("events", event) for event in listed("events", events)]
        of = (
            None
            if units is None
            else [None if unit is None else check_text("units", unit) for unit in listed("units", units)]
        )

        def ask() -> Asked[list[Decision]]:
            reader = self.reader()
            rows = reader.matrix(X).copy()
            if names is not None and len(names) != len(rows):
                raise InvalidValueError(f"events has {len(names)} names for {len(rows)} contexts; give one for each")
            if of is not None and len(of) != len(rows):
                raise InvalidValueError(
                    f"units has {len(of)} names for {len(rows)} contexts; give one for each, or None"
                )
            if len(rows) > MOST:
                raise InvalidValueError(f"X has {len(rows):,} rows; give {MOST:,} at most at once")
            each = [options if unit is None else {**options, "unit": unit} for unit in of or [None] * len(rows)]
            work = functools.partial(self._decide_many, rows=rows, names=names, options=each, reader=reader)
            return work, names or (), max(len(rows), 1)

        return ask

    # ---- among actions

    def action(
        self, x: Context | None, actions: Any, event: str | None, options: Mapping[str, Any]
    ) -> Callable[[], Asked[ActionDecision]]:
        """Return what reads a context and the actions of a table, as `one` does."""
        name, runner = None if event is None else check_text("event", event), self._runner
        names = () if name is None else (name,)

        def ask() -> Asked[ActionDecision]:
            asked = Choice(choosing.context_of(self._settings(), x), self.table(actions), **options)
            return lambda tx, draft, now: choosing.decide(runner, tx, draft, now, name, asked), names, 1

        return ask

    def many_actions(
        self, X: Contexts, actions: Any, events: Iterable[str] | None, options: Mapping[str, Any]
    ) -> Callable[[], Asked[list[ActionDecision]]]:
        """Return what reads contexts and the actions of a table for all of them, or of one for each."""
        names = None if events is None else [check_text("events", event) for event in listed("events", events)]
        runner = self._runner

        def ask() -> Asked[list[ActionDecision]]:
            rows = choosing.contexts_of(self._settings(), X)
            if names is not None and len(names) != len(rows):
                raise InvalidValueError(f"events has {len(names)} names for {len(rows)} contexts; give one for each")
            if len(rows) > MOST:
                raise InvalidValueError(f"X has {len(rows):,} rows; give {MOST:,} at most at once")
            asked = [
                Choice(x, table, **options) for x, table in zip(rows, self._tables(actions, len(rows)), strict=True)
            ]

            def work(tx: Transaction, draft: Draft, now: Moment) -> list[ActionDecision]:
                told: Iterable[tuple[str | None, Choice]] = zip(names or repeat(None), asked, strict=False)
                with runner.counting():
                    return [choosing.decide(runner, tx, draft, now, name, each) for name, each in told]

            return work, names or (), max(len(rows), 1)

        return ask

    def preparing(self, name: str, actions: Any) -> Asked[ActionTable]:
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

    def _decide_many(
        self,
        tx: Transaction,
        draft: Draft,
        now: Moment,
        *,
        rows: Float64,
        names: Sequence[str] | None,
        options: Sequence[Mapping[str, Any]],
        reader: Reader,
    ) -> list[Decision]:
        decide = self._runner.decide
        asked = zip(rows, [None] * len(rows) if names is None else names, options, strict=True)
        with self._runner.counting():
            return [decide(tx, draft, now, row, name, each, reader) for row, name, each in asked]

    def call(self, ask: Callable[[], Asked[T]]) -> T:
        """Ask, and again where features have changed since the context was read."""
        for _ in range(TRIES):
            if self._runner.reader is None:  # nobody has asked yet
                self._writer.call(self._runner, _look, size=0)
            try:
                asked = _read(ask)
            except (TypeError, ValueError):
                if not self._is_shared:
                    raise
                self._writer.call(self._runner, _look, size=0)  # another replica may have changed the features
                asked = _read(ask)
            try:
                return self._writer.call(self._runner, *asked)
            except ContextChangedError:
                continue
        raise self._restless()

    async def acall(self, ask: Callable[[], Asked[T]]) -> T:
        """Ask as `call` does, without a thread that waits."""
        for _ in range(TRIES):
            if self._runner.reader is None:
                await self._writer.acall(self._runner, _look, size=0)
            try:
                asked = _read(ask)
            except (TypeError, ValueError):
                if not self._is_shared:
                    raise
                await self._writer.acall(self._runner, _look, size=0)
                asked = _read(ask)
            try:
                return await self._writer.acall(self._runner, *asked)
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


def _read(ask: Callable[[], Asked[T]]) -> Asked[T]:
    """Read the arguments of a call."""
    with refusing():
        return ask()


def _look(_: Transaction, __: Draft, ___: Moment) -> None:
    """Do nothing: whoever asks has the loop brought up to date."""


def choice_of(
    eligible: Iterable[Arm] | None,
    baseline: Arm | None,
    defer: bool,
    probabilities: Probabilities | None,
    others: Mapping[str, object],
) -> dict[str, Any]:
    """Return the options of a decision among actions, checked; `others` are those of decisions among arms."""
    for name, value in others.items():
        if value is not None:
            raise InvalidValueError(f"{name} is {value!r}, but decisions among actions have none; leave it out")
    if not isinstance(defer, bool):
        raise InvalidTypeError(f"defer is {defer!r}; give True or False")
    _check_probabilities(probabilities)
    labels = None if eligible is None else tuple(check_label(arm) for arm in listed("eligible", eligible))
    played = None if baseline is None else check_label(baseline)
    return {"eligible": labels, "baseline": played, "defer": defer, "probabilities": probabilities}


def _check_probabilities(probabilities: object) -> None:
    if probabilities is not None and (not isinstance(probabilities, str) or probabilities != "all"):
        raise InvalidValueError(f"probabilities is {probabilities!r}; give 'all', or leave it out")


def refuse_choice(baseline: Arm | None, defer: bool) -> NoReturn:
    """Refuse options of decisions among actions where none are given."""
    given = f"defer is {defer!r}" if baseline is None else f"baseline is {baseline!r}"
    raise InvalidValueError(f"{given}, but there are no actions; it is for decisions among actions with features")


def options_of(
    eligible: Iterable[Arm] | None,
    probabilities: Probabilities | None,
    unit: str | None = None,
    weights: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the options of a decision that were given, checked."""
    options: dict[str, Any] = {}
    if eligible is not None:
        options["eligible"] = [check_label(arm) for arm in listed("eligible", eligible)]
    _check_probabilities(probabilities)
    if probabilities is not None:
        options["probabilities"] = "all"
    if unit is not None:
        options["unit"] = check_text("unit", unit)
    if weights is not None:
        if not isinstance(weights, Mapping):
            raise InvalidTypeError(f"weights is {weights!r}; give them by outcome, such as {{'cost': -40.0}}")
        options["weights"] = dict(weights)
    return options


# ---- rewards


def told_of(
    event: str, value: Value, name: str | None = None, rank: int = 0, played: Arm | None = None
) -> tuple[str, Reward]:
    """Return the event of a reward, and the reward, checked."""
    of = check_text("event", event)
    called = None if name is None else check_text("name", name)
    return of, Reward(_value(value), called, rank, None if played is None else check_label(played))


def _value(value: object) -> Value:
    if type(value) is float or not isinstance(value, Mapping):
        return columns.reward(value, "value")  # type: ignore[arg-type]  # which refuses what is no number
    if not value:
        raise InvalidValueError("value is {}; give at least one outcome, such as {'quality': 0.9}")
    return {name: columns.reward(each, f"value[{name!r}]") for name, each in value.items()}


def rewarding(runner: LoopRunner, of: str, told: Reward) -> Rewarding:
    """Return what to do with a reward of a loop."""
    return runner, lambda tx, draft, now: runner.reward(tx, draft, now, of, told), (of,)


def rewarding_many(runner: LoopRunner, rewards: Iterable[tuple[str, Value] | Mapping[str, Any]]) -> Asked[list[Status]]:
    """Return what to do with many rewards of a loop, all or none."""
    told = [told_of(**named(each)) for each in listed("rewards", rewards)]
    if len(told) > MOST:
        raise InvalidValueError(f"rewards has {len(told):,} items; give {MOST:,} at most at once")

    def work(tx: Transaction, draft: Draft, now: Moment) -> list[Status]:
        with runner.counting():
            return [runner.reward(tx, draft, now, of, reward) for of, reward in told]

    return work, [of for of, _ in told], max(len(told), 1)


def named(given: object) -> Mapping[str, Any]:
    """Return the arguments of a reward that was given as a pair or as a mapping."""
    if isinstance(given, tuple) and len(given) == 2:
        return {"event": given[0], "value": given[1]}
    if not isinstance(given, Mapping) or not {"event", "value"} <= given.keys() <= PARTS:
        raise InvalidTypeError(f"rewards has {given!r}; give pairs of event and value, or mappings with {WORDS}")
    return given
