"""Outcomes in the columns of a log: the parts that came of each decision, prices of its time, and what they are worth.

Parts come in any number of events; the last that is said of an outcome counts. Prices are those at the decision; the
weights are the last ones of the log, for all rows, so that rewards of one table can be added up. O(outcomes) a row.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final

from armlet.errors import LogError
from armlet.inputs.outcomes import Outcomes
from armlet.record.values import Event
from armlet.types import Arm

PART: Final = "reward_"
"""What the columns of outcomes begin with."""
FIRST: Final = "first_reward_"
"""What those begin with that hold what was learned first, where it was changed later."""


class Prices:
    """The outcomes of a log: which there are, and their prices and weights over time."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        self._since = [0]
        self._outcomes = [Outcomes.from_dict(about["outcomes"])]

    def take(self, event: Event) -> None:
        """Follow an event; those that replace no outcomes are ignored."""
        if event["kind"] == "replace" and "outcomes" in event:
            self._since.append(event["seq"])
            self._outcomes.append(Outcomes.from_dict(event["outcomes"]))

    def columns(self, seq: int, arm: Arm, parts: Mapping[str, float]) -> dict[str, float | None]:
        """Return the outcomes of the decision of event `seq`, and their worth by the last weights if all are there.

        Examples
        --------
        >>> outcomes = Outcomes({"quality": 1.0, "cost": -2.0}, {"cost": {"a": 0.5}})
        >>> Prices({"outcomes": outcomes.to_dict()}).columns(1, "a", {"quality": 0.25})
        {'reward': -0.75, 'reward_quality': 0.25, 'reward_cost': 0.5}
        """
        known = self._outcomes[bisect_right(self._since, seq) - 1].known
        values = {**parts, **{name: prices.get(arm) for name, prices in known.items()}}
        worth: float | None = 0.0
        for name, weight in self._outcomes[-1].weights.items():
            value = values.get(name)
            worth = None if worth is None or value is None else worth + weight * value
        return {"reward": worth, **{PART + name: values.get(name) for name in self._outcomes[-1].weights}}


def parts_of(event: Event) -> Mapping[str, float]:
    """Return the outcomes that an event says came; refuse one of another kind of log."""
    reward = event["new_reward" if event["kind"] == "correct" else "reward"]
    if type(reward) is not dict:
        text = f"event {event['seq']:,} has one reward, but the log has several outcomes; give them by name"
        raise LogError(text, event["seq"])
    return reward


def folded(parts: Mapping[str, float], event: Event) -> dict[str, float]:
    """Return the parts that a decision has after an event that says something of its reward.

    Examples
    --------
    >>> folded({"cost": 0.5}, {"kind": "learn", "reward": {"quality": 1.0}})
    {'cost': 0.5, 'quality': 1.0}
    """
    return {} if event["kind"] == "forget" else {**parts, **parts_of(event)}
