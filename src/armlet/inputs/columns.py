"""Numbers at the border, and the columns of a log beside its contexts: rewards, weights, explored, arms.

A column is whatever holds one value a row: a list, numpy, a pandas or polars Series, a pyarrow array.
A refused value is named by its row. Cost O(N) a column; float64 passes through uncopied.
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Sequence
from typing import Any, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.types import Arm, Bool, Float64

# Contexts, rewards, weights and settings. Any float32 is below it. A row then adds w x x' <= 1e120 to a sum, so that no
# number of rows overflows it, and estimates, widths and their squares stay finite too. NaN and infinity fail the same
# comparison.
LARGEST = 1e40
# Weights. One over the sum of any stays finite, and so do means, deviations and scores.
LEAST_WEIGHT = 1e-40
EXACT = 2**53  # every integer up to here is a float64; beyond, neighbours fall together
NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def reward(value: float, name: str = "reward") -> float:
    """Check one reward: any finite number, of either sign.

    Examples
    --------
    >>> reward(True)
    1.0
    >>> reward(float("nan"))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: reward is nan; give a finite number of at most 1e+40 in size
    """
    if type(value) is float and -LARGEST <= value <= LARGEST:
        return value
    error = refused(value, name)
    if error is not None:
        raise error
    number = float(value)
    if not -LARGEST <= number <= LARGEST:  # an object may say another number each time
        raise InvalidValueError(f"{name} is {number}; give a finite number of at most {LARGEST:g} in size")
    return number


def weight(value: float) -> float:
    """Check one weight: a positive finite number, at least 1e-40.

    Examples
    --------
    >>> weight(2)
    2.0
    >>> weight(0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: weight is 0.0; give a positive number, at least 1e-40
    """
    number = reward(value, "weight")
    if number < LEAST_WEIGHT:
        raise InvalidValueError(too_light("weight", number))
    return number


def too_light(name: str, number: float) -> str:
    """Say why a number is no weight."""
    return f"{name} is {number}; give a positive number, at least {LEAST_WEIGHT:g}"


def rewards(values: npt.ArrayLike, n_rows: int, name: str = "rewards") -> Float64:
    """Read a column of finite numbers.

    Parameters
    ----------
    values
        A list, numpy, a pandas or polars Series, or a pyarrow array.
    n_rows
        How many values it must have: one for each context.
    name
        What an error calls the column.

    Returns
    -------
    ndarray
        (N,) float64; `values` itself if it is that already.

    Examples
    --------
    >>> rewards([1, 0.5, True], 3)
    array([1. , 0.5, 1. ])
    >>> rewards([1, None, 0], 3)
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: rewards[1] is None (NoneType); give a real number
    """
    numbers = as_float64(_column(values, n_rows, name))
    if numbers is None:
        raise first_refused(values, name)
    return numbers


def weights(values: npt.ArrayLike | None, n_rows: int) -> Float64:
    """Read a column of positive finite numbers, at least 1e-40; None weighs every row the same.

    Examples
    --------
    >>> weights(None, 2)
    array([1., 1.])
    >>> weights([1, -2], 2)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: weights[1] is -2.0; give a positive number, at least 1e-40
    """
    if values is None:
        return np.ones(n_rows)
    numbers = rewards(values, n_rows, "weights")
    wrong = np.flatnonzero(numbers < LEAST_WEIGHT)
    if wrong.size > 0:
        raise InvalidValueError(too_light(f"weights[{wrong[0]}]", numbers[wrong[0]]))
    return numbers


def explored(values: npt.ArrayLike, n_rows: int) -> Bool:
    """Read which rows were explored: one answer for all of them, or a column of booleans or 0 and 1.

    Examples
    --------
    >>> explored(True, 2)
    array([ True,  True])
    >>> explored([0, 1, 2], 3)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: explored[2] is 2; give True or False
    """
    if isinstance(values, bool | np.bool_):
        return np.full(n_rows, bool(values))
    answers = as_float64(_column(values, n_rows, "explored"))
    if answers is not None and bool(((answers == 0) | (answers == 1)).all()):
        return answers.astype(np.bool_)
    listed = python_values(values)
    for i, value in enumerate(listed):
        if not is_number(value):
            raise InvalidTypeError(f"explored[{i}] is {reprlib.repr(value)}; give True or False")
        if value not in (0, 1):
            raise InvalidValueError(f"explored[{i}] is {value}; give True or False")
    return np.array(listed, dtype=np.bool_)


def labels(values: npt.ArrayLike, n_rows: int) -> list[Arm]:
    """Read a column of arm labels, each a str or an int.

    Parameters
    ----------
    values
        A list, numpy, a pandas or polars Series (categories too), or a pyarrow array.
    n_rows
        How many labels it must have: one for each context.

    Returns
    -------
    list
        Python str and int.

    Examples
    --------
    >>> import numpy as np
    >>> labels(np.array(["north", "south"]), 2)
    ['north', 'south']
    >>> labels([1, 2.0], 2)
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: arms[1] is 2.0 (float); give a str or an int
    """
    listed = python_values(values)
    if not isinstance(listed, list):
        raise InvalidTypeError(f"arms is {reprlib.repr(values)} ({type(values).__name__}); give a column of labels")
    if len(listed) != n_rows:
        raise InvalidValueError(f"arms has {len(listed)} labels for {n_rows} contexts; give one for each")
    if {type(value) for value in listed} <= {str, int}:
        return listed
    return [_label(value, i) for i, value in enumerate(listed)]


def _label(value: object, row: int) -> Arm:
    if isinstance(value, str):
        return str.__str__(value)  # what it holds: an enumeration of strings prints something else
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        return int(value)
    raise InvalidTypeError(f"arms[{row}] is {reprlib.repr(value)} ({type(value).__name__}); give a str or an int")


def as_array(values: object, name: str, names: Sequence[str] | None = None) -> npt.NDArray[Any]:
    """See values as a numpy array; a masked one has NaN behind its mask."""
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ndarray) and hasattr(values, "filled"):
        return cast("npt.NDArray[Any]", cast("Any", values).astype(np.float64).filled(np.nan))
    if hasattr(values, "toarray"):
        raise InvalidTypeError(
            f"{name} cannot be sparse ({type(values).__name__}); give all the values, with .toarray()"
        )
    try:
        return np.asarray(values)
    except (RuntimeError, TypeError, ValueError) as error:
        if isinstance(values, list | tuple):  # neither a row nor a matrix: one of its values is a list
            raise first_refused(values, name, names) from None
        # such as a tensor on another device, or one that tracks its gradient; its own words name the way out
        raise InvalidTypeError(
            f"{name} cannot be a {type(values).__name__}, numpy does not read it: {error}"
        ) from error


def as_float64(values: npt.NDArray[Any]) -> Float64 | None:
    """See real numbers as float64 in C order; None if one is not exact, not finite or too large."""
    floats = _converted(values)
    return floats if floats is not None and _is_small(floats) else None


def _is_small(floats: Float64) -> bool:
    # vdot is quickest for a row: NaN fails it, and it warns of nothing; in a matrix it wakes BLAS's threads
    if floats.size <= 1000 and np.vdot(floats, floats) <= LARGEST**2:
        return True
    return floats.size == 0 or bool(floats.min() >= -LARGEST and floats.max() <= LARGEST)


def _converted(values: npt.NDArray[Any]) -> Float64 | None:
    if values.dtype.kind not in "fiub":
        return None
    wide = values.size > 0 and values.dtype.kind in "iu" and values.dtype.itemsize == 8
    if wide and (values.max() > EXACT or values.min() < -EXACT):
        return None
    if values.dtype.kind == "f" and values.dtype.itemsize != 8:
        # a long double that becomes infinite, and a NaN that signals, are refused as such
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(np.float64, order="C")
    floats = np.array(values, dtype=np.float64, order="C", copy=None)
    return floats if floats.flags.aligned else floats.copy()


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value is one real number: numpy's timedelta is an np.integer, yet none."""
    return isinstance(value, NUMBERS) and not isinstance(value, np.timedelta64)


def refused(value: object, name: str) -> Exception | None:
    """Say why a value is not a usable number; None if it is one."""
    if not is_number(value):
        return InvalidTypeError(f"{name} is {reprlib.repr(value)} ({type(value).__name__}); give a real number")
    if isinstance(value, (int, np.integer)) and abs(int(value)) > EXACT:
        return InvalidValueError(f"{name} is {value}, beyond 2**53 where float64 is inexact; rescale it")
    if not abs(float(value)) <= LARGEST:
        return InvalidValueError(f"{name} is {value}; give a finite number of at most {LARGEST:g} in size")
    return None


def first_refused(values: object, name: str, names: Sequence[str] | None = None) -> Exception:
    """Say what is wrong with the first unusable value, called by its feature or its index."""
    for i, value in enumerate(python_values(values)):
        error = refused(value, f"{name}[{names[i] if names and i < len(names) else i!r}]")
        if error is not None:
            return error
    return InvalidTypeError(f"{name} holds numbers as objects; convert it with numpy.asarray({name}, dtype=float)")


def check_names(given: Collection[object], wanted: Sequence[str], what: str) -> None:
    """Refuse names that are not exactly the wanted ones, naming all that are missing or too many.

    Examples
    --------
    >>> check_names(["age", "hight"], ["age", "height"], "the table")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: the table lacks 'height' and has the unknown 'hight'; give each feature ...
    """
    present, known = set(given), set(wanted)
    faults = {
        "lacks": [repr(name) for name in wanted if name not in present],
        "has the unknown": [repr(name) for name in given if name not in known],
    }
    told = " and ".join(f"{fault} {', '.join(names)}" for fault, names in faults.items() if names)
    if told:
        raise InvalidValueError(f"{what} {told}; give each feature once and no more")


def _column(values: npt.ArrayLike, n_rows: int, name: str) -> npt.NDArray[Any]:
    column = as_array(values, name)
    if column.ndim == 0:
        raise InvalidTypeError(f"{name} is {reprlib.repr(values)} ({type(values).__name__}); give {n_rows} values")
    if column.shape != (n_rows,):
        raise InvalidValueError(f"{name} has shape {column.shape} for {n_rows} contexts; give one value for each")
    return column


def python_values(values: Any) -> Any:
    """Python values of a column, whoever holds it; not a list if it is no column."""
    if isinstance(values, list | tuple):
        return list(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return list(values)  # its tolist would turn dates and times into ints
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow; pandas and polars; numpy
        if hasattr(values, method):
            return getattr(values, method)()
    return np.asarray(values).tolist()
