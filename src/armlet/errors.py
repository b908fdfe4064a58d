"""Errors that no built-in exception describes well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from string import Formatter
from typing import Literal


class ArmletError(Exception):
    """Base of every error that is Armlet's own."""


class InvalidValueError(ArmletError, ValueError):
    """An argument has a value that it cannot have."""


class InvalidTypeError(ArmletError, TypeError):
    """An argument is of a kind that it cannot be."""


class UnknownNameError(ArmletError, KeyError):
    """Something is asked for by a name that nothing has.

    Examples
    --------
    >>> raise UnknownNameError("there is no arm 'west'")
    Traceback (most recent call last):
    armlet.errors.UnknownNameError: there is no arm 'west'
    """

    __str__ = Exception.__str__  # a KeyError would show its text in quotes


@contextmanager
def refusing() -> Iterator[None]:
    """Raise what Python or numpy refuse inside as an ArmletError that is also what it was; for public methods.

    Examples
    --------
    >>> with refusing():
    ...     {}["west"]
    Traceback (most recent call last):
    armlet.errors.UnknownNameError: west
    """
    try:
        yield
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        kind = _REFUSALS.get(type(error))
        if kind is None:  # Armlet's own, or one that somebody else has made
            raise
        text = error.args[0] if type(error) is KeyError and len(error.args) == 1 else error
        raise kind(str(text)).with_traceback(error.__traceback__) from None


_REFUSALS: Mapping[type[Exception], type[ArmletError]] = {
    ValueError: InvalidValueError,
    OverflowError: InvalidValueError,
    RecursionError: InvalidValueError,
    UnicodeEncodeError: InvalidValueError,
    UnicodeDecodeError: InvalidValueError,
    TypeError: InvalidTypeError,
    KeyError: UnknownNameError,
}


class DecisionError(ArmletError):
    """A Decision was used in a way that its past forbids, such as learning from it twice."""


class ModelFileError(ArmletError):
    """A model file is damaged, truncated, tampered with, or newer than this version reads."""


class MergeError(ArmletError):
    """Two bandits whose sums do not mean the same thing cannot be added."""


class BusyError(ArmletError):
    """A bandit is to be changed from inside one of its own calls, by its policy or by a signal handler."""


class PolicyError(ArmletError):
    """A policy answered what no policy may: an arm that cannot be played, or probabilities that are none."""


class TableError(ArmletError):
    """A table's producer failed while its rows were being read."""


class StoreError(ArmletError):
    """A store cannot be opened, is damaged, or could not write; nothing of the call was kept."""


class EventError(ArmletError):
    """An event is asked about again, but with another context than the first time."""


class LogError(ArmletError):
    """A log cannot be written or read on: it is damaged, in use, full, or that of another bandit.

    Parameters
    ----------
    text
        What is wrong, and the way out.
    seq
        The number of the event at which it was found, if it was at one.
    """

    def __init__(self, text: str, seq: int | None = None) -> None:
        super().__init__(text)
        self.seq = seq


class EvaluationError(ArmletError):
    """A log cannot tell what is asked of it, however it is read."""


class NotFittedError(ArmletError, ValueError, AttributeError):
    """An encoder was asked for numbers before it has seen a table."""


class ArgumentError(InvalidValueError):
    """A value that cannot be, told with the name of its argument, which a command line can change to its own.

    Parameters
    ----------
    text
        With arguments and values in braces: what is not among the values is an argument.
    values
        What stands in the text beside the names.

    Examples
    --------
    >>> error = ArgumentError("{n_arms} is {value}; give at least 2", value=1)
    >>> print(error)
    n_arms is 1; give at least 2
    >>> error.told({"n_arms": "--arms"})
    '--arms is 1; give at least 2'
    """

    def __init__(self, text: str, **values: object) -> None:
        self._text, self._values = text, values
        super().__init__(self.told({}))

    def told(self, names: Mapping[str, str]) -> str:
        """Give the text with other names for some arguments."""
        fields = {name for _, name, _, _ in Formatter().parse(self._text) if name is not None}
        arguments = {name: names.get(name, name) for name in fields - self._values.keys()}
        return self._text.format(**arguments, **self._values)


class MissingConstantError(ArmletError, ValueError):
    """A problem has no such constant.

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
