"""Options of loops at the command line: made from their declaration, when a command that has them is called."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, get_args, get_origin

from armlet.cli.command import REPEATED, Argument, arg, names
from armlet.cli.outcomes import Merge, amount, amounts, budget, ends, epoch, known
from armlet.errors import ArgumentError
from armlet.inputs.budget import Budget
from armlet.inputs.named import parse_named
from armlet.inputs.options import Form, forms_of
from armlet.inputs.ranges import GivenRanges
from armlet.inputs.settings import Epoch, Range
from armlet.stores.rewards import Value
from armlet.stores.spec import Prices, Ranges
from armlet.types import Arm

OTHERS: Final = ("policy", "policy_settings", "control", "shadow", "shadows", "how")  # which have words of their own


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid number: {text!r}; write a number") from None


_READ: Final[Mapping[Any, dict[str, Any]]] = {
    Iterable[Arm]: {"type": names, "metavar": "NAMES"},
    Iterable[str]: {"type": names, "metavar": "NAMES"},
    Mapping[str, Iterable[str]]: {"action": "append", "metavar": "X=A,B"},
    Mapping[str, float]: {"type": amounts, "action": Merge, "metavar": "NAME=X,..."},
    Prices: {"type": known, "action": Merge, "metavar": "NAME:ARM=X,..."},
    Value: {"type": amount, "metavar": "X"},
    Range | Ranges: {"type": ends, "metavar": "LOW..HIGH"},
    GivenRanges: {"type": ends, "metavar": "NAME=LOW..HIGH,..."},
    Budget: {"type": budget, "metavar": "NAME:total=X,horizon=N"},
    Epoch: {"type": epoch, "metavar": "N"},
    int: {"type": int, "metavar": "N"},
    float: {"type": _number, "metavar": "X"},
    str: {"metavar": "WORD"},
    bool: {"action": "store_true"},
}
"""How a value of a type is read."""


def loop_arguments(declaration: type, but: Iterable[str] = ()) -> Iterator[Argument]:
    """Make the arguments of a declaration; what is not said is not in the namespace."""
    for name, form in forms_of(declaration, but).items():
        if name not in OTHERS:
            yield arg(f"--{name.replace('_', '-')}", help=_help(form), default=argparse.SUPPRESS, **_reading(form))


def _reading(form: Form) -> dict[str, Any]:
    if get_origin(form.type) is Literal:
        return {"choices": get_args(form.type)}
    reading = _READ[form.type]
    return {**reading, "type": _or_none(reading["type"])} if form.is_removable else reading


def _or_none(read: Callable[[str], object]) -> Callable[[str], object]:
    """Read a value, or none.

    Examples
    --------
    >>> _or_none(_number)("86400"), _or_none(_number)("none")
    (86400.0, None)
    """
    return lambda text: None if text == "none" else read(text)


def _help(form: Form) -> str:
    text = form.option.summary.replace("%", "%%").replace("`", "").removesuffix(".")
    note = f"; {REPEATED}" if _reading(form).get("action") in (Merge, "append") else ""
    return f"{text[0].lower()}{text[1:]}{note}"


def said(a: argparse.Namespace, declaration: type) -> dict[str, Any]:
    """Return what a command line says of a loop, as a file or a request would."""
    options = {name: value for name, value in vars(a).items() if name in forms_of(declaration) and name not in OTHERS}
    for name in ("categories", "action_categories"):
        if name in options:
            options[name] = dict(_category(name, text) for text in options[name])
    if a.policy is not None:
        options["policy"], options["policy_settings"] = parse_named(a.policy)
    if a.control is not None:
        options["control"] = (
            None if a.control == "none" else {"arm": a.control, **({"share": a.share} if a.share else {})}
        )
    if a.share is not None and not options.get("control"):
        raise ArgumentError("{share} is given, but {control} is not; give the arm to compare with")
    return options


def _category(option: str, text: str) -> tuple[str, tuple[str, ...]]:
    column, equals, values = text.partition("=")
    if not equals:
        message = "{" + option + "} is {given!r}; give a column and its values, such as country=de,fr"
        raise ArgumentError(message, given=text)
    return column.strip(), names(values)
