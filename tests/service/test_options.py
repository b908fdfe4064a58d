"""Options are declared once: every face has those of a decision, by name, and refuses them by the same sentences."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import httpx2
import msgspec
import pytest

from armlet.errors import ArmletError
from armlet.inputs.ask import ACTIONS, MANY, OPTIONS, OWN, REPORT, SHARED, AskMany
from armlet.inputs.options import summary
from armlet.service.app import Service, create_app
from armlet.service.client import AsyncClient, Client
from armlet.service.schemas import Decide, DecideMany, Item, RewardItem
from armlet.stores import Loop, Memory, Store

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "serve.md").read_text()
FILMS: Any = {"Heat": [1995.0], "Alien": [1979.0]}


@pytest.mark.parametrize("call", [Loop.decide, Loop.adecide, Client.decide, AsyncClient.decide])
def test_help_shows_every_option_of_a_decision(call: Any) -> None:
    shown = inspect.signature(call).parameters
    assert {name: shown[name].default for name in OPTIONS} == {n: each.option.default for n, each in OPTIONS.items()}
    assert list(shown)[-len(OPTIONS) :] == list(OPTIONS)
    assert (str(shown["event"].annotation), str(shown["defer"].annotation)) == ("str | None", "bool")


@pytest.mark.parametrize("call", [Loop.decide_many, Loop.adecide_many, Client.decide_many, AsyncClient.decide_many])
def test_help_shows_every_option_of_a_batch(call: Any) -> None:
    shown = inspect.signature(call).parameters
    assert list(shown)[-len(MANY) :] == list(MANY)
    assert str(shown["units"].annotation) == "Iterable[str | None] | None"


def test_the_options_of_a_batch_have_types() -> None:
    assert get_type_hints(AskMany).keys() == MANY.keys()


@pytest.mark.parametrize("call", [Loop.decide, Client.decide])
def test_the_text_of_every_option_is_in_the_docstring(call: Any) -> None:
    text = " ".join((inspect.getdoc(call) or "").split())
    assert all(f"{name} {each.option.text}" in text for name, each in OPTIONS.items())


@pytest.mark.parametrize("call", [Loop.reward, Loop.areward, Client.reward, AsyncClient.reward])
def test_help_shows_every_option_of_a_reward(call: Any) -> None:
    shown = inspect.signature(call).parameters
    assert {name: shown[name].default for name in REPORT} == {"name": None, "rank": 0, "played": None}


def test_bodies_have_every_option() -> None:
    assert RewardItem.__struct_fields__ == ("loop", "event", "value", *REPORT)
    assert Decide.__struct_fields__ == ("context", "actions", *OPTIONS)
    assert Item.__struct_fields__ == ("context", *OWN)
    assert DecideMany.__struct_fields__ == ("items", "actions", *SHARED)


def test_the_page_lists_every_option_as_it_is_declared() -> None:
    part = PAGE.split("\n## Decisions\n")[1].split("| field of the answer |")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", part, re.M))
    del rows["context"]
    shown = {name: re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text).lower() for name, text in rows.items()}
    texts = {"actions": summary(ACTIONS), **{name: each.option.summary for name, each in OPTIONS.items()}}
    assert shown == {name: text.removesuffix(".").lower() for name, text in texts.items()}


# ---- the same at every face


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(Memory()) as store:
        store.loop("home", arms=["a", "b"], dim=1, seed=1)
        store.loop("films", dim=1, action_dim=1, seed=1)
        yield store


def _called(store: Store, name: str, many: bool, actions: Any, option: dict[str, Any]) -> list[str]:
    """Return what each face says of a call that is refused."""
    loop, X = store.loop(name), [[1.0]] if many else [1.0]
    call, acall = ("decide_many", "adecide_many") if many else ("decide", "adecide")
    found = []
    for refused in (
        lambda: getattr(loop, call)(X, actions, **option),
        lambda: asyncio.run(getattr(loop, acall)(X, actions, **option)),
        lambda: asyncio.run(_sent(store, name, call, X, actions, option)),
    ):
        with pytest.raises(ArmletError) as caught:
            refused()
        found.append(str(caught.value))
    return found


async def _sent(store: Store, name: str, call: str, X: Any, actions: Any, option: dict[str, Any]) -> object:
    app = httpx2.ASGITransport(create_app(Service(store)))
    async with AsyncClient("http://127.0.0.1", transport=app) as client:
        return await getattr(client, call)(name, X, actions, **option)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(
    ("loop", "actions", "option"),
    [
        ("home", None, {"baseline": "a"}),
        ("home", None, {"defer": True}),
        ("home", None, {"probabilities": "some"}),
        ("films", FILMS, {"unit": "session-1"}),
        ("films", FILMS, {"weights": {"cost": 1.0}}),
        ("films", FILMS, {"defer": "later"}),
        ("home", None, {"evnt": "order-1"}),
    ],
)
def test_every_face_refuses_by_the_same_sentence(
    store: Store, loop: str, actions: Any, option: dict[str, Any], many: bool
) -> None:
    plurals = {name: str(each.option.plural) for name, each in OWN.items()}
    given = {plurals.get(name, name): [value] if name in plurals else value for name, value in option.items()}
    said = _called(store, loop, many, actions, given if many else option)
    assert said == [said[0]] * 3
    assert re.match(r"\w+ (is|has) |decide(_many)?\(\) got", said[0])


@pytest.mark.parametrize("option", [{"baseline": "a"}, {"defer": True}, {"unit": "u"}, {"weights": {"cost": 1.0}}])
def test_a_body_is_refused_by_the_sentence_of_the_loop(store: Store, option: dict[str, Any]) -> None:
    loop, actions = ("films", FILMS) if option.keys() & {"unit", "weights"} else ("home", None)
    with pytest.raises(ArmletError) as caught:
        store.loop(loop).decide([1.0], actions, **option)

    async def post() -> httpx2.Response:
        app = httpx2.ASGITransport(create_app(Service(store)))
        async with httpx2.AsyncClient(transport=app, base_url="http://127.0.0.1") as client:
            body = {"context": [1.0], **({} if actions is None else {"actions": actions}), **option}
            return await client.post(f"/v1/loops/{loop}/decide", json=body)

    answer = asyncio.run(post())
    problem = msgspec.json.decode(answer.content)
    assert (answer.status_code, problem["detail"], problem["field"]) == (422, str(caught.value), next(iter(option)))


def test_probabilities_come_to_the_client(store: Store) -> None:
    async def decide(name: str, actions: Any) -> Any:
        return await _sent(store, name, "decide", [1.0], actions, {"probabilities": "all"})

    for name, actions, labels in (("home", None, ["a", "b"]), ("films", FILMS, ["Heat", "Alien"])):
        answer = asyncio.run(decide(name, actions))
        assert sorted(each.arm for each in answer.probabilities) == sorted(labels)
        assert sum(each.probability for each in answer.probabilities) == 1.0


def test_a_batch_has_baselines_and_defers(store: Store) -> None:
    loop = store.loop("films")
    made = loop.decide_many([[1.0], [2.0]], FILMS, baselines=["Alien", None], defer=True, events=["x", "y"])
    assert (made[0].arm, made[0].propensity) == ("Alien", 1.0)
    assert [loop.activate("x"), loop.activate("y")] == [True, True]
    how = {"baselines": [None, "Heat"], "defer": True, "events": ["v", "w"]}
    answers: Any = asyncio.run(_sent(store, "films", "decide_many", [[1.0], [2.0]], FILMS, how))
    assert (answers[1].arm, answers[1].propensity) == ("Heat", 1.0)
    assert loop.activate("w")


def test_one_action_that_is_no_baseline_is_named_by_its_item(store: Store) -> None:
    async def post() -> httpx2.Response:
        app = httpx2.ASGITransport(create_app(Service(store)))
        async with httpx2.AsyncClient(transport=app, base_url="http://127.0.0.1") as client:
            items = [{"context": [1.0]}, {"context": [1.0], "baseline": "Up"}]
            return await client.post("/v1/loops/films/decide/batch", json={"items": items, "actions": FILMS})

    problem = msgspec.json.decode(asyncio.run(post()).content)
    assert problem["field"] == "items[1].baseline"
    assert "'Up', which is not an action that could be played" in problem["detail"]
