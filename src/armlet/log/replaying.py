"""The one replay, of logs and stores: events played again on a bandit, by its public calls, bit for bit what it was.

`PLAYS` is the one table of how an event of each kind changes a bandit. Where a decision comes from is the business of a
`Past`: of a log, decided again; of a store, read from its rows. Memory holds the last decisions only, if older ones can
be found in the log.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.actions.policies import ACTION_POLICIES
from armlet.bandit import Bandit
from armlet.errors import ArmletError, InvalidValueError, LogError, StoreError
from armlet.inputs.budget import Budget
from armlet.inputs.encoder import Encoder
from armlet.inputs.feature_change import FeatureChange
from armlet.inputs.outcomes import Outcomes
from armlet.kernel import Decision
from armlet.loading import from_bytes
from armlet.log.action_tables import Tables
from armlet.log.guarded import GuardedBandit
from armlet.lost_digits import keeping_rows
from armlet.policies import find_policy
from armlet.policies.discounts import fades_by_time, reach_time, time_of
from armlet.record.faults import explain, is_fault
from armlet.record.kinds import LOGGED
from armlet.record.values import HEAD, Event
from armlet.types import Reward

if TYPE_CHECKING:
    from armlet.actions.table import ActionTable

RECENT: Final = 2**15  # decisions of a generation; two of them are kept

Find = Callable[[str], Event | None]
AnyDecision: TypeAlias = Decision | ActionDecision


class Past(Protocol):
    """The decisions that events are about."""

    def decide(self, bandit: Any, event: Event) -> AnyDecision | None:
        """Play a decision; return it if it was decided again."""

    def get(self, event: Event, reward: Reward | None = None) -> AnyDecision:
        """Return the decision that an event is about, which has learned this reward if one is given."""


@runtime_checkable
class ActionPast(Past, Protocol):
    """A past that keeps the tables of actions that decisions choose from."""

    def on_actions(self, event: Event) -> ActionTable | None:
        """Take a table, and return it; None if the event removes one."""


@runtime_checkable
class CarryingPast(Past, Protocol):
    """A past that reads contexts as they were written, and carries those from before features were replaced."""

    def on_change(self, t: int, change: FeatureChange) -> None:
        """Take note that features were replaced after step t."""


class LoggedPast:
    """The decisions of a log, decided again: the last ones from memory, the others found by id."""

    def __init__(self, find: Find | None = None) -> None:
        self._find = find
        self._tables = Tables()
        self._recent: dict[str, AnyDecision] = {}
        self._before: dict[str, AnyDecision] = {}
        self._partial: dict[str, AnyDecision] = {}  # from before these, with outcomes of which some are to come
        self._changes: list[tuple[int, FeatureChange]] = []  # after which step
        self._copies: set[str] = set()  # found, or made with guards: those do not carry their contexts by themselves
        self.guarded: Mapping[str, Any] = {}  # what the guards had to do with the last one

    def on_actions(self, event: Event) -> ActionTable | None:
        """Take a table, and return it; None if the event removes one."""
        return self._tables.read(event)

    def decide(self, bandit: Any, event: Event) -> AnyDecision:
        """Decide again, and remember the decision."""
        asked: dict[str, Any] = {"eligible": event["eligible"], "t": event["t"]}
        asked |= {name: event[name] for name in ("weights", "unit", "epoch") if name in event}
        decision: AnyDecision
        if fades_by_time(bandit):
            bandit._tell_time(event["tag"])
        if "actions" in event:
            table = self._tables.chosen_from(event)
            chosen: ActionDecision = bandit.decide(event["x"], table, **asked, propensity="marginal")
            has_baseline = "shadow" in event  # its caller has played an action of his own
            self.guarded = {"shadow": {"arm": chosen.arm}} if has_baseline else {}
            decision = chosen.instead(event["arm"], table[event["arm"]]) if has_baseline else chosen
        elif isinstance(bandit, GuardedBandit):
            decision, self.guarded = bandit.play(event["x"], **asked)
        else:
            decision = bandit.decide(event["x"], **asked, propensity="marginal")
        self.keep(decision, is_copy=isinstance(bandit, GuardedBandit))
        return decision

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
        found = self._find(name) if self._find is not None else None
        if found is None:
            raise LogError(f"event {event['seq']:,} is about decision {name}, which is not in the log", event["seq"])
        if reward is not None:
            found = {**found, "reward": reward, "weight": event.get("weight", 1.0)}
        elif "expired" in event:
            found = {**found, "expired": event["expired"]}
        if "billed" in event:
            found = {**found, "billed": event["billed"]}
        decision = read_decision({**found, "x": self._carried(found["t"], found["x"])})
        self._recent[name] = decision
        self._copies.add(name)
        return decision

    def on_change(self, t: int, change: FeatureChange) -> None:
        """Carry the contexts of copies; decisions that were made again carry themselves."""
        self._changes.append((t, change))
        for name in self._copies:
            for kept in (self._recent, self._before, self._partial):
                if (decision := kept.get(name)) is not None and len(decision.x):
                    kept[name] = read_decision({**decision.to_dict(), "x": change.carry(decision.x).tolist()})

    def _carried(self, t: int, x: list[float] | None) -> list[float] | None:
        for after, change in self._changes:
            if x is not None and t <= after:
                x = change.carry(x).tolist()
        return x


def read_decision(record: Mapping[str, Any]) -> AnyDecision:
    """Restore a decision from its record: one among actions names their table."""
    return ActionDecision.from_dict(record) if "actions" in record else Decision.from_dict(dict(record))


# ---- what each kind does


def _actions(bandit: Any, event: Event, past: Past) -> None:
    if not isinstance(past, ActionPast):
        raise LogError(f"event {event['seq']:,} is a table of actions, which nothing here keeps", event["seq"])
    table = past.on_actions(event)
    if table is None:
        bandit.remove_table(event["name"])
    elif "name" in event:
        bandit.prepare(event["name"], table)


def _learn(bandit: Any, event: Event, past: Past) -> None:
    decision = past.get(event)
    reach_time(bandit, decision.tag)
    bandit.learn(decision, event["reward"], weight=event["weight"])


def _correct(bandit: Any, event: Event, past: Past) -> None:
    old = event["old_reward"]
    decision = past.get(event, old)
    keeping_rows(lambda: bandit.correct(decision, old, event["new_reward"], **taking_back(bandit)))


def _forget(bandit: Any, event: Event, past: Past) -> None:
    decision = past.get(event, event["reward"])
    # a resync follows, or the bandit that wrote the log has warned
    keeping_rows(lambda: bandit.forget(decision, event["reward"], **taking_back(bandit)))


def taking_back(bandit: Any) -> Mapping[str, Any]:
    """Return the option that takes back, or corrects, any row: an event or a loop cannot be refused one."""
    return {"folded": "approximate"} if isinstance(bandit, ActionBandit) else {}


def _partial_fit(bandit: Any, event: Event, _: Past) -> None:
    bandit.partial_fit(**{name: value for name, value in event.items() if name not in HEAD})


def _learn_logged(bandit: Any, event: Event, _: Past) -> None:
    reach_time(bandit, max(event["columns"].get("tag", ()), default=0))
    keeping_rows(lambda: bandit.partial_fit(event["columns"]))


def _merge(bandit: Any, event: Event, _: Past) -> None:
    other = from_bytes(base64.b64decode(event["model"]))
    reach_time(bandit, time_of(other))
    bandit.merge(other)


def _replace(bandit: Any, event: Event, past: Past) -> None:  # a bandit that must be able to, or the event is refused
    before = bandit.settings
    if "guards" in event:
        raise InvalidValueError("the guards of a loop are not made from events: start from the model after it")
    for call in _replacements(event, before.outcomes):
        bandit.replace(**call)
    after = bandit.settings
    if "outcomes" in event and after.outcomes.to_dict() != event["outcomes"]:
        raise InvalidValueError(f"outcomes is {event['outcomes']}, but they become {after.outcomes.to_dict()}")
    if "features" not in event:
        return
    if list(after.features) != event["features"]:
        raise InvalidValueError(f"features is {event['features']}, but the encoder gives {list(after.features)}")
    if isinstance(past, CarryingPast):
        change = FeatureChange.between(before.features, after.features, event.get("fill"), dim=before.dim)
        past.on_change(bandit.t, change)


def _replacements(event: Event, outcomes: Outcomes | None) -> list[dict[str, Any]]:
    """Return the arguments of the call that an event is a record of; or, of several outcomes, of those it takes."""
    if "policy" in event:
        name, settings = event["policy"]["name"], event["policy"]["settings"]
        return [{"policy": (ACTION_POLICIES.get(name) or find_policy(name))(**settings)}]
    if "reward_range" in event:
        return [{"reward_range": event["reward_range"]}]
    if "feature_range" in event:
        return [{"feature_range": event["feature_range"]}]
    if "outcomes" in event:
        return _reweighed(Outcomes.from_dict(event["outcomes"]), outcomes)
    if "budget" in event:
        return [{"budget": None if event["budget"] is None else Budget.from_dict(event["budget"])}]
    fill = {"fill": event.get("fill", {})}
    if "encoder" in event:
        return [{"encoder": Encoder.from_dict(event["encoder"]), **fill}]
    return [{"features": event["features"], **fill}]


def _reweighed(new: Outcomes, old: Outcomes | None) -> list[dict[str, Any]]:
    """Return what takes a bandit from some outcomes to others: weights, prices, ranges, or the same once more."""
    now = old or new
    known = [] if new.known == now.known else [{"known": new.known}]
    ranges = [] if new.ranges == now.ranges else [{"reward_range": new.ranges}]
    weights = [{"outcomes": new.weights}] if new.weights != now.weights or not (known or ranges) else []
    return weights + known + ranges


PLAYS: Final[Mapping[str, Callable[[Any, Event, Past], object]]] = {
    "actions": _actions,
    "remove_table": _actions,
    "decide": lambda bandit, event, past: past.decide(bandit, event),
    "learn": _learn,
    "correct": _correct,
    "forget": _forget,
    "expire": lambda bandit, event, past: bandit.expire(past.get(event)),
    "bill": lambda bandit, event, past: bandit.bill(past.get(event, event.get("reward")), event["cost"]),
    "add_arm": lambda bandit, event, _: bandit.add_arm(event["arm"]),
    "retire_arm": lambda bandit, event, _: bandit.retire_arm(event["arm"]),
    "restore_arm": lambda bandit, event, _: bandit.restore_arm(event["arm"]),
    "remove_arm": lambda bandit, event, _: bandit.remove_arm(event["arm"]),
    "advance": lambda bandit, event, _: bandit.replace(t=event["t"]),
    "partial_fit": _partial_fit,
    "learn_logged": _learn_logged,
    "replace": _replace,
    "merge": _merge,
    "resync": lambda bandit, event, _: bandit._resync(from_bytes(base64.b64decode(event["model"]))),
}
"""How an event of a kind changes a bandit; all others change nothing."""


def play(bandit: Bandit | ActionBandit, event: Event, past: Past) -> object:
    """Play one event; return the decision if it was decided again."""
    kind = event["kind"]
    if kind in PLAYS:
        return PLAYS[kind](bandit, event, past)
    if kind not in LOGGED:
        raise LogError(f"event {event['seq']:,} is of kind {kind!r}, which this version cannot play", event["seq"])
    return None


def is_unplayable(error: Exception) -> bool:
    """Whether an event, rather than the program, can be the reason for an error."""
    return isinstance(error, ArmletError | AttributeError) or is_fault(error)


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
    past = past or LoggedPast(getattr(events, "find", None))
    played = 0
    for event in events:
        try:
            play(bandit, event, past)
        except (LogError, StoreError):
            raise
        except Exception as error:
            if not is_unplayable(error):
                raise
            raise LogError(f"event {event['seq']:,} cannot be played: {explain(error)}", event["seq"]) from error
        played += 1
    return played
