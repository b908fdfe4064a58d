"""The part `digests`: every policy with every feature, what it played in 300 steps and what it knows then.

A cell is a line: the digest of the state and of what was played, or the text by which it is refused; a call within that
is refused stands next to the digest.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

import armlet
from armlet.actions.bandit import ActionBandit
from armlet.actions.table import ActionTable
from armlet.bandit import Bandit
from armlet.errors import ArmletError
from armlet.policies import POLICIES
from armlet.testing.lives import other_settings
from armlet.testing.product import SETTINGS
from armlet.types import Float64
from records.record import Texts, facts, short
from records.scribe import shown

STEPS: Final = 300
ARMS: Final = ("a", "b", 3)
TIME: Final = 1.75e9
WEIGHTS: Final = {"gain": 1.0, "cost": -2.0}
PRICES: Final = {"a": 0.125, "b": 0.25, 3: 0.5, "d": 1.0}
Event: TypeAlias = Callable[["Cell"], object]


@dataclass(frozen=True, slots=True)
class Feature:
    """What a bandit is made with, what its policy is made with, and what happens at which steps."""

    options: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] | None = None
    deciding: Callable[[int], dict[str, Any]] | None = None
    happens: tuple[tuple[int, Event], ...] = ()  # each so many steps


class Cell:
    """The life of one bandit."""

    def __init__(self, bandit: Any, feature: Feature, log: armlet.Log | None = None) -> None:
        self.bandit, self.feature, self.log = bandit, feature, log
        self.rng = np.random.default_rng(20131017)
        self.made: list[Any] = []  # the last ones
        self.played: list[str] = []
        self.refused: dict[str, str] = {}
        self.several = getattr(bandit.settings, "outcomes", None) is not None
        self.is_binary = getattr(bandit.policy, "rewards", "") == "binary"

    def live(self) -> str:
        """Live; return the line of the cell."""
        for i in range(1, STEPS + 1):
            self.step(i)
        digest = f"{self.bandit.digest()[:16]} {short(' '.join(self.played))}"
        return "; ".join([digest, *(f"{name}: {text}" for name, text in self.refused.items())])

    def step(self, i: int) -> None:
        """Decide, learn, and let happen what is due."""
        how = self.feature.deciding(i) if self.feature.deciding else {}
        made = self.call("decide", lambda: self.bandit.decide(self.context(), *self.tables(), **how))
        if made is not None:
            self.made = [*self.made[-19:], made]
            self.played.append(f"{made.arm!r} {made.propensity!r} {made.explored}")
        if i % 4 and made is not None:
            self.call("learn", lambda: self.bandit.learn(made, self.reward(i)))
        for every, happen in self.feature.happens:
            if i % every == 0:
                self.call(happen.__name__.strip("_"), partial(happen, self))

    def call(self, name: str, act: Callable[[], Any]) -> Any:
        """Call; a refusal is kept, the first of each name."""
        try:
            return act()
        except ArmletError as error:
            self.refused.setdefault(name, shown(error))
            return None

    def context(self) -> Any:
        return self.rng.integers(-8, 9, size=self.bandit.settings.dim) / 4

    def tables(self) -> tuple[Any, ...]:
        return ()

    def reward(self, i: int) -> Any:
        value = float(self.rng.integers(-8, 9)) / 8
        if self.is_binary:
            value = float(value > 0)
        return {"gain": value, "cost": (i % 5) / 8} if self.several else value

    def learned(self) -> Any:
        """Return the last decision but some that was learned and is still known."""
        return next((each for each in reversed(self.made[:-5]) if each.learned), None)


class ActionCell(Cell):
    """The life of a bandit of actions."""

    table: ActionTable | None = None

    def tables(self) -> tuple[Any, ...]:
        if self.table is None:
            Z = self.rng.integers(-8, 9, size=(6, 2)) / 4
            self.table = ActionTable([f"film {i}" for i in range(6)], Z, names=["genre", "year"])
        return (self.table,)


# ---- happenings


def _correct(cell: Cell) -> None:
    decision = cell.learned()
    if decision is not None:
        cell.bandit.correct(decision, decision.reward, cell.reward(1))


def _forget(cell: Cell) -> None:
    decision = cell.learned()
    if decision is not None:
        cell.bandit.forget(decision, decision.reward)


def _expire(cell: Cell) -> None:
    cell.bandit.expire(cell.made[-1])


def _policy(cell: Cell) -> None:
    cell.bandit.replace(policy=other_settings(cell.bandit.policy))


def _clock(cell: Cell) -> None:
    cell.bandit.replace(t=cell.bandit.t + 5)


def _merge(cell: Cell) -> None:
    before, other = cell.bandit.copy(), cell.bandit.copy(seed=100 + len(cell.played))
    how = cell.feature.deciding(0) if cell.feature.deciding else {}
    for i in range(3):
        other.learn(other.decide(cell.context(), *cell.tables(), **how), cell.reward(i))
    cell.bandit.merge(other.difference(before))


def _arms(cell: Cell) -> None:
    arms = cell.bandit.arms
    if "d" not in arms:
        cell.bandit.add_arm("d")
    elif "b" not in arms.retired:
        cell.bandit.retire_arm("b")
    else:
        cell.bandit.restore_arm("b")
        cell.bandit.remove_arm("d")


def _features(cell: Cell) -> None:
    names = list(cell.bandit.settings.features)
    other = ["v", "u", "w"] if len(names) == 2 else ["u", "v"]
    cell.bandit.replace(features=other, **({"fill": {"w": 0.5}} if "w" in other else {}))
    cell.made = []


def _ranges(cell: Cell) -> None:
    wide = cell.bandit.settings.reward_range
    cell.bandit.replace(reward_range=(-2.0, 2.0) if wide in (None, (-4.0, 4.0)) else (-4.0, 4.0))


def _contexts(cell: Cell) -> None:
    now = cell.bandit.settings.feature_range
    cell.bandit.replace(feature_range={"u": (-1.5, 1.5, "clip")} if now is None else None)


def _file(cell: Cell) -> None:
    cell.bandit, cell.made = armlet.from_bytes(cell.bandit.to_bytes()), []


def _many(cell: Cell) -> None:
    X = np.array([cell.context() for _ in range(4)])
    made = cell.bandit.decide_many(X, *cell.tables())
    cell.played += [f"{each.arm!r} {each.propensity!r}" for each in made]
    rewards: Any = [cell.reward(i) for i in range(4)]
    if cell.several:
        rewards = {name: [each[name] for each in rewards] for name in rewards[0]}
    cell.bandit.learn_many(made, rewards)


def _fit(cell: Cell) -> None:
    X: Float64 = np.array([cell.context() for _ in range(4)])
    rewards: Any = [cell.reward(i) for i in range(4)]
    if cell.several:
        rewards = {name: [each[name] for each in rewards] for name in rewards[0]}
    cell.bandit.partial_fit(X, ["a", "b", 3, "a"], rewards, explored=True)


def _parts(cell: Cell) -> None:
    decision = cell.bandit.decide(cell.context(), weights={"cost": -4.0})
    cell.played.append(f"{decision.arm!r} {decision.propensity!r}")
    cell.bandit.learn(decision, {"cost": 0.5})
    cell.bandit.learn(decision, {"gain": 0.25})


def _budget(cell: Cell) -> None:
    now = cell.bandit.settings.budget
    total = 30.0 if now is not None and now.total != 30.0 else 20.0
    cell.bandit.replace(budget=armlet.Budget("cost", total=total, horizon=200))


def _weighted(cell: Cell) -> None:
    cell.bandit.learn(cell.bandit.decide(cell.context(), *cell.tables()), cell.reward(1), weight=2.0)


def _prepare(cell: Cell) -> None:
    cell.bandit.prepare("all", cell.tables()[0])
    cell.bandit.decide(cell.context(), "all")
    cell.bandit.remove_table("all")


def _tables(cell: Cell) -> None:
    (table,) = cell.tables()
    new = {f"film {len(cell.played)}": cell.rng.integers(-8, 9, size=2) / 4}
    cell.table = table.changed(add=new, remove=[table.labels[0]])  # type: ignore[attr-defined]


def _at(i: int) -> dict[str, Any]:
    return {"at": TIME + 600.0 * i}


OUTCOMES: Final[dict[str, Any]] = {"outcomes": WEIGHTS}
MONEY: Final[dict[str, Any]] = {**OUTCOMES, "reward_range": {"gain": (-1, 1), "cost": (0, 1)}}
SHARED: Final[dict[str, Feature]] = {
    "plain": Feature(),
    "objective": Feature({"objective": "min"}),
    "reward_range": Feature({"reward_range": (-1, 1)}, happens=((40, _ranges),)),
    "normalize": Feature({"normalize": "l2"}),
    "correct": Feature(happens=((10, _correct),)),
    "forget": Feature(happens=((10, _forget),)),
    "expire": Feature(happens=((8, _expire),)),
    "merge": Feature(happens=((50, _merge),)),
    "policy": Feature(happens=((90, _policy),)),
    "clock": Feature(happens=((60, _clock),)),
    "file": Feature(happens=((70, _file),)),
    "log": Feature(happens=((30, _forget), (50, _merge))),
    "many": Feature(happens=((30, _many),)),
    "weight": Feature(happens=((20, _weighted),)),
    "marginal": Feature(deciding=lambda _: {"propensity": "marginal"}),
    "probabilities": Feature(deciding=lambda _: {"probabilities": "all"}),
    "features": Feature(happens=((80, _features),)),
    "all of it": Feature(
        {"reward_range": (-1, 1)}, happens=((10, _correct), (15, _forget), (50, _merge), (60, _many), (70, _file))
    ),
}
FEATURES: Final[dict[str, Feature]] = {
    **SHARED,
    "units": Feature({"units": "as given"}),
    "feature_range": Feature({"feature_range": {"u": (-1.5, 1.5, "clip")}}, happens=((60, _contexts),)),
    "eligible": Feature(deciding=lambda i: {"eligible": ["a", 3]} if i % 3 else {}),
    "arms": Feature(happens=((25, _arms),)),
    "fit": Feature(happens=((40, _fit),)),
    "epoch": Feature({"epoch": 25}, deciding=lambda i: {"unit": f"user {i % 5}"} if i % 3 else {}),
    "discount": Feature(settings={"discount": 0.97}),
    "half_life": Feature(settings={"half_life": 30}),
    "half_life by time": Feature(settings={"half_life": "3 hours"}, deciding=_at),
    "discount, correct, forget, merge": Feature(
        settings={"discount": 0.97}, happens=((10, _correct), (15, _forget), (50, _merge))
    ),
    "half_life by time, forget, merge": Feature(
        settings={"half_life": "3 hours"}, deciding=_at, happens=((15, _forget), (50, _merge), (70, _file))
    ),
    "outcomes": Feature(OUTCOMES, happens=((20, _parts),)),
    "outcomes, correct, forget, merge": Feature(OUTCOMES, happens=((10, _correct), (15, _forget), (50, _merge))),
    "outcomes, discount": Feature(OUTCOMES, settings={"discount": 0.97}, happens=((20, _parts), (15, _forget))),
    "outcomes, half_life by time": Feature(OUTCOMES, settings={"half_life": "3 hours"}, deciding=_at),
    "outcomes, arms, many, fit": Feature(OUTCOMES, happens=((25, _arms), (30, _many), (40, _fit), (70, _file))),
    "outcomes, features": Feature(MONEY, happens=((80, _features), (20, _parts))),
    "known": Feature({"outcomes": {**WEIGHTS, "delay": -0.5}, "known": {"delay": PRICES}}),
    "known, arms, forget": Feature(
        {"outcomes": {**WEIGHTS, "delay": -0.5}, "known": {"delay": PRICES}}, happens=((25, _arms), (15, _forget))
    ),
    "budget": Feature(
        {**MONEY, "budget": armlet.Budget("cost", total=40.0, horizon=300)}, happens=((20, _parts), (90, _budget))
    ),
    "budget, correct, forget": Feature(
        {**MONEY, "budget": armlet.Budget("cost", total=20.0, period=50)}, happens=((10, _correct), (15, _forget))
    ),
    "hard budget": Feature({**MONEY, "budget": armlet.Budget("cost", total=150.0, horizon=300, hard=True)}),
    "hard budget, epoch, discount": Feature(
        {**MONEY, "budget": armlet.Budget("cost", total=40.0, period=50, hard=True), "epoch": 25},
        settings={"discount": 0.97},
        deciding=lambda i: {"unit": f"user {i % 5}"} if i % 3 else {},
    ),
    "epoch, forget, file": Feature(
        {"epoch": 25}, deciding=lambda i: {"unit": f"user {i % 5}"}, happens=((15, _forget), (70, _file))
    ),
}
OF_ACTIONS: Final[dict[str, Feature]] = {
    **SHARED,
    "eligible": Feature(deciding=lambda i: {"eligible": ["film 1", "film 3"]} if i % 3 else {}),
    "tables": Feature(happens=((25, _tables),)),
    "prepared": Feature(happens=((30, _prepare), (45, _tables))),
    "discount": Feature(settings={"discount": 0.97}),
    "outcomes": Feature(OUTCOMES),
    "epoch": Feature({"epoch": 25}),
}


def make() -> Texts:
    """Fill in all cells."""
    kinds: dict[str, Any] = {name: POLICIES[name] for name in POLICIES if name != "Oracle"}
    table: dict[str, dict[str, str]] = {}
    for name, kind in kinds.items():
        table[name] = {feature: cell(kind, SETTINGS.get(name, {}), each) for feature, each in FEATURES.items()}
    actions: dict[str, Any] = {
        "SharedOptimism": armlet.SharedOptimism(),
        "SharedThompson": armlet.SharedThompson(),
        "SharedThompson, no intercepts": armlet.SharedThompson(v=0.5, intercepts=False),
    }
    for name, policy in actions.items():
        table[name] = {feature: action_cell(policy, each, feature) for feature, each in OF_ACTIONS.items()}
    return {"digests.json": facts(table)}


def cell(kind: Any, settings: Mapping[str, Any], feature: Feature) -> str:
    """Return the line of a policy of arms with a feature."""

    def make(log: armlet.Log | None) -> Bandit:
        policy = kind(**{**settings, **(feature.settings or {})})
        how: dict[str, Any] = {"features": ["u", "v"], **(feature.options or {})}
        return armlet.Bandit(list(ARMS), policy=policy, seed=11, log=log, **how)

    return _line(make, Cell, feature, is_logged=feature is SHARED["log"])


def action_cell(policy: Any, feature: Feature, name: str) -> str:
    """Return the line of a policy of actions with a feature."""

    def make(log: armlet.Log | None) -> ActionBandit:
        own = replace(policy, **feature.settings) if feature.settings else policy
        how: dict[str, Any] = {"features": ["u", "v"], "action_features": ["genre", "year"], **(feature.options or {})}
        return ActionBandit(policy=own, seed=11, log=log, **how)

    return _line(make, ActionCell, feature, is_logged=name == "log")


def _line(make: Callable[[armlet.Log | None], Any], kind: type[Cell], feature: Feature, *, is_logged: bool) -> str:
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        log = armlet.Log(Path(folder) / "log.jsonl") if is_logged else None
        try:
            bandit = make(log)
        except ArmletError as error:
            return f"refused: {shown(error)}"
        line = kind(bandit, feature, log).live()
        if log is None:
            return line
        log.close()
        return f"{line}; audit {armlet.audit(log.path, log.start_path).digest[:16]}"
