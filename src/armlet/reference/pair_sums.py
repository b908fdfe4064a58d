"""Mirrors kernel/actions/pair_sums.cpp: the sums of a model over pairs (context x, action z), and those of every item.

An item is an action of one label and one z. With n_i, u_i, y_i the sums of 1, x and r of an item and
s_i = (n_i, u_i) (x) (1, z_i), intercepts are solved in closed form by taking s_i s_i' / (n_i + kappa) out of A,
s_i y_i / (n_i + kappa) out of b and y_i^2 / (n_i + kappa) out of the squares: the pulls, kept running. What an item
took out stays out when it is folded in for good. Rows of an item that comes back after that cannot be taken back:
nothing tells them from those before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.errors import InvalidValueError, MergeError
from armlet.reference.lost_digits import EMPTIED, ColumnSums
from armlet.reference.pair_evidence import FIRST_KAPPA, PairSystem
from armlet.reference.pair_terms import ROUNDING, PairTerms, mirrored, standard_units
from armlet.reference.units import ORDINARY
from armlet.types import Float64

FOLDED_PER_ITEM: Final = 8
"""Keys of folded items that are known, for each that may be kept."""
BITS_OF_ACTIONS: Final = 24
"""Of an origin: features of actions are those of a catalogue."""


@dataclass(slots=True)
class Item:
    """Sums over the rows of one key: how many, their weight, (r - r0) and (x - o); and its z - o."""

    rows: int
    n: float
    y: float
    u: Float64  # (dx,)
    z: Float64  # (dz,)

    def sums(self) -> Float64:
        """Return (n_i, u_i), which stands for (1, x) in s_i."""
        return np.concatenate([[self.n], self.u])


class PairSums:
    """All that is learned: sums over terms and over items, from the origins of rewards and features."""

    def __init__(self, terms: PairTerms, intercepts: bool, kept: int) -> None:
        self.terms, self.intercepts, self.kept = terms, intercepts, kept
        self._clear()

    def _clear(self) -> None:
        D, d = len(self.terms), self.terms.dx + self.terms.dz
        self._rows, self._n, self._kappa = 0, 0.0, FIRST_KAPPA
        self._origin: Float64 = np.zeros(1 + d)  # of r, x, z
        self._moments: Float64 = np.zeros((2, 1 + d))  # sums and sums of squares of r, x, z from their origins
        self._A, self._b, self._squares = np.zeros((D, D)), np.zeros(D), 0.0
        self._items: dict[int, Item] = {}  # the least recently learned first
        self._folded: dict[int, None] = {}  # keys of items that were folded in, the first one first
        self._forget_pulls()

    def _change(self, key: int, x: Float64, z: Float64, reward: float, weight: float, rows: int) -> None:
        """Add a row to the sums; of negative weight, one that is taken back."""
        phi, r = self._phi(x, z), float(reward - self._origin[0])
        row = np.concatenate([[r], x - self._origin[1 : 1 + self.terms.dx], z - self._origin[1 + self.terms.dx :]])
        self._rows += rows
        self._n += weight
        self._moments[0] += weight * row
        self._moments[1] += (weight * row) * row
        self._A += weight * np.outer(phi, phi)
        self._b += (weight * r) * phi
        self._squares += (weight * r) * r
        if not self.intercepts:
            return
        item = self._items.get(key)
        if item is None:
            dx = self.terms.dx
            item = self._items[key] = Item(0, 0.0, 0.0, np.zeros(dx), row[1 + dx :])
        elif rows > 0:
            self._items[key] = self._items.pop(key)
        self._pull(item, -1.0)
        item.rows += rows
        item.n += weight
        item.y += weight * r
        item.u += weight * row[1 : 1 + self.terms.dx]
        if item.rows == 0:
            del self._items[key]
        else:
            self._pull(item, 1.0)

    def _clear_if_lost(self, row: list[float], weight: float) -> bool:
        """Drop sums that have lost their digits with a row that was taken back, or the reward of one."""
        ratios = [weight / max(self._n, 1.0)] if len(row) > 1 else []
        for j, zero in enumerate(self._origin.tolist() if self._n > 0.0 else []):
            own = ColumnSums(self._n, *self._moments[:, j].tolist())
            size = own.square if own.is_far_from(zero) else 0.0
            if j < len(row):
                size += own.taken(row[j], weight)
            ratios.append(size / (self._n * own.variance(zero, weight)))
        is_lost = any(one > EMPTIED for one in ratios)
        if is_lost:
            self._clear()
        return is_lost

    def _settle_constants(self, row: list[float], weight: float) -> None:
        """Bring features to one value in which nothing but the rounding of a row that was taken back varies."""
        middles, ones = np.zeros(len(row) - 1), np.ones(len(row) - 1)
        scales = ones.copy()
        for j, taken in enumerate(row[1:] if self._n > 0.0 else []):
            value = ColumnSums(self._n, *self._moments[:, 1 + j].tolist()).constant(taken, weight)
            if value is None:
                continue
            middles[j], scales[j] = value, 0.0
            self._moments[0, 1 + j] = self._n * value
            self._moments[1, 1 + j] = self._moments[0, 1 + j] * value
            for item in self._items.values() if j < self.terms.dx else ():
                item.u[j] = item.n * value
        if scales.all():
            return
        A = self.terms.map_matrix(mirrored(self._A), middles, scales)
        b = self.terms.map(self._b, middles, scales)
        self._A, self._b = self.terms.map_matrix(mirrored(A), -middles, ones), self.terms.map(b, -middles, ones)
        self._repull()

    def _phi(self, x: Float64, z: Float64) -> Float64:
        dx = self.terms.dx
        x, z = x - self._origin[1 : 1 + dx], z - self._origin[1 + dx :]
        return self.terms.spread(np.concatenate([[1.0], x]), np.concatenate([[1.0], z]))

    def _forget_pulls(self) -> None:
        D = len(self.terms)
        self._pull_A, self._pull_b, self._pull_squares = np.zeros((D, D)), np.zeros(D), 0.0

    def _pull(self, item: Item, sign: float) -> None:
        """Add what an item's intercept takes out of the sums; nothing for one that only stands to be merged."""
        if not item.n > 0.0:
            return
        s, share = self._item_terms(item), sign / (item.n + self._kappa)
        self._pull_A += share * np.outer(s, s)
        self._pull_b += (share * item.y) * s
        self._pull_squares += (share * item.y) * item.y

    def _item_terms(self, item: Item) -> Float64:
        return self.terms.spread(item.sums(), np.concatenate([[1.0], item.z]))

    def _fold(self, key: int) -> None:
        """Give up an item's intercept: what it took out of the sums stays out."""
        item = self._items.pop(key)
        self._know_folded([key])
        if not item.n > 0.0:
            return
        s, share = self._item_terms(item), 1.0 / (item.n + self._kappa)
        self._A -= share * np.outer(s, s)
        self._b -= (share * item.y) * s
        self._squares -= (share * item.y) * item.y
        self._pull(item, -1.0)

    def _know_folded(self, keys: Iterable[int]) -> None:
        """Keep the keys of items that were folded in: their rows cannot be distinguished from those since."""
        for key in keys:
            self._folded.setdefault(key)
            if len(self._folded) > FOLDED_PER_ITEM * self.kept:
                del self._folded[next(iter(self._folded))]

    def _accumulate(self, other: PairSums, sign: int) -> None:
        """Add or subtract the sums of another model, brought to the own origin."""
        dx = self.terms.dx
        delta = self._origin - other._origin
        A, b, squares, (sums, moments) = other._A, other._b, other._squares, other._moments
        if delta.any():
            b, squares = b - delta[0] * A[:, 0], (squares - delta[0] * b[0]) - delta[0] * (b[0] - delta[0] * A[0, 0])
            moments = (moments - delta * sums) - delta * (sums - delta * other._n)
            sums = sums - delta * other._n
            ones = np.ones(len(delta) - 1)
            A, b = self.terms.map_matrix(mirrored(A), delta[1:], ones), self.terms.map(b, delta[1:], ones)
        self._rows += sign * other._rows
        self._n += sign * other._n
        self._moments += sign * np.stack([sums, moments])
        self._A += sign * A
        self._b += sign * b
        self._squares += sign * squares
        for key, item in other._items.items():
            u, y = item.u - delta[1 : 1 + dx] * item.n, item.y - delta[0] * item.n
            mine = self._items.pop(key, None) or Item(0, 0.0, 0.0, np.zeros(dx), item.z - delta[1 + dx :])
            mine.rows += sign * item.rows
            mine.n += sign * item.n
            mine.y += sign * y
            mine.u += sign * u
            # as many rows as the base had, but others: the difference says so
            if mine.rows != 0 or (sign < 0 and (mine.n != 0.0 or mine.y != 0.0 or mine.u.any())):
                self._items[key] = mine
        self._repull()

    def _repull(self) -> None:
        self._forget_pulls()
        for item in self._items.values():
            self._pull(item, 1.0)

    def _units(self) -> tuple[Float64, Float64]:
        return standard_units(self._n, self._moments[0, 1:], self._moments[1, 1:])

    def _system(self, middles: Float64, scales: Float64) -> PairSystem:
        """Return what the items have left of the sums, in standard units."""
        A = self.terms.map_matrix(mirrored(self._A - self._pull_A), middles, scales)
        b = self.terms.map(self._b - self._pull_b, middles, scales)
        return PairSystem(A, b, self._squares - self._pull_squares, self._n, self._variance())

    def _variance(self) -> float:
        """Return the variance of all rewards, 0 if they differ by rounding alone."""
        sums, squares = self._moments[:, 0].tolist()
        spread = max(squares - sums * sums / self._n, 0.0) if self._n > 0.0 else 0.0
        return float(spread / self._n) if spread > ROUNDING * squares else 0.0

    def _check_held(self, key: int, weight: float) -> None:
        """Refuse to take back a row that is no longer kept apart."""
        item = self._items.get(key)
        if self._rows == 0:
            raise InvalidValueError("no row has been learned")
        if self.intercepts and (item is None or key in self._folded or item.n - weight < -1e-9 * item.n):
            raise InvalidValueError(
                f"the rows of item {key} are no longer kept apart: more than kept={self.kept} items came after some of "
                "them, or no such row was learned"
            )

    def _check_alike(self, other: PairSums) -> None:
        mine, its = ((m.terms.dx, m.terms.dz, m.terms.products.tolist(), m.intercepts) for m in (self, other))
        if mine != its:
            raise MergeError("the models have different features, products or intercepts")


def rough(value: float) -> float:
    """Return four bits of a value, eight of a large one: nobody's row can be read off such an origin.

    Examples
    --------
    >>> rough(129_900.0), rough(-35.0), rough(0.0)
    (130048.0, -36.0, 0.0)
    """
    return rounded(value, 8 if abs(value) > ORDINARY else 4)


def rounded(value: float, bits: int) -> float:
    """Return so many bits of a value: products are small about such an origin."""
    fraction, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(fraction, bits)), exponent - bits)


def packed(M: Float64) -> Float64:
    """Return the columns of a lower triangle, one after the other."""
    return M.T[np.triu_indices(len(M))]


def unpacked_sums(values: Float64, D: int) -> tuple[Float64, Float64, float]:
    """Return a symmetric matrix, a vector and a number that were joined."""
    size = D * (D + 1) // 2
    M: Float64 = np.zeros((D, D))
    M.T[np.triu_indices(D)] = values[:size]
    return mirrored(M), values[size : size + D].copy(), float(values[-1])
