"""A store: durable loops by name, and what concerns all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from armlet.bandit import Bandit
from armlet.errors import InvalidValueError, refusing
from armlet.inputs.columns import check_labels, listed
from armlet.inputs.contexts import ContextReader
from armlet.inputs.settings import Normalize, Objective, Range, Units
from armlet.policies import is_registered
from armlet.stores.clock import SECOND, Clock, Moment
from armlet.stores.ledger import Kept, Ledger, Pen
from armlet.stores.loop import Loop
from armlet.stores.making import Making, read_terms
from armlet.stores.player import Player, save_all
from armlet.stores.rewards import Aggregation
from armlet.stores.tickets import Chore
from armlet.stores.writer import Writer
from armlet.types import Arm, Policy

LATEST = 253402300799.0  # the end of the year 9999, in seconds since 1970
PAGES = 16  # given back in one piece


class Store:
    """Durable loops; `armlet.open` gives one that is kept in a file.

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
        self._players: dict[str, Player] = {}
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
            also what is told twice.
        reward_range
            The lowest and the highest reward; others are answered "out_of_range". From -1 to 1 if left out, or the
            range of a policy that has one.
        seed
            The policy's coins; drawn at random if left out.

        Examples
        --------
        >>> import armlet
        >>> with armlet.open("shop.db") as store:
        ...     loop = store.loop("homepage", arms=["a", "b"], dim=1, policy=armlet.Algorithm1(p=8))
        ...     loop = store.loop("homepage", arms=["c", "a"], dim=1, policy=armlet.Algorithm1(p=8))
        ...     loop.model().arms, loop.model().retired
        ...     store.loop("homepage", arms=["a", "b"], dim=2, policy=armlet.Algorithm1(p=8))
        Traceback (most recent call last):
        armlet.errors.StoreError: dim is 2, but loop 'homepage' was made with 1; give that, or ...
        """
        making = Making(
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
        made = making.bandit()
        player, reader = self._writer.do(lambda pen, now: self._open(pen, now, making, made))
        return Loop(player, reader, self._writer, self._ledger)

    def _open(self, pen: Pen, now: Moment, making: Making, made: Bandit | None) -> tuple[Player, ContextReader]:
        kept = pen.kept(making.name)
        if kept is None:
            self._players.pop(making.name, None)  # of a loop whose making was not kept
            kept = making.create(pen, made)
        own = making.policy
        if own is not None and is_registered(own):
            own = None
        player = self._players.get(making.name) or Player(kept, read_terms(kept, own), own, self._writer)
        making.check_same(kept, made, own)
        player.ready(pen, now)
        if making.arms is not None:
            player.want(pen, now, making.arms)
        player.is_in_use = True
        self._players[making.name] = player
        return player, player.reader(pen)

    @property
    def loops(self) -> list[str]:
        """The names of its loops, the oldest first."""
        return [kept.name for kept in self._ledger.loops()]

    @refusing()
    def settle(self) -> None:
        """Close all windows that have run out, in all loops in use; any call to a loop closes some of that loop."""
        self._writer.maintain(self._settling())

    def _settling(self) -> Chore[None]:
        for player in list(self._players.values()):
            yield from player.settling()

    @refusing()
    def prune(self, before: float | datetime) -> int:
        """Delete decisions that are older and did not explore, with their rewards; return how many.

        Explored ones stay: they are what estimates rest on, and what other policies can be judged by. So do decisions
        whose window is open, or that get a reward meanwhile. What was learned is not touched. A reward for what is gone
        is answered "unknown". It works in slices between which other calls are served, and gives space back to the
        file system; if it is broken off by an error, some are deleted, and the next one goes on.

        Parameters
        ----------
        before
            A datetime with a time zone, or seconds since 1970.
        """
        return self._writer.maintain(self._pruning(_microseconds(before)), scrubs=True)

    def _pruning(self, before: int) -> Chore[int]:
        pen, _ = yield
        kept = [each for name in self.loops if (each := pen.kept(name)) is not None]
        for each in kept:  # before any is pruned: one whose policy is not known here is refused
            if each.name not in self._players:
                read_terms(each, None)
        pruned = 0
        for each in kept:
            pruned += yield from self._pruning_one(each, before)
        while True:
            pen, _ = yield
            if not pen.shrink(PAGES):
                return pruned

    def _pruning_one(self, kept: Kept, before: int) -> Chore[int]:
        player = self._players.get(kept.name)
        if player is None:  # there for all to see, since it may be opened meanwhile
            player = self._players[kept.name] = Player(kept, read_terms(kept, None), None, self._writer)
        try:
            yield from player.settling()
            return (yield from player.pruning(before))
        finally:
            if not player.is_in_use:
                self._players.pop(kept.name, None)

    @refusing()
    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy everything into a new file, as it is at one moment, while loops go on."""
        self._ledger.backup(Path(path))

    def close(self) -> None:
        """Answer all that is waiting, keep snapshots for a quick start, and let go of the file; twice is fine."""
        if self._is_closed:
            return
        self._is_closed = True
        players = list(self._players.values())
        try:
            self._writer.do(lambda pen, _: save_all(players, pen))
        finally:
            if self._writer.close():
                self._ledger.close()

    def _stale(self) -> None:
        for player in self._players.values():
            player.stale()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
