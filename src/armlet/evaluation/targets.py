"""Policies to be valued: what each would have done with a logged context. O(n K d) a block for a bandit.

A target is asked about contexts and the arms that were eligible, and answers with one arm a row or with probabilities.
"""

from __future__ import annotations

import contextlib
import os
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from armlet.bandit import Bandit
from armlet.errors import ArgumentError
from armlet.evaluation.rows import Rows, deterministic_rows
from armlet.inputs.columns import check_labels, check_utf8, is_number
from armlet.inputs.contexts import is_table
from armlet.inputs.table import Table
from armlet.loading import load
from armlet.types import Arm, Bool, Float64, Int64, Mode

if TYPE_CHECKING:
    from armlet.actions.bandit import ActionBandit
    from armlet.inputs.encoder import Encoder

ActionDist: TypeAlias = Int64 | Float64
"""One arm a row, (n,) of int64; or the probabilities of all arms, (n, K) of float64."""
Function: TypeAlias = Callable[..., Any]
"""f(X, eligible), or f(X, eligible, arms): contexts (n, d), eligible arms (n, K), both read-only, and their labels.

It returns one label a row, or probabilities by label: a mapping, a data frame, an Arrow table, or an array with named
columns. A matrix (n, K) has no labels: it is read only where f has a parameter `arms`, the caller gave `arms=`, or the
labels are 0 to K - 1.
"""
TargetLike: TypeAlias = "Target | Bandit | ActionBandit | Function | Arm | os.PathLike[str]"

Column = TypeVar("Column", Float64, Bool)
L = TypeVar("L")

OWN = "own"
SUM_SLACK = 1e-6  # by which probabilities may miss a sum of 1


class Law(Protocol):
    """What a target would have done in n rows."""

    @property
    def played(self) -> Float64:
        """(n,): its probability of what was played."""

    @property
    def is_certain(self) -> bool:
        """Whether it would have played one thing in every row."""

    def take(self, which: Bool) -> Self:
        """Return the law of some rows."""


@dataclass(frozen=True, slots=True)
class ArmLaw:
    """The law of a target that plays arms."""

    dist: ActionDist
    arm: Int64  # (n,): those that were played

    @property
    def played(self) -> Float64:
        """(n,): its probability of the arm that was played."""
        return prob_of_played(self.dist, self.arm)

    @property
    def is_certain(self) -> bool:
        """Whether it would have played one arm in every row."""
        return self.dist.ndim == 1 or bool(((self.dist == 0.0) | (self.dist == 1.0)).all())

    def take(self, which: Bool) -> ArmLaw:
        """Return the law of some rows."""
        return ArmLaw(self.dist[which], self.arm[which])


class Target(ABC):
    """A policy that does not learn."""

    name: str
    is_log: ClassVar[bool] = False
    """Whether it is the policy that logged."""

    @abstractmethod
    def law(self, rows: Rows) -> Law:
        """Return what it would have done."""

    @abstractmethod
    def beyond(self, rows: Rows) -> float:
        """Return how much of what it plays the log could not have played, in rows."""

    def learned(self) -> dict[Arm, float]:
        """Return how many rows of every arm it has learned; empty if it does not count them."""
        return {}


class ArmTarget(Target):
    """One that plays arms."""

    def beyond(self, rows: Rows) -> float:
        """Return how often it plays another arm where the log could play no other."""
        certain = deterministic_rows(rows)
        return float((1.0 - self.law(rows.take(certain)).played).sum()) if certain.any() else 0.0

    @abstractmethod
    def action_dist(self, rows: Rows) -> ActionDist:
        """Return the arm of each row, or the probabilities of all."""

    def law(self, rows: Rows) -> ArmLaw:
        """Return what it would have done."""
        return ArmLaw(self.action_dist(rows), rows.arm)


@dataclass(frozen=True, slots=True)
class Always(ArmTarget):
    """One arm where it is eligible; elsewhere the eligible ones uniformly."""

    name: str
    arm: int

    def action_dist(self, rows: Rows) -> ActionDist:
        """Return the arm, or probabilities if it was not always eligible."""
        may = rows.eligible[:, self.arm]
        if may.all():
            return np.full(len(rows), self.arm, dtype=np.int64)
        dist = _uniform(rows.eligible)
        dist[may] = 0.0
        dist[may, self.arm] = 1.0
        return dist


@dataclass(frozen=True, slots=True)
class UniformTarget(ArmTarget):
    """All eligible arms with equal probability."""

    name: str = "uniform"

    def action_dist(self, rows: Rows) -> ActionDist:
        """Return equal probabilities."""
        return _uniform(rows.eligible)


@dataclass(frozen=True, slots=True)
class Logged(ArmTarget):
    """The logging policy: what was played was played."""

    name: str = "logged"
    is_log = True

    def action_dist(self, rows: Rows) -> ActionDist:
        """Return the arms of the log."""
        return rows.arm


@dataclass(frozen=True, slots=True)
class FunctionTarget(ArmTarget):
    """A function that returns labels, or probabilities."""

    name: str
    function: Function
    arms: tuple[Arm, ...]  # of the log
    order: tuple[Arm, ...] | None = None  # of the columns, as the caller gave it

    def action_dist(self, rows: Rows) -> ActionDist:
        """Call it, and read its answer by the labels of arms."""
        order = self.order or self.arms
        places = [self.arms.index(arm) for arm in order]
        eligible = rows.eligible if self.order is None else np.ascontiguousarray(rows.eligible[:, places])
        has_order = _takes_arms(self.function)
        more = {"arms": order} if has_order else {}
        answer = self.function(_read_only(rows.X), _read_only(eligible), **more)
        columns = _columns_of(answer)
        if columns is not None:
            return checked_dist(self._by_label(columns, len(rows)), rows, self.name)
        array = self._array(answer)
        if array.ndim == 1:
            return checked_dist(np.eye(len(self.arms))[[self._place(arm) for arm in array.tolist()]], rows, self.name)
        if not has_order:
            what = "{targets} has {name!r}: return labels, or probabilities by label; a matrix"
            places_in(self.arms, self.order, what, name=self.name)
        matrix = self._numbers(array)
        dist = matrix[:, np.argsort(places)] if matrix.shape[1] == len(places) else matrix  # which is refused
        return checked_dist(dist, rows, self.name)

    def _by_label(self, columns: Iterable[tuple[Any, Any]], n: int) -> Float64:
        """Return probabilities from columns by label; arms without a column have probability 0."""
        dist = np.zeros((n, len(self.arms)))
        for arm, column in columns:
            place, values = self._place(arm), self._numbers(column)
            if values.shape not in ((), (n,)):
                text = "{targets} has {name!r}, whose column {arm!r} has shape {shape} for {n} rows; return one a row"
                raise ArgumentError(text, name=self.name, arm=arm, shape=values.shape, n=n)
            dist[:, place] = values
        return dist

    def _array(self, answer: object) -> npt.NDArray[Any]:
        """Return labels (n,) or probabilities (n, K) as an array."""
        with contextlib.suppress(TypeError, ValueError):  # of lists of unequal lengths
            array = np.asarray(answer)
            if array.dtype.kind == "U" and isinstance(answer, list | tuple):  # of which a number may have become text
                array = np.asarray(answer, dtype=np.object_)
            if array.ndim in (1, 2):
                return array
        text = "{targets} has {name!r}, which returns {given}; return one label of {arms} a row, or probabilities"
        raise ArgumentError(text, name=self.name, given=reprlib.repr(answer), arms=list(self.arms))

    def _numbers(self, answer: object) -> Float64:
        try:
            return np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError):
            text = "{targets} has {name!r}, which returns {given}; return probabilities, or one label of {arms} a row"
            raise ArgumentError(text, name=self.name, given=reprlib.repr(answer), arms=list(self.arms)) from None

    def _place(self, arm: object) -> int:
        if (isinstance(arm, str) or is_number(arm)) and arm in self.arms:
            return self.arms.index(arm)
        text = "{targets} has {name!r}, which returns {arm}; return labels of {arms}, or probabilities by label"
        raise ArgumentError(text, name=self.name, arm=reprlib.repr(arm), arms=list(self.arms))


def _takes_arms(function: Function) -> bool:
    try:
        return "arms" in signature(function).parameters
    except (TypeError, ValueError):  # of a function in C
        return False


def _columns_of(answer: Any) -> list[tuple[Any, Any]] | None:
    """Return labels and columns of a mapping, a data frame, an Arrow table or an array with named columns."""
    if isinstance(answer, Mapping):
        return list(answer.items())
    if isinstance(answer, np.ndarray):
        return None if answer.dtype.names is None else [(name, answer[name]) for name in answer.dtype.names]
    if not is_table(answer):
        return None
    labels = getattr(answer, "column_names", None)  # of Arrow
    labels = getattr(answer, "columns", None) if labels is None else labels  # of data frames
    return None if labels is None else [(label, answer[label]) for label in labels]  # an Arrow column has neither


def read_order(arms: Iterable[Arm] | None, of_log: tuple[Arm, ...]) -> tuple[Arm, ...] | None:
    """Read the order of arms that a caller gives, which must name those of the log once each.

    Examples
    --------
    >>> read_order(["ten_off", "control"], ("control", "free_ship", "ten_off"))
    Traceback (most recent call last):
    armlet.errors.ArgumentError: arms is ['ten_off', 'control']; name each of ['control', 'free_ship', 'ten_off'] once
    """
    if arms is None:
        return None
    order = tuple(check_labels(arms))
    if len(order) != len(of_log) or set(order) != set(of_log):
        raise ArgumentError("{arms} is {order}; name each of {known} once", order=list(order), known=list(of_log))
    return order


def places_in(of_log: tuple[Arm, ...], order: tuple[Arm, ...] | None, what: str, **values: object) -> list[int]:
    """Return the place in the log of each arm of an array; refuse an array if nothing says which column is which arm.

    Where arms are the numbers 0 to K - 1, the number of a column is its label.

    Examples
    --------
    >>> places_in(("a", "b"), ("b", "a"), "{thetas}")
    [1, 0]
    >>> places_in(("a", "b"), None, "{thetas}")
    Traceback (most recent call last):
    armlet.errors.ArgumentError: thetas has no labels of arms; give arms=, the labels ['a', 'b'] in its order
    """
    if order is None and list(of_log) != list(range(len(of_log))):
        text = what + " has no labels of arms; give arms=, the labels {of_log} in its order"
        raise ArgumentError(text, of_log=list(of_log), **values)
    return [of_log.index(arm) for arm in order or of_log]


@dataclass(frozen=True, slots=True)
class BanditTarget(ArmTarget):
    """A bandit, as it is now."""

    name: str
    bandit: Bandit
    arms: tuple[Arm, ...]  # of the log
    mode: Mode = "greedy"

    def action_dist(self, rows: Rows) -> ActionDist:
        """Ask it once for every set of eligible arms."""
        sets, which = distinct_sets(rows.eligible)
        if len(sets) == 1:
            return self._dist(rows.X, sets[0])
        dist = np.zeros((len(rows), len(self.arms)))
        for i, eligible in enumerate(sets):
            some = np.flatnonzero(which == i)
            part = self._dist(rows.X[some], eligible)
            if part.ndim == 1:
                dist[some, part] = 1.0
            else:
                dist[some] = part
        return dist

    def learned(self) -> dict[Arm, float]:
        """Return how many rows of every arm it has learned; empty if its state does not count them."""
        counts = getattr(self.bandit.state, "n", None)
        if counts is None:
            return {}
        return dict(zip(self.bandit.arms, np.asarray(counts, dtype=np.float64).ravel().tolist(), strict=False))

    def slopes(self, rows: Rows) -> tuple[Float64, Bool] | None:
        """Return the theta of every arm, (K, d), and which are playable, (K,), if it plays the best by x' theta."""
        sets, _ = distinct_sets(rows.eligible)
        if self.mode != "greedy" or len(sets) != 1 or rows.X.shape[1] != self.bandit.settings.dim:
            return None
        known, places = self._playable(sets[0])
        slopes = self.bandit._slopes(known)
        if slopes is None:
            return None
        theta, may = np.zeros((len(self.arms), self.bandit.settings.dim)), np.zeros(len(self.arms), dtype=np.bool_)
        theta[places[slopes[0]]], may[places[slopes[0]]] = slopes[1][slopes[0]], True
        return theta, may

    def _playable(self, eligible: Bool) -> tuple[list[Arm], Int64]:
        """Return the arms that it might play, and the place in the log of each of its own; -1 if it has none."""
        there = {arm: place for place, arm in enumerate(self.arms) if eligible[place]}
        retired = set(self.bandit.arms.retired)
        known = [arm for arm in self.bandit.arms if arm in there and arm not in retired]
        if not known:
            text = "{targets} has {name!r}, which plays none of the arms {arms} that were eligible; give one that does"
            raise ArgumentError(text, name=self.name, arms=list(there))
        return known, np.array([there.get(arm, -1) for arm in self.bandit.arms], dtype=np.int64)

    def _dist(self, X: Float64, eligible: Bool) -> ActionDist:
        known, places = self._playable(eligible)
        X = np.ascontiguousarray(X)
        if self.mode == "greedy":
            best, clear = greedy_arms(self.bandit, X, known)
            if clear.all():
                return best if self.bandit.arms == list(self.arms) else places[best]
            theirs = np.zeros((len(X), len(places)))
            theirs[np.arange(len(X)), best] = 1.0
            tied = np.flatnonzero(~clear)
            theirs[tied] = self.bandit.predict_proba(X[tied], eligible=known, mode="greedy")
        else:
            theirs = self.bandit.predict_proba(X, eligible=known)
        dist = np.zeros((len(X), len(self.arms)))
        dist[:, places[places >= 0]] = theirs[:, places >= 0]
        return dist


def greedy_arms(bandit: Bandit, X: Float64, eligible: Sequence[Arm]) -> tuple[Int64, Bool]:
    """Return the arms with a bandit's highest estimates, (n,), and where no other is so close that rounding may decide.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b", "c"], 1, policy=armlet.Algorithm1(p=9), seed=1)
    >>> greedy_arms(bandit, np.ones((1, 1)), ["a", "b"])
    (array([0]), array([False]))
    """
    if X.shape[1] != bandit.settings.dim:
        return _compared(bandit, X, eligible)  # which refuses it
    best = bandit._leading(X, eligible)
    clear = best >= 0
    if not clear.all():  # few: those that need float64, and invalid contexts
        doubtful = np.flatnonzero(~clear)
        best[doubtful], clear[doubtful] = _compared(bandit, X[doubtful], eligible)
    return best, clear


def _compared(bandit: Bandit, X: Float64, eligible: Sequence[Arm]) -> tuple[Int64, Bool]:
    _, playable, rows, theta, _ = bandit._estimated(X, eligible)
    arms = np.flatnonzero(playable)
    scores = rows @ theta[arms].T  # in whichever order of sums is quickest
    best = scores.argmax(axis=1)
    if len(arms) == 1:
        return arms[best], np.ones(len(X), dtype=np.bool_)
    each = np.arange(len(X))
    lead = scores[each, best]
    scores[each, best] = -np.inf
    lead -= scores.max(axis=1)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * float(np.sqrt((theta[arms] ** 2).sum(axis=1)).max())
    return arms[best], lead > 8 * rows.shape[1] * np.finfo(np.float64).eps * lengths


def _read_only(column: Column) -> Column:
    """Return a view that cannot be written to: other targets, and users themselves, read the same memory."""
    view = column.view()
    view.flags.writeable = False
    return view


def _uniform(eligible: Bool) -> Float64:
    shares: Float64 = eligible / eligible.sum(axis=1, keepdims=True)
    return shares


def distinct_sets(eligible: Bool) -> tuple[Bool, Int64]:
    """Return the different rows of a matrix, and which of them each row is."""
    if len(eligible) == 0 or eligible.all() or (eligible == eligible[0]).all():
        return eligible[:1], np.zeros(len(eligible), dtype=np.int64)
    keys = np.packbits(eligible, axis=1)
    _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return eligible[first[order]], places[which.ravel()]


def checked_dist(answer: object, rows: Rows, name: str) -> Float64:
    """Refuse invalid probabilities of eligible arms; normalise the others, so that they sum to 1."""
    dist = np.ascontiguousarray(answer, dtype=np.float64)
    if dist.shape != rows.eligible.shape:
        text = "{targets} has {name!r}, which gives shape {shape} for {n} rows and {k} arms; return one a row"
        raise ArgumentError(text, name=name, shape=dist.shape, n=len(rows), k=rows.eligible.shape[1])
    bad = ~np.isfinite(dist).all(axis=1) | (dist < 0).any(axis=1)
    total = np.where(rows.eligible, dist, 0.0).sum(axis=1)
    bad |= np.abs(dist.sum(axis=1) - 1.0) > SUM_SLACK
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        text = "{targets} has {name!r}, which gives {dist} at step {t}; give probabilities that sum to 1"
        raise ArgumentError(text, name=name, dist=dist[row].tolist(), t=int(rows.t[row]))
    outside = np.flatnonzero(np.abs(total - 1.0) > SUM_SLACK)
    if outside.size:
        text = "{targets} has {name!r}, which plays an arm at step {t} that was not eligible; heed the second argument"
        raise ArgumentError(text, name=name, t=int(rows.t[outside[0]]))
    normalised: Float64 = np.where(rows.eligible, dist, 0.0) / total[:, None]
    return normalised


def prob_of_played(dist: ActionDist, arm: Int64) -> Float64:
    """Return the target's probability of the arm that was played, (n,)."""
    if dist.ndim == 1:
        same: Float64 = (dist == arm).astype(np.float64)
        return same
    return np.ascontiguousarray(dist[np.arange(len(arm)), arm], dtype=np.float64)


def named_targets(targets: object) -> dict[str, object]:
    """Return targets as users give them by name: alone, in a list, or in a mapping."""
    if isinstance(targets, Mapping):
        return {check_utf8("the name of a target", str(name)): target for name, target in targets.items()}
    several = list(targets) if isinstance(targets, list | tuple) else [targets]
    names = [name_of(target) for target in several]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ArgumentError("{targets} has {name!r} twice; give a mapping from names to targets", name=twice)
    return dict(zip(names, several, strict=True))


def name_of(target: object) -> str:
    """Return what a target is called where a user gave it no name."""
    if isinstance(target, Target):
        return target.name
    if isinstance(target, Bandit):
        return type(target.policy).__name__
    if callable(target):
        return str(getattr(target, "__name__", type(target).__name__))
    return os.fspath(target) if isinstance(target, os.PathLike) else str(target)


def is_model_file(target: object) -> bool:
    """Return whether a target is the path of a model file."""
    return isinstance(target, os.PathLike) or (isinstance(target, str) and target.endswith(".armlet"))


def read_arm_target(
    name: str, target: object, arms: tuple[Arm, ...], mode: Mode, order: tuple[Arm, ...] | None = None
) -> ArmTarget:
    """Read one target: a name, the label of an arm, a model file, a Bandit or a function."""
    if isinstance(target, ArmTarget):
        return target
    if isinstance(target, str | int) and target in arms:
        return Always(name, arms.index(target))
    if target == "uniform":
        return UniformTarget(name)
    if target == "logged":
        return Logged(name)
    if is_model_file(target):
        return BanditTarget(name, load(target, kind=Bandit), arms, mode)  # type: ignore[call-overload]
    if isinstance(target, Bandit):
        return BanditTarget(name, target, arms, mode)
    if callable(target):
        return FunctionTarget(name, target, arms, order)
    text = (
        "{targets} has {name!r}, which is {target!r}; give an arm of {arms}, 'uniform', 'logged', 'own', a model file, "
        "a Bandit, or f(X, eligible) -> labels, or probabilities by label"
    )
    raise ArgumentError(text, name=name, target=target, arms=list(arms))


def through_encoders(log: L, *targets: object) -> L | Table:
    """Read the contexts of a table as the models among the targets read them; return other logs as they are."""
    if not isinstance(log, Table):
        return log
    readers = {name: reader for each in targets for name, reader in _readers(each)}
    encoders = {name: encoder for name, (encoder, _) in readers.items() if encoder is not None}
    if not encoders:
        named = {features for _, features in readers.values() if features and {*features} <= {*log.columns}}
        return log.reading(named.pop()) if len(named) == 1 else log
    (first, encoder), *others = encoders.items()
    for name, other in others:
        if other != encoder:
            text = "{targets} has {first!r} and {name!r}, whose encoders differ; value them apart"
            raise ArgumentError(text, first=first, name=name)
    return log.encoded(encoder)


def _readers(target: object) -> Iterator[tuple[str, tuple[Encoder | None, tuple[str, ...] | None]]]:
    """Yield models by name: the encoder of each, and the names of its features."""
    if isinstance(target, Mapping | list | tuple):
        for each in target.values() if isinstance(target, Mapping) else target:
            yield from _readers(each)
        return
    name = os.fspath(target) if isinstance(target, os.PathLike) else str(target)
    bandit = load(name, kind=Bandit) if is_model_file(target) else target
    if isinstance(bandit, Bandit):
        yield name, (bandit.settings.encoder, bandit.settings.features)
