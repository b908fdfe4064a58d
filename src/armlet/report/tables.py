"""Words and numbers in columns, for a page and for Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Words and numbers in columns; the first column names the row.

    Examples
    --------
    >>> print(Table(caption="Costs", head=("policy", "regret"), rows=(("LinUCB", "12"),)).markdown())
    | policy | regret |
    |---|---|
    | LinUCB | 12 |
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """Give it as a table in Markdown."""
        lines = [" | ".join(cell.replace("|", "\\|") for cell in cells) for cells in (self.head, *self.rows)]
        ruler = "|".join("---" for _ in self.head)
        return "\n".join([f"| {lines[0]} |", f"|{ruler}|", *(f"| {line} |" for line in lines[1:])])


def table(given: Table) -> str:
    """Give a table as HTML; on a narrow screen its cells stack, and the roles keep it a table for those who hear it."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in given.head)
    rows = [
        f'<tr role="row"><th scope="row" role="rowheader">{escape(name)}</th>'
        + "".join(
            f'<td role="cell" class="number" data-name="{escape(column)}">{escape(cell)}</td>'
            for column, cell in zip(given.head[1:], cells, strict=True)
        )
        + "</tr>"
        for name, *cells in given.rows
    ]
    body = "\n".join(rows)
    return (
        f'<div class="wide"><table class="stack" role="table"><caption>{escape(given.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )
