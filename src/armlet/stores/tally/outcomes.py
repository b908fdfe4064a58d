"""Means of several outcomes of a loop, by arm: what the bandit was given of each, and what was known of it.

An outcome counts when it is given, also if others of the decision are still to come; a known one when the row is whole.
State O(outcomes x arms).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armlet.inputs.outcomes import Outcomes
from armlet.stores.tally.delays import finite, whole
from armlet.stores.tally.folds import ERASE, Fold, Seen
from armlet.types import Arm, Reward


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """What a tally says of one outcome, of one arm or of all."""

    outcome: str
    arm: Arm | None  # None for all of them
    values: int  # that the bandit has
    mean: float | None  # of these; None if there are none


class OutcomeSums(Fold):
    """Counts and sums by outcome, and by the place of an arm.

    Examples
    --------
    >>> sums = OutcomeSums()
    >>> sums.add(0, {"quality": 0.5, "cost": 0.25})
    >>> sums.add(1, {"quality": 1.0})
    >>> [(one.outcome, one.arm, one.mean) for one in sums.counts(["a", "b"])]
    [('quality', None, 0.75), ('quality', 'a', 0.5), ('quality', 'b', 1.0), ('cost', None, 0.25), ('cost', 'a', 0.25)]
    >>> OutcomeSums.restore(sums.state()).state() == sums.state()
    True
    """

    __slots__ = ("_sums", "several")

    key = "outcomes"
    kinds = ("learn", "correct", "forget", ERASE)

    def __init__(self) -> None:
        self.several: Outcomes | None = None  # those of the bandit, whose weights and prices change
        self._sums: dict[str, dict[int, list[Any]]] = {}  # by place: how many, and their sum

    def see(self, seen: Seen) -> None:
        """Count parts that the bandit was given, that it has instead of others, or that were taken from it."""
        fields = seen.fields
        if self.several is None:
            return
        if seen.row.kind == "correct":
            self.correct(seen.place, fields["old_reward"], fields["new_reward"])
        elif isinstance(fields.get("reward"), Mapping):
            times = 1 if seen.row.kind == "learn" else -1
            self.add(seen.place, fields["reward"], times)
            if seen.before is not None or seen.after is not None:
                prices = {name: of_arm[seen.arm] for name, of_arm in self.several.known.items()}
                self.add(seen.place, prices, times)

    def values(self, kind: str, fields: Mapping[str, Any], arm: Arm) -> tuple[float | None, float | None]:
        """Return what was learned of a decision before a row and after it, as one value; None while parts are missing.

        Of a decision that was erased nothing is learned after it, nor of one whose default was taken back.
        """
        if "waits" in fields:
            return None, None
        had = fields.get("had", {})
        if kind == "learn":
            return None, self._worth(had, fields["reward"], arm)
        if kind == "correct":
            return self._worth(had, fields["old_reward"], arm), self._worth(had, fields["new_reward"], arm)
        reward = fields.get("reward")
        is_part = isinstance(reward, Mapping) and self.several is not None and len(reward) < len(self.several.learned)
        return None if reward is None or is_part else self._worth({}, reward, arm), None

    def _worth(self, had: Mapping[str, float], reward: Reward, arm: Arm) -> float:
        if not isinstance(reward, Mapping):
            return reward
        if self.several is None:
            raise ValueError(f"a reward has the parts {list(reward)}, but the loop has one reward")
        return self.several.worth({**had, **reward}, arm)

    def add(self, place: int, values: Mapping[str, float], times: int = 1) -> None:
        """Count values of an arm; with times = -1 they are taken back."""
        for name, value in values.items():
            one = self._sums.setdefault(name, {}).setdefault(place, [0, 0.0])
            one[0] += times
            one[1] = one[1] + times * value if one[0] else 0.0

    def correct(self, place: int, before: Mapping[str, float], after: Mapping[str, float]) -> None:
        """Count other values instead."""
        for name, value in after.items():
            self._sums[name][place][1] += value - before[name]

    def counts(self, labels: Sequence[Arm]) -> list[OutcomeCounts]:
        """Return each outcome, of all arms and then of each that has any."""
        found = []
        for name, sums in self._sums.items():
            n, total = (sum(one[at] for one in sums.values()) for at in (0, 1))
            found.append(OutcomeCounts(name, None, n, total / n if n else None))
            each = ((labels[place], *one) for place, one in sorted(sums.items()) if one[0])
            found += [OutcomeCounts(name, arm, n, total / n) for arm, n, total in each]
        return found

    def state(self) -> dict[str, list[list[float]]]:
        """Return everything as lists, for JSON."""
        return {name: [[place, *one] for place, one in sums.items()] for name, sums in self._sums.items()}

    @staticmethod
    def restore(state: Mapping[str, Sequence[Any]]) -> OutcomeSums:
        """Return the sums that had this state; a ValueError or TypeError says that it is none."""
        found = OutcomeSums()
        for name, sums in state.items():
            found._sums[str(name)] = {whole(place): [whole(n), finite(total)] for place, n, total in sums}
        return found
