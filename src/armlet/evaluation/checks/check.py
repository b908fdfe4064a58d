"""What a check says: a word, a sentence, and the number behind them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Word(StrEnum):
    """What a check comes to."""

    FINE = "fine"
    WARNING = "warning"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at before a value is believed.

    Examples
    --------
    >>> print(Check(name="propensities", word=Word.FINE, sentence="They fit.", number=0.4, unit="p-value"))
    propensities: fine. They fit. (p-value 0.4)
    """

    name: str
    word: Word
    sentence: str
    number: float
    unit: Literal["p-value", "rows", "arms", "share", "effective rows"]
    target: str | None = None  # whose value it is about; None for the log as a whole

    def __str__(self) -> str:
        whose = "" if self.target is None else f" of {self.target}"
        return f"{self.name}{whose}: {self.word}. {self.sentence} ({self.unit} {shown(self.number)})"


def shown(number: float) -> str:
    """Write the number of a check.

    Examples
    --------
    >>> shown(12345.0), shown(0.01234), shown(3e-9), shown(float("nan"))
    ('12,345', '0.012', '3e-09', 'not known')
    """
    if math.isnan(number):
        return "not known"
    return f"{number:,.0f}" if number == round(number) else f"{number:.2g}" if abs(number) < 10 else f"{number:,.0f}"


def tail(z: float) -> float:
    """Give the probability that a standard normal is farther from 0 than z.

    Examples
    --------
    >>> round(tail(1.959964), 6)
    0.05
    """
    return math.erfc(abs(z) / math.sqrt(2))


def share(part: float) -> str:
    """Write a share as people read it.

    Examples
    --------
    >>> share(0.1234), share(0.0004), share(1.0)
    ('12 %', '0.04 %', '100 %')
    """
    percent = 100 * part
    return f"{percent:.0f} %" if percent >= 10 or percent == 0 else f"{percent:.2g} %"
