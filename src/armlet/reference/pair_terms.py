"""Mirrors kernel/actions/terms.cpp: the terms of a pair (context x, action z), products of (1, x) and (1, z).

The terms come in this order: the constant, every x_i, every z_j, then the chosen products x_i z_j. A shift or another
unit of a feature maps sums over terms to sums over terms, since every product has its factors among them.
"""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np

from armlet.errors import InvalidValueError
from armlet.types import Float64, Int64

ROUNDING: Final = 2.0**-46
"""A variance that is a smaller share of its mean square is none."""
LEAST_SQUARE: Final = 1e-120
"""A variance below this has lost its digits."""


class PairTerms:
    """The index pairs (i, j) of all terms x_i z_j, where x_0 = z_0 = 1.

    Parameters
    ----------
    dx, dz
        Features of a context and of an action.
    products
        Which products there are besides x and z, (m, 2): i from 1 to dx, j from 1 to dz.

    Examples
    --------
    >>> terms = PairTerms(1, 2, np.array([[1, 2]]))
    >>> terms.i.tolist(), terms.j.tolist()
    ([0, 1, 0, 0, 1], [0, 0, 1, 2, 2])
    >>> terms.spread(np.array([1.0, 3.0]), np.array([1.0, 5.0, 7.0]))
    array([ 1.,  3.,  5.,  7., 21.])
    """

    def __init__(self, dx: int, dz: int, products: Int64) -> None:
        products = np.asarray(products, dtype=np.int64).reshape(-1, 2)
        if ((products < 1) | (products > [dx, dz])).any():
            raise InvalidValueError(f"products must be pairs of features from 1 to {dx} and from 1 to {dz}")
        if len(np.unique(products, axis=0)) < len(products):
            raise InvalidValueError("products must differ from each other")
        self.dx, self.dz, self.products = dx, dz, products
        zeros_x, zeros_z = np.zeros(dx, dtype=np.int64), np.zeros(dz, dtype=np.int64)
        self.i = np.concatenate([[0], np.arange(1, dx + 1), zeros_z, products[:, 0]])
        self.j = np.concatenate([[0], zeros_x, np.arange(1, dz + 1), products[:, 1]])
        ends = np.cumsum([1, dx, dz, len(products)])
        self.groups = [np.arange(start, end) for start, end in itertools.pairwise(ends)]

    def __len__(self) -> int:
        """Return D, the number of terms."""
        return len(self.i)

    def spread(self, x: Float64, z: Float64) -> Float64:
        """Return the terms of one pair, (D,), or of rows of pairs, (..., D); x and z begin with what stands for 1."""
        return x[..., self.i] * z[..., self.j]

    def project(self, theta: Float64, x: Float64) -> Float64:
        """Return v with x~' Theta z = v' z, (dz + 1,): sums in the order of the terms."""
        v = np.zeros(self.dz + 1)
        for coefficient, i, j in zip(theta.tolist(), self.i.tolist(), self.j.tolist(), strict=True):
            v[j] += coefficient * x[i]
        return v

    def map(self, sums: Float64, middles: Float64, scales: Float64) -> Float64:
        """Return sums over terms, along the first axis, after (x, z) became ((x, z) - middles) * scales.

        Examples
        --------
        >>> terms = PairTerms(1, 1, np.array([[1, 1]]))
        >>> phi = terms.spread(np.array([1.0, 3.0]), np.array([1.0, 5.0]))
        >>> terms.map(phi, np.array([1.0, 2.0]), np.array([0.5, 1.0]))
        array([1., 1., 3., 3.])
        """
        along = (-1,) + (1,) * (sums.ndim - 1)
        (mx, mz), (sx, sz) = ((v[: self.dx].reshape(along), v[self.dx :].reshape(along)) for v in (middles, scales))
        one, xs, zs, both = np.split(sums, np.cumsum([1, self.dx, self.dz]))
        i, j = self.products[:, 0] - 1, self.products[:, 1] - 1
        rest_z = zs - mz * one
        rest = (both - mz[j] * xs[i]) - mx[i] * rest_z[j]
        return np.concatenate([one, (xs - mx * one) * sx, rest_z * sz, rest * (sx[i] * sz[j])])

    def map_matrix(self, A: Float64, middles: Float64, scales: Float64) -> Float64:
        """Return S A S' of symmetric sums over pairs of terms; its lower triangle is exact, the upper mirrors it."""
        out = self.map(self.map(A, middles, scales).T.copy(), middles, scales).T
        return mirrored(out)

    def varies(self, scales: Float64) -> list[Int64]:
        """Return the terms of each group, x, z and products, whose factors have a scale."""
        x, z = np.concatenate([[1.0], scales[: self.dx]]), np.concatenate([[1.0], scales[self.dx :]])
        return [group[(x[self.i[group]] > 0) & (z[self.j[group]] > 0)] for group in self.groups]


def mirrored(M: Float64) -> Float64:
    """Return the symmetric matrix of a lower triangle."""
    return np.tril(M) + np.tril(M, -1).T


def standard_units(n: float, sums: Float64, squares: Float64) -> tuple[Float64, Float64]:
    """Return the mean of each feature and 1 / its deviation, 0 for a feature that has not varied.

    Examples
    --------
    >>> standard_units(2.0, np.array([4.0, 6.0]), np.array([10.0, 18.0]))
    (array([2., 3.]), array([1., 0.]))
    """
    if not n > 0.0:
        return np.zeros(len(sums)), np.zeros(len(sums))
    mean, square = sums / n, squares / n
    variance = square - mean * mean
    is_spread = (variance > ROUNDING * square) & (variance > LEAST_SQUARE)
    return mean, np.where(is_spread, 1.0 / np.sqrt(np.where(is_spread, variance, 1.0)), 0.0)
