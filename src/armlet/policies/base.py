"""What most policies have in common, so that the file of a policy says only what is special about it.

Nothing asks for these classes by name: any object with the parts of `armlet.types.Policy` is a policy. They save the
writing. A part that differs is written in the policy itself, as in any class.
"""

from __future__ import annotations

import dataclasses
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import numpy as np

from armlet.errors import CheckedSettings, InvalidTypeError, InvalidValueError
from armlet.inputs.settings import Ridge, RidgeLike, Units, check_origin, open_outcomes, units_of
from armlet.kernel import Statistics, sum_shapes
from armlet.policies.discounts import fading, fading_shapes
from armlet.reference.choice import best_chances, play_best
from armlet.reference.under_way import PATIENCE, expected_rows, lower_silent, shrinkage
from armlet.types import (
    Bool,
    Choice,
    Coins,
    Float64,
    Int64,
    Interaction,
    LearnsFrom,
    Memory,
    Over,
    Policy,
    RewardKind,
    Shapes,
    State,
    StateT,
)

if TYPE_CHECKING:
    from armlet.kernel import Rule

SumsT = TypeVar("SumsT", bound=Statistics)


class BasePolicy(CheckedSettings, ABC, Generic[StateT]):
    """A policy for any problem and any rewards, in constant memory, played in Python.

    What it leaves open is what makes a policy: `init`, `probabilities`, `decide` and `update`.

    Examples
    --------
    >>> class Own(BasePolicy):
    ...     init = probabilities = decide = update = None
    >>> Own().rule() is None
    True
    >>> Own().estimates(None)
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: Own keeps no linear estimates; ask predict_proba
    """

    __slots__ = ()

    over: ClassVar[Over] = "arms"
    learns_from: ClassVar[LearnsFrom] = "every step"
    memory: ClassVar[Memory] = "constant"
    rewards: ClassVar[RewardKind] = "any"

    def check(self, n_arms: int, dim: int, t: int) -> None:
        """Accept any problem."""

    @abstractmethod
    def init(self, n_arms: int, dim: int) -> StateT:
        """Make the state of a policy that knows nothing."""

    def rule(self) -> Rule | None:
        """Run in Python."""
        return None

    def estimates(self, state: StateT) -> Float64:  # noqa: ARG002
        """Refuse: there is no linear model of rewards."""
        raise InvalidTypeError(f"{type(self).__name__} keeps no linear estimates; ask predict_proba")

    def fitted(self, state: StateT) -> Statistics | None:  # noqa: ARG002
        """Return the sums that predictions are made from; None if predictions follow from `estimates` alone."""
        return None

    @abstractmethod
    def probabilities(self, state: StateT, t: int, x: Float64, eligible: Bool) -> Float64:
        """Return the probability of each arm at step t, (K,)."""

    @abstractmethod
    def decide(self, state: StateT, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Choose an arm."""

    @abstractmethod
    def update(self, state: StateT, interaction: Interaction) -> None:
        """Learn from one interaction."""


class SumsPolicy(BasePolicy[SumsT]):
    """A policy that keeps sums of every step, and estimates by ridge regression on them.

    Examples
    --------
    >>> import numpy as np
    >>> from armlet.policies import Greedy
    >>> policy = Greedy(units="as given")
    >>> state = policy.init(2, 1)
    >>> policy.update(state, Interaction(t=1, x=np.array([1.0]), arm=0, reward=3.0))
    >>> policy.estimates(state).round(3).tolist()
    [[1.5], [0.0]]
    """

    __slots__ = ()

    def estimates(self, state: SumsT) -> Float64:
        """Solve the ridge regression for the arms that changed."""
        return state.estimates()

    def fitted(self, state: SumsT) -> Statistics | None:
        """Return the sums themselves, unless a subclass has estimates of its own."""
        return state if type(self).estimates is SumsPolicy.estimates else None

    def update(self, state: SumsT, interaction: Interaction) -> None:
        """Record every step."""
        record(state, interaction)


class RidgePolicy(SumsPolicy[Statistics]):
    """The same for plain sums and a setting called `ridge`."""

    __slots__ = ()

    ridge: RidgeLike
    weighted_widths: ClassVar[bool] = False
    """Whether widths of rows that fade are those of a mean of weighted rows, as in D-LinUCB, or plain ones."""

    def init(self, n_arms: int, dim: int) -> Statistics:
        """Start sums without rows, which are solved with the ridge."""
        ridge, origin, fades = Ridge.parse(self.ridge), getattr(self, "origin", None), fading(self)
        if fades:
            fades = {**fades, "weighted_widths": self.weighted_widths}
        return sums(ridge, n_arms, dim, units=units_of(self), origin=origin, **fades)


class FadingPolicy(RidgePolicy):
    """The same where the settings `discount` and `half_life` may let rows fade.

    Examples
    --------
    >>> from armlet.policies import Greedy
    >>> sorted(Greedy(discount=0.99).shapes(n_arms=2, dim=1))
    ['clock', 'records', 'units']
    """

    __slots__ = ()

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the sums."""
        units = units_of(self)
        fades = fading_shapes(self, n_arms, dim + (units == "free"), has_squares=self.weighted_widths)
        return {**sum_shapes(n_arms, dim, units=units), **fades}


class WaitingPolicy(FadingPolicy):
    """The same with decisions under way counted, as rows that are still to come; see `armlet.reference.under_way`.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.LinUCB(), seed=1)
    >>> decision = bandit.decide([1.0])
    >>> waits(bandit.state).sum(), sorted(bandit.policy.shapes(n_arms=2, dim=1))
    (np.float64(1.0), ['records', 'under_way', 'units'])
    """

    __slots__ = ()

    def init(self, n_arms: int, dim: int) -> Statistics:
        """Start sums without rows, and counts of decisions under way."""
        state = RidgePolicy.init(self, n_arms, dim)
        state.count_under_way()
        return state

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the sums and of the counts."""
        return {**FadingPolicy.shapes(self, n_arms, dim), "under_way": (n_arms,)}

    def means(self, state: Statistics, x: Float64, arms: Int64) -> Float64:
        """Return the estimate of each arm, (K,): lower than the best of these arms where nothing has come back."""
        sigma = np.full(state.n_arms, state.typical_noise())
        return lower_silent(state.scores(x), state.n, waits(state), sigma, arms, PATIENCE)

    def widths(self, state: Statistics, x: Float64) -> Float64:
        """Return sqrt(x' V_a^-1 x) of each arm, (K,), as wide as it will be once what is under way has come back."""
        n = state.n
        out: Float64 = state.widths(x) * shrinkage(n, expected_rows(n, waits(state), PATIENCE))
        return out


def waits(state: Statistics) -> Float64:
    """Return m of every arm, decisions under way; below 0, as in what a worker learned since a base, it is none."""
    out: Float64 = np.maximum(state.under_way, 0).astype(np.float64)
    return out


class IndexPolicy(SumsPolicy[SumsT]):
    """Play the eligible arm with the highest index, ties drawn: there is no other randomness."""

    __slots__ = ()

    @abstractmethod
    def upper_bounds(self, state: SumsT, x: Float64) -> Float64:
        """Return the index of each arm, (K,)."""

    def probabilities(self, state: SumsT, t: int, x: Float64, eligible: Bool) -> Float64:
        """Share all probability among the arms with the highest index."""
        state.as_of(t)
        return best_chances(self.upper_bounds(state, x), eligible)

    def decide(self, state: SumsT, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Play the arm with the highest index, ties broken by the coins."""
        state.as_of(t)
        return play_best(self.upper_bounds(state, x), eligible, coins)


def sums(
    ridge: Ridge,
    n_arms: int,
    dim: int,
    *,
    units: Units = "as given",
    origin: Sequence[float] | None = None,
    **fades: Any,
) -> Statistics:
    """Start sums without rows, which are solved with a ridge; `fades` is what `fading` says."""
    zero = check_origin(origin, dim)
    return Statistics(n_arms, dim, ridge=ridge.kind, value=ridge.value, units=units, origin=zero, **fades)


def record(state: Statistics, interaction: Interaction) -> None:
    """Fold one interaction into the sums.

    Examples
    --------
    >>> import numpy as np
    >>> state = Statistics(n_arms=2, dim=1)
    >>> record(state, Interaction(t=1, x=np.array([2.0]), arm=1, reward=3.0))
    >>> state.n.tolist(), state.b.tolist()
    ([0.0, 1.0], [[0.0], [6.0]])
    """
    i = interaction
    if i.replaces is None:
        state.add(i.arm, i.x, i.reward, i.weight, t=i.t, tag=i.tag)
    else:
        state.correct(i.arm, i.x, i.replaces, i.reward, i.weight, t=i.t, tag=i.tag)


# ---- which policies the kernel may play by itself: those whose rule says the same as their methods in Python. What a
# user writes is never ignored: a class outside of Armlet cannot bring a compiled rule, since nobody has proved that it
# is the law of its own `decide`; a subclass that changes the law of a compiled policy is played in Python

HARMLESS = ("init", "check")
"""What may be overridden without changing the law: the bandit calls these itself."""


def compiled_rule(policy: Policy) -> Rule | None:
    """Return the rule that the kernel plays, or None if the policy is to be asked in Python.

    Examples
    --------
    >>> import armlet
    >>> compiled_rule(armlet.LinUCB()) is None
    False
    >>> class Curious(armlet.LinUCB):
    ...     def upper_bounds(self, state, x, arms=None):
    ...         return super().upper_bounds(state, x, arms) + 1.0
    >>> compiled_rule(Curious()) is None
    True
    """
    rule = policy.rule()
    if rule is None:
        return None
    kind = type(policy)
    owner = next((base for base in kind.__mro__ if "rule" in vars(base)), None)
    if owner is None:  # it hands its calls on to another, by ways of its own
        return None
    if not owner.__module__.startswith("armlet."):
        raise InvalidTypeError(
            f"{kind.__name__}.rule() gives a {type(rule).__name__}, but the kernel plays only Armlet's own "
            f"policies by their rule, and {owner.__name__} is not one; return None, and its own decide, probabilities "
            "and update are played"
        )
    return None if overridden(kind, owner) else rule


def overridden(kind: type, owner: type) -> list[str]:
    """List the methods that a subclass has changed, those apart that do not bear on the law."""
    derived = kind.__mro__[: kind.__mro__.index(owner)]
    return [name for base in derived for name, value in vars(base).items() if _is_law(name, value, owner)]


def _is_law(name: str, value: object, owner: type) -> bool:
    is_method = inspect.isroutine(value) or isinstance(value, (property, classmethod, staticmethod))
    return is_method and not name.startswith("__") and name not in HARMLESS and hasattr(owner, name)


# ---- which settings may change while the state stays: those that say what is done with it

WHILE_RUNNING: Final = frozenset(
    {
        *("p", "cap", "floor", "warmup", "epsilon", "alpha", "v", "h", "growth", "gamma", "gamma_scale"),
        *("width_scale", "beta_scale", "noise_scale", "theta_norm", "delta"),
    }
)
"""How much to explore, and how wide an interval is. All else may be part of what the state means."""


def check_replaceable(old: Policy, new: Policy, state: State, n_arms: int, dim: int) -> None:
    """Refuse a policy that cannot go on where another stands.

    Examples
    --------
    >>> import armlet
    >>> old = armlet.Algorithm1(p=60)
    >>> check_replaceable(old, armlet.Algorithm1(p=30), old.init(2, 1), 2, 1)
    >>> check_replaceable(old, armlet.LinUCB(), old.init(2, 1), 2, 1)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: policy is LinUCB(...), but the state is one of Algorithm1; give one of ...
    """
    name = type(old).__name__
    if not _share_states(old, new):
        raise InvalidValueError(
            f"policy is {new}, but the state is one of {name}; give one of those, or start a new bandit"
        )
    if not dataclasses.is_dataclass(new):
        raise InvalidTypeError(f"policy is a {name}, not a dataclass, so nobody can tell which of its settings changed")
    if units_of(old) != units_of(new):
        raise InvalidValueError(f"units are {units_of(old)!r} here and {units_of(new)!r} there; start a new bandit")
    may_change = WHILE_RUNNING | ({"ridge"} if isinstance(state, Statistics) else set())
    for field in dataclasses.fields(new):
        after = getattr(new, field.name)
        before = getattr(old, field.name, after)
        if before != after and field.name not in may_change:
            raise InvalidValueError(
                f"{field.name} is {before!r} here and {after!r} there, and the state is made for the former; start a "
                "new bandit"
            )
    _check_fits(new, state, n_arms, dim)


def _share_states(old: Policy, new: Policy) -> bool:
    """Return whether policies learn the same rows: those of one class, and epsilon-greedy ones by clock or evidence."""
    from armlet.policies.epsilon_greedy import EpsilonGreedy  # not before it is needed: it would slow down the import

    both = isinstance(old, EpsilonGreedy) and isinstance(new, EpsilonGreedy)
    return type(new) is type(old) or (both and old.learns_from == new.learns_from)


def _check_fits(policy: Policy, state: State, n_arms: int, dim: int) -> None:
    fresh, arrays = policy.init(n_arms, dim), state.copy().arrays()
    if type(fresh) is type(state):
        if n_outcomes := getattr(state, "n_outcomes", 0):
            open_outcomes(policy, fresh, n_outcomes)
        fresh.restore_arrays(arrays)
        restored = fresh.arrays()
        if restored.keys() == arrays.keys() and all(
            restored[name].tobytes() == arrays[name].tobytes() for name in arrays
        ):
            return
    raise InvalidValueError(
        f"policy is {policy}, which keeps another state than the one that is there; start a new bandit"
    )
