"""Decisions of `armlet.datasets` as a log: arms and features keep their names. O(1) memory beside the rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armlet.datasets.feedback import Feedback
from armlet.errors import ArgumentError
from armlet.log.imports.imported import Imported, Logged
from armlet.types import Int64


def from_dataset(feedback: Feedback, *, slot: int | None = None) -> Imported:
    """Make a log of decisions that `armlet.datasets` has read.

    Parameters
    ----------
    feedback
        As `datasets.open_bandit` or `datasets.actg175` gives it.
    slot
        The place on the page whose rows are read, from 1; needed if there are several.

    Examples
    --------
    >>> rows = Feedback(name="ads", X=np.ones((2, 1)), arms=np.array([1, 0]), rewards=np.array([0.0, 1.0]),
    ...                 propensities=np.array([0.5, 0.5]), labels=("a", "b"), features=("one",), slots=np.array([1, 2]))
    >>> log = from_dataset(rows, slot=2)
    >>> log.about["arms"], [(event["arm"], event["x"]) for event in log if event["kind"] == "decide"]
    (['a', 'b'], [('a', [1.0])])
    """
    rounds = _rounds(feedback, slot)
    return Imported(
        lambda: _rows(feedback, rounds),
        arms=list(feedback.labels),
        features=list(feedback.features),
        origin=feedback.name if slot is None else f"{feedback.name}, slot {slot}",
    )


def _rounds(feedback: Feedback, slot: int | None) -> Int64:
    if feedback.slots is None:
        if slot is not None:
            raise ArgumentError(
                "{slot} is {value}, but {name} has no slots; leave it out", value=slot, name=feedback.name
            )
        return np.arange(len(feedback))
    found = np.unique(feedback.slots).tolist()
    if slot is None and len(found) > 1:
        raise ArgumentError("{slot} is missing, and rows are of the slots {found}; say which", found=found)
    if slot is not None and slot not in found:
        raise ArgumentError("{slot} is {value}, but rows are of the slots {found}", value=slot, found=found)
    return np.arange(len(feedback)) if slot is None else np.flatnonzero(feedback.slots == slot)


def _rows(feedback: Feedback, rounds: Int64) -> Iterator[Logged]:
    for i in rounds:
        yield Logged(
            feedback.X[i].tolist(),
            feedback.labels[feedback.arms[i]],
            float(feedback.propensities[i]),
            float(feedback.rewards[i]),
            at=0 if feedback.at is None else int(feedback.at[i]),
        )
