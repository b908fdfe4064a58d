"""Who makes calls and writes down their answers: one line a call, refusals with their text."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from armlet.actions.bandit import ActionBandit
from armlet.actions.decision import ActionDecision
from armlet.actions.table import ActionTable
from armlet.bandit import Bandit
from armlet.errors import ArmletError
from armlet.kernel import Decision


def shown(value: Any) -> str:
    """Return a value as text that is the same in every process."""
    if isinstance(value, Decision | ActionDecision):
        return _decision(value)
    if isinstance(value, Bandit | ActionBandit):
        return f"<{type(value).__name__} {value.digest()}>"
    if isinstance(value, ActionTable):
        return f"<table {value.hash[:16]}>"
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{shown(key)}: {shown(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(shown, value)) + "]"
    if is_dataclass(value) and not isinstance(value, type | enum.Enum):
        values = (f"{each.name}={shown(getattr(value, each.name))}" for each in fields(value))
        return f"{type(value).__name__}({', '.join(values)})"
    return repr(value)


def _decision(made: Decision | ActionDecision) -> str:
    words = [repr(made.arm), repr(made.propensity)]
    words += ["explored"] * made.explored + ["optimistic"] * made.optimistic
    for name in ("unit", "epoch", "weights", "probabilities"):
        value = getattr(made, name, None)
        if value is not None:
            words.append(f"{name} {shown(value)}")
    if isinstance(made, ActionDecision):
        words.append(f"{made.n_actions} actions")
    return f"<{made.id} {' '.join(words)}>"


class Scribe:
    """Calls, and writes down what was answered."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.refused = 0

    def call(self, text: str, method: Callable[..., Any], /, *given: Any, **options: Any) -> Any:
        """Call a method; return its answer, or None where it is refused."""
        arguments = ", ".join([*map(shown, given), *(f"{name}={shown(value)}" for name, value in options.items())])
        line = f"{len(self.lines) + 1:03} {text}({arguments})"
        try:
            answer = method(*given, **options)
        except ArmletError as error:
            self.refused += 1
            self.lines.append(f"{line}: {shown(error)}")
            return None
        self.lines.append(f"{line}: {shown(answer)}")
        return answer

    @contextmanager
    def part(self, text: str) -> Iterator[None]:
        """Write a heading."""
        self.lines.append(f"# {text}")
        yield

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines) + "\n"
