"""Calls that decisions from elsewhere come by: records, named steps, logs as tables, other settings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from armlet import Bandit, Decision
from fuzz import values
from fuzz.faults import View, require
from fuzz.session import PLENTY, Call, Session


def a_step(s: Session) -> Any:
    """Draw a step: mostly one ahead."""
    return s.rng.choice([s.bandit.t + s.rng.randrange(1, 9)] * 6 + [s.bandit.t, 0, -1, 2**63, 2**64 + 5, s.number()])


def plain(t: Any) -> Any:
    """Return the number that an integer is, regardless of its own way to compare."""
    return int.__index__(t) if isinstance(t, int) else t


def decide_t(s: Session) -> Call:
    t, x = a_step(s), [s.scale] * s.dim

    def check(d: Decision, before: View) -> None:
        due = before.t + 1 if t is None else plain(t)
        require(before.t < d.t == s.bandit.t == due, lambda: f"step {t!r} was decided as {d.t}, after {before.t}")
        s.decisions.append(d)
        del s.decisions[:-PLENTY]

    return Call("decide t", lambda: s.bandit.decide(x, t=t), "decides", check, of=(Bandit.decide,))


def replace_t(s: Session) -> Call:
    t = a_step(s)

    def check(_: None, before: View) -> None:
        require(
            before.t <= s.bandit.t == plain(t), lambda: f"the clock went from {before.t} to {s.bandit.t}, not to {t!r}"
        )

    return Call("replace t", lambda: s.bandit.replace(t=t), "changes", check, of=(Bandit.replace,))


def from_dict(s: Session) -> Call | None:
    """A decision from its record, an entry of which may be wrong; kept to be learned later."""
    if not s.decisions:
        return None
    record: dict[str, Any] = json.loads(json.dumps(s.rng.choice(s.decisions).to_dict()))
    if s.rng.random() < 0.6:
        record[s.rng.choice(list(record))] = s.rng.choice([None, s.number(), "1-0", [1.0], [], "all", 2**70, True])

    def read() -> None:
        s.decisions.append(Decision.from_dict(record))
        del s.decisions[:-PLENTY]

    return Call("Decision.from_dict", read, "reads", of=(Decision.from_dict, Decision.restore))


def partial_fit_table(s: Session) -> Call | None:
    if not s.decisions:
        return None
    some = s.rng.sample(s.decisions, min(len(s.decisions), s.rng.choice((0, 1, 5))))
    names = ("t", "x", "arm", "propensity", "explored", "tag")
    table: dict[str, Any] = {name: [d.to_dict()[name] for d in some] for name in names}
    table["reward"] = [float(s.rng.randrange(2)) for _ in some]
    if s.rng.random() < 0.3:
        table["replaces"] = [s.rng.choice([None, 0.0, s.number()]) for _ in some]
    if s.rng.random() < 0.4:
        name = s.rng.choice(list(table))
        table[name] = values.column(s.rng, [s.rng.choice([s.number(), None, "a"]) for _ in some], s.deed)

    def check(_: None, before: View) -> None:
        require(
            s.bandit.t == before.t, lambda: f"partial_fit of a table moved the clock from {before.t} to {s.bandit.t}"
        )

    return Call(
        "partial_fit a table",
        lambda: s.bandit.partial_fit(table),
        "changes",
        check,
        of=(Bandit.partial_fit, Decision.restore, "t", "replaces", "table"),
    )


def arms_looked_up(s: Session) -> Call:
    """Booleans and sets as eligible arms, and the probabilities of all."""
    some: list[Any] = s.rng.sample(s.bandit.arms, s.rng.randint(0, len(s.bandit.arms)))
    n = len(s.bandit.arms) + s.rng.choice((0, 0, 0, 1))
    mask = np.array([s.rng.random() < 0.5 for _ in range(n)], dtype=bool)
    x, is_set = [s.scale] * s.dim, s.rng.random() < 0.5

    def play() -> Decision:
        eligible = s.bandit.arms.subset(some) if is_set else mask
        return s.bandit.decide(x, eligible=eligible, probabilities="all")

    def check(d: Decision, before: View) -> None:
        chances = d.probabilities
        require(chances is not None and len(chances) == len(before.arms), lambda: f"the probabilities are {chances}")
        s.sound(np.array([chances]), [i for i, arm in enumerate(s.bandit.arms) if arm not in (d.eligible or ())])

    return Call("decide with all probabilities", play, "decides", check, of=(Bandit.decide, s.bandit.arms.subset))


def replace(s: Session) -> Call | None:
    """The same policy with one setting changed, to what it may be or not."""
    policy: Any = s.bandit.policy
    names: list[str] = [each.name for each in dataclasses.fields(policy)] if dataclasses.is_dataclass(policy) else []
    if not names:
        return None
    field = s.rng.choice(names)
    value = s.rng.choice([0.5, 3.0, 30, None, "free", s.number(), getattr(policy, field)])

    def change() -> None:
        s.bandit.replace(policy=dataclasses.replace(policy, **{field: value}))

    return Call("replace", change, "changes", of=(Bandit.replace, type(policy)))


MENU: tuple[Callable[[Session], Call | None], ...] = (
    decide_t,
    replace_t,
    from_dict,
    partial_fit_table,
    arms_looked_up,
    replace,
)
