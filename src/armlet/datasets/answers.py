"""Prompts for one of three language models: the quality and the cost of every model's answer are known.

From the wheel of ParetoBandit (Annette Taberner-Miller, 2025, under Apache-2.0; its LICENSE is in the wheel that the
cache keeps). Since every answer is known, any policy can be played.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from armlet.datasets.collection import Collection, table_text
from armlet.datasets.table import DatasetError
from armlet.errors import InvalidValueError
from armlet.types import Float64

Half = Literal["validation", "test"]

PRICE: Final = 20.0
"""What a dollar is worth in quality: with it a middling model is the best for most prompts."""

_EXAMPLES: Final = "pareto_bandit/data/examples"

ROUTER: Final = Collection(
    name="router",
    package="paretobandit",
    version="0.1.1",
    sha256="911dadc04a8e6146e548ad3a6be86c452c70e67564c0d2db5a08e06ae62c0968",
    files={"validation": f"{_EXAMPLES}/val.jsonl", "test": f"{_EXAMPLES}/test_holdout.jsonl"},
    about=(
        "3,609 prompts of nine benchmarks, and what three language models made of each: judged quality, and cost in "
        "dollars (ParetoBandit, Taberner-Miller, 2025); 1,785 for choosing, 1,824 for judging"
    ),
    licence="Apache-2.0, copyright 2025 ParetoBandit Authors; the wheel has its text; prompts are of public benchmarks",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """Prompts, and the quality and cost of every model's answer. `utility` is what a routed prompt pays.

    Examples
    --------
    >>> some = Answers(name="made", prompts=("2 + 2?",), labels=("small", "large"),
    ...                quality=np.array([[0.5, 1.0]]), cost=np.array([[0.0, 0.01]]))
    >>> some.utility().tolist(), some.utility(price=80.0).tolist()
    ([[0.5, 0.8]], [[0.5, 0.19999999999999996]])
    """

    name: str
    prompts: tuple[str, ...]
    labels: tuple[str, ...]  # the models
    quality: Float64  # (n, K), from 0 to 1
    cost: Float64  # (n, K), in dollars

    @property
    def n_arms(self) -> int:
        """How many models there are, K."""
        return len(self.labels)

    @property
    def dim(self) -> int:
        """How many numbers a context has: none, a prompt is text, which something must embed first."""
        return 0

    def __len__(self) -> int:
        return len(self.prompts)

    def utility(self, price: float = PRICE) -> Float64:
        """Return quality - price * cost of every model for every prompt: (n, K)."""
        return self.quality - price * self.cost


def router(half: Half) -> Answers:
    """Read the prompts for choosing ("validation") or for judging ("test"). `armlet data fetch router` comes first.

    Parameters
    ----------
    half
        "validation", 1,785 prompts, or "test", 1,824 others.
    """
    if half not in ROUTER.files:
        raise InvalidValueError(f"half is {half!r}; choose from {', '.join(ROUTER.files)}")
    return read_answers(f"router {half}", table_text(ROUTER, half))


def read_answers(name: str, text: str) -> Answers:
    """Read a line of JSON for every prompt, with `arms`: by model, `reward` and `cost`.

    Examples
    --------
    >>> row = '{"prompt": "2 + 2?", "arms": {"small": {"reward": 0.5, "cost": 0}, "large": {"reward": 1, "cost": 1}}}'
    >>> read_answers("made", row).labels
    ('small', 'large')
    """
    lines = text.split("\n")  # not splitlines: prompts have separators of other kinds in them
    rows: list[Mapping[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    if not rows:
        raise DatasetError(f"{name!r} has no prompts")
    labels = tuple(rows[0]["arms"])
    for place, row in enumerate(rows):
        if set(row["arms"]) != set(labels):
            raise DatasetError(
                f"prompt {place + 1} of {name!r} has answers of {', '.join(row['arms'])} where the first has those of "
                f"{', '.join(labels)}"
            )
    return Answers(
        name=name,
        prompts=tuple(str(row["prompt"]) for row in rows),
        labels=labels,
        quality=_column(rows, labels, "reward"),
        cost=_column(rows, labels, "cost"),
    )


def _column(rows: Sequence[Mapping[str, Any]], labels: Sequence[str], name: str) -> Float64:
    return np.array([[row["arms"][label][name] for label in labels] for row in rows], dtype=np.float64)
