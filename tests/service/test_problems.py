"""Problems: what the library refuses, in words that may be sent."""

from __future__ import annotations

import datetime
import inspect
from typing import Any

import pytest

import armlet
from armlet import errors
from armlet.inputs.contexts import ContextReader
from armlet.inputs.encoder import EncodingReader
from armlet.service.contexts import context_problem
from armlet.service.problems import INVALID, KINDS, UNAVAILABLE, Problem, refusal

SECRET = "s3cr3t"
TABLE: dict[str, list[Any]] = {
    "price": [1.0, 2.0],
    "colour": ["blue", "red"],
    "shop": ["north", "south"],
    "seen": [datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)],
}
GOOD: dict[str, Any] = {"price": 1.0, "colour": "red", "shop": "north", "seen": "2026-01-01T00:00:00"}


def encoding(**settings: Any) -> EncodingReader:
    return EncodingReader(armlet.Encoder(hashed={"shop": 4}, other="refuse", **settings).fit(TABLE))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("price", SECRET),
        ("price", 1e41),
        ("price", None),
        ("colour", SECRET),
        ("colour", 3.0),
        ("shop", 3.0),
        ("seen", SECRET),
        ("seen", True),
    ],
)
def test_a_column_of_any_kind_is_named_without_its_value(column: str, value: Any) -> None:
    reader = encoding()
    assert context_problem(reader, GOOD) is None
    problem = context_problem(reader, {**GOOD, column: value}, "items[3].context")
    assert problem is not None
    assert (problem.kind, problem.field) == (INVALID, f"items[3].context.{column}")
    assert SECRET not in problem.body.decode()


def test_columns_that_are_not_asked_for_are_counted_or_ignored() -> None:
    problem = context_problem(encoding(), {**GOOD, SECRET: 1.0})
    assert problem is not None
    assert problem.detail == "it has 1 names that are not features of this loop; they are: price, colour, shop, seen"
    assert context_problem(encoding(extra="ignore"), {**GOOD, SECRET: 1.0}) is None


def test_many_features_are_not_all_told() -> None:
    names = tuple(f"f{i}" for i in range(50))
    problem = context_problem(ContextReader(50, names), {**dict.fromkeys(names, 1.0), SECRET: 1.0})
    assert problem is not None
    assert problem.detail.endswith("f19, ...")


def every_error() -> list[errors.ArmletError]:
    """Return one error of each class of the library."""
    classes = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, errors.ArmletError)]
    made = []
    for each in classes:
        takes = [one for one in inspect.signature(each.__init__).parameters.values() if one.default is one.empty]
        n = len([one for one in takes if one.name != "self" and one.kind is one.POSITIONAL_OR_KEYWORD])
        made.append(each(*(f"{SECRET} /var/lib/shop.db",) * max(n, 1)))
    return made


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
def test_every_error_of_the_library_is_a_problem(error: errors.ArmletError) -> None:
    problem = refusal(error)
    assert problem.kind in KINDS
    assert (problem.status == 500) == isinstance(error, errors.InternalError)
    says_why = isinstance(error, errors.LoopStateError) or not isinstance(error, errors.StoreError | errors.BudgetError)
    assert (SECRET in problem.detail) == says_why  # a store's errors name files and databases, a budget's what is left
    assert (problem.status == 503) == (
        isinstance(error, errors.StoreError)
        and problem.kind.slug != "not-found"
        and not isinstance(error, errors.LoopStateError | errors.InternalError)
    )


def test_a_503_says_when_to_try_again() -> None:
    assert (b"retry-after", b"1") in Problem(UNAVAILABLE, "later").headers
    assert Problem(INVALID, "no").headers == ()
