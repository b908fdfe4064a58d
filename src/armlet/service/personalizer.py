"""Azure Personalizer's routes for rank, activate and reward, so that its clients work unchanged.

Rank is a decision with actions; activate and reward are what they are called. The loop is that of the settings, or of
the path if the endpoint is `/v1/loops/NAME`: clients append their own paths to it. A request costs what a decision with
actions costs, and the flattening of its features.

Personalizer takes any feature at any time. A loop has a fixed set: what is sent besides is dropped, and what is not
sent is 0, or no flag, as in Vowpal Wabbit. Both are counted by loop, so that a misspelt name is seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from armlet.errors import ArmletError, EventError, LoopGoneError, StoreError
from armlet.inputs.nested import DEEPEST, MOST, Cell, flatten
from armlet.service.contexts import encoder_of, with_dates
from armlet.service.decisions import refused_decision
from armlet.service.http import (
    JSON,
    NO_SNIFF,
    NO_STORE,
    REST,
    Handler,
    Method,
    NoContent,
    Request,
    Response,
    Route,
    Shown,
    decode,
)
from armlet.service.keys import Scope
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
    refusal,
)
from armlet.service.schemas import MOST_ARMS, Amount, Event, Text
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.actions.decision import ActionDecision
    from armlet.inputs.settings import Reader
    from armlet.service.app import Service
    from armlet.stores import Loop

KEY: Final = b"ocp-apim-subscription-key"
REQUEST: Final = b"x-ms-client-request-id"  # the same at every attempt of a client
VERSIONS: Final = re.compile(r"v1\.0|v1\.1-preview(\.\d{1,3})?")
QUERIED: Final = ("2022-09-01-preview",)
NESTED: Final = f"give objects of texts and numbers, up to {MOST:,} of them, and nested less than {DEEPEST} levels deep"
METHODS: Final[tuple[Method, ...]] = ("GET", "POST", "PUT", "DELETE")

Row: TypeAlias = Mapping[str, object] | list[float]


# ---- what clients send and expect; fields that are not known are ignored, as Azure does

Features = Annotated[list[dict[str, Any]], Meta(max_length=1_000)]
"""Objects, nested at will."""


class RankableAction(Struct):
    """An action and its features."""

    id: Text
    features: Features = []


class RankRequest(Struct, rename="camel"):
    """A context and the actions to choose from; the first one is the baseline, what the application would show."""

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=MOST_ARMS)]
    context_features: Features | None = None
    excluded_actions: list[str] | None = None
    event_id: Event | None = None
    defer_activation: bool | None = None


class RankedAction(Struct, omit_defaults=True, gc=False):
    """How likely an action was; keys may be made without that."""

    id: str
    probability: float | UnsetType = UNSET


class RankResponse(Struct, rename="camel", gc=False):
    """What to show, under which event to reward it, and all actions: the chosen one first, then the likeliest."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardRequest(Struct):
    """What an event has earned."""

    value: Amount


class PersonalizerError(Struct, omit_defaults=True, gc=False):
    """Why something is refused; `target` is the field that is wrong."""

    code: str
    message: str
    target: str | None = None


class ErrorResponse(Struct, gc=False):
    """A refusal, as Azure writes it."""

    error: PersonalizerError


_encode = msgspec.json.Encoder().encode
_rank = msgspec.json.Decoder(RankRequest)
_reward = msgspec.json.Decoder(RewardRequest)


# ---- refusals, as its clients read them: a code, a message and the field, in Azure's words and statuses

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


# ---- features, nested as they are, as rows that a loop reads

Side: TypeAlias = Literal["context", "actions"]
Fault: TypeAlias = Literal["unknown", "missing"]
MOST_NAMES: Final = 200  # that are told apart, of a loop
OTHERS: Final = "(others)"
_USUAL: Final[Mapping[str, Cell]] = {"number": 0.0, "flags": "", "buckets": ""}


class Columns(NamedTuple):
    """What a reader takes: what each column is where it was not sent; None for whatever comes."""

    usual: Mapping[str, Cell | None] | None
    has_dates: bool = False


NOTHING: Final = Columns({})


def columns_of(reader: Reader) -> Columns:
    """Return the columns that a reader takes.

    Examples
    --------
    >>> from armlet.inputs.contexts import ContextReader
    >>> columns_of(ContextReader(2, ("age", "user.visits"))).usual
    {'age': 0.0, 'user.visits': 0.0}
    """
    encoder = encoder_of(reader)
    if encoder is None:
        features = reader.plain.features
        if reader.plain.dim == 0:
            return NOTHING
        if features is None:
            raise Problem(
                INVALID, "the features of this loop have no names, which Personalizer's have; make it with names"
            )
        return Columns(dict.fromkeys(features, 0.0))
    saved = encoder.to_dict()
    if "columns" not in saved:  # it hashes names
        return Columns(None)
    columns = [each for each in saved["columns"] if each["kind"] != "constant"]
    usual = {each["column"]: None if "missing" in each else _USUAL.get(each["kind"]) for each in columns}
    return Columns(usual, any(each["kind"] == "date" for each in columns))


class FeatureCounts:
    """How often features were sent that a loop does not read, and not sent that it reads.

    Examples
    --------
    >>> counts = FeatureCounts()
    >>> counts.add("context", "unknown", ["user.agee"])
    >>> counts.totals
    Counter({('context', 'unknown'): 1})
    """

    def __init__(self) -> None:
        self.totals: Counter[tuple[Side, Fault]] = Counter()
        self.names: Counter[tuple[Side, Fault, str]] = Counter()

    def add(self, side: Side, fault: Fault, names: list[str]) -> None:
        """Count names; from a number of different ones on, new ones are counted as one."""
        self.totals[side, fault] += len(names)
        for name in names:
            key = side, fault, name
            known = key in self.names or len(self.names) < MOST_NAMES
            self.names[key if known else (side, fault, OTHERS)] += 1


def row_of(
    features: object, reader: Reader, columns: Columns, counts: FeatureCounts, side: Side
) -> Mapping[str, object] | list[float]:
    """Return nested features as a row that a reader takes; an empty list where there are none.

    Parameters
    ----------
    features
        Objects, nested at will.
    reader, columns
        What reads the row, and its columns.
    counts
        Of the loop, to which what does not fit is added.
    side
        Whether they are of the context or of an action.
    """
    cells = flatten(features)
    usual = columns.usual
    if usual is None:
        return cells
    unknown, missing = [name for name in cells if name not in usual], [name for name in usual if name not in cells]
    if unknown:
        counts.add(side, "unknown", unknown)
    if missing:
        counts.add(side, "missing", missing)
    row = {name: cells.get(name, default) for name, default in usual.items()}
    if not columns.has_dates:
        return row or []
    return with_dates(reader, row)


# ---- the loop of a request


async def _loop_of(service: Service, request: Request, scope: Scope) -> Loop:
    """Return the loop that a request is for, if its version is served and its key allows it."""
    _check_version(request)
    name = request.parts.get("name")
    if name is None:
        name = await _default(service)
        if not request.grant.allows(scope, name):
            raise Problem(FORBIDDEN, f"the key lacks the scope {scope!r} for loop {name!r}")
    return service.loops.get(name) or await service.loop(name)


def _check_version(request: Request) -> None:
    version = request.parts.get("version")
    if version is not None and not VERSIONS.fullmatch(version):
        raise not_served(version)
    if version is None and request.query.get("api-version") not in QUERIED:
        raise Problem(
            INVALID, f"give ?api-version={QUERIED[0]}, or a path such as /personalizer/v1.0", field="api-version"
        )


async def _default(service: Service) -> str:
    name = service.personalizer.loop
    if name is not None:
        return name
    names = list(service.loops) if len(service.loops) == 1 else await service.ask(lambda: service.store.loops)
    if len(names) != 1:
        raise Problem(
            NOT_FOUND,
            f"there are {len(names)} loops; name one in the settings, [personalizer] loop = ..., or let the endpoint "
            "of the client end in /v1/loops/NAME",
        )
    return names[0]


def _let_go(service: Service, loop: Loop, error: ArmletError) -> None:
    """Forget a loop that was deleted: it may be made again, perhaps by another replica."""
    if isinstance(error, LoopGoneError):
        service.loops.pop(loop.name, None)


# ---- rank


async def rank(service: Service, request: Request) -> Response:
    """Choose an action."""
    loop = await _loop_of(service, request, "decide")
    body = decode(_rank, await request.body(service.limits.body), request)
    ids, excluded = [action.id for action in body.actions], set(body.excluded_actions or ())
    allowed = _allowed(ids, excluded)
    rows = list(_rows(body, *await _readers(service, loop), service.features[loop.name]))
    try:
        decision = await loop.adecide(
            rows[0][2],
            event=body.event_id,
            actions=dict(zip(ids, (row for _, _, row in rows[1:]), strict=True)),
            eligible=allowed if excluded else None,
            baseline=allowed[0] if loop.name in service.personalizer.apprentice else None,
            defer=bool(body.defer_activation),
        )
    except ArmletError as error:
        _let_go(service, loop, error)
        raise refused_decision(loop, rows, error, {"actions": "actions", "event": "eventId"}) from error
    chances = _chances(decision, allowed) if request.grant.propensity else None
    event = decision.id if body.event_id is None else body.event_id
    answer = RankResponse(_ranking(ids, decision.arm, chances, excluded), event, str(decision.arm))
    return Response(_encode(answer), 201)


async def _readers(service: Service, loop: Loop) -> tuple[Reader, Reader]:
    """Return what reads contexts and actions of a loop, which is opened for it if it is not open yet."""
    try:
        context, actions = loop.reader, loop.action_reader
    except StoreError:
        await service.ask(loop.stats)
        context, actions = loop.reader, loop.action_reader
    if actions is None:
        raise Problem(INVALID, f"loop {loop.name!r} has arms of its own; name one with action_features", field="loop")
    return context, actions


def _rows(
    body: RankRequest, reader: Reader, action_reader: Reader, counts: FeatureCounts
) -> Iterator[tuple[str, Reader, Row]]:
    """Yield the context, then the actions: their fields, what reads them, and their rows."""
    field, columns = "contextFeatures", columns_of(reader)
    yield field, reader, _row(body.context_features or [], reader, columns, counts, "context", field)
    columns = columns_of(action_reader)
    for at, action in enumerate(body.actions):
        field = f"actions[{at}].features"
        yield field, action_reader, _row(action.features, action_reader, columns, counts, "actions", field)


def _row(features: object, reader: Reader, columns: Columns, counts: FeatureCounts, side: Side, field: str) -> Row:
    try:
        return row_of(features, reader, columns, counts, side)
    except ArmletError as error:  # whose text has names, which may be what users typed
        raise Problem(INVALID, NESTED, field=field) from error


def _allowed(ids: Sequence[str], excluded: set[str]) -> list[str]:
    first: dict[str, int] = {}
    for at, each in enumerate(ids):
        if first.setdefault(each, at) != at:
            raise Problem(INVALID, "there is an action of this id already; give each once", field=f"actions[{at}].id")
    allowed = [each for each in ids if each not in excluded]
    if not allowed:
        raise Problem(INVALID, "all actions are excluded; leave one", field="excludedActions")
    return allowed


def _chances(decision: ActionDecision, allowed: Sequence[str]) -> Mapping[Arm, float]:
    """Return the probability of every action that could be chosen."""
    support = decision.support
    return dict.fromkeys(allowed, decision.propensity) if support is None else support


def _ranking(
    ids: Sequence[str], chosen: Arm, chances: Mapping[Arm, float] | None, excluded: set[str]
) -> list[RankedAction]:
    """Return all actions: the chosen one, then the likeliest; excluded ones stay at their places.

    Examples
    --------
    >>> [each.id for each in _ranking(["a", "b", "c", "d"], "d", {"d": 0.2, "c": 0.8}, {"b"})]
    ['d', 'b', 'c', 'a']
    """
    shares = chances or {}
    ranked = sorted(
        (each for each in ids if each not in excluded), key=lambda each: (each != chosen, -shares.get(each, 0.0))
    )
    rest = iter(ranked)
    order = [each if each in excluded else next(rest) for each in ids]
    if chances is None:
        return [RankedAction(each) for each in order]
    return [RankedAction(each, chances.get(each, 0.0)) for each in order]


# ---- activate and reward


async def activate(service: Service, request: Request) -> Response:
    """Say that a deferred decision was shown, so that it expects a reward."""
    loop = await _loop_of(service, request, "decide")
    try:
        await loop.aactivate(request.parts["event"])
    except EventError as error:
        raise Problem(NO_EVENT, "there is no such event", field="eventId") from error
    except ArmletError as error:
        _let_go(service, loop, error)
        raise refusal(error, field="eventId") from error
    return NoContent()


async def reward(service: Service, request: Request) -> Response:
    """Record a reward."""
    loop = await _loop_of(service, request, "reward")
    body = decode(_reward, await request.body(service.limits.body), request)
    attempt = request.headers.get(REQUEST, b"").decode("latin-1")[:256]
    try:
        status = await loop.areward(request.parts["event"], body.value, name=attempt or None)
    except ArmletError as error:
        _let_go(service, loop, error)
        raise refusal(error, field="value") from error
    if status == "unknown":
        raise Problem(NO_EVENT, "there is no such event", field="eventId")
    if status == "out_of_range":
        raise Problem(INVALID, "it is outside the reward_range of the loop", field="value")
    return NoContent()


async def others(_: Service, request: Request) -> Response:
    """Refuse what Armlet does not serve, and say what to do instead."""
    raise not_served(request.parts[REST])


def _routes(start: str) -> tuple[Route, ...]:
    routes: list[Route] = []
    for version in ("", "/{version}"):
        base = f"{start}/personalizer{version}"
        events = f"{base}/events/{{event}}"
        posts: tuple[tuple[str, Scope, Handler, str], ...] = (
            (f"{base}/rank", "decide", rank, "InvalidRankRequest"),
            (f"{events}/reward", "reward", reward, "InvalidRewardRequest"),
            (f"{events}/activate", "decide", activate, "InvalidEventIdToActivate"),
        )
        for path, scope, handler, code in posts:
            routes.append(Route("POST", path, scope, handler, shows=shown_as(code), key_header=KEY))
    routes += [
        Route(method, f"{start}/personalizer/*", None, others, shows=shown_as("BadRequest"), key_header=KEY)
        for method in METHODS
    ]
    return tuple(routes)


ROUTES: Final = (*_routes(""), *_routes("/v1/loops/{name}"))
