"""Bandits back from files and bytes, of either kind: the header of a model file says which one it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from armlet import bandit, disk
from armlet.actions.bandit import ActionBandit
from armlet.actions.file import KIND, restore
from armlet.bandit import Bandit
from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.policies import check_given

if TYPE_CHECKING:
    from armlet.disk import Source
    from armlet.recording import Recorder
    from armlet.types import Policy

EitherBandit = TypeVar("EitherBandit", bound=Bandit | ActionBandit)


@overload
def load(
    path: Source,
    *,
    policy: Policy | None = None,
    seed: int | Literal["random"] | None = None,
    log: Recorder | None = None,
) -> Bandit: ...
@overload
def load(
    path: Source,
    *,
    kind: type[EitherBandit],
    policy: Policy | None = None,
    seed: int | Literal["random"] | None = None,
    log: Recorder | None = None,
) -> EitherBandit: ...
def load(
    path: Source,
    *,
    kind: type[EitherBandit] | None = None,
    policy: Policy | None = None,
    seed: int | Literal["random"] | None = None,
    log: Recorder | None = None,
) -> Bandit | EitherBandit:
    """Read a bandit back from its file; it decides as the saved one would, bit for bit.

    Parameters
    ----------
    path
        A file written by `save`; or a binary file object, which is read to its end.
    kind
        `armlet.Bandit` or `armlet.ActionBandit`, to refuse a file that holds the other; type checkers expect a Bandit
        if it is left out.
    policy
        The policy, if it is not one of Armlet's own.
    seed
        A seed of its own, as in `Bandit.replace`, for one of several processes that load the same file, or after a
        restart from a file that is older than the last decision: otherwise the same ids come again for other contexts.
        Pending decisions of the file's own seed can still be learned.
    log
        Receives every state change from now on, as in `Bandit`.

    Examples
    --------
    >>> import io, armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1)
    >>> file = io.BytesIO()
    >>> bandit.save(file)
    >>> _ = file.seek(0)
    >>> worker = armlet.load(file, seed=2)
    >>> worker.decide([1.0]).id == bandit.decide([1.0]).id
    False
    """
    if policy is not None:
        check_given(policy)
    bandit = _restored(disk.origin(path), *disk.read_model(path), policy)
    check_kind(bandit, kind, disk.origin(path))
    if seed is not None:
        bandit.replace(seed=seed)
    if log is not None:
        bandit._attach_log(cast(Any, log))
    return cast("Bandit | EitherBandit", bandit)


@overload
def from_bytes(data: bytes, *, policy: Policy | None = None, log: Recorder | None = None) -> Bandit: ...
@overload
def from_bytes(
    data: bytes, *, kind: type[EitherBandit], policy: Policy | None = None, log: Recorder | None = None
) -> EitherBandit: ...
def from_bytes(
    data: bytes,
    *,
    kind: type[EitherBandit] | None = None,
    policy: Policy | None = None,
    log: Recorder | None = None,
) -> Bandit | EitherBandit:
    """Read a bandit back from what its `to_bytes` returned; nothing in it is ever executed.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.ActionBandit(1, 1, seed=1)
    >>> twin = armlet.from_bytes(bandit.to_bytes(), kind=armlet.ActionBandit)
    >>> actions = {"tea": [2.0], "milk": [1.0]}
    >>> twin.decide([1.0], actions).id == bandit.decide([1.0], actions).id
    True
    """
    if policy is not None:
        check_given(policy)
    bandit = _restored(disk.origin(data), *disk.decode_model(data), policy)
    check_kind(bandit, kind, disk.origin(data))
    if log is not None:
        bandit._attach_log(cast(Any, log))
    return cast("Bandit | EitherBandit", bandit)


def _restored(
    name: str, header: dict[str, Any], arrays: dict[str, disk.Array], policy: Policy | None
) -> Bandit | ActionBandit:
    if header.get("kind") != KIND:
        return bandit.from_parts(name, header, arrays, policy)
    if policy is not None:
        raise InvalidValueError(
            f"policy is {policy!r}, but {name} holds an ActionBandit, which knows its own; leave it out"
        )
    return ActionBandit._from_model(restore(name, header, arrays))


def check_kind(bandit: Bandit | ActionBandit, kind: type[EitherBandit] | None, name: str) -> None:
    """Refuse a bandit of another kind than was asked for."""
    if kind is not None and not isinstance(bandit, kind):
        raise InvalidTypeError(
            f"kind is {kind.__name__}, but {name} holds an {type(bandit).__name__}; give a file of that kind"
        )
