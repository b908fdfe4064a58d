"""The interface between a bandit and its log.

The engine passes every state change to the recorder, in order and under its lock, so with one the threads of a bandit
take turns: decisions after they are made and before the caller gets them, everything else after it was checked and
before it is done. So a change that the recorder refuses does not happen; a decision that it refuses is expired, and has
used its step of the clock.
"""

from __future__ import annotations

import base64
import dataclasses
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from armlet import model_file
from armlet.disk import give_up_in_children
from armlet.errors import BusyError, InvalidTypeError
from armlet.inputs.settings import Settings, check_seed
from armlet.kernel import Engine, Lines, commit
from armlet.types import Policy, Snapshot

if TYPE_CHECKING:
    from armlet.actions.decision import ActionDecision
    from armlet.actions.table import ActionTable
    from armlet.inputs.encoder import Encoder
    from armlet.inputs.feature_change import FeatureChange
    from armlet.inputs.outcomes import Outcomes
    from armlet.kernel import Decision, Decisions

Fields: TypeAlias = Mapping[str, Any]
"""Names and plain JSON values."""
Value: TypeAlias = tuple[object, str, object] | tuple[object, str, object, object]
"""An attribute to set: of what, which, to what; and what it must be until then, else nothing is set."""
Values: TypeAlias = tuple[Value, ...]


class Recorder(Protocol):
    """A log, as a bandit sees it: `armlet.Bandit(..., log=recorder)`.

    A bandit calls one method at a time, regardless of its threads. What the recorder receives is enough to repeat
    everything on a bandit made of the start's bytes. A recorder that others call too, as a log can be closed, has a
    `lock`, a `threading.RLock`: the bandit holds it around every change and its record, so that anyone who holds it
    finds both or neither.

    Examples
    --------
    >>> import armlet
    >>> class Heard:
    ...     def open(self, start, about, digest):
    ...         print("open", about["arms"], about["t"])
    ...
    ...     def on_decision(self, decision):
    ...         print("decide", decision.t)
    ...
    ...     def on_decisions(self, decisions):
    ...         print("decide", decisions.t.tolist())
    ...
    ...     def on_event(self, kind, fields):
    ...         print(kind, sorted(fields))
    ...
    ...     def on_events(self, kind, many):
    ...         print(len(many), kind)
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=2), seed=1, log=Heard())
    open ['a', 'b'] 0
    >>> bandit.learn(bandit.decide([1.0]), 0.5)
    decide 1
    learn ['id', 'reward', 'weight']
    >>> bandit.retire_arm("a")
    retire_arm ['arm']
    """

    def open(self, start: bytes, about: Fields, digest: Callable[[], str]) -> None:
        """Begin.

        Parameters
        ----------
        start
            The bandit as `to_bytes` gives it, with its seed: to be kept apart from the log.
        about
            version, policy (name and settings), arms, retired, dim, features, objective, normalize, units,
            reward_range, t and digest; of a bandit that has them feature_range, outcomes, budget, spending and epoch.
        digest
            Gives the digest of the state at any later time; from inside the other methods too.
        """

    def on_decision(self, decision: Decision) -> None:
        """Record a decision that was made; its propensity is marginal, over all coins."""

    def on_decisions(self, decisions: Decisions) -> None:
        """Record those of a batch, all or none."""

    def on_event(self, kind: str, fields: Fields) -> None:
        """Record a change that is about to be made.

        learn: id, reward, weight. correct: id, old_reward, new_reward, and the weight that it was learned with. forget:
        id, reward, weight. expire: id. bill: id, cost. Each of them has `decision`, its record, if this recorder did
        not receive that before; `expired`, True, if the decision's reward was not waited for any more; and `billed`,
        what counted as its cost in a budget, if that is not the cost that was learned.
        add_arm, retire_arm, restore_arm, remove_arm: arm. advance: t. partial_fit: X, arms, rewards, explored, weights,
        steps. learn_logged: columns. merge: model, the other bandit's bytes in base64 with a seed that nobody used.
        replace: one of policy, its name and settings; features, the names from now on, with fill, what rows from before
        have in new ones, and encoder if it makes them; reward_range; feature_range, all of them or None; outcomes, all
        of what they are from now on; budget, None if there is to be none. Contexts have the features of their time. All
        rewards are as the user gave them: with several outcomes those that came, by name; a correction has all that the
        decision had.
        """

    def on_events(self, kind: str, many: Sequence[Fields]) -> None:
        """Record several of a kind, all or none."""


_RLOCK = type(threading.RLock())


class Recording:
    """A recorder and its lock, as the engine holds them; a forked child gives both up."""

    def __init__(self, recorder: Recorder, state: Callable[[], Fields]) -> None:
        self.recorder: Recorder = recorder
        lock, lines = getattr(recorder, "lock", None), getattr(recorder, "lines", None)
        self.lock = lock if isinstance(lock, _RLOCK) else threading.RLock()  # one owner: a log's own, if it has one
        self.lines = lines if isinstance(lines, Lines) else None
        """Where a change is recorded in one step with it, if the recorder is a log; else the recorder is called."""
        self.doubtful = False
        """Whether a call of the recorder was interrupted, so that the last change may be in it and not in the bandit,
        or the other way round."""
        self._state = state
        give_up_in_children(self)

    # ---- changes of a bandit in Python; the engine makes its own

    def change(
        self,
        kind: str,
        many: list[dict[str, Any]],
        values: Values,
        call: Callable[..., object] | None = None,
        args: tuple[Any, ...] = (),
    ) -> None:
        """Record events of a kind and make the change that they are of: a call of a builtin method, and attributes."""
        log: Any = self.recorder
        if self.lines is not None:
            log.check(kind, many)
            commit(self.lines, [(kind, fields) for fields in many], values, call, args)
            log.seal_if_due(is_decision=False)
            return
        record = (lambda: log.on_event(kind, many[0])) if len(many) == 1 else (lambda: log.on_events(kind, many))
        self._call(record, values, call, args)

    def table(self, table: ActionTable, name: str, values: Values) -> None:
        """Record a table of actions that was prepared under a name."""
        log: Any = self.recorder
        if self.lines is None:
            self._call(lambda: log.on_actions(table, name), values)
            return
        events, known = log.table_change(table, name)
        commit(self.lines, events, (*known, *values))
        log.seal_if_due(is_decision=False)

    def table_removed(self, name: str, values: Values) -> None:
        """Record that a prepared table was removed."""
        log: Any = self.recorder
        known = () if self.lines is None else log.tables_without(name)
        self.change("remove_table", [{"name": name}], (*known, *values))

    def decision(self, decision: ActionDecision, table: ActionTable, clock: Values) -> None:
        """Record a decision, and the table that it chose from if that is not known, and set the clock."""
        log: Any = self.recorder
        values: Values = ((decision, "recorded", self),)
        if self.lines is not None:
            events, known = log.table_change(table, is_used=True)
            commit(self.lines, [*events, ("decide", decision.to_dict())], (*known, *clock, *values))
            log.seal_if_due(is_decision=True)
            return

        def record() -> None:
            log.on_actions(table, None)
            commit(None, [], clock)  # a decision that is refused has used its step: it may have been kept
            try:
                log.on_decision(decision)
            except BaseException:
                decision.expired = True
                raise

        self._call(record, values)

    def _call(
        self,
        record: Callable[[], None],
        values: Values,
        call: Callable[..., object] | None = None,
        args: tuple[Any, ...] = (),
    ) -> None:
        """Call a recorder, then make the change; whatever interrupts either leaves a doubt."""
        if self.doubtful:
            self.reconcile()
        self.doubtful = True
        try:
            record()
        except Exception:  # it has refused
            self.doubtful = False
            raise
        commit(None, [], (*values, (self, "doubtful", False)), call, args)

    def reconcile(self) -> None:
        """Have the recorder receive the whole state, since it may have another."""
        self.recorder.on_event("resync", self._state())
        self.doubtful = False
        warnings.warn(
            "a change was interrupted while it was recorded, so the log may not have it, or have it twice; a resync "
            "event tells the state that it goes on from",
            RuntimeWarning,
            stacklevel=3,
        )

    def forked(self) -> None:
        """Leave the recorder to the process that opened it."""
        self.lock = threading.RLock()  # the other may have been copied while a thread held it
        self.recorder, self.lines = _Elsewhere(), None


class _Elsewhere:
    """The recorder of a process that was forked from the one that has it."""

    def _refuse(self, *_: object) -> None:
        raise BusyError(
            "the bandit's log belongs to the process that this one was forked from; use bandit.copy(seed=...) here, "
            "with a log of its own"
        )

    open = on_decision = on_decisions = on_actions = on_event = on_events = _refuse


def attach(
    bandit: Engine,
    recorder: Recorder,
    now: model_file.BanditModel,
    digest: Callable[[], str],
    state: Callable[[], Fields],
) -> Recording:
    """Pass a recorder the bandit as it is `now`, and every change from now on; or leave the bandit as it was."""
    recording = begin(recorder, model_file.encode(now), model_file.describe(now), digest, state)
    bandit._attach(recording)
    return recording


METHODS: Final = ("open", "on_decision", "on_decisions", "on_event", "on_events")


def begin(
    recorder: Recorder,
    start: bytes,
    about: Fields,
    digest: Callable[[], str],
    state: Callable[[], Fields],
    methods: Sequence[str] = METHODS,
) -> Recording:
    """Open a recorder, which must have these methods."""
    for name in methods:
        if not callable(getattr(recorder, name, None)):
            raise InvalidTypeError(
                f"log is {recorder!r}, which has no {name}; give an armlet.Log, or a Recorder of your own"
            )
    recorder.open(start, about, digest)
    return Recording(recorder, state)


def resync_fields(now: model_file.BanditModel) -> Fields:
    """Describe a state that a log goes on from: the bandit as a model, with a seed that nobody used."""
    safe = dataclasses.replace(now, seed=check_seed(None), streams=())
    return {"model": base64.b64encode(model_file.encode(safe)).decode()}


def merge_fields(settings: Settings, other: Snapshot) -> Fields:
    """Describe a merge: what was learned elsewhere, as a model with these settings and a seed that nobody used."""
    safe = other._replace(seed=check_seed(None), streams=[])
    learned = model_file.BanditModel(settings=settings, **safe._asdict())
    return {"model": base64.b64encode(model_file.encode(learned)).decode()}


def policy_fields(policy: Policy) -> Fields:
    """Describe a new policy: its name and settings."""
    return {"policy": model_file.policy_header(policy)}


def outcome_fields(outcomes: Outcomes) -> Fields:
    """Describe outcomes that weigh or cost something else from now on."""
    return {"outcomes": outcomes.to_dict()}


def feature_fields(change: FeatureChange, encoder: Encoder | None) -> Fields:
    """Describe other features: their names, what rows from before have in new ones, and the encoder."""
    fields: Fields = {"features": list(change.after), "fill": change.added}
    return fields if encoder is None else {**fields, "encoder": encoder.to_dict()}
