"""Write the tables of kinds and fields into the docs, from `armlet.record.kinds`: an event kind is one entry there.

python tools/kinds.py --write  the tables of docs/reference/log-format.md and store-format.md
python tools/kinds.py --check  ends with 1 if a page has other tables (`make lint`)
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from armlet.record.kinds import DECISION, KINDS, Fields

PAGES: Final = Path(__file__).parent.parent / "docs" / "reference"


def fields_text(fields: Fields, decision: str = "#decisions") -> str:
    """Return fields by their names, each with its text; those of a decision have a table of their own.

    Examples
    --------
    >>> fields_text(KINDS["advance"].fields)
    '`t`'
    """
    others = {name: field for name, field in fields.items() if name not in DECISION or "greedy" not in fields}
    texts = [f"`{name}`, {field.text}" if field.text else f"`{name}`" for name, field in others.items()]
    between = "; " if any(field.text for field in others.values()) else ", "
    return between.join([*([f"those of [a decision]({decision})"] if others.keys() != fields.keys() else []), *texts])


def log_kinds() -> Iterator[str]:
    """Yield the table of the kinds of a log."""
    yield from ("| kind | fields | replay |", "|---|---|---|")
    for name, kind in KINDS.items():
        if kind.fields is not None:
            yield f"| `{name}` | {fields_text(kind.fields)} | {kind.text} |"


def row_kinds() -> Iterator[str]:
    """Yield the table of the kinds of rows of a store."""
    yield from ("| kind | fields | does |", "|---|---|---|")
    for name, kind in KINDS.items():
        if kind.row is not None:
            fields = fields_text(kind.row, "log-format.md#decisions")
            yield f"| `{name}` | {fields} | {kind.row_text or kind.text} |"


def decision_fields() -> Iterator[str]:
    """Yield the table of the fields of a decision."""
    yield from ("| field | value |", "|---|---|")
    for name, field in DECISION.items():
        whose = "" if field.of != "actions" else "of actions with features: "
        yield f"| `{name}` | {whose}{field.text} |"


TABLES: Final[Mapping[str, Mapping[str, Callable[[], Iterator[str]]]]] = {
    "log-format.md": {"kinds": log_kinds, "fields of decisions": decision_fields},
    "store-format.md": {"kinds": row_kinds},
}


def with_tables(page: str, tables: Mapping[str, Callable[[], Iterator[str]]]) -> str:
    """Return a page with its tables as they follow from the kinds."""
    for name, table in tables.items():
        begin, end = f"<!-- {name}: python tools/kinds.py --write -->", f"<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = "\n\n".join((before + begin, "\n".join(table()), end + after))
    return page


def main() -> int:
    """Write or check the tables; return the status of the process."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the tables into the pages")
    parser.add_argument("--check", action="store_true", help="say which pages have other tables")
    options = parser.parse_args()
    differs = False
    for name, tables in TABLES.items():
        path = PAGES / name
        page = path.read_text(encoding="utf-8")
        if options.write:
            path.write_text(with_tables(page, tables), encoding="utf-8")
        elif with_tables(page, tables) != page:
            print(f"{path} has other tables than armlet.record.kinds; call python tools/kinds.py --write")
            differs = True
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
