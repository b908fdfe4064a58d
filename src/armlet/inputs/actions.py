"""Actions at the border: tables of any kind become labels and a float64 matrix; and logged rows of pairs (x, z).

A table of actions is a mapping from labels to features, a pair (labels, Z), or a data frame or Arrow table with a
column `arm`, or an index, of labels. Sparse matrices of scipy are taken where they are small enough to be filled in.
O(n d).
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from armlet.errors import ArmletError, InvalidTypeError, InvalidValueError
from armlet.inputs.columns import labels, listed, open_table, plain_labels, read_rows, rewards, taken_back, weights
from armlet.inputs.contexts import is_table
from armlet.types import Arm, ArrowTable, Context, Float64

if TYPE_CHECKING:
    from armlet.inputs.settings import Reader

LABEL: Final = "arm"  # the column of labels
ROWS: Final = (list, tuple, Mapping, np.ndarray)
WIDEST: Final = 2**10  # columns of a sparse matrix that is filled in: no model holds as many


class Sparse(Protocol):
    """A sparse matrix of scipy, or a row of one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """How many rows and columns it has."""

    def toarray(self) -> npt.NDArray[Any]:
        """Return it filled in."""


ActionRow: TypeAlias = npt.ArrayLike | Mapping[str, object] | Sparse
ActionContext: TypeAlias = Context | Sparse | None
"""A context at the border; None where there are none."""
ActionSource: TypeAlias = (
    Mapping[str, ActionRow] | Mapping[int, ActionRow] | Mapping[Arm, ActionRow] | tuple[Any, Any] | ArrowTable
)
"""Actions at the border: features by label, (labels, Z), or a table with a column or an index of labels."""


def dense(values: Any) -> Any:
    """Fill in a sparse matrix of scipy; leave anything else as it is.

    Examples
    --------
    >>> import scipy.sparse
    >>> dense(scipy.sparse.csr_array([[0.0, 2.0]]))
    array([[0., 2.]])
    """
    if not hasattr(values, "toarray"):
        return values
    if len(values.shape) == 2 and values.shape[1] > WIDEST:
        raise InvalidValueError(
            f"a sparse matrix has {values.shape[1]:,} columns, and one model holds a few hundred features; hash them "
            "into fewer, with armlet.HashedFeatures, or use Vowpal Wabbit, which is made for that many"
        )
    return values.toarray()


def dense_row(values: Any) -> Any:
    """Fill in a sparse row, which may be a matrix of one."""
    filled = dense(values)
    return filled.reshape(-1) if filled is not values and filled.shape[:1] == (1,) else filled


def read_context(x: Any, reader: Reader, action_reader: Reader) -> Float64:
    """Read a context of a decision among actions; say so if the table of actions stands in its place.

    Examples
    --------
    >>> from armlet.inputs.contexts import ContextReader
    >>> read_context({"tea": [2.5], "milk": [2.0]}, ContextReader(1, None), ContextReader(1, None, "action"))
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: x is {'milk': [2.0], 'tea': [2.5]}, a table of actions; x and actions are ...
    """
    try:
        if not _is_prepared(x):
            return reader.row(dense_row(x))
    except (TypeError, ValueError):
        if not _is_actions(x, action_reader):
            raise
    raise exchanged(x)


def exchanged(x: object) -> InvalidTypeError:
    """Return the error for a table of actions, or its name, in the place of a context."""
    text = "a table of actions; x and actions are exchanged: give the context first, then the actions"
    return InvalidTypeError(f"x is {reprlib.repr(x)}, {text}")


def _is_prepared(x: object) -> bool:
    return hasattr(x, "labels") and hasattr(x, "hash")


def _is_actions(x: Any, reader: Reader) -> bool:
    """Whether something that is not a context looks like actions, or is a table that can be read as some."""
    if isinstance(x, Mapping):
        return bool(x) and all(isinstance(row, ROWS) for row in x.values())
    if isinstance(x, tuple):
        return len(x) == 2 and getattr(x[1], "ndim", 0) == 2
    if not is_table(x):
        return False
    try:
        read_actions(x, reader)
    except (ArmletError, TypeError, ValueError):
        return False
    return True


def read_actions(actions: object, reader: Reader) -> tuple[list[Arm], Float64]:
    """Read a table of actions: labels, and their features in the same order, (n, d).

    Examples
    --------
    >>> from armlet.inputs.contexts import ContextReader
    >>> read_actions({"tea": {"price": 2.5}, "milk": {"price": 2}}, ContextReader(1, ("price",), "action"))
    (['tea', 'milk'], array([[2.5],
           [2. ]]))
    >>> read_actions({"tea": {"prize": 2.5}}, ContextReader(1, ("price",), "action"))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: actions['tea']: action lacks 'price' and has the unknown 'prize'; give ...
    """
    if isinstance(actions, Mapping):
        names, rows = list(actions), list(actions.values())
    elif isinstance(actions, tuple) and len(actions) == 2:
        names, rows = listed("labels of actions", actions[0]), actions[1]
    elif hasattr(actions, "columns") or hasattr(actions, "column_names"):
        names, rows = _parted(actions)
    else:
        raise InvalidTypeError(
            f"actions is {reprlib.repr(actions)} ({type(actions).__name__}); give features by label, (labels, Z), a "
            f"table with a column {LABEL!r}, or the name of a table that was prepared"
        )
    labels = plain_labels(names)
    return labels, _features(labels, rows, reader)


def _features(names: list[Arm], rows: Any, reader: Reader) -> Float64:
    if not names:
        raise InvalidValueError("actions is empty; give at least one action to choose from")
    filled = [dense_row(row) for row in rows] if isinstance(rows, list) and hasattr(rows[0], "toarray") else dense(rows)
    try:
        return reader.matrix(filled)
    except ArmletError as error:
        place, _, rest = str(error).removeprefix("row ").partition(": ")
        if not (str(error).startswith("row ") and place.isdecimal() and int(place) < len(names)):
            raise
        raise type(error)(f"actions[{names[int(place)]!r}]: {rest}") from None


def _parted(table: Any) -> tuple[list[object], Any]:
    """Return the labels of a data frame or an Arrow table, and the rest of it."""
    columns = [str(name) for name in getattr(table, "column_names", getattr(table, "columns", ()))]
    if LABEL not in columns:
        if hasattr(table, "index") and not callable(table.index):  # pandas
            return list(table.index), table
        raise InvalidValueError(f"actions has no column {LABEL!r} of labels; it has {', '.join(columns)}")
    names = labels(table[LABEL], len(table))
    if hasattr(table, "drop_columns"):  # pyarrow
        return list(names), table.drop_columns([LABEL])
    return list(names), table.drop(columns=LABEL) if hasattr(table, "iloc") else table.drop(LABEL)


class PairRows(NamedTuple):
    """A log of pairs in columns of N rows."""

    X: Float64  # (N, d) contexts
    Z: Float64  # (N, d) features of the actions that were played
    arms: list[Arm]
    rewards: Float64
    weights: Float64
    replaces: Float64  # NaN where a row is new

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns in plain JSON types, which `read_pairs` takes."""
        replaces = [None if value != value else value for value in self.replaces.tolist()]
        columns = {"x": self.X.tolist(), "z": self.Z.tolist(), "arm": self.arms, "reward": self.rewards.tolist()}
        return {**columns, "weight": self.weights.tolist(), "replaces": replaces}


def read_pairs(table: object, reader: Reader, action_reader: Reader) -> PairRows:
    """Read the columns x, z, arm and reward, and weight and replaces if they are there.

    Examples
    --------
    >>> from armlet.inputs.contexts import ContextReader
    >>> table = {"x": [[1.0]], "z": [[0.5, 2.0]], "arm": ["tea"], "reward": [1]}
    >>> read_pairs(table, ContextReader(1), ContextReader(2)).Z
    array([[0.5, 2. ]])
    """
    names, column = open_table(table)
    missing = [name for name in (LABEL, "reward", "z") if name not in names]
    if missing:
        raise InvalidValueError(f"the table has no column {', '.join(missing)}; it has {reprlib.repr(names)}")
    n = len(column("reward"))
    has_context = reader.plain.dim > 0
    if has_context and "x" not in names:
        raise InvalidValueError(f"the table has no column x; it has {reprlib.repr(names)}")
    return PairRows(
        X=read_rows(column("x"), "x", reader, n) if has_context else np.zeros((n, 0)),
        Z=read_rows(column("z"), "z", action_reader, n),
        arms=plain_labels(labels(column(LABEL), n)),
        rewards=rewards(column("reward"), n, "reward"),
        weights=weights(column("weight") if "weight" in names else None, n),
        replaces=taken_back(column("replaces"), n) if "replaces" in names else np.full(n, np.nan),
    )
