"""Two sets of sums of the same arms: those of some rows, and those of all rows.

Memory O(K d^2), twice that of one set. Model files and `arrays` hold both, stacked.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np

from armlet.inputs.settings import Ridge, Units, check_origin
from armlet.kernel import Statistics, sum_shapes
from armlet.types import Array, Shapes

N_LAYERS = 2


class Layers:
    """Sums of some rows, and sums of all rows, of every arm.

    Examples
    --------
    >>> layers = Layers(n_arms=2, dim=1, ridge=Ridge.parse(1.0))
    >>> layers[1].add(0, np.array([1.0]), 2.0)
    >>> layers[0].n.tolist(), layers[1].n.tolist(), layers.arrays()["records"].shape
    ([0.0, 0.0], [1.0, 0.0], (2, 2, 5))
    """

    not_summed = ("units",)

    def __init__(
        self, n_arms: int, dim: int, *, ridge: Ridge, units: Units = "as given", origin: tuple[float, ...] | None = None
    ) -> None:
        zero = check_origin(origin, dim)
        self._layers = [
            Statistics(n_arms, dim, ridge=ridge.kind, value=ridge.value, units=units, origin=zero)
            for _ in range(N_LAYERS)
        ]

    def __getitem__(self, layer: int) -> Statistics:
        """Return a layer itself, not a copy."""
        return self._layers[layer]

    @property
    def n_arms(self) -> int:
        """The number of arms, K."""
        return self._layers[0].n_arms

    @property
    def dim(self) -> int:
        """The number of features of a context, d."""
        return self._layers[0].dim

    @property
    def nbytes(self) -> int:
        """Bytes of both layers."""
        return sum(layer.nbytes for layer in self._layers)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of both layers, stacked."""
        both = [layer.arrays() for layer in self._layers]
        return {name: np.stack([arrays[name] for arrays in both]) for name in both[0]}

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned."""
        restored = self.copy()  # the second layer may be refused
        for place, layer in enumerate(restored._layers):
            layer.restore_arrays({name: np.ascontiguousarray(array[place]) for name, array in arrays.items()})
        self._layers = restored._layers

    def copy(self) -> Self:
        """Make another that shares nothing with this one."""
        twin = copy.copy(self)
        twin._layers = [layer.copy() for layer in self._layers]
        return twin

    def add_arm(self) -> None:
        """Append an arm without rows."""
        for layer in self._layers:
            layer.add_arm()

    def remove_arm(self, arm: int) -> None:
        """Drop an arm from both layers."""
        for layer in self._layers:
            layer.remove_arm(arm)

    def merge(self, other: Self, into: list[int]) -> None:
        """Add the other's sums, layer by layer."""
        merged = self.copy()  # the second layer may be refused
        for mine, others in zip(merged._layers, other._layers, strict=True):
            mine.merge(others, into)
        self._layers = merged._layers

    def subtract(self, earlier: Self, into: list[int]) -> None:
        """Subtract the sums of an earlier state, layer by layer."""
        rest = self.copy()
        for mine, others in zip(rest._layers, earlier._layers, strict=True):
            mine.subtract(others, into)
        self._layers = rest._layers


def layered_shapes(n_arms: int, dim: int, units: Units) -> Shapes:
    """Return the shapes of the arrays of `Layers`.

    Examples
    --------
    >>> layered_shapes(2, 3, "free")
    {'records': (2, 2, 17), 'units': (2, 13)}
    """
    return {name: (N_LAYERS, *shape) for name, shape in sum_shapes(n_arms, dim, units=units).items()}
