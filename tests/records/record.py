"""A record: named texts of a part, written so that a diff shows what moved, and compared with what was made again."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

DATA: Final = Path(__file__).parent / "data"
SHOWN: Final = 120  # lines of a difference
WIDEST: Final = 400  # characters of one

Texts: TypeAlias = Mapping[str, str]
"""By name of a file."""


class Part(NamedTuple):
    """What is recorded together."""

    name: str
    make: Callable[[], Texts]
    leave: Callable[[], Mapping[str, bytes]] | None = None  # files that later versions must read, written once


def facts(value: Any) -> str:
    """Return JSON with one fact a line: mappings are unfolded and sorted by name, lists of plain values are not."""
    return "\n".join(_lines(json.loads(json.dumps(value)), "")) + "\n"


def _lines(value: Any, indent: str) -> Iterator[str]:
    inner = indent + " "
    if isinstance(value, dict) and value:
        yield "{"
        for place, name in enumerate(sorted(value)):
            first, *rest = _lines(value[name], inner)
            body = [f"{inner}{json.dumps(name, ensure_ascii=False)}: {first}", *rest]
            body[-1] += "," if place < len(value) - 1 else ""
            yield from body
        yield indent + "}"
    elif isinstance(value, list) and any(isinstance(each, dict) and len(each) > 1 for each in value):
        yield "["
        for place, each in enumerate(value):
            first, *rest = _lines(each, inner)
            body = [inner + first, *rest]
            body[-1] += "," if place < len(value) - 1 else ""
            yield from body
        yield indent + "]"
    else:
        yield json.dumps(value, ensure_ascii=False, sort_keys=True)


_LABORATORY: Final = re.compile("; policies of the literature are in the package armlet-lab: pip install armlet-lab")
_ALL: Final = re.compile(r"shows all \d+")


def portable(text: str) -> str:
    """Return a text without what depends on whether the laboratory is installed."""
    return _ALL.sub("shows all", _LABORATORY.sub("", text))


def short(content: bytes | str) -> str:
    """Return 64 bits of SHA-256."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()[:16]


# ---- on disk


def left(name: str) -> bytes:
    """Return a file that an earlier Armlet wrote."""
    return (DATA / name).read_bytes()


def leave(part: Part) -> list[str]:
    """Write the files of a part that are not there; return their names."""
    names: list[str] = []
    for name, content in (part.leave() if part.leave else {}).items():
        path = DATA / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            names.append(name)
    return names


def read(name: str) -> str | None:
    """Return a text on record; None if there is none. A large one is compressed."""
    path = DATA / name
    if path.exists():
        return path.read_text(encoding="utf-8")
    packed = DATA / f"{name}.gz"
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else None


def write(texts: Texts, *, pack_above: int = 120_000) -> None:
    """Put texts on record; a large one is compressed, always to the same bytes."""
    DATA.mkdir(exist_ok=True)
    for name, text in texts.items():
        path, packed = DATA / name, DATA / f"{name}.gz"
        path.unlink(missing_ok=True)
        packed.unlink(missing_ok=True)
        content = text.encode()
        if len(content) > pack_above:
            packed.write_bytes(gzip.compress(content, 9, mtime=0))
        else:
            path.write_bytes(content)


def changes(texts: Texts) -> list[str]:
    """Return the lines in which texts differ from those on record."""
    lines: list[str] = []
    for name, text in texts.items():
        before = read(name) or ""
        if before != text:
            found = difflib.unified_diff(_split(before), _split(text), f"{name} on record", f"{name} now", n=1)
            lines += [line.rstrip("\n")[:WIDEST] for line in found]
    return lines


def differences(part: Part) -> list[str]:
    """Make a part again; return the lines that differ from the record, and the command that writes it again."""
    lines = changes(part.make())
    if not lines:
        return []
    rest = [f"... and {len(lines) - SHOWN:,} more lines"] if len(lines) > SHOWN else []
    again = f"if that is meant: PYTHONPATH=tests .venv/bin/python -m records write {part.name}"
    return [*lines[:SHOWN], *rest, again]


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)
