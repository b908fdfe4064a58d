"""Refusals as Personalizer's clients read them: a code, a message and the field, in Azure's words and statuses."""

from __future__ import annotations

from typing import Final

import msgspec

from armlet.service.http import JSON, NO_SNIFF, NO_STORE, Request, Response, Shown
from armlet.service.personalizer.schemas import ErrorResponse, PersonalizerError
from armlet.service.problems import (
    CONFLICT,
    FORBIDDEN,
    INTERNAL,
    INVALID,
    NOT_FOUND,
    OUTCOME_UNKNOWN,
    UNAUTHORIZED,
    UNAVAILABLE,
    Kind,
    Problem,
)

NOT_SERVED = Kind("not-served", 501, "Armlet does not serve this route of Personalizer")
NO_EVENT = Kind("no-event", 404, "There is no such event")  # of a loop that there is

_CODES: Final = {
    UNAUTHORIZED: "Unauthorized",
    FORBIDDEN: "OperationNotAllowed",
    NOT_FOUND: "ResourceNotFound",
    CONFLICT: "EventIdConflict",
    INTERNAL: "InternalServerError",
    UNAVAILABLE: "ServiceUnavailable",
    OUTCOME_UNKNOWN: "ServiceUnavailable",
    NOT_SERVED: "NotImplemented",
    NO_EVENT: "ResourceNotFound",
}
"""Codes of problems that do not depend on the route."""


def shown_as(code: str) -> Shown:
    """Return what shows the problems of a route; `code` is that of a request that is wrong.

    Examples
    --------
    >>> shows = shown_as("InvalidRankRequest")
    >>> shows(None, Problem(INVALID, "give a number", field="contextFeatures.age")).body
    b'{"error":{"code":"InvalidRankRequest","message":"give a number","target":"contextFeatures.age"}}'
    """

    def show(_: Request | None, problem: Problem) -> Response:
        error = PersonalizerError(_CODES.get(problem.kind, code), problem.detail, problem.field)
        status = 400 if problem.kind is INVALID else problem.status
        return Response(msgspec.json.encode(ErrorResponse(error)), status, (JSON, NO_STORE, NO_SNIFF, *problem.headers))

    return show


_WHY: Final = {
    "multislot": "Armlet decides one slot at a time; rank each slot, and exclude what is shown in another",
    "configurations": "a loop is configured in armlet.toml, or with POST /v1/loops/NAME/change",
    "evaluations": "evaluate the log of the loop: armlet evaluate",
    "featureImportances": "explain the model of the loop in Python: bandit.explain",
    "logs": "the log of a loop is GET /v1/loops/NAME/log",
    "model": "the model of a loop is GET /v1/loops/NAME/model",
}
"""What to do instead, by the part of the path that says what it is about."""


def not_served(path: str) -> Problem:
    """Return what to say of a path of Personalizer's that Armlet has not.

    Examples
    --------
    >>> not_served("v1.0/logs/properties").detail
    'Armlet does not serve this route of Personalizer: the log of a loop is GET /v1/loops/NAME/log'
    """
    why = next((_WHY[part] for part in path.split("/") if part in _WHY), "it has rank, activate and reward")
    return Problem(NOT_SERVED, f"Armlet does not serve this route of Personalizer: {why}")
