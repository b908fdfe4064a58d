"""What `ActionBandit.decide` answers, and its record: all that a later `learn` and an evaluation need.

It has the context and the features of the action that was played, so that a reward is learned after its table is gone.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from armlet.actions.table import ActionTable, action_key
from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.columns import check_label, check_utf8, listed, reward, weight
from armlet.inputs.contexts import ContextReader
from armlet.types import Arm, Float64

if TYPE_CHECKING:
    from armlet.recording import Recording

NOT_KEPT: Float64 = np.empty(0)


class ActionDecision:
    """The action to play, and what `learn` needs when the reward comes; only its bandit changes it.

    Examples
    --------
    >>> record = {"id": "7-00ff00ff00ff00ff", "t": 7, "x": [31.0], "z": [0.0, 2.5], "arm": "tea", "propensity": 0.8}
    >>> decision = ActionDecision.from_dict(record)
    >>> decision
    ActionDecision(id='7-00ff00ff00ff00ff', arm='tea', propensity=0.8)
    >>> decision.learned, decision.z, decision.to_dict()["support"]
    (False, array([0. , 2.5]), None)
    """

    __slots__ = (
        *("_table", "arm", "eligible", "expired", "greedy", "id", "key", "learned", "marginal", "n_actions"),
        *("optimistic", "probabilities", "propensity", "recorded", "reward", "support", "t", "weight", "x", "z"),
    )

    id: str
    """A name for the decision: its step, and 64 bits that tell bandits apart."""
    t: int
    """The step, from 1."""
    arm: Arm
    """The label of the action to play."""
    x: Float64
    """The context, (d,); empty if it was not kept, or there is none."""
    z: Float64
    """The features of the action, (d,); empty if they were not kept."""
    _table: ActionTable | str | None  # or its hash
    key: int
    """What the model calls the action: a hash of its label and features."""
    n_actions: int | None
    """How many actions the table has; None if nobody said."""
    eligible: tuple[Arm, ...] | None
    """The labels of the actions that could be played; None if all of the table could."""
    propensity: float
    """The probability with which this action was to be played: over all coins if `marginal`, else as if every step were
    of this one's kind, greedy or optimistic."""
    marginal: bool
    """Whether propensity and support are over all coins, as an evaluation needs them."""
    support: Mapping[Arm, float] | None
    """The probability of every action that had one; None: all that were eligible had the same."""
    probabilities: Float64 | None
    """(n,): the probability of every row of the table in order; None unless decide was asked for them."""
    optimistic: bool
    """Whether the coin made it a step that plays the highest bound."""
    greedy: bool | None
    """Whether the action has the highest estimate, or one of several; None where nobody looked."""
    learned: bool
    """Whether a reward was learned from it."""
    expired: bool
    """Whether its reward is no longer waited for: it was expired, or learned and forgotten."""
    reward: float | None
    """The reward learned, if any."""
    weight: float
    """The weight with which it was learned."""
    recorded: Recording | None
    """The log that received it, if there is one in this process."""

    explored = False  # no step plays at random; what the coins choose is in the support
    design: Literal["choice"] = "choice"
    tag = 0
    exploration_rate = exploration_propensity = min_exploration_probability = None
    unit = epoch = weights = None

    @property
    def actions(self) -> str | None:
        """The hash of the table that it was chosen from; None if it is not known."""
        if isinstance(self._table, ActionTable):
            self._table = self._table.hash
        return self._table

    def to_dict(self) -> dict[str, Any]:
        """Return everything that a later `learn` and an evaluation need, as plain JSON types."""
        record: dict[str, Any] = {
            "id": self.id,
            "t": self.t,
            "x": self.x.tolist(),
            "z": self.z.tolist(),
            "actions": self.actions,
            "n_actions": self.n_actions,
            "eligible": None if self.eligible is None else list(self.eligible),
            "arm": self.arm,
            "propensity": self.propensity,
            "support": None if self.support is None else [[arm, p] for arm, p in self.support.items()],
            "explored": False,
            "optimistic": self.optimistic,
            "exploration_rate": None,
            "exploration_propensity": None,
            "min_exploration_probability": None,
            "greedy": self.greedy,
            "design": "choice",
            "tag": 0,
        }
        if not self.marginal:
            record["marginal"] = False
        if self.learned:
            record["reward"], record["weight"] = self.reward, self.weight
        if self.expired:
            record["expired"] = True
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Restore what `to_dict` returned, as it is or from JSON, without its table; unknown entries are ignored.

        A record with a reward is learned; one without x or z was kept without them, and nothing is learned from it.
        """
        if not isinstance(record, Mapping):
            raise InvalidTypeError(f"record is {reprlib.repr(record)} ({type(record).__name__}); give a mapping")
        missing = [name for name in ("id", "arm", "propensity") if name not in record]
        if missing:
            raise InvalidValueError(f"record lacks {', '.join(missing)}; give what to_dict gave")
        made = cls.__new__(cls)
        made.id, made.t = _read_id(record["id"])
        made.arm = check_label(record["arm"])
        made.x, made.z = _numbers(record.get("x"), "x"), _numbers(record.get("z"), "z")
        made.key = action_key(made.arm, made.z)
        made._table, made.n_actions = _hash(record.get("actions")), _count(record.get("n_actions"))
        made.eligible = _labels(record.get("eligible"))
        made.propensity = _share(record["propensity"], "propensity")
        made.support = _support(record.get("support"))
        made.probabilities = None
        made.marginal = record.get("marginal", True) is not False
        made.optimistic, made.greedy = bool(record.get("optimistic")), record.get("greedy")
        value = record.get("reward")
        made.learned, made.reward = value is not None, None if value is None else reward(value)
        made.weight = weight(record.get("weight", 1.0))
        made.expired, made.recorded = bool(record.get("expired")), None
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_dict, (self.to_dict(),)

    def instead(self, arm: Arm, z: Float64) -> ActionDecision:
        """Return the decision of this step if its caller plays an action of his own: with probability 1.

        Examples
        --------
        >>> record = {"id": "7-00ff00ff00ff00ff", "t": 7, "x": [31.0], "z": [0.0], "arm": "tea", "propensity": 0.8}
        >>> ActionDecision.from_dict(record).instead("milk", np.array([1.0])).support
        {'milk': 1.0}
        """
        by_nobody = {"propensity": 1.0, "support": [[arm, 1.0]], "optimistic": False, "greedy": False}
        return ActionDecision.from_dict({**self.to_dict(), "arm": arm, "z": z, **by_nobody})

    def __copy__(self) -> ActionDecision:
        return self  # one decision is learned once, by all who hold it

    def __deepcopy__(self, memo: dict[int, Any]) -> ActionDecision:
        return self

    def _repr_html_(self) -> str:
        from armlet.report.actions import action_decision_html  # not before something is shown

        return action_decision_html(self)

    def __repr__(self) -> str:
        return f"ActionDecision(id={self.id!r}, arm={self.arm!r}, propensity={self.propensity!r})"


def _read_id(text: object) -> tuple[str, int]:
    step, _, mark = text.partition("-") if isinstance(text, str) else ("", "", "")
    if not (
        step.isascii()
        and step.isdecimal()
        and len(step) < 20
        and len(mark) == 16
        and set(mark) <= set("0123456789abcdef")
    ):
        raise InvalidValueError(f"id is {text!r}; give a step and 16 hexadecimal digits, such as 12-00ff00ff00ff00ff")
    return str(text), int(step)


def _numbers(numbers: Any, name: str) -> Float64:
    if numbers is None:
        return NOT_KEPT
    if isinstance(numbers, str | bytes) or not hasattr(numbers, "__len__"):
        raise InvalidTypeError(f"{name} is {reprlib.repr(numbers)} ({type(numbers).__name__}); give a list of numbers")
    values = ContextReader(len(numbers), what=name).row(numbers)
    values = np.add(values, 0.0)
    values.setflags(write=False)
    return values


def _labels(labels: Any) -> tuple[Arm, ...] | None:
    return None if labels is None else tuple(check_label(label) for label in listed("eligible", labels))


def _hash(digest: Any) -> str | None:
    if digest is None:
        return None
    if isinstance(digest, str):
        return check_utf8("actions", digest)
    raise InvalidTypeError(f"actions is {reprlib.repr(digest)} ({type(digest).__name__}); give the hash of a table")


def _count(count: Any) -> int | None:
    if count is None or (type(count) is int and count > 0):
        return count
    raise InvalidValueError(f"n_actions is {reprlib.repr(count)}; give how many actions the table has")


def _share(share: Any, name: str) -> float:
    value = reward(share, name)
    if not 0.0 <= value <= 1.0:
        raise InvalidValueError(f"{name} is {value}; give a number from 0 to 1")
    return value


def _support(support: Any) -> Mapping[Arm, float] | None:
    if support is None:
        return None
    pairs: list[Any] = list(support.items()) if isinstance(support, Mapping) else listed("support", support)
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidTypeError(f"support has {reprlib.repr(pair)}; give pairs of a label and its probability")
    return {check_label(arm): _share(p, f"support[{arm!r}]") for arm, p in pairs}
