"""The interface between a bandit and its log.

The engine passes every state change to the recorder, in order and under its lock, so with one the threads of a bandit
take turns: decisions after they are made and before the caller gets them, everything else after it was checked and
before it is done. So a change that the recorder refuses does not happen; a decision that it refuses is expired, and has
used its step of the clock.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from armlet import model_file
from armlet.disk import give_up_in_children
from armlet.errors import BusyError, InvalidTypeError
from armlet.inputs.settings import Settings, check_seed
from armlet.kernel import Engine
from armlet.types import Policy, Snapshot

if TYPE_CHECKING:
    from armlet.inputs.encoder import Encoder
    from armlet.inputs.feature_change import FeatureChange
    from armlet.inputs.outcomes import Outcomes
    from armlet.kernel import Decision, Decisions

Fields: TypeAlias = Mapping[str, Any]
"""Names and plain JSON values."""


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
            reward_range, t and digest; of a bandit that has them outcomes, budget, spending and epoch.
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
        id, reward, weight. expire: id. Each of them has `decision`, its record, if this recorder did not receive that
        before; learn has `expired`, True, if the decision's reward was not waited for any more.
        add_arm, retire_arm, restore_arm, remove_arm: arm. advance: t. partial_fit: X, arms, rewards, explored, weights,
        steps. learn_logged: columns. merge: model, the other bandit's bytes in base64 with a seed that nobody used.
        replace: one of policy, its name and settings; features, the names from now on, with fill, what rows from before
        have in new ones, and encoder if it makes them; reward_range; outcomes, all of what they are from now on;
        budget. Contexts have the features of their time. All rewards are as the user gave them: with several outcomes
        those that came, by name; a correction has all that the decision had.
        """

    def on_events(self, kind: str, many: Sequence[Fields]) -> None:
        """Record several of a kind, all or none."""


_RLOCK = type(threading.RLock())


class Recording:
    """A recorder and its lock, as the engine holds them; a forked child gives both up."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder: Recorder = recorder
        lock = getattr(recorder, "lock", None)
        self.lock = lock if isinstance(lock, _RLOCK) else threading.RLock()  # one owner: a log's own, if it has one
        give_up_in_children(self)

    def forked(self) -> None:
        """Leave the recorder to the process that opened it."""
        self.lock = threading.RLock()  # the other may have been copied while a thread held it
        self.recorder = _Elsewhere()


class _Elsewhere:
    """The recorder of a process that was forked from the one that has it."""

    def _refuse(self, *_: object) -> None:
        raise BusyError(
            "the bandit's log belongs to the process that this one was forked from; use bandit.copy(seed=...) here, "
            "with a log of its own"
        )

    open = on_decision = on_decisions = on_actions = on_event = on_events = _refuse


def attach(bandit: Engine, recorder: Recorder, now: model_file.Model, digest: Callable[[], str]) -> None:
    """Pass a recorder the bandit as it is `now`, and every change from now on; or leave the bandit as it was."""
    bandit._attach(begin(recorder, model_file.encode(now), model_file.describe(now), digest))


METHODS: Final = ("open", "on_decision", "on_decisions", "on_event", "on_events")


def begin(
    recorder: Recorder, start: bytes, about: Fields, digest: Callable[[], str], methods: Sequence[str] = METHODS
) -> Recording:
    """Open a recorder, which must have these methods."""
    for name in methods:
        if not callable(getattr(recorder, name, None)):
            raise InvalidTypeError(
                f"log is {recorder!r}, which has no {name}; give an armlet.Log, or a Recorder of your own"
            )
    recorder.open(start, about, digest)
    return Recording(recorder)


def merge_fields(settings: Settings, other: Snapshot) -> Fields:
    """Describe a merge: what was learned elsewhere, as a model with these settings and a seed that nobody used."""
    safe = other._replace(seed=check_seed(None), streams=[])
    learned = model_file.Model(settings=settings, **safe._asdict())
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
