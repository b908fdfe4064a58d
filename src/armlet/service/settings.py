"""Settings of a server from a TOML file and the environment, and back to TOML.

Every scalar of the file is also a variable: `body` of `[limits]` is ARMLET_LIMITS_BODY, `window` of `[loops.home]` is
ARMLET_LOOPS_HOME_WINDOW; the variable wins. Secrets may be in files of their own: `store_file`, ARMLET_STORE_FILE. What
is not a setting is refused, in the file as in the environment, so that no misspelt limit is believed to hold.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import datetime, timedelta
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from armlet.errors import ArmletError, InvalidValueError, choices
from armlet.inputs.budget import Budget
from armlet.inputs.settings import epoch_json
from armlet.service.config import (
    ControlConfig,
    KeyConfig,
    Limits,
    Listen,
    LogConfig,
    LoopConfig,
    PersonalizerConfig,
    ServerConfig,
)
from armlet.types import Arm

PREFIX: Final = "ARMLET_"
OTHERS: Final = ("ARMLET_CACHE", "ARMLET_BROWSER", "ARMLET_POLICIES", "ARMLET_POSTGRESQL", "ARMLET_URL", "ARMLET_KEY")
"""Variables of the library, its client and its tests, which are not the server's."""

# what Kubernetes tells every container of a service whose name begins with armlet, unless it is asked not to
_LINK: Final = re.compile(r"ARMLET\w*?_(SERVICE_HOST|SERVICE_PORT\w*|PORT_[0-9]+_(TCP|UDP|SCTP)\w*)")
_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://")

SECTIONS: Final[Mapping[str, type]] = {
    "listen": Listen,
    "limits": Limits,
    "log": LogConfig,
    "personalizer": PersonalizerConfig,
}
NAMED: Final[Mapping[str, type]] = {"loops": LoopConfig, "keys": KeyConfig}
PARTS: Final[Mapping[str, type]] = {"control": ControlConfig, "budget": Budget}
"""Tables within that of a loop."""
SECRETS: Final = ("store", "sha256", "seed")
SCALARS: Final = (str, int, float, bool, datetime)
BOOLEANS: Final = {"true": True, "false": False}

Path_: TypeAlias = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option:
    """A value from elsewhere than the file: what it is called there, and where it goes."""

    name: str
    path: Path_
    value: object


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the environment: where its value goes, and what that may be."""

    name: str
    path: Path_
    kinds: tuple[type, ...]
    is_file: bool = False

    def parse(self, text: str) -> object:
        """Read its value, the first kind of value that it can be."""
        if self.is_file:
            return read_secret(self.name, text)
        for kind in sorted(self.kinds, key=(bool, int, float, datetime, str).index):
            try:
                return BOOLEANS[text.lower()] if kind is bool else _from_text(kind, text)
            except (ValueError, KeyError):
                continue
        words = {bool: "true or false", int: "a whole number", float: "a number", datetime: "a date with a time"}
        raise InvalidValueError(f"{self.name} is {text!r}; give {' or '.join(words[kind] for kind in self.kinds)}")


def _from_text(kind: type[Any], text: str) -> object:
    return datetime.fromisoformat(text) if kind is datetime else kind(text)


def read_secret(name: str, path: object) -> str:
    """Read a secret that has a file of its own, without the end of its line."""
    try:
        return Path(cast("str", path)).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError, TypeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidValueError(f"{name} is {path!r}, which cannot be read: {why}; give the path of a file") from None


# ---- which variables there are


def _kinds(hint: object) -> tuple[type, ...]:
    """Return the scalars that a type allows; none if it allows only others."""
    if hint in SCALARS:
        return (cast("type[Any]", hint),)
    origin = get_origin(hint)
    if origin is Literal:
        return (str,)
    if origin in (Union, UnionType):
        return tuple(kind for part in get_args(hint) for kind in _kinds(part))
    return ()


def _hints(kind: type) -> dict[str, object]:
    from armlet import types
    from armlet.inputs import encoder

    names = {**vars(types), **vars(encoder), "Arm": Arm}
    return get_type_hints(kind, localns=names)


def scalars(kind: type[Any]) -> Iterator[tuple[str, tuple[type[Any], ...]]]:
    """Return the scalars of a section, and what they may be."""
    hints = _hints(kind)
    for each in fields(kind):
        if (kinds := _kinds(hints[each.name])) and each.name != "name":
            yield each.name, kinds


def variables(table: Mapping[str, object]) -> dict[str, Variable]:
    """Return all variables that there are, for the loops and keys of a file.

    Examples
    --------
    >>> found = variables({"loops": {"home": {}}})
    >>> found["ARMLET_LIMITS_BODY"].path, found["ARMLET_LOOPS_HOME_WINDOW"].path, "ARMLET_LOOPS_SHOP_WINDOW" in found
    (('limits', 'body'), ('loops', 'home', 'window'), False)
    """
    by_name: dict[str, Variable] = {}
    for path, kinds in _settings(table):
        name = variable_name(path)
        if name in by_name:
            raise InvalidValueError(f"{path[1]!r} and {by_name[name].path[1]!r} have the variable {name}; rename one")
        by_name[name] = Variable(name, path, kinds)
        if path[-1] in SECRETS:
            by_name[f"{name}_FILE"] = Variable(f"{name}_FILE", path, kinds, is_file=True)
    return by_name


def is_link(name: str, value: str) -> bool:
    """Whether a variable is Kubernetes' own, for a service of this name.

    Examples
    --------
    >>> is_link("ARMLET_SERVICE_HOST", "10.0.0.1"), is_link("ARMLET_PORT", "tcp://10.0.0.1:8080")
    (True, True)
    >>> is_link("ARMLET_PORT", "8080")
    False
    """
    return bool(_LINK.fullmatch(name)) or (name.endswith("_PORT") and bool(_ADDRESS.match(value)))


def variable_name(path: Path_) -> str:
    """Return the variable of a setting."""
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", "_".join(path).upper())


def _settings(table: Mapping[str, Any]) -> Iterator[tuple[Path_, tuple[type[Any], ...]]]:
    yield ("store",), (str,)
    for section, kind in SECTIONS.items():
        for name, kinds in scalars(kind):
            yield (section, name), kinds
    for section, kind in NAMED.items():
        for each in table[section] if isinstance(table.get(section), Mapping) else ():
            for name, kinds in scalars(kind):
                yield (section, each, name), kinds
            if kind is LoopConfig:
                for part, inner in PARTS.items():
                    for name, kinds in scalars(inner):
                        yield (section, each, part, name), kinds


# ---- reading


def load(
    path: Path | None, environ: Mapping[str, str], *, options: Iterable[Option] = (), **given: object
) -> ServerConfig:
    """Read the settings of a server.

    Parameters
    ----------
    path
        A TOML file; None for none.
    environ
        Variables, which win over the file.
    options
        Options of a command, which win over both.
    given
        What the file would have, if there is none.

    Examples
    --------
    >>> config = load(None, {"ARMLET_LIMITS_BODY": "1024"}, store="shop.db")
    >>> config.limits.body, config.listen.port
    (1024, 8080)
    >>> load(None, {"ARMLET_LIMITS_BODDY": "1024"}, store="shop.db")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: ARMLET_LIMITS_BODDY is not a setting; did you mean 'ARMLET_LIMITS_BODY'?
    """
    reader = Reader("" if path is None else str(path))
    table = dict(given) if path is None else _parse(path)
    reader.override(table, environ)
    for option in options:
        reader.put(table, option)
    return reader.config(table)


def _parse(path: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        raise InvalidValueError(f"{path} is not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise InvalidValueError(f"{path} is not valid TOML: it is not UTF-8") from None


class Reader:
    """Makes settings of tables, and says in errors where each came from."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._variables: dict[Path_, str] = {}  # what came from the environment or the command

    def override(self, table: dict[str, object], environ: Mapping[str, str]) -> None:
        """Put the environment's values into a table."""
        known = variables(table)
        for name in sorted(environ):
            if not name.startswith(PREFIX) or name in OTHERS or is_link(name, environ[name]):
                continue
            if name not in known:
                raise InvalidValueError(f"{name} is not a setting; {choices(name, known)}")
            variable = known[name]
            if variable.path in self._variables:
                raise InvalidValueError(f"{name} and {self._variables[variable.path]} are set; give one of them")
            self.put(table, Option(name, variable.path, variable.parse(environ[name])))

    def put(self, table: dict[str, Any], option: Option) -> None:
        """Put one value into a table, instead of what is there."""
        *sections, last = option.path
        for i, name in enumerate(sections):
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise self._error(option.path[:i], f"{name} is {table!r}; give a table")
        table[last] = option.value
        table.pop(f"{last}_file", None)
        self._variables[option.path] = option.name

    def _error(self, path: Path_, text: str) -> InvalidValueError:
        setting = text.partition(" ")[0]
        source = self._variables.get((*path, *setting.split(".")), self._source)
        where = f"[{'.'.join(path)}] " if path and source else ""
        return InvalidValueError(f"{source}: {where}{text}" if source else text)

    def config(self, table: Mapping[str, object]) -> ServerConfig:
        """Make everything of a table, or refuse it."""
        parts: dict[str, object] = {}
        for name, kind in SECTIONS.items():
            parts[name] = self.part(kind, table.get(name, {}), (name,))
        parts["loops"] = tuple(self.loop(name, part) for name, part in self._tables(table, "loops"))
        parts["keys"] = tuple(
            self.part(KeyConfig, part, ("keys", name), name=name) for name, part in self._tables(table, "keys")
        )
        rest = {name: value for name, value in table.items() if name not in parts}
        return self.part(ServerConfig, rest, (), **parts)

    def loop(self, name: str, table: object) -> LoopConfig:
        """Make the settings of a loop."""
        path, parts = ("loops", name), dict[str, object]()
        if isinstance(table, Mapping):
            parts = {each: self.part(kind, table[each], (*path, each)) for each, kind in PARTS.items() if each in table}
            table = {key: value for key, value in table.items() if key not in parts}
        return self.part(LoopConfig, table, path, name=name, **parts)

    def _tables(self, table: Mapping[str, object], section: str) -> Iterator[tuple[str, object]]:
        tables = table.get(section, {})
        if not isinstance(tables, Mapping):
            raise self._error((), f"{section} is {tables!r}; give a table for each, such as [{section}.home]")
        yield from tables.items()

    def part(self, kind: type[T], table: object, path: Path_, **parts_made: object) -> T:
        """Make one part of its table, or refuse what is unknown, missing or wrong."""
        if not isinstance(table, Mapping):
            raise self._error(path[:-1], f"{path[-1]} is {table!r}; give a table")
        parts = {each.name: each for each in fields(cast("Any", kind))}
        known = [name for name in parts if name != "name"]  # which is that of the table
        values = self._with_secrets(table, known, path)
        for name in values:
            if name not in known:
                raise self._error(path, f"{name} is not a setting; {choices(name, known)}")
        for name, each in parts.items():
            if name not in values and name not in parts_made and _is_needed(each):
                raise self._error(path, f"{name} is missing; give it")
        try:
            return kind(**{**parts_made, **values})
        except ArmletError as error:
            raise self._error(path, str(error)) from None

    def _with_secrets(self, table: Mapping[str, Any], known: list[str], path: Path_) -> dict[str, Any]:
        values = dict(table)
        for name in SECRETS:
            if name in known and (place := values.pop(f"{name}_file", None)) is not None:
                if name in values:
                    raise self._error(path, f"{name} and {name}_file are given; give one of them")
                values[name] = read_secret(f"{self._source}: {name}_file", place)
            if name == "seed" and name in known and isinstance(values.get(name), str):
                values[name] = self._whole(values[name], path)
        return values

    def _whole(self, text: str, path: Path_) -> int:
        try:
            return int(text)
        except ValueError:
            raise self._error(path, "seed is not a whole number; give one from 0 to 2^128 - 1") from None


def _is_needed(each: Field[object]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


# ---- writing


def to_toml(config: ServerConfig) -> str:
    """Write settings as a file would have them, with the variable of each scalar, and without secrets.

    Examples
    --------
    >>> from armlet.service.config import ServerConfig
    >>> print(to_toml(ServerConfig(store="postgresql://armlet:secret@db/armlet")).partition("[limits]")[0].strip())
    store = "postgresql://armlet:***@db/armlet"  # ARMLET_STORE
    <BLANKLINE>
    [listen]
    host = "127.0.0.1"  # ARMLET_LISTEN_HOST
    port = 8080  # ARMLET_LISTEN_PORT
    # socket  # ARMLET_LISTEN_SOCKET
    """
    parts = _values(config)
    lines = [f"store = {_value(without_password(config.store))}  # {variable_name(('store',))}"]
    for name in SECTIONS:
        lines += ["", f"[{name}]", *_section(parts[name], (name,))]
    for name in NAMED:
        for each in parts[name]:
            lines += ["", f"[{name}.{_key(each.name)}]", *_section(each, (name, each.name))]
    return "\n".join(lines) + "\n"


def _section(part: Any, path: Path_) -> Iterator[str]:
    known = dict(scalars(type(part)))
    for name, value in _values(part).items():
        variable = f"  # {variable_name((*path, name))}" if name in known else ""
        if name == "name":
            continue
        if value is None or value in ((), {}):
            yield f"# {name}{variable}"
        elif name in SECRETS:
            yield f"# {name} is set, and not shown{variable}"
        else:
            yield f"{name} = {_value(value)}{variable}"


def _values(part: Any) -> dict[str, Any]:
    return {each.name: getattr(part, each.name) for each in fields(part)}


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        value = epoch_json(value)
    if isinstance(value, (ControlConfig, Budget)):
        value = {name: each for name, each in _values(value).items() if each is not None}
    if isinstance(value, Mapping) and not all(isinstance(name, str) for name in value):
        value = list(value.items())  # an arm that is a number
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _text(value) if isinstance(value, str) else repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def without_password(store: str) -> str:
    """Return the address of a database with stars for its password.

    Examples
    --------
    >>> without_password("postgresql://u:p@h/db?password=p"), without_password("shop.db")
    ('postgresql://u:***@h/db?password=***', 'shop.db')
    >>> without_password("postgresql:///db?host=%2Ftmp"), without_password("postgresql://u:p:p@@h,i/db")
    ('postgresql:///db?host=%2Ftmp', 'postgresql://u:***@h,i/db')
    """
    if "://" not in store:
        return store
    hidden = re.sub(r"^(\w+://[^/?#:@]*):[^/?#]*@", r"\1:***@", store)
    return re.sub(r"(?i)([?&]\w*password)=[^&]*", r"\1=***", hidden)
