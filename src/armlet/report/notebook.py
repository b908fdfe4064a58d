"""What an object shows of itself in a notebook: an HTML fragment of facts and tables, for its `_repr_html_`.

The fragment brings its style, which reaches nothing outside it: text takes the colour of the notebook around it, lines
are a translucent grey, so that it is legible in any theme, light or dark. Nothing is loaded, nothing runs; every text
is escaped. A long table is cut, and says by how much.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

MOST: Final = 30  # rows of a table in a fragment
LONGEST: Final = 80  # characters of a cell
WORD: Final = 28  # characters that a narrow screen does not break

_SOFT: Final = "color-mix(in srgb, currentColor 75%, transparent)"
_LINE: Final = "1px solid rgba(128,128,128,.35)"
STYLE: Final = f"""<style>
.armlet-shown {{ max-width: 100%; color: inherit; line-height: 1.45; overflow-wrap: break-word }}
.armlet-shown > p {{ margin: .2em 0 }}
.armlet-shown > .armlet-soft {{ color: {_SOFT}; font-size: .92em; max-width: 60em }}
.armlet-shown > pre {{ margin: .3em 0; overflow-x: auto; color: inherit; background: none }}
.armlet-shown > figure {{ margin: .4em 0; max-width: 36em }}
.armlet-shown > figure svg {{ display: block; width: 100%; height: auto; color: inherit }}
.armlet-shown > div {{ overflow-x: auto; margin: .4em 0 }}
.armlet-shown > div > table {{ border-collapse: collapse; border: 0; margin: 0; table-layout: auto; color: inherit;
  font-size: .95em; font-variant-numeric: tabular-nums; width: auto }}
.armlet-shown > div > table > caption {{ text-align: left; caption-side: top; color: inherit; padding: 0 0 .2em }}
.armlet-shown > div > table > * > tr {{ background: none }}
.armlet-shown > div > table > * > tr > * {{ text-align: left; vertical-align: top; padding: .15em 1em .15em 0;
  border: 0; border-bottom: {_LINE}; color: inherit; background: none; white-space: normal; max-width: 40em;
  min-width: 3em }}
.armlet-shown > div > table > tbody > tr > th {{ font-weight: 400 }}
.armlet-shown > div > table.armlet-facts > tbody > tr > th {{ color: {_SOFT}; white-space: nowrap }}
.armlet-shown > div > table > * > tr > .armlet-number {{ text-align: right; white-space: nowrap }}
.armlet-shown > div > table > * > tr > .armlet-word {{ white-space: nowrap }}
</style>"""


def fragment(title: str, *parts: str) -> str:
    """Return a fragment: a title in bold, then parts that are HTML already, such as `facts`, `table` and `note` give.

    Examples
    --------
    >>> "<b>a &lt; b</b>" in fragment("a < b", note("checked"))
    True
    """
    head = [f"<p><b>{escape(title)}</b></p>"] if title else []
    return "\n".join([f'<div class="armlet-shown">{STYLE}', *head, *parts, "</div>"])


def facts(pairs: Mapping[str, object]) -> str:
    """Return a table of two columns, without a head: what, and its value; None is left out.

    Examples
    --------
    >>> "<th" in facts({"steps": 12345}), "12,345" in facts({"steps": 12345}), facts({"none": None})
    (True, True, '')
    """
    values = {name: value for name, value in pairs.items() if value is not None}
    if not values:
        return ""
    rows = [f'<tr><th scope="row">{escape(name)}</th><td>{_shown(value)}</td></tr>' for name, value in values.items()]
    return f'<div><table class="armlet-facts"><tbody>{"".join(rows)}</tbody></table></div>'


def table(columns: Mapping[str, Sequence[object]], caption: str = "") -> str:
    """Return a table by its columns: numbers to the right, words to the left, None as a dash.

    Examples
    --------
    >>> text = table({"arm": ["a<b"], "value": [1.23456]})
    >>> "a&lt;b" in text, ">1.235<" in text
    (True, True)
    >>> "5 more rows" in table({"step": range(35)})
    True
    """
    length = len(next(iter(columns.values()), ()))
    shown = {name: list(values[:MOST]) for name, values in columns.items()}
    marks = [_mark(values) for values in shown.values()]
    head = "".join(f'<th scope="col"{mark}>{escape(str(name))}</th>' for name, mark in zip(shown, marks, strict=True))
    rows = [
        "".join(f"<td{mark}>{_shown(value)}</td>" for value, mark in zip(row, marks, strict=True))
        for row in zip(*shown.values(), strict=True)
    ]
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    left = note(f"{length - MOST:,} more rows") if length > MOST else ""
    return f"<div><table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{left}"


def note(text: str) -> str:
    """Return a sentence in smaller letters; nothing if there is none.

    Examples
    --------
    >>> note("1 < 2"), note("")
    ('<p class="armlet-soft">1 &lt; 2</p>', '')
    """
    return f'<p class="armlet-soft">{escape(text)}</p>' if text else ""


def _mark(values: Sequence[object]) -> str:
    """Return the class of a column: numbers, words that stay on a line, or sentences."""
    if is_numeric(values):
        return ' class="armlet-number"'
    return ' class="armlet-word"' if max(len(cell(value)) for value in values) <= WORD else ""


def is_numeric(values: Sequence[object]) -> bool:
    """Return whether a column holds numbers, or nothing."""
    return not any(isinstance(value, str | bool) for value in values)


def cell(value: object) -> str:
    """Write a value in a table: four digits of a number, and never an exponent where it can be read without.

    Examples
    --------
    >>> [cell(value) for value in (1.23456, 123456.7, 0.00012345, 150.0, 3e-9, None, float("nan"), True, "word")]
    ['1.235', '123,457', '0.0001234', '150', '3e-09', '-', '-', 'yes', 'word']
    """
    if value is None or value != value:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, float):
        return str(value)
    if value == 0.0 or not 1e-4 <= abs(value) < 1e12:
        return f"{value:.4g}"
    text = f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shorten(text: str, longest: int = LONGEST) -> str:
    """Cut a text in the middle of which nobody would read.

    Examples
    --------
    >>> shorten("a" * 100, 10)
    'aaaaaaa...'
    """
    return text if len(text) <= longest else text[: longest - 3] + "..."


def brief(settings: object) -> str:
    """Return a dataclass as it would be made: its name, and only the settings that differ from their defaults.

    Examples
    --------
    >>> import armlet
    >>> brief(armlet.OccasionalOptimism(floor=0.1)), brief(armlet.Greedy())
    ('OccasionalOptimism(floor=0.1)', 'Greedy()')
    """
    if not dataclasses.is_dataclass(settings):
        return repr(settings)
    made = [each for each in dataclasses.fields(settings) if each.init and each.repr]
    texts = {each.name: repr(getattr(settings, each.name)) for each in made}  # compared as text: arrays are not equal
    changed = [f"{each.name}={texts[each.name]}" for each in made if texts[each.name] != repr(_default(each))]
    return f"{type(settings).__name__}({', '.join(changed)})"


def _default(field: dataclasses.Field[object]) -> object:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def listed(values: Sequence[object], most: int = 6) -> str:
    """Return a list as Python writes it, its middle left out if it is long.

    Examples
    --------
    >>> listed(["a", "b"]), listed(range(100))
    ("['a', 'b']", '[0, 1, 2, 3, 4, ..., 99]')
    """
    texts = [repr(value) for value in values]
    return f"[{', '.join(texts if len(texts) <= most else [*texts[: most - 1], '...', texts[-1]])}]"


def _shown(value: object) -> str:
    return escape(cell(value))
