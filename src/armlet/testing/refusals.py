"""The judge of refusals: whether an error is Armlet's answer to an argument, or a fault that looks like one.

A refusal is an ArmletError whose text names an argument of the call, or the object that the call is about. A message of
Python, of numpy or of the kernel's internals is a fault, whatever class it has.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from armlet.errors import ArmletError, InternalError

FOREIGN: Final = re.compile(
    "|".join(
        (
            r"(not enough|too many) values to unpack",
            r"unsupported operand|bad operand|not supported between",
            r"object (is not|does not support|cannot be|has no|of type)|objects? is not|has no (attribute|len)",
            r"truth value",
            r"(takes|missing|got) .*(positional|keyword)[- ](only )?argument|takes no arguments|takes .* arguments? \(",
            r"incompatible function arguments",
            r"argument must be|must be (str|real number|an integer|None or|int|a string|sequence),? not ",
            r"could not (be )?(convert|broadcast)|cannot (broadcast|reshape|unpack|convert)|shapes .* not aligned",
            r"invalid literal|is not callable|not iterable|unhashable|not subscriptable|not JSON serializable",
            r"(list|tuple|string|dictionary) (index|indices|changed|update)|index .* out of (bounds|range)",
            r"setting an array element|inhomogeneous|ufunc|dtype\(|(?<!give a )C-contiguous|dimension mismatch|matmul",
            r"maximum recursion|division by zero|math domain|codec can't|surrogates not allowed|zip\(\) argument",
            r"std::|bad_cast|nanobind|Traceback",
        )
    )
)
"""Texts of Python, numpy and the kernel's internals."""

SAID: Final = {
    "x": ("context", "row"),
    "X": ("context", "row", "table"),
    "z": ("feature", "action"),
    "actions": ("action", "table"),
    "arm": ("label",),
    "first": ("arm",),
    "second": ("arm",),
    "eligible": ("arm", "action", "label"),
    "labels": ("arm", "action"),
    "played": ("arm",),
    "features": ("dim", "context"),
    "table": ("action", "row"),
    "Z": ("action", "row"),
    "names": ("dim", "feature"),
    "add": ("action", "row"),
    "remove": ("arm", "label"),
    "weights": ("weight", "outcome"),
    "reward": ("outcome",),
    "old_reward": ("reward", "outcome"),
    "new_reward": ("reward", "outcome"),
}
"""What texts call an argument besides its name."""


def arguments_of(call: Callable[..., Any]) -> frozenset[str]:
    """Return the names of the arguments of a call, and its own.

    Examples
    --------
    >>> from armlet import Bandit
    >>> sorted(arguments_of(Bandit.retire_arm))
    ['arm', 'retire_arm']
    """
    try:
        names = inspect.signature(call).parameters.keys()
    except (TypeError, ValueError):  # compiled, without a signature
        names = dict.fromkeys(re.findall(r"(\w+)\s*:", (call.__doc__ or "").partition("\n")[0])).keys()
    return frozenset({*names, getattr(call, "__name__", "")} - {"self", ""})


def fault_of(error: BaseException, names: Iterable[str]) -> str | None:
    """Return what makes an error a fault; None if it is a refusal.

    Parameters
    ----------
    error
        Which a public call raised.
    names
        The arguments of the call, as of `arguments_of`, and nouns for the object that it is about, such as "loop".

    Examples
    --------
    >>> from armlet.errors import InvalidValueError
    >>> fault_of(ValueError("arm is None; give a label"), ["arm"])
    'ValueError is not an ArmletError'
    >>> fault_of(InvalidValueError("not enough values to unpack (expected 2, got 0)"), ["reward_range"])
    "'not enough values to unpack' is not a text of Armlet's"
    >>> fault_of(InvalidValueError("it is 0; give at least 1"), ["steps"])
    'the text names none of steps'
    >>> fault_of(InvalidValueError("steps is 0; give at least 1"), ["steps"])
    """
    if not isinstance(error, ArmletError):
        return f"{type(error).__name__} is not an ArmletError"
    if isinstance(error, InternalError):
        return "it is a fault of the store's own"
    text = str(error)
    if (found := FOREIGN.search(text)) is not None:
        return f"{found[0]!r} is not a text of Armlet's"
    listed = sorted(set(names))
    words = {*listed, *(also for name in listed for also in SAID.get(name, ()))}
    tokens = re.findall(r"[A-Za-z_]\w*", text)
    is_named = any(word.rstrip("s") in {each.rstrip("s") for each in words} for word in tokens)
    return None if is_named else f"the text names none of {', '.join(listed)}"
