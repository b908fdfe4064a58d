"""Every public call that changes a bandit or its log, each in a small world: what `interrupts` breaks off."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

import armlet
from armlet import ActionBandit, Bandit, Budget
from armlet.lost_digits import keeping_rows
from support.faults.interrupts import Call, World
from support.in_python import InPython

ROW = [1.0, 0.5]
ACTIONS = {"tea": [2.0, 0.0], "cocoa": [3.0, 1.0], "milk": [1.0, 0.5]}
TABLE = {"t": [90, 91], "x": [ROW, ROW], "arm": ["a", "b"], "reward": [0.5, 1.0], "propensity": [0.5, 0.5]}
PAIRS = {"x": [[0.5], [0.1]], "z": [[1.0, 0.0], [2.0, 1.0]], "arm": ["milk", "tea"], "reward": [0.0, 1.0]}


def due(world: World) -> World:
    """Have the next decision bring a checkpoint."""
    if world.log is not None:
        world.log._journal.lines.due = 0
    return world


def resume(kind: type[Bandit | ActionBandit], world: World) -> None:
    """Go on with the log of another process."""
    world.log = armlet.Log(world.folder / "a.jsonl", flush=world.flush or "block")
    world.bandit = armlet.log.resume(world.log, kind=kind)


def left(make: Callable[[World], None], world: World) -> None:
    """Leave a log behind that nobody has closed."""
    make(world)
    if world.log is not None:
        world.log._journal.close()


def nothing(world: World) -> None:
    """Leave it to the call to make a bandit."""


# ---- bandits with arms


def begin(policy: Any, world: World) -> None:
    """Make a bandit, and begin its log."""
    if not isinstance(policy, armlet.ContextualEpsilonGreedy):
        world.held["policy"] = policy  # which a replay must be given
    world.bandit = Bandit(
        ["a", "b", "c", "d"], features=["u", "v"], policy=policy, reward_range=(0, 9), seed=7, **world.open()
    )


def new_bandit(policy: Any, world: World) -> None:
    """Make a bandit that has learned, and hold a decision that waits, one that was learned and one without a reward."""
    begin(policy, world)
    for step in range(2):
        decision = world.bandit.decide([1.0, step / 2])
        world.bandit.learn(decision, step / 2)
        world.held[f"learned {step}"] = decision
    world.held |= {f"pending {i}": world.bandit.decide([0.5, i]) for i in range(2)}
    world.bandit.retire_arm("d")
    if world.log is not None:
        world.log.flush()


def again(world: World) -> None:
    """Use a bandit."""
    world.bandit.learn(world.bandit.decide(ROW), 1.0)


@cache
def worker(policy: Any) -> Bandit:
    """Return another bandit with the same settings that has learned something."""
    other = Bandit(["a", "e"], features=["u", "v"], policy=policy, reward_range=(0, 9), seed=8)
    other.learn(other.decide(ROW), 0.5)
    return other.partial_fit([ROW], ["a"], [0.5], design="randomized")


BANDIT: dict[str, Callable[[World], object]] = {
    "decide": lambda w: w.bandit.decide(ROW),
    "decide and checkpoint": lambda w: due(w).bandit.decide(ROW),
    "decide_many": lambda w: w.bandit.decide_many([ROW, ROW]),
    "learn": lambda w: w.bandit.learn(w.held["pending 0"], 1.0),
    "learn_many": lambda w: w.bandit.learn_many([w.held["pending 0"], w.held["pending 1"]], [1.0, 0.5]),
    "correct": lambda w: w.bandit.correct(w.held["learned 1"], 0.5, 2.0),
    "forget": lambda w: w.bandit.forget(w.held["learned 1"], 0.5),
    "expire": lambda w: w.bandit.expire(w.held["pending 0"]),
    "add_arm": lambda w: w.bandit.add_arm("e"),
    "retire_arm": lambda w: w.bandit.retire_arm("c"),
    "restore_arm": lambda w: w.bandit.restore_arm("d"),
    "remove_arm": lambda w: w.bandit.remove_arm("d"),
    "partial_fit": lambda w: w.bandit.partial_fit([ROW, ROW], ["a", "b"], [0.5, 1.0], design="randomized"),
    "partial_fit of a table": lambda w: w.bandit.partial_fit({**TABLE, "explored": [True, True]}),
    "merge": lambda w: w.bandit.merge(worker(w.bandit.policy)),
    "replace t": lambda w: w.bandit.replace(t=50),
    "replace policy": lambda w: w.bandit.replace(policy=type(w.bandit.policy)(p=9)),
    "replace reward_range": lambda w: w.bandit.replace(reward_range=(0, 10)),
    "replace features": lambda w: w.bandit.replace(features=["u", "v", "w"], fill={"w": 0.0}),
}
LOG: dict[str, Callable[[World], object]] = {
    "note": lambda w: w.log and w.log.note(w.held["pending 0"], source="test"),
    "flush": lambda w: w.log and w.log.flush(),
    "sync": lambda w: w.log and w.log.sync(),
    "close": lambda w: w.log and w.log.close(),
}


def wide(world: World) -> None:
    """Use a bandit, after its features were replaced perhaps."""
    world.bandit.learn(world.bandit.decide([1.0, 0.5, 0.0][: world.bandit.settings.dim]), 1.0)


def bandit_calls(policy: Any) -> dict[str, Call]:
    """Return all calls of a bandit with this policy."""
    make = partial(new_bandit, policy)
    calls = {
        name: Call(name, make, call, wide if name == "replace features" else again)
        for name, call in (BANDIT | LOG).items()
    }
    return calls | {"begin": Call("begin", nothing, partial(begin, policy), again, begins=True)}


COMPILED = bandit_calls(armlet.ContextualEpsilonGreedy(p=8))
RESUME = Call("resume", partial(left, COMPILED["learn"].make), partial(resume, Bandit), again, begins=True)
WITHOUT_A_LOG: dict[str, Callable[[World], object]] = {
    "fit": lambda w: w.bandit.fit([ROW, ROW], ["a", "b"], [0.5, 1.0], explored=True, design="randomized"),
    "replace seed": lambda w: w.bandit.replace(seed=9),
}
COMPILED_ALONE = {name: Call(name, COMPILED["learn"].make, call, again) for name, call in WITHOUT_A_LOG.items()}
NAMED = ("merge", "replace policy")  # whose events name a policy that no replay can find
IN_PYTHON = {name: call for name, call in bandit_calls(InPython(p=8)).items() if name in BANDIT and name not in NAMED}


# ---- bandits with several outcomes, a budget, units and ranges

BOTH = {"quality": 1.0, "cost": 0.5}
FEES: dict[str | int, float] = {"a": 0.1, "b": 0.2, "c": 0.3}


def new_shop(**log: Any) -> Bandit:
    """Make such a bandit."""
    return Bandit(
        ["a", "b"],
        features=["u", "v"],
        outcomes={"quality": 1.0, "cost": -2.0, "fee": -1.0},
        known={"fee": FEES},
        budget=Budget("cost", total=50.0, horizon=100),
        reward_range={"quality": (0, 9), "cost": (0, 9)},
        feature_range={"u": (0, 5, "clip")},
        epoch=3,
        seed=7,
        **log,
    )


def new_shop_that_learned(world: World) -> None:
    """Have it learn, and hold decisions as above, and one that waits for one of its outcomes."""
    world.bandit = new_shop(**world.open())
    for step in range(2):
        decision = world.bandit.decide([1.0, step / 2], unit=f"session {step}")
        world.bandit.learn(decision, {"quality": step / 2, "cost": 0.25})
        world.held[f"learned {step}"] = decision
    world.held |= {f"pending {i}": world.bandit.decide([0.5, i]) for i in range(2)}
    world.held["in part"] = world.bandit.decide(ROW, weights={"cost": -1.0})
    world.bandit.learn(world.held["in part"], {"quality": 1.0}, weight=2.0)


def shop(world: World) -> None:
    """Use it."""
    world.bandit.learn(world.bandit.decide(ROW, unit="session 1"), BOTH)


@cache
def other_shop() -> Bandit:
    """Return another one that has learned something."""
    other = new_shop()
    other.replace(seed=8)
    other.learn(other.decide(ROW), BOTH)
    return other


SEVERAL: dict[str, Callable[[World], object]] = {
    "decide for a unit": lambda w: w.bandit.decide(ROW, unit="session 9", weights={"cost": -1.0}),
    "decide_many for units": lambda w: w.bandit.decide_many([ROW] * 5, units=[*"xyxyx"]),
    "learn outcomes": lambda w: w.bandit.learn(w.held["pending 0"], BOTH),
    "learn a part": lambda w: w.bandit.learn(w.held["pending 0"], {"cost": 0.5}),
    "learn the other part": lambda w: w.bandit.learn(w.held["in part"], {"cost": 0.5}),
    "learn_many outcomes": lambda w: w.bandit.learn_many(
        [w.held["pending 0"], w.held["pending 1"]], {"quality": [1.0, 2.0], "cost": [0.5, 0.0]}
    ),
    "correct outcomes": lambda w: w.bandit.correct(w.held["learned 1"], {"quality": 0.5, "cost": 0.25}, BOTH),
    "forget outcomes": lambda w: w.bandit.forget(w.held["learned 1"], {"quality": 0.5, "cost": 0.25}),
    "expire with a budget": lambda w: w.bandit.expire(w.held["pending 0"]),
    "bill": lambda w: w.bandit.bill(w.held["learned 1"], 0.75),
    "partial_fit outcomes": lambda w: w.bandit.partial_fit(
        [ROW, ROW], ["a", "b"], {"quality": [1.0, 2.0], "cost": [0.5, 0.0]}
    ),
    "add_arm with a fee": lambda w: w.bandit.add_arm("c"),
    "remove_arm with a fee": lambda w: w.bandit.remove_arm("a"),
    "merge outcomes": lambda w: w.bandit.merge(other_shop()),
    "replace outcomes": lambda w: w.bandit.replace(outcomes={"cost": -3.0}),
    "replace known": lambda w: w.bandit.replace(known={"fee": FEES | {"c": 0.4}}),
    "replace budget": lambda w: w.bandit.replace(budget=Budget("cost", total=70.0, horizon=100)),
    "remove budget": lambda w: w.bandit.replace(budget=None),
    "replace ranges of outcomes": lambda w: w.bandit.replace(reward_range={"cost": (0, 10)}),
    "replace feature_range": lambda w: w.bandit.replace(feature_range={"v": (0, 9)}),
    "remove feature_range": lambda w: w.bandit.replace(feature_range=None),
}
SEVERAL_CALLS = {name: Call(name, new_shop_that_learned, call, shop) for name, call in SEVERAL.items()}


# ---- bandits that forget by time

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def new_by_time(world: World) -> None:
    """Make a bandit with a half-life by time, and hold decisions as above."""
    policy = armlet.LinUCB(half_life="1 day")
    world.bandit = Bandit(["a", "b"], features=["u", "v"], policy=policy, seed=7, **world.open())
    for step in range(2):
        decision = world.bandit.decide([1.0, step / 2], at=MONDAY + timedelta(hours=step))
        world.bandit.learn(decision, step / 2)
        world.held[f"learned {step}"] = decision
    world.held["pending 0"] = world.bandit.decide(ROW, at=MONDAY + timedelta(hours=9))


BY_TIME: dict[str, Callable[[World], object]] = {
    "decide at a time": lambda w: w.bandit.decide(ROW, at=MONDAY + timedelta(days=2)),
    "learn by time": lambda w: w.bandit.learn(w.held["pending 0"], 1.0),
    "correct by time": lambda w: w.bandit.correct(w.held["learned 1"], 0.5, 2.0),
    "forget by time": lambda w: w.bandit.forget(w.held["learned 1"], 0.5),
    "set_time": lambda w: w.bandit.set_time(MONDAY + timedelta(days=5)),
}


def later(world: World) -> None:
    """Use a bandit that forgets by time."""
    world.bandit.learn(world.bandit.decide(ROW, at=MONDAY + timedelta(days=4)), 1.0)


BY_TIME_CALLS = {name: Call(name, new_by_time, call, later) for name, call in BY_TIME.items()}


# ---- bandits with actions


def begin_actions(world: World) -> None:
    """Make a bandit, and begin its log."""
    world.bandit = ActionBandit(1, 2, reward_range=(0, 9), seed=7, **world.open())


def new_action_bandit(world: World) -> None:
    """Make a bandit of actions with features, and hold decisions of it, as above."""
    begin_actions(world)
    for step in range(2):
        decision = world.bandit.decide([step / 2], ACTIONS)
        world.bandit.learn(decision, step / 2)
        world.held[f"learned {step}"] = decision
    world.held |= {f"pending {i}": world.bandit.decide([i], {**ACTIONS, "water": [0.0, i]}) for i in range(2)}
    world.bandit.prepare("shop", ACTIONS)
    if world.log is not None:
        world.log.flush()


def choose(world: World) -> None:
    """Use a bandit of actions."""
    world.bandit.learn(world.bandit.decide([0.5], ACTIONS), 1.0)
    world.bandit.prepare("menu", ACTIONS)
    world.bandit.decide([0.25], "menu")


@cache
def action_worker() -> ActionBandit:
    """Return another bandit that has learned something."""
    other = ActionBandit(1, 2, reward_range=(0, 9), seed=8)
    other.learn(other.decide([0.5], ACTIONS), 1.0)
    return other


NEW = {"tea": [2.0, 0.0], "water": [0.0, 9.0]}
ONE_BY_ONE = tuple(partial(lambda x, w: w.bandit.decide([x], NEW), x) for x in (0.5, 0.25))
ACTION: dict[str, Callable[[World], object]] = {
    "prepare": lambda w: w.bandit.prepare("home", NEW),
    "prepare again": lambda w: w.bandit.prepare("shop", NEW),
    "remove_table": lambda w: w.bandit.remove_table("shop"),
    "decide by name": lambda w: w.bandit.decide([0.5], "shop", t=9, probabilities="all"),
    "decide": lambda w: w.bandit.decide([0.5], NEW),
    "decide and checkpoint": lambda w: due(w).bandit.decide([0.5], ACTIONS),
    "decide_many": lambda w: w.bandit.decide_many([[0.5], [0.25]], NEW),
    "learn": lambda w: w.bandit.learn(w.held["pending 0"], 1.0),
    "learn_many": lambda w: w.bandit.learn_many([w.held["pending 0"], w.held["pending 1"]], [1.0, 0.5]),
    "correct": lambda w: w.bandit.correct(w.held["learned 1"], 0.5, 2.0),
    "forget": lambda w: w.bandit.forget(w.held["learned 1"], 0.5),
    "expire": lambda w: w.bandit.expire(w.held["pending 0"]),
    "partial_fit": lambda w: w.bandit.partial_fit(PAIRS),
    "merge": lambda w: w.bandit.merge(action_worker()),
    "replace t": lambda w: w.bandit.replace(t=50),
    "replace policy": lambda w: w.bandit.replace(policy=armlet.SharedThompson()),
    "replace reward_range": lambda w: w.bandit.replace(reward_range=(0, 10)),
    "replace seed": lambda w: w.log is None and w.bandit.replace(seed=9),
}
ACTIONS_CALLS = {
    name: Call(name, new_action_bandit, call, choose, ONE_BY_ONE if name == "decide_many" else ())
    for name, call in ACTION.items()
} | {"begin": Call("begin", nothing, begin_actions, choose, begins=True)}
RESUME_ACTIONS = Call("resume", partial(left, new_action_bandit), partial(resume, ActionBandit), choose, begins=True)

# ---- rows that were so large that the log is learned again without them

HUGE = 1e14


def new_huge(world: World) -> None:
    """Make a bandit that has learned a huge row, and rows after it."""
    world.bandit = Bandit(["a", "b"], features=["u", "v"], policy=armlet.LinUCB(), seed=7, **world.open())
    for step in range(4):
        world.held[f"learned {step}"] = world.bandit.decide([1.0 if step else HUGE, step / 2])
        world.bandit.learn(world.held[f"learned {step}"], step / 2)


def new_huge_action(world: World) -> None:
    """Make a bandit of actions that has."""
    world.bandit = ActionBandit(1, 2, seed=7, **world.open())
    for step in range(4):
        world.held[f"learned {step}"] = world.bandit.decide([0.5 if step else HUGE], ACTIONS)
        world.bandit.learn(world.held[f"learned {step}"], step / 2)


def take_back(world: World) -> None:
    """Forget it, and learn the log again."""
    world.bandit.forget(world.held["learned 0"], 0.0)


FORGOTTEN = (lambda world: keeping_rows(lambda: take_back(world)), take_back)
RELEARN = Call("forget a huge row", new_huge, take_back, again, FORGOTTEN)
RELEARN_ACTIONS = Call("forget a huge row", new_huge_action, take_back, choose, FORGOTTEN)

# ---- handlers that use the bandit in the middle of a call

ONE_MORE = {"learn": lambda w: w.bandit.learn(w.held["pending 1"], 0.5), "decide": lambda w: w.bandit.decide(ROW)}
HANDLED = [
    *((COMPILED["decide and checkpoint"], act) for act in ONE_MORE.values()),
    (ACTIONS_CALLS["decide"], ONE_BY_ONE[1]),
    (ACTIONS_CALLS["decide_many"], ONE_BY_ONE[1]),
    (ACTIONS_CALLS["prepare"], lambda w: w.bandit.prepare("work", ACTIONS)),
    *((ACTIONS_CALLS[name], ONE_MORE["learn"]) for name in ("learn", "learn_many", "correct", "partial_fit", "merge")),
]
