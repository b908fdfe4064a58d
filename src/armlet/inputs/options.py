"""Options that are declared once: what each is called, its type, its check, its text and what it is for.

A declaration is a class with annotations that carry an `Option`. Signatures, docstrings, bodies of HTTP requests,
OpenAPI and the tables of the docs are made from it.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import reprlib
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from inspect import Parameter
from types import GenericAlias, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    NoReturn,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from armlet.errors import InvalidTypeError, choices, refusing
from armlet.inputs.settings import Check
from armlet.types import KEEP, Keep

Over: TypeAlias = Literal["arms", "actions", "both"]
P = ParamSpec("P")
D = TypeVar("D")
R = TypeVar("R")
S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., object])
WIDTH = 112  # of a docstring


@dataclass(frozen=True, slots=True)
class Option:
    """What is declared of an option besides its name and type.

    Parameters
    ----------
    text
        What it means. Its first sentence stands in tables and in OpenAPI.
    check
        Takes its name and value, and returns the value, or refuses it.
    over
        Whether it is for decisions among arms, among actions with features, or both.
    plural
        Its name in a batch, where each decision has its own; None if all decisions of a batch share it.
    complete
        Whether each decision of a batch has one if any has; else None leaves it out.
    default
        Its value if it is left out.
    forms
        The names and types by which files, requests and commands say it, if they have no values of its type; none if
        it cannot be said there.
    """

    text: str
    check: Check
    over: Over = "both"
    plural: str | None = None
    complete: bool = False
    default: object = None
    forms: Mapping[str, Any] | None = None

    @property
    def summary(self) -> str:
        """What it means, in a sentence."""
        return summary(self.text)


def summary(text: str) -> str:
    """Return the first sentence of a text.

    Examples
    --------
    >>> summary("See `Bandit.decide`. It is short.")
    'See `Bandit.decide`.'
    """
    return re.split(r"(?<=[.])\s", text, maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class Declared:
    """An option with its type, without the None that leaves it out."""

    type: Any
    option: Option

    @property
    def many(self) -> Declared:
        """The option as one of a batch, with a value or None for each decision."""
        return Declared(GenericAlias(Iterable, (self.type | None,)), self.option)


_DECLARED: dict[type, dict[str, Declared]] = {}


def declared(declaration: type) -> Mapping[str, Declared]:
    """Return the options of a declaration by name."""
    if declaration in _DECLARED:
        return _DECLARED[declaration]
    found = _DECLARED[declaration] = {}
    for name, hint in get_type_hints(declaration, include_extras=True).items():
        if get_origin(hint) is Annotated:
            kind, option = get_args(hint)
            found[name] = Declared(_without_none(kind), option)
    return found


class Form(NamedTuple):
    """How an option is said in files, requests and commands."""

    type: Any
    option: Option
    is_removable: bool  # None says that there is none


def forms_of(declaration: type, but: Iterable[str] = ()) -> dict[str, Form]:
    """Return how the options of a dataclass are said, by the names that they have there."""
    defaults = {each.name: each.default for each in fields(declaration)}
    return {
        form: Form(kind, each.option, defaults[name] is KEEP)
        for name, each in declared(declaration).items()
        if name not in but
        for form, kind in ({name: each.type} if each.option.forms is None else each.option.forms).items()
    }


def with_options(options: Mapping[str, Declared], **others: str) -> Callable[[F], F]:
    """Give a function that takes `**ask` the signature and the docstring that say which options there are.

    `{options}` in its docstring is replaced by their texts; those of other parameters are given by name.
    """

    def write(function: F) -> F:
        form = inspect.signature(function)
        own = [each for each in form.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        made = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=each.option.default,
                annotation=_annotation(each, each.option.default),
            )
            for name, each in options.items()
        ]
        texts = {**others, **{name: each.option.text for name, each in options.items()}}
        vars(function)["__signature__"] = form.replace(parameters=[*own, *made])
        function.__doc__ = _filled(function, texts)
        return function

    return write


def taking(declaration: Callable[P, D], call: str) -> Callable[[Callable[[S, D], R]], Callable[Concatenate[S, P], R]]:
    """Let a method that takes a declaration take its options instead, with a signature and a docstring that say so.

    `{options}` in its docstring is replaced by the texts of all of them.
    """

    def decorate(method: Callable[[S, D], R]) -> Callable[Concatenate[S, P], R]:
        form, options = inspect.signature(declaration), declared(declaration)  # type: ignore[arg-type]
        shown = [
            each.replace(annotation=_annotation(options[name], each.default)) for name, each in form.parameters.items()
        ]

        @functools.wraps(method)
        def called(this: S, /, *args: P.args, **given: P.kwargs) -> R:
            for name, value in given.items():
                if name not in options:
                    refuse_unknown(call, name, value, options)
            with refusing():
                try:
                    form.bind(*args, **given)
                except TypeError as error:
                    raise InvalidTypeError(f"{call}(): {error}; call {call}({', '.join(options)})") from None
                made = declaration(*args, **given)
            return method(this, made)

        first = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
        returned = inspect.signature(method).return_annotation
        vars(called)["__signature__"] = inspect.Signature([first, *shown], return_annotation=returned)
        called.__doc__ = _filled(method, {name: each.option.text for name, each in options.items()})
        return called

    return decorate


def _without_none(kind: Any) -> Any:
    if get_origin(kind) not in (Union, UnionType):
        return kind
    return functools.reduce(operator.or_, (part for part in get_args(kind) if part not in (NoneType, Keep)))


def _filled(function: Callable[..., object], texts: Mapping[str, str]) -> str:
    """Return the docstring of a function with the texts of its options."""
    entries = (f"{name}\n{textwrap.fill(text, WIDTH, **_INDENTED)}" for name, text in texts.items())
    return inspect.cleandoc(function.__doc__ or "").replace("{options}", "\n".join(entries))


_INDENTED: Mapping[str, Any] = {"initial_indent": "    ", "subsequent_indent": "    "}


def _annotation(each: Declared, default: object) -> str:
    """Return a type as its module writes it; whatever may be left out may be None."""
    text = re.sub(r"\b[a-z_]+(?:\.[a-z_]+)*\.(?=[A-Z])", "", inspect.formatannotation(each.type))
    return f"{text} | None" if default is None or default is KEEP else text


def refuse_unknown(call: str, name: str, value: object, known: Iterable[str]) -> NoReturn:
    """Refuse an option that there is not, and suggest the closest."""
    raise InvalidTypeError(
        f"{call}() got an unexpected keyword {name!r}, which is {reprlib.repr(value)}; {choices(name, known)}"
    )
