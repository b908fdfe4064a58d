"""Near-ties next to bad arms: some arms differ by a hair, the others are clearly worse.

What exploring buys here is next to nothing, and what it costs is the bad arms: a policy that explores until it knows
the best arm explores forever. Contexts are (1, s) with fair signs s, so E xx' is the identity and every loss is 0,
`gap` or `bad`: sigma_min is 1 and delta_min is `gap`, exactly. Outside the paper.
Drawing n steps is O(n (d + K)), their means O(n K d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from armlet.environments.environment import (
    MAX_BITS,
    FiniteEnvironment,
    LinearArms,
    Noise,
    as_rows,
    bit_law,
    check_between,
    check_steps,
)
from armlet.errors import InvalidValueError
from armlet.types import Float64


@dataclass(frozen=True, slots=True, kw_only=True)
class NearTies(LinearArms):
    """Contexts of a 1 and fair signs, gaussian noise, and arms as `draw` makes them.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The parameter of each arm, d >= 2.
    scale
        The standard deviation of the noise.

    Examples
    --------
    >>> environment = NearTies.draw(np.random.default_rng(0), gap=0.5, bad=2.0)
    >>> mu = environment.means(np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]]))
    >>> mu.max(axis=1, keepdims=True) - mu
    array([[0. , 0.5, 2. ],
           [0.5, 0. , 2. ]])
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("scale", self.scale, 0.0, math.inf)
        if self.dim < 2:
            raise InvalidValueError(
                f"theta has rows of {self.dim} values; give 2 or more, a constant and a sign at least"
            )

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        gap: float = 0.001,
        bad: float = 0.75,
        near: int = 2,
        n_bad: int = 1,
        dim: int = 3,
        scale: float = 1.0,
    ) -> Self:
        """Draw what all arms have in common, standard gaussians, and put the arms around it.

        Near-ties come in pairs: of arms 0 and 1 the first is better by `gap` where the first sign is +1, else the
        second; arms 2 and 3 go by the second sign, and so on. A bad arm loses `bad` in every context.
        """
        check_between("gap", gap, 0.0, math.inf)
        check_between("bad", bad, gap, math.inf)
        if near < 2 or n_bad < 0 or dim < 2:
            raise InvalidValueError(f"near is {near}, n_bad {n_bad} and dim {dim}; give at least 2, 0 and 2")
        theta = np.tile(rng.standard_normal(dim), (near + n_bad, 1))
        for arm in range(near):
            theta[arm, 1 + arm // 2 % (dim - 1)] += gap / 2 * (-1) ** arm
        theta[near:, 0] -= bad - gap / 2  # the best of the others is gap / 2 above what is common
        return cls(theta=as_rows(theta), scale=scale)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts, a 1 and d - 1 fair signs: (n, d)."""
        check_steps(n, start)
        signs = 2.0 * rng.integers(0, 2, size=(n, self.dim - 1)) - 1.0
        return np.hstack([np.ones((n, 1)), signs])

    def reward_noise(self) -> tuple[Noise, float]:
        return "gaussian", self.scale

    def table(self) -> FiniteEnvironment | None:
        if self.dim - 1 > MAX_BITS:
            return None
        bits, chances = bit_law((0.5,) * (self.dim - 1))
        X = np.hstack([np.ones((len(bits), 1)), 2.0 * bits - 1.0])
        return self.tabulate(X, chances)

    def describe(self) -> list[str]:
        """Describe what the environment means, and what its constants are.

        Examples
        --------
        >>> for line in NearTies.draw(np.random.default_rng(0)).describe()[:4]:
        ...     print(line)
        Near-ties next to bad arms: 3 arms
        contexts: a 1 and 2 fair signs
        rewards: gaussian noise of standard deviation 1 around x'theta, without unit
        sigma_min = 1, the smallest non-zero eigenvalue of E xx'
        """
        return [
            f"Near-ties next to bad arms: {self.n_arms} arms",
            f"contexts: a 1 and {self.dim - 1} fair signs",
            f"rewards: gaussian noise of standard deviation {self.scale:g} around x'theta, without unit",
            *self.describe_constants(),
        ]
