"""What policies have from their base: the same answers, small objects, and a law that subclasses can change."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import armlet
import armlet.stores
from armlet import Bandit
from armlet.errors import InvalidTypeError
from armlet.evaluation import Switch
from armlet.kernel import Statistics
from armlet.policies.base import BasePolicy, RidgePolicy, compiled_rule
from armlet.testing import check_policy
from armlet.types import Bool, Choice, Coins, Float64, Interaction, Policy
from support.policies import every_policy

EVERY = every_policy()


@pytest.mark.parametrize("policy", EVERY, ids=repr)
def test_policy_is_slots_and_fields_and_survives_pickling(policy: Any) -> None:
    assert not hasattr(policy, "__dict__")
    names = [field.name for field in dataclasses.fields(policy)]
    assert not {"learns_from", "memory", "rewards"} & set(names)
    assert dataclasses.replace(policy) == policy == pickle.loads(pickle.dumps(policy))


@pytest.mark.parametrize("policy", EVERY, ids=repr)
def test_base_is_no_override(policy: Policy) -> None:
    assert compiled_rule(policy) is None or type(compiled_rule(policy)) is type(policy.rule())
    assert (compiled_rule(policy) is None) == (policy.rule() is None)


class Forgetful(armlet.LinUCB):
    """Changes what LinUCB has from its base."""

    def update(self, state: Statistics, interaction: Interaction) -> None:
        pass


def test_inherited_method_that_a_subclass_overrides_is_played() -> None:
    assert compiled_rule(Forgetful()) is None
    bandit = Bandit(["a", "b"], 1, policy=Forgetful(), seed=1)
    bandit.learn(bandit.decide([1.0]), 5.0)
    assert not bandit.predict_expectations([[1.0]]).any()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine(RidgePolicy):
    """A policy of a user's own: settings, and what is special."""

    ridge: float = 1.0

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        return eligible / np.count_nonzero(eligible)

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        chances, arms = self.probabilities(state, t, x, eligible), np.flatnonzero(eligible)
        arm = int(arms[(coins.pick * len(arms)) >> 64])
        return Choice(arm, float(chances[arm]), True)


def test_policy_of_a_user_needs_only_what_is_special() -> None:
    check_policy(Mine(), n_arms=3, dim=2)


def test_policy_without_its_own_part_is_refused_by_the_name_of_the_part() -> None:
    class Undecided(BasePolicy[Statistics]):
        pass

    with pytest.raises(TypeError, match=r"abstract.*Undecided.*decide"):
        Undecided()  # type: ignore[abstract]


@pytest.mark.parametrize(
    ("made", "settings", "text"),
    [
        (armlet.LinUCB, {"alfa": 1.0}, r"LinUCB\(\) got .* 'alfa', which is 1.0; did you mean 'alpha'"),
        (armlet.SharedOptimism, {"shares": 1}, r"SharedOptimism\(\) got .* 'shares', .* did you mean 'share'"),
        (Bandit, {"arms": ["a"], "feature": ["x"]}, r"Bandit\(\) got .* 'feature', .* did you mean 'features'"),
        (Bandit(["a"], 1).replace, {"polici": 1}, r"replace\(\) got .* 'polici', .* did you mean 'policy'"),
        (armlet.ActionBandit, {"sed": 1}, r"ActionBandit\(\) got .* 'sed', which is 1; did you mean 'seed'"),
        (armlet.Budget, {"outcome": "cost", "totals": 9.0}, r"Budget\(\) got .* 'totals', .* did you mean 'total'"),
        (armlet.Table, {"data": {}, "feature": ["x"]}, r"Table\(\) got .* 'feature', .* did you mean 'features'"),
        (armlet.Encoder, {"mising": "flag"}, r"Encoder\(\) got .* 'mising', .* did you mean 'missing'"),
        (armlet.HashedFeatures, {"sizes": 8}, r"HashedFeatures\(\) got .* 'sizes', which is 8; "),
        (armlet.Log, {"path": "a.jsonl", "flsh": "disk"}, r"Log\(\) got .* 'flsh', .* did you mean 'flush'"),
        (armlet.stores.Control, {"arms": "a"}, r"Control\(\) got .* 'arms', .* did you mean 'arm'"),
        (Switch, {"treshold": 3.0}, r"Switch\(\) got .* 'treshold', .* did you mean 'threshold'"),
        (Bandit, {}, r"Bandit\(\): missing a required argument: 'arms'; call Bandit\(arms, dim, "),
    ],
)
def test_a_misspelt_setting_names_the_closest(made: Any, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidTypeError, match=text):
        made(**settings)
