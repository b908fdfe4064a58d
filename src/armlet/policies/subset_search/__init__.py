"""The search inside Contextual UCB (Algorithm 2, Section 7), and the pasts that it searches.

`searches` finds the subset of an arm's rows with the smallest f; `past` holds the rows of one arm, `histories` those of
all arms, whole, by distinct context or by bucket.
"""

from armlet.policies.subset_search.histories import Histories, HistoryLimitError
from armlet.policies.subset_search.past import Past
from armlet.policies.subset_search.searches import (
    MOST_SUBSETS,
    Subset,
    certified,
    counts,
    doublings,
    estimate,
    exact,
    relaxed,
    value,
)

__all__ = [
    "MOST_SUBSETS",
    "Histories",
    "HistoryLimitError",
    "Past",
    "Subset",
    "certified",
    "counts",
    "doublings",
    "estimate",
    "exact",
    "relaxed",
    "value",
]
