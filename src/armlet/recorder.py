"""What a bandit knows a log by.

A bandit with a recorder tells it everything that changes the bandit, in the order in which it happens: decisions after
they are made and before anybody sees them, all else after it has been checked and before it is done. So whatever a
recorder refuses does not happen, but that a refused decision has used its step of the clock.
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

    A bandit calls one method at a time, whatever its threads do. What they are told is enough to do the same again on
    a bandit that was made of the start's bytes. A recorder that can also be called by others, as a log can be closed,
    has a `lock`, a `threading.RLock`: the bandit holds it around every change and its record, so that whoever holds it
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
        """Record what is about to happen.

        learn: id, reward, weight. correct: id, old_reward, new_reward, and the weight that it was learned with. forget:
        id, reward, weight. expire: id. Each of them has `decision`, its record, if it is not one that this recorder was
        told of; learn has `expired`, True, if the decision's reward was not waited for any more.
        add_arm, retire_arm, restore_arm, remove_arm: arm. advance: t. partial_fit: X, arms, rewards, explored, weights,
        steps. learn_logged: columns. merge: model, the other bandit's bytes in base64 with a seed that nobody used.
        replace: policy, its name and settings. All rewards are as the user gave them.
        """

    def happened_many(self, kind: str, many: Sequence[Fields]) -> None:
        """Record several of a kind, all or none."""
