"""Vowpal Wabbit's decision service JSON: one line a decision, costs for rewards, actions by number. O(1) memory."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from armlet.errors import ArgumentError, InvalidValueError
from armlet.log.faults import check_ordinary, explain
from armlet.log.imports.imported import Imported, Logged, origin_of
from armlet.types import Arm

MOST_FEATURES: Final = 10_000
LONGEST: Final = 2**26  # bytes of a line


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
    names: dict[str, None] = dict.fromkeys(features or ())
    most = 0
    for number, line in _lines(place):
        most = max(most, len(line["a"]))
        if features is None:
            with _in_line(number):
                names |= dict.fromkeys(_flat(line["c"], number))
            if len(names) > MOST_FEATURES:
                text = "{path} has more than {most:,} features by line {number:,}; name those to use by {features}"
                raise ArgumentError(text, most=MOST_FEATURES, number=number)
    labels: list[Arm] = list(arms) if arms is not None else list(range(1, most + 1))
    if len(labels) < most:
        raise ArgumentError("{arms} has {n} names, but a line has {most} actions", n=len(labels), most=most)
    order = list(names)
    return Imported(
        lambda: _rows(place, order, labels),
        arms=labels,
        features=order,
        origin=origin_of(place, "dsjson"),
    )


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
                raise ArgumentError("{path} is no dsjson: line {number:,} is no JSON object", number=number) from error
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
    found: dict[str, float] = {}
    for name, value in context.items():
        place = f"{prefix}{name}"
        if name.startswith("_"):
            continue  # Vowpal Wabbit's own, such as the features of each action
        if isinstance(value, Mapping):
            found |= _flat(value, number, f"{place}.")
        elif isinstance(value, str):
            found[f"{place}={value}"] = 1.0
        elif isinstance(value, list):
            found |= _listed(value, place, number)
        elif value is not None:
            found[place] = _finite(context, name)
    return found


def _listed(values: list[Any], place: str, number: int) -> dict[str, float]:
    if all(isinstance(value, Mapping) for value in values):
        return {name: x for value in values for name, x in _flat(value, number, f"{place}.").items()}
    return _flat({str(i): value for i, value in enumerate(values)}, number, f"{place}.")


def _rows(path: Path, features: list[str], labels: list[Arm]) -> Iterator[Logged]:
    for number, line in _lines(path):
        with _in_line(number):
            row = _row(line, number, features, labels)
        yield row


def _row(line: dict[str, Any], number: int, features: list[str], labels: list[Arm]) -> Logged:
    values = _flat(line["c"], number)
    actions = [labels[_place(action - 1, labels)] for action in line["a"]]
    chances = line.get("p") or []
    by_arm = dict(zip(actions, chances, strict=True)) if len(chances) == len(actions) else {}
    kept = 1.0 - float(line.get("pdrop", 0.0))
    if not 0.0 < kept <= 1.0:
        raise ArgumentError("{path} has a pdrop of {pdrop} in line {number:,}", pdrop=1.0 - kept, number=number)
    return Logged(
        x=[values.get(name, 0.0) for name in features],
        arm=labels[_place(line["_labelIndex"], labels)],
        propensity=_finite(line, "_label_probability"),
        reward=None if line.get("_skipLearn") else 0.0 - _finite(line, "_label_cost"),
        weight=1.0 / kept,
        eligible=None if len(actions) == len(labels) else sorted(actions, key=labels.index),
        probabilities=[float(by_arm.get(label, 0.0)) for label in labels] if by_arm else None,
        event=str(line["EventId"]) if "EventId" in line else None,
        at=_time(line["Timestamp"]) if "Timestamp" in line else 0,
    )


def _place(index: int, labels: list[Arm]) -> int:
    if not 0 <= index < len(labels):
        raise InvalidValueError(f"an action has number {index + 1}, but there are {len(labels)}")
    return index


def _time(text: str) -> int:
    moment, _, fraction = text.rstrip("Z").partition(".")
    whole = round(datetime.fromisoformat(moment + "+00:00").timestamp())
    return whole * 1_000_000 + int((fraction + "000000")[:6])
