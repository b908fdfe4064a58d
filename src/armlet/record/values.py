"""What a value of an event may be, in code and in words: plain JSON types, within ranges. `KINDS` is made of these."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import NoneType
from typing import Any, Final, NamedTuple, TypeAlias

from armlet.inputs.columns import LARGEST

Event: TypeAlias = dict[str, Any]
"""`seq`, `kind`, `at` and the fields of its kind: plain JSON types."""

HEAD: Final = ("seq", "kind", "at")

MOST: Final = 2**63 - 1
WIDEST: Final = 2**20
"""Values of a context: the sums of a wider one fit no machine."""


class Check(NamedTuple):
    """What a value must be, in code and in words."""

    holds: Callable[[Any], bool]
    words: str
    types: tuple[type, ...]  # of such values: what is quick to look at


def or_null(check: Check) -> Check:
    """Allow null as well."""
    holds = check.holds
    return Check(lambda value: value is None or holds(value), f"{check.words}, or null", (*check.types, NoneType))


def _list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(map(holds, value))


def _is_numbers(value: object) -> bool:
    """Whether a value is a list of numbers; a context is one, so this is quick."""
    if type(value) is not list or not set(map(type, value)) <= _FLOATS:
        return False
    return not value or (min(value) >= -LARGEST and max(value) <= LARGEST)


def _is_label(value: object) -> bool:
    return type(value) is str or type(value) is int


def _is_real(value: object) -> bool:
    return type(value) is float or (type(value) is int and abs(value) <= MOST)


def _is_share(value: object) -> bool:
    return type(value) is float and 0.0 <= value <= 1.0


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_id(value: object) -> bool:
    return type(value) is str and _ID(value) is not None and int(value[:-17]) <= MOST


def _is_arms(value: object) -> bool:
    return bool(value) and _is_labels(value) and len(set(value)) == len(value)  # type: ignore[call-overload,arg-type]


def _is_policy(value: object) -> bool:
    return type(value) is dict and type(value.get("name")) is str and type(value.get("settings", {})) is dict


def _is_feature_range(value: object) -> bool:
    return type(value) is list and value[2:] in ([], ["clip"]) and len(value) > 1 and all(map(_is_real, value[:2]))


def _is_control(value: object) -> bool:
    if type(value) is not dict or not _is_share(value.get("share")) or type(value.get("played")) is not bool:
        return False
    return _is_label(value.get("live")) and _is_label(value.get("arm")) and _is_share(value.get("propensity"))


def _is_epoch(value: object) -> bool:
    if type(value) is dict:
        return value.keys() == {"seconds"} and _is_real(value["seconds"])
    return type(value) is int and value >= 1


def _is_named(value: object) -> bool:
    """Whether a value is numbers by name: weights of outcomes, or what came of them."""
    return type(value) is dict and bool(value) and _is_fill(value)


def _is_reward(value: object) -> bool:
    return NUMBER.holds(value) or _is_named(value)


def _is_pairs(value: object) -> bool:
    """Whether a value is a list of labels, no two alike, each with a number."""
    if type(value) is not list or not all(type(pair) is list and len(pair) == 2 for pair in value):
        return False
    return _is_arms([pair[0] for pair in value]) and _is_numbers([pair[1] for pair in value])


def _is_outcomes(value: object) -> bool:
    if type(value) is not dict or not _is_pairs(value.get("weights")):
        return False
    known, ranges = value.get("known", {}), value.get("ranges", {})
    if type(known) is not dict or type(ranges) is not dict or not all(map(_is_text, dict(value["weights"]))):
        return False
    return all(map(_is_pairs, known.values())) and all(map(RANGE.holds, ranges.values()))


def _is_budget(value: object) -> bool:
    if type(value) is not dict or type(value.get("outcome")) is not str or not WEIGHT.holds(value.get("total")):
        return False
    lengths = [value[name] for name in ("horizon", "period") if value.get(name) is not None]
    return len(lengths) == 1 and COUNT.holds(lengths[0]) and type(value.get("hard", False)) is bool


def _is_added(value: object) -> bool:
    """Whether a value is labels, which may be none, and as many rows of numbers."""
    if type(value) is not dict or value.keys() != {"labels", "Z"} or not TABLE.holds(value["Z"]):
        return False
    labels = value["labels"]
    return (labels == [] or _is_arms(labels)) and len(labels) == len(value["Z"])


def _is_support(value: object) -> bool:
    return _is_pairs(value) and all(_is_share(p) and p > 0.0 for _, p in value)  # type: ignore[attr-defined]


def _is_fill(value: object) -> bool:
    return type(value) is dict and _is_numbers(list(value.values()))


_is_labels: Final = _list_of(_is_label)
_FLOATS: Final = {float}
_NUMBERS: Final = "numbers, each with a point or an exponent and up to 1e40 in size"
_ID: Final = re.compile(r"[0-9]{1,19}-[0-9a-f]{16}").fullmatch
_HEX: Final = re.compile(r"[0-9a-f]+").fullmatch
_HASH: Final = re.compile(r"[0-9a-f]{64}").fullmatch

ID: Final = Check(_is_id, "a step and 16 hexadecimal digits, such as 12-00ff00ff00ff00ff", (str,))
COUNT: Final = Check(
    lambda value: type(value) is int and 0 <= value <= MOST, "a whole number from 0 to 2^63 - 1", (int,)
)
WHOLE: Final = Check(
    lambda value: type(value) is int and -MOST - 1 <= value <= MOST, "a whole number of 64 bits", (int,)
)
NUMBER: Final = Check(
    lambda value: type(value) is float and -LARGEST <= value <= LARGEST,
    "a number with a point or an exponent, up to 1e40 in size",
    (float,),
)
WEIGHT: Final = Check(
    lambda value: type(value) is float and 0.0 < value <= LARGEST, "a number above 0, with a point", (float,)
)
SHARE: Final = Check(_is_share, "a number from 0.0 to 1.0", (float,))
TRUTH: Final = Check(lambda value: type(value) is bool, "true or false", (bool,))
TEXT: Final = Check(_is_text, "a text", (str,))
DIGEST: Final = Check(lambda value: type(value) is str and _HEX(value) is not None, "hexadecimal digits", (str,))
HASH: Final = Check(lambda value: type(value) is str and _HASH(value) is not None, "64 hexadecimal digits", (str,))
LABEL: Final = Check(_is_label, "a text or a whole number, as arms are named", (str, int))
NUMBERS: Final = Check(_is_numbers, f"a list of {_NUMBERS}", (list,))
SHARES: Final = Check(_list_of(_is_share), "a list of numbers from 0.0 to 1.0", (list,))
TEXTS: Final = Check(_list_of(_is_text), "a list of texts", (list,))
LABELS: Final = Check(_is_labels, "a list of arms", (list,))
ELIGIBLE: Final = Check(lambda value: bool(value) and _is_labels(value), "a list of at least one arm", (list,))
ARMS: Final = Check(_is_arms, "a list of at least one arm, no two alike", (list,))
TABLE: Final = Check(_list_of(_is_numbers), f"a list of rows of {_NUMBERS}", (list,))
RANGE: Final = Check(lambda value: _list_of(_is_real)(value) and len(value) == 2, "two numbers", (list,))
FEATURE_RANGES: Final = Check(
    lambda value: type(value) is dict and all(map(_is_feature_range, value.values())),
    "an object of features and two numbers each, perhaps with clip",
    (dict,),
)
DIM: Final = Check(
    lambda value: type(value) is int and 0 <= value <= WIDEST, f"a whole number from 0 to {2**20:,}", (int,)
)
OBJECT: Final = Check(lambda value: type(value) is dict, "an object", (dict,))
FILL: Final = Check(_is_fill, f"an object of features and {_NUMBERS}", (dict,))
POLICY: Final = Check(_is_policy, "an object with a name and settings", (dict,))
TRUTHS: Final = Check(_list_of(TRUTH.holds), "a list of true and false", (list,))
CONTROL: Final = Check(_is_control, "an object with share, played, live, propensity and arm", (dict,))
SHADOW: Final = Check(
    lambda value: type(value) is dict and _is_label(value.get("arm")), "an object with an arm", (dict,)
)
SHADOWS: Final = Check(
    lambda value: type(value) is dict and bool(value) and all(map(SHADOW.holds, value.values())),
    "an object of names, each with an object with an arm",
    (dict,),
)
EPOCH: Final = Check(_is_epoch, "a number of decisions, or an object with seconds", (int, dict))
REWARD: Final = Check(_is_reward, f"{NUMBER.words}, or an object of outcomes and such numbers", (float, dict))
WEIGHTS: Final = Check(_is_named, f"an object of outcomes and {_NUMBERS}", (dict,))
OUTCOMES: Final = Check(
    _is_outcomes,
    "an object with weights, pairs of a name and a number; known, pairs of an arm and one; and ranges",
    (dict,),
)
COLUMNS: Final = Check(
    lambda value: _is_numbers(value) or (type(value) is dict and all(map(_is_numbers, value.values()))),
    f"a list of {_NUMBERS}, or an object of outcomes and such lists",
    (list, dict),
)
BUDGET: Final = Check(_is_budget, "an object with outcome, total, and horizon or period", (dict,))
PAIR: Final = Check(lambda value: _list_of(COUNT.holds)(value) and len(value) == 2, "two whole numbers", (list,))
ADDED: Final = Check(_is_added, f"an object with labels, no two alike, and Z, as many rows of {_NUMBERS}", (dict,))
SUPPORT: Final = Check(
    _is_support, "a list of pairs of an action, no two alike, and a number above 0.0 and up to 1.0", (list,)
)
OBJECTIVE: Final = Check(lambda value: value in ("max", "min"), "max or min", (str,))
OBJECTS: Final = Check(_list_of(OBJECT.holds), "a list of objects", (list,))
