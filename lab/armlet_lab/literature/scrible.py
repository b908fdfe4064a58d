"""SCRiBLe: Abernethy, Hazan and Rakhlin 2008, "Competing in the dark".

Bandit linear optimisation by self-concordant regularisation, here on the simplex over arms with the log barrier
R(p) = -sum_a ln p_a. From the centre p = argmin eta F'p + R(p) it steps along a random axis of the Dikin ellipsoid
to its surface, draws the arm from that distribution, and estimates the losses from that one number.
Decide and update O(K^3) with eigenvectors, O(K) with a reflection, and O(K) a Newton step for the centre; memory O(K),
or O(M (K + d)) for M contexts.

The theorem is for losses in [-1, 1], to which rewards are mapped from `reward_range` (the best is -1), and a known
horizon T > 8 K ln T: regret against the best fixed arm is at most 4 (K - 1) sqrt(K T ln T), in each table.
With contexts="ignored" it is a floor.

Propensities are exact: the two ends of an axis average to the centre, so an arm's probability is p_a itself. The axis
and the end travel in the tag. An axis belongs to one centre only: where the centre has moved since the decision (the
arm's probability is then another than the propensity), where not all arms were eligible, or where another policy chose,
the loss is estimated by loss / propensity for the arm played: unbiased too.
Arms that are not eligible have no part in the simplex: the centre is that of the eligible ones, whatever the others'
losses. They are charged what was paid, and so neither gain nor lose on those that play, as the sleeping experts of
Freund, Schapire, Singer and Warmuth (1997), "Using and combining predictors that specialize". The tag says which they
were, for the first 31 arms; a later one that is not eligible is charged 0, the middle of the range.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from armlet.errors import InvalidValueError
from armlet.inputs.settings import Outside, Range, ends, one_of, positive, settle, settle_either, unit, whole
from armlet.policies.state import fresh
from armlet.reference.choice import below, play_drawn
from armlet.types import Bool, Choice, Coins, Float64, Interaction, RewardKind, Shapes
from armlet_lab.literature.experts import barred_tag, from_tag
from armlet_lab.literature.table import table_shapes
from armlet_lab.literature.tabular import Levels, Tabular

Axes: TypeAlias = Literal["eigenvectors", "reflection"]

LARGEST_LOSS = 1e90  # of what was estimated in all: probabilities stay above 1e-100


@dataclass(frozen=True, slots=True, kw_only=True)
class SCRiBLe(Tabular[Levels]):
    """Play from the surface of the Dikin ellipsoid, and follow the regularised leader.

    Parameters
    ----------
    horizon
        T, from which eta = sqrt(K ln T) / (4 (K - 1) sqrt(T)) follows, as in the theorem.
    eta
        Instead of the horizon: the rate of learning. In practice larger ones do better, up to 1 / (K - 1): with more, a
        single row could leave the Dikin ellipsoid, and probabilities run away to 0.
    axes
        "eigenvectors" of the barrier's Hessian, as printed, or a "reflection": any axes that are orthonormal in the
        Hessian's norm have the same theorem. The latter is faster, and rounds alike on every machine.
    contexts
        "ignored": all steps are one problem; "table": each distinct context is one.
    reward_range, outside
        The ends of the rewards, and whether one outside is refused or clipped.

    Examples
    --------
    >>> round(SCRiBLe(horizon=10_000).rate(n_arms=6), 5)
    0.00372
    >>> policy = SCRiBLe(eta=0.1)
    >>> policy.probabilities(policy.init(4, 1), 1, np.ones(1), np.array([True, True, True, True]))
    array([0.25, 0.25, 0.25, 0.25])
    """

    horizon: int | None = None
    eta: float | None = None
    axes: Axes = "eigenvectors"
    reward_range: Range = (0.0, 1.0)
    outside: Outside = "refuse"

    rewards: ClassVar[RewardKind] = "bounded"

    def __post_init__(self) -> None:
        Tabular.__post_init__(self)
        settle(self, axes=one_of("eigenvectors", "reflection"))
        settle(self, reward_range=ends, outside=one_of("refuse", "clip"))
        settle_either(self, horizon=whole(), eta=positive())

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse a rate of learning that is too high for so many arms."""
        if self.eta is not None and self.eta * (n_arms - 1) > 1.0:
            raise InvalidValueError(f"eta is {self.eta} but there are {n_arms} arms; use at most 1/{n_arms - 1}")

    def rate(self, n_arms: int) -> float:
        """Return eta; a single arm needs none."""
        if self.eta is not None or n_arms == 1:
            return self.eta or 1.0
        horizon = max(2, self.horizon or 2)
        return min(1.0, math.sqrt(n_arms * math.log(horizon) / horizon) / 4) / (n_arms - 1)

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        return table_shapes(n_arms, dim, "loss")

    def init(self, n_arms: int, dim: int) -> Levels:
        """Start in the middle of the simplex."""
        return Levels(n_arms, dim, contexts=self.contexts, fields={"loss": 0.0}, level="loss")

    def centre(self, state: Levels, x: Float64) -> Float64:
        """Return the minimiser of eta F'p + R(p) on the simplex, (K,)."""
        return barrier_leader(self.rate(state.n_arms) * state.read("loss", x))

    def probabilities(self, state: Levels, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Return the centre of the simplex over the eligible arms: what all ends of all axes average to."""
        if eligible.all():
            return _normalised(self.centre(state, x))
        chances = np.zeros(state.n_arms)
        chances[eligible] = barrier_leader(self.rate(state.n_arms) * state.read("loss", x)[eligible])
        return chances

    def decide(self, state: Levels, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        """Draw an end of an axis, then an arm from it; or an arm, and remember which ones could not play."""
        chances, n_axes = self.probabilities(state, t, x, eligible), state.n_arms - 1
        if n_axes == 0 or not eligible.all():
            return play_drawn(chances, coins)._replace(tag=-barred_tag(eligible))
        end = below(coins.pick, 2 * n_axes)
        arm = play_drawn(end_point(chances, axis(chances, end // 2, self.axes), end), coins).arm
        return Choice(arm, float(chances[arm]), True, tag=end + 1)  # a tag of 0 says that there was no axis

    def update(self, state: Levels, interaction: Interaction) -> None:
        """Add the estimated losses; only their differences count."""
        fresh(interaction, type(self).__name__)
        i, loss = interaction, 1.0 - 2.0 * unit(interaction.reward, self.reward_range, self.outside)
        losses, end = np.zeros(state.n_arms), i.tag - 1
        losses[~from_tag(max(0, -i.tag), state.n_arms, i.arm)] = loss
        chances = self.probabilities(state, i.t, i.x, np.ones(state.n_arms, dtype=bool))
        if 0 <= end < 2 * (state.n_arms - 1) and chances[i.arm] == i.propensity:
            losses[:] = end_losses(chances, axis(chances, end // 2, self.axes), end, loss)
        else:
            losses[i.arm] = loss / i.propensity
        known = state.write(i.x)["loss"]
        # an estimate is divided by a probability that falls with the losses before it: huge weights would run away
        known[:] = np.clip(known + i.weight * (losses - losses.mean()), -LARGEST_LOSS, LARGEST_LOSS)


def barrier_leader(losses: Float64) -> Float64:
    """Return argmin losses'p - sum_a ln p_a on the simplex, (K,): p_a = 1 / (losses_a + nu), with nu by Newton.

    Examples
    --------
    >>> barrier_leader(np.array([0.0, 1.0])).round(3)
    array([0.618, 0.382])
    """
    above = (losses - losses.min()).tolist()  # plain numbers: arms are few, and numpy would spend its time on calls
    nu = 1.0  # too low: the arm with the least loss has all the probability already
    for _ in range(100):
        p = [1.0 / (value + nu) for value in above]
        excess = sum(p) - 1.0
        if excess <= 1e-13:
            break
        # a step on 1 / sum(p) - 1, which is concave: it never goes too far, and is nearly straight
        nu += excess * (1.0 + excess) / sum([value * value for value in p])
    return _normalised(np.array(p))


@functools.cache
def _tangents(n_arms: int) -> Float64:
    """Return an orthonormal basis of the directions in which probabilities keep their sum, (K - 1, K)."""
    rows = np.tril(np.ones((n_arms - 1, n_arms)))
    rows[np.arange(n_arms - 1), np.arange(1, n_arms)] = -np.arange(1.0, n_arms)
    basis: Float64 = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return basis


def axis(p: Float64, number: int, axes: Axes) -> Float64:
    """Return a half-axis of the Dikin ellipsoid at p, divided by p: unit vectors orthogonal to p and each other, (K,).

    Examples
    --------
    >>> axis(np.array([0.8, 0.6]), 0, "reflection").round(3)
    array([-0.6,  0.8])
    """
    if axes == "reflection":
        unit_p = p / math.sqrt(float(p @ p))
        row: Float64 = -unit_p * unit_p[number + 1] / (1.0 + unit_p[0])
        row[0] = -unit_p[number + 1]
        row[number + 1] += 1.0
        return row
    # the Hessian is B B' for B = basis / p = U S V', so its eigenvectors are U; each in the basis, over the root of its
    # eigenvalue and over p, is a row of V'. Near the edge of the simplex B B' itself would lose half of its digits
    half: Float64 = np.linalg.svd(_tangents(len(p)) / p, full_matrices=False)[2][number]
    return half


def end_point(p: Float64, half: Float64, end: int) -> Float64:
    """Return the distribution at one end of an axis, p +- half, (K,)."""
    return _normalised(np.maximum(p * (1.0 + _sign(end) * half), 0.0))


def end_losses(p: Float64, half: Float64, end: int, loss: float) -> Float64:
    """Estimate all losses from the one at an end of an axis, up to a constant for all arms, (K,)."""
    return (len(p) - 1) * loss * _sign(end) * half / p


def _normalised(chances: Float64) -> Float64:
    """Divide by the sum."""
    out: Float64 = chances / chances.sum()
    return out


def _sign(end: int) -> float:
    return 1.0 if end % 2 else -1.0
