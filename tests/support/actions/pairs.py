"""Lives of models over pairs, in the kernel and in the reference side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from armlet import kernel
from armlet.errors import ArmletError
from armlet.reference import pair_model as reference
from armlet.reference.pair_model import UInt64
from armlet.types import Bool, Float64, Int64

Row: TypeAlias = tuple[int, Float64, Float64, float, float]
Model: TypeAlias = kernel.PairModel | reference.PairModel


def all_products(dx: int, dz: int) -> Int64:
    """Return every pair of features, counted from 1."""
    return np.array([(i, j) for i in range(1, dx + 1) for j in range(1, dz + 1)], dtype=np.int64).reshape(-1, 2)


def assert_same(model: Model, other: Model) -> None:
    """Compare all of the state, to the last bit."""
    its = other.arrays()
    for name, array in model.arrays().items():
        np.testing.assert_array_equal(array, its[name], err_msg=name, strict=True)


@dataclass
class Pair:
    """The same table and the same model twice."""

    models: tuple[kernel.PairModel, reference.PairModel]
    rows: tuple[kernel.ActionRows, reference.ActionRows]
    Z: Float64
    keys: list[int]

    def fresh(self) -> Pair:
        """Return models without rows."""
        old = self.models[1]
        made = (old.terms.dx, old.terms.dz, old.terms.products)
        models = make_models(*made, intercepts=old.intercepts, kept=old.kept)
        return Pair(models, self.rows, self.Z, self.keys)

    def copy(self) -> Pair:
        """Return models of their own with the same state."""
        return Pair((self.models[0].copy(), self.models[1].copy()), self.rows, self.Z, self.keys)

    def do(self, name: str, *arguments: object) -> bool:
        """Call a method of both; return whether neither refused."""
        answers = []
        for model in self.models:
            try:
                getattr(model, name)(*arguments)
                answers.append("done")
            except ArmletError as error:
                answers.append(f"{type(error).__name__}: {error}")
        assert answers[0] == answers[1]
        return answers[0] == "done"

    def join(self, name: str, other: Pair) -> None:
        """Merge or subtract both."""
        for model, its in zip(self.models, other.models, strict=True):
            getattr(model, name)(its)

    def assert_same(self) -> None:
        """Compare the states."""
        assert_same(*self.models)

    def ask(self, x: Float64, t: int, allowed: Bool | None) -> None:
        """Compare what both answer."""
        (model, oracle), (rows, its) = self.models, self.rows
        np.testing.assert_array_equal(model.estimates(x, rows), oracle.estimates(x, its))
        np.testing.assert_array_equal(model.widths(x, rows, allowed), oracle.widths(x, its, allowed))
        np.testing.assert_array_equal(model.greedy(x, rows, allowed), oracle.greedy(x, its, allowed))
        np.testing.assert_array_equal(model.optimistic(x, rows, t, allowed), oracle.optimistic(x, its, t, allowed))
        assert model.last_exact_widths <= oracle.last_exact_widths
        drawn = zip(
            model.draws(x, rows, t, 7, 5, 1.0, allowed), oracle.draws(x, its, t, 7, 5, 1.0, allowed), strict=True
        )
        for mine, other in drawn:
            np.testing.assert_array_equal(mine, other)


def random_pair(rng: np.random.Generator) -> Pair:
    """Return models of a random shape, and a table whose features may repeat, be far from zero or hardly vary."""
    dx, dz, n = (int(rng.integers(low, high)) for low, high in ((0, 4), (0, 5), (1, 150)))
    products = all_products(dx, dz)
    if rng.random() < 0.5:
        products = products[rng.random(len(products)) < 0.5]
    scale, middle = rng.choice([1e-3, 1.0, 100.0], size=dz), rng.choice([0.0, 50.0, 1e4], size=dz)
    Z = np.round(rng.normal(size=(n, dz)) * scale + middle, int(rng.integers(0, 4)))
    if dz > 0 and rng.random() < 0.3:
        Z[:, 0] = rng.random(n) < 0.1
    keys = rng.integers(0, 2**63, size=n, dtype=np.uint64)
    intercepts, kept = bool(rng.random() < 0.8), int(rng.choice([3, 8, 1000]))
    return make_pair(make_models(dx, dz, products, intercepts=intercepts, kept=kept), Z, keys)


def make_models(
    dx: int, dz: int, products: Int64, *, intercepts: bool, kept: int
) -> tuple[kernel.PairModel, reference.PairModel]:
    """Return the kernel's model and the reference's."""
    return (
        kernel.PairModel(dx, dz, products, intercepts=intercepts, kept=kept),
        reference.PairModel(dx, dz, products, intercepts=intercepts, kept=kept),
    )


def make_pair(models: tuple[kernel.PairModel, reference.PairModel], Z: Float64, keys: UInt64) -> Pair:
    """Return both with a table."""
    return Pair(models, (kernel.ActionRows(Z, keys), reference.ActionRows(Z, keys)), Z, keys.tolist())


def random_row(rng: np.random.Generator, pair: Pair, middle: float = 0.0) -> Row:
    """Return a row of one of the first actions."""
    a = int(rng.integers(min(len(pair.keys), 20)))
    x = np.round(rng.normal(size=pair.models[1].terms.dx) * 3.0 + middle, 2)
    reward = float(np.round(rng.normal() + pair.Z[a].sum() % 3.0, 2))
    return pair.keys[a], x, pair.Z[a], reward, float(rng.choice([1.0, 1.0, 0.5, 2.3]))
