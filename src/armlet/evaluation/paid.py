"""What the decisions of a log earned: a number each, or several outcomes, some of them known prices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from armlet.inputs.outcomes import Outcomes
from armlet.record.values import Event
from armlet.types import Arm, Float64, Int64


class Paid:
    """What decisions earned: a number each, or with outcomes the parts of one, some of them known prices."""

    def __init__(self, about: Event) -> None:
        self._about = about
        declared = about.get("outcomes")
        self._weightings = (
            [] if declared is None else [Outcomes.from_dict(declared)]
        )  # the last of them weighs all rows
        self._known = list(self._weightings[0].known) if self._weightings else []
        self._named = list(self._weightings[0].learned) if self._weightings else []

    def replace(self, outcomes: Event) -> None:
        """Weigh all rows by other weights; take other prices and ranges for those to come."""
        self._weightings.append(Outcomes.from_dict(outcomes))
        widest = _widest(self._weightings)
        self._about |= {"outcomes": outcomes, "reward_range": None if widest is None else list(widest)}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of a row: the number, and behind it the outcomes, NaN where one did not come."""
        return np.dtype([("parts", "<f8", (1 + len(self._named),)), ("weight", "<f8")])

    def parts(self, event: Event) -> list[tuple[int, float]]:
        """Return what an event says was earned, by place: 0 is the number itself."""
        reward = event["new_reward" if event["kind"] == "correct" else "reward"]
        by_name = reward if isinstance(reward, dict) else event.get("outcomes", {})
        self.name(by_name)
        named = [(1 + self._named.index(name), float(part)) for name, part in by_name.items()]
        return named if isinstance(reward, dict) else [(0, reward), *named]

    def name(self, outcomes: Iterable[str]) -> None:
        """Take note of the outcomes that came."""
        self._named += [name for name in outcomes if name not in self._named]

    def prices(self, arm: Any) -> list[float]:
        """Return what is known beforehand of an arm."""
        return [float(self._weightings[-1].known[name].get(arm, np.nan)) for name in self._known]

    def read(self, paid: Any, prices: Float64) -> dict[str, Any]:
        """Return rewards and outcomes of rows; the reward is the number, or what the default weights make of parts."""
        parts = np.array(paid["parts"])
        if not self._named:
            return {"reward": parts[:, 0].copy()}
        outcomes = {name: parts[:, 1 + place].copy() for place, name in enumerate(self._named)}
        outcomes |= {name: prices[:, place].copy() for place, name in enumerate(self._known)}
        if not self._weightings:
            return {"reward": parts[:, 0].copy(), "outcomes": outcomes}
        weights, worth = self._weightings[-1].weights, np.zeros(len(parts))
        for name, weight in weights.items():
            worth = worth + weight * outcomes[name]
        outcomes = {name: outcomes[name] for name in (*weights, *(outcomes.keys() - weights.keys()))}
        return {"reward": np.where(np.isnan(worth), parts[:, 0], worth), "outcomes": outcomes}


def held_rewards(
    about: Event, reward: Float64, outcomes: Mapping[str, Float64], arm: Int64, arms: Sequence[Arm]
) -> dict[str, Any]:
    """Return rewards and outcomes of rows that are columns already.

    Outcomes are in the order in which they first came, as in events; without declared ones those that never came are
    left out.
    """
    paid, is_declared = Paid(about), "outcomes" in about
    came = {name: ~np.isnan(values) for name, values in outcomes.items()}
    first = {name: int(rows.argmax()) for name, rows in came.items() if is_declared or rows.any()}
    names = list(first) if is_declared else sorted(first, key=first.__getitem__)
    paid.name(names)
    prices = np.array([paid.prices(label) for label in arms], dtype=np.float64).reshape(len(arms), -1)
    return paid.read({"parts": np.column_stack([reward, *(outcomes[name] for name in names)])}, prices[arm])


def _widest(weightings: list[Outcomes]) -> tuple[float, float] | None:
    """Return the lowest and the highest worth by the last weights, of rows of any time; None if a range is missing."""
    last = weightings[-1]
    prices = {name: [price for each in weightings for price in each.known[name].values()] for name in last.known}
    ranges = {name: [each.ranges[name] for each in weightings if name in each.ranges] for name in last.learned}
    whole = {
        name: (min(low for low, _ in pairs), max(high for _, high in pairs))
        for name, pairs in ranges.items()
        if len(pairs) == len(weightings)
    }
    return Outcomes(last.weights, {name: dict(enumerate(each)) for name, each in prices.items()}, whole).reward_range()


def widen_range(about: Event, event: Event) -> None:
    """Declare the range that holds the rewards of before and those after an event that replaces it."""
    if event["kind"] == "replace" and "reward_range" in event and about.get("reward_range") is not None:
        (low, high), (least, most) = about["reward_range"], event["reward_range"]
        about["reward_range"] = [min(low, least), max(high, most)]
