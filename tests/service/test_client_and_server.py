"""The client against servers in processes of their own: killed ones, busy ones, and ones with keys."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import armlet
from armlet.errors import ServiceError
from armlet.service.client import AsyncClient, Client, Judgement
from armlet.service.keys import digest, new_key
from support.service.servers import PATIENCE, ROUTER, ServerProcess, ask, serving

DYING = """
import os, signal
from armlet.service import app

make = app.create_app

def create_app(*args, **options):
    made = make(*args, **options)
    async def dies(scope, receive, send):
        async def answer(message):
            if os.path.exists("fuse" + scope["path"].replace("/", "-")):  # all that it answers is committed
                os.kill(os.getpid(), signal.SIGKILL)
            await send(message)
        await made(scope, receive, answer)
    return dies

app.create_app = create_app
"""
"""Python reads it when it starts: a server that is killed when it would answer at a path for which there is a fuse."""

SETTINGS = """
store = "shop.db"

[loops.home]
arms = ["sale", "new"]
features = ["age"]

[loops.basket]
arms = ["a", "b"]
dim = 1
aggregation = "sum"
reward_range = [0.0, 100.0]
"""
KEYS = {
    "all": 'scopes = ["decide", "reward", "read", "admin"]',
    "browser": 'scopes = ["decide"]\nloops = ["home"]\npropensity = false',
    "rewards": 'scopes = ["reward"]\nloops = ["home"]',
    "old": 'scopes = ["decide"]\nexpires = 2020-01-01T00:00:00Z',
}


# ---- killed ones


class Restarted:
    """A server that is killed between the commit and the answer, and is started again at the same port."""

    def __init__(self, folder: Path) -> None:
        (folder / "sitecustomize.py").write_text(DYING)
        (folder / "armlet.toml").write_text(SETTINGS)
        self.folder = folder
        self.server = self._start(0)

    def _start(self, port: int) -> ServerProcess:
        path = os.pathsep.join([str(self.folder), os.environ.get("PYTHONPATH", "")])
        server = ServerProcess("armlet.toml", "--port", str(port), folder=self.folder, PYTHONPATH=path)
        server.wait_until_ready()
        return server

    def answer_after_a_restart(self, path: str, call: Callable[[], object]) -> object:
        """Return what a call says whose first attempt had no answer."""
        fuse = self.folder / f"fuse{path.replace('/', '-')}"
        fuse.touch()
        with ThreadPoolExecutor(1) as caller:
            answer = caller.submit(call)
            assert self.server.wait() == -signal.SIGKILL
            fuse.unlink()
            self.server.kill()  # its pipe
            self.server = self._start(int(self.server.url.rpartition(":")[2]))
            return answer.result(PATIENCE)


@pytest.fixture
def restarted(tmp_path: Path) -> Iterator[Restarted]:
    made = Restarted(tmp_path)
    yield made
    made.server.kill()


def test_a_server_killed_between_commit_and_answer_decides_and_counts_once(restarted: Restarted) -> None:
    with Client(restarted.server.url, timeout=PATIENCE) as client:
        answer = restarted.answer_after_a_restart(
            "/v1/loops/basket/decide", lambda: client.decide("basket", [1.0], event="order-1")
        )
        assert client.decide("basket", [1.0], event="order-1") == answer
        status = restarted.answer_after_a_restart("/v1/rewards", lambda: client.reward("basket", "order-1", 2.0))
        assert status == "duplicate"  # the first attempt was kept
        assert client.reward("basket", "order-1", 3.0) == "accepted"
    assert restarted.server.stop() == 0
    with armlet.open_store(str(restarted.folder / "shop.db")) as store:
        stats = store.loop("basket").stats()
        assert stats.decisions == 1
        assert sum(arm.mean * arm.rewards for arm in stats.arms if arm.mean is not None) == 5.0


def test_a_killed_server_goes_on_with_its_price_its_units_and_what_has_come_of_a_reward(tmp_path: Path) -> None:
    (tmp_path / "armlet.toml").write_text('store = "router.db"\n' + ROUTER)
    arms: dict[str | None, armlet.types.Arm] = {}
    budgets: list[Any] = []
    for part in range(3):
        with serving("armlet.toml", folder=tmp_path) as server, Client(server.url, timeout=PATIENCE) as client:
            budgets.append(ask(server.url, "GET", "/v1/loops/router/stats").json["budget"])
            if part:
                assert budgets[-1] == budgets[-2]
                assert client.reward("router", f"held-{part - 1}", {"quality": 0.5}) == "accepted"
            for at in range(30):
                answer = client.decide(
                    "router", [1.0], event=f"{part}-{at}", weights={"delay": 0.0}, unit=f"session-{at}"
                )
                assert arms.setdefault(answer.unit, answer.arm) == answer.arm
                reward = {"quality": 0.8 if answer.arm == "large" else 0.1, "delay": 1.0}
                assert client.reward("router", answer.event, reward) == "accepted"
            client.decide("router", [1.0], event=f"held-{part}")
            assert client.reward("router", f"held-{part}", {"delay": 0.5}) == "accepted"  # a part that waits
            budgets[-1] = ask(server.url, "GET", "/v1/loops/router/stats").json["budget"]
            server.process.kill()
    assert budgets[-1]["decisions_left"] == 200 - 3 * 31
    assert budgets[-1]["price"] > 0.0
    with armlet.open_store(str(tmp_path / "router.db")) as store:
        assert store.loop("router").stats().learned == 3 * 30 + 2


# ---- one with keys


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    return {name: new_key() for name in KEYS}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, str]) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("served")
    tables = [f'[keys.{name}]\nsha256 = "{digest(keys[name]).hex()}"\n{more}' for name, more in KEYS.items()]
    (folder / "armlet.toml").write_text("\n\n".join([SETTINGS, *tables]))
    with serving("armlet.toml", folder=folder) as server:
        yield server


def test_two_hundred_calls_at_once_have_an_answer_each(server: ServerProcess, keys: dict[str, str]) -> None:
    async def play() -> tuple[list[str], list[str]]:
        async with AsyncClient(server.url, keys["all"], timeout=PATIENCE) as client:
            answers = await asyncio.gather(*(client.decide("home", [i / 200]) for i in range(200)))
            rewards = (client.reward("home", answer.event, 1.0) for answer in answers)
            return [answer.event for answer in answers], await asyncio.gather(*rewards)

    events, statuses = asyncio.run(play())
    assert len(set(events)) == 200
    assert set(statuses) == {"accepted"}


def test_batches_are_answered_in_order(server: ServerProcess, keys: dict[str, str]) -> None:
    with Client(server.url, keys["all"]) as client:
        answers = client.decide_many(
            "home", [{"age": 1.0}, {"age": 2.0}], events=["batch-2", "batch-1"], eligible=["new"]
        )
        assert [(answer.event, answer.arm) for answer in answers] == [("batch-2", "new"), ("batch-1", "new")]
        judged = client.rewards(
            [
                {"loop": "home", "event": "batch-1", "value": 1.0},
                {"loop": "nowhere", "event": "batch-1", "value": 1.0},
                {"loop": "home", "event": "batch-2", "value": 7.0},
                {"loop": "home", "event": "batch-2", "value": 1.0, "played": "nobody"},
            ]
        )
        assert [each.status for each in judged] == ["accepted", "no_loop", "out_of_range", "refused"]
        assert "nobody" in str(judged[3].detail)


def test_keys_allow_what_they_were_made_for(server: ServerProcess, keys: dict[str, str]) -> None:
    def refused(key: str | None, loop: str) -> tuple[int | None, str]:
        with Client(server.url, key) as client, pytest.raises(ServiceError) as caught:
            client.decide(loop, [1.0])
        return caught.value.status, str(caught.value)

    with Client(server.url, keys["browser"]) as browser:
        assert browser.decide("home", [1.0], event="seen").propensity is None
    assert refused(keys["browser"], "basket") == (403, "the key lacks the scope 'decide' for loop 'basket' (403)")
    assert refused(keys["rewards"], "home")[0] == 403
    assert [refused(key, "home")[0] for key in (None, "armlet_guess", keys["old"])] == [401, 401, 401]
    with Client(server.url, keys["rewards"]) as rewards:
        assert rewards.reward("home", "seen", 1.0) == "accepted"
        other = {"loop": "basket", "event": "seen", "value": 1.0}
        assert rewards.rewards([other]) == [Judgement("forbidden")]


def test_what_a_server_refuses_names_the_field(server: ServerProcess, keys: dict[str, str]) -> None:
    with Client(server.url, keys["all"]) as client:
        with pytest.raises(ServiceError) as caught:
            client.decide("home", {"age": "thirty"})
        assert (caught.value.status, caught.value.field) == (422, "context.age")
        assert caught.value.type == "urn:armlet:problem:invalid"
        client.decide("home", {"age": 1.0}, event="order-7")
        with pytest.raises(ServiceError) as caught:
            client.decide("home", {"age": 2.0}, event="order-7")
        assert (caught.value.status, caught.value.field) == (409, "event")
