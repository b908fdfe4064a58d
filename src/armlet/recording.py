"""A bandit that tells a recorder what happens to it: change and record as one, in the order of the engine.

One lock a bandit is held around both, so with a recorder its threads take turns. Without one nothing here is in use.
"""

from __future__ import annotations

import base64
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from types import new_class
from typing import TYPE_CHECKING, Any, Literal, cast

from armlet.errors import BusyError, InvalidTypeError
from armlet.inputs import columns
from armlet.inputs.columns import check_label
from armlet.inputs.settings import check_step
from armlet.kernel import Act, Decision, Decisions, Engine
from armlet.model_file import model
from armlet.parallel.forks import give_up_in_children
from armlet.recorder import Fields, Recorder
from armlet.types import Arm, Bool, Context, Float64, Int64, Policy

if TYPE_CHECKING:
    Base = Engine
else:
    Base = object  # the engine's types take no second base of their own kind: `recorded` puts both together

HOT = ("decide", "decide_at", "learn", "correct", "forget", "expire", "advance_to")
"""What is called on the engine itself, and so may not be overridden where it is to be recorded."""


class Recording:
    """A recorder, and since when it is told."""

    def __init__(self, recorder: Recorder, t: int) -> None:
        self.recorder: Recorder = recorder
        self.since = t
        lock = getattr(recorder, "lock", None)
        self.lock = lock if isinstance(lock, _RLOCK) else threading.RLock()  # one owner: a log's own, if it has one
        give_up_in_children(self)

    def forked(self) -> None:
        """Leave the recorder to the process that began it."""
        self.lock = threading.RLock()  # the other may have been copied while a thread held it
        self.recorder = _Elsewhere()


_RLOCK = type(threading.RLock())


class _Elsewhere:
    """The recorder of a process that was forked from the one that has it."""

    def _refuse(self, *_: object) -> None:
        raise BusyError(
            "the bandit's log belongs to the process that this one was forked from; use bandit.copy(seed=...) here, "
            "with a log of its own"
        )

    open = decided = decided_many = happened = happened_many = _refuse


class _Recorded(Base):
    """What changes a bandit, told before it happens; `recorded` puts it in front of a kind of bandit."""

    __slots__ = ()

    if TYPE_CHECKING:
        _recording: Recording

    # ---- decisions: made, told, given

    def decide(
        self, x: Context, *, eligible: Iterable[Arm] | None = None, probabilities: Literal["all"] | None = None
    ) -> Decision:
        recording = self._recording
        with recording.lock:
            decision = super().decide(x, eligible=eligible, probabilities=probabilities)
            try:
                recording.recorder.decided(decision)
            except BaseException:
                super().expire(decision)  # nobody gets it
                raise
            return decision

    def decide_at(
        self, t: int, x: Context, *, eligible: Iterable[Arm] | None = None, probabilities: Literal["all"] | None = None
    ) -> Decision:
        recording = self._recording
        with recording.lock:
            decision = super().decide_at(t, x, eligible=eligible, probabilities=probabilities)
            try:
                recording.recorder.decided(decision)
            except BaseException:
                super().expire(decision)  # nobody gets it
                raise
            return decision

    def _decide_many(self, X: object, eligible: object | None, first: int | None = None) -> Decisions:
        recording = self._recording
        with recording.lock:
            decisions = super()._decide_many(X, eligible, first)
            try:
                recording.recorder.decided_many(decisions)
            except BaseException:
                for decision in decisions:
                    super().expire(decision)
                raise
            return decisions

    # ---- rewards: checked, told, learned

    def learn(self, decision: Decision, reward: float, *, weight: float = 1.0) -> None:
        recording = self._recording
        with recording.lock:
            told = self._check_learn(decision, reward, weight, recording.since)
            recording.recorder.happened("learn", told)
            super().learn(decision, told["reward"], weight=told["weight"])

    def correct(self, decision: Decision, old_reward: float, new_reward: float) -> None:
        with self._recording.lock:
            old, new = columns.reward(old_reward), columns.reward(new_reward)  # an object may say another each time
            self._check_correct(decision, old, new)
            rewards = {"old_reward": old, "new_reward": new, "weight": decision.weight}
            self._recording.recorder.happened("correct", self._named(decision, self._recording.since) | rewards)
            super().correct(decision, old, new)

    def forget(self, decision: Decision, reward: float) -> None:
        with self._recording.lock:
            r = columns.reward(reward)
            self._check_forget(decision, r)
            rewards = {"reward": r, "weight": decision.weight}
            self._recording.recorder.happened("forget", self._named(decision, self._recording.since) | rewards)
            super().forget(decision, r)

    def expire(self, decision: Decision) -> None:
        with self._recording.lock:
            self._check_expire(decision)
            self._recording.recorder.happened("expire", self._named(decision, self._recording.since))
            super().expire(decision)

    def _learn_many(
        self, decisions: list[Decision], rewards: Float64, weights: Float64, act: Act = Act.perform
    ) -> None:
        with self._recording.lock:
            super()._learn_many(decisions, rewards, weights, Act.rehearse)
            if act == Act.rehearse:
                return
            rows = zip(decisions, rewards.tolist(), weights.tolist(), strict=True)
            many = [
                self._named(decision, self._recording.since) | {"reward": reward, "weight": weight}
                for decision, reward, weight in rows
            ]
            self._recording.recorder.happened_many("learn", many)
            super()._learn_many(decisions, rewards, weights)

    def _learn_rows(
        self,
        X: Float64,
        arms: list[Arm],
        rewards: Float64,
        weights: Float64,
        explored: Bool,
        steps: int,
        act: Act = Act.perform,
    ) -> None:
        def change(act: Act) -> None:
            super(_Recorded, self)._learn_rows(X, arms, rewards, weights, explored, steps, act)

        fields = {
            "X": X.tolist(),
            "arms": [check_label(arm) for arm in arms],
            "rewards": rewards.tolist(),
            "explored": explored.tolist(),
            "weights": weights.tolist(),
            "steps": steps,
        }
        self._tell("partial_fit", fields, change, act)

    def _learn_logged(
        self,
        X: Float64,
        arms: list[Arm],
        steps: Int64,
        rewards: Float64,
        weights: Float64,
        explored: Bool,
        propensities: Float64,
        tags: Int64,
        replaces: Float64,
        act: Act = Act.perform,
    ) -> None:
        def change(act: Act) -> None:
            super(_Recorded, self)._learn_logged(
                X, arms, steps, rewards, weights, explored, propensities, tags, replaces, act
            )

        told = {
            "t": steps.tolist(),
            "x": X.tolist(),
            "arm": [check_label(arm) for arm in arms],
            "reward": rewards.tolist(),
            "propensity": propensities.tolist(),
            "explored": explored.tolist(),
            "tag": tags.tolist(),
            "weight": weights.tolist(),
            "replaces": [None if math.isnan(value) else value for value in replaces.tolist()],
        }
        self._tell("learn_logged", {"columns": told}, change, act)

    # ---- arms and clock

    def _tell(self, kind: str, fields: Fields, change: Callable[[Act], None], act: Act = Act.perform) -> None:
        with self._recording.lock:
            change(Act.rehearse)
            if act == Act.perform:
                self._recording.recorder.happened(kind, fields)
                change(Act.perform)

    def _add_arm(self, label: object, act: Act = Act.perform) -> None:
        self._tell("add_arm", {"arm": check_label(label)}, lambda a: super(_Recorded, self)._add_arm(label, a), act)

    def _remove_arm(self, label: object, act: Act = Act.perform) -> None:
        fields = {"arm": check_label(label)}
        self._tell("remove_arm", fields, lambda a: super(_Recorded, self)._remove_arm(label, a), act)

    def _set_active(self, label: object, active: bool, act: Act = Act.perform) -> None:
        kind = "restore_arm" if active else "retire_arm"
        fields = {"arm": check_label(label)}
        self._tell(kind, fields, lambda a: super(_Recorded, self)._set_active(label, active, a), act)

    def advance_to(self, t: int) -> None:
        def change(act: Act) -> None:
            if act == Act.rehearse:
                self._check_advance(step)
            else:
                super(_Recorded, self).advance_to(step)

        step = check_step(t)
        self._tell("advance", {"t": step}, change)

    # ---- the whole

    def _merge(
        self,
        state: object,
        labels: list[Arm],
        retired: list[Arm],
        steps: int,
        seeds: list[int],  # noqa: ARG002  # a log holds none, so a replay could not know the other's decisions
        act: Act = Act.perform,
    ) -> None:
        def change(act: Act) -> None:
            super(_Recorded, self)._merge(state, labels, retired, steps, [], act)

        data = self._as_bytes(state, labels, retired, steps)  # type: ignore[attr-defined]  # the Bandit's
        self._tell("merge", {"model": base64.b64encode(data).decode()}, change, act)

    def _replace(self, policy: object, rule: object | None, act: Act = Act.perform) -> None:
        fields = {"policy": model.policy_header(cast(Policy, policy))}
        self._tell("replace", fields, lambda a: super(_Recorded, self)._replace(policy, rule, a), act)

    def _restore(self, state: object, labels: list[Arm], steps: int) -> None:  # noqa: ARG002
        raise BusyError("fit forgets what the bandit's log tells; begin a new bandit, with a log of its own")

    def _reseed(self, seed: object) -> None:  # noqa: ARG002
        raise BusyError("a new seed ends a log; save the bandit, and load it with a seed and a log of its own")


def recorded(kind: type[Engine]) -> type[Engine]:
    """Give the kind of bandit that tells a recorder what happens to it; it looks like the kind itself.

    Examples
    --------
    >>> import armlet
    >>> issubclass(recorded(armlet.Bandit), armlet.Bandit), recorded(armlet.Bandit).__name__
    (True, 'Bandit')
    """
    if "_recorded" in vars(kind):
        return cast(type[Engine], vars(kind)["_recorded"])
    for name in HOT:
        if getattr(kind, name) is not getattr(Engine, name):
            raise InvalidTypeError(
                f"{kind.__name__} overrides {name}, so a log could not tell what happens to it; leave log out, or call "
                f"the method something else"
            )
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    made = new_class(kind.__name__, (_Recorded, kind), exec_body=lambda body: body.update(names, _unrecorded=kind))
    kind._recorded = made  # type: ignore[attr-defined]  # made once
    return made


def attach(bandit: Engine, recorder: Recorder, start: bytes, about: Mapping[str, Any]) -> None:
    """Tell a recorder everything that happens to a bandit from now on, or leave the bandit as it was."""
    for name in ("open", "decided", "decided_many", "happened", "happened_many"):
        if not callable(getattr(recorder, name, None)):
            raise InvalidTypeError(
                f"log is {recorder!r}, which has no {name}; give an armlet.Log, or a Recorder of your own"
            )
    kind = recorded(type(bandit))
    recorder.open(start, about, bandit.digest)  # type: ignore[attr-defined]  # the Bandit's
    bandit._recording = Recording(recorder, bandit.t)  # type: ignore[attr-defined]  # what the new kind looks for
    bandit.__class__ = kind
