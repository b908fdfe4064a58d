"""What made a result: which log, how to recognise its rows, from when they are, and the call or command.

The digest is of rows as evaluation reads them, so a log has the same one as JSON lines, compacted, and in a store; it
is computed while rows are read for the first time, never by reading them again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from armlet.types import __version__

if TYPE_CHECKING:
    from armlet.evaluation.rows import Blocks, Rows

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The log, the version and the call that a result comes from.

    Examples
    --------
    >>> made = Provenance(log="decisions.jsonl", digest="6d0f", period=(0, 86_400_000_000), call="armlet.evaluate(...)")
    >>> made.lines()["period"]
    '1970-01-01 00:00:00 to 1970-01-02 00:00:00 UTC'
    """

    log: str
    """Its name: that of the file, or of the loop."""
    digest: str | None
    """SHA-256 of its rows, in hexadecimal digits."""
    period: tuple[int, int] | None
    """The first and the last time of a decision, in microseconds since 1970; None if the log has no times."""
    call: str
    """The command, or the call of the library."""
    version: str = field(default=__version__)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types, times as text."""
        period = None if self.period is None else [_at(each).isoformat() for each in self.period]
        made = {"version": self.version, "call": self.call}
        return {"log": self.log, "rows_sha256": self.digest, "period": period, **made}

    def lines(self) -> dict[str, str]:
        """Return what a page says of it, by name."""
        known = {
            "log": self.log,
            "digest of its rows": None if self.digest is None else f"sha256 {self.digest}",
            "period": "the log has no times" if self.period is None else _period(*self.period),
            "command" if self.call.startswith("armlet ") else "call": self.call,
        }
        return {name: text for name, text in known.items() if text is not None}


def provenance(blocks: Blocks, function: Callable[..., object], **settings: object) -> Provenance:
    """Return what made a result: a log that has been read, and a function with the arguments that are not its defaults.

    Examples
    --------
    >>> from armlet.evaluation.sources import open_rows
    >>> from armlet.log import from_obp
    >>> blocks = open_rows(from_obp({"action": [1], "reward": [0], "pscore": [0.5], "context": [[1.0]]}))
    >>> provenance(blocks, open_rows, log="same").call
    "open_rows('obp', log='same')"
    """
    parameters = signature(function).parameters
    arguments = [f"{name}={value!r}" for name, value in settings.items() if value != parameters[name].default]
    call = f"{function.__name__}({', '.join([repr(blocks.name), *arguments])})"
    return Provenance(log=blocks.name, digest=blocks.digest, period=blocks.period, call=call)


M = TypeVar("M", bound=Any)


def made_by(result: M, command: str) -> M:
    """Return a result as one that a command made."""
    made: M = replace(result, made=replace(result.made, call=command))
    return made


class RowDigest:
    """SHA-256 of what was decided and what came of it, column by column: it does not matter where blocks end."""

    def __init__(self) -> None:
        self._columns = [sha256() for _ in range(7)]
        self._more: dict[str, Any] = {}  # of what not every log has: units, and outcomes by name

    def add(self, rows: Rows) -> None:
        """Add a block."""
        reward = np.where(rows.rewarded, rows.reward, np.nan)  # there are many NaN
        played = (rows.t, rows.arm, reward, rows.weight, rows.propensity, rows.X, np.packbits(rows.eligible, axis=1))
        for made, column in zip(self._columns, played, strict=True):
            made.update(np.ascontiguousarray(column).data)
        optional: dict[str, Any] = {} if rows.unit is None else {"unit": rows.unit}
        optional |= {f"reward_{name}": part + 0.0 for name, part in (rows.outcomes or {}).items()}
        for name, column in optional.items():
            self._more.setdefault(name, sha256(name.encode())).update(np.ascontiguousarray(column).data)

    def hexdigest(self) -> str:
        """Return the digest after the last block, in hexadecimal digits."""
        more = [self._more[name] for name in sorted(self._more)]
        return sha256(b"".join(made.digest() for made in [*self._columns, *more])).hexdigest()


def micros(moment: datetime) -> int:
    """Return a time as microseconds since 1970."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def _at(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def _period(first: int, last: int) -> str:
    begin, end = (f"{_at(each):%Y-%m-%d %H:%M:%S}" for each in (first, last))
    return f"{begin} to {end} UTC"
