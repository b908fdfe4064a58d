"""What a policy of this family remembers: n, A, b, sum_r and sum_rr per arm, in one block of memory.

The sums are additive, so rows can be added, taken back, corrected and merged exactly; estimates are solved from them
lazily, only for the arms that changed. Memory O(K d^2); update O(d^2); solve O(d^3) an arm.
With a constant ridge there are widths sqrt(x' V^-1 x) too; the first to ask for them doubles the memory, since a
factor of V is kept for every arm.
"""

from __future__ import annotations

import numpy as np

from armlet.errors import MissingConstantError
from armlet.kernel import Layers, Statistics
from armlet.reference.units import Units
from armlet.types import Float64, Interaction, Shapes

__all__ = ["Layers", "Statistics", "record", "smallest_eigenvalue", "solved_shape", "sum_shapes"]


def record(state: Statistics, interaction: Interaction) -> None:
    """Fold one interaction into the sums.

    Examples
    --------
    >>> state = Statistics(n_arms=2, dim=1)
    >>> record(state, Interaction(t=1, x=np.array([2.0]), arm=1, reward=3.0))
    >>> state.n.tolist(), state.b.tolist()
    ([0.0, 1.0], [[0.0], [6.0]])
    """
    i = interaction
    if i.replaces is None:
        state.add(i.arm, i.x, i.reward, i.weight)
    else:
        state.correct(i.arm, i.x, i.replaces, i.reward, i.weight)


def sum_shapes(n_arms: int, dim: int, *layers: int, units: Units = "as given") -> Shapes:
    """Give the shape of `Statistics`, or of several layers of them.

    Examples
    --------
    >>> sum_shapes(2, 3), sum_shapes(2, 3, 2)
    ({'records': (2, 12)}, {'records': (2, 2, 12)})
    >>> sum_shapes(2, 3, units="free")
    {'records': (2, 17), 'units': (13,)}
    """
    size = dim + 1 if units == "free" else dim
    records: Shapes = {"records": (*layers, n_arms, 3 + size + size * (size + 1) // 2)}
    return {**records, "units": (*layers, 1 + 3 * size)} if units == "free" else records


def solved_shape(n_arms: int, size: int) -> tuple[int, int]:
    """Give the shape of what `Paced` keeps of its last solves: five facts, an estimate and a factor of each arm.

    A factor of size D is kept in tiles of eight by eight from the diagonal down, and then 1 / L_kk. A column that leads
    whole tiles is kept apart, after them.

    Examples
    --------
    >>> solved_shape(2, 9), solved_shape(2, 12)
    ((2, 102), (2, 225))
    """
    lead = int(size > 8 and size % 8 == 1)
    tiles, padded = -(-(size - lead) // 8), 8 * -(-size // 8)
    return n_arms, 5 + size + 64 * tiles * (tiles + 1) // 2 + 8 * tiles + lead * padded


def smallest_eigenvalue(second_moment: Float64) -> float:
    """Give the smallest eigenvalue of E xx' that is not zero.

    An eigenvalue counts as zero up to 10 d eps times the largest: eigvalsh is exact up to a small multiple
    of d eps times the norm of the matrix.

    Examples
    --------
    >>> smallest_eigenvalue(np.diag([0.5, 0.25, 0.0]))
    0.25
    """
    values = np.linalg.eigvalsh(second_moment)
    left = values[values > 10 * len(values) * np.finfo(np.float64).eps * values[-1]]
    if left.size == 0:
        raise MissingConstantError("sigma_min", "every context is zero")
    return float(left[0])
