"""Which arms may be played this time, in every form, and the probabilities of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from armlet import Algorithm1, Bandit, Policy
from armlet.testing.policies import sample_run
from support.bandits import facts, make
from support.policies import DIM, N_ARMS, every_policy


def test_labels_booleans_and_sets_are_one() -> None:
    X = np.random.default_rng(1).normal(size=(60, 2))
    plain, masked, looked_up = (make(4, 2, p=20) for _ in range(3))
    some = looked_up.arms.subset([3, 1, 1])
    mask = np.array([False, True, False, True])
    for x in X:
        expected = plain.decide(x, eligible=[3, 1])
        assert expected.eligible == (1, 3)
        for other, eligible in ((masked, mask), (looked_up, some)):
            decision = other.decide(x, eligible=eligible)
            assert (facts(decision), decision.eligible) == (facts(expected), (1, 3))
            other.learn(decision, float(x[0]))
        plain.learn(expected, float(x[0]))
    assert facts(plain.decide_many(X, eligible=[1, 3])[5]) == facts(masked.decide_many(X, eligible=mask)[5])
    assert plain.predict(X, eligible=[1, 3]).tolist() == looked_up.predict(X, eligible=some).tolist()
    assert plain.predict_proba(X, eligible=[3, 1]).tolist() == masked.predict_proba(X, eligible=mask).tolist()


def test_a_set_outlives_changes_of_arms_and_serves_other_bandits() -> None:
    bandit = Bandit(["a", "b", "c", "d"], 1, policy=Algorithm1(p=8), seed=1)
    some = bandit.arms.subset(["b", "d"])
    assert (len(some), list(some), repr(some)) == (2, ["b", "d"], "ArmSet(['b', 'd'])")
    bandit.remove_arm("a")
    assert bandit.decide([1.0], eligible=some).eligible == ("b", "d")
    bandit.add_arm("e")
    assert bandit.decide([1.0], eligible=some).eligible == ("b", "d")
    bandit.retire_arm("b")
    assert bandit.decide([1.0], eligible=some).eligible == ("d",)
    assert bandit.copy().decide([1.0], eligible=some).arm == "d"
    bandit.remove_arm("d")
    with pytest.raises(KeyError, match="no arm 'd'"):
        bandit.decide([1.0], eligible=some)


def test_eligible_arms_that_cannot_be_are_refused() -> None:
    bandit = make(3, 1)
    bandit.retire_arm(2)
    before = bandit.digest()
    for wrong, match in (
        (np.array([True, False]), "2 booleans for 3 arms"),
        (np.array([False, False, True]), "no arm to play"),
        (bandit.arms.subset([2]), "no arm to play"),
        (bandit.arms.subset([]), "no arm to play"),
    ):
        with pytest.raises(ValueError, match=match):
            bandit.decide([1.0], eligible=wrong)
    with pytest.raises(KeyError, match="no arm 9"):
        bandit.arms.subset([9])
    for none in (None, "abc", 3):
        with pytest.raises(TypeError):
            bandit.arms.subset(none)  # type: ignore[arg-type]  # refused
    assert bandit.digest() == before


@pytest.mark.parametrize("policy", every_policy(), ids=str)
def test_the_probabilities_of_a_decision_are_those_of_its_step(policy: Policy) -> None:
    one, other = (Bandit(range(N_ARMS), DIM, policy=policy, seed=5) for _ in range(2))
    X, rewards = sample_run(policy, N_ARMS, DIM, 60)
    for i, (x, row) in enumerate(zip(X, rewards, strict=True)):
        some = None if i % 2 else one.arms.subset([0, 2, 3])
        expected = one.predict_proba([x], eligible=some)[0]
        decision = one.decide(x, eligible=some, probabilities="all")
        assert decision.probabilities is not None
        assert decision.probabilities.tolist() == decision.to_dict()["probabilities"] == expected.tolist()
        assert decision.probabilities[int(decision.arm)] == pytest.approx(decision.propensity, rel=1e-12)
        plain = other.decide(x, eligible=some, propensity="marginal")
        assert plain.probabilities is None
        assert facts(plain) == facts(decision)
        one.learn(decision, float(row[int(decision.arm)]))
        other.learn(plain, float(row[int(decision.arm)]))
    assert one.digest() == other.digest()


@pytest.mark.parametrize("wrong", [True, "all", 1])
def test_a_marginal_propensity_is_asked_for_by_word(wrong: object) -> None:
    bandit = make(2, 1)
    with pytest.raises(ValueError, match="; give 'marginal', or leave it out"):
        bandit.decide([1.0], propensity=wrong)  # type: ignore[arg-type]  # refused
    with pytest.raises(ValueError, match="give 'marginal'"):
        bandit.decide_many([[1.0]], propensity=wrong)  # type: ignore[arg-type]  # refused
    assert bandit.t == 0


@pytest.mark.parametrize("wrong", [True, "some", 1])
def test_probabilities_are_asked_for_by_word(wrong: object) -> None:
    bandit = make(2, 1)
    with pytest.raises(ValueError, match="give 'all'"):
        bandit.decide([1.0], probabilities=wrong)  # type: ignore[arg-type]  # refused
    assert bandit.t == 0
