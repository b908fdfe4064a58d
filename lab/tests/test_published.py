"""Published verdicts are what the command finds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.spread


ROOT = Path(__file__).parents[2]


def published() -> dict[str, str]:
    """Read the outcome of each claim from the verdicts in the docs."""
    page = (ROOT / "docs" / "reference" / "paper.md").read_text().split("<!-- verdicts: begin -->")[1]
    rows = [line.split(" | ") for line in page.splitlines() if " | " in line]
    return {row[0].removeprefix("| "): row[3] for row in rows[1:]}


def outcomes(folder: Path) -> dict[str, str]:
    return {each["key"]: each["outcome"] for each in json.loads((folder / "verdicts.json").read_text())}


def test_published_verdicts_are_what_the_command_finds(reproduction: Path) -> None:
    """The claims of the light experiments, at the scale and seed of the page."""
    light = ("fig-", "section41-", "merge-")
    assert outcomes(reproduction) == {key: word for key, word in published().items() if key.startswith(light)}
    assert len(outcomes(reproduction)) == 9


@pytest.mark.long
def test_all_published_verdicts_are_what_the_command_finds(whole_reproduction: Path) -> None:
    """Every claim but those that need a clock."""
    timed = {key for key in published() if key.startswith(("theorem-1-", "algorithm-2-", "leaderboard-"))}
    assert outcomes(whole_reproduction) == {key: word for key, word in published().items() if key not in timed}
    assert len(timed) == 7
