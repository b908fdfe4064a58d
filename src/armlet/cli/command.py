"""What commands share: the decorator that declares one, words at the command line as values, and how a command ends.

A command is a function of its arguments that imports what it needs when it is called, so that `--help` stays fast. It
returns an exit code, or nothing, or a function that does the work: an error before that is a wrong call and ends with
2, an error afterwards is a failure and ends with 1.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from armlet.errors import ArgumentError, ArmletError, choices
from armlet.types import __version__

THOUSANDS: Final = {"k": 10**3, "m": 10**6}  # what may follow a count
MOST: Final = 10**18  # of a count: steps have 64 bits

Argument: TypeAlias = Callable[[argparse._ActionsContainer], None]
"""Adds an argument to a parser, or a group of them."""

Work: TypeAlias = Callable[[], int | None]
Call: TypeAlias = Callable[[argparse.Namespace], "int | Work | None"]


def arg(*names: str, **settings: Any) -> Argument:
    """Declare an argument as `ArgumentParser.add_argument` takes it."""

    def add(parser: argparse._ActionsContainer) -> None:
        parser.add_argument(*names, **settings)

    return add


def group(title: str, *arguments: Argument) -> Argument:
    """Declare arguments below a title of their own."""

    def add(parser: argparse._ActionsContainer) -> None:
        below = parser.add_argument_group(title)
        for each in arguments:
            each(below)

    return add


def count(text: str) -> int:
    """Read a whole number, also as 1e5, 50k or 2M.

    Examples
    --------
    >>> count("100000"), count("1e5"), count("10_000"), count("50k"), count("2.5M")
    (100000, 100000, 10000, 50000, 2500000)
    """
    unit = THOUSANDS.get(text.strip()[-1:].lower(), 1)
    try:
        value = unit * Decimal(text.strip()[:-1] if unit > 1 else text)
        if value.is_finite() and abs(value) < MOST and value == int(value):
            return int(value)
    except ArithmeticError:  # not a number, or one beyond all bounds
        pass
    raise argparse.ArgumentTypeError(f"invalid count: {text!r}; write a whole number, such as 50000, 50k or 5e4")


def between(text: str) -> float | tuple[float, float]:
    """Read a number, or the lowest and the highest with two dots between them.

    Examples
    --------
    >>> between("5"), between("0.02..0.05")
    (5, (0.02, 0.05))
    """
    low, dots, high = text.partition("..")
    try:
        return (_number(low), _number(high)) if dots else _number(low)
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid range: {text!r}; write a number, or two as in 0.02..0.05") from None


def _number(text: str) -> float:
    return int(text) if text.strip().isdecimal() else float(text)


def names(text: str) -> tuple[str, ...]:
    """Read names with commas between them.

    Examples
    --------
    >>> names("age, country")
    ('age', 'country')
    """
    return tuple(name.strip() for name in text.split(","))


LOG: Final = arg("log", type=Path, metavar="LOG", help="a log, .jsonl or .parquet")
JSON: Final = arg("--json", action="store_true", help="print JSON and nothing else")


def engine(default: str = "processes") -> tuple[Argument, Argument]:
    """Declare the two arguments that say where tasks run."""
    known = "processes, threads, serial, dask, or the address of a Dask scheduler"
    return (
        arg("--engine", default=default, help=f"where to compute: {known}; default: {default}"),
        arg("--workers", type=count, metavar="N", help="default: as many as there are processors"),
    )


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or with `actions` a name with commands of its own."""

    name: str
    help: str  # one line for the list of commands
    description: str
    examples: str = ""  # after the arguments
    arguments: tuple[Argument, ...] = ()  # made by `arg`, `group` and `engine`
    _: KW_ONLY
    actions: tuple[Command, ...] = ()
    call: Call = lambda _: None
    options: Mapping[str, str] = field(default_factory=dict)  # for arguments of the library that are called otherwise
    extras: tuple[str, ...] = ()  # modules that an optional dependency brings: if one is missing, the error says how
    refused: tuple[type[Exception], ...] = (ValueError, TypeError)  # by a wrong call, which ends with 2
    code: int = 1  # of all other errors of ours
    interrupted: str = ""  # what an interrupt leaves behind; arguments may be named in braces

    def add(self, commands: argparse._SubParsersAction[Any]) -> None:
        """Add the command to those of a parser."""
        shape = argparse.RawDescriptionHelpFormatter if self.examples else argparse.HelpFormatter
        parser = commands.add_parser(
            self.name, help=self.help, description=self.description, epilog=self.examples, formatter_class=shape
        )
        for each in self.arguments:
            each(parser)
        if self.actions:
            below = parser.add_subparsers(title="actions", metavar="action", required=True)
            for action in self.actions:
                action.add(below)
        else:
            parser.set_defaults(command=self.run, parser=parser)

    def run(self, arguments: argparse.Namespace) -> None:
        """Call the function, and end as its errors ask for."""
        parser: argparse.ArgumentParser = arguments.parser
        try:
            try:
                done = self.call(arguments)
            except self.refused as error:
                parser.error(error.told(self._options(parser)) if isinstance(error, ArgumentError) else str(error))
            code = done() if callable(done) else done
        except KeyboardInterrupt:
            if self.interrupted:
                print(f"\ninterrupted: {self.interrupted.format(**vars(arguments))}", file=sys.stderr)
            raise
        except BrokenPipeError:  # not a failure: nobody reads on
            raise
        except (ModuleNotFoundError, OSError, ArmletError) as error:
            if isinstance(error, ModuleNotFoundError) and error.name not in self.extras:
                raise  # a module that no extra provides: a defect of ours
            parser.exit(self.code, f"{parser.prog}: error: {_words(error)}\n")
        if code:
            parser.exit(code)

    def _options(self, parser: argparse.ArgumentParser) -> dict[str, str]:
        """Map the library's arguments to what the command line calls them."""
        same = {each.dest: [str(each.metavar), *each.option_strings][-1] for each in parser._actions}
        return same | dict(self.options)


def command(name: str, help: str, *arguments: Argument, **settings: Any) -> Callable[[Call], Command]:  # noqa: A002
    """Make a command of a function; its help is the docstring: what it does, then examples and exit codes."""

    def made(call: Call) -> Command:
        about, *examples = re.split(r"\n\n(?=examples:|exit codes:)", inspect.getdoc(call) or "", maxsplit=1)
        return Command(name, help, about, "".join(examples), arguments, call=call, **settings)

    return made


def _words(error: Exception) -> str:
    """Describe what the system says of a file, without its number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


class Parser(argparse.ArgumentParser):
    """Names the closest choice, and ends a refusal with the way to the help."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {choices(str(value), action.choices)}")

    def error(self, message: str) -> NoReturn:
        """End with 2 and one line."""
        self.exit(2, f"{self.prog}: error: {message}; see {self.prog} --help\n")


class Version(argparse.Action):
    """Asks the kernel, which only this option imports."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print the versions and end."""
        from armlet import kernel

        print(f"armlet {__version__}, kernel {kernel.level()}")
        parser.exit()


def new_parser(
    prog: str, commands: Iterable[Command], *, description: str, examples: str, version: str
) -> argparse.ArgumentParser:
    """Make the parser of a program from its commands; `version` is the help of the option that prints it."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=prog, description=description, epilog=examples, formatter_class=raw)
    parser.add_argument("--version", action=Version, nargs=0, help=version)
    below = parser.add_subparsers(title="commands", metavar="command", required=True)
    for each in commands:
        each.add(below)
    return parser


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Parse a command line, run its command, and return the exit code."""
    arguments = parser.parse_args(sys.argv[1:] if argv is None else list(argv))
    try:
        arguments.command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the end
        return 141
    return 0
