"""A log in memory, as plain as can be, and a bandit that does what it says."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import armlet
from armlet import Bandit, Decision, Decisions, Policy


class Notebook:
    """Keeps every event as JSON; raises while it is full."""

    def __init__(self) -> None:
        self.start = b""
        self.about: dict[str, Any] = {}
        self.lines: list[str] = []
        self.is_full = False
        self.digest: Callable[[], str] = str

    def open(self, start: bytes, about: Mapping[str, Any], digest: Callable[[], str]) -> None:
        self._check()
        self.start, self.about, self.digest = start, json.loads(json.dumps(about)), digest

    def on_decision(self, decision: Decision) -> None:
        self.on_event("decide", decision.to_dict())

    def on_decisions(self, decisions: Decisions) -> None:
        self.on_events("decide", [decision.to_dict() for decision in decisions])

    def on_event(self, kind: str, fields: Mapping[str, Any]) -> None:
        self.on_events(kind, [fields])

    def on_events(self, kind: str, many: Sequence[Mapping[str, Any]]) -> None:
        self._check()
        self.lines += [json.dumps({"kind": kind, **fields}) for fields in many]

    def _check(self) -> None:
        if self.is_full:
            raise OSError("the notebook is full")

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


def replay(notebook: Notebook, policy: Policy | None = None) -> Bandit:
    """Do everything again, from the start on, by public calls alone; `policy` is its own, if it is none of Armlet's."""
    bandit = armlet.from_bytes(notebook.start, policy=policy)
    known: dict[str, Decision] = {}

    def about(event: dict[str, Any], reward: float | None = None) -> Decision:
        if "decision" in event and event["id"] not in known:
            record = event["decision"]
            known[event["id"]] = Decision.from_dict({**record, "reward": record.get("reward", reward)})
        return known[event["id"]]

    def decide(e: dict[str, Any]) -> None:
        again = bandit.decide(e["x"], eligible=e["eligible"], t=e["t"], propensity="marginal")
        assert {"kind": "decide", **again.to_dict()} == e
        known[again.id] = again

    plays: dict[str, Callable[[dict[str, Any]], object]] = {
        "learn": lambda e: bandit.learn(about(e), e["reward"], weight=e["weight"]),
        "correct": lambda e: bandit.correct(about(e, e["old_reward"]), e["old_reward"], e["new_reward"]),
        "forget": lambda e: bandit.forget(about(e, e["reward"]), e["reward"]),
        "add_arm": lambda e: bandit.add_arm(e["arm"]),
        "retire_arm": lambda e: bandit.retire_arm(e["arm"]),
        "restore_arm": lambda e: bandit.restore_arm(e["arm"]),
        "remove_arm": lambda e: bandit.remove_arm(e["arm"]),
        "advance": lambda e: bandit.replace(t=e["t"]),
        "partial_fit": lambda e: bandit.partial_fit(**{name: e[name] for name in e if name != "kind"}),
        "learn_logged": lambda e: bandit.partial_fit(e["columns"]),
        "merge": lambda e: bandit.merge(armlet.from_bytes(base64.b64decode(e["model"]), policy=policy)),
    }
    for event in notebook.events:
        decide(event) if event["kind"] == "decide" else plays[event["kind"]](event)
    return bandit
