"""Loops with all guards, changed at random, against what is easy to see: every state is a fold of rows.

The oracle keeps which policies there are and when the loop was frozen, and no bandit. Before each decision it asks
copies of the two for all their probabilities; after every few calls it folds the rows of the log by fresh bandits.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import armlet
from armlet.cast.cast import CONTROL, shadows_of
from armlet.kernel import coins
from armlet.stores import Control, Loop, Memory, Store
from armlet.types import Arm, Policy
from support.loops import context, reward
from support.stores.guards import SEED, assert_guarded, relearned, rows_of

ARMS: list[Arm] = ["old", "new", "third"]
POLICIES: list[Policy] = [
    armlet.FixedEpsilon(epsilon=0.3),
    armlet.LinUCB(),
    armlet.OccasionalOptimism(),
    armlet.Algorithm1(p=6),
    armlet.AutoEpsilonGreedy(),
    armlet.ThompsonSampling(),
]
CALLS = 70


class Oracle:
    """What must be true of a loop."""

    def __init__(self, loop: Loop, rng: random.Random, policy: Policy) -> None:
        self.loop, self.rng, self.live = loop, rng, policy
        self.control: Control | None = None
        self.shadows: dict[str, Policy] = {}
        self.frozen_at: int | None = None
        self.retired: set[Arm] = set()
        self.n = 0
        self.seen: set[str] = set()  # kinds of calls

    def step(self) -> None:
        """Do something that may be done now."""
        calls: list[Callable[[], None]] = [self.decide] * 12 + [self.reward] * 10 + [self.retire, self.crash]
        calls += [self.freeze] if self.frozen_at is None else [self.thaw] * 2
        if self.shadows:
            calls += [self.end_shadow] + [self.promote] * (self.frozen_at is None)
        calls += [self.start_shadow, self.start_shadows, self.start_control, self.control_arm, self.end_control]
        call = self.rng.choice(calls)
        self.seen.add(call.__name__)
        call()

    # ---- calls

    def decide(self) -> None:
        x, eligible = context(self.n, 2), self.rng.choice([None, None, ["old", "third"], ["new", "third"]])
        allowed = [arm for arm in ARMS if arm not in self.retired and (eligible is None or arm in eligible)]
        if not allowed:
            return
        live = self.loop.model().decide(x, eligible=eligible, probabilities="all", propensity="marginal")
        cast = self.loop._runner.cast
        asked: dict[str, Any] = {"eligible": eligible, "probabilities": "all", "propensity": "marginal"}
        theirs = None if cast.player is None else cast.player.copy().decide(x, **asked)
        choices = {name: each.copy().decide(x, **asked) for name, each in cast.shadows.items()}
        decision = self.loop.decide(x, event=f"e{self.n}", eligible=eligible, probabilities="all")
        self.n += 1
        p, played = np.asarray(live.probabilities), live.arm
        if self.control is not None and live.design != "turn":
            arm, chances = self.control.arm, np.array([float(each == self.control.arm) for each in ARMS])
            if theirs is not None:
                arm, chances = theirs.arm, np.asarray(theirs.probabilities)
            if arm in allowed:
                p = (1 - self.control.share) * p + self.control.share * chances
                played = arm if coins(SEED ^ CONTROL, self.n).coin < self.control.share else played
        assert decision.arm == played
        np.testing.assert_array_equal(np.asarray(decision.probabilities), p)
        assert decision.propensity == p[ARMS.index(played)]
        fields = rows_of(self.loop, "decide")[-1].fields
        assert ("shadow" in fields) == (self.shadows.keys() == {"shadow"})
        assert shadows_of(fields) == {name: {"arm": choice.arm} for name, choice in choices.items()}

    def reward(self) -> None:
        if self.n:
            i = self.rng.randrange(self.n)
            played = self.rng.choice([None, None, None, "third"])
            self.loop.reward(f"e{i}", reward(self.rng.randrange(9)), played=played)

    def retire(self) -> None:
        if self.retired:
            self.loop.restore_arm(self.retired.pop())
        else:
            arm = self.rng.choice(ARMS)
            self.loop.retire_arm(arm)
            self.retired.add(arm)

    def crash(self) -> None:
        self.loop._runner.stale()

    def freeze(self) -> None:
        self.loop.freeze()
        self.frozen_at = rows_of(self.loop)[-1].seq

    def thaw(self) -> None:
        self.loop.thaw()
        self.frozen_at = None

    def start_shadow(self) -> None:
        self.shadows = {"shadow": self.rng.choice(POLICIES)}
        self.loop.change(shadow=self.shadows["shadow"], how="refit")

    def start_shadows(self) -> None:
        self.shadows = {name: self.rng.choice(POLICIES) for name in self.rng.sample(["b", "shadow", "a"], 2)}
        self.loop.change(shadow=self.shadows, how="refit")

    def end_shadow(self) -> None:
        self.shadows = {}
        self.loop.change(shadow=None)

    def start_control(self) -> None:
        self.control = Control(policy=self.rng.choice(POLICIES), share=0.4)
        self.loop.change(control=self.control, how="refit")

    def control_arm(self) -> None:
        self.control = Control(arm=self.rng.choice(ARMS), share=0.3)
        self.loop.change(control=self.control)

    def end_control(self) -> None:
        self.control = None
        self.loop.change(control=None)

    def promote(self) -> None:
        share = self.rng.choice([None, 0.25])
        name = self.rng.choice(sorted(self.shadows))
        assert self.loop.promote(gate="off", control=share, shadow=name).promoted
        if share is not None:
            self.control = Control(policy=self.live, share=share)
        self.live = self.shadows.pop(name)

    # ---- what must be true

    def check(self, store: Store) -> None:
        """Fold the rows."""
        loop = self.loop
        assert loop.model().digest() == relearned(loop, self.live, self.frozen_at).digest()
        cast = loop._runner.cast
        control = None if self.control is None else self.control.policy
        learner = self.live if self.frozen_at is not None else None
        assert cast.shadows.keys() == self.shadows.keys()
        members = [(cast.player, control), (cast.learner, learner)]
        members += [(each, self.shadows[name]) for name, each in cast.shadows.items()]
        for member, policy in members:
            assert (member is None) == (policy is None)
            if member is not None and policy is not None:
                assert member.digest() == relearned(loop, policy).digest()
        assert len({each.seed for each in cast.members}) == len(cast.members) - (learner is not None)
        assert_guarded(store, loop)


def played_at_random(seed: int) -> set[str]:
    """Play a loop and check it again and again; return what was called."""
    rng, policy = random.Random(seed), POLICIES[seed % len(POLICIES)]
    with Store(Memory()) as store:
        loop = store.loop("homepage", arms=ARMS, features=["one", "u"], policy=policy, seed=SEED, aggregation="last")
        oracle = Oracle(loop, rng, policy)
        for call in range(CALLS):
            oracle.step()
            if call % 14 == 13:
                oracle.check(store)
        return oracle.seen


def test_guards_changed_at_random_leave_states_that_are_folds_of_rows() -> None:
    called = set().union(*map(played_at_random, range(12)))
    guards = {"freeze", "thaw", "start_shadow", "end_shadow", "start_control", "control_arm", "end_control", "promote"}
    assert called == guards | {"start_shadows", "decide", "reward", "retire", "crash"}
