"""Mirrors kernel/actions/pair_model.cpp: one ridge regression over pairs (context x, action z), items with intercepts.

The terms of a pair are products of (1, x) and (1, z). Rewards are phi'theta + delta_i + noise, where the intercept
delta_i ~ N(0, sigma^2 / kappa) belongs to an item, an action of one label and one z. With n_i, u_i, y_i the sums of 1,
x and r of an item and s_i = (n_i, u_i) (x) (1, z_i), the intercepts are solved in closed form:

    A~ = A - sum_i s_i s_i' / (n_i + kappa), b~ likewise, theta = (A~ + Lambda)^-1 b~,
    delta_i = (y_i - s_i'theta) / (n_i + kappa),
    w^2 = f'(A~ + Lambda)^-1 f + 1 / (n_i + kappa), f = phi - s_i / (n_i + kappa).

All of it is sums of rows, so rows are taken back and models merged; the evidence is weighed again then, and else when
rows have doubled. The kernel puts that off until it is asked or learns the next row. Every operation is in the order of
the kernel's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from armlet.errors import InvalidValueError, MergeError
from armlet.kernel import coins, normals
from armlet.reference.elementary import log
from armlet.reference.linear import BEYOND_ANY, cholesky
from armlet.reference.normal import item_normal
from armlet.reference.pair_evidence import (
    FIRST_KAPPA,
    KAPPAS,
    first_ridge,
    kappa_likelihood,
    likely_kappa,
    likely_ridge,
)
from armlet.reference.pair_sums import BITS_OF_ACTIONS, Item, PairSums, packed, rough, rounded, unpacked_sums
from armlet.reference.pair_terms import PairTerms
from armlet.types import Bool, Float64, Int64

KEPT: Final = 10_000
"""Items with an intercept of their own; the least recently learned ones beyond are folded in for good."""
SCALE: Final = 0.85
"""Of the optimistic bonus."""

UInt64 = NDArray[np.uint64]


class ActionRows:
    """Actions that can be played: features (n, dz) and keys (n,), one key for each label with its features.

    Examples
    --------
    >>> len(ActionRows(np.eye(3), np.arange(3, dtype=np.uint64)))
    3
    """

    def __init__(self, Z: Float64, keys: UInt64) -> None:
        self.Z: Float64 = np.array(Z, dtype=np.float64)
        self.keys: UInt64 = np.array(keys, dtype=np.uint64)
        if self.Z.ndim != 2 or self.keys.shape != (len(self.Z),):
            raise InvalidValueError("Z must be (n, dz) and keys (n,)")
        if len(np.unique(self.keys)) < len(self.keys):
            raise InvalidValueError("keys must differ from each other")

    def __len__(self) -> int:
        return len(self.Z)


@dataclass(slots=True)
class Solved:
    """What the last solve found: decisions read nothing else of the sums but items."""

    middles: Float64  # (dx + dz,): means of features, from their origins
    scales: Float64  # (dx + dz,): 1 / deviation, or 0
    theta: Float64  # (D,), in standard units
    L: Float64  # (D, D)
    inverse: Float64  # (D,): 1 / L_kk
    sigma: float = 0.0


class PairModel(PairSums):
    """The sums, the items and the last solution of a model over pairs.

    Parameters
    ----------
    dx, dz
        Features of contexts and of actions.
    products
        Which products x_i z_j there are, (m, 2), counted from 1.
    intercepts
        Whether items have intercepts of their own.
    kept
        How many items keep theirs.

    Examples
    --------
    Ten actions, whose reward is x z + z, plus 3 for the last one:

    >>> rng = np.random.default_rng(3)
    >>> rows = ActionRows(np.linspace(-1.0, 1.0, 10)[:, None], np.arange(10, dtype=np.uint64))
    >>> model = PairModel(1, 1, np.array([[1, 1]]), intercepts=True)
    >>> for t in range(200):
    ...     x, a = rng.normal(size=1), int(rng.integers(10))
    ...     z = rows.Z[a]
    ...     reward = float(x[0] * z[0] + z[0] + 3.0 * (a == 9) + 0.1 * rng.normal())
    ...     model.add(a, x, z, reward, 1.0)
    >>> model.greedy(np.array([-8.0]), rows, None).tolist(), model.greedy(np.array([1.0]), rows, None).tolist()
    ([0], [9])
    >>> model.n_terms, model.n_items, int(model.n), bool(model.sigma < 0.2)
    (4, 10, 200, True)
    """

    def __init__(self, dx: int, dz: int, products: Int64, *, intercepts: bool, kept: int = KEPT) -> None:
        if dx < 0 or dz < 0 or kept < 1:
            raise InvalidValueError(f"dx={dx} and dz={dz} must be at least 0, kept={kept} at least 1")
        super().__init__(PairTerms(dx, dz, products), intercepts, kept)
        self._empty()

    def _empty(self) -> None:
        self._clear()
        self._since = self._weighed = 0  # rows since the last solve, and at the last evidence
        self.last_exact_widths = 0
        self._expect_prior()
        self._solve()

    @property
    def n(self) -> float:
        """Rows learned, by weight."""
        return self._n

    @property
    def n_rows(self) -> int:
        """Rows learned."""
        return self._rows

    @property
    def n_terms(self) -> int:
        """The number of terms, D."""
        return len(self.terms)

    @property
    def n_items(self) -> int:
        """Items with an intercept."""
        return len(self._items)

    @property
    def sigma(self) -> float:
        """The deviation of the noise."""
        return self._solved.sigma

    @property
    def ridges(self) -> Float64:
        """The ridges of x, z and their products, in standard units, (3,)."""
        return self._ridges.copy()

    @property
    def kappa(self) -> float:
        """How many rows the prior of an intercept is worth."""
        return self._kappa

    # learning

    def add(self, key: int, x: Float64, z: Float64, reward: float, weight: float) -> None:
        """Learn one row."""
        if self._rows == 0 and not self._items:
            near = [rounded(v, BITS_OF_ACTIONS) for v in z.tolist()]
            self._origin = np.array([rough(v) for v in (reward, *x.tolist())] + near)
        self._change(key, x, z, reward, weight, 1)
        while len(self._items) > self.kept:
            self._fold(next(iter(self._items)))
        self._since += 1
        is_due = self._since >= min(max(self._rows // 64, 1), max(16, self.n_terms // 8))
        if is_due or (not self._has_varied() and self._variance() > 0.0):
            if self._rows >= 2 * self._weighed:
                self._weigh()
            self._solve()

    def remove(self, key: int, x: Float64, z: Float64, reward: float, weight: float) -> None:
        """Take back a row that was learned, as if it had never been."""
        self._check_held(key, weight)
        if self._rows == 1:
            return self._empty()
        row = [a - b for a, b in zip([reward, *x.tolist(), *z.tolist()], self._origin.tolist(), strict=True)]
        self._change(key, x, z, reward, -weight, -1)
        if self._clear_if_lost(row, weight):
            return self._empty()
        self._settle_constants(row, weight)
        return self.solve()

    def correct(self, key: int, x: Float64, z: Float64, old: float, new: float, weight: float) -> None:
        """Exchange the reward of a row that was learned."""
        self._check_held(key, weight)
        old, new, phi = old - self._origin[0], new - self._origin[0], self._phi(x, z)
        self._moments[:, 0] += weight * np.array([new - old, new * new - old * old])
        self._b += (weight * (new - old)) * phi
        self._squares += weight * (new * new - old * old)
        if self.intercepts:
            item = self._items[key]
            self._pull(item, -1.0)
            item.y += weight * (new - old)
            self._pull(item, 1.0)
        if self._clear_if_lost([old], weight):
            return self._empty()
        return self.solve()

    def merge(self, other: PairModel) -> None:
        """Add the rows of another model; its items count as learned later than the own ones."""
        self._check_alike(other)
        if other._rows > 0 or other._items:
            if self._rows == 0 and not self._items:
                self._origin = other._origin.copy()
            self._accumulate(other, 1)
            self._know_folded(other._folded)
            for key in list(self._items)[: max(len(self._items) - self.kept, 0)]:
                self._fold(key)
        if self._rows > 0 or self._items:
            self.solve()

    def subtract(self, base: PairModel) -> None:
        """Leave what was learned since `base`, an earlier copy; `base` merged with it is the model as it was."""
        self._check_alike(base)
        if not np.array_equal(self._origin, base._origin) and base._rows > 0:
            raise MergeError("the model does not come of that base: origins of features differ")
        self._accumulate(base, -1)
        self.solve()

    # solving

    def solve(self) -> None:
        """Weigh the evidence again and solve: everything is a function of the sums then."""
        self._weigh()
        self._solve()

    def _has_varied(self) -> bool:
        """Return whether rewards were different at the last solve."""
        return self._solved.sigma > 0.0

    def _ridge(self) -> Float64:
        """Return the diagonal of Lambda, (D,)."""
        out = np.zeros(self.n_terms)
        for group, ridge in zip(self.terms.groups, self._ridges.tolist(), strict=True):
            out[group] = ridge
        return out

    def _weigh(self) -> None:
        """Take kappa and the ridges from the evidence: they are functions of the sums."""
        self._weighed = self._rows
        self._expect_prior()
        self._repull()
        middles, scales = self._units()
        if self._system(middles, scales).variance > 0.0:
            self._weigh_ridges(middles, scales)
            if self.intercepts:
                self._weigh_kappa(middles, scales)
            self._weigh_ridges(middles, scales)

    def _weigh_ridges(self, middles: Float64, scales: Float64) -> None:
        system = self._system(middles, scales)
        for at, group in enumerate(self.terms.varies(scales)):
            if len(group) > 0:
                self._ridges[at] = likely_ridge(system, self._ridge(), group)

    def _expect_prior(self) -> None:
        self._ridges = np.array([first_ridge(len(group)) for group in self.terms.groups])
        self._kappa = FIRST_KAPPA

    def _weigh_kappa(self, middles: Float64, scales: Float64) -> None:
        n_items = np.array([item.n for item in self._items.values() if item.n > 0.0])
        likelihoods, ridge = np.zeros(len(KAPPAS)), self._ridge()
        for at, kappa in enumerate(KAPPAS.tolist()):
            self._kappa = kappa
            self._repull()
            likelihoods[at] = kappa_likelihood(self._system(middles, scales), ridge, n_items, kappa)
        self._kappa = likely_kappa(likelihoods)
        self._repull()

    def _solve(self) -> None:
        """Find theta, its factor and sigma."""
        middles, scales = self._units()
        system = self._system(middles, scales)
        L, inverse = cholesky(system.A + np.diag(self._ridge()))
        theta, explained = system.b.copy(), 0.0
        for k in range(len(theta)):
            theta[k] *= inverse[k]
            explained += float(theta[k] * theta[k])
            theta[k + 1 :] -= theta[k] * L[k + 1 :, k]
        back_substitute(L, inverse, theta)
        left = max(system.squares - explained, 0.0) + system.variance
        sigma = math.sqrt(left / self._n) if system.variance > 0.0 else 0.0
        if not sigma > 0.0:  # rewards that are all the same leave no slopes, where rounding would
            theta = np.zeros(self.n_terms)
            theta[0] = self._moments[0, 0] / self._n if self._n > 0.0 else 0.0
        self._since, self._solved = 0, Solved(middles, scales, theta, L, inverse, sigma)

    # asking

    def estimates(self, x: Float64, rows: ActionRows) -> Float64:
        """Return the expected reward of every row, (n,)."""
        return float(self._origin[0]) + self._scores(self._solved.theta, x, rows, self._views(rows, None))

    def widths(self, x: Float64, rows: ActionRows, allowed: Bool | None = None) -> Float64:
        """Return the posterior deviation of every row's expected reward, in units of sigma, (n,)."""
        Z, x = self._views(rows, allowed), self._view_x(x)
        own = np.full(len(rows), 1.0 / self._kappa if self.intercepts else 0.0)
        F = self.terms.spread(np.broadcast_to(x, (len(rows), len(x))), Z)
        for row, item in self._items_of(rows):
            share = 1.0 / (item.n + self._kappa)
            F[row] = self.terms.spread(x - self._view_sums(item) * share, Z[row])
            own[row] = share
        squares = forward_squares(self._solved.L, self._solved.inverse, F) + own
        out: Float64 = np.minimum(np.sqrt(squares), BEYOND_ANY)
        return out

    def greedy(self, x: Float64, rows: ActionRows, allowed: Bool | None) -> Int64:
        """Return the rows that share the highest estimate."""
        return best(self._scores(self._solved.theta, x, rows, self._views(rows, allowed)), allowed)

    def optimistic(self, x: Float64, rows: ActionRows, t: int, allowed: Bool | None, scale: float = SCALE) -> Int64:
        """Return the rows that share the highest estimate plus scale sigma w sqrt(2 log(1 + t w^2 / D))."""
        scores = self._scores(self._solved.theta, x, rows, self._views(rows, allowed))
        unit, D = scale * self.sigma, float(self.n_terms)
        bonus = [
            unit * (w * math.sqrt(2.0 * log(1.0 + t * (w * w) / D))) for w in self.widths(x, rows, allowed).tolist()
        ]
        self.last_exact_widths = len(rows) if allowed is None else int(allowed.sum())
        return best(scores + np.array(bonus), allowed)

    def draws(
        self, x: Float64, rows: ActionRows, t: int, seed: int, n: int, v: float, allowed: Bool | None
    ) -> list[Int64]:
        """Return, for each of n draws from the posterior, v times as wide, the rows that share the highest value.

        The draws are functions of the seed and t; intercepts, given theta, also of the key.
        """
        step, Z = coins(seed, t), self._views(rows, allowed)
        unit, out = v * self.sigma, []
        items = dict(self._items_of(rows))
        for j, g in enumerate(normals(step.pick, step.tie, n * self.n_terms).reshape(n, self.n_terms)):
            g = g.copy()
            back_substitute(self._solved.L, self._solved.inverse, g)
            scores = self._scores(self._solved.theta + unit * g, x, rows, Z)
            if self.intercepts:
                for row, key in enumerate(rows.keys.tolist()):
                    weight = items[row].n if row in items else 0.0
                    scores[row] += unit / math.sqrt(weight + self._kappa) * item_normal(step.pick, step.tie, j, key)
            out.append(best(scores, allowed))
        return out

    def _scores(self, theta: Float64, x: Float64, rows: ActionRows, Z: Float64) -> Float64:
        """Return phi'theta + delta_i of every row, (n,), from the origin of rewards."""
        v, out = self.terms.project(theta, self._view_x(x)), np.zeros(len(rows))
        for j in range(self.terms.dz + 1):
            out += Z[:, j] * v[j]
        for row, item in self._items_of(rows) if self._has_varied() else ():
            own, expected = self.terms.project(theta, self._view_sums(item)), 0.0
            for j in range(self.terms.dz + 1):
                expected += float(Z[row, j] * own[j])
            out[row] += (item.y - expected) / (item.n + self._kappa)
        return out

    def _items_of(self, rows: ActionRows) -> list[tuple[int, Item]]:
        items = ((row, self._items.get(key)) for row, key in enumerate(rows.keys.tolist())) if self._items else ()
        return [(row, item) for row, item in items if item is not None and item.n > 0.0]

    def _view_x(self, x: Float64) -> Float64:
        """Return (1, x) in standard units."""
        dx, at = self.terms.dx, self._solved
        return np.concatenate([[1.0], ((x - self._origin[1 : 1 + dx]) - at.middles[:dx]) * at.scales[:dx]])

    def _view_sums(self, item: Item) -> Float64:
        """Return (n_i, u_i) in standard units."""
        dx, at = self.terms.dx, self._solved
        return np.concatenate([[item.n], (item.u - at.middles[:dx] * item.n) * at.scales[:dx]])

    def _views(self, rows: ActionRows, allowed: Bool | None) -> Float64:
        """Return (1, z) of every row in standard units, (n, dz + 1).

        A feature that has not varied among learned rows is measured by what is allowed, about the value that it had.
        """
        dx, at = self.terms.dx, self._solved
        Z, scales = (rows.Z - self._origin[1 + dx :]) - at.middles[dx:], at.scales[dx:].copy()
        for j in np.flatnonzero(scales == 0.0).tolist():
            column = Z[:, j] if allowed is None else Z[allowed, j]
            square = float(np.cumsum(column * column)[-1]) / len(column) if len(column) else 0.0
            scales[j] = 1.0 / math.sqrt(square) if square > 1e-120 else 0.0
        return np.concatenate([np.ones((len(rows), 1)), Z * scales], axis=1)

    # state

    def copy(self) -> PairModel:
        """Return a model of its own with the same state."""
        out = PairModel(self.terms.dx, self.terms.dz, self.terms.products, intercepts=self.intercepts, kept=self.kept)
        out.restore_arrays(self.arrays())
        return out

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the whole state by name; matrices as the columns of their lower triangle."""
        items, at = self._items.values(), self._solved
        width = 2 + self.terms.dx + self.terms.dz
        folded = {"folded_keys": np.array(list(self._folded), dtype=np.uint64)} if self._folded else {}
        return folded | {
            "counts": np.array([self._rows, self._since, self._weighed], dtype=np.int64),
            "origin": self._origin.copy(),
            "moments": np.concatenate([[self._n], self._moments.ravel()]),
            "sums": np.concatenate([packed(self._A), self._b, [self._squares]]),
            "pulls": np.concatenate([packed(self._pull_A), self._pull_b, [self._pull_squares]]),
            "weights": np.concatenate([self._ridges, [self._kappa]]),
            "units": np.stack([at.middles, at.scales]),
            "theta": at.theta.copy(),
            "factor": np.concatenate([packed(at.L), at.inverse, [at.sigma]]),
            "item_keys": np.array(list(self._items), dtype=np.uint64),
            "item_rows": np.array([item.rows for item in items], dtype=np.int64),
            "items": np.array([[item.n, item.y, *item.u, *item.z] for item in items]).reshape(-1, width),
        }

    def restore_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take the state that `arrays` returned."""
        for name, array in self.arrays().items():
            if name == "folded_keys":
                continue
            saved = arrays[name]
            expected = (len(arrays["item_keys"]), *array.shape[1:]) if name.startswith("item") else array.shape
            if saved.shape != expected or saved.dtype != array.dtype:
                raise InvalidValueError(f"{name} must be {array.dtype} of shape {expected}, not {saved.shape}")
        D, dx = self.n_terms, self.terms.dx
        self._rows, self._since, self._weighed = arrays["counts"].tolist()
        self._origin = arrays["origin"].copy()
        self._n, self._moments = float(arrays["moments"][0]), arrays["moments"][1:].reshape(2, -1).copy()
        self._A, self._b, self._squares = unpacked_sums(arrays["sums"], D)
        self._pull_A, self._pull_b, self._pull_squares = unpacked_sums(arrays["pulls"], D)
        self._ridges, self._kappa = arrays["weights"][:3].copy(), float(arrays["weights"][3])
        (middles, scales), (L, inverse, sigma) = arrays["units"].copy(), unpacked_sums(arrays["factor"], D)
        self._solved = Solved(middles, scales, arrays["theta"].copy(), np.tril(L), inverse, sigma)
        items = zip(arrays["item_keys"].tolist(), arrays["item_rows"].tolist(), arrays["items"], strict=True)
        self._items = {
            key: Item(rows, float(sums[0]), float(sums[1]), sums[2 : 2 + dx].copy(), sums[2 + dx :].copy())
            for key, rows, sums in items
        }
        self._folded = dict.fromkeys(arrays["folded_keys"].tolist() if "folded_keys" in arrays else [])


def back_substitute(L: Float64, inverse: Float64, y: Float64) -> None:
    """Replace y by L^-T y."""
    for k in reversed(range(len(y))):
        y[k] *= inverse[k]
        y[:k] -= y[k] * L[k, :k]


def forward_squares(L: Float64, inverse: Float64, F: Float64) -> Float64:
    """Return |L^-1 f|^2 of every row f, (n,); the squares are added in eight columns, then across."""
    n, d = F.shape
    Y = np.zeros((-(-d // 8) * 8, n))
    Y[:d] = F.T
    for k in range(d):
        Y[k] *= inverse[k]
        Y[k + 1 : d] -= Y[k] * L[k + 1 :, k : k + 1]
    columns, total = np.zeros((8, n)), np.zeros(n)
    for part in (Y * Y).reshape(-1, 8, n):
        columns += part
    for column in columns:
        total += column
    return total


def best(scores: Float64, allowed: Bool | None) -> Int64:
    """Return the allowed rows of the highest score.

    Examples
    --------
    >>> best(np.array([1.0, 3.0, 3.0, 9.0]), np.array([True, True, True, False])).tolist()
    [1, 2]
    """
    rows = np.arange(len(scores)) if allowed is None else np.flatnonzero(allowed)
    return rows[scores[rows] == scores[rows].max()] if len(rows) else rows
