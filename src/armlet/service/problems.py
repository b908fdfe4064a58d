"""Problems: every refusal of the service, as RFC 9457's application/problem+json.

A problem names its kind by a URN, and the field that is wrong. It never says a path of the server, a context's values,
SQL or a traceback: its text is written here, or came with the request.
"""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from armlet.errors import (
    ArmletError,
    BudgetError,
    EventError,
    InternalError,
    LoopGoneError,
    LoopStateError,
    QueueFullError,
    StoreError,
    UncertainError,
)

log = logging.getLogger("armlet.service")

MEDIA_TYPE: Final = b"application/problem+json"
RETRY_AFTER: Final = (b"retry-after", b"1")  # seconds


class Kind(NamedTuple):
    """What a problem is, regardless of the request: the last part of its URN, its status and its title."""

    slug: str
    status: int
    title: str


MALFORMED = Kind("malformed", 400, "The request cannot be read")
UNAUTHORIZED = Kind("unauthorized", 401, "A valid key is required")
FORBIDDEN = Kind("forbidden", 403, "The key does not allow this")
NOT_FOUND = Kind("not-found", 404, "There is no such thing here")
NOT_ALLOWED = Kind("method-not-allowed", 405, "The method is not allowed here")
TOO_SLOW = Kind("request-timeout", 408, "The body did not arrive in time")
CONFLICT = Kind("conflict", 409, "It contradicts what is stored")
OVER_BUDGET = Kind("over-budget", 409, "The hard budget allows no arm")
TOO_LARGE = Kind("too-large", 413, "The body is too large")
UNSUPPORTED = Kind("unsupported-media-type", 415, "The body must be JSON")
INVALID = Kind("invalid", 422, "A value is refused")
INTERNAL = Kind("internal", 500, "The server failed")
UNAVAILABLE = Kind("unavailable", 503, "Nothing of the request was kept; try again")
OUTCOME_UNKNOWN = Kind("outcome-unknown", 503, "It is not known whether the request was kept")

KINDS: Final = (
    MALFORMED,
    UNAUTHORIZED,
    FORBIDDEN,
    NOT_FOUND,
    NOT_ALLOWED,
    TOO_SLOW,
    CONFLICT,
    OVER_BUDGET,
    TOO_LARGE,
    UNSUPPORTED,
    INVALID,
    INTERNAL,
    UNAVAILABLE,
    OUTCOME_UNKNOWN,
)


class ProblemDetails(Struct, omit_defaults=True, gc=False):
    """A refusal (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None


class Problem(Exception):  # noqa: N818 (as RFC 9457 calls it)
    """A refusal, raised anywhere below a route; the application answers with it.

    Parameters
    ----------
    kind
        What it is.
    detail
        What is wrong with this request, and the fix; nothing that the sender must not see.
    field
        The field of the request that it is about, such as "context.age" or "items[3].value".
    headers
        More headers of the answer.

    Examples
    --------
    >>> Problem(INVALID, "give a number", field="context.age").body
    b'{"type":"urn:armlet:problem:invalid","title":"A value is refused","status":422,"detail":"give a number",...}'
    """

    def __init__(
        self, kind: Kind, detail: str, *, field: str | None = None, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.field = kind, detail, field
        self.headers = (*headers, RETRY_AFTER) if kind.status == 503 else tuple(headers)

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.kind.status

    @property
    def details(self) -> ProblemDetails:
        """What the answer says."""
        kind = self.kind
        return ProblemDetails(f"urn:armlet:problem:{kind.slug}", kind.title, kind.status, self.detail, self.field)

    @property
    def body(self) -> bytes:
        """The answer."""
        return msgspec.json.encode(self.details)


def no_loop(name: str) -> Problem:
    """Return the refusal of a loop that does not exist."""
    return Problem(NOT_FOUND, f"there is no loop {reprlib.repr(name)}", field="loop")


# ---- errors of the library


def refusal(error: ArmletError, *, field: str | None = None) -> Problem:
    """Return an error of the library as a problem.

    A store's errors name files and databases, so their text is not sent. Others are about values of the request:
    only where these are no contexts may they be shown.

    Examples
    --------
    >>> refusal(StoreError("nothing of this call was kept: /var/lib/shop.db is full")).detail
    'the store could not write; the log of the server says why'
    """
    if isinstance(error, UncertainError):
        return Problem(OUTCOME_UNKNOWN, "repeat it; with the same event, or the same name of a reward, that is safe")
    if isinstance(error, InternalError):  # the store has logged where
        return Problem(INTERNAL, "this is a fault of the server; its log says where. Nothing of the request was kept")
    if isinstance(error, LoopGoneError):
        return Problem(NOT_FOUND, "there is no such loop any more", field="loop")
    if isinstance(error, LoopStateError):
        return Problem(CONFLICT, str(error), field=field)
    if isinstance(error, StoreError):
        if isinstance(error, QueueFullError):
            return Problem(UNAVAILABLE, "too many calls wait for the store; try again a little later")
        if error.__cause__ is None:  # else the store has logged it, once for all calls of the transaction
            log.warning("the store refused a call: %s", error)
        return Problem(UNAVAILABLE, "the store could not write; the log of the server says why")
    if isinstance(error, EventError):
        return Problem(CONFLICT, str(error), field=field or "event")
    if isinstance(error, BudgetError):
        return Problem(
            OVER_BUDGET,
            "no arm that may be played fits into what is left of the loop's hard budget; nothing was decided: play "
            "your default, wait for the next period, or change the budget",
        )
    return Problem(INVALID, str(error), field=field)
