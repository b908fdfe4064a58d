"""Options about several outcomes, budgets and epochs, as the commands that make and change loops read them."""

from __future__ import annotations

import argparse
import re
from typing import Final

from armlet.cli.command import count

SECONDS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_TIME: Final = re.compile(rf"(\d+(?:\.\d+)?)({'|'.join(SECONDS)})")


def amounts(text: str) -> dict[str, float]:
    """Read numbers by name.

    Examples
    --------
    >>> amounts("quality=1,cost=-40")
    {'quality': 1.0, 'cost': -40.0}
    """
    try:
        pairs = [pair.rpartition("=") for pair in text.split(",")]
        if all(name.strip() for name, _, _ in pairs):
            return {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"invalid values: {text!r}; write them as in age=31,visits=0")


def epoch(text: str) -> int | dict[str, float]:
    """Read an epoch of units: a number of decisions, or a length of time.

    Examples
    --------
    >>> epoch("10k"), epoch("12h"), epoch("30min")
    (10000, {'seconds': 43200.0}, {'seconds': 1800.0})
    """
    if found := _TIME.fullmatch(text):
        return {"seconds": float(found[1]) * SECONDS[found[2]]}
    return count(text)
