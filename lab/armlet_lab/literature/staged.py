"""SupLinRel (Auer 2002) and SupLinUCB (Chu, Li, Reyzin and Schapire 2011), which decide in stages.

Every decision starts at stage 1 with all arms and goes from stage to stage, each with rows of its own. At stage s, if
all widths are at most 1 / sqrt(T), the highest bound is played and its row is kept nowhere; if all are at most 2^-s,
the arms within 2^(1 - s) of the highest bound go on to stage s + 1; else an arm that is wider is played, and its row
belongs to stage s. Which rows a stage has then depends on widths, not on its own rewards: the independence that the
regret bounds need.

No decision gets past the first stage with 2^-s <= 1 / sqrt(T), so that many are kept, not the papers' log T: the
decisions are the same. Our choices: of several wide arms the widest is played; if `n_stages` is set lower, what
survives the last stage is played by its bound, and kept nowhere. A row belongs to the stage that asked for it, so rows
of a log, which no stage asked for, are refused where they claim to be explored, and otherwise kept nowhere.
Decide O(S K d^2), and O(K d^3) for a stage that changed; update O(d^2); memory O(S K d^2) for any t.

SupLinUCB: Chu, Li, Reyzin and Schapire (2011), "Contextual Bandits with Linear Payoff Functions".

Ridge regression and its widths, computed stage by stage from rows that widths alone chose, as above.
That independence gives regret O(sqrt(T K d log^3(K T log(T) / delta))) for rewards
within [0, 1], |x| <= 1, |theta| <= 1 and a known horizon. The width is (alpha + 1) |x|_(V^-1) with
alpha = sqrt(log(2 T K / delta) / 2), the one for which the paper proves that intervals hold; for any noise, ridge and
norm it is (R sqrt(2 log(2 T K / delta)) + sqrt(ridge) |theta|) |x|_(V^-1), and R = 1/2 for rewards within [0, 1].
Stages halve widths from 1/2 on, so rewards must be scaled by a factor to about that range. With the theory's widths
short runs explore nearly always (a test has it at 99 % of 1024 steps): in practice lower `width_scale`.
Propensities are exact: 1, shared among ties.
Decide O(S K d^2), and O(K d^3) for a stage that changed; update O(d^2); memory O(S K d^2) for any t, S = log2(T) / 2.

SupLinRel: Auer (2002), "Using Confidence Bounds for Exploitation-Exploration Trade-offs".

LinRel's estimates and widths, computed stage by stage from rows that widths alone chose, as above.
That independence gives regret O(sqrt(T K d) log^(3/2)(K T log T)) for rewards within
[0, 1], |x| <= 1, |theta| <= 1 and a known horizon. What differs from the paper: it runs every stage with
delta / (1 + log T), so that all stages together fail with chance delta. Here delta is taken as given for each stage,
and the widths are smaller: for the theorem's, divide it before. Its theta is one for all arms, with a vector for each
arm; here arms have parameters of their own, so its dimension is K d. Of several wide arms it takes any, ours the
widest; and stages that nothing can reach are left out. Stages halve widths from 1/2 on, so
rewards must be scaled by a factor to about that range. With the theory's widths short runs explore nearly always (a
test has it at 99 % of 1024 steps): in practice lower `noise_scale`, which leaves directions that were never seen as
wide as they are.
Propensities are exact: 1, shared among ties.
Decide O(S K d^2), and O(K d^3) for a stage that changed; update O(d^2); memory O(S K d^2) for any t, S = log2(T) / 2.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError
from armlet.inputs.settings import NOISE_SCALE, chance, optional, positive, settle, whole
from armlet.policies.base import BasePolicy
from armlet.policies.state import Arrays, check_counted
from armlet.reference.choice import best_chances, play_best
from armlet.types import Array, Bool, Choice, Coins, Float64, Interaction, LearnsFrom, Shapes
from armlet_lab.literature.derived import ridge_rows
from armlet_lab.literature.factors import deviation, lengths, truncated_bounds, truncated_rows


class StagedSums(Arrays):
    """n, A and b of every arm and stage, and what was solved from them.

    Examples
    --------
    >>> state = StagedSums(2, 1, n_stages=3)
    >>> state.record(Interaction(t=1, x=np.array([2.0]), arm=1, reward=3.0, tag=2))
    >>> state["n"], state["b"][1, :, 0]
    (array([[0., 0., 0.],
           [0., 1., 0.]]), array([0., 6., 0.]))
    """

    def __init__(self, n_arms: int, dim: int, n_stages: int) -> None:
        shape = (n_arms, n_stages)
        sums: dict[str, Array] = {"n": np.zeros(shape), "b": np.zeros((*shape, dim)), "A": np.zeros((*shape, dim, dim))}
        super().__init__(n_arms, dim, by_arm=sums, additive=True)
        self._solved: dict[int, Float64] = {}  # by stage, until a row or an arm comes or goes

    @property
    def n_stages(self) -> int:
        """How many stages there are, S."""
        return int(self["n"].shape[1])

    def rows(self, stage: int, solve: Callable[[Float64, Float64], Float64]) -> Float64:
        """Return what `solve` makes of a stage's A, (K, d, d), and b, (K, d)."""
        if stage not in self._solved:
            self._solved[stage] = solve(self["A"][:, stage - 1], self["b"][:, stage - 1])
        return self._solved[stage]

    def record(self, interaction: Interaction) -> None:
        """Add a row to the stage that its decision named; none if that is 0."""
        i, stage = interaction, interaction.tag
        if not 0 <= stage <= self.n_stages:
            raise InvalidValueError(
                f"tag is {stage} but there are {self.n_stages} stages; it must come from the decision"
            )
        if stage == 0 and i.explored:
            raise InvalidValueError(
                "tag is 0 but explored is True, which no decision of a staged policy is: stages learn from their own "
                "decisions only, so rows of a log cannot be learned; play the policy, or choose another for logs"
            )
        if stage == 0:
            return
        at = (i.arm, stage - 1)
        if i.replaces is not None or i.weight < 0.0:
            check_counted(float(self["n"][at]), i.weight)
        if i.replaces is None:
            self["n"][at] += i.weight
            self["A"][at] += i.weight * np.outer(i.x, i.x)
            self["b"][at] += i.weight * i.reward * i.x
        else:
            self["b"][at] += i.weight * (i.reward - i.replaces) * i.x
        self._solved.pop(stage, None)

    def restore_arrays(self, arrays: dict[str, Array]) -> None:
        """Restore what `arrays` returned."""
        super().restore_arrays(arrays)
        self._solved.clear()

    def add_arm(self) -> None:
        """Append an arm without rows."""
        super().add_arm()
        self._solved.clear()

    def remove_arm(self, arm: int) -> None:
        """Drop an arm from every stage."""
        super().remove_arm(arm)
        self._solved.clear()

    def merge(self, other: Self, into: list[int]) -> None:
        """Add the other's rows, stage by stage."""
        super().merge(other, into)
        self._solved.clear()


class Ending(NamedTuple):
    """Where a walk through the stages ended: the highest of `scores` among `arms` is played."""

    scores: Float64  # (K,): bounds, or widths where a stage asks for rows
    arms: Bool  # (K,): those that are left
    stage: int  # the one that asked; 0 if none did


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged(BasePolicy[StagedSums]):
    """A policy that walks through stages; its children say how a stage estimates.

    Parameters are described in the children.
    """

    horizon: int
    delta: float = 0.05
    noise_scale: float = NOISE_SCALE
    theta_norm: float = 1.0
    width_scale: float = 1.0
    n_stages: int | None = None

    learns_from: ClassVar[LearnsFrom] = "explored steps"

    def __post_init__(self) -> None:
        settle(
            self, horizon=whole(), delta=chance(), noise_scale=positive(), theta_norm=positive(), width_scale=positive()
        )
        settle(self, n_stages=optional(whole()))

    @abstractmethod
    def solve(self, A: Float64, b: Float64) -> Float64:
        """Turn a stage's A, (K, d, d), and b, (K, d), into rows to be multiplied with x."""

    @abstractmethod
    def read(self, y: Float64) -> tuple[Float64, Float64]:
        """Turn those products, (K, rows), into estimates and widths, (K,) each."""

    def stages(self) -> int:
        """Return S: the first s with 2^-s <= 1 / sqrt(T), or `n_stages`."""
        return max(1, ((self.horizon - 1).bit_length() + 1) // 2) if self.n_stages is None else self.n_stages

    def check(self, n_arms: int, dim: int, t: int) -> None:  # noqa: ARG002
        """Refuse widths so small that no stage would ever ask for a row."""
        _, widths = self.bounds(StagedSums(n_arms, dim, 1), 1, np.eye(dim)[0])
        if widths[0] <= 1 / math.sqrt(self.horizon):
            raise InvalidValueError(
                f"width_scale is {self.width_scale!r}, which makes the width of an arm that was never played "
                f"{widths[0]:.3g}, at most 1 / sqrt(horizon), so nothing would be learned; raise it, or theta_norm"
            )

    def shapes(self, n_arms: int, dim: int) -> Shapes:
        """Return the shapes of the state's arrays."""
        shape = (n_arms, self.stages())
        return {"n": shape, "b": (*shape, dim), "A": (*shape, dim, dim)}

    def init(self, n_arms: int, dim: int) -> StagedSums:
        """Start every stage without rows."""
        return StagedSums(n_arms, dim, self.stages())

    def estimates(self, state: StagedSums) -> Float64:  # noqa: ARG002
        """Refuse: every stage has its own."""
        raise InvalidTypeError(
            f"{type(self).__name__} keeps no linear estimates but one for every stage; ask predict_proba"
        )

    def bounds(self, state: StagedSums, stage: int, x: Float64) -> tuple[Float64, Float64]:
        """Return the estimate and the width of every arm at a stage, (K,) each."""
        return self.read(state.rows(stage, self.solve) @ x)

    def walk(self, state: StagedSums, x: Float64, eligible: Bool) -> Ending:
        """Go through the stages until an arm is found."""
        arms, bounds = eligible, np.zeros(state.n_arms)
        for s in range(1, state.n_stages + 1):
            estimates, widths = self.bounds(state, s, x)
            bounds, widest = estimates + widths, widths[arms].max()
            if widest <= 1 / math.sqrt(self.horizon):
                break
            if widest > 2.0**-s:
                return Ending(widths, arms, s)
            arms = arms & (bounds >= bounds[arms].max() - 2.0 ** (1 - s))
        return Ending(bounds, arms, 0)

    def probabilities(self, state: StagedSums, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        """Share everything among the widest arms of the stage that asks, or the highest bounds."""
        end = self.walk(state, x, eligible)
        return best_chances(end.scores, end.arms)

    def decide(self, state: StagedSums, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        """Play where the walk ends; the stage that asked goes with the decision, so that late rewards find it."""
        end = self.walk(state, x, eligible)
        return play_best(end.scores, end.arms, coins)._replace(explored=end.stage > 0, tag=end.stage)

    def update(self, state: StagedSums, interaction: Interaction) -> None:
        """Add the row to the stage that asked for it."""
        state.record(interaction)


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
