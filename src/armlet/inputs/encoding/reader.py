"""Contexts at the border of a bandit that has an encoder: rows by name go through it, rows by place are its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from armlet.inputs.contexts import PLAIN_ROWS, ContextReader
from armlet.inputs.encoding.encoder import Encoder
from armlet.types import Context, Contexts, Float64


@dataclass(frozen=True, slots=True)
class EncodingReader:
    """Reads contexts by column, or, as a `ContextReader` does, the numbers that they became.

    Examples
    --------
    >>> reader = EncodingReader(Encoder().fit({"colour": ["red", "blue"]}))
    >>> reader.row({"colour": "red"}), reader.row([0.0, 1.0, 0.0])
    (array([0., 1., 0.]), array([0., 1., 0.]))
    >>> reader.matrix([{"colour": "blue"}])
    array([[1., 0., 0.]])
    """

    encoder: Encoder

    @property
    def plain(self) -> ContextReader:
        """What reads the numbers."""
        return ContextReader(self.encoder.dim)

    def row(self, x: Context) -> Float64:
        """Read one context: a mapping from columns to values, or d numbers."""
        given: Any = x
        if isinstance(given, PLAIN_ROWS) or not hasattr(given, "keys") or hasattr(given, "toarray"):
            return self.plain.row(x)
        return self.encoder.encode(given if isinstance(given, Mapping) else dict(given))

    def matrix(self, X: Contexts) -> Float64:
        """Read many contexts: a table, a mapping of columns, a list of what `row` reads, or a matrix of numbers."""
        given: Any = X
        if isinstance(given, list | tuple):
            if given and not all(isinstance(x, Mapping) for x in given):
                return self.plain.matrix([self.row(x) for x in given] if any(map(_is_named, given)) else X)
            return self.encoder.matrix(given)
        is_table = hasattr(given, "__arrow_c_stream__") and len(getattr(given, "shape", (0, 0))) == 2
        if is_table or isinstance(given, Mapping):
            return self.encoder.matrix(cast("Any", given))
        return self.plain.matrix(X)


def _is_named(x: object) -> bool:
    return not isinstance(x, PLAIN_ROWS) and hasattr(x, "keys")
