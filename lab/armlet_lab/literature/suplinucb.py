"""SupLinUCB: Chu, Li, Reyzin and Schapire (2011), "Contextual Bandits with Linear Payoff Functions".

Ridge regression and its widths, computed stage by stage from rows that widths alone chose; see
`parts.staged`. That independence gives regret O(sqrt(T K d log^3(K T log(T) / delta))) for rewards
within [0, 1], |x| <= 1, |theta| <= 1 and a known horizon. The width is (alpha + 1) |x|_(V^-1) with
alpha = sqrt(log(2 T K / delta) / 2), the one for which the paper proves that intervals hold; for any noise, ridge and
norm it is (R sqrt(2 log(2 T K / delta)) + sqrt(ridge) |theta|) |x|_(V^-1), and R = 1/2 for rewards within [0, 1].
Stages halve widths from 1/2 on, so rewards must be scaled by a factor to about that range. With the theory's widths
short runs explore nearly always (a test has it at 99 % of 1024 steps): in practice lower `width_scale`.
Propensities are exact: 1, shared among ties.
Decide O(S K d^2), and O(K d^3) for a stage that changed; update O(d^2); memory O(S K d^2) whatever t, S = log2(T) / 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from armlet.inputs.settings import positive, settle
from armlet.policies.derived import ridge_rows
from armlet.types import Float64
from armlet_lab.literature.parts.factors import deviation, lengths
from armlet_lab.literature.parts.staged import Staged


@dataclass(frozen=True, slots=True, kw_only=True)
class SupLinUCB(Staged):
    """Walk through stages of LinUCB, each of which drops arms that are surely worse or asks for a row.

    Parameters
    ----------
    horizon
        T, how many steps are planned; it sets widths, thresholds and the number of stages.
    delta
        The chance that some interval of a stage fails.
    noise_scale
        The sub-gaussian scale R of rewards; the paper's widths are those of 1/2, for rewards within [0, 1].
    theta_norm
        A bound on |theta_a|; 1 in the paper.
    width_scale
        What widths are multiplied with: 1 for theory, less in practice.
    n_stages
        At most so many stages; as many as can be reached if left out.
    ridge
        The ridge; 1 in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> policy = SupLinUCB(horizon=1024)
    >>> policy.stages()
    5
    >>> policy.walk(policy.init(2, 1), np.array([1.0]), np.array([True, True])).stage  # nothing is known yet
    1
    """

    ridge: float = 1.0

    def __post_init__(self) -> None:
        Staged.__post_init__(self)
        settle(self, ridge=positive())

    def solve(self, A: Float64, b: Float64) -> Float64:
        """Return theta_hat and the factor of V^-1."""
        return ridge_rows(A, b, self.ridge)

    def read(self, y: Float64) -> tuple[Float64, Float64]:
        """Return ridge estimates and (alpha + 1) |x|_(V^-1)."""
        alpha = deviation(self.noise_scale, self.horizon, len(y), self.delta)
        radius = alpha + math.sqrt(self.ridge) * self.theta_norm
        return y[:, 0], self.width_scale * radius * lengths(y[:, 1:])
