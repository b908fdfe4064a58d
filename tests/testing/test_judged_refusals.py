"""The judge of refusals accepts texts that name an argument, and no text of Python, numpy or the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import InternalError, InvalidTypeError, InvalidValueError
from armlet.testing import arguments_of, fault_of


def raised(call: Any, *given: Any, **named: Any) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call(*given, **named)
    return caught.value


BANDIT = armlet.Bandit(["a", "b"], 1, seed=1)


@pytest.mark.parametrize(
    ("call", "given"),
    [
        (BANDIT.decide, ([np.nan],)),
        (BANDIT.learn, (None, 1.0)),
        (BANDIT.retire_arm, ("c",)),
        (BANDIT.partial_fit, ([[1.0]], ["a"], ["much"])),
    ],
)
def test_refusals_of_a_bandit_pass_the_judge(call: Any, given: tuple[Any, ...]) -> None:
    assert fault_of(raised(call, *given), arguments_of(call)) is None


NUMBER: Any = 5
WORD: Any = "much"


def python_messages() -> list[str]:
    """Return what Python and numpy say of arguments that no check has seen."""
    wrong: list[Any] = [
        lambda: [low for low, _ in [WORD[:0]]],
        lambda: NUMBER + WORD,
        lambda: bool(np.arange(2)),
        lambda: len(NUMBER),
        lambda: iter(NUMBER),
        lambda: float(WORD),
        lambda: int(WORD),
        lambda: float(np),  # type: ignore[arg-type]
        lambda: hash([]),
        lambda: np.zeros(2) + np.zeros(3),
        lambda: np.zeros(2).reshape(3),
        lambda: np.array([[1], [1, 2]], dtype=float),
        lambda: WORD.lower(1),
        lambda: NUMBER.lower(),
        lambda: "\ud800".encode(),
        lambda: [1][NUMBER],
        lambda: NUMBER < WORD,
        lambda: WORD(),
    ]
    return [str(raised(each)) for each in wrong]


@pytest.mark.parametrize("text", python_messages())
def test_texts_of_python_fail_the_judge(text: str) -> None:
    for name in (text.split()[0].strip("'"), "x"):
        assert "not a text of Armlet's" in str(fault_of(InvalidValueError(text), [name]))


def test_judge_wants_an_armlet_error_about_the_call() -> None:
    assert fault_of(TypeError("x is None"), ["x"]) == "TypeError is not an ArmletError"
    assert fault_of(InternalError("loop: x"), ["x"]) == "it is a fault of the store's own"
    kernel = InvalidTypeError("squares must be a C-contiguous float64 numpy array of shape (2, 6)")
    assert fault_of(kernel, ["features", "squares"]) == "'C-contiguous' is not a text of Armlet's"
    assert fault_of(InvalidValueError("much is 3"), ["x", "arms"]) == "the text names none of arms, x"
    assert fault_of(InvalidValueError("arm 'c' is unknown"), ["arms"]) is None


def test_compiled_calls_have_named_arguments() -> None:
    assert {"x", "eligible", "decide"} <= arguments_of(armlet.Bandit.decide)
