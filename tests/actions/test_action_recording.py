"""What a recorder hears of a bandit of actions and may refuse; threads; and how things show themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import ActionBandit, ActionDecision, ActionTable, SharedThompson
from armlet.errors import InvalidTypeError

ACTIONS = {"tea": [1.0], "milk": [2.0], "water": [0.0]}


class Heard:
    """A recorder that keeps every event, and rejects those of some kinds."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []
        self.refuses = ""

    def hear(self, kind: str, what: Any) -> None:
        if kind == self.refuses:
            raise OSError("the disk is full")
        self.events.append((kind, what))

    def open(self, start: bytes, about: Mapping[str, Any], digest: Callable[[], str]) -> None:
        assert about["action_dim"] == 1
        assert armlet.from_bytes(start, kind=ActionBandit).digest() == about["digest"] == digest()

    def on_actions(self, table: ActionTable, name: str | None = None) -> None:
        self.hear("actions", (table.hash, name))

    def on_decision(self, decision: ActionDecision) -> None:
        self.hear("decide", decision.to_dict())

    def on_event(self, kind: str, fields: Mapping[str, Any]) -> None:
        self.hear(kind, fields)

    def on_events(self, kind: str, many: Sequence[Mapping[str, Any]]) -> None:
        for each in many:
            self.hear(kind, each)


def recorded() -> tuple[ActionBandit, Heard]:
    log = Heard()
    return ActionBandit(1, 1, seed=3, log=log), log


def test_a_recorder_hears_tables_before_their_decisions_and_changes_before_they_happen() -> None:
    bandit, log = recorded()
    table = bandit.prepare("drinks", ACTIONS)
    decision = bandit.decide([0.5], "drinks")
    bandit.learn(decision, 1.0)
    bandit.correct(decision, 1.0, 2.0)
    bandit.forget(decision, 2.0)
    other = bandit.decide([0.5], "drinks")
    bandit.expire(other)
    bandit.replace(policy=SharedThompson(draws=3))
    bandit.replace(t=7)
    bandit.replace(reward_range=(0, 9))
    bandit.partial_fit({"x": [[1.0]], "z": [[1.0]], "arm": ["tea"], "reward": [1.0]})
    bandit.remove_table("drinks")
    assert [kind for kind, _ in log.events] == [
        *("actions", "actions", "decide", "learn", "correct", "forget", "actions", "decide", "expire"),
        *("replace", "advance", "replace", "learn_logged", "remove_table"),
    ]
    assert log.events[0][1] == (table.hash, "drinks")
    events = dict(log.events)
    assert events["remove_table"] == {"name": "drinks"}
    assert events["learn"] == {"id": decision.id, "reward": 1.0, "weight": 1.0}
    assert log.events[2][1]["actions"] == table.hash
    assert decision.marginal


def test_a_decision_that_the_recorder_never_heard_comes_with_its_record() -> None:
    bandit, log = recorded()
    decision = bandit.decide([0.5], ACTIONS)
    bandit.learn(ActionDecision.from_dict(decision.to_dict()), 1.0)
    assert log.events[-1][1]["decision"] == decision.to_dict()


def test_a_refused_decision_is_expired_and_has_used_its_step() -> None:
    bandit, log = recorded()
    log.refuses = "decide"
    with pytest.raises(OSError, match="full"):
        bandit.decide([0.5], ACTIONS)
    assert bandit.t == 1
    log.refuses = "actions"
    with pytest.raises(OSError, match="full"):
        bandit.decide([0.5], ACTIONS)
    assert bandit.t == 1


@pytest.mark.parametrize(
    "kind", ["learn", "correct", "forget", "expire", "replace", "merge", "learn_logged", "advance"]
)
def test_a_change_that_the_recorder_refuses_does_not_happen(kind: str) -> None:
    bandit, log = recorded()
    old, new = (bandit.decide([0.5], ACTIONS) for _ in range(2))
    bandit.learn(old, 1.0)
    calls: dict[str, Callable[[], object]] = {
        "learn": lambda: bandit.learn_many([new], [1.0]),
        "correct": lambda: bandit.correct(old, 1.0, 2.0),
        "forget": lambda: bandit.forget(old, 1.0),
        "expire": lambda: bandit.expire(new),
        "replace": lambda: bandit.replace(policy=SharedThompson()),
        "merge": lambda: bandit.merge(ActionBandit(1, 1, seed=9)),
        "learn_logged": lambda: bandit.partial_fit({"x": [[1.0]], "z": [[1.0]], "arm": ["tea"], "reward": [1.0]}),
        "advance": lambda: bandit.replace(t=99),
    }
    before, log.refuses = bandit.to_bytes(), kind
    with pytest.raises(OSError, match="full"):
        calls[kind]()
    assert bandit.to_bytes() == before
    assert (old.learned, old.reward, new.learned, new.expired) == (True, 1.0, False, False)


def test_a_recorder_of_arms_alone_is_refused() -> None:
    class Deaf(Heard):
        on_actions = None  # type: ignore[assignment]

    with pytest.raises(InvalidTypeError, match="no on_actions"):
        ActionBandit(1, 1, log=Deaf())  # type: ignore[arg-type]


def test_threads_take_turns() -> None:
    bandit = ActionBandit(2, 2, seed=1)
    rng = np.random.default_rng(1)
    bandit.prepare("all", {f"item-{i}": rng.normal(size=2) for i in range(20)})

    def work(number: int) -> None:
        own = np.random.default_rng(number)
        for _ in range(50):
            bandit.learn(bandit.decide(own.normal(size=2), "all"), float(own.normal()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (bandit.t, bandit.state.n) == (300, 300.0)


def test_things_show_themselves() -> None:
    bandit = ActionBandit(features=["age"], action_features=["price"], seed=1)
    table = bandit.prepare("drinks", ACTIONS)
    for _ in range(20):
        decision = bandit.decide([0.5], "drinks")
        bandit.learn(decision, float(decision.z[0]))
    assert "drinks" in bandit._repr_html_()
    assert "rows=20" in repr(bandit)
    assert "price" in table._repr_html_()
    assert "propensity" in decision._repr_html_()
    found = bandit.explain([0.5], "drinks", n=2)
    assert found.arms[0] == "milk"
    assert found.estimates == sorted(found.estimates, reverse=True)
    assert min(found.evidence) > 0
    assert "milk" in str(found)
