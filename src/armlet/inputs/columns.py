"""Numbers and labels of arms at the border: single values, columns, and the table of a log.

A column holds one value a row: a list, numpy, a pandas or polars Series, a pyarrow array.
A refused value is named by its row. Cost O(N) a column; float64 passes through uncopied.
"""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.types import Arm, Bool, Float64, Int64

if TYPE_CHECKING:
    from armlet.inputs.contexts import ContextReader
    from armlet.inputs.outcomes import Outcomes
    from armlet.inputs.settings import Reader

# Contexts, rewards, weights and settings. Any float32 is below it. A row then adds w x x' <= 1e120 to a sum, so that no
# number of rows overflows it, and estimates, widths and their squares stay finite too. NaN and infinity fail the same
# comparison.
LARGEST = 1e40
# Weights. One over the sum of any stays finite, and so do means, deviations and scores.
LEAST_WEIGHT = 1e-40
EXACT = 2**53  # every integer up to here is a float64; beyond, neighbours fall together
LONGEST = 256  # characters of a name
NUMBERS = (int, float, np.integer, np.floating, np.bool_)


def reward(value: float, name: str = "reward") -> float:
    """Check one reward: any finite number, of either sign.

    Examples
    --------
    >>> reward(float("nan"))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: reward is nan; give a finite number of at most 1e+40 in size
    """
    if type(value) is float and -LARGEST <= value <= LARGEST:
        return value
    error = refused(value, name)
    if error is not None:
        raise error
    number = _float(value, name)
    if not -LARGEST <= number <= LARGEST:  # an object may say another number each time
        raise InvalidValueError(f"{name} is {number}; give a finite number of at most {LARGEST:g} in size")
    return number


def weight(value: float) -> float:
    """Check one weight: a positive finite number, at least 1e-40."""
    number = reward(value, "weight")
    if number < LEAST_WEIGHT:
        raise InvalidValueError(too_light("weight", number))
    return number


def too_light(name: str, number: float) -> str:
    """Return the text of the error for a weight below 1e-40."""
    return f"{name} is {number}; give a positive number, at least {LEAST_WEIGHT:g}"


def rewards(values: npt.ArrayLike, n_rows: int, name: str = "rewards") -> Float64:
    """Read a column of n_rows finite numbers: (N,) float64, `values` itself if it is that already.

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
    """Read a column of positive finite numbers, at least 1e-40; None weighs every row the same."""
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
    if not isinstance(listed, list):
        raise InvalidTypeError(f"explored is {reprlib.repr(values)} ({type(values).__name__}); give True or False")
    for i, value in enumerate(listed):
        if not is_number(value):
            raise InvalidTypeError(f"explored[{i}] is {reprlib.repr(value)}; give True or False")
        if value not in (0, 1):
            raise InvalidValueError(f"explored[{i}] is {value}; give True or False")
    return np.array(listed, dtype=np.bool_)


def labels(values: npt.ArrayLike, n_rows: int) -> list[Arm]:
    """Read a column of arm labels (categories too) as Python str and int.

    Examples
    --------
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
        is_owners = error.__traceback__ is not None and error.__traceback__.tb_next is not None  # not numpy's
        reason = error if is_owners else "give a list or an array"
        raise InvalidTypeError(
            f"{name} cannot be a {type(values).__name__}, numpy does not read it: {reason}"
        ) from error


def as_float64(values: npt.NDArray[Any]) -> Float64 | None:
    """View real numbers as float64 in C order; None if one is not exact, not finite or too large."""
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
    """Return whether a value is one real number: numpy's timedelta is an np.integer, but not a number."""
    return isinstance(value, NUMBERS) and not isinstance(value, np.timedelta64)


def refused(value: object, name: str) -> Exception | None:
    """Return the error for a value that is not a usable number; None if it is one."""
    if not is_number(value):
        return InvalidTypeError(f"{name} is {reprlib.repr(value)} ({type(value).__name__}); give a real number")
    if isinstance(value, (int, np.integer)) and abs(int(value)) > EXACT:
        return InvalidValueError(f"{name} is {value}, beyond 2**53 where float64 is inexact; rescale it")
    if not abs(_float(value, name)) <= LARGEST:
        return InvalidValueError(f"{name} is {value}; give a finite number of at most {LARGEST:g} in size")
    return None


def _float(value: float, name: str) -> float:
    """Return a number as a float, by a method that its class may have of its own."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidTypeError(f"{name} is a {type(value).__name__} without a float; give a real number") from error


def first_refused(values: object, name: str, names: Sequence[str] | None = None) -> Exception:
    """Return the error for the first unusable value, named by its feature or its index."""
    listed = python_values(values)
    if not isinstance(listed, list):
        return InvalidTypeError(f"{name} is {reprlib.repr(values)} ({type(values).__name__}); give real numbers")
    for i, value in enumerate(listed):
        error = refused(value, f"{name}[{names[i] if names and i < len(names) else i!r}]")
        if error is not None:
            return error
    return InvalidTypeError(f"{name} holds numbers as objects; convert it with numpy.asarray({name}, dtype=float)")


def check_names(names: Collection[object], wanted: Sequence[str], what: str) -> None:
    """Refuse names that are not exactly the wanted ones, listing all that are missing or unknown.

    Examples
    --------
    >>> check_names(["age", "hight"], ["age", "height"], "the table")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: the table lacks 'height' and has the unknown 'hight'; give each feature ...
    """
    present, known = set(names), set(wanted)
    faults = {
        "lacks": [repr(name) for name in wanted if name not in present],
        "has the unknown": [repr(name) for name in names if name not in known],
    }
    text = " and ".join(f"{fault} {', '.join(wrong)}" for fault, wrong in faults.items() if wrong)
    if text:
        raise InvalidValueError(f"{what} {text}; give each feature once and no more")


def _column(values: npt.ArrayLike, n_rows: int, name: str) -> npt.NDArray[Any]:
    column = as_array(values, name)
    if column.ndim == 0:
        raise InvalidTypeError(f"{name} is {reprlib.repr(values)} ({type(values).__name__}); give {n_rows} values")
    if column.shape != (n_rows,):
        raise InvalidValueError(f"{name} has shape {column.shape} for {n_rows} contexts; give one value for each")
    return column


def python_values(values: Any) -> Any:
    """Return the Python values of a column of any library; not a list if it is no column."""
    if isinstance(values, list | tuple):
        return list(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        return list(values)  # its tolist would turn dates and times into ints
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow; pandas and polars; numpy
        if hasattr(values, method):
            return getattr(values, method)()
    try:
        return np.asarray(values).tolist()
    except (RuntimeError, TypeError, ValueError):
        return None


WIDEST = 256  # characters of a label in an array of strings, four bytes each in every entry


def check_utf8(argument: str, value: str) -> str:
    r"""Return text that can be written; a half of a surrogate pair cannot, and would spoil files long after it came.

    Examples
    --------
    >>> check_utf8("name", "\ud800")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: name is '\ud800'; give text that can be written as UTF-8
    """
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidValueError(
                f"{argument} is {reprlib.repr(value)}; give text that can be written as UTF-8"
            ) from error
    return value


def plain_label(label: Arm) -> Arm:
    """Return a label that compares as what it is, whatever its class says."""
    return str.__str__(label) if isinstance(label, str) else label


def check_text(argument: str, value: object) -> str:
    """Return a name, or refuse what is not one.

    Examples
    --------
    >>> check_text("event", "")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: event is ''; give text of 1 to 256 characters
    """
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST:
        raise InvalidValueError(f"{argument} is {reprlib.repr(value)}; give text of 1 to {LONGEST} characters")
    return check_utf8(argument, value)


def check_label(label: object) -> Arm:
    """Return a label that may name an arm."""
    if isinstance(label, (np.str_, np.integer)) and not isinstance(label, np.timedelta64):
        label = label.item()
    if isinstance(label, (str, int)) and not isinstance(label, bool):
        return check_utf8("the label of an arm", label) if isinstance(label, str) else int(label)
    raise InvalidTypeError(f"an arm is named {label!r}, a {type(label).__name__}; use a str or an int")


def plain_labels(labels: list[Any]) -> list[Arm]:
    """Return labels as Python's own str and int; the list itself if they are."""
    kinds = set(map(type, labels))
    if kinds <= {str, int} and (str not in kinds or all(type(each) is int or each.isascii() for each in labels)):
        return labels
    return [check_label(label) for label in labels]


def listed(argument: str, given: Iterable[object]) -> list[object]:
    """Return the items of a list of labels or names; a string is a label, not a list of them."""
    if isinstance(given, str | bytes):
        raise InvalidTypeError(f"{argument} is the string {given!r}; give a list of labels such as ['north', 'south']")
    if not has_items(given):
        raise InvalidTypeError(f"{argument} is {given!r}; give a list such as ['north', 'south']")
    return list(given)


def has_items(value: object) -> TypeGuard[Iterable[object]]:
    """Return whether a value can be iterated over; an array of no dimension only looks as if it could."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0


def check_labels(labels: Iterable[object]) -> list[Arm]:
    """Return the labels of a new bandit: at least one, no two alike."""
    checked = [check_label(label) for label in listed("arms", labels)]
    if not checked:
        raise InvalidValueError("arms is empty; give at least one label")
    twice = sorted({str(label) for label, count in Counter(checked).items() if count > 1})
    if twice:
        raise InvalidValueError(f"arms has {', '.join(twice)} more than once; labels must differ")
    return checked


def label_array(labels: list[Arm]) -> npt.NDArray[Any]:
    """Return an array of numpy's strings or int64 where these can hold all labels, else of Python objects.

    They cannot hold labels of both kinds, integers beyond int64, strings that numpy would cut (it drops trailing NULs)
    and those longer than `WIDEST`, for which every entry would need room.

    Examples
    --------
    >>> label_array(["a", "bc"]), label_array([7, -1])
    (array(['a', 'bc'], dtype='<U2'), array([ 7, -1]))
    """
    kinds = {type(label) for label in labels}
    if kinds == {int} and all(-(2**63) <= label < 2**63 for label in cast("list[int]", labels)):
        return np.array(labels, dtype=np.int64)
    if kinds == {str} and not any(len(label) > WIDEST or label.endswith("\0") for label in cast("list[str]", labels)):
        return np.array(labels, dtype=np.str_)
    return np.array(labels, dtype=np.object_)


# ---- the table of a log

NEEDED: Final = ("t", "arm", "reward", "propensity", "explored")
MISNAMED: Final = {
    "X": "x",
    "arms": "arm",
    "rewards": "reward",
    "propensities": "propensity",
    "tags": "tag",
    "weights": "weight",
    "replaced": "replaces",
}
LEAST_CHANCE: Final = 1e-100  # policies that divide by it stay finite


class LoggedRows(NamedTuple):
    """A log in columns of N rows."""

    t: Int64
    X: Float64  # (N, d)
    arms: list[Arm]
    rewards: Float64  # (N,), or (N, m) with several outcomes
    propensities: Float64
    explored: Bool
    tags: Int64
    weights: Float64
    replaces: Float64  # as rewards; NaN where a row is new


def read_logged(table: object, reader: ContextReader, outcomes: Outcomes | None = None) -> LoggedRows:
    """Read the columns t, x, arm, reward, propensity and explored, and tag, weight and replaces if they are there.

    With several outcomes, `reward` and `replaces` are columns by name, or there are columns `reward_NAME`.

    Examples
    --------
    >>> from armlet.inputs.contexts import ContextReader
    >>> table = {"t": [3], "x": [[1.0]], "arm": ["a"], "reward": [0.5], "propensity": [1], "explored": [True]}
    >>> read_logged(table, ContextReader(1)).weights
    array([1.])
    >>> read_logged(table | {"propensity": [0.0]}, ContextReader(1))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: propensity[0] is 0.0; give a number above 0 and at most 1
    """
    names, column = open_table(table)
    for name, right in MISNAMED.items():
        if name in names and right not in names:
            raise InvalidValueError(f"the table has a column {name}; call it {right}")
    missing = [name for name in NEEDED if name not in names and (name != "reward" or outcomes is None)]
    if missing:
        raise InvalidValueError(f"the table has no column {', '.join(missing)}; it has {reprlib.repr(names)}")
    t = _whole(column("t"), "t", 1, 2**63 - 1)
    n = len(t)
    chances = rewards(column("propensity"), n, "propensity")
    _check(chances, "propensity", (chances >= LEAST_CHANCE) & (chances <= 1), "give a number above 0 and at most 1")
    return LoggedRows(
        t=t,
        X=_contexts(names, column, reader, n),
        arms=list(labels(column("arm"), n)),
        rewards=_rewards(names, column, n, outcomes),
        propensities=chances,
        explored=explored(column("explored"), n),
        tags=_whole(column("tag"), "tag", -(2**31), 2**31 - 1, n) if "tag" in names else np.zeros(n, dtype=np.int64),
        weights=weights(column("weight") if "weight" in names else None, n),
        replaces=_all_replaces(names, column, n, outcomes),
    )


def _rewards(names: list[str], column: Callable[[str], Any], n: int, outcomes: Outcomes | None) -> Float64:
    if outcomes is None:
        return rewards(column("reward"), n, "reward")
    return outcomes.matrix(_by_name("reward", names, column, outcomes), n, "reward")


def _all_replaces(names: list[str], column: Callable[[str], Any], n: int, outcomes: Outcomes | None) -> Float64:
    if outcomes is None:
        return taken_back(column("replaces"), n) if "replaces" in names else np.full(n, np.nan)
    by_name = _by_name("replaces", names, column, outcomes)
    if not by_name:
        return np.full((n, len(outcomes.learned)), np.nan)
    matrix = outcomes.matrix(by_name, n, "replaces", taken_back)
    some = np.flatnonzero(np.isnan(matrix).any(axis=1) & ~np.isnan(matrix).all(axis=1))
    if some.size:
        raise InvalidValueError(f"replaces has some outcomes of row {some[0]} and not others; give all, or none")
    return matrix


def _by_name(role: str, names: list[str], column: Callable[[str], Any], outcomes: Outcomes) -> Mapping[str, Any]:
    """Return the columns of learned outcomes by name: a mapping, or those of a table that begin with the role."""
    if role in names and isinstance(columns := column(role), Mapping):
        return columns
    return {name: column(f"{role}_{name}") for name in outcomes.learned if f"{role}_{name}" in names}


def open_table(table: Any) -> tuple[list[str], Callable[[str], Any]]:
    """Return the names of the columns of a log, and what leads from a name to its column."""
    if isinstance(table, Mapping):
        return list(table), lambda name: _one_a_row(table[name], name)
    for names in ("column_names", "columns"):  # pyarrow; pandas and polars
        labels = getattr(table, names, None)
        if labels is not None and hasattr(table, "__getitem__"):
            return [str(name) for name in labels], table.__getitem__
    raise InvalidTypeError(
        f"table is {reprlib.repr(table)} ({type(table).__name__}); give a mapping of columns, a data frame or an Arrow "
        "table"
    )


def _one_a_row(values: Any, name: str) -> Any:
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InvalidTypeError(f"column {name} is {reprlib.repr(values)}; give a list, one value for each row")
    return values


def _check(values: npt.NDArray[Any], name: str, good: Bool, fix: str) -> None:
    wrong = np.flatnonzero(~good)
    if wrong.size > 0:
        raise InvalidValueError(f"{name}[{wrong[0]}] is {values[wrong[0]]}; {fix}")


def _raw(values: Any) -> npt.NDArray[Any]:
    """Return a column as an array, of Python objects if its values are not plain numbers; of no axis if it is none."""
    try:
        raw = np.asarray(values) if hasattr(values, "__array__") else np.asarray(python_values(values))
        return raw if raw.dtype.kind in "biuf" else np.array(python_values(values), dtype=object)
    except (RuntimeError, TypeError, ValueError):  # lists of several lengths among its values
        return np.array(None, dtype=object)


def _whole(values: Any, name: str, least: int, most: int, n: int | None = None) -> Int64:
    """Read a column of whole numbers, which may be too large for floats."""
    numbers = _raw(values)
    if numbers.ndim != 1 or (n is not None and len(numbers) != n):
        raise InvalidTypeError(f"{name} is {reprlib.repr(values)}; give a column of whole numbers, one for each row")
    fix = f"give a whole number from {least} to {most}"
    if numbers.dtype.kind == "O":
        good = [type(value) is int and least <= value <= most for value in numbers.tolist()]
        _check(numbers, name, np.array(good, dtype=np.bool_), fix)
    if numbers.dtype.kind == "f":
        _check(numbers, name, (np.abs(numbers) <= EXACT) & (numbers == np.rint(numbers)), fix)
    _check(numbers, name, (numbers >= least) & (numbers <= most) & (numbers.dtype.kind != "b"), fix)
    return np.ascontiguousarray(numbers.astype(np.int64))


def taken_back(values: Any, n: int, name: str = "replaces") -> Float64:
    """Read the rewards that others replace; null or NaN where there is none."""
    numbers = _raw(values)
    if numbers.shape != (n,):
        raise InvalidValueError(f"{name} has shape {numbers.shape} for {n} rows; give one value for each, or null")
    listed = numbers.tolist() if numbers.dtype.kind == "O" else None
    new = np.isnan(numbers) if listed is None else np.array([value is None or value != value for value in listed])
    new = new.astype(np.bool_)  # of no rows too
    return np.where(new, np.nan, rewards(np.where(new, 0.0, numbers).tolist(), n, name))


def _contexts(names: list[str], column: Callable[[str], Any], reader: ContextReader, n: int) -> Float64:
    if "x" in names:
        return read_rows(column("x"), "x", reader, n)
    if reader.features is None or not set(reader.features) <= set(names):
        raise InvalidValueError(f"the table has no column x, and none for every feature; it has {reprlib.repr(names)}")
    return reader.matrix(np.column_stack([rewards(column(name), n, name) for name in reader.features]))


def read_rows(values: Any, name: str, reader: Reader, n: int) -> Float64:
    """Read a column of n rows of numbers: lists, arrays, or float64 as bytes."""
    rows = reader.matrix(_rows(values, n))
    if len(rows) != n:
        raise InvalidValueError(f"{name} has {len(rows)} rows and t {n}; give one for each")
    return rows


def _rows(values: Any, n: int) -> Any:
    """Return contexts as a matrix where they lie in one already: binary or lists of Arrow, arrays of polars."""
    if hasattr(values, "combine_chunks"):
        values = values.combine_chunks()
    if hasattr(values, "type") and hasattr(values, "flatten"):  # an Arrow array
        if values.null_count:
            raise InvalidValueError("x is null in some rows; leave out rows without a context")
        if str(values.type).startswith("fixed_size_list"):
            flat = values.flatten().to_numpy(zero_copy_only=False)
            return flat.reshape(n, -1) if n else flat
        if str(values.type).startswith("fixed_size_binary"):
            width, start = values.type.byte_width, values.offset
            return _floats(values.buffers()[1][start * width : (start + n) * width], n)
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return values
    listed = python_values(values)
    if listed and all(isinstance(row, bytes) for row in listed):
        if len({len(row) for row in listed}) > 1 or len(listed[0]) % 8:
            raise InvalidValueError("x has rows of bytes that are not equally many float64; give each context alike")
        return _floats(b"".join(listed), n)
    if not isinstance(listed, list):
        raise InvalidTypeError(f"x is {reprlib.repr(values)} ({type(values).__name__}); give a column of contexts")
    return [row.tolist() if isinstance(row, np.ndarray) else row for row in listed]


def _floats(data: Any, n: int) -> Float64:
    values = np.frombuffer(data, dtype="<f8").astype(np.float64)
    return values.reshape(n, -1) if n else values
