"""Policies and environments in words, as at the command line: NAME, or NAME:KEY=VALUE,KEY=VALUE."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

from armlet.errors import InvalidValueError


def parse_named(text: str) -> tuple[str, dict[str, object]]:
    """Read the name of a policy or an environment and its settings: NAME or NAME:KEY=VALUE,KEY=VALUE.

    Examples
    --------
    >>> parse_named("LinUCB:alpha=0.5,ridge=2"), parse_named("Linear:dim=3,spread=[1,2]")
    (('LinUCB', {'alpha': 0.5, 'ridge': 2}), ('Linear', {'dim': 3, 'spread': [1, 2]}))
    """
    name, _, settings = text.partition(":")
    return name, _parse_settings(re.split(r",(?=\w+=)", settings) if settings else [])


def _parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    settings = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InvalidValueError(f"{pair!r} is not a setting; write KEY=VALUE, as in p=120")
        try:
            settings[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            settings[name] = text
    return settings
