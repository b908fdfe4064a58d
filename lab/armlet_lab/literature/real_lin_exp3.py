"""RealLinExp3: Neu and Olkhovskaya 2020, "Efficient and robust algorithms for adversarial linear contextual bandits".

The descendant, for contexts drawn independently, of geometric hedge (Dani, Hayes and Kakade 2007, "The price of bandit
information for online optimization"). Exponential weights in each context over the sums of estimates
theta_hat_a = S_a^-1 x r of the arm played, with S_a = E[pi(a | x) x x'], mixed with uniform play.
Decide O(K d); update O(W K d + W d^2 + d^3) for a window of W contexts; memory O(K d + W d).

The theorem is for |x|, |r| at most 1, contexts that are independent draws from a law that can be sampled, and a known
horizon: regret O(sqrt(K d T log K)) up to logarithms, even if an adversary moves the parameters.
The paper inverts S_a by matrix geometric resampling, which draws new contexts. Nobody can draw contexts here, so S_a is
the mean of pi(a | x) x x' under the present policy over the last W contexts learned, this one included; S_a + ridge I
is solved. A running mean over time would need no window, but would be that of old policies, so its estimates were
biased for as long as the policy moves.
What differs from the paper: its resampling has a bias that falls exponentially with the number of draws, and the bound
rests on that. Ours is biased in three ways, and has no proved bound. (S_a + ridge I)^-1 S_a shrinks the estimate by
s / (s + ridge) along an eigenvector with eigenvalue s. For an arm that only uniform play picks, s is about gamma / K
times the second moment of contexts, so that ridge = eta takes a sixth and more of it with the theorem's rates (K = 6,
d = 3, T = 10^4), and nearly all with an eta that is far above gamma / K. The window has this very context in it, which
is a bias of O(1/W). And a row that would move its own log-weight by more than 1 is cut to that.
Propensities are exact. A row that comes late is reweighted from the propensity it was drawn with to that of the present
policy. S_a is that of a choice among the arms that were eligible, as far as the tag can say: the first 31.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from armlet.inputs.settings import HUGE, optional, positive, settle, whole
from armlet.policies.base import BasePolicy
from armlet.policies.state import Arrays, check_array, check_between, fresh
from armlet.reference.choice import mixed, play_drawn, shares
from armlet.types import Array, Bool, Choice, Coins, Float64, Interaction, Shapes
from armlet_lab.literature.experts import barred_tag, from_tag
from armlet_lab.literature.factors import inverse_of

MOST_SEEN = 2.0**53  # beyond, adding 1 changes nothing
STEP = 1.0  # how far one row may move the log-weight of its own context and arm; the theorem's rates keep below it


class Window(Arrays):
    """Sums of estimates, and the last contexts in a ring.

    Examples
    --------
    >>> state = Window(2, 1, window=2)
    >>> for value in (1.0, 2.0):
    ...     state.keep(np.array([value]))
    >>> state.recent(np.array([3.0])).ravel()
    array([3., 2.])
    """

    def __init__(self, n_arms: int, dim: int, *, window: int) -> None:
        ring = {"contexts": np.zeros((window, dim)), "seen": np.zeros(1)}
        super().__init__(n_arms, dim, by_arm={"theta": np.zeros((n_arms, dim))}, whole=ring)

    def keep(self, x: Float64) -> None:
        """Put a context in the place of the oldest."""
        ring, seen = self["contexts"], self["seen"]
        ring[int(seen[0]) % len(ring)] = x
        seen[0] += 1

    def recent(self, x: Float64) -> Float64:
        """Return the contexts that are kept once this one is, (at most W, d)."""
        ring, seen = self["contexts"].copy(), int(self["seen"][0])
        ring[seen % len(ring)] = x
        return ring[: seen + 1]

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned; a count below 0 would leave no context to look at."""
        check_array("contexts", arrays["contexts"], self["contexts"], most=HUGE)
        check_between("seen", arrays["seen"], 0.0, MOST_SEEN)
        super().restore_arrays(arrays)

    def add_arm(self) -> None:
        """Start a new arm at the mean of the others: at 0 it would be far ahead or far behind for no reason."""
        mean = self["theta"].mean(axis=0)
        super().add_arm()
        self["theta"][-1] = mean


@dataclass(frozen=True, slots=True, kw_only=True)
class RealLinExp3(BasePolicy[Window]):
    """Play arms in proportion to exp(eta x'theta_a) for the sums theta_a of estimates, and uniformly now and then.

    Parameters
    ----------
    horizon
        T, from which the theorem's rates follow: gamma = sqrt(ln T / T), eta = sqrt(ln K / (d K T ln T)).
    eta, gamma
        Instead of the theorem's: the rate of learning, and that of uniform play.
    ridge
        The ridge of S_a. It bounds |eta x'theta_hat| by eta |x|^2 |r| / ridge; our choice if left out is eta, which
        makes that 1.
    window
        How many contexts stand for their law.
    reward_scale
        Rewards are divided by it; the theorem wants them within [-1, 1]. They are not shifted: a shifted linear reward
        is no longer linear.

    Examples
    --------
    >>> eta, gamma = RealLinExp3(horizon=10_000).rates(n_arms=6, dim=3)
    >>> round(eta, 5), round(gamma, 5)
    (0.00104, 0.03035)
    """

    horizon: int
    eta: float | None = None
    gamma: float | None = None
    ridge: float | None = None
    window: int = 64
    reward_scale: float = 1.0

    def __post_init__(self) -> None:
        settle(self, horizon=whole(), window=whole(), reward_scale=positive())
        settle(self, eta=optional(positive()), gamma=optional(positive(1.0)), ridge=optional(positive()))

    def rates(self, n_arms: int, dim: int) -> tuple[float, float]:
        """Return eta and gamma."""
        log_t = math.log(max(3, self.horizon))
        eta = self.eta or math.sqrt(math.log(max(2, n_arms)) / (dim * n_arms * self.horizon * log_t))
        return eta, self.gamma or min(1.0, math.sqrt(log_t / self.horizon))

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return {"theta": (n_arms, dim), "contexts": (self.window, dim), "seen": (1,)}

    def init(self, n_arms: int, dim: int) -> Window:
        """Start with equal weights."""
        return Window(n_arms, dim, window=self.window)

    def estimates(self, state: Window) -> Float64:
        """Return the mean of all estimates, (K, d): that of an arm counts 0 in steps that played another."""
        return state["theta"] * (self.reward_scale / max(1.0, float(state["seen"][0])))

    def probabilities(self, state: Window, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Mix the shares of the weights with uniform play."""
        eta, gamma = self.rates(state.n_arms, state.dim)
        return mixed(shares(eta * (state["theta"] @ x), eligible), eligible, gamma)

    def decide(self, state: Window, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw an arm, and remember which ones could not play."""
        return play_drawn(self.probabilities(state, t, x, eligible), coins)._replace(tag=barred_tag(eligible))

    def update(self, state: Window, interaction: Interaction) -> None:
        """Add the estimate S^-1 x r of the arm that was played."""
        fresh(interaction, type(self).__name__)
        i, (eta, gamma) = interaction, self.rates(state.n_arms, state.dim)
        newest = int(state["seen"][0]) % self.window
        rows = state.recent(i.x)
        eligible = from_tag(i.tag, state.n_arms, i.arm)
        log_weights = np.where(eligible, rows @ (eta * state["theta"].T), -np.inf)
        chances = _chances(log_weights, i.arm, gamma / np.count_nonzero(eligible), gamma)
        S = (rows.T * (chances / len(rows))) @ rows
        S.flat[:: state.dim + 1] += self.ridge or eta
        ratio = float(chances[newest]) / i.propensity  # 1 but for rows that come late
        theta_hat = _solve(S, i.x) * (i.reward / self.reward_scale * ratio)
        moved = eta * abs(float(i.x @ theta_hat))
        state.keep(i.x)
        state["theta"][i.arm] += theta_hat * (i.weight * min(1.0, STEP / max(moved, 1e-300)))


def _solve(S: Float64, x: Float64) -> Float64:
    try:
        return cast(Float64, np.linalg.solve(S, x))
    except np.linalg.LinAlgError:  # next to huge contexts the ridge vanishes
        return inverse_of(S) @ x


def _chances(log_weights: Float64, arm: int, least: float, gamma: float) -> Float64:
    """Return the probability of an arm in each of many contexts, (W,); log-weights of arms not eligible are -inf."""
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    out: Float64 = (1.0 - gamma) * weights[:, arm] / weights.sum(axis=1) + least
    return out
