"""Real policies whose gains are watched: they decide and learn, and a tally folds their decisions in as a store does.

The click rates are those of `coin_loops`, with a constant and the kind of context as features. The truth is worked out
from the probabilities of all arms at every decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from armlet.bandit import Bandit
from armlet.cast.cast import SHADOW, Cast
from armlet.cast.control import Control
from armlet.inference.gains import BOUND, GOAL
from armlet.inference.sequences import mixed_margin
from armlet.kernel import Decision
from armlet.policies import FixedEpsilon, LinUCB, OccasionalOptimism
from armlet.stores.folds import Tally
from armlet.stores.folds.comparisons import Against, Scale
from armlet.types import Float64
from support.stores.coin_loops import ARMS, Environment, Setting
from support.stores.tally_rows import decide, tell

EVERY: Final = 100  # decisions between looks
COIN: Final = 0.1


@dataclass(frozen=True, slots=True)
class Said:
    """What was said of a loop."""

    wrong: bool  # ever
    yes: bool  # at last


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of loops: what is compared, at which lift, and how it decides."""

    against: Against
    lift: float
    make: Callable[[int], Cast]

    @property
    def setting(self) -> Setting:
        """The simulated loops that have the same click rates."""
        return Setting("uniform" if self.against == "uniform" else "control", self.lift)


def _coin(policy: FixedEpsilon | OccasionalOptimism) -> Callable[[int], Cast]:
    return lambda seed: Cast(Bandit(list(range(ARMS)), dim=2, policy=policy, reward_range=(0.0, 1.0), seed=seed))


def _control(seed: int) -> Cast:
    bandit = Bandit(list(range(ARMS)), dim=2, policy=LinUCB(alpha=0.5), reward_range=(0.0, 1.0), seed=seed)
    return Cast(bandit, control=Control(arm=0, share=COIN))


def _shadow(seed: int) -> Cast:
    live = _coin(FixedEpsilon(epsilon=COIN))(seed).live
    other = Bandit(list(range(ARMS)), dim=2, policy=LinUCB(alpha=0.5), reward_range=(0.0, 1.0), seed=seed)
    return Cast(live).with_shadows({SHADOW: other.policy}, {SHADOW: other})


KINDS: Final[Mapping[str, Kind]] = {
    "FixedEpsilon, lift 0": Kind("uniform", 0.0, _coin(FixedEpsilon(epsilon=COIN))),
    "FixedEpsilon, lift 100 %": Kind("uniform", 1.0, _coin(FixedEpsilon(epsilon=COIN))),
    "OccasionalOptimism, lift 0": Kind("uniform", 0.0, _coin(OccasionalOptimism(floor=COIN))),
    "OccasionalOptimism, lift 100 %": Kind("uniform", 1.0, _coin(OccasionalOptimism(floor=COIN))),
    "control, lift 0": Kind("control", 0.0, _control),
    "control, lift 100 %": Kind("control", 1.0, _control),
    "shadow, lift 100 %": Kind("shadow", 1.0, _shadow),
}


class RealLoop:
    """A bandit, its tally, and the truth."""

    def __init__(self, kind: Kind, seed: int) -> None:
        environment = Environment(kind.setting, 1, seed)
        self.kind, self.rng, self.P = kind, environment.rng, environment.P[0]
        self.cast, self.tally = kind.make(seed), Tally()
        self.tally.comparisons.begin(Scale(0.0, 1.0, False), 0, 0)
        self.truth = 0.0  # the sum of weights times expected gains

    def step(self, t: int) -> None:
        """Decide, learn and fold in."""
        z = int(self.rng.random() < 0.5)
        decision, told = self._decide(np.array([1.0, float(z)]), t)
        value = float(self.rng.random() < self.P[z, int(decision.arm)])
        row = decide(self.tally, decision, t, **told)
        before = self._weight()
        self.cast.learn(decision, value)
        tell(self.tally, row, "learn", t, reward=value)
        self.truth += (self._weight() - before) * self._gap(decision, told, self.P[z])

    def _decide(self, x: Float64, t: int) -> tuple[Decision, dict[str, Any]]:
        return self.cast.decide(x, t=t, probabilities="all")

    def _weight(self) -> float:
        return self.tally.comparisons.between[self.kind.against].sums.W

    def _gap(self, decision: Decision, told: Mapping[str, Any], rates: Float64) -> float:
        """Return the expected gain of this step, by the probabilities of all arms."""
        if self.kind.against == "control":
            return float(rates[told["control"]["live"]] - rates[0])
        c, p = decision.exploration_rate, decision.probabilities
        if c is None or p is None or c >= 1.0:
            return 0.0
        q = self._exploration(decision, c)
        live = float((p - c * q) @ rates) / (1.0 - c)
        if self.kind.against == "shadow":
            return float(rates[told["shadow"]["arm"]]) - live
        return live - float(q @ rates)

    def _exploration(self, decision: Decision, c: float) -> Float64:
        """Return the probabilities of arms given that the step explores: alike in all but the first few steps."""
        even = 1.0 / ARMS
        smallest = decision.min_exploration_probability or 0.0
        if smallest < even * (1.0 - 1e-9) and c >= 0.001:
            raise ValueError(f"step {decision.t} explores unevenly, so the truth is not known here")
        return np.full(ARMS, even)

    @property
    def is_wrong(self) -> bool:
        """Whether the interval fails to cover the truth now."""
        sums = self.tally.comparisons.between[self.kind.against].sums
        margin = BOUND * float(mixed_margin(sums.V / BOUND**2, GOAL))
        return abs(sums.S - self.truth) > margin

    @property
    def says_yes(self) -> bool:
        """Whether the answer is "yes" now."""
        return self.tally.comparisons.between[self.kind.against].sums.interval().low > 0.0


def watch_real(name: str, decisions: int, seed: int) -> Said:
    """Watch one loop of a kind."""
    loop, wrong = RealLoop(KINDS[name], seed), False
    for t in range(1, decisions + 1):
        loop.step(t)
        if t % EVERY == 0:
            wrong = wrong or loop.is_wrong
    return Said(wrong, loop.says_yes)
