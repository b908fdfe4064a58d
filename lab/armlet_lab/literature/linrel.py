"""LinRel: Auer (2002), "Using Confidence Bounds for Exploitation-Exploration Trade-offs".

Least squares on the directions in which an arm's contexts have an eigenvalue of at least 1, none on the others; plays
the arm with the highest estimate plus width. The paper has one theta for all arms; lifting x to e_a (x) x makes its
eigenvectors those of each arm, so all is computed arm by arm. Its weights a_i of single rewards only occur as a'r and
|a|, which follow from A and b, so no row is kept.
The analysis takes rewards within [0, 1], |x| <= 1, |theta| <= 1 and a known horizon, and needs rewards that do not
influence which rows are kept: that holds for SupLinRel, so plain LinRel has no regret bound. The threshold 1 depends
on the scale of x: normalise contexts.
Propensities are exact: 1, shared among ties.
Decide O(K d^2), and O(d^3) for an arm that changed; update O(d^2); memory O(K d^2) for any t.
"""

from __future__ import annotations

from dataclasses import dataclass

from armlet.inputs.settings import NOISE_SCALE, Ridge, chance, positive, settle, whole
from armlet.policies.base import SumsPolicy
from armlet.reference.choice import best_chances, play_best
from armlet.types import Bool, Choice, Coins, Float64
from armlet_lab.literature.derived import Derived
from armlet_lab.literature.factors import deviation, truncated_bounds, truncated_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LinRel(SumsPolicy[Derived]):
    """Play the highest upper confidence bound of least squares on well-seen directions.

    Parameters
    ----------
    horizon
        T, how many steps are planned; it may be exceeded, then the widths hold less surely.
    delta
        The chance that some interval fails.
    noise_scale
        The sub-gaussian scale R of rewards; sqrt(1/2) gives the paper's sqrt(log(2 T K / delta)).
    theta_norm
        A bound on |theta_a|, the worth of a unit step in a direction that is not known; 1 in the paper.
    width_scale
        What widths are multiplied with: 1 for theory, less in practice.

    Examples
    --------
    >>> import numpy as np
    >>> policy = LinRel(horizon=1000)
    >>> state = policy.init(2, 2)
    >>> state.add(1, np.array([1.0, 0.0]), 0.5)
    >>> estimates, widths = policy.bounds(state, np.array([0.0, 1.0]))
    >>> estimates, widths  # the second direction was never seen
    (array([0., 0.]), array([1., 1.]))
    """

    horizon: int
    delta: float = 0.05
    noise_scale: float = NOISE_SCALE
    theta_norm: float = 1.0
    width_scale: float = 1.0

    def __post_init__(self) -> None:
        settle(
            self, horizon=whole(), delta=chance(), noise_scale=positive(), theta_norm=positive(), width_scale=positive()
        )

    def init(self, n_arms: int, dim: int) -> Derived:
        """Know nothing. The ridge is only there to be stated: estimates come from the rows."""
        return Derived(n_arms, dim, Ridge.parse(1.0), truncated_rows)

    def estimates(self, state: Derived) -> Float64:
        """Return least squares on the directions that are known, (K, d)."""
        return state.derived()[:, 0].copy()

    def bounds(self, state: Derived, x: Float64) -> tuple[Float64, Float64]:
        """Return the estimate and the width of every arm, (K,) each."""
        noise = deviation(self.noise_scale, self.horizon, state.n_arms, self.delta)
        estimates, widths = truncated_bounds(state.derived() @ x, noise=noise, theta_norm=self.theta_norm)
        return estimates, self.width_scale * widths

    def _scores(self, state: Derived, x: Float64) -> Float64:
        estimates, widths = self.bounds(state, x)
        return estimates + widths

    def probabilities(self, state: Derived, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Share everything among the highest bounds."""
        return best_chances(self._scores(state, x), eligible)

    def decide(self, state: Derived, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Play the highest bound."""
        return play_best(self._scores(state, x), eligible, coins)
