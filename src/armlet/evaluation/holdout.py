"""A holdout: the gate online. With chance c a baseline plays instead of the policy, by a coin of its own.

The coin of decision i is a function of (seed, i), as all coins are, so a holdout can be replayed. An arm's propensity
is c [the baseline plays it] + (1 - c) (the policy's), whoever played it. c follows a ramp and stops by the sequence
that the gate reads: to 0 when the policy is kept, to 1 when it is killed. Since c is fixed before the coin falls, a
ramp costs no validity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.bandit import Bandit
from armlet.errors import DecisionError, InvalidValueError, UnknownNameError
from armlet.evaluation.gate import Answer, answer_of
from armlet.inference.intervals import LEVEL, Interval
from armlet.inference.sequences import DifferenceSequence
from armlet.inputs.settings import Range, check_range, check_seed
from armlet.kernel import Decision
from armlet.types import Arm, Context, Float64

Baseline: TypeAlias = Callable[[Context], Arm]

RAMP: Final = (0.5, 0.2, 0.1, 0.05)
STREAM: Final = 0x686F6C646F7574  # "holdout": no other coins have this word in their key


@dataclass(frozen=True, slots=True)
class Held:
    """One decision of a holdout."""

    number: int  # from 1 on
    arm: Arm
    propensity: float  # of the arm, over the coin of the holdout and those of the policy
    player: Literal["policy", "baseline"]
    chance: float  # c, the chance that the baseline played
    policy_chance: float  # with which the policy would have played the arm
    baseline_chance: float  # 1 if the baseline plays the arm, else 0
    decision: Decision | None  # of the bandit, if it played


class Holdout:
    """A bandit and a baseline that share the traffic until the gate has an answer.

    Parameters
    ----------
    bandit
        The policy that is tried. It learns from its own decisions alone.
    baseline
        What played so far: the label of an arm, or a function from contexts to labels. It does not learn.
    reward_range
        (lowest, highest) reward there can be; the bandit's own if left out.
    ramp
        The chances that the baseline plays, from the first stage to the last.
    tolerance
        The next stage is reached when the loss is surely less than this; a tenth of the range if left out.
    every
        Rewards between two looks.
    worth, level
        As of `armlet.evaluation.gate.gate`.
    seed
        Of the coins of the holdout.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["old", "new"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    >>> trial = Holdout(bandit, "old", reward_range=(0.0, 1.0), seed=3)
    >>> for step in range(3000):
    ...     held = trial.decide([1.0])
    ...     trial.learn(held, float(held.arm == "new") * (step % 3 > 0))
    >>> trial.answer, trial.chance
    ('keep', 0.0)
    """

    def __init__(
        self,
        bandit: Bandit,
        baseline: Arm | Baseline,
        *,
        reward_range: Range | None = None,
        ramp: Sequence[float] = RAMP,
        tolerance: float | None = None,
        every: int = 50,
        worth: float = 0.0,
        level: float = LEVEL,
        seed: int | None = None,
    ) -> None:
        declared = bandit.settings.reward_range if reward_range is None else reward_range
        if declared is None:
            raise InvalidValueError(
                "reward_range is None and the bandit has none; a holdout needs it to know when to stop"
            )
        check_range(declared)
        if not ramp or not all(0.0 < chance < 1.0 for chance in ramp):
            raise InvalidValueError(f"ramp is {tuple(ramp)!r}; give chances between 0 and 1 that the baseline plays")
        self.bandit, self._baseline, self._ramp = bandit, baseline, tuple(ramp)
        self._sign = 1.0 if bandit.settings.objective == "max" else -1.0
        ends = declared if self._sign > 0 else (-declared[1], -declared[0])
        self._tolerance = (ends[1] - ends[0]) / 10 if tolerance is None else tolerance
        self._every, self._worth = every, worth
        self._key = check_seed(seed)
        # w1 = pi/propensity <= 1/(1 - c) and w2 <= 1/c, for every c of the ramp
        most = max(max(1.0 / c, 1.0 / (1.0 - c)) for c in self._ramp)
        self._sequence = DifferenceSequence(ends, largest_weight=most, level=level, kind="gamma-exponential")
        self._number, self._stage, self._learned = 0, 0, 0
        self._pending: set[int] = set()
        self.answer: Answer = "not yet"

    @property
    def chance(self) -> float:
        """The chance that the baseline plays the next decision."""
        return {"keep": 0.0, "kill": 1.0, "not yet": self._ramp[self._stage]}[self.answer]

    @property
    def gain(self) -> Interval:
        """Where the gain of the policy over the baseline lies, at all looks; in the sense of the objective."""
        return self._sequence.interval()

    def decide(self, x: Context) -> Held:
        """Toss the coin, and let the one or the other play."""
        self._number += 1
        c, base = self.chance, self._baseline(x) if callable(self._baseline) else self._baseline
        laws = dict(zip(self.bandit.arms, self.bandit.predict_proba(self._row(x))[0].tolist(), strict=True))
        if base not in laws:
            raise UnknownNameError(f"the baseline plays {base!r}, which is not an arm of {self.bandit.arms}")
        decision = None if self._coin(self._number) < c else self.bandit.decide(x)
        arm = base if decision is None else decision.arm
        pi, beta = laws[arm], float(arm == base)
        self._pending.add(self._number)
        propensity = c * beta + (1.0 - c) * pi
        player: Literal["policy", "baseline"] = "baseline" if decision is None else "policy"
        return Held(self._number, arm, propensity, player, c, pi, beta, decision)

    def learn(self, held: Held, reward: float) -> None:
        """Take the reward of a decision, in any order; the policy learns it if it played."""
        if held.number not in self._pending:
            raise DecisionError(f"decision {held.number} of this holdout is not waiting for a reward; learn each once")
        weights = (held.policy_chance / held.propensity, held.baseline_chance / held.propensity)
        if 0.0 < held.chance < 1.0:  # once there is an answer, the other side plays no more
            self._sequence.add([self._sign * reward], [weights[0]], [weights[1]])
            self._learned += 1
        self._pending.discard(held.number)
        if held.decision is not None:
            self.bandit.learn(held.decision, reward)
        if self.answer == "not yet" and self._learned % self._every == 0 and self._learned:
            self._look()

    def _look(self) -> None:
        gain = self._sequence.interval()
        self.answer = answer_of(gain, self._worth)
        if self.answer == "not yet" and gain.low > -self._tolerance:
            self._stage = min(self._stage + 1, len(self._ramp) - 1)

    def _row(self, x: Context) -> Float64:
        return np.asarray(self.bandit._reader.row(x), dtype=np.float64)[np.newaxis]

    def _coin(self, number: int) -> float:
        """Give a number in [0, 1) that follows from seed and count alone."""
        words = np.random.Philox(key=self._key ^ STREAM, counter=number).random_raw(1)
        return float(int(words[0]) >> 11) * 2.0**-53
