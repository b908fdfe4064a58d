"""The problem of Section 4.1: normalised Bernoulli(w) contexts, arms of length 1, payoffs x'Theta.

Readings of the printed text: the "uniform distribution" of theta's entries is that on [0, 1]; a context
of zeros stays zero; Theta is drawn afresh for every arm and step, uniform within F of theta. The paper
leaves open whether entries fluctuate independently. If they do, the noise F x'u has sigma = F / sqrt 3
whatever d; if they move together, it reaches F sqrt d, which is where the paper's L = O(sqrt d) is tight.
Drawing n steps is O(n K d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from armlet.environments.constants import Constants, scaled_bits_eigenvalue
from armlet.environments.linear_arms import (
    MAX_BITS,
    LinearArms,
    as_rows,
    bit_law,
    check_between,
    check_steps,
    scale_bits,
)
from armlet.errors import InvalidValueError
from armlet.types import Float64

Entries: TypeAlias = Literal["independent", "together"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section41(LinearArms):
    """One world of Section 4.1.

    Its noise has no name in a table, so `table()` is None; up to 16 dimensions its constants are exact.

    Parameters
    ----------
    theta : tuple of tuples of float, shape (K, d)
        The mean of each arm's Theta. `Section41.draw` draws it as the paper does.
    w
        The chance that an entry of a context is not zero, in (0, 1].
    F
        How far an entry of Theta may be from its mean.
    entries
        Whether the entries of Theta fluctuate "independent" of each other or all "together".

    Examples
    --------
    >>> world = Section41.draw(np.random.default_rng(0), n_arms=4, dim=5, w=0.4)
    >>> world.n_arms, world.dim, round(world.sigma_min(), 5)
    (4, 5, 0.13056)
    """

    w: float = 0.5
    F: float = 0.5
    entries: Entries = "independent"

    def __post_init__(self) -> None:
        LinearArms.__post_init__(self)
        check_between("w", self.w, 0.0, 1.0)
        check_between("F", self.F, 0.0, math.inf)
        if self.w == 0.0:
            raise InvalidValueError("w is 0 but then every context is zero; give a value in (0, 1]")
        if self.entries not in ("independent", "together"):
            raise InvalidValueError(f"entries is {self.entries!r}; choose 'independent' or 'together'")

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        n_arms: int = 6,
        dim: int = 5,
        w: float = 0.5,
        F: float = 0.5,
        entries: Entries = "independent",
    ) -> Self:
        """Draw theta: entries uniform on [0, 1], then every arm scaled to length 1."""
        theta = rng.random((n_arms, dim))
        theta /= np.linalg.norm(theta, axis=1, keepdims=True)
        return cls(theta=as_rows(theta), w=w, F=F, entries=entries)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw n contexts, each entry 1 with probability w, scaled to length 1: (n, d)."""
        check_steps(n, start)
        return scale_bits((rng.random((n, self.dim)) < self.w).astype(np.float64))

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        """Draw what every arm would pay in every context, x'Theta with a Theta of its own: (n, K)."""
        mu = self.means(X, start=start)
        if self.entries == "together":
            moves = rng.uniform(-1.0, 1.0, size=mu.shape) * np.abs(X).sum(axis=1, keepdims=True)
        else:
            moves = np.einsum("nkd,nd->nk", rng.uniform(-1.0, 1.0, size=(*mu.shape, self.dim)), X)
        noisy: Float64 = mu + self.F * moves
        return noisy

    def sigma_min(self) -> float:
        """Give sigma_min in closed form, for any d.

        Examples
        --------
        >>> Section41(theta=((1.0, 0.0, 0.0),), w=0.5).sigma_min()
        0.1875
        """
        return scaled_bits_eigenvalue(dim=self.dim, w=self.w)

    def constants(self) -> Constants:
        """Give the exact constants, up to 16 dimensions; beyond, delta_min would need all 2^d contexts."""
        if self.dim > MAX_BITS:
            raise InvalidValueError(
                f"delta_min is a minimum over 2^{self.dim} contexts, too many; sigma_min() has a formula"
            )
        rows, chances = bit_law((self.w,) * self.dim)
        # the noise is a sum of uniforms on [-F x_i, F x_i]: the squares of their constants add up to
        # F^2 |x|_2^2 / 3 if independent; one uniform on [-F |x|_1, F |x|_1] if together
        reach = math.sqrt(self.dim) if self.entries == "together" else 1.0
        noiseless = self.tabulate(scale_bits(rows), chances, "none", 0.0)
        return Constants.of(noiseless, np.array(self.theta), sigma=self.F * reach / math.sqrt(3.0))

    def describe(self) -> list[str]:
        """Say what the world means, and what its constants are.

        Examples
        --------
        >>> Section41.draw(np.random.default_rng(0)).describe()[1]
        'contexts: 5 entries, each 1 with probability 0.5, scaled to length 1; zero stays zero'
        """
        return [
            f"Section 4.1: {self.n_arms} arms",
            f"contexts: {self.dim} entries, each 1 with probability {self.w:g}, scaled to length 1; zero stays zero",
            f"rewards: x'Theta, entries of Theta within {self.F:g} of theta and {self.entries}, without unit",
            *([] if self.dim <= MAX_BITS else [f"sigma_min = {self.sigma_min():.6g}, from its formula"]),
            *self.describe_constants(),
        ]
