"""Rewards of several parts: each outcome of a decision is a reward of its own, and all of them are learned as one row.

A part is judged as a reward is: by its own values, names and rank so far. What counts is given to the bandit, which
learns the row when it has all parts. A part waits for the window to close, as any reward does; only one that has a
budget does not, since the price has to know of it. Rows say which parts came and which the bandit had before, so that
each can be played without those before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.stores.ledger import Outcome, Part, PartPhase, Phase
from armlet.stores.rewards import MOST_NAMES, Reward, RewardRules, Status, Value, Verdict, judge, with_name

ORDER: Final[tuple[Status, ...]] = ("accepted", "late", "replaced", "conflict", "outranked", "duplicate")
"""Of the statuses of several parts, the first of these is what a caller is answered."""


class PartsVerdict(NamedTuple):
    """What to answer, and what to do with each part that counts."""

    status: Status
    parts: Mapping[str, Verdict]
    is_moved: bool = False  # to another arm than the one of which the defaults were learned
    bill: tuple[str, float] | None = None  # what is spent although nothing is learned, and of which part


def check_value(rules: RewardRules, known: Mapping[str, object], value: Value, name: str) -> None:
    """Refuse a number where a loop has outcomes, parts where it has none, and parts that it does not learn."""
    if rules.parts is None:
        if isinstance(value, Mapping):
            raise InvalidTypeError(f"value is {value!r}, but loop {name!r} has one reward; give a number")
        return
    names = list(rules.parts)
    if not isinstance(value, Mapping):
        advice = f"give them by name, such as {{{names[0]!r}: {value!r}}}"
        raise InvalidTypeError(f"value is {value!r}, but loop {name!r} has outcomes; {advice}")
    for part in value:
        if part in known:
            raise InvalidValueError(f"value has {part!r}, whose price of every arm is known; leave it out")
        if part not in rules.parts:
            raise InvalidValueError(
                f"value has {part!r}, which is no outcome of loop {name!r}; those that are learned are {names}"
            )


def judge_parts(rules: RewardRules, outcome: Outcome, reward: Reward) -> PartsVerdict:
    """Judge each part by itself; if the loop does not take one of them, none counts.

    Examples
    --------
    >>> each = RewardRules(reward_range=(0.0, 1.0))
    >>> rules = RewardRules(reward_range=(0.0, 1.0), parts={"quality": each, "cost": each})
    >>> outcome = Outcome(t=1, event="order-17", seq=1, phase="open", parts={"cost": Part(0.25, "learned")})
    >>> judge_parts(rules, outcome, Reward({"quality": 0.5, "cost": 0.25}))[:2]
    ('accepted', {'quality': Verdict(status='accepted', act='hold', value=0.5)})
    >>> judge_parts(rules, outcome, Reward({"quality": 0.5, "cost": 2.0}, rank=1)).status
    'out_of_range'
    """
    found = {
        name: _judge_part(rules.parts[name], outcome, name, Reward(value, reward.name, reward.rank))
        for name, value in parts_of(reward).items()
        if rules.parts is not None
    }
    statuses = {each.status for each in found.values()}
    if "out_of_range" in statuses:
        return PartsVerdict("out_of_range", {}, bill=_bill(rules, outcome, reward))
    status = next(each for each in ORDER if each in statuses)
    return PartsVerdict(status, {name: each for name, each in found.items() if each.act != "nothing"})


def _bill(rules: RewardRules, outcome: Outcome, reward: Reward) -> tuple[str, float] | None:
    """Return the part that has a budget and what it costs then, if it would count whatever the range says."""
    for name, value in parts_of(reward).items():
        part = (rules.parts or {})[name]
        if part.is_spent:
            free = replace(part, reward_range=(-math.inf, math.inf))
            verdict = _judge_part(free, outcome, name, Reward(value, reward.name, reward.rank))
            return (name, verdict.value) if verdict.value is not None and verdict.act != "note" else None
    return None


def parts_of(reward: Reward) -> Mapping[str, float]:
    """Return the parts of a reward that has them."""
    if isinstance(reward.value, Mapping):
        return reward.value
    raise InvalidTypeError(f"value is {reward.value!r}; give outcomes by name")


def _judge_part(rules: RewardRules, outcome: Outcome, name: str, reward: Reward) -> Verdict:
    part = (outcome.parts or {}).get(name)
    is_sum = rules.aggregation == "sum"
    if part is None or (part.phase == "billed" and not is_sum):
        alone = outcome
    else:
        phase: Phase = "open" if part.phase == "held" or part.phase == "billed" else part.phase
        value = part.value if part.billed is None or not is_sum else part.billed
        alone = outcome._replace(phase=phase, value=value, rank=part.rank, names=part.names)
    verdict = judge(rules, alone, reward)
    if verdict.act == "nothing" or (verdict.act == "note" and (part is None or part.billed is None)):
        return verdict  # the same value as before; where another cost was billed, it takes the place of that
    return verdict._replace(act="hold" if part is None or part.phase in ("held", "billed") else "correct")


def counted_parts(outcome: Outcome, reward: Reward, verdict: PartsVerdict) -> Outcome:
    """Return the outcome of a decision once parts of a reward count; what the bandit has not been given is held."""
    parts = dict(outcome.parts or {})
    for name, each in verdict.parts.items():
        before = parts.get(name, Part(0.0, "held"))
        value = before.value if each.value is None else each.value
        names = with_name(before.names, reward.name)
        phase: PartPhase = "held" if before.phase == "billed" else before.phase
        parts[name] = Part(value, "learned" if each.act == "correct" else phase, reward.rank, names)
    played = outcome.played if reward.played is None else reward.played
    is_reported = outcome.phase == "default" and any(part.phase == "learned" for part in parts.values())
    return outcome._replace(parts=parts, played=played, phase="learned" if is_reported else outcome.phase)


def has_room(outcome: Outcome, reward: Reward) -> bool:
    """Whether a decision can remember one more name of a reward, or of each of its parts."""
    if not isinstance(reward.value, Mapping):
        return len(outcome.names) < MOST_NAMES
    parts = outcome.parts or {}
    return all(len(parts[name].names) < MOST_NAMES for name in reward.value if name in parts)


def to_give(rules: RewardRules, outcome: Outcome) -> dict[str, float]:
    """Return the parts that wait and may be given to the bandit: all, or before the window closes what is spent.

    Examples
    --------
    >>> each, spent = (RewardRules(reward_range=(0.0, 1.0), is_spent=spent) for spent in (False, True))
    >>> rules = RewardRules(reward_range=(0.0, 1.0), parts={"quality": each, "cost": spent})
    >>> parts = {"quality": Part(0.5, "held"), "cost": Part(0.25, "held")}
    >>> outcome = Outcome(t=1, event="order-17", seq=1, phase="open", due=60, parts=parts)
    >>> to_give(rules, outcome), to_give(rules, outcome._replace(due=None))
    ({'cost': 0.25}, {'quality': 0.5, 'cost': 0.25})
    """
    each = rules.parts or {}
    return {
        name: part.value
        for name, part in (outcome.parts or {}).items()
        if part.phase == "held" and (outcome.due is None or each[name].is_spent)
    }


def still_taken(rules: RewardRules, outcome: Outcome) -> dict[str, Part]:
    """Return the parts of a decision but for those that wait and are out of a range that has changed since."""
    each, told = rules.parts or {}, (outcome.parts or {}).items()
    return {name: part for name, part in told if part.phase != "held" or each[name].takes(part.value)}


def closed_parts(rules: RewardRules, outcome: Outcome) -> tuple[dict[str, Part], list[str]] | None:
    """Return the parts of a decision whose window closes, with defaults, and which these are; None if one is missing.

    A part that waits and is out of a range that has changed since counts as not reported.
    """
    parts, before = still_taken(rules, outcome), outcome.parts or {}
    if any(part.phase == "billed" for part in parts.values()):  # outside of its range: there is no row to learn
        return None
    defaults = [name for name in rules.parts or () if name not in parts]
    for name, each in (rules.parts or {}).items():
        if name in defaults and each.default is None:
            return None
        if name in defaults and each.default is not None:
            parts[name] = Part(each.default, "held", names=before[name].names if name in before else ())
    return parts, defaults
