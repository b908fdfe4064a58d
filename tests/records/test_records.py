"""What is on record is answered today as well: a change that was not meant shows up as a diff."""

from __future__ import annotations

import pytest

from records.parts import PARTS
from records.record import DATA, differences

pytestmark = pytest.mark.spread

MOST = 1_500_000  # bytes


@pytest.mark.parametrize("name", PARTS)
def test_today_answers_what_is_on_record(name: str) -> None:
    lines = differences(PARTS[name])
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


def test_records_stay_small() -> None:
    assert sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file()) < MOST
