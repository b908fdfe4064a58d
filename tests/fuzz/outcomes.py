"""Several outcomes to call with: sessions that have them, rewards by name, dials, units, budgets, other prices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from armlet import Bandit, Budget
from fuzz import values
from fuzz.faults import View, require
from fuzz.session import Call

if TYPE_CHECKING:
    from random import Random

    from fuzz.session import Session

NAMES = ("quality", "cost", "delay")
PRICES: dict[str | int, float] = {
    **{f"arm {i}": 0.1 * i for i in range(12)},
    **{i: 0.05 * i for i in range(12)},
}
UNITS = ("one", "two", "three")


def settings(rng: Random) -> dict[str, Any]:
    """Draw what a bandit with outcomes is made with."""
    names = rng.sample(NAMES, rng.choice((1, 2, 2, 3)))
    made: dict[str, Any] = {"outcomes": {name: rng.choice((1.0, -40.0, 0.1, -1e-6)) for name in names}}
    if len(names) > 1 and rng.random() < 0.5:
        made["known"] = {names[-1]: PRICES}
    if rng.random() < 0.6:
        made["budget"] = budget(rng, names[-1])
        if made["budget"].hard and "known" not in made:
            made["reward_range"] = {names[-1]: (-1.0, 1.0)}
    if rng.random() < 0.5:
        made["epoch"] = rng.choice((1, 7, 50))
    return {**made, "objective": "max"}


def budget(rng: Random, name: str) -> Budget:
    length = {rng.choice(("horizon", "period")): rng.choice((1, 20, 500))}
    return Budget(name, total=rng.choice((1e-3, 1.0, 40.0, 1e12)), hard=rng.random() < 0.3, **length)


def reward(s: Session) -> Any:
    """Draw a number, or some of the outcomes by name; now and then one that there is not."""
    if not s.learned or s.rng.random() < 0.05:
        return s.number()
    parts: dict[Any, Any] = {
        name: s.number() for name in s.rng.sample(s.learned, s.rng.choice((len(s.learned), s.rng.randint(0, 1))))
    }
    if s.rng.random() < 0.1:
        strange = s.rng.choice([*NAMES, "price", 3, None, values.armed(values.FightingStr("quality"), s.deed)])
        parts[strange] = s.number()
    return parts


def good_reward(s: Session) -> Any:
    return dict.fromkeys(s.learned, 1.0) if s.learned else 1.0


def rewards(s: Session, n: int, draw: Callable[[], Any]) -> Any:
    """Draw a column of rewards, or one of each outcome."""
    if not s.learned or s.rng.random() < 0.05:
        return values.column(s.rng, [draw() for _ in range(n)], s.deed)
    return {name: values.column(s.rng, [draw() for _ in range(n)], s.deed) for name in s.learned}


def other_rewards(s: Session, old: Any) -> Any:
    """Draw what is to take the place of a reward."""
    return {name: s.number() for name in old} if isinstance(old, dict) else s.number()


def dial(s: Session) -> Any:
    """Draw weights for a decision: mostly none where there is one reward."""
    if s.rng.random() < (0.5 if s.learned else 0.98):
        return None
    names: list[Any] = [*s.settings.get("outcomes", ("cost",))]
    if s.rng.random() < 0.1:
        names.append(s.rng.choice(["price", 3, values.armed(values.FightingStr("quality"), s.deed)]))
    found = {name: s.number() for name in s.rng.sample(names, s.rng.randint(0, len(names)))}
    return found if s.rng.random() < 0.95 else s.rng.choice(values.WRONG + values.ODD)


def unit(s: Session) -> dict[str, Any]:
    """Draw who is decided for, if anybody, and the epoch that he is in."""
    if s.rng.random() < 0.75:
        return {}
    name = s.rng.choice([*UNITS] * 4 + ["", "\ud800", "x" * 257, 3, values.armed(values.FightingStr("one"), s.deed)])
    if "epoch" in s.settings or s.rng.random() < 0.1:
        return {"unit": name}
    now = s.bandit._epoch or 0
    return {"unit": name, "epoch": s.rng.choice([now] * 6 + [now + 1, now - 1, s.number()])}


def replaced(s: Session) -> Call:
    """Other weights, prices, ranges or a budget; most of them are none for a bandit with one reward."""
    names = [*s.settings.get("outcomes", NAMES[:2])]
    lists = {name: {arm: s.number() for arm in s.rng.choice([PRICES, [*s.bandit.arms]])} for name in names[-1:]}
    changes: dict[str, Any] = {
        "outcomes": s.rng.choice([{name: s.number() for name in names}, {names[0]: 2.0}, {"price": 1.0}, 3]),
        "known": s.rng.choice([lists, s.settings.get("known", {}), {}, None]),
        "reward_range": s.rng.choice([{names[0]: (-1e3, 1e3)}, {"price": (0, 1)}, {names[0]: (s.number(), 1.0)}]),
        "budget": s.rng.choice([budget(s.rng, s.rng.choice(names)), "cost", None]),
    }
    name = s.rng.choice(list(changes))

    def check(_: None, before: View) -> None:
        require(s.bandit.t == before.t, lambda: f"replacing {name} moved the clock from {before.t} to {s.bandit.t}")

    return Call(
        f"replace {name}", lambda: s.bandit.replace(**{name: changes[name]}), "changes", check, of=(Bandit.replace,)
    )


MENU: tuple[Callable[[Session], Call | None], ...] = (replaced, replaced)
