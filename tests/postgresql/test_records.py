"""The same lives in a database are answered as is on record, and lead to the same rows, models and counts."""

from __future__ import annotations

from armlet.testing.stores import Place
from records.record import changes
from records.stores import lived


def test_a_database_answers_what_is_on_record(place: Place) -> None:
    assert changes(lived(place)) == []
