"""Errors that no built-in exception describes well, and what their texts share: close names, missing packages."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import ContextDecorator
from functools import cache, wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from string import Formatter
from types import ModuleType
from typing import Final, Literal, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class ArmletError(Exception):
    """Base of every error that is Armlet's own."""


class InvalidValueError(ArmletError, ValueError):
    """An argument has a value that it cannot have."""


class InvalidTypeError(ArmletError, TypeError):
    """An argument has a type that it cannot have."""


class UnknownNameError(ArmletError, KeyError):
    """Nothing has the name that was asked for.

    Examples
    --------
    >>> raise UnknownNameError("there is no arm 'west'")
    Traceback (most recent call last):
    armlet.errors.UnknownNameError: there is no arm 'west'
    """

    __str__ = Exception.__str__  # a KeyError would show its text in quotes


class _Refusing(ContextDecorator):
    """What `refusing` returns; it has no state, so that one serves all calls."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        refused = None if kind is None else _REFUSALS.get(kind)
        if error is None or refused is None:  # of nothing, Armlet's own, or a subclass from elsewhere
            return
        text = error.args[0] if kind is KeyError and len(error.args) == 1 else error
        raise refused(str(text)).with_traceback(error.__traceback__) from None


_REFUSING: Final = _Refusing()


def refusing() -> _Refusing:
    """Raise errors of Python or numpy as an ArmletError that is also of the original type, where arguments are read.

    Nowhere else: beyond the border such an error is a fault, and looks like one.

    Examples
    --------
    >>> with refusing():
    ...     {}["west"]
    Traceback (most recent call last):
    armlet.errors.UnknownNameError: west
    """
    return _REFUSING


_REFUSALS: Mapping[type[BaseException], type[ArmletError]] = {
    ValueError: InvalidValueError,
    OverflowError: InvalidValueError,
    RecursionError: InvalidValueError,
    UnicodeEncodeError: InvalidValueError,
    UnicodeDecodeError: InvalidValueError,
    TypeError: InvalidTypeError,
    KeyError: UnknownNameError,
}


def trace_of(error: BaseException) -> str:
    """Return where an error was raised, the last call last, in one line; not its text, which may contain a context.

    Examples
    --------
    >>> try:
    ...     closest(None, ["OFUL"])
    ... except AttributeError as error:
    ...     trace_of(error)
    '... > armlet.errors:... > armlet.errors:...'
    """
    places, trace = [], error.__traceback__
    while trace is not None:
        places.append(f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}")
        trace = trace.tb_next
    return " > ".join(places) or "?"


class DecisionError(ArmletError):
    """A Decision was used in a way that its past forbids, such as learning from it twice."""


class ForgetError(DecisionError):
    """What was learned from a decision cannot be taken back exactly."""


class ModelFileError(ArmletError):
    """A model file is damaged, truncated, tampered with, or newer than this version reads."""


class MergeError(ArmletError):
    """Two bandits whose sums do not mean the same thing cannot be added."""


class BusyError(ArmletError):
    """A bandit was changed from inside one of its own calls, by its policy or by a signal handler."""


class PolicyError(ArmletError):
    """A policy answered with an arm that cannot be played, or with invalid probabilities."""


class BudgetError(ArmletError):
    """No arm can be played without spending more than a hard budget allows; nothing was changed."""


class TableError(ArmletError):
    """A table's producer failed while its rows were being read."""


class LostDigitsWarning(RuntimeWarning):
    """A row was taken back that is so much larger than the others that sums have lost digits."""


class StoreError(ArmletError):
    """A store cannot be opened, is damaged, or could not write; nothing of the call was kept."""


class StoreFailedError(StoreError):
    """A store has failed in a way that only opening it again can mend."""


class InternalError(StoreError):
    """A fault inside a store, such as an error of Python in the midst of a transaction; the call was rolled back."""


class QueueFullError(StoreError):
    """Too many calls wait for a store already; nothing of the call was kept, and it may be repeated a little later."""


class LoopGoneError(StoreError):
    """A loop was deleted, here or by another replica."""


class LoopStateError(StoreError):
    """A loop is made or guarded in a way that forbids the call; the text says what to end, or to leave out, first."""


class UncertainError(StoreError):
    """Whether a call was kept is not known: repeat it, a decision with its event, and the answer is the same."""


class EventError(ArmletError):
    """An event was sent again with another context than the first time."""


class ServiceError(ArmletError):
    """A server refused a call, or did not answer in time.

    Parameters
    ----------
    text
        What is wrong, and the way out.
    status
        The status of the answer; None if there was none.
    type
        Which problem it is, "urn:armlet:problem:invalid" for one; "urn:armlet:problem:outcome-unknown" if nobody knows
        whether the call was kept.
    field
        The field of the request that it is about, such as "context.age".

    Examples
    --------
    >>> raise ServiceError("give a finite number", status=422, field="context.age")
    Traceback (most recent call last):
    armlet.errors.ServiceError: context.age: give a finite number (422)
    """

    def __init__(
        self,
        text: str,
        *,
        status: int | None = None,
        type: str = "about:blank",  # noqa: A002 (as RFC 9457 calls it)
        field: str | None = None,
    ) -> None:
        where, answered = "" if field is None else f"{field}: ", "" if status is None else f" ({status})"
        super().__init__(f"{where}{text}{answered}")
        self.status, self.type, self.field = status, type, field


class LogError(ArmletError):
    """A log cannot be written or read on: it is damaged, in use, full, or that of another bandit.

    Parameters
    ----------
    text
        What is wrong, and the way out.
    seq
        The number of the event at which it was found, if there was one.
    """

    def __init__(self, text: str, seq: int | None = None) -> None:
        super().__init__(text)
        self.seq = seq


class EvaluationError(ArmletError):
    """A log does not hold what an evaluation asks of it."""


class NotFittedError(ArmletError, ValueError, AttributeError):
    """An encoder was asked for numbers before it has seen a table."""


class ArgumentError(InvalidValueError):
    """An invalid value whose text names its argument, so that a command line can put in its own name.

    Parameters
    ----------
    text
        The message, with arguments and values in braces: a name that is not among the values is an argument.
    values
        Replacements for the other names in braces.

    Examples
    --------
    >>> error = ArgumentError("{n_arms} is {value}; give at least 2", value=1)
    >>> print(error)
    n_arms is 1; give at least 2
    >>> error.text({"n_arms": "--arms"})
    '--arms is 1; give at least 2'
    """

    def __init__(self, text: str, **values: object) -> None:
        self._template, self._values = text, values
        super().__init__(self.text({}))

    def text(self, names: Mapping[str, str]) -> str:
        """Return the text with other names for some arguments."""
        fields = {name for _, name, _, _ in Formatter().parse(self._template) if name is not None}
        arguments = {name: names.get(name, name) for name in fields - self._values.keys()}
        return self._template.format(**arguments, **self._values)


class MissingConstantError(ArmletError, ValueError):
    """An environment has no such constant.

    Examples
    --------
    >>> raise MissingConstantError("sigma_min", "every context is zero")
    Traceback (most recent call last):
    armlet.errors.MissingConstantError: sigma_min does not exist: every context is zero
    """

    def __init__(self, constant: Literal["sigma_min", "delta_min"], why: str) -> None:
        super().__init__(f"{constant} does not exist: {why}")
        self.constant = constant
        self.why = why


MANY: Final = 12  # names that an error lists


def suggesting(called: str, **elsewhere: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Check the names of a function's arguments, and suggest the closest to one that it does not have.

    `elsewhere` says what to do about arguments that others have.

    Examples
    --------
    >>> @suggesting("brew")
    ... def brew(cups, *, strength=1.0):
    ...     return cups * strength
    >>> brew(2, strenght=3)
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: brew() got an unexpected keyword 'strenght', which is 3; did you mean 'strength'?
    >>> brew()
    Traceback (most recent call last):
    armlet.errors.InvalidTypeError: brew(): missing a required argument: 'cups'; call brew(cups, strength)
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        form = signature(function)
        known = [name for name in form.parameters if name != "self"]

        @wraps(function)
        def checked(*args: P.args, **named: P.kwargs) -> R:
            for keyword, value in named.items():
                if keyword not in known:
                    text = f"{called}() got an unexpected keyword {keyword!r}, which is {reprlib.repr(value)}"
                    raise InvalidTypeError(f"{text}; {elsewhere.get(keyword) or choices(keyword, known)}")
            try:
                form.bind(*args, **named)
            except TypeError as error:
                raise InvalidTypeError(f"{called}(): {error}; call {called}({', '.join(known)})") from None
            return function(*args, **named)

        return checked

    return decorate


class CheckedSettings:
    """Mixed into frozen dataclasses with slots: a setting that there is not is refused with the closest name."""

    __slots__ = ()

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if "__dataclass_fields__" in vars(cls) and "__init__" in vars(cls):  # the class that slots were added to
            cls.__init__ = suggesting(cls.__name__)(cls.__init__)  # type: ignore[method-assign]


def closest(word: str, names: Iterable[str]) -> str | None:
    """Return the name that is closest to a word, ignoring case and punctuation; None if none is close.

    Examples
    --------
    >>> closest("lin-ubc", ["OFUL", "LinUCB"]), closest("spam", ["OFUL", "LinUCB"])
    ('LinUCB', None)
    """
    from difflib import get_close_matches  # only an error needs it

    known = {_bare(name): name for name in names}
    matches = get_close_matches(_bare(word), known, n=1, cutoff=0.65)
    return known[matches[0]] if matches else None


def choices(word: str, names: Iterable[str], *, listed: str = "") -> str:
    """Return the fix for an unknown name: the closest one, or those that there are.

    Parameters
    ----------
    word
        The unknown name.
    names
        Those that there are.
    listed
        Where all of them are listed, if there may be many, such as a command.

    Examples
    --------
    >>> choices("LinUBC", ["OFUL", "LinUCB"]), choices("spam", ["OFUL", "LinUCB"])
    ("did you mean 'LinUCB'?", 'choose one of OFUL, LinUCB')
    >>> choices("LinUBC", ["OFUL", "LinUCB"], listed="armlet list")
    "did you mean 'LinUCB'? armlet list shows all"
    """
    known = list(names)
    name = closest(word, known)
    if name is not None:
        return f"did you mean {name!r}?" + (f" {listed} shows all" if listed else "")
    if listed and len(known) > MANY:
        return f"{listed} shows all {len(known)}"
    more = f" and {len(known) - MANY} more" if len(known) > MANY else ""
    return f"choose one of {', '.join(known[:MANY])}{more}"


def _bare(word: str) -> str:
    return "".join(filter(str.isalnum, word.lower()))


EXTRAS: Final = {
    "apsw": "store",
    "distributed": "cluster",
    "httptools": "service",
    "httpx2": "client",
    "matplotlib": "plots",
    "msgspec": "client",
    "psycopg": "postgresql",
    "pyarrow": "data",
    "uvicorn": "service",
}
"""Packages that only some of the library needs, and the extra of ours that installs each."""


def require_package(package: str, what: str) -> None:
    """Refuse if a package is missing, at the start: an hour of computing must not end in a missing package."""
    if find_spec(package) is None:
        raise missing_package(package, what)


def load_package(package: str, what: str) -> ModuleType:
    """Import a package, or refuse with the command that installs it.

    Examples
    --------
    >>> load_package("pyarrow", "tables need").__name__
    'pyarrow'
    """
    require_package(package, what)
    return import_module(package)


@cache
def load_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Import pyarrow and its Parquet module, or refuse with the command that installs them."""
    return load_package("pyarrow", "tables need"), import_module("pyarrow.parquet")


def missing_package(package: str, what: str) -> ModuleNotFoundError:
    """Return the error for a missing package.

    Examples
    --------
    >>> print(missing_package("pyarrow", "tables need"))
    tables need pyarrow; pip install 'armlet[data]'
    """
    return ModuleNotFoundError(f"{what} {package}; pip install 'armlet[{EXTRAS[package]}]'", name=package)
