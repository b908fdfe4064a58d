"""Both official Python SDKs of Azure Personalizer, unchanged, against a running server; and the page about moving."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.ai.personalizer import PersonalizerAdministrationClient
from azure.ai.personalizer import PersonalizerClient as Newer
from azure.ai.personalizer.aio import PersonalizerClient as NewerAsync
from azure.cognitiveservices.personalizer import PersonalizerClient as Older
from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.core.pipeline.transport import AsyncioRequestsTransport
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

from armlet import cli
from armlet.service.keys import digest
from support.service.servers import ServerProcess, ask, serving

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "leave-personalizer.md").read_text()
KEY = "armlet_personalizer"
CONTEXT = [{"timeOfDay": "morning"}, {"user": {"age": 31, "visits": 4, "device": "mobile"}}]
FEATURES = {
    "cup-final": [{"topic": "sport", "length": 600}],
    "new-album": [{"topic": "music"}, {"length": 250}],
    "election": [{"topic": "politics", "length": 900}],
}


def blocks(language: str) -> list[str]:
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Serve the loop of the page, without apprentices, to one key."""
    folder = tmp_path_factory.mktemp("personalizer")
    settings = re.sub(r"^apprentice.*\n", "", blocks("toml")[0], flags=re.M)
    settings += f'\n[keys.app]\nsha256 = "{digest(KEY).hex()}"\nscopes = ["decide", "reward", "read"]\n'
    (folder / "armlet.toml").write_text(settings)
    with serving("armlet.toml", folder=folder) as server:
        yield server


def older(url: str, key: str = KEY) -> Any:
    return Older(url, CognitiveServicesCredentials(key))


def newer(url: str, key: str = KEY) -> Any:
    return Newer(url, AzureKeyCredential(key))


def asked(**more: object) -> dict[str, Any]:
    actions = [{"id": name, "features": features} for name, features in FEATURES.items()]
    return {"actions": actions, "contextFeatures": CONTEXT, **more}


def request(**more: Any) -> RankRequest:
    actions = [RankableAction(id=name, features=features) for name, features in FEATURES.items()]
    return RankRequest(actions=actions, context_features=CONTEXT, **more)


def test_the_older_sdk_ranks_rewards_and_activates(server: ServerProcess) -> None:
    for url in (server.url, f"{server.url}/", f"{server.url}/v1/loops/articles"):
        client = older(url)
        answer = client.rank(request(excluded_actions=["election"]))
        shares = {each.id: each.probability for each in answer.ranking}
        assert shares.keys() == FEATURES.keys()
        assert sum(shares.values()) == pytest.approx(1.0)
        assert shares["election"] == 0.0
        assert shares[answer.reward_action_id] > 0.0
        client.events.reward(event_id=answer.event_id, value=1.0)
        later = client.rank(request(defer_activation=True))
        client.events.activate(event_id=later.event_id)
        client.events.reward(event_id=later.event_id, value=0.0)


def test_the_newer_sdk_ranks_rewards_and_activates(server: ServerProcess) -> None:
    for url in (server.url, f"{server.url}/", f"{server.url}/v1/loops/articles"):
        client = newer(url)
        answer = client.rank(asked(excludedActions=["election"]))
        shares = {each["id"]: each["probability"] for each in answer["ranking"]}
        assert shares.keys() == FEATURES.keys()
        assert shares["election"] == 0.0
        assert shares[answer["rewardActionId"]] > 0.0
        client.reward(answer["eventId"], {"value": 1.0})
        later = client.rank(asked(deferActivation=True))
        client.activate(later["eventId"])
        client.reward(later["eventId"], {"value": 0.0})


def test_the_newer_sdk_works_without_a_thread_of_its_own(server: ServerProcess) -> None:
    async def work() -> None:
        transport = AsyncioRequestsTransport()
        async with NewerAsync(server.url, AzureKeyCredential(KEY), transport=transport) as client:
            answer = await client.rank(asked(eventId="awaited/1 é"))
            await client.activate(answer["eventId"])
            await client.reward(answer["eventId"], {"value": 0.5})

    asyncio.run(work())


def test_both_learn_in_one_loop(server: ServerProcess) -> None:
    before = ask(server.url, "GET", "/v1/loops/articles/stats", authorization=f"Bearer {KEY}").json
    for i in range(30):
        event = f"one-loop-{i}"
        if i % 2:
            played = older(server.url).rank(request(event_id=event)).reward_action_id
            newer(server.url).reward(event, {"value": float(played == "new-album")})
        else:
            played = newer(server.url).rank(asked(eventId=event))["rewardActionId"]
            older(server.url).events.reward(event_id=event, value=float(played == "new-album"))
    after = ask(server.url, "GET", "/v1/loops/articles/stats", authorization=f"Bearer {KEY}").json
    assert after["decisions"] - before["decisions"] == after["rewards"] - before["rewards"] == 30


def test_refusals_are_the_errors_that_the_older_sdk_knows(server: ServerProcess) -> None:
    with pytest.raises(ErrorResponseException, match="InvalidRankRequest") as refused:
        older(server.url).rank(RankRequest(actions=[]))
    assert refused.value.error.error.target == "actions"
    with pytest.raises(ErrorResponseException, match="Unauthorized"):
        older(server.url, "guess").rank(request())
    for call in (older(server.url).events.activate, lambda event: older(server.url).events.reward(event, 1.0)):
        with pytest.raises(HttpOperationError, match="Not Found"):
            call("unheard of")


def test_refusals_are_the_errors_that_the_newer_sdk_knows(server: ServerProcess) -> None:
    client = newer(server.url)
    with pytest.raises(HttpResponseError, match="InvalidRankRequest") as refused:
        client.rank({"actions": []})
    assert refused.value.error.target == "actions"
    with pytest.raises(ClientAuthenticationError, match="Unauthorized"):
        newer(server.url, "guess").rank(asked())
    with pytest.raises(ResourceNotFoundError, match="no such event"):
        client.reward("unheard of", {"value": 1.0})
    client.rank(asked(eventId="once"))
    with pytest.raises(ResourceExistsError, match="another context"):
        client.rank(asked(eventId="once", excludedActions=["election"]))


def test_what_is_not_served_is_told_to_the_newer_sdk(server: ServerProcess) -> None:
    client, admin = newer(server.url), PersonalizerAdministrationClient(server.url, AzureKeyCredential(KEY))
    slots = {"actions": asked()["actions"], "slots": [{"id": "top", "baselineAction": "election"}]}
    for call, words in (
        (lambda: client.rank_multi_slot(slots), "one slot at a time"),
        (lambda: client.reward_multi_slot("e", {"reward": [{"slotId": "top", "value": 1.0}]}), "one slot at a time"),
        (lambda: client.activate_multi_slot("e"), "one slot at a time"),
        (admin.get_service_configuration, "armlet.toml"),
        (admin.get_policy, "armlet.toml"),
        (admin.reset_model, "/v1/loops/NAME/model"),
        (admin.get_log_properties, "/v1/loops/NAME/log"),
        (lambda: list(admin.list_evaluations()), "armlet evaluate"),
    ):
        with pytest.raises(HttpResponseError, match=words) as refused:
            call()
        assert refused.value.status_code == 501


# ---- the page


def test_the_page_works_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "armlet.toml").write_text(blocks("toml")[0])
    lines = [shlex.split(line) for line in blocks("bash")[0].splitlines()]
    assert [cli.main(words[1:]) for words in lines if "--check" in words] == [0]
    assert "'articles' would be made" in capsys.readouterr().out
    first, second = (block for block in blocks("python") if not block.startswith(">>> "))
    with serving("armlet.toml", folder=tmp_path) as server:
        for code in (first, second):
            exec(compile(code.replace("http://127.0.0.1:8080", server.url), "leave-personalizer.md", "exec"), {})
        printed = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in printed] == ["cup-final", "cup-final"]  # an apprentice plays the first
        stats = ask(server.url, "GET", "/v1/loops/articles/stats").json
        assert (stats["decisions"], stats["rewards"], stats["baseline"]["decisions"]) == (2, 2, 2)
        assert b"armlet_personalizer" not in ask(server.url, "GET", "/metrics").body  # all features fit
        newer(server.url, "any text").rank(asked(contextFeatures=[{"timeOfDay": "noon", "weather": "fine"}]))
        metrics = ask(server.url, "GET", "/metrics").body.decode()
        assert 'armlet_personalizer_features_total{loop="articles",of="context",what="unknown"} 1' in metrics
