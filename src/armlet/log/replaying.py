"""A log played again on a bandit, which decides again. Memory holds the last decisions only, if others can be found."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.bandit import Bandit
from armlet.cast.cast import AnyDecision, Cast
from armlet.errors import LogError, StoreError
from armlet.inputs.feature_change import FeatureChange
from armlet.kernel import Decision, play_block
from armlet.loading import from_bytes
from armlet.log.action_tables import Tables
from armlet.policies import find_policy
from armlet.record.block import Block, InBlocks
from armlet.record.faults import explain
from armlet.record.plays import Past
from armlet.record.replay import is_unplayable, play
from armlet.record.values import Event
from armlet.types import Reward

RECENT: Final = 2**15  # decisions of a generation; two of them are kept

Find = Callable[[str], Event | None]


class Restoring:
    """What any past has: the models and policies of events, and the time that a cast reaches."""

    def reach(self, cast: Cast, minutes: int) -> None:
        """Let the bandits learn rows of a time."""
        cast.reach_time(minutes)

    def model(self, event: Event) -> Any:
        """Return the bandit that an event holds."""
        return from_bytes(base64.b64decode(event["model"]))

    def policy(self, name: str) -> Callable[..., object]:
        """Return what makes policies of a name."""
        return find_policy(name, None)


class LoggedPast(Restoring):
    """The decisions of a log, decided again: the last ones from memory, the others found by id."""

    def __init__(self, find: Find | None = None) -> None:
        self._find = find
        self._tables = Tables()
        self._recent: dict[str, AnyDecision] = {}
        self._before: dict[str, AnyDecision] = {}
        self._partial: dict[str, AnyDecision] = {}  # from before these, with outcomes of which some are to come
        self._changes: list[tuple[int, FeatureChange]] = []  # after which step
        self._copies: set[str] = set()  # found, or made by a cast: those do not carry their contexts by themselves
        self.of_cast: Mapping[str, Any] = {}  # what a row says of the cast of the last one

    def on_table(self, cast: Cast, event: Event) -> None:
        """Take a table of actions, and prepare it under its name, if it has one; or remove one."""
        live: Any = cast.live
        table = self._tables.read(event)
        if table is None:
            live.remove_table(event["name"])
        elif "name" in event:
            live.prepare(event["name"], table)

    def decide(self, cast: Cast, event: Event) -> AnyDecision:
        """Decide again, and remember the decision."""
        options: dict[str, Any] = {"eligible": event["eligible"], "t": event["t"]}
        options |= {name: event[name] for name in ("weights", "unit", "epoch") if name in event}
        decision: AnyDecision
        if cast.fades_by_time:
            cast.tell_time(event["tag"])
        if "actions" in event:
            table = self._tables.chosen_from(event)
            live: Any = cast.live
            chosen: ActionDecision = live.decide(event["x"], table, **options, propensity="marginal")
            has_baseline = "shadow" in event  # its caller has played an action of his own
            self.of_cast = {"shadow": {"arm": chosen.arm}} if has_baseline else {}
            decision = chosen.instead(event["arm"], table[event["arm"]]) if has_baseline else chosen
        else:
            decision, self.of_cast = cast.decide(event["x"], **options)
        self.keep(decision, is_copy=not cast.is_alone)
        return decision

    def play_run(self, cast: Cast, block: Block, begin: int) -> tuple[int, Decision | None]:
        """Play decisions and rewards of a block from an event on, as far as they need no Python.

        Return where that ends: at an event that was not played; or at a decision that was, and is not as it is
        written, and the decision that was made.
        """
        if not cast.is_alone or type(cast.live) is not Bandit or cast.fades_by_time:
            return begin, None
        if len(self._recent) >= RECENT and self._find is not None:
            self._drop_old()
        self.of_cast = {}
        return play_block(cast.live, block, begin, len(block), (self._recent, self._before))

    def keep(self, decision: AnyDecision, *, is_copy: bool = True) -> None:
        """Remember a decision; one that the bandit made itself carries its own context."""
        if len(self._recent) >= RECENT and self._find is not None:
            self._drop_old()
        self._recent[decision.id] = decision
        if is_copy:
            self._copies.add(decision.id)

    def _drop_old(self) -> None:
        """Forget a generation, but for what no single event of the log tells: the outcomes of some that came apart."""
        self._partial = {
            name: one
            for name, one in (*self._partial.items(), *self._before.items())
            if not one.learned and one.reward is not None
        }
        self._before, self._recent = self._recent, {}
        self._copies &= self._before.keys() | self._partial.keys()

    def get(self, event: Event, reward: Reward | None = None) -> AnyDecision:
        """Return the decision that an event is about."""
        name = event["id"]
        if "decision" in event:  # made elsewhere, or by another process: its record is all that was known of it
            return read_decision(event["decision"])
        decision = self._recent.get(name) or self._before.get(name) or self._partial.get(name)
        if decision is not None:
            return decision
        record = self._find(name) if self._find is not None else None
        if record is None:
            raise LogError(f"event {event['seq']:,} is about decision {name}, which is not in the log", event["seq"])
        if reward is not None:
            record = {**record, "reward": reward, "weight": event.get("weight", 1.0)}
        elif "expired" in event:
            record = {**record, "expired": event["expired"]}
        if "billed" in event:
            record = {**record, "billed": event["billed"]}
        decision = read_decision({**record, "x": self._carried(record["t"], record["x"])})
        self._recent[name] = decision
        self._copies.add(name)
        return decision

    def on_change(self, t: int, change: FeatureChange) -> None:
        """Carry the contexts of copies; decisions that were made again carry themselves."""
        self._changes.append((t, change))
        for name in self._copies:
            for generation in (self._recent, self._before, self._partial):
                if (decision := generation.get(name)) is not None and len(decision.x):
                    generation[name] = read_decision({**decision.to_dict(), "x": change.carry(decision.x).tolist()})

    def _carried(self, t: int, x: list[float] | None) -> list[float] | None:
        for after, change in self._changes:
            if x is not None and t <= after:
                x = change.carry(x).tolist()
        return x


def read_decision(record: Mapping[str, Any]) -> AnyDecision:
    """Restore a decision from its record: one among actions names their table."""
    return ActionDecision.from_dict(record) if "actions" in record else Decision.from_dict(dict(record))


def replay(events: Iterable[Event], bandit: Bandit | ActionBandit, past: Past | None = None) -> int:
    """Play a log again on a bandit, which is changed as the one that wrote it was; return the number of events.

    Parameters
    ----------
    events
        An `armlet.Log`, or any events in order.
    bandit
        In the state that the first event found: the start model, or a copy of the bandit from before.
    past
        The decisions that events are about; those of the log itself, decided again, if left out.
    """
    live: Any = bandit
    return play_all(events, Cast(live), past)


def play_all(events: Iterable[Event], cast: Cast, past: Past | None = None) -> int:
    """Play a log again on a cast, as `replay` does on a bandit."""
    past = past or LoggedPast(getattr(events, "find", None))
    played = 0
    if isinstance(events, InBlocks) and isinstance(past, LoggedPast):
        for block in events.blocks():
            end = -1
            while (begin := end + 1) < len(block):
                end, made = past.play_run(cast, block, begin)
                if end < len(block) and made is None:
                    _play(cast, block.event_of(end), past)
            played += len(block)
        return played
    for event in events:
        _play(cast, event, past)
        played += 1
    return played


def _play(cast: Cast, event: Event, past: Past) -> None:
    try:
        play(cast, event, past)
    except (LogError, StoreError):
        raise
    except Exception as error:
        if not is_unplayable(error):
            raise
        raise LogError(f"event {event['seq']:,} cannot be played: {explain(error)}", event["seq"]) from error
