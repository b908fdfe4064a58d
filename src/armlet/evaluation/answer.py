"""What an evaluation answers, in one sentence: the same on the terminal, on the page and in JSON.

Every policy that was asked for is in it, in the order better, worse, not clear, not judged; those that a sentence has
no room for are counted. By how much a policy is better or worse is said in the sense of the objective, with the
interval that holds for all differences together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from armlet.report.numbers import common_places, show, show_interval
from armlet.types import Estimate, Interval

if TYPE_CHECKING:
    from armlet.evaluation.result import Difference, Evaluation, Value

ORDER: Final = ("better", "worse", "not clear", "not judged")
MOST: Final = 4  # policies of a kind that a sentence names


def answer(result: Evaluation) -> str:
    """Return the sentence."""
    differences = sorted(result.differences.values(), key=_place)
    clauses = list(_compared(result, differences) if differences else _alone(result))
    plural = "" if result.rewarded == 1 else "s"
    return f"On {result.rewarded:,} rewarded decision{plural} {'; '.join(clauses)}."


def _place(difference: Difference) -> int:
    return ORDER.index(difference.verdict.partition(":")[0])


def _compared(result: Evaluation, differences: Sequence[Difference]) -> Iterable[str]:
    """Yield a clause for each policy that is better or worse, and one for those of which that cannot be said."""
    base, places = called(result, result.baseline), places_of(differences)
    judged = [each for each in differences if each.verdict in ("better", "worse")]
    shown = [each for word in ORDER[:2] for each in _first_of(judged, word)]
    for number, each in enumerate(shown):
        than, unit = (f" than {base}", " a decision") if number == 0 else ("", "")
        yield _judged(result, each, places, than, unit)
    for word in ORDER[:2]:
        if others := sum(each.verdict == word for each in judged) - len(_first_of(judged, word)):
            yield f"{others:,} {'other is' if others == 1 else 'others are'} {word}"
    unclear = [each for each in differences if each.verdict == "not clear"]
    if unclear and judged:
        yield f"{_names(result, unclear)}: not clear"
    elif unclear:
        amount = f": the difference is {amount_of(unclear[0], places)} a decision" if len(unclear) == 1 else ""
        yield f"it is not clear whether {_names(result, unclear, 'or')} is better or worse than {base}{amount}"
    for verdict, group in groupby((each for each in differences if _place(each) == 3), key=lambda each: each.verdict):
        some = list(group)
        yield f"{_names(result, some)} {'is' if len(some) == 1 else 'are'} {verdict}"


def _first_of(judged: Sequence[Difference], word: str) -> list[Difference]:
    """Return those of a verdict that are farthest from the baseline, as many as a sentence can hold."""
    return sorted((each for each in judged if each.verdict == word), key=lambda each: -abs(each.value))[:MOST]


def _judged(result: Evaluation, difference: Difference, places: int, than: str, unit: str) -> str:
    """Return by how much a policy is better or worse, as a positive number."""
    rises = (difference.verdict == "better") == (result.objective == "max")
    cost = f": it costs {'more' if rises else 'less'}" if result.objective == "min" else ""
    by = amount_of(difference, places, 1.0 if rises else -1.0)
    return f"{called(result, difference.name)} is {difference.verdict}{than}{cost}, by {by}{unit}"


def places_of(differences: Iterable[Difference]) -> int:
    """Return the decimals that differences are written with, in the sentence and in its table."""
    return common_places([Estimate(each.value, *each.adjusted) for each in differences if each.adjusted is not None])


def amount_of(difference: Difference, places: int, sign: float = 1.0) -> str:
    """Return a difference with the interval that its verdict goes by, or that alone where the point is outside of it.

    The point of "own" may be: it learns from more rows than its interval is of.
    """
    value, ends = sign * difference.value, difference.adjusted
    if ends is None:
        return show(value)
    low, high = sorted(sign * end for end in ends)
    return show(Estimate(value, low, high), places) if low <= value <= high else between(Interval(low, high), places)


def between(interval: Interval, places: int | None = None) -> str:
    """Return both ends of an interval, in a sentence.

    Examples
    --------
    >>> between(Interval(0.1134, 0.2266))
    '0.113 to 0.227'
    """
    return show_interval(interval, places).strip("[]")


def _alone(result: Evaluation) -> Iterable[str]:
    """Yield what each policy earned, where there is nothing to compare with."""
    for each in result.values.values():
        name, earned = called(result, each.name), "earned" if result.objective == "max" else "cost"
        if math.isnan(each.value):
            yield f"{name} is not judged: cannot be valued by this log"
        elif each.interval is None:
            yield f"{name} is not judged: {each.doubtful or 'no interval can be trusted'}"
        else:
            yield f"{name} {'' if is_logged(each) else 'would have '}{earned} {valued(each)} a decision"


def valued(value: Value) -> str:
    """Return a value with its fixed-sample interval, if it has one."""
    if value.interval is None:
        return "without an interval"
    return show(Estimate(value.value, *value.interval))


def is_logged(value: Value) -> bool:
    """Return whether a value is that of the log itself, a plain mean."""
    return value.estimator == "mean"


def called(result: Evaluation, name: str) -> str:
    """Return what a policy is called in a sentence."""
    if name in result.values and is_logged(result.values[name]):
        return "what ran"
    return "the baseline" if name == result.baseline == "baseline" else name


def _names(result: Evaluation, several: Sequence[Difference], word: str = "and") -> str:
    names = [called(result, each.name) for each in several]
    if len(names) > MOST + 1:
        names[MOST:] = [f"{len(names) - MOST:,} others"]
    *first, last = names
    return f"{', '.join(first)} {word} {last}" if first else last
