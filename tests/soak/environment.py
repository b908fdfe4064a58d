"""What workers ask and what the oracle expects: loop, context and rewards are functions of an event's name.

Contexts are in eighths and rewards in quarters, so that sums of their products are exact in any order, and the oracle
can compare with ==. The last feature has another name after each change of features, and its value is the number of
that change: a context says itself which features there were.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import armlet
from armlet.policies import AllDataEpsilonGreedy, LinUCB
from armlet.stores import Control, Loop, Store
from armlet.types import Policy

ARMS: Final = ["a", "b", "c"]
SPARE: Final = "d"  # an arm that comes and goes
DIM: Final = 3
LOOPS: Final = ("plain", "late", "still")  # "late" has windows; nothing is forgotten or changed in "still"
CHANGING: Final = ("plain", "late")
DEFAULT: Final = 1.0  # reward of a window that closes; no reward is as high
EXPLORES: Final = 0.25  # share of decisions in "late" that explore, and are never pruned
SHARE: Final = 0.125  # of steps that a control plays
KINDS: Final = ("features", "policy", "arms", "window")  # of changes


def _bits(event: str) -> int:
    return zlib.crc32(event.encode())


def context(event: str) -> list[float]:
    """Return the context that is asked about under this name."""
    bits = _bits(event)
    return [1.0, (bits & 7) / 8, (bits >> 3 & 7) / 8]


def reward(event: str, other: int = 0, rank: int = 0) -> float:
    """Return the reward of an event; `other` makes another one, which the store must not take as well."""
    return ((_bits(event) >> 8) + other + 2 * rank) % 4 / 4


def loop_of(event: str) -> str:
    """Return the loop that an event is decided in."""
    return LOOPS[(_bits(event) >> 16) % len(LOOPS)]


def is_private(event: str) -> bool:
    """Whether only one thread asks about an event, which may forget it."""
    return (_bits(event) >> 24) % 8 == 0 and loop_of(event) in CHANGING


# ---- changes


def features(change: int) -> list[str]:
    """Return the features after a change."""
    return ["one", "a", "b", f"since {change}"]


def named_context(event: str, change: int) -> dict[str, float]:
    """Return the context of an event in the features after a change."""
    return dict(zip(features(change), [*context(event), change / 8], strict=True))


def change_of(model: armlet.Bandit) -> int:
    """Return the last change of features that a model has seen."""
    return int((model.settings.features or [""])[-1].removeprefix("since "))


def policy(loop: str, change: int) -> Policy:
    """Return the policy of a loop after a change: the same one, with other settings."""
    if loop == "late":
        return AllDataEpsilonGreedy(p=40.0 + change % 8, units="as given", floor=EXPLORES)
    return LinUCB(alpha=0.5 + change % 8 / 8, units="as given")


def arms(change: int) -> list[str]:
    """Return the arms after a change."""
    return [*ARMS, SPARE] if change % 2 else [*ARMS]


def window(change: int) -> float:
    """Return the seconds of a window after a change."""
    return 0.05 + change % 4 / 40


def terms(loop: str, kind: str, change: int) -> dict[str, Any]:
    """Return the arguments of `Loop.change`."""
    told: dict[str, Any] = {"features": features(change), "policy": policy(loop, change), "arms": arms(change)}
    return {kind: window(change) if kind == "window" else told[kind]}


def kind_of(loop: str, change: int) -> str:
    """Return what a change is about; only one loop has windows."""
    kind = KINDS[change % len(KINDS)]
    return "policy" if kind == "window" and loop != "late" else kind


def make_loops(store: Store) -> list[Loop]:
    """Make all loops."""
    more: dict[str, dict[str, Any]] = {
        "plain": {"control": Control(policy=policy("late", 0), share=SHARE)},
        "late": {"control": Control(arm=ARMS[0], share=SHARE), "window": window(0), "default_reward": DEFAULT},
    }
    return [
        store.loop(
            name,
            arms=arms(0),
            features=features(0),
            policy=policy(name, 0),
            reward_range=(0, 1),
            seed=11,
            **more.get(name, {}),
        )
        for name in LOOPS
    ]
