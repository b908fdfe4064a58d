"""The fuzzer of bandits of actions: good and bad contexts, tables, decisions and files, in any order."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import armlet
from armlet import ActionBandit, ActionDecision, ActionTable, HashedFeatures, SharedOptimism, SharedThompson
from armlet.disk import decode_model, encode_model
from fuzz import values
from fuzz.faults import Fault, judge, require

LENGTH = 60  # calls in a case
PLENTY = 30  # decisions that are kept to play with
SCALES = (1.0, 1.0, 1.0, 1e-100, 1e-12, 1e12, 1e24, 1e40)

CALLS: dict[str, tuple[Callable[..., object] | str, ...]] = {
    "partial_fit": (ActionBandit.partial_fit, "x", "z", "arm", "reward"),
    "merge": (ActionBandit.merge, ActionBandit),
    "prepare": (ActionBandit.prepare, ActionBandit.table),
    "change": (ActionTable.changed, ActionBandit.prepare),
    "read": (ActionBandit.predict_proba, ActionBandit.explain),
    "reload": (armlet.from_bytes,),
}
"""The public calls that a method here makes, if not the one of its name, and columns of its table."""


def play(case: int) -> int:
    """Play one case; how many calls it made. Raises a Fault."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        session = ActionSession(case)
        for step in range(LENGTH):
            session.call(step)
        return LENGTH


class ActionSession:
    """A bandit of actions under attack, its decisions, and another one to merge."""

    def __init__(self, case: int) -> None:
        self.rng = rng = Random(case)
        self.dim, self.action_dim = rng.choice((0, 1, 3)), rng.choice((1, 2, 5))
        self.scale = rng.choice(SCALES)
        shared: dict[str, Any] = {"interactions": rng.choice(("all", "none")), "intercepts": rng.random() < 0.7}
        policy: Any = SharedOptimism(share=rng.choice((0.0, 0.2, 1.0)), **shared)
        if rng.random() < 0.4:
            policy = SharedThompson(draws=rng.choice((1, 3)), v=rng.choice((0.1, 1.0)), **shared)
        self.settings: dict[str, Any] = {"policy": policy, "objective": rng.choice(("max", "min"))}
        self.hashes = rng.random() < 0.1
        self.bandit, self.other = self.make(case), self.make(case + 1)
        self.decisions: list[ActionDecision] = []

    def make(self, seed: int) -> ActionBandit:
        if self.hashes:
            return ActionBandit(self.dim, action_encoder=HashedFeatures(self.action_dim), seed=seed, **self.settings)
        return ActionBandit(self.dim, self.action_dim, seed=seed, **self.settings)

    def call(self, step: int) -> None:
        """Make a call; a refused one must leave everything as it was."""
        name = self.rng.choice(MENU)
        before = self.bandit.to_bytes()
        decisions = [(d, d.learned, d.expired, d.reward) for d in self.decisions]
        try:
            getattr(self, name)()
        except Fault:
            raise
        except Exception as error:
            calls = CALLS[name] if name in CALLS else (getattr(ActionBandit, name),)
            judge(error, f"call {step}, {name}", *calls, "bandit")
            now = [(d, d.learned, d.expired, d.reward) for d, *_ in decisions]
            what = f"call {step}, {name}, was refused ({error!r:.200}) but changed something"
            require(self.bandit.to_bytes() == before and now == decisions, lambda: what)

    # ---- what to call with

    def number(self) -> Any:
        kind = self.rng.random()
        if kind < 0.85:
            return self.scale * self.rng.uniform(-1, 1)
        return self.rng.choice(values.EXTREMES if kind < 0.95 else (*values.WRONG, *values.ODD))

    def row(self, dim: int) -> Any:
        if self.rng.random() < 0.05:
            return self.rng.choice((*values.WRONG, *values.ODD))
        given = [self.number() for _ in range(dim if self.rng.random() < 0.97 else dim + 1)]
        if self.rng.random() < 0.5:
            return given
        try:
            return np.array(given)
        except (TypeError, ValueError, OverflowError):  # of no one shape, which is numpy's refusal
            return given

    def label(self) -> Any:
        return self.rng.choice(
            ("a", "b", "c", "d", "e", 0, 1, 2, "0", "é\0", 10**30) + ((1.5, None) if self.odd() else ())
        )

    def odd(self) -> bool:
        return self.rng.random() < 0.03

    def table(self) -> Any:
        kind, n = self.rng.random(), self.rng.choice((1, 1, 2, 3, 6))
        if kind < 0.1:
            return self.rng.choice(("films", "nothing", None, 3, [], {}, ((), ())))
        if self.hashes and kind < 0.8:
            return {self.label(): {f"n{self.rng.randrange(9)}": self.number()} for _ in range(n)}
        if kind < 0.6:
            return {self.label(): self.row(self.action_dim) for _ in range(n)}
        labels = [self.label() for _ in range(n)]
        Z = np.array([[self.scale * self.rng.uniform(-1, 1) for _ in range(self.action_dim)] for _ in labels])
        return (labels, Z) if kind < 0.9 else ActionTable(labels, Z)

    def eligible(self) -> Any:
        kind = self.rng.random()
        return None if kind < 0.7 else [self.label() for _ in range(3)] if kind < 0.9 else np.array([True, False, True])

    # ---- calls

    def decide(self) -> None:
        x, table, eligible = self.row(self.dim), self.table(), self.eligible()
        propensity: Any = self.rng.choice((None, "marginal"))
        decision = self.bandit.decide(x, table, eligible=eligible, propensity=propensity)
        known = self.bandit.table(table)
        require(decision.arm in known, lambda: f"played {decision.arm!r}, which is not in the table")
        require(0 < decision.propensity <= 1, lambda: f"played with propensity {decision.propensity!r}")
        support = decision.support
        require(support is None or abs(sum(support.values()) - 1) < 1e-9, lambda: f"the support is {support}")
        require(np.array_equal(decision.z, known[decision.arm]), lambda: "the features are another action's")
        self.decisions = [*self.decisions[-PLENTY:], decision]

    def decide_many(self) -> None:
        made = self.bandit.decide_many([self.row(self.dim) for _ in range(3)], self.table(), eligible=self.eligible())
        self.decisions = [*self.decisions[-PLENTY:], *made]

    def some(self) -> ActionDecision:
        if not self.decisions or self.odd():
            return self.rng.choice((None, 1, object()))  # type: ignore[return-value]
        decision = self.rng.choice(self.decisions)
        return (
            decision
            if self.rng.random() < 0.7
            else ActionDecision.from_dict(json.loads(json.dumps(decision.to_dict())))
        )

    def learned(self, decision: ActionDecision) -> Any:
        reward = getattr(decision, "reward", None)
        return self.number() if reward is None or self.odd() else reward

    def learn(self) -> None:
        self.bandit.learn(self.some(), self.number(), **({"weight": self.number()} if self.odd() else {}))

    def learn_many(self) -> None:
        some = [self.some() for _ in range(self.rng.randrange(4))]
        self.bandit.learn_many(some, [self.number() for _ in some])

    def correct(self) -> None:
        decision = self.some()
        old = self.learned(decision)
        self.bandit.correct(decision, old, self.number(), folded=self.rng.choice(("refuse", "approximate")))

    def forget(self) -> None:
        decision = self.some()
        old = self.learned(decision)
        self.bandit.forget(decision, old, folded=self.rng.choice(("refuse", "approximate")))

    def expire(self) -> None:
        self.bandit.expire(self.some())

    def partial_fit(self) -> None:
        n = self.rng.randrange(4)
        rows = {"x": [self.row(self.dim) for _ in range(n)], "z": [self.row(self.action_dim) for _ in range(n)]}
        self.bandit.partial_fit(
            {**rows, "arm": [self.label() for _ in range(n)], "reward": [self.number() for _ in range(n)]}
        )

    def prepare(self) -> None:
        name: Any = self.rng.choice(("films", "films", "", None))
        self.bandit.prepare(name, self.table())

    def remove_table(self) -> None:
        self.bandit.remove_table(self.rng.choice(("films", "", "film")))

    def change(self) -> None:
        table = self.bandit.tables.get("films")
        if table is not None:
            changed = table.changed({self.label(): self.row(self.action_dim)}, [self.label()] if self.odd() else ())
            require(ActionTable.from_fields(changed.fields(table), lambda _: table) == changed, lambda: "another table")
            self.bandit.prepare("films", changed)

    def read(self) -> None:
        x, table, before = self.row(self.dim), self.table(), self.bandit.to_bytes()
        chances = self.bandit.predict_proba(x, table, eligible=self.eligible())
        require(abs(chances.sum() - 1) < 1e-9, lambda: f"probabilities sum to {chances.sum()}")
        require(
            bool(np.isfinite(self.bandit.predict_expectations(x, table)).all()), lambda: "an estimate is not finite"
        )
        self.bandit.predict(x, table)
        self.bandit.explain(x, table, n=self.rng.choice((1, 3, 0)))
        repr(self.bandit)
        require(self.bandit.to_bytes() == before, lambda: "reading changed the bandit")

    def merge(self) -> None:
        actions: Any = {"a": [0.5] * self.action_dim, "b": [1.0] * self.action_dim}
        decision = self.other.decide([0.5] * self.dim, actions)
        self.other.learn(decision, 1.0)
        self.bandit.merge(self.other)
        self.other = self.make(self.rng.randrange(2**60))

    def replace(self) -> None:
        kind = self.rng.randrange(4)
        if kind == 0:
            self.bandit.replace(t=self.rng.choice((self.bandit.t + 3, 0, -1, 2**63)))
        elif kind == 1:
            self.bandit.replace(seed=self.rng.choice((self.rng.randrange(2**60), -1)))
        elif kind == 2:
            self.bandit.replace(reward_range=(self.number(), self.number()))
        else:
            policy = self.bandit.policy
            self.bandit.replace(
                policy=SharedThompson(draws=2, interactions=policy.interactions, intercepts=policy.intercepts)
            )

    def reload(self) -> None:
        twin = armlet.from_bytes(self.bandit.to_bytes(), kind=ActionBandit)
        require(twin.digest() == self.bandit.digest(), lambda: "a bandit from a file has another digest")
        self.bandit = twin

    def damage(self) -> None:
        """Read a file in which a value of the header or of an array was changed, and its checksum made again."""
        header, arrays = decode_model(self.bandit.to_bytes())
        if self.rng.random() < 0.5:
            name = self.rng.choice(sorted(header))
            strange: Any = self.rng.choice((None, 0, -1, 10**9, "x", [], {}, [[]], {"a": 1}, 1.5, True))
            header[name] = strange
        else:
            name = self.rng.choice(sorted(arrays))
            array = arrays[name].copy().reshape(-1)
            if array.size:
                wild = (0, -1, 2**40) if array.dtype.kind == "i" else (0, -1, 1e300, float("nan"), -1e-300, 2**40)
                array[self.rng.randrange(array.size)] = self.rng.choice(wild)
            arrays[name] = array.reshape(arrays[name].shape) if self.rng.random() < 0.9 else array[:-1]
        try:
            twin = armlet.from_bytes(encode_model(header, arrays), kind=ActionBandit)
        except armlet.errors.ModelFileError:
            return
        try:
            decision = twin.decide(np.full(twin.settings.dim, 0.5), {"a": [0.5] * twin.settings.action_dim})
            twin.learn(decision, 0.5)
        except armlet.ArmletError as error:
            judge(error, "a step of a damaged bandit", ActionBandit.decide, ActionBandit.learn, "bandit")


MENU = (
    *("decide",) * 12,
    *("decide_many", "learn_many", "partial_fit", "read", "read", "merge", "replace", "reload", "damage"),
    *("learn",) * 10,
    *("correct", "forget", "forget", "expire", "prepare", "change", "remove_table"),
)
