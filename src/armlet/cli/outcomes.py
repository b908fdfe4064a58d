"""Options about several outcomes, budgets and epochs, as the commands that make and change loops read them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Container, Mapping
from typing import Any, Final

from armlet.cli.command import REPEATED, Argument, arg, between, count

SECONDS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_TIME: Final = re.compile(rf"(\d+(?:\.\d+)?)({'|'.join(SECONDS)})")


def amounts(text: str) -> dict[str, float]:
    """Read numbers by name.

    Examples
    --------
    >>> amounts("quality=1,cost=-40")
    {'quality': 1.0, 'cost': -40.0}
    """
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    try:
        numbers = {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        numbers = {}
    if len(numbers) < len(pairs) or "" in numbers:  # a name twice, or none
        raise argparse.ArgumentTypeError(f"invalid values: {text!r}; write them as in age=31,visits=0")
    return numbers


def amount(text: str) -> float | dict[str, float]:
    """Read a number, or numbers by name.

    Examples
    --------
    >>> amount("0"), amount("quality=0,cost=0.02")
    (0.0, {'quality': 0.0, 'cost': 0.02})
    """
    if "=" in text:
        return amounts(text)
    try:
        return float(text)
    except ValueError:
        fix = "write a number, or one for each outcome as in quality=0,cost=0.02"
        raise argparse.ArgumentTypeError(f"invalid number: {text!r}; {fix}") from None


def ends(text: str) -> tuple[float, float] | dict[str, tuple[float, float]]:
    """Read the lowest and the highest value, or those of outcomes by name.

    Examples
    --------
    >>> ends("0..1"), ends("quality=0..1,cost=0..0.1")
    ((0, 1), {'quality': (0, 1), 'cost': (0, 0.1)})
    """
    pairs = [pair.rpartition("=") for pair in text.split(",")]
    spans = {name.strip(): between(span) for name, _, span in pairs}
    if len(spans) < len(pairs) or ("" in spans and len(pairs) > 1):  # a name twice, or none
        spans = {}
    ranges = {name: pair for name, pair in spans.items() if isinstance(pair, tuple)}
    if not ranges or len(ranges) < len(spans):
        fix = "write two numbers as in 0..1, or two for each outcome as in quality=0..1,cost=0..0.1"
        raise argparse.ArgumentTypeError(f"invalid range: {text!r}; {fix}")
    return ranges.get("", ranges)


def known(text: str) -> dict[str, dict[str, float]]:
    """Read an outcome and its value for every arm.

    Examples
    --------
    >>> known("cost:small=0.001,llama3:8b=0.03")
    {'cost': {'small': 0.001, 'llama3:8b': 0.03}}
    """
    name, _, values = text.partition(":")
    try:
        return {name.strip(): amounts(values)}
    except argparse.ArgumentTypeError:
        fix = "write the outcome and its value for every arm, as in cost:small=0.001,large=0.03"
        raise argparse.ArgumentTypeError(f"invalid values: {text!r}; {fix}") from None


class Merge(argparse.Action):
    """Puts what a repeated option gives into one mapping; a name twice is refused, unless it has other names below."""

    def __call__(self, _: object, namespace: argparse.Namespace, values: Any, *__: object) -> None:
        """Add to what was given before."""
        merged: dict[str, Any] = dict(getattr(namespace, self.dest, None) or {})
        for name, value in values.items():
            before = merged.get(name, {})
            if not isinstance(before, dict) or (before and not before.keys().isdisjoint(value)):
                raise argparse.ArgumentError(self, f"{name} is given twice; give it once")
            merged[name] = {**before, **value} if before else value
        setattr(namespace, self.dest, merged)


def in_words(weights: Mapping[str, float], known: Container[str]) -> str:
    """Return outcomes with their weights, as they are given.

    Examples
    --------
    >>> in_words({"quality": 1.0, "cost": -40.0}, ["cost"])
    'quality=1, cost=-40 (known)'
    """
    return ", ".join(f"{name}={weight:g}{' (known)' if name in known else ''}" for name, weight in weights.items())


def budget(text: str) -> dict[str, Any] | None:
    """Read a budget: its outcome and what `armlet.Budget` takes; "none" removes it.

    Examples
    --------
    >>> budget("cost:total=250,horizon=100k,hard=true")
    {'outcome': 'cost', 'total': 250.0, 'horizon': 100000, 'hard': True}
    """
    if text == "none":
        return None
    name, _, settings = text.partition(":")
    fields: dict[str, Any] = {}
    try:
        pairs = [pair.partition("=") for pair in settings.split(",")]
        fields = {key.strip(): _BUDGET[key.strip()](value.strip()) for key, _, value in pairs}
    except (KeyError, ValueError, argparse.ArgumentTypeError):
        pairs = []
    if not pairs or len(fields) < len(pairs):
        fix = (
            "write it as in cost:total=250,horizon=100k; period=1000 in place of horizon, and hard=true, are taken too"
        )
        raise argparse.ArgumentTypeError(f"invalid budget: {text!r}; {fix}")
    return {"outcome": name.strip(), **fields}


_BUDGET: Final[dict[str, Any]] = {
    "total": float,
    "horizon": count,
    "period": count,
    "hard": {"true": True, "false": False}.__getitem__,
}


def epoch(text: str) -> int | dict[str, float]:
    """Read an epoch of units: a number of decisions, or a length of time.

    Examples
    --------
    >>> epoch("10k"), epoch("12h"), epoch("30min")
    (10000, {'seconds': 43200.0}, {'seconds': 1800.0})
    """
    if match := _TIME.fullmatch(text):
        return {"seconds": float(match[1]) * SECONDS[match[2]]}
    return count(text)


def outcome_options(**settings: Any) -> tuple[Argument, ...]:
    """Declare the options by which a loop gets several outcomes, or other ones; `settings` are for each of them."""
    return (
        arg(
            "--outcomes",
            type=amounts,
            action=Merge,
            metavar="NAME=X,...",
            help=f"what one of each outcome is worth; {REPEATED}",
            **settings,
        ),
        arg(
            "--known",
            type=known,
            action=Merge,
            metavar="NAME:ARM=X,...",
            help=f"an outcome that is given for every arm, not learned; {REPEATED}",
            **settings,
        ),
    )
