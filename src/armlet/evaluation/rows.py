"""A log as blocks of columns, and how the arm of each row was drawn: what every estimator reads.

A row is a decision with the last reward that counts for it. Memory holds one block, however long the log is;
`sources.open_rows` opens logs of all kinds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from armlet.errors import ArgumentError, EvaluationError, LogError
from armlet.evaluation.provenance import RowDigest
from armlet.inputs.columns import LEAST_CHANCE
from armlet.inputs.settings import Objective
from armlet.record.kinds import EXPLORATION
from armlet.types import Arm, Bool, Float64, Int64

BLOCK: Final = 2**16
"""Rows of a block: where sums are cut is part of what they are."""
KEPT: Final = 4
"""Blocks of a log that has no more: they stay in memory once they have been read."""
Int8 = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A block of n decisions, in their order, of d features and K arms."""

    t: Int64  # (n,): the step
    X: Float64  # (n, d): contexts as the bandit saw them; zeros where one was erased
    arm: Int64  # (n,): the arm played, an index into `arms`
    reward: Float64  # (n,): the last that counts; NaN where none came, or it was forgotten
    propensity: Float64  # (n,): the probability of that arm, unconditionally
    explored: Int8  # (n,): 1 exploratory, 0 greedy, -1 not known
    exploration_rate: Float64  # (n,): the exploration probability of the step; NaN not known
    exploration_propensity: Float64  # (n,): the probability of the arm given that the step explores; NaN not known
    min_exploration_probability: Float64  # (n,): the smallest such probability among the eligible arms; NaN not known
    greedy: Int8  # (n,): 1 it had the highest estimate, 0 it did not, -1 not known
    turn: Bool  # (n,): it was the arm's turn in a round-robin
    eligible: Bool  # (n, K): the arms that might be played
    weight: Float64  # (n,): with which the reward was learned; 1 where none came
    probabilities: Float64 | None  # (n, K): those of all arms at that step, NaN where not logged; None if in no row
    unit: Int64 | None = None  # (n,): a number for each (epoch, unit), whose decisions share one draw; None if no units
    epoch: Int64 | None = None  # (n,): -1 not known; None if there are no units
    outcomes: dict[str, Float64] | None = None  # (n,) each: what the reward is made of; NaN where a part did not come

    def __len__(self) -> int:
        return len(self.t)

    def columns(self) -> dict[str, Any]:
        """Return the columns by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def take(self, which: Bool | Int64 | slice) -> Self:
        """Return some of the rows."""
        values = self.columns()
        parts = values.pop("outcomes")
        some: dict[str, Any] = {name: None if value is None else value[which] for name, value in values.items()}
        some["outcomes"] = None if parts is None else {name: part[which] for name, part in parts.items()}
        return type(self)(**some)

    @property
    def rewarded(self) -> Bool:
        """Which rows have a reward."""
        return ~np.isnan(self.reward)

    def with_reward(self) -> Self:
        """Return the rows that have a reward; all of them without a copy if every one has."""
        mask = self.rewarded
        return self if mask.all() else self.take(mask)


class Blocks(ABC):
    """A log, to be read block by block any number of times; `open_rows` makes it.

    Unpickled on the same machine, or where the file is, it reads the same blocks.
    """

    arms: tuple[Arm, ...]
    """All arms that the log ever had, those added later at the end."""
    n: int
    """Rows in all."""
    name: str = "rows in memory"
    """What the log is called: its file, its loop, or where it comes from."""
    period: tuple[int, int] | None = None
    """The first and the last time of a decision, in microseconds since 1970, if there are times."""
    has_tables: bool = False
    """Whether its actions have features: then every row has a table of its own, and no column is an arm's."""
    digest: str | None = None
    """SHA-256 of the rows; None until they have been read once, in order. It does not depend on how they are stored."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.about = dict(about)
        self._kept: dict[int, Rows] = {}  # of a short log, which is read at least twice

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_kept": {}}

    @property
    def dim(self) -> int:
        """Values of a context."""
        return int(self.about["dim"])

    @property
    def features(self) -> tuple[str, ...] | None:
        """Their names, if they have any."""
        names = self.about.get("features")
        return None if names is None else tuple(names)

    @property
    def objective(self) -> Objective:
        """Whether rewards are maximised, or are costs."""
        return "min" if self.about.get("objective") == "min" else "max"

    @property
    def policy(self) -> Mapping[str, Any] | None:
        """The name and the settings of the policy that decided first; None if another system logged."""
        return self.about.get("policy")

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The declared (lowest, highest) reward, if there is one."""
        declared = self.about.get("reward_range")
        return None if declared is None else (float(declared[0]), float(declared[1]))

    @property
    def has_units(self) -> bool:
        """Whether decisions belong to units that share a draw: then every block says to which."""
        return len(self) > 0 and self[0].unit is not None

    @property
    def outcomes(self) -> dict[str, float] | None:
        """What rewards are made of, with the weights of the default dial; None if the log does not say."""
        declared = self.about.get("outcomes")
        return None if declared is None else {str(name): float(weight) for name, weight in declared["weights"]}

    @abstractmethod
    def __len__(self) -> int: ...

    def __getitem__(self, block: int) -> Rows:
        if not 0 <= block < len(self):
            raise IndexError(block)
        if block in self._kept:
            return self._kept[block]
        rows = self._read(block)
        if len(self) <= KEPT:
            self._kept[block] = rows
        return rows

    def reader(self, block: int) -> Callable[[], Rows]:
        """Return what reads a block in another process."""
        return partial(self.__class__.__getitem__, self, block)

    @abstractmethod
    def _read(self, block: int) -> Rows:
        """Return the rows of a block."""

    def __iter__(self) -> Iterator[Rows]:
        made = RowDigest() if self.digest is None else None
        for block in range(len(self)):
            rows = self[block]
            if made is not None:
                made.add(rows)
            yield rows
        if made is not None:
            self.digest = made.hexdigest()


def refuse_tables(blocks: Blocks, what: str) -> None:
    """Refuse a log whose actions have features, for what reads a column for every arm."""
    if blocks.has_tables:
        raise EvaluationError(
            f"{blocks.name} is a log of actions with features, which has no column for every arm, so {what} cannot "
            "read it; value policies on it by armlet.evaluate or gate"
        )


class HeldBlocks(Blocks):
    """Rows in memory, cut into blocks when they are read; columns that nothing is known of are those of one block.

    Parameters
    ----------
    columns
        Those of `Rows` by name, (n, ...) each; what is left out is not known, and steps are counted from 1.
    arms
        Their labels.
    about
        Such as `objective`, `reward_range` and `policy`.

    Examples
    --------
    >>> known = {"X": np.ones((3, 1)), "arm": np.array([0, 1, 1]), "reward": np.ones(3), "propensity": np.full(3, 0.5)}
    >>> log = HeldBlocks.of(known, ("a", "b"))
    >>> log.n, log.dim, [(rows.t.tolist(), rows.weight.tolist()) for rows in log]
    (3, 1, [([1, 2, 3], [1.0, 1.0, 1.0])])
    """

    def __init__(self, rows: Rows, arms: Sequence[Arm], about: Mapping[str, Any] | None = None) -> None:
        self._hold(rows.columns(), arms, about)

    @classmethod
    def of(cls, columns: Mapping[str, Any], arms: Sequence[Arm], about: Mapping[str, Any] | None = None) -> Self:
        """Hold columns."""
        made = cls.__new__(cls)
        made._hold(dict(columns), arms, about)
        return made

    def _hold(self, columns: dict[str, Any], arms: Sequence[Arm], about: Mapping[str, Any] | None) -> None:
        super().__init__({"dim": columns["X"].shape[1], "policy": None, **(about or {})})
        self.arms, self.n = tuple(arms), len(columns["X"])
        self._columns = {name: column for name, column in columns.items() if column is not None}
        unknown = unknown_columns(min(self.n, BLOCK), len(self.arms))
        self._unknown = {name: column for name, column in unknown.items() if name not in columns}

    def __len__(self) -> int:
        return -(-self.n // BLOCK)

    def reader(self, block: int) -> Callable[[], Rows]:
        """Return what reads a block, which is all that it takes along."""
        return partial(self[block].take, slice(None))

    def _read(self, block: int) -> Rows:
        start, end = block * BLOCK, min((block + 1) * BLOCK, self.n)
        columns: dict[str, Any] = {"t": np.arange(start, end, dtype=np.int64) + 1, "probabilities": None}
        columns |= {name: column[: end - start] for name, column in self._unknown.items()}
        parts = self._columns.get("outcomes")
        columns |= {name: column[start:end] for name, column in self._columns.items() if name != "outcomes"}
        columns["outcomes"] = None if parts is None else {name: part[start:end] for name, part in parts.items()}
        return Rows(**columns)


def rows_of(
    X: Float64, arms: Int64, rewards: Float64, propensities: Float64, *, n_arms: int | None = None, **known: Any
) -> Rows:
    """Return rows from arrays: those of a log where nothing else is known, unless other columns are given."""
    n, k = len(X), int(arms.max(initial=0)) + 1 if n_arms is None else n_arms
    columns = {"t": np.arange(1, n + 1), "X": X, "arm": arms, "reward": rewards, "propensity": propensities}
    return Rows(**(unknown_columns(n, k) | columns | {"probabilities": None} | known))


def unknown_columns(n: int, n_arms: int) -> dict[str, Any]:
    """Return the other columns of a log that holds arms, rewards and propensities alone."""
    unknown, unsaid = np.full(n, np.nan), np.full(n, -1, dtype=np.int8)
    return {
        **dict.fromkeys(("explored", "greedy"), unsaid),
        **dict.fromkeys(EXPLORATION, unknown),
        "turn": np.zeros(n, dtype=np.bool_),
        "eligible": np.ones((n, n_arms), dtype=np.bool_),
        "weight": np.ones(n),
    }


# ---- how arms were drawn


@dataclass(frozen=True, slots=True)
class Design:
    """How the arms of rows that have a reward were drawn, (n,) each.

    A turn of a round-robin is logged with propensity 1, which is true and useless: had the turn fallen otherwise,
    another arm would have been played. Where contexts do not depend on the step, it is a draw of one of the m eligible
    arms, and so it is read here.
    """

    propensity: Float64  # of the arm, unconditionally
    given: Float64  # the same given that the step explores; 1 where that is not known
    rate: Float64  # the exploration probability; NaN where it is not known
    explored: Bool  # drawn at random, or by turn
    n_eligible: Float64  # m
    learned: Bool  # the reward model has the row
    known: Bool  # rate and probability given exploring are known
    step: Float64
    whole: bool  # every arm of the log was eligible in every row

    @classmethod
    def of(cls, rows: Rows) -> Self:
        """Read the design of rows that all have a reward."""
        step, whole = rows.t.astype(np.float64), bool(rows.eligible.all())
        m = np.full(len(rows), float(rows.eligible.shape[1])) if whole else rows.eligible.sum(axis=1).astype(np.float64)
        turns, stated = rows.turn.any(), rows.explored >= 0
        propensity = np.where(rows.turn, 1.0 / m, rows.propensity) if turns else rows.propensity
        if not stated.any():  # nothing but propensities is known
            return cls(propensity, np.ones(len(m)), rows.exploration_rate, stated, m, ~stated, stated, step, whole)
        explored = rows.explored == 1
        given = np.where(rows.turn, 1.0 / m, rows.exploration_propensity) if turns else rows.exploration_propensity
        rate = np.where(rows.turn, 1.0, rows.exploration_rate) if turns else rows.exploration_rate
        known = stated & ~np.isnan(rate) & (~np.isnan(given) | _is_aside(rows))
        return cls(
            propensity=propensity,
            given=np.where(np.isnan(given), 1.0, given),
            rate=rate,
            explored=explored & known,
            n_eligible=m,
            learned=np.where(known, explored, ~stated),
            known=known,
            step=step,
            whole=whole,
        )

    def randomized(self) -> tuple[Bool, Float64]:
        """Return which rows were drawn regardless of the context, or all, and the probabilities of their arms."""
        if self.known.all():
            return self.explored, self.given
        return np.ones(len(self.propensity), dtype=np.bool_), self.propensity


def _is_aside(rows: Rows) -> Bool:
    """Return which rows a control played where the live policy explores at a known rate: nobody explored there."""
    return np.asarray((rows.explored == 0) & (rows.min_exploration_probability > 0.0))


def randomized_rows(rows: Rows) -> tuple[Bool, Float64]:
    """Return which rows were drawn regardless of the context, and the probabilities of their arms.

    Where a log does not say what explored, every row counts, by its propensity. A turn of a round-robin was not drawn:
    what is anytime-valid must not depend on its coming round, as a sample of rows may (`Design.randomized`).
    """
    if (rows.explored < 0).any():
        return np.ones(len(rows), dtype=np.bool_), rows.propensity
    used = (rows.explored == 1) & ~rows.turn & ~np.isnan(rows.exploration_propensity)
    return used, np.where(used, rows.exploration_propensity, 1.0)


def deterministic_rows(rows: Rows) -> Bool:
    """Return which of the rows that `randomized_rows` reads by their propensity could have played no other arm.

    Examples
    --------
    >>> deterministic_rows(rows_of(np.ones((2, 1)), np.array([0, 1]), np.ones(2), np.array([1.0, 0.5])))
    array([ True, False])
    """
    if rows.propensity.max(initial=0.0) < 1.0 or not (rows.explored < 0).any():
        return np.zeros(len(rows), dtype=np.bool_)
    return np.asarray((rows.propensity >= 1.0) & ~rows.turn & (rows.eligible.sum(axis=1) > 1))


def check_rows(rows: Rows) -> None:
    """Refuse rows with invalid propensities, arms or rewards."""
    _check_probabilities(rows, rows.propensity, "propensity")
    if (rows.explored == 1).any():
        chances = np.where(
            (rows.explored == 1) & ~np.isnan(rows.exploration_propensity), rows.exploration_propensity, 1.0
        )
        _check_probabilities(rows, chances, "probability of exploring")
    everyone = bool(rows.eligible.all())
    if not everyone and (wrong := np.flatnonzero(~rows.eligible[np.arange(len(rows)), rows.arm])).size:
        raise ArgumentError("{log} plays an arm at step {t} that was not eligible", t=int(rows.t[wrong[0]]))
    finite = np.isfinite(rows.reward)
    if not finite.all():
        wrong = np.flatnonzero(~finite)
        raise ArgumentError("{log} has a reward at step {t} that is not finite", t=int(rows.t[wrong[0]]))


def _check_probabilities(rows: Rows, values: Float64, name: str) -> None:
    most = 1.0 + 1e-9
    if values.min(initial=1.0) >= LEAST_CHANCE and values.max(initial=0.0) <= most:  # false if one is NaN
        return
    wrong = int(np.flatnonzero(~((values >= LEAST_CHANCE) & (values <= most)))[0])
    text = (
        "{log} has a {name} of {value} at step {t}; give the probability of the arm, above 0 and at most 1 "
        "({least} or more)"
    )
    raise ArgumentError(text, name=name, value=float(values[wrong]), t=int(rows.t[wrong]), least=LEAST_CHANCE)


def without_erased(columns: dict[str, Any]) -> dict[str, Any]:
    """Put zeros for contexts that were erased, NaN so far; refuse a step at which no arm may be played."""
    alone = np.flatnonzero(~columns["eligible"].any(axis=1))
    if alone.size:
        raise LogError(
            f"step {columns['t'][alone[0]]:,} has no arm that may be played; read the log that it was made from"
        )
    return columns | {"X": without_gaps(columns["X"], columns["reward"], columns["t"])}


def without_gaps(X: Float64, reward: Float64, t: Int64) -> Float64:
    """Put zeros for contexts that were erased, NaN so far; refuse a reward whose context is not known."""
    if not math.isnan(X.sum()):  # NaN stays NaN in a sum, which is quicker than a look at each
        return X
    erased: Bool = np.asarray(np.isnan(X).any(axis=1))
    wrong = np.flatnonzero(erased & ~np.isnan(reward))
    if wrong.size:
        raise LogError(f"step {t[wrong[0]]:,} has a reward but no context: log contexts, or leave such rows out")
    return np.where(erased[:, None], 0.0, X)
