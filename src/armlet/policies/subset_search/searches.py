"""The subset T of an arm's rows that makes f(T) = |(I + A_T / sqrt(n))^-1 x|^2 smallest, n = |T|: Section 7.

The width of Algorithm 2 is c = log(t) f(T*). A subset is given by how often it counts each row, so that equal rows need
to be kept only once. One search tries everything, the others are heuristics; `certified` proves how far from the
minimum any of them can be.
Cost for N rows: exact O(2^N d^3); relaxed O(N^2 d^2) up to 64 rows, O(N d^2) beyond; counts for N <= 24 rows O(N^2 d^2
+ N d^3), however often they were met; a certificate O(N d) a step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from armlet import kernel
from armlet.errors import InvalidValueError
from armlet.policies.subset_search.past import Past
from armlet.types import Float64

MOST_SUBSETS = 2**16
"""Of rows that are tried one by one: 16 rows met once."""


class Subset(NamedTuple):
    """What a search found."""

    weights: Float64  # (N,): how often each row counts, a whole number
    value: float  # f
    bound: float  # no subset is below it; 0 where none is known, see `certified`
    exact: bool  # proved to be the minimum
    tried: int = 0  # how many subsets were looked at, where `counts` counts them, else 0

    @property
    def n(self) -> int:
        """How many rows it takes, equal ones counted one by one."""
        return int(self.weights.sum())

    @property
    def rows(self) -> list[int]:
        """Which rows it takes.

        Examples
        --------
        >>> exact(np.array([1.0, 1.0]), Past.of([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])).rows
        [1]
        """
        found: list[int] = np.flatnonzero(self.weights).tolist()
        return found

    @property
    def ratio(self) -> float:
        """The certificate: f is at most this many times the minimum."""
        if self.bound > 0:
            return self.value / self.bound
        return 1.0 if self.value == 0 else math.inf


def _search(how: str, x: Float64, past: Past) -> Subset:
    return Subset(*kernel.search_subset(how, x, past.rows, past.counts))


def doublings(past: Past, weight: float = 0.0) -> float:
    """Give the logarithm of the number of subsets, to base 2, with one more row; the number itself may be too large.

    Examples
    --------
    >>> doublings(Past.of([[1.0], [2.0]]), weight=3.0)
    4.0
    """
    return round(float(np.log2(past.counts + 1).sum()) + math.log2(weight + 1), 9)


def value(x: Float64, past: Past, weights: Float64) -> float:
    """Compute f of a subset from its definition.

    Examples
    --------
    >>> value(np.array([1.0]), Past.of([[1.0]], counts=[4]), np.array([4.0]))  # 1 / (1 + sqrt(4))^2
    0.1111111111111111
    """
    A = (past.rows.T * weights) @ past.rows
    y = np.linalg.solve(np.eye(len(x)) + A / math.sqrt(weights.sum()), x)
    return float(y @ y)


def estimate(past: Past, subset: Subset) -> Float64:
    """Solve (lambda_n I + A / n) theta = b / n on the chosen rows, lambda_n = 1 / sqrt(n).

    Of equal rows, which ones are chosen does not matter to f; each then pays their mean reward.

    Examples
    --------
    >>> past = Past.of([[1.0]], rewards=[6.0], counts=[4])
    >>> estimate(past, exact(np.array([1.0]), past))  # 6 / (4 + sqrt(4))
    array([1.])
    """
    return kernel.estimate_subset(past.rows, past.counts, past.sums, subset.weights, past.dim)


def exact(x: Float64, past: Past) -> Subset:
    """Try every subset; refused if there are more than `MOST_SUBSETS`.

    Examples
    --------
    >>> x, past = np.array([1.0, 1.0]), Past.of([[1.0, 1.0], [1.0, 0.0]], counts=[10, 1000])
    >>> exact(x, past).weights  # the common row helps in no number
    array([10.,  0.])
    """
    if doublings(past) > math.log2(MOST_SUBSETS):
        raise InvalidValueError(
            f"past has {len(past)} rows and more than {MOST_SUBSETS} subsets, too many to try them all; "
            "use relaxed, which proves how close it is, or keep at most 16 rows"
        )
    return _search("exact", x, past)


def relaxed(x: Float64, past: Past) -> Subset:
    """Sort by the slope of f in fractional weights, take the best prefix, and again: a heuristic, no bound.

    The start is the best prefix of the rows sorted by |x'x_i| or by |cos(x, x_i)|: every prefix of up to 64 rows, then
    lengths that grow by a twentieth; of more than 256 rows every prefix of up to 16, then lengths that grow by a tenth;
    of more than 1000, after a quarter of the rows, only while f is below 1.5 times the best. Slopes are followed 12
    times, or until two in a row gain less than a thousandth if there are more than 64 rows, and at most 4 times for
    more than 1000 rows, each at a mixture of the subsets before: steps of Frank-Wolfe, for all sizes at once. Then rows
    are dropped, added and swapped; of up to 24 rows every swap is tried. Of up to 64 rows another start is tried too:
    the best row, again and again.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, past = rng.normal(size=3), Past.of(rng.normal(size=(500, 3)))
    >>> found = relaxed(x, past)
    >>> bool(found.value < value(x, past, past.counts)), bool(certified(x, past, found).ratio < 1.5)
    (True, True)
    """
    return _search("relaxed", x, past)


def counts(x: Float64, past: Past) -> Subset:
    """Search by how often each distinct row counts: exact where that is proved, else heuristic; `exact` says which.

    One row: all of it, since f falls with n. Up to 4096 subsets: all of them. Two rows: all of one, or nearly, and some
    of the other, on a grid of 33 counts that is refined around the best. Up to 24 rows: one count is changed at a time,
    alone or with the others in proportion, from several starts. More rows: `relaxed`, for which a row met often is one
    row with a large weight. Up to 24 rows `tried` is bounded whatever the counts.

    Examples
    --------
    >>> x, past = np.array([1.0, 1.0]), Past.of([[1.0, 1.0], [1.0, 0.0]], counts=[30, 3000])
    >>> found = counts(x, past)
    >>> found.weights, found.exact, bool(certified(x, past, found).ratio < 1.01)
    (array([30.,  0.]), False, True)
    """
    return _search("counts", x, past)


def certified(x: Float64, past: Past, found: Subset, *, tolerance: float = 0.01, steps: int = 200) -> Subset:
    """Give a subset a bound that f of no subset is below, and so a certificate `ratio`.

    |B^-1 x| >= x'B^-1 x / |x|, and the right side is convex in the weights, so that Frank-Wolfe bounds it for all
    subsets of all sizes. The bound is close where B^-1 x points along x, and can be far too low for contexts longer
    than 1.

    Parameters
    ----------
    tolerance
        Stop once `ratio` is at most 1 + tolerance.
    steps
        The most looks at all rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> x, past = X[0], Past.of(X / np.linalg.norm(X, axis=1, keepdims=True))
    >>> bool(certified(x, past, relaxed(x, past)).ratio < 1.05)
    True
    """
    if found.exact:
        return found
    bound = kernel.bound_subsets(x, past.rows, past.counts, found.value, tolerance, steps)
    return found._replace(bound=min(bound, found.value), exact=bound >= found.value * (1 - 1e-8))
