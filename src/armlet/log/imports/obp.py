"""The feedback of the Open Bandit Pipeline: a dictionary of arrays, one value a round. O(1) memory beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from armlet.errors import ArgumentError
from armlet.log.imports.imported import Imported, Logged
from armlet.types import Float64, Int64


def from_obp(feedback: Mapping[str, Any], *, slot: int | None = None) -> Imported:
    """Read a dictionary of bandit feedback: action, reward, pscore, context, position.

    Parameters
    ----------
    feedback
        What a dataset of the Open Bandit Pipeline gives.
    slot
        The position whose rounds are read; needed if there are several.

    Examples
    --------
    >>> log = from_obp({"action": [1, 0], "reward": [0, 1], "pscore": [0.5, 0.5], "context": [[1.0], [2.0]]})
    >>> [(event["arm"], event["x"]) for event in log if event["kind"] == "decide"]
    [(1, [1.0]), (0, [2.0])]
    """
    missing = [name for name in ("action", "reward", "pscore", "context") if feedback.get(name) is None]
    if missing:
        raise ArgumentError(
            "{feedback} has no {names}; without them there is nothing to learn", names=", ".join(missing)
        )
    context = np.ascontiguousarray(feedback["context"], dtype=np.float64)
    action = np.asarray(feedback["action"]).astype(np.int64)
    reward, pscore = (np.asarray(feedback[name], dtype=np.float64) for name in ("reward", "pscore"))
    if context.ndim != 2 or not len(context) == len(action) == len(reward) == len(pscore):
        shapes = [context.shape, action.shape, reward.shape, pscore.shape]
        text = "{feedback} has context, action, reward and pscore of shapes {shapes}; give one row for each round"
        raise ArgumentError(text, shapes=shapes)
    rounds = _rounds(feedback.get("position"), len(action), slot)
    n_arms = int(feedback.get("n_actions") or action.max(initial=0) + 1)
    return Imported(
        lambda: _rows(rounds, context, action, reward, pscore),
        arms=list(range(n_arms)),
        features=[str(i) for i in range(context.shape[1])],
        origin="obp",
    )


def _rounds(position: Any, n: int, slot: int | None) -> Int64:
    if position is None:
        return np.arange(n)
    slots = np.asarray(position)
    found = np.unique(slots)
    if slot is None and len(found) > 1:
        raise ArgumentError(
            "{slot} is missing, and rounds are of the positions {found}; say which", found=found.tolist()
        )
    if slot is not None and slot not in found:
        raise ArgumentError(
            "{slot} is {value}, but rounds are of the positions {found}", value=slot, found=found.tolist()
        )
    return np.arange(n) if slot is None else np.flatnonzero(slots == slot)


def _rows(rounds: Int64, context: Float64, action: Int64, reward: Float64, pscore: Float64) -> Iterator[Logged]:
    for i in rounds:
        yield Logged(context[i].tolist(), int(action[i]), float(pscore[i]), float(reward[i]))
