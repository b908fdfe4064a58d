"""A misspelt argument of a store or a loop is refused with the closest name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import armlet
from armlet.errors import InvalidTypeError
from armlet.stores import Memory, Store


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda store, _: store.loop("other", arms=["a"], dim=1, windw=60),
            "loop.. .*'windw', which is 60; .*'window'",
        ),
        (lambda _, loop: loop.change(polcy=armlet.LinUCB()), "change.. .*'polcy', .*; did you mean 'policy'"),
        (lambda _, loop: loop.model().replace(polic=3), "replace.. .*'polic', which is 3; did you mean 'policy'"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_closest(call: Callable[[Any, Any], object], text: str) -> None:
    with Store(Memory()) as store:
        films = store.loop("films", dim=1, action_dim=1, seed=1)
        with pytest.raises(InvalidTypeError, match=text):
            call(store, films)
