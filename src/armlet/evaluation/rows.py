"""A log as blocks of columns: what every estimator reads. Memory holds one block, however long the log is.

A row is a decision with the last reward that counts for it. Compacted logs are read column by column; all others are
read once, event by event, into files beside, because a reward may come, or be corrected, long after its decision.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from armlet.errors import LogError
from armlet.inputs.settings import Objective
from armlet.log.reader import Source, read
from armlet.types import Arm, Bool, Float64, Int64

BLOCK: Final = 2**16
"""Rows of a block: where sums are cut is part of what they are."""
EXPLORATION: Final = {
    "exploration_rate": "rate",
    "exploration_propensity": "given_exploring",
    "min_exploration_probability": "smallest",
}
"""How a step explores: the names in a log, and those of `Rows`."""

Int8 = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A block of n decisions, in their order, of d features and K arms."""

    t: Int64  # (n,): the step
    X: Float64  # (n, d): contexts as the bandit saw them; zeros where one was erased
    arm: Int64  # (n,): the arm played, an index into `arms`
    reward: Float64  # (n,): the last that counts; NaN where none came, or it was forgotten
    propensity: Float64  # (n,): the probability of that arm over all coins
    explored: Int8  # (n,): 1 coins or a turn chose, 0 the estimates did, -1 not known
    rate: Float64  # (n,): how likely the step was to explore; NaN not known
    given_exploring: Float64  # (n,): the probability of the arm given that the step explores; NaN not known
    smallest: Float64  # (n,): the smallest such probability among the eligible arms; NaN not known
    greedy: Int8  # (n,): 1 it looked best, 0 it did not, -1 not known
    turn: Bool  # (n,): a round-robin had its turn
    eligible: Bool  # (n, K): the arms that might be played
    weight: Float64  # (n,): with which the reward was learned; 1 where none came
    probabilities: Float64 | None  # (n, K): those of all arms at that step, NaN where not logged; None if in no row

    def __len__(self) -> int:
        return len(self.t)

    def take(self, which: Bool | Int64 | slice) -> Self:
        """Give some of the rows."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        some: dict[str, Any] = {name: None if value is None else value[which] for name, value in values.items()}
        return type(self)(**some)

    @property
    def rewarded(self) -> Bool:
        """Which rows have a reward."""
        return ~np.isnan(self.reward)


class Blocks(ABC):
    """A log, to be read block by block as often as one likes; `open_rows` makes it.

    Whoever unpickles one on the same machine, or where the file is, reads the same blocks.
    """

    arms: tuple[Arm, ...]
    """All arms that the log ever had, those added later at the end."""
    n: int
    """Rows in all."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.about = dict(about)

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
        """Whether rewards are wanted high, or are costs."""
        return "min" if self.about.get("objective") == "min" else "max"

    @property
    def policy(self) -> Mapping[str, Any] | None:
        """The name and the settings of the policy that decided first; None if another system logged."""
        return self.about.get("policy")

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """What rewards were declared to lie between, if they were."""
        declared = self.about.get("reward_range")
        return None if declared is None else (float(declared[0]), float(declared[1]))

    @property
    def start_model(self) -> str | None:
        """The SHA-256 of the model file that the log starts from, if there is one."""
        return self.about.get("start_model")

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, block: int) -> Rows: ...

    def __iter__(self) -> Iterator[Rows]:
        return (self[block] for block in range(len(self)))


class HeldBlocks(Blocks):
    """Rows that are in memory.

    Parameters
    ----------
    rows
        All of them, in their order; they are cut into blocks here.
    arms
        All labels.
    about
        What else a start would say, such as `objective`, `reward_range` or `policy`.
    """

    def __init__(self, rows: Rows, arms: Sequence[Arm], about: Mapping[str, Any] | None = None) -> None:
        super().__init__({"dim": rows.X.shape[1], "policy": None, **(about or {})})
        self._rows, self.arms, self.n = rows, tuple(arms), len(rows)

    def __len__(self) -> int:
        return -(-self.n // BLOCK)

    def __getitem__(self, block: int) -> Rows:
        return self._rows.take(slice(block * BLOCK, (block + 1) * BLOCK))


def rows_of(
    X: Float64, arms: Int64, rewards: Float64, propensities: Float64, *, n_arms: int | None = None, **known: Any
) -> Rows:
    """Give rows from arrays: those of a log where nothing else is known, unless other columns are given.

    Examples
    --------
    >>> rows = rows_of(np.ones((2, 1)), np.array([0, 1]), np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    >>> rows.eligible.tolist(), rows.explored.tolist()
    ([[True, True], [True, True]], [-1, -1])
    """
    n, k = len(X), int(arms.max(initial=0)) + 1 if n_arms is None else n_arms
    columns: dict[str, Any] = {name: np.full(n, np.nan) for name in ("rate", "given_exploring", "smallest")}
    columns |= {name: np.full(n, -1, dtype=np.int8) for name in ("explored", "greedy")}
    columns |= {"t": np.arange(1, n + 1), "X": X, "arm": arms, "reward": rewards, "propensity": propensities}
    columns |= {"turn": np.zeros(n, dtype=np.bool_), "eligible": np.ones((n, k), dtype=np.bool_)}
    return Rows(**(columns | {"weight": np.ones(n), "probabilities": None} | known))


def widened(columns: Any, n_arms: int) -> Any:
    """Give a matrix columns for arms that came later: none of them was there yet."""
    wide = np.zeros((len(columns), n_arms), dtype=columns.dtype)
    wide[:, : columns.shape[1]] = columns
    if columns.dtype == np.float64:
        wide[np.isnan(columns[:, 0])] = np.nan
    return wide


def without_erased(columns: dict[str, Any]) -> dict[str, Any]:
    """Put zeros for contexts that were erased, NaN so far; refuse what no log has.

    That is a reward of which the context is not known, and a step at which no arm might be played.
    """
    alone = np.flatnonzero(~columns["eligible"].any(axis=1))
    if alone.size:
        raise LogError(
            f"step {columns['t'][alone[0]]:,} has no arm that may be played; read the log that it was made from"
        )
    erased = np.isnan(columns["X"]).any(axis=1)
    wrong = np.flatnonzero(erased & ~np.isnan(columns["reward"]))
    if wrong.size:
        step = columns["t"][wrong[0]]
        raise LogError(f"step {step:,} has a reward but no context: log contexts, or leave such rows out")
    return columns | {"X": np.where(erased[:, None], 0.0, columns["X"])} if erased.any() else columns


def open_rows(log: Source | Blocks) -> Blocks:
    """Open a log to be read in blocks of columns.

    Parameters
    ----------
    log
        A path, .jsonl or .parquet, an `armlet.Log`, a loop's `log`, or `Events` of any origin.

    Examples
    --------
    >>> from armlet.log import from_obp
    >>> feedback = {"action": [1, 0], "reward": [0, 1], "pscore": [0.5, 0.25], "context": [[1.0], [2.0]]}
    >>> blocks = open_rows(from_obp(feedback))
    >>> blocks.arms, blocks.n
    ((0, 1), 2)
    >>> [(rows.arm.tolist(), rows.reward.tolist()) for rows in blocks]
    [([1, 0], [0.0, 1.0])]
    """
    if isinstance(log, Blocks):
        return log
    events = read(log)
    path = getattr(events, "path", None)
    if path is not None and str(path).endswith(".parquet"):
        from armlet.evaluation.reading.compacted import CompactedBlocks  # needs pyarrow

        return CompactedBlocks(path)
    from armlet.evaluation.reading.spool import SpooledBlocks  # which is made of rows

    return SpooledBlocks(events)
