"""Whose decision it is: streams of coins, restored decisions, and workers that ship what they learned."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import armlet
from armlet import Algorithm1, Bandit, Decision, Policy
from armlet.errors import DecisionError, MergeError
from armlet.kernel import coins
from support.in_python import InPython

POLICIES: list[Policy] = [Algorithm1(p=500), armlet.LinUCB(), InPython(p=500)]


def make(policy: Policy | None = None, *, seed: int = 1) -> Bandit:
    return Bandit(["a", "b", "c"], 2, policy=policy or Algorithm1(p=500), seed=seed)


def restored(decision: Decision) -> Decision:
    d = decision
    return Decision.restore(d.id, d.arm, d.propensity, d.explored, d.x.tolist(), d.reward, d.weight, d.tag)


WAYS: dict[str, Callable[[Decision], Decision]] = {
    "itself": lambda d: d,
    "restored": restored,
    "unpickled": lambda d: pickle.loads(pickle.dumps(d)),
    "copied": copy.copy,
}


# ---- whose it is


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_decision_of_another_bandit_is_refused_by_name(policy: Policy, way: str) -> None:
    mine, other = make(policy, seed=1), make(policy, seed=2)
    before, decision = mine.to_bytes(), WAYS[way](other.decide([1.0, 2.0]))
    theirs = rf"decision {decision.id} was made by another bandit; learn it there"
    with pytest.raises(DecisionError, match=theirs):
        mine.learn(decision, 1.0)
    with pytest.raises(DecisionError, match=theirs):
        mine.learn_many([decision], [1.0])
    other.learn(decision, 1.0)
    with pytest.raises(DecisionError, match=theirs):
        mine.forget(decision, 1.0)
    with pytest.raises(DecisionError, match=theirs):
        mine.correct(decision, 1.0, 2.0)
    assert mine.to_bytes() == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("route", ["saved", "reseeded", "copied", "merged", "sum", "twice reseeded and saved"])
def test_decision_stays_learnable_wherever_its_stream_is_known(way: str, route: str, tmp_path: Path) -> None:
    made, decision = make(), None
    decision = WAYS[way](made.decide([1.0, 2.0]))
    if route == "saved":
        made.save(tmp_path / "model.armlet")
        target = armlet.load(tmp_path / "model.armlet", seed=77)
    elif route == "reseeded":
        target = made
        target.replace(seed="random")
    elif route == "copied":
        target = made.copy(seed=8)
    elif route == "merged":
        target = make(seed=9)
        target.merge(made)
    elif route == "sum":
        target = make(seed=9) + made
    else:
        made.replace(seed=3)
        made.replace(seed=4)
        target = armlet.from_bytes(make(seed=5).to_bytes())
        target.merge(armlet.from_bytes(made.to_bytes()))
    target.learn(decision, 1.0)
    assert target.state.n.sum() == 1.0


def test_new_stream_tosses_other_coins_and_an_old_one_is_refused() -> None:
    bandit = make(seed=1)
    old = bandit.decide([1.0, 2.0])
    twin = bandit.copy()
    bandit.replace(seed=2)
    ours, theirs = bandit.decide([1.0, 2.0]), twin.decide([1.0, 2.0])
    assert (ours.t, theirs.t) == (2, 2)
    assert ours.id == f"2-{coins(2, 2).mark:016x}"
    assert theirs.id == f"2-{coins(1, 2).mark:016x}"
    for used in (1, 2):
        with pytest.raises(ValueError, match=f"seed is {used}, which was in use already"):
            bandit.replace(seed=used)
    assert bandit.seed == 2
    bandit.learn(old, 1.0)


def test_seed_of_a_worker_is_its_own_and_is_checked() -> None:
    bandit = make(seed=1)
    workers = [bandit.copy(seed=10 + i) for i in range(4)]
    ids = {worker.decide([1.0, 2.0]).id for worker in workers}
    assert len(ids) == 4
    with pytest.raises(ValueError, match="seed is -1; give an integer"):
        bandit.copy(seed=-1)


# ---- normalisation happens when it is learned


def test_restored_decision_is_scaled_when_it_is_learned() -> None:
    one, other = (Bandit(["a", "b"], 2, policy=Algorithm1(p=9), normalize="l2", seed=1) for _ in range(2))
    alive, waiting = one.decide([3.0, 4.0]), other.decide([3.0, 4.0])
    assert alive.x.tolist() == [3.0, 4.0]
    one.learn(alive, 2.0)
    other.learn(Decision.restore(waiting.id, waiting.arm, waiting.propensity, waiting.explored, [3.0, 4.0]), 2.0)
    assert one.to_bytes() == other.to_bytes()
    assert np.abs(one.state.b).max() == 2.0 * 0.8
    one.forget(alive, 2.0)
    assert not one.state.records().any()


# ---- differences


@pytest.mark.parametrize("policy", POLICIES[:2], ids=str)
def test_workers_that_ship_differences_count_their_start_once(policy: Policy) -> None:
    """The sums of one base and of what four workers saw, not of four bases."""
    rng, base = np.random.default_rng(3), make(policy)
    everything = make(policy)
    for x in rng.normal(size=(168, 2)):
        base.learn(base.decide(x), float(x[0]))
        everything.learn(everything.decide(x), float(x[0]))
    start, workers = base.copy(), [base.copy(seed=100 + i) for i in range(4)]
    for worker in workers:
        for x in rng.normal(size=(39, 2)):
            worker.learn(decision := worker.decide(x), float(x[1]))
            everything.partial_fit([x], [decision.arm], [float(x[1])], explored=True)
    for worker in workers:
        base.merge(armlet.from_bytes(worker.difference(start).to_bytes()))
    assert base.t == 168 + 4 * 39
    assert base.state.n.sum() == 324.0
    np.testing.assert_allclose(base.state.records(), everything.state.records(), rtol=1e-9, atol=1e-9)
    base.learn(workers[0].decide([1.0, 1.0]), 1.0)  # a worker's stream came with its difference


def test_difference_knows_arms_that_came_and_went() -> None:
    base = make()
    for _ in range(6):
        base.learn(base.decide([1.0, 2.0]), 1.0)
    worker = base.copy(seed=2)
    worker.remove_arm("a")
    worker.add_arm("new")
    worker.partial_fit([[1.0, 0.0]], ["new"], [5.0], explored=True)
    rest = worker.difference(base)
    assert rest.arms == ["b", "c", "new"]
    assert rest.state.n.tolist() == [0.0, 0.0, 1.0]
    assert not rest.state.records()[:2].any()


def test_difference_that_cannot_be_added_is_refused() -> None:
    base = make()
    decisions = [base.decide([1.0, 2.0]) for _ in range(6)]
    base.learn_many(decisions, np.ones(6))
    worker = base.copy(seed=2)
    worker.forget(decisions[0], 1.0)
    before = worker.to_bytes()
    with pytest.raises(MergeError, match=r"fewer than the 2\.0 of the earlier state"):
        worker.difference(base)
    assert worker.to_bytes() == before
    with pytest.raises(MergeError, match="base must be the earlier one"):
        make().difference(base)
    with pytest.raises(MergeError, match="p=500"):
        make(Algorithm1(p=600)).difference(base)
    with pytest.raises(TypeError, match="base is 3; difference takes the Bandit"):
        base.difference(3)  # type: ignore[arg-type]


# ---- an arm that was removed and added again is another one


@pytest.mark.parametrize("policy", [Algorithm1(p=500), InPython(p=500)], ids=["compiled", "python"])
def test_what_an_arm_knew_before_it_was_removed_cannot_be_changed_later(policy: Policy) -> None:
    bandit = make(policy)
    decisions = {d.arm: d for d in (bandit.decide([1.0, 2.0]) for _ in range(60))}
    for decision in decisions.values():
        bandit.learn(decision, 1.0)
    bandit.remove_arm("b")
    bandit.add_arm("b")
    for lived in (bandit, bandit.copy()):
        before = lived.to_bytes()
        with pytest.raises(DecisionError, match=r"arm 'b' was removed or emptied after decision .* was learned"):
            lived.correct(decisions["b"], 1.0, 2.0)
        with pytest.raises(DecisionError, match=r"arm 'b' was removed or emptied after decision .* was learned"):
            lived.forget(decisions["b"], 1.0)
        with pytest.raises(DecisionError, match="nothing to correct"):  # it cannot tell, but there is no such row
            lived.correct(restored(decisions["b"]), 1.0, 2.0)
        assert lived.to_bytes() == before
    bandit.correct(decisions["a"], 1.0, 2.0)
