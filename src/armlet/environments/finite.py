"""A world small enough to be a table: finitely many contexts, each with its chance and the mean reward of every arm.

Such worlds can be simulated whole in the kernel, and in jumps from one exploration to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from armlet.errors import InvalidValueError
from armlet.types import Float64

Noise: TypeAlias = Literal["proportional", "gaussian", "bernoulli", "none"]
"""How a reward spreads around its mean mu, given a scale s:

- "proportional": mu (1 + s u), u uniform on [-1, 1];
- "gaussian": mu + s z, z standard normal;
- "bernoulli": 1 with probability mu, else 0 (s is not used);
- "none": mu.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiniteWorld:
    """Contexts, their chances, and what the arms pay.

    Examples
    --------
    >>> import numpy as np
    >>> FiniteWorld(contexts=np.eye(2), chances=np.array([0.9, 0.1]), means=np.array([[1.0, 0.0], [0.0, 1.0]])).gap
    0.5
    """

    contexts: Float64  # (M, d)
    chances: Float64  # (M,): sums to 1
    means: Float64  # (M, K)
    noise: Noise = "none"
    scale: float = 1.0

    def __post_init__(self) -> None:
        m = len(self.contexts)
        if self.contexts.ndim != 2 or self.chances.shape != (m,) or self.means.ndim != 2 or len(self.means) != m:
            raise InvalidValueError(
                f"contexts, chances and means have shapes {self.contexts.shape}, {self.chances.shape} and "
                f"{self.means.shape}; give (M, d), (M,) and (M, K)"
            )
        if not (self.chances >= 0).all() or abs(self.chances.sum() - 1) > 1e-9:
            raise InvalidValueError(f"chances are {self.chances}; they must not be negative and must sum to 1")
        if self.noise not in ("proportional", "gaussian", "bernoulli", "none"):
            raise InvalidValueError(
                f"noise is {self.noise!r}; choose 'proportional', 'gaussian', 'bernoulli' or 'none'"
            )
        if self.noise == "bernoulli" and not ((self.means >= 0) & (self.means <= 1)).all():
            raise InvalidValueError("means of 0/1 rewards must lie between 0 and 1")

    @property
    def losses(self) -> Float64:
        """What each arm loses against the best one in each context, (M, K)."""
        best: Float64 = self.means.max(axis=1, keepdims=True)
        return best - self.means

    @property
    def gap(self) -> float:
        """What a random arm loses a step, on average."""
        return float(self.chances @ self.losses.mean(axis=1))
