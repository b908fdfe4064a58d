"""The interface between a bandit and its log.

The engine passes every state change to the recorder, in order: decisions after they are made and before the caller gets
them, everything else after it was checked and before it is done. So a change that the recorder refuses does not happen;
a decision that it refuses is expired, and has used its step of the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
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
    ...     def decided(self, decision):
    ...         print("decide", decision.t)
    ...
    ...     def decided_many(self, decisions):
    ...         print("decide", decisions.t.tolist())
    ...
    ...     def happened(self, kind, fields):
    ...         print(kind, sorted(fields))
    ...
    ...     def happened_many(self, kind, many):
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
            reward_range, t and digest.
        digest
            Gives the digest of the state at any later time; from inside the other methods too.
        """

    def decided(self, decision: Decision) -> None:
        """Record a decision that was made."""

    def decided_many(self, decisions: Decisions) -> None:
        """Record those of a batch, all or none."""

    def happened(self, kind: str, fields: Fields) -> None:
        """Record a change that is about to be made.

        learn: id, reward, weight. correct: id, old_reward, new_reward, and the weight that it was learned with. forget:
        id, reward, weight. expire: id. Each of them has `decision`, its record, if this recorder did not receive that
        before; learn has `expired`, True, if the decision's reward was not waited for any more.
        add_arm, retire_arm, restore_arm, remove_arm: arm. advance: t. partial_fit: X, arms, rewards, explored, weights,
        steps. learn_logged: columns. merge: model, the other bandit's bytes in base64 with a seed that nobody used.
        replace: policy, its name and settings. All rewards are as the user gave them.
        """

    def happened_many(self, kind: str, many: Sequence[Fields]) -> None:
        """Record several of a kind, all or none."""
