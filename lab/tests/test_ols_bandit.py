"""The OLS bandit: its forced steps, what forced rows rule out, and its two layers of sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armlet import Bandit, kernel
from armlet.errors import DecisionError, MergeError
from armlet.inputs.settings import Ridge
from armlet.types import Interaction
from armlet_lab.literature.layers import Layers
from armlet_lab.literature.ols_bandit import ALL, FORCED, OLSBandit, forced_arm
from support.contract import check_settings


@pytest.mark.parametrize("policy", [OLSBandit(q=2), OLSBandit(h=0.3, units="as given")])
def test_ols_bandit_keeps_the_contract(policy: OLSBandit) -> None:
    check_settings(policy, n_arms=4, dim=3)


def test_forced_steps_are_those_of_the_definition() -> None:
    """T_i = {(2^n - 1) K q + j : j in (q (i - 1), q i]}, arms from 1, written out."""
    for K, q in [(1, 1), (3, 1), (4, 5), (7, 2)]:
        turns = {
            (2**n - 1) * K * q + j: i - 1
            for n in range(14)
            for i in range(1, K + 1)
            for j in range(q * (i - 1) + 1, q * i + 1)
        }
        policy = OLSBandit(q=q)
        steps = range(1, 2**12)
        assert [forced_arm(t, K, policy.q) for t in steps] == [turns.get(t) for t in steps]


def test_a_forced_arm_that_may_not_be_played_gives_way() -> None:
    policy = OLSBandit(q=1, h=1.0)
    state, eligible = policy.init(3, 1), np.array([False, True, True])
    choice = policy.decide(state, 1, np.ones(1), kernel.coins(5, 1), eligible)
    assert choice.arm in (1, 2)
    assert (choice.propensity, choice.explored) == (0.5, False)
    assert policy.probabilities(state, 1, np.ones(1), eligible).tolist() == [0.0, 0.5, 0.5]


def test_forced_rows_rule_out_arms_whatever_the_other_rows_say() -> None:
    policy = OLSBandit(q=1, h=1.0, ridge=1e-9, units="as given")
    state, x = policy.init(2, 1), np.ones(1)
    for arm, reward in [(0, 1.0), (1, 0.4)]:
        policy.update(state, Interaction(t=1, x=x, arm=arm, reward=reward, explored=True))
    policy.update(state, Interaction(t=9, x=x, arm=1, reward=9.0, explored=False))
    assert policy.probabilities(state, 9, x, np.ones(2, dtype=np.bool_)).tolist() == [1.0, 0.0]
    wider = OLSBandit(q=1, h=1.3, ridge=1e-9, units="as given")
    assert wider.probabilities(state, 9, x, np.ones(2, dtype=np.bool_)).tolist() == [0.0, 1.0]


def test_explored_rows_are_in_both_layers() -> None:
    bandit, rng = Bandit(range(3), 2, policy=OLSBandit(q=2, h=0.3), seed=1), np.random.default_rng(2)
    for t in range(1, 101):
        decision = bandit.decide(rng.normal(size=2))
        assert decision.explored == (forced_arm(t, 3, 2) is not None)
        bandit.learn(decision, float(rng.normal()))
    assert bandit.state[FORCED].n.sum() == sum(forced_arm(t, 3, 2) is not None for t in range(1, 101))
    assert bandit.state[ALL].n.sum() == 100


def test_a_row_is_forgotten_from_both_layers_or_neither() -> None:
    policy = OLSBandit()
    state, x = policy.init(2, 1), np.ones(1)
    policy.update(state, Interaction(t=1, x=x, arm=0, reward=1.0, explored=False))
    before = state.arrays()["records"]
    for change in ({"weight": -1.0}, {"replaces": 1.0}):
        with pytest.raises(DecisionError, match="there is no such row"):
            policy.update(state, Interaction(t=1, x=x, arm=0, reward=1.0, explored=True, **change))  # type: ignore[arg-type]
        np.testing.assert_array_equal(state.arrays()["records"], before)
    policy.update(state, Interaction(t=1, x=x, arm=0, reward=1.0, explored=False, weight=-1.0))
    assert not state.arrays()["records"].any()


# ---- layers


def make_layers() -> Layers:
    return Layers(3, 2, ridge=Ridge.parse(1.0), units="free")


def learned_layers() -> Layers:
    layers, rng = make_layers(), np.random.default_rng(1)
    for _ in range(20):
        layers[int(rng.integers(2))].add(int(rng.integers(3)), rng.normal(size=2), 1.0)
    return layers


def test_layers_are_kept_copied_and_merged_whole() -> None:
    layers, other = learned_layers(), make_layers()
    kept = layers.arrays()
    other.restore_arrays(kept)
    for name, array in other.arrays().items():
        np.testing.assert_array_equal(array, kept[name])
    layers.copy()[0].add(0, np.ones(2), 1.0)
    np.testing.assert_array_equal(layers.arrays()["records"], kept["records"])
    other.merge(layers, [0, 1, 2])
    for i in range(2):
        np.testing.assert_array_equal(other[i].records(), 2 * layers[i].records())
    other.subtract(layers, [0, 1, 2])
    for i in range(2):
        np.testing.assert_allclose(other[i].records(), layers[i].records(), atol=1e-12)
    assert layers.nbytes == layers[0].nbytes + layers[1].nbytes


def test_layers_gain_and_lose_arms_together() -> None:
    layers = make_layers()
    layers[0].add(2, np.ones(2), 1.0)
    layers.add_arm()
    assert (layers.n_arms, layers[0].n_arms, layers[1].n_arms) == (4, 4, 4)
    layers.remove_arm(0)
    assert layers[0].n.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda layers, arrays: layers.restore_arrays(
            {**arrays, "records": np.stack([np.zeros((3, 12)), np.ones((3, 12)) * np.nan])}
        ),
        lambda layers, arrays: layers.restore_arrays({**arrays, "units": np.full_like(arrays["units"], -1.0)}),
        lambda layers, _: layers.merge(Layers(3, 2, ridge=Ridge.parse(1.0)), [0, 1, 2]),
        lambda layers, _: layers.subtract(more_in_the_second(layers), [0, 1, 2]),
    ],
    ids=["records", "units", "merge", "subtract"],
)
def test_a_refused_call_leaves_both_layers(change: Callable[[Layers, dict[str, object]], None]) -> None:
    layers = learned_layers()
    kept = layers.arrays()
    with pytest.raises((ValueError, MergeError)):
        change(layers, dict(layers.arrays()))
    np.testing.assert_array_equal(layers.arrays()["records"], kept["records"])


def more_in_the_second(layers: Layers) -> Layers:
    more = layers.copy()
    more[1].add(0, np.ones(2), 1.0)
    return more
