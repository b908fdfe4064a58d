"""SupLinRel: Auer (2002), "Using Confidence Bounds for Exploitation-Exploration Trade-offs".

LinRel's estimates and widths, computed stage by stage from rows that widths alone chose; see
`parts.staged`. That independence gives regret O(sqrt(T K d) log^(3/2)(K T log T)) for rewards within
[0, 1], |x| <= 1, |theta| <= 1 and a known horizon. What differs from the paper: it runs every stage with
delta / (1 + log T), so that all stages together fail with chance delta. Here delta is taken as given for each stage,
and the widths are smaller: for the theorem's, divide it before. Its theta is one for all arms, with a vector for each
arm; here arms have parameters of their own, so its dimension is K d. Of several wide arms it takes any, ours the
widest; and stages that nothing can reach are left out. Stages halve widths from 1/2 on, so
rewards must be scaled by a factor to about that range. With the theory's widths short runs explore nearly always (a
test has it at 99 % of 1024 steps): in practice lower `noise_scale`, which leaves directions that were never seen as
wide as they are.
Propensities are exact: 1, shared among ties.
Decide O(S K d^2), and O(K d^3) for a stage that changed; update O(d^2); memory O(S K d^2) whatever t, S = log2(T) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from armlet.types import Float64
from armlet_lab.literature.parts.factors import deviation, truncated_bounds, truncated_rows
from armlet_lab.literature.parts.staged import Staged


@dataclass(frozen=True, slots=True, kw_only=True)
class SupLinRel(Staged):
    """Walk through stages of LinRel, each of which drops arms that are surely worse or asks for a row.

    Parameters
    ----------
    horizon
        T, how many steps are planned; it sets widths, thresholds and the number of stages.
    delta
        The chance that some interval of one stage fails; the paper's delta divided by 1 + log T.
    noise_scale
        The sub-gaussian scale R of rewards; sqrt(1/2) gives the paper's sqrt(log(2 T K / delta)).
    theta_norm
        A bound on |theta_a|; 1 in the paper.
    width_scale
        What widths are multiplied with, those of directions that were never seen included; 1 for theory.
    n_stages
        At most so many stages; as many as can be reached if left out.

    Examples
    --------
    >>> import numpy as np
    >>> policy = SupLinRel(horizon=1024)
    >>> policy.stages()
    5
    >>> policy.walk(policy.init(2, 1), np.array([1.0]), np.array([True, True])).stage  # nothing is known yet
    1
    """

    def solve(self, A: Float64, b: Float64) -> Float64:
        """Return least squares on the directions that are known, its factor, and the other directions."""
        return truncated_rows(A, b)

    def read(self, y: Float64) -> tuple[Float64, Float64]:
        """Return LinRel's estimates and widths."""
        noise = deviation(self.noise_scale, self.horizon, len(y), self.delta)
        estimates, widths = truncated_bounds(y, noise=noise, theta_norm=self.theta_norm)
        return estimates, self.width_scale * widths
