"""Calls that are not the loop: arms that come and go, merging, files, copies, new bandits."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

import armlet
from armlet import Bandit
from fuzz import values
from fuzz.faults import View, difference, look, plain, require
from fuzz.session import PLENTY, Call, Session


def label(s: Session) -> Any:
    """Draw a label: one that is there, a new one, or none at all."""
    kind = s.rng.random()
    if kind < 0.5:
        return s.rng.choice(s.bandit.arms)
    if kind < 0.8:
        return s.rng.choice([f"arm {s.rng.randrange(12)}", s.rng.randrange(12), 2**70, -1, "", "\ud800", "\0"])
    if kind < 0.9:
        return s.rng.choice([None, 1.0, True, b"arm", ("arm",), [1], object(), float("nan")])
    return s.rng.choice(
        [
            values.armed(values.FightingStr("arm 1"), s.deed),
            values.armed(values.FightingInt(1), s.deed),
            values.Fights(s.deed),
        ]
    )


def arms(s: Session) -> Call | None:
    arm, name = label(s), s.rng.choice(("add_arm", "add_arm", "retire_arm", "restore_arm", "restore_arm", "remove_arm"))
    if name == "add_arm" and len(s.bandit.arms) >= PLENTY:
        return None

    def check(_: None, before: View) -> None:
        held, gone = list(map(plain, s.bandit.arms)), list(map(plain, s.bandit.arms.retired))
        done = {
            "add_arm": len(held) == len(before.arms) + 1 and plain(arm) == held[-1],
            "remove_arm": len(held) == len(before.arms) - 1 and plain(arm) not in held,
            "retire_arm": plain(arm) in gone,
            "restore_arm": plain(arm) not in gone and plain(arm) in held,
        }
        require(done[name], lambda: f"{name}({arm!r}) left {held}, retired {gone}")

    return Call(name, lambda: getattr(s.bandit, name)(arm), "changes", check)


def merge(s: Session) -> Call | None:
    if len(s.bandit.arms) + len(s.other.arms) > PLENTY:
        return None
    busy_elsewhere(s)
    with_whom: Any = values.pick(
        s.rng, [s.other, s.other, s.other, s.bandit, None, 1, object(), armlet.Statistics(2, 2)]
    )
    if s.rng.random() < 0.5:
        also = () if isinstance(with_whom, Bandit) else (TypeError,)  # of operands, in Python's words
        return Call("+", lambda: s.bandit + with_whom, "reads", also=also, of=(Bandit.merge, Bandit))

    def check(_: None, before: View) -> None:
        assert isinstance(with_whom, Bandit)
        require(s.bandit.t >= before.t, lambda: f"a merge took the clock back from {before.t} to {s.bandit.t}")

    return Call("merge", lambda: s.bandit.merge(with_whom), "changes", check, of=(Bandit.merge, Bandit))


def busy_elsewhere(s: Session) -> None:
    """Let the worker to be merged decide, learn, and change its arms a little."""
    o, rng = s.other, s.rng
    try:
        d = o.decide([s.scale * rng.uniform(-1, 1) for _ in range(s.dim)])
        o.learn(d, dict.fromkeys(s.learned, rng.random()) if s.learned else float(rng.randrange(2)))
        if rng.random() < 0.3:
            o.add_arm(f"arm {rng.randrange(12)}")
        if rng.random() < 0.2:
            o.retire_arm(rng.choice(o.arms))
    except armlet.ArmletError:
        pass  # what it refuses is no matter here


def files(s: Session) -> Call:
    given = s.policy if s.rogue else None
    if s.rng.random() < 0.15:
        where: Any = values.pick(
            s.rng, ["", "/", "/no/such/folder/m", "\0", b"bytes\xff", 3.5, None, object(), s.path.parent, io.BytesIO()]
        )
        return Call("save somewhere", lambda: s.bandit.save(where), "reads", also=(OSError,), of=(Bandit.save,))

    def there_and_back() -> Bandit:
        s.bandit.save(s.path)
        return armlet.load(s.path, policy=given)

    return Call("save and load", there_and_back, "reads", twin_check(s), of=(Bandit.save, armlet.load))


def twin_check(s: Session) -> Callable[[Any, View], None]:
    """The twin is the same, and sometimes takes the place of the first."""

    def check(twin: Bandit, before: View) -> None:
        changed = difference(before, look(twin))
        require(not changed, lambda: f"a copy differs in {changed}")
        if s.rng.random() < 0.3:
            s.bandit = twin

    return check


def copies(s: Session) -> Call:
    ways: list[Callable[[], Any]] = [
        lambda: copy.copy(s.bandit),
        lambda: copy.deepcopy(s.bandit),
        lambda: pickle.loads(pickle.dumps(s.bandit)),
        lambda: s.bandit.copy(),
        lambda: s.bandit.copy(seed=s.rng.randrange(2**128)),
        lambda: armlet.from_bytes(s.bandit.to_bytes(), policy=s.policy if s.rogue else None),
    ]
    return Call("a copy", s.rng.choice(ways), "reads", twin_check(s), of=(Bandit.copy, armlet.from_bytes))


def streams(s: Session) -> Call:
    """A new stream of coins, and what was learned since."""
    if s.rng.random() < 0.5:
        base: Any = s.rng.choice([s.other, None, s.bandit])
        return Call("difference", lambda: s.bandit.difference(base), "reads", of=(Bandit.difference, Bandit))
    return Call(
        "replace seed",
        lambda: s.bandit.replace(seed=s.rng.choice(["random", 1, -1, s.rng.randrange(2**128)])),
        "changes",
        of=(Bandit.replace,),
    )


def another(s: Session) -> Call:
    """A new bandit from arguments of which some are wrong."""
    given: dict[str, Any] = {"arms": s.labels, "dim": s.dim, "policy": s.policy, "seed": 1, **s.settings}
    wrong: dict[str, list[Any]] = {
        "arms": [[], "abc", [1, 1], [label(s), label(s)], values.Fights(s.deed, ["a"]), None, 3],
        "dim": [0, -1, None, True, 2.0, "2", values.Fights(s.deed), values.hostile_number(s.rng, s.deed)],
        "policy": [None, type(s.policy), object(), "LinUCB", values.Fights(s.deed)],
        "features": [["a", "a"], "abc", [1, 2], values.Fights(s.deed, ["a"]), [], None],
        "objective": ["maximum", None, 1, values.Fights(s.deed), [], np.zeros(2)],
        "normalize": ["l1", 2, values.Fights(s.deed), [], np.zeros(2)],
        "outcomes": [{}, {"a": 0.0}, {1: 1.0}, {"a": values.hostile_number(s.rng, s.deed)}, values.Fights(s.deed), 3],
        "known": [{"cost": {}}, {"cost": {"arm 0": s.number()}}, values.Fights(s.deed), 3],
        "budget": ["cost", 3, values.Fights(s.deed)],
        "epoch": [0, -1, 2.0, True, "7", values.hostile_number(s.rng, s.deed)],
        "seed": [-1, 2**128, 1.5, "1", True, values.hostile_number(s.rng, s.deed)],
    }
    for name in s.rng.sample(list(wrong), s.rng.choice((1, 1, 2))):
        given[name] = s.rng.choice(wrong[name])
    return Call("Bandit", lambda: Bandit(**given), "reads", of=(Bandit,))


def look_around(s: Session) -> Call:
    ways: list[Callable[[], Any]] = [
        lambda: repr(s.bandit),
        lambda: s.bandit.state.nbytes,
        lambda: [pickle.loads(pickle.dumps(d)) for d in s.decisions[-2:]],
        lambda: [copy.deepcopy(d) for d in s.decisions[-2:]],
        lambda: [(repr(d), d == d, hash(d)) for d in s.decisions[-2:]],
        lambda: s.bandit.state.copy(),
    ]
    return Call("a look around", s.rng.choice(ways), "reads", of=(Bandit.copy,))


MENU: tuple[Callable[[Session], Call | None], ...] = (*[arms] * 4, merge, files, copies, streams, another, look_around)
