"""What commands share: the decorator that declares one, words at the command line as values, and how a command ends.

A program lists its commands by name, help and module; the module is imported when its command is called, so that the
list stays fast. A command is a function of its arguments. It returns an `Answer`, or a function that does the work and
returns one: an error before that is a wrong call and ends with 2, an error afterwards is a failure and ends with 1.
Options that several commands have are declared here, once.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

from armlet.cli.answer import Answer
from armlet.errors import ArgumentError, ArmletError, choices, closest
from armlet.types import __version__

if TYPE_CHECKING:
    from armlet.parallel import Progress

THOUSANDS: Final = {"k": 10**3, "m": 10**6}  # what may follow a count
MOST: Final = 10**18  # of a count: steps have 64 bits

Argument: TypeAlias = Callable[[argparse._ActionsContainer], None]
"""Adds an argument to a parser, or a group of them."""

Work: TypeAlias = Callable[[], Answer | int | None]
Call: TypeAlias = Callable[[argparse.Namespace], "Answer | int | Work | None"]


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


def chance(text: str) -> str | float:
    """Read a probability, or the name of a column.

    Examples
    --------
    >>> chance("0.25"), round(chance("1/3"), 3), chance("prob")
    (0.25, 0.333, 'prob')
    """
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        return text


LOG: Final = arg("log", type=Path, metavar="LOG", help="a log, .jsonl or .parquet")
JSON: Final = arg("--json", action="store_true", help="print the result as JSON")
QUIET: Final = arg("--quiet", action="store_true", help="print the result only: no progress, no notes")
PROPENSITY: Final = arg(
    "--propensity",
    type=chance,
    metavar="NAME",
    help="the column of the probability of the arm, or that probability, as 1/3; default: propensity, pscore, ...",
)
REPEATED: Final = "may be repeated"
NAMED: Final = "NAME or NAME:KEY=VALUE,...; see armlet list"


def level(what: str = "how often intervals cover the true value") -> Argument:
    """Declare the level of intervals."""
    return arg("--level", type=float, default=0.95, metavar="SHARE", help=f"{what}; default: 0.95")


def seed(what: str, default: int | None = None, fallback: str = "drawn at random") -> Argument:
    """Declare the seed of what is drawn; `fallback` says what None stands for."""
    shown = fallback if default is None else default
    return arg("--seed", type=int, default=default, metavar="N", help=f"of {what}; default: {shown}")


def named_policy(*notes: str, **settings: object) -> Argument:
    """Declare a policy by name and settings, with what else is to be said of it."""
    return arg("--policy", metavar="POLICY", help="; ".join((NAMED, *notes)), **settings)


def named_environment(*notes: str, **settings: object) -> Argument:
    """Declare an environment by name and settings."""
    return arg("--environment", metavar="NAME", help="; ".join((NAMED, *notes)), **settings)


def out_folder(default: str) -> Argument:
    """Declare the folder of results."""
    return arg("--out", default=default, metavar="DIR", help=f"where to write; default: {default}")


def engine(default: str = "processes") -> tuple[Argument, Argument]:
    """Declare the two arguments that say where tasks run."""
    known = "processes, threads, serial, dask, or the address of a Dask scheduler"
    return (
        arg("--engine", default=default, help=f"where to compute: {known}; default: {default}"),
        arg("--workers", type=count, metavar="N", help="default: as many as there are processors"),
    )


def progress(arguments: argparse.Namespace, what: str) -> Progress:
    """Return what tells on stderr how far a command is; nothing with `--quiet`."""
    from armlet.parallel import reporter, silent

    return silent if arguments.quiet else reporter(what)


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or with `actions` a name with commands of its own."""

    description: str
    examples: str = ""  # after the arguments
    arguments: tuple[Argument, ...] = ()  # made by `arg`, `group` and `engine`
    _: KW_ONLY
    actions: Groups = field(default_factory=dict)
    call: Call = lambda _: None
    options: Mapping[str, str] = field(default_factory=dict)  # for arguments of the library that are called otherwise
    extras: tuple[str, ...] = ()  # modules that an optional dependency brings: if one is missing, the error says how
    refused: tuple[type[Exception], ...] = (ValueError, TypeError)  # by a wrong call, which ends with 2
    code: int = 1  # of all other errors of ours
    interrupted: str = ""  # what an interrupt leaves behind; arguments may be named in braces
    answers: tuple[Argument, ...] = (JSON, QUIET)  # nothing of a command that serves, and so has no result

    def complete(self, parser: Parser) -> None:
        """Give a parser the description and the arguments of the command."""
        parser.description, parser.epilog = self.description, self.examples
        for each in self.arguments:
            each(parser)
        if self.actions:
            add_commands(parser, self.actions, "ACTION")
            return
        for each in self.answers:
            each(parser)
        parser.set_defaults(command=self.run, parser=parser)

    def run(self, arguments: argparse.Namespace) -> None:
        """Call the function, and end as its errors ask for."""
        parser: argparse.ArgumentParser = arguments.parser
        try:
            try:
                done = self.call(arguments)
            except self.refused as error:
                parser.error(error.text(self._options(parser)) if isinstance(error, ArgumentError) else str(error))
            outcome = done() if callable(done) else done
            code = self._tell(outcome, arguments)
        except KeyboardInterrupt:
            if self.interrupted:
                print(f"\ninterrupted: {self.interrupted.format(**vars(arguments))}", file=sys.stderr)
            raise
        except BrokenPipeError:  # not a failure: the reader has ended
            raise
        except (ModuleNotFoundError, OSError, ArmletError) as error:
            if isinstance(error, ModuleNotFoundError) and error.name not in self.extras:
                raise  # a module that no extra provides: a defect of ours
            parser.exit(self.code, f"{parser.prog}: error: {_words(error)}\n")
        if code:
            parser.exit(code)

    def _tell(self, outcome: Answer | int | None, arguments: argparse.Namespace) -> int:
        if not isinstance(outcome, Answer):
            return outcome or 0
        outcome.write(sys.stdout, form="json" if arguments.json else "text")
        return outcome.code

    def _options(self, parser: argparse.ArgumentParser) -> dict[str, str]:
        """Map the library's arguments to what the command line calls them."""
        same = {each.dest: [str(each.metavar), *each.option_strings][-1] for each in parser._actions}
        return same | dict(self.options)


class Listed(NamedTuple):
    """A command in a list: its name, one line about it, and what it is, or the module and the name of that."""

    name: str
    help: str
    command: Command | str

    def load(self) -> Command:
        """Return the command; its module is imported now if it is not yet."""
        if isinstance(self.command, Command):
            return self.command
        module, _, name = self.command.partition(":")
        loaded: Command = vars(import_module(module))[name]
        return loaded


Groups: TypeAlias = Mapping[str, Sequence[Listed]]
"""Commands by what one works with, the most used first."""


def command(*arguments: Argument, **settings: Any) -> Callable[[Call], Command]:
    """Make a command of a function; its help is the docstring: what it does, then examples and exit codes."""

    def made(call: Call) -> Command:
        about, *examples = re.split(r"\n\n(?=examples:|exit codes:)", inspect.getdoc(call) or "", maxsplit=1)
        return Command(about, "".join(examples), arguments, call=call, **settings)

    return made


def _words(error: Exception) -> str:
    """Describe what the system says of a file, without its number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


class Help(argparse.HelpFormatter):
    """Fills paragraphs, and leaves examples and tables, which have indented lines, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            part if "\n  " in part else textwrap.fill(part, width, initial_indent=indent, subsequent_indent=indent)
            for part in text.rstrip().split("\n\n")
        )


class Parser(argparse.ArgumentParser):
    """Names the closest command or option, and ends a refusal with the way to the help."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.listed: Listed | None = None  # whose arguments are added when it is called

    def complete(self) -> None:
        """Add the arguments of the command."""
        if self.listed is not None:
            listed, self.listed = self.listed, None
            listed.load().complete(self)

    def format_help(self) -> str:
        """Show all arguments."""
        self.complete()
        return super().format_help()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse an unknown option before anything else is missed: it may be the misspelt one."""
        self.complete()
        words = sys.argv[1:] if args is None else list(args)
        known = self._option_string_actions
        for word in self._own(words):
            name = word.partition("=")[0]
            if name.startswith("--") and not any(each.startswith(name) for each in known):
                near = closest(name, known)
                self.error(f"there is no option {name}" + ("" if near is None else f"; did you mean {near}?"))
        return super().parse_known_args(words, namespace)

    def _own(self, words: Sequence[str]) -> Sequence[str]:
        """Return the words that are for this parser: those before a command, and before two dashes."""
        end = words.index("--") if "--" in words else len(words)
        if self._subparsers is None:
            return words[:end]
        return words[: next((at for at, word in enumerate(words[:end]) if not word.startswith("-")), end)]

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):  # the help, which every error names, shows all
            near = closest(str(value), action.choices)
            meant = "" if near is None else f"; did you mean {near!r}?"
            self.error(f"there is no {str(action.metavar).lower()} {value!r}{meant}")
        raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {choices(str(value), action.choices)}")

    def error(self, message: str) -> NoReturn:
        """End with 2 and one line."""
        end = " " if message.endswith("?") else "; "
        self.exit(2, f"{self.prog}: error: {message}{end}see {self.prog} --help\n")


class Version(argparse.Action):
    """Asks the kernel, which only this option imports."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print the versions and end."""
        from armlet import kernel

        print(f"armlet {__version__}, kernel {kernel.level()}")
        parser.exit()


def new_parser(
    prog: str, commands: Groups, *, description: str, examples: str, version: str
) -> argparse.ArgumentParser:
    """Make the parser of a program from its commands; `version` is the help of the option that prints it."""
    parser = Parser(prog=prog, description=description, epilog=examples, formatter_class=Help)
    parser.add_argument("--version", action=Version, nargs=0, help=version)
    add_commands(parser, commands, "COMMAND")
    return parser


def add_commands(parser: Parser, groups: Groups, metavar: str) -> None:
    """Add commands to a parser, whose help then has a section for each group in place of argparse's one for all."""
    below = parser.add_subparsers(metavar=metavar, required=True)
    own = [str(each.metavar) for each in parser._get_positional_actions() if each is not below]
    options = [f"[{each.option_strings[0]}]" for each in parser._get_optional_actions()]
    parser.usage = " ".join(["%(prog)s", *options, *own, metavar, "..."])
    for title, commands in groups.items():
        section = parser.add_argument_group(title)
        first = len(below._choices_actions)
        for each in commands:
            below.add_parser(each.name, help=each.help, formatter_class=Help).listed = each
        section._group_actions.extend(below._choices_actions[first:])
    below.help = argparse.SUPPRESS  # it is shown by its groups


def _public_word(word: str) -> str:
    """Return a word of a command as a page may repeat it: an address of a database without its password.

    Examples
    --------
    >>> _public_word("shop.db"), _public_word("--store=postgresql://u:p@h/db")
    ('shop.db', '--store=postgresql://u:***@h/db')
    """
    if (address := re.search(r"\w+://", word)) is None:
        return word
    from armlet.service.settings import without_password

    return word[: address.start()] + without_password(word[address.start() :])


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Parse a command line, run its command, and return the exit code."""
    words = sys.argv[1:] if argv is None else list(argv)
    arguments = parser.parse_args(words)
    arguments.line = shlex.join([parser.prog, *map(_public_word, words)])
    try:
        arguments.command(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the end
        return 141
    return 0
