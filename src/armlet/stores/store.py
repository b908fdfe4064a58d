"""A store: durable loops by name, what each is made with, and what concerns all of them."""

from __future__ import annotations

import json
import os
import reprlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Self, cast, get_args

from armlet.bandit import Bandit, from_bytes
from armlet.errors import InvalidTypeError, InvalidValueError, StoreError, refusing
from armlet.inputs import columns
from armlet.inputs.columns import check_label, check_labels, listed
from armlet.inputs.contexts import ContextReader
from armlet.inputs.settings import HUGE, Normalize, Objective, Range, Units, ends, number, positive, settle
from armlet.kernel import Decision
from armlet.policies import check_given, default_policy, is_registered
from armlet.stores.ledger import Ledger, LoopRecord, Moment, Transaction
from armlet.stores.rewards import Aggregation, Reward, RewardRules, Status
from armlet.stores.runner import LoopLog, LoopRunner
from armlet.stores.writer import SECOND, Chore, Clock, Writer
from armlet.types import Arm, Context, Policy

# ---- a loop: decisions and rewards that outlive their process

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
        """Choose an arm; durable on return. Its propensity is marginal: over all coins.

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


# ---- the store

USUAL = (-1.0, 1.0)  # rewards, if nobody says: one wild value ruins the sums of an arm
LONGEST_WINDOW = 1e9  # seconds
RULES = ("window", "default_reward", "aggregation")
LATEST = 253402300799.0  # the end of the year 9999, in seconds since 1970
PAGES = 16  # given back in one piece


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSpec:
    """The arguments of `Store.loop`."""

    name: str
    arms: list[Arm] | None
    dim: int | None
    features: tuple[str, ...] | None
    policy: Policy | None
    objective: Objective
    normalize: Normalize | None
    units: Units | None
    window: float | None
    default_reward: float | None
    aggregation: Aggregation
    reward_range: Range | None
    seed: int | None

    def __post_init__(self) -> None:
        check_text("name", self.name)
        if self.aggregation not in get_args(Aggregation):
            raise InvalidValueError(f"aggregation is {self.aggregation!r}; choose one of 'first', 'last', 'sum'")
        if self.policy is not None:
            check_given(self.policy)
        if (self.window is None) != (self.default_reward is None):
            raise InvalidValueError(
                f"window is {self.window!r} and default_reward is {self.default_reward!r}; "
                "give both or neither: a row is learned when its window closes, with the default if no reward came"
            )
        if self.window is not None:
            fix = f"give seconds, more than 0 and at most {LONGEST_WINDOW:g}"
            settle(self, window=positive(LONGEST_WINDOW, fix=fix), default_reward=number(-HUGE))
        if self.arms is None and (given := self._given_without_arms()):
            raise InvalidValueError(
                f"{given} is given, but arms are not; give arms too, or the name alone to go on with a loop"
            )

    def _given_without_arms(self) -> str:
        plain = {"objective": "max", "aggregation": "first"}
        names = ("dim", "features", "objective", "normalize", "units", "window", "aggregation", "reward_range", "seed")
        return next((name for name in names if getattr(self, name) != plain.get(name)), "")

    def bandit(self) -> Bandit | None:
        """Make the bandit, if arms are given."""
        if self.arms is None:
            return None
        policy = default_policy() if self.policy is None else self.policy
        made = Bandit(
            self.arms,
            self.dim,
            policy=policy,
            features=self.features,
            objective=self.objective,
            normalize=self.normalize,
            units=self.units,
            reward_range=self._range(policy),
            seed=self.seed,
        )
        rules = rules_of(made, self._about())
        if rules.default is not None and not rules.takes(rules.default):
            raise InvalidValueError(
                f"default_reward is {rules.default!r}, but rewards are from {rules.reward_range[0]} to "
                f"{rules.reward_range[1]}{', 0 or 1 only' if rules.binary else ''}; give one of these"
            )
        return made

    def _range(self, policy: Policy) -> Range:
        if self.reward_range is not None:
            return ends("reward_range", self.reward_range)
        low, high = (0.0, 1.0) if policy.rewards == "binary" else getattr(policy, "reward_range", None) or USUAL
        return (low, high) if self.objective == "max" else (-high, -low)

    def _about(self) -> dict[str, Any]:
        return {"arms": self.arms, **{name: getattr(self, name) for name in RULES}}

    def create(self, tx: Transaction, made: Bandit | None) -> LoopRecord:
        """Write a new loop."""
        if made is None:
            raise StoreError(f"there is no loop {self.name!r}; give arms to make it")
        return tx.create(self.name, json.dumps(self._about()), made.to_bytes())

    def check_same(self, record: LoopRecord, made: Bandit | None, own: Policy | None) -> None:
        """Refuse to go on with a loop that was made with something else; arms come and go."""
        if made is None:
            return
        start, about = from_bytes(record.start, policy=own), _read_about(record)
        given: dict[str, tuple[object, object]] = {name: (getattr(self, name), about[name]) for name in RULES}
        for name in ("policy", "dim", "features", "objective", "normalize", "reward_range"):
            given[name] = getattr(made.settings, name), getattr(start.settings, name)
        if self.seed is not None:
            given["seed"] = made.seed, start.seed
        for name, (ours, theirs) in given.items():
            if ours != theirs:
                raise StoreError(
                    f"{name} is {ours!r}, but loop {self.name!r} was made with {theirs!r}; "
                    "give that, or the name alone, or make a loop of another name"
                )


def rules_of(bandit: Bandit, about: Mapping[str, Any]) -> RewardRules:
    """Return the reward rules of a bandit's loop."""
    window = about["window"]
    return RewardRules(
        window=None if window is None else round(window * SECOND),
        default=about["default_reward"],
        aggregation=about["aggregation"],
        reward_range=bandit.settings.reward_range or USUAL,
        binary=bandit.policy.rewards == "binary",
    )


def read_rules(record: LoopRecord, own: Policy | None) -> RewardRules:
    """Return the reward rules of a loop in a ledger."""
    return rules_of(from_bytes(record.start, policy=own), _read_about(record))


def _read_about(record: LoopRecord) -> Mapping[str, Any]:
    """Read what a loop was made with; an editor of a file can mend a checksum too."""
    try:
        about: Mapping[str, Any] = json.loads(record.about)
        window, default = about["window"], about["default_reward"]
        if window is not None:
            positive(LONGEST_WINDOW)("window", window), number(-HUGE)("default_reward", default)
        if about["aggregation"] not in get_args(Aggregation) or (window is None) != (default is None):
            raise InvalidValueError("invalid reward rules")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"loop {record.name!r} is damaged: {error}; go back to a backup") from error
    return about


class Store:
    """Durable loops by name; `armlet.open_store` opens one in a file.

    Parameters
    ----------
    ledger
        Where loops are kept.
    wall, elapsed
        The clocks: seconds since 1970, which rows are stamped with, and seconds since any moment, which windows go by.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        wall: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._runners: dict[str, LoopRunner] = {}
        self._is_closed = False
        self._writer = Writer(ledger, Clock(ledger.newest(), wall, elapsed), self._stale)

    @refusing()
    def loop(
        self,
        name: str,
        *,
        arms: Iterable[Arm] | None = None,
        dim: int | None = None,
        features: Iterable[str] | None = None,
        policy: Policy | None = None,
        objective: Objective = "max",
        normalize: Normalize | None = None,
        units: Units | None = None,
        window: float | None = None,
        default_reward: float | None = None,
        aggregation: Aggregation = "first",
        reward_range: Range | None = None,
        seed: int | None = None,
    ) -> Loop:
        """Make a loop, or go on with the one of this name: with its name alone, or with what it was made with.

        Only the list of arms may be another one than before.

        Parameters
        ----------
        name
            What to call it.
        arms
            The arms to be played from now on, in any order. Going on with a loop, those that are new to it are added,
            those that are missing are retired, and retired ones that are back are restored; what is known of an arm is
            kept. Left out, the arms stay as they are.
        dim, features, policy, objective, normalize, units
            As for `armlet.Bandit`. To go on with a loop, leave them out, but for a policy that is not Armlet's own.
        window, default_reward
            Seconds after which a decision without a reward has earned the default. All rewards are learned when the
            window closes, and a late one then replaces what was learned. Without them rewards are learned as they
            arrive.
        aggregation
            Which of several rewards of one decision counts: "first", "last", or "sum". A sum counts all that arrives,
            also what is reported twice.
        reward_range
            The lowest and the highest reward; others are answered "out_of_range". From -1 to 1 if left out, or the
            range of a policy that has one.
        seed
            The policy's coins; drawn at random if left out.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open_store("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8))
        ...     loop = store.loop("homepage", arms=["c", "a"], dim=1, policy=armlet.Algorithm1(p=8))
        ...     loop.model().arms, loop.model().arms.retired
        ...     store.loop("homepage", arms=["a", "b"], dim=2, policy=armlet.Algorithm1(p=8))
        Traceback (most recent call last):
        armlet.errors.StoreError: dim is 2, but loop 'homepage' was made with 1; give that, or ...
        """
        spec = LoopSpec(
            name=name,
            arms=None if arms is None else check_labels(arms),
            dim=dim,
            features=None if features is None else cast(tuple[str, ...], tuple(listed("features", features))),
            policy=policy,
            objective=objective,
            normalize=normalize,
            units=units,
            window=window,
            default_reward=default_reward,
            aggregation=aggregation,
            reward_range=reward_range,
            seed=seed,
        )
        made = spec.bandit()
        runner, reader = self._writer.do(lambda tx, now: self._open(tx, now, spec, made))
        return Loop(runner, reader, self._writer, self._ledger)

    def _open(
        self, tx: Transaction, now: Moment, spec: LoopSpec, made: Bandit | None
    ) -> tuple[LoopRunner, ContextReader]:
        record = tx.find(spec.name)
        if record is None:
            self._runners.pop(spec.name, None)  # of a loop whose making was not kept
            record = spec.create(tx, made)
        own = spec.policy
        if own is not None and is_registered(own):
            own = None
        runner = self._runners.get(spec.name) or LoopRunner(record, read_rules(record, own), own, self._writer)
        spec.check_same(record, made, own)
        runner.ready(tx, now)
        if spec.arms is not None:
            runner.want(tx, now, spec.arms)
        runner.is_in_use = True
        self._runners[spec.name] = runner
        return runner, runner.reader(tx)

    @property
    def loops(self) -> list[str]:
        """The names of its loops, the oldest first."""
        return [record.name for record in self._ledger.loops()]

    @refusing()
    def settle(self) -> None:
        """Close all windows that have run out, in all loops in use; any call to a loop closes some of that loop."""
        self._writer.maintain(self._settling())

    def _settling(self) -> Chore[None]:
        for runner in list(self._runners.values()):
            yield from runner.settling()

    @refusing()
    def prune(self, before: float | datetime) -> int:
        """Delete decisions that are older and did not explore, with their rewards; return how many.

        Explored ones stay: they are what estimates rest on, and what other policies can be judged by. So do decisions
        whose window is open, or that get a reward meanwhile. What was learned is not touched. Decisions without a
        reward are expired before they go, as `Bandit.expire` does; a reward for what is gone is answered "unknown". It
        works in slices between which other calls are served, and gives space back to the file system; if it is broken
        off by an error, some are deleted, and the next one goes on.

        Parameters
        ----------
        before
            A datetime with a time zone, or seconds since 1970.
        """
        return self._writer.maintain(self._pruning(_microseconds(before)), scrubs=True)

    def _pruning(self, before: int) -> Chore[int]:
        tx, _ = yield
        record = [each for name in self.loops if (each := tx.find(name)) is not None]
        for each in record:  # before any is pruned: one whose policy is not known here is refused
            if each.name not in self._runners:
                read_rules(each, None)
        pruned = 0
        for each in record:
            pruned += yield from self._pruning_one(each, before)
        while True:
            tx, _ = yield
            if not tx.shrink(PAGES):
                return pruned

    def _pruning_one(self, record: LoopRecord, before: int) -> Chore[int]:
        runner = self._runners.get(record.name)
        if runner is None:  # there for all to see, since it may be opened meanwhile
            runner = self._runners[record.name] = LoopRunner(record, read_rules(record, None), None, self._writer)
        try:
            yield from runner.settling()
            return (yield from runner.pruning(before))
        finally:
            if not runner.is_in_use:
                self._runners.pop(record.name, None)

    @refusing()
    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy everything into a new file, as it is at one moment, while loops go on."""
        self._ledger.backup(Path(path))

    def close(self) -> None:
        """Answer all that is waiting, keep snapshots for a quick start, and close the file; twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        runners = list(self._runners.values())

        def save(tx: Transaction, _: Moment) -> None:
            for runner in runners:
                runner.save(tx)

        try:
            self._writer.do(save)
        finally:
            if self._writer.close():
                self._ledger.close()

    def _stale(self) -> None:
        for runner in self._runners.values():
            runner.stale()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _microseconds(moment: float | datetime) -> int:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InvalidValueError(
                f"before is {moment!r}, which has no time zone; give one, such as tzinfo=datetime.UTC"
            )
        moment = moment.timestamp()
    if isinstance(moment, bool) or not isinstance(moment, (int, float)) or not -LATEST <= moment <= LATEST:
        raise InvalidValueError(
            f"before is {moment!r}; give a datetime with a time zone, or seconds (not milliseconds) since 1970, "
            f"up to {LATEST:.0f}"
        )
    return int(moment * SECOND)


def open_store(
    path: str | os.PathLike[str],
    *,
    wall: Callable[[], float] = time.time,
    elapsed: Callable[[], float] = time.monotonic,
) -> Store:
    """Open a store in a file, or make one. Needs the extra `store`.

    Every call is durable on return: it survives the process and the machine. One process at a time may have it open.

    Parameters
    ----------
    path
        The file. Next to it are `-wal` and `-shm` files of SQLite's, and a `.lock` with a megabyte in reserve, for a
        full disk.
    wall, elapsed
        The clocks: seconds since 1970, which rows are stamped with, and seconds since any moment, which windows go by.
        For tests.

    Examples
    --------
    >>> import armlet
    >>> with armlet.open_store("shop.db") as store:
    ...     loop = store.loop("homepage", arms=["sale", "new"], features=["age"], policy=armlet.Algorithm1(p=8), seed=1)
    ...     decision = loop.decide({"age": 3.0}, event="order-17")
    ...     loop.reward("order-17", 1.0)
    'accepted'
    """
    ledger = load_sqlite().SQLite(_file(path))
    try:
        return Store(ledger, wall=wall, elapsed=elapsed)
    except BaseException:
        ledger.close()
        raise


def _file(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str):
        raise InvalidTypeError(f"path is {path!r}; give the path of a file, such as 'shop.db'")
    if name in ("", ":memory:") or name.startswith("file:") or "://" in name or "\0" in name:
        raise StoreError(
            f"path is {name!r}; give the path of a file, such as 'shop.db'. "
            "For a store that ends with the process: armlet.stores.Store(armlet.stores.Memory())"
        )
    return Path(name)


def load_sqlite() -> ModuleType:
    """Import the ledger that needs apsw."""
    try:
        return import_module("armlet.stores.sqlite")
    except ModuleNotFoundError as error:
        if error.name != "apsw":
            raise
        raise StoreError("a store in a file needs apsw; install it with: pip install 'armlet[store]'") from error
