"""The contract of action bandits holds for both policies, and refuses bandits that break one promise each."""

# ruff: noqa: ARG002 (what is overridden has its arguments)

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
import pytest

from armlet import ActionBandit, ActionDecision, ActionTable, SharedOptimism, SharedThompson
from armlet.actions.law import ActionChoice
from armlet.testing import ACTION_CHECKS, check_action_policy, check_policy
from armlet.testing import actions as checks

POLICIES = (
    SharedThompson(draws=4),
    SharedThompson(draws=3, intercepts=False),
    SharedOptimism(share=0.5, interactions=[(0, 1), (1, 2)]),
    SharedOptimism(interactions="none", intercepts=False),
)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("check", ACTION_CHECKS, ids=lambda check: check.__name__)
def test_policies_keep_what_bandits_of_actions_promise(check: Any, policy: Any) -> None:
    check(policy, ActionBandit)


def test_check_policy_runs_over_policies_of_actions() -> None:
    with pytest.raises(AssertionError, match="broken on purpose"):
        check_action_policy(SharedOptimism(), kind=Broken)
    check_policy(SharedOptimism(interactions="none", intercepts=False))


class Broken(ActionBandit):
    def decide(self, *args: Any, **options: Any) -> ActionDecision:
        raise AssertionError("broken on purpose")


class LearnsTwice(ActionBandit):
    def learn(self, decision: ActionDecision, reward: float, *, weight: float = 1.0) -> None:
        super().learn(decision, reward, weight=weight)
        self._state.add(decision.key, decision.x, decision.z, reward, weight)


class LearnsWhileDeciding(ActionBandit):
    def decide(self, *args: Any, **options: Any) -> ActionDecision:
        decision = super().decide(*args, **options)
        self._state.add(decision.key, decision.x, decision.z, 0.0, 1e-3)
        return decision


class ForgetsNothing(ActionBandit):
    def forget(self, decision: ActionDecision, reward: float, **options: Any) -> None:
        decision.learned, decision.expired = False, True


class MergesHalf(ActionBandit):
    def merge(self, other: ActionBandit) -> None:
        before = self._state.copy()
        super().merge(other)
        self._state = before


class KeepsTheOrder(ActionBandit):
    """Plays what a mapping has first."""

    def decide(self, x: Any, actions: Any, **options: Any) -> ActionDecision:
        first = {"eligible": [next(iter(actions))]} if isinstance(actions, dict) else {}
        return super().decide(x, actions, **{**options, **first})


class NeedsItsTables(ActionBandit):
    """Learns nothing of a decision that is a record."""

    def learn(self, decision: ActionDecision, reward: float, **options: Any) -> None:
        if decision.z.base is None:  # not a row of a table
            decision.z = np.zeros_like(decision.z)
        super().learn(decision, reward, **options)


class SaysHalf(ActionBandit):
    """Says another propensity than it plays with."""

    def _play(self, x: Any, table: ActionTable, allowed: Any, t: int, *, marginal: bool) -> ActionChoice:
        played = super()._play(x, table, allowed, t, marginal=marginal)
        return played._replace(propensity=0.5 * played.propensity)


class PlaysTheFirst(ActionBandit):
    """Plays the first that it may, whatever the coins say."""

    def _play(self, x: Any, table: ActionTable, allowed: Any, t: int, *, marginal: bool) -> ActionChoice:
        played = super()._play(x, table, allowed, t, marginal=True)
        if played.support is None:
            return played._replace(row=0 if allowed is None else int(np.flatnonzero(allowed)[0]))
        row = min(played.support)
        return played._replace(row=row, propensity=played.support[row])


class LooksAtAllRows(ActionBandit):
    """Compares features with the largest of the table, eligible or not."""

    def _play(self, x: Any, table: ActionTable, allowed: Any, t: int, *, marginal: bool) -> ActionChoice:
        played = super()._play(x, table, allowed, t, marginal=marginal)
        return played._replace(propensity=1.0) if np.abs(table.features).max() > 50 else played


class SeesUnits(ActionBandit):
    """Greets large contexts with the first action."""

    def _play(self, x: Any, table: ActionTable, allowed: Any, t: int, *, marginal: bool) -> ActionChoice:
        played = super()._play(x, table, allowed, t, marginal=marginal)
        return ActionChoice(0, 1.0, {0: 1.0}, True) if np.abs(x).max() > 8 else played


class ReadsLabels(ActionBandit):
    """Expects more of labels that begin with an o."""

    def predict_expectations(self, x: Any, actions: Any) -> Any:
        bonus = [str(label).startswith("o") for label in self.table(actions).labels]
        return super().predict_expectations(x, actions) + np.array(bonus)


class LosesItsClock(ActionBandit):
    def _model(self) -> Any:
        return dataclasses.replace(super()._model(), t=0)


class StepsBeforeItChecks(ActionBandit):
    def decide(self, *args: Any, **options: Any) -> ActionDecision:
        try:
            return super().decide(*args, **options)
        except Exception:
            self._t += 1
            raise


class ForgetsTheOrder(ActionBandit):
    """Learns a table of rows from its end."""

    def partial_fit(self, table: Any) -> Self:
        return super().partial_fit({name: values[::-1] for name, values in table.items()})


class HasCoinsOfItsOwn(ActionBandit):
    def _play(self, x: Any, table: ActionTable, allowed: Any, t: int, *, marginal: bool) -> ActionChoice:
        tossed = int(np.random.default_rng().integers(2**60))
        return super()._play(x, table, allowed, t + tossed, marginal=marginal)


FAULTY = {
    LearnsTwice: checks.check_fold,
    LearnsWhileDeciding: checks.check_decide_is_a_query,
    ForgetsNothing: checks.check_forget,
    MergesHalf: checks.check_merge,
    SaysHalf: checks.check_propensities,
    PlaysTheFirst: checks.check_frequencies,
    LooksAtAllRows: checks.check_padding,
    SeesUnits: checks.check_units,
    ReadsLabels: checks.check_labels,
    LosesItsClock: checks.check_file,
    StepsBeforeItChecks: checks.check_refusals,
    ForgetsTheOrder: checks.check_late_rewards,
    HasCoinsOfItsOwn: checks.check_seeds_repeat,
    KeepsTheOrder: checks.check_order,
    NeedsItsTables: checks.check_replay,
}


@pytest.mark.parametrize("kind", FAULTY, ids=lambda kind: kind.__name__)
def test_a_bandit_that_breaks_a_promise_is_refused(kind: Any) -> None:
    with pytest.raises(AssertionError):
        FAULTY[kind](SharedOptimism(), kind)
