"""How many examples Hypothesis tries: a test says how many it deserves, the profile by how much to multiply that.

HYPOTHESIS_PROFILE=dev      a fifth, new ones each time: `pytest` as it is typed while working
HYPOTHESIS_PROFILE=ci       as many as the tests say, the same ones each time: `make test`
HYPOTHESIS_PROFILE=nightly  ten times as many, new ones each time: `make test-all`
"""

from __future__ import annotations

import os
from typing import Final

from hypothesis import settings

SCALES: Final = {"dev": 0.2, "ci": 1.0, "nightly": 10.0}
FEWEST: Final = 5  # of any test, however it is scaled


def find_profile() -> str:
    """Read the name of the profile from the environment."""
    name = os.environ.get("HYPOTHESIS_PROFILE") or "dev"
    if name not in SCALES:
        raise ValueError(f"HYPOTHESIS_PROFILE is {name!r}; choose one of {', '.join(SCALES)}")
    return name


def scaled(examples: int) -> int:
    """Return how many examples the profile tries where a test asks for so many."""
    return max(FEWEST, round(examples * SCALES[find_profile()]))


def load_profile() -> None:
    """Set what all tests share: the examples of a test that asks for no number, and no deadline on busy machines."""
    name = find_profile()
    settings.register_profile(name, max_examples=scaled(100), deadline=None, derandomize=name == "ci")
    settings.load_profile(name)
