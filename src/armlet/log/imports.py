"""Logs of other origin, as events: datasets, Vowpal Wabbit's dsjson, the Open Bandit Pipeline's dictionaries.

Nothing replays them, since no start model is known; everything else that reads a log reads them. What comes as columns
is read as columns, O(d) memory a row; dsjson line by line.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from armlet.datasets.feedback import Feedback
from armlet.errors import ArgumentError, InvalidValueError
from armlet.inputs.columns import check_utf8
from armlet.log.imported import Columns, Imported, ImportedColumns, Logged
from armlet.record.faults import check_ordinary, explain
from armlet.types import Arm, Int64

MOST_FEATURES: Final = 10_000
LONGEST: Final = 2**26  # bytes of a line
_BATCH: Final = 2**14


# ---- arrays: datasets and the Open Bandit Pipeline


def from_dataset(feedback: Feedback, *, slot: int | None = None) -> ImportedColumns:
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
    rounds = _rounds(feedback.slots, slot, feedback.name)

    columns = Columns(
        X=np.ascontiguousarray(feedback.X, dtype=np.float64),
        arm=feedback.arms,
        propensity=feedback.propensities,
        reward=feedback.rewards,
        at=feedback.at,
    )
    origin = feedback.name if slot is None else f"{feedback.name}, slot {slot}"
    return ImportedColumns(lambda: _some(columns, rounds), list(feedback.labels), feedback.features, origin)


def _some(columns: Columns, rounds: Int64 | None) -> Columns:
    return columns if rounds is None else columns.take(rounds)


def _rounds(slots: Any, slot: int | None, what: str) -> Int64 | None:
    """Return the rows of a slot; None for all."""
    if slots is None:
        if slot is not None:
            raise ArgumentError("{slot} is {value}, but {what} has no slots; leave it out", value=slot, what=what)
        return None
    present = np.unique(slots).tolist()
    if slot is None and len(present) > 1:
        raise ArgumentError("{slot} is missing, and rows are of the slots {present}; choose one", present=present)
    if slot is not None and slot not in present:
        raise ArgumentError("{slot} is {value}, but rows are of the slots {present}", value=slot, present=present)
    return None if slot is None else np.flatnonzero(np.asarray(slots) == slot)


def from_obp(feedback: Mapping[str, Any], *, slot: int | None = None) -> ImportedColumns:
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
    rounds = _rounds(feedback.get("position"), slot, "the feedback")
    n_arms = int(feedback.get("n_actions") or action.max(initial=0) + 1)

    columns = Columns(X=context, arm=action, propensity=pscore, reward=reward)
    features = [str(i) for i in range(context.shape[1])]
    return ImportedColumns(lambda: _some(columns, rounds), list(range(n_arms)), features, "obp")


# ---- dsjson


def from_dsjson(
    path: str | os.PathLike[str], *, features: Sequence[str] | None = None, arms: Sequence[Arm] | None = None
) -> Imported:
    """Read a log that Vowpal Wabbit or a decision service wrote, as dsjson.

    The context is what all actions share: a number under `namespace.name`, a text as a flag `namespace.name=text`.
    Rewards are costs with their sign changed; lines that were not logged in full (`pdrop`) weigh more; where learning
    was skipped there is no reward.

    Parameters
    ----------
    path
        Of the file.
    features
        The values of a context, by those names; all that the file has, if left out. What a line lacks is 0.
    arms
        Names of the actions, in their order; 1, 2, ... if left out.

    Examples
    --------
    >>> import tempfile
    >>> line = {"_label_cost": -1.0, "_label_probability": 0.8, "_labelIndex": 1, "a": [2, 1], "p": [0.8, 0.2]}
    >>> file = Path(tempfile.mkdtemp()) / "log.json"
    >>> _ = file.write_text(json.dumps({**line, "c": {"User": {"age": 31}, "_multi": [{}, {}]}}))
    >>> log = from_dsjson(file)
    >>> [(event["kind"], event.get("arm"), event.get("reward")) for event in log][1:]
    [('decide', 2, None), ('learn', None, 1.0)]
    """
    place = Path(path)
    flat: dict[str, None] = dict.fromkeys(features or ())
    most = 0
    for number, line in _lines(place):
        most = max(most, len(line["a"]))
        if features is None:
            with _in_line(number):
                flat |= dict.fromkeys(_flat(line["c"], number))
            if len(flat) > MOST_FEATURES:
                text = "{path} has more than {most:,} features by line {number:,}; name those to use by {features}"
                raise ArgumentError(text, most=MOST_FEATURES, number=number)
    names: list[Arm] = list(arms) if arms is not None else list(range(1, most + 1))
    if len(names) < most:
        raise ArgumentError("{arms} has {n} names, but a line has {most} actions", n=len(names), most=most)
    return DsjsonLog(place, names, list(flat))


class DsjsonLog(Imported):
    """The decisions of a file of dsjson, read line by line each time."""

    def __init__(self, path: Path, arms: list[Arm], features: list[str]) -> None:
        super().__init__(arms, features, f"dsjson: {path.name}")
        self._path, self._features = path, features

    def _rows(self) -> Iterator[Logged]:
        for number, line in _lines(self._path):
            with _in_line(number):
                row = _dsjson_row(line, number, self._features, list(self.arms))
            yield row


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    check_ordinary(path, "path")
    with path.open("rb") as file:
        for number, text in enumerate(iter(lambda: file.readline(LONGEST), b""), 1):
            if not text.strip():
                continue
            try:
                line = json.loads(text)
                if not ({"_label_cost", "_label_probability", "_labelIndex", "a", "c"} <= set(line)):
                    continue  # a line about something else, such as an observation of its own
            except (ValueError, TypeError, RecursionError) as error:
                what = "{path} is not dsjson: line {number:,} is not a JSON object"
                raise ArgumentError(what, number=number) from error
            with _in_line(number):
                if type(line["a"]) is not list or not line["a"] or type(line["c"]) is not dict:
                    raise InvalidValueError("a is not a list of actions, or c not an object")
            yield number, line


@contextlib.contextmanager
def _in_line(number: int) -> Iterator[None]:
    """Name the line of which a value cannot be used."""
    try:
        yield
    except ArgumentError:
        raise
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        text = "{path} has a line {number:,} that cannot be read: {why}"
        raise ArgumentError(text, number=number, why=explain(error)) from error


def _finite(line: Mapping[str, Any], name: str) -> float:
    value = line[name]
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidValueError(f"{name} is {value!r}, not a number")
    return float(value)


def _flat(context: Mapping[str, Any], number: int, prefix: str = "") -> dict[str, float]:
    """Name the numbers of a context by where they are in it."""
    values: dict[str, float] = {}
    for name, value in context.items():
        place = f"{prefix}{name}"
        if name.startswith("_"):
            continue  # Vowpal Wabbit's own, such as the features of each action
        if isinstance(value, Mapping):
            values |= _flat(value, number, f"{place}.")
        elif isinstance(value, str):
            values[f"{place}={value}"] = 1.0
        elif isinstance(value, list):
            values |= _listed(value, place, number)
        elif value is not None:
            values[place] = _finite(context, name)
    return values


def _listed(values: list[Any], place: str, number: int) -> dict[str, float]:
    if all(isinstance(value, Mapping) for value in values):
        return {name: x for value in values for name, x in _flat(value, number, f"{place}.").items()}
    return _flat({str(i): value for i, value in enumerate(values)}, number, f"{place}.")


def _dsjson_row(line: dict[str, Any], number: int, features: list[str], arms: list[Arm]) -> Logged:
    values = _flat(line["c"], number)
    actions = [arms[_place(action - 1, arms)] for action in line["a"]]
    chances = line.get("p") or []
    by_arm = dict(zip(actions, chances, strict=True)) if len(chances) == len(actions) else {}
    share = 1.0 - float(line.get("pdrop", 0.0))
    if not 0.0 < share <= 1.0:
        raise ArgumentError("{path} has a pdrop of {pdrop} in line {number:,}", pdrop=1.0 - share, number=number)
    return Logged(
        x=[values.get(name, 0.0) for name in features],
        arm=arms[_place(line["_labelIndex"], arms)],
        propensity=_finite(line, "_label_probability"),
        reward=None if line.get("_skipLearn") else 0.0 - _finite(line, "_label_cost"),
        weight=1.0 / share,
        eligible=None if len(actions) == len(arms) else sorted(actions, key=arms.index),
        probabilities=[float(by_arm.get(arm, 0.0)) for arm in arms] if by_arm else None,
        event=check_utf8("EventId", str(line["EventId"])) if "EventId" in line else None,
        at=_time(line["Timestamp"]) if "Timestamp" in line else 0,
    )


def _place(index: int, arms: list[Arm]) -> int:
    if not 0 <= index < len(arms):
        raise InvalidValueError(f"an action has number {index + 1}, but there are {len(arms)}")
    return index


def _time(text: str) -> int:
    moment, _, fraction = text.rstrip("Z").partition(".")
    whole = round(datetime.fromisoformat(moment + "+00:00").timestamp())
    return whole * 1_000_000 + int((fraction + "000000")[:6])
