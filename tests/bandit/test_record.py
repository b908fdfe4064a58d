"""Decisions as records: everything that a log keeps, and a bandit that plays it again in another process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Algorithm1, Bandit, Decision, Greedy, Policy
from armlet.testing.policies import sample_run
from support.bandits import facts, make
from support.in_python import InPython
from support.policies import DIM, N_ARMS, every_policy

STEPS = 120
KEYS = (
    *("id", "t", "x", "eligible", "arm", "propensity", "explored", "optimistic", "exploration_rate"),
    *("exploration_propensity", "min_exploration_probability", "greedy", "design", "tag"),
)


def bandit_with(policy: Policy, **settings: Any) -> Bandit:
    return Bandit(range(N_ARMS), DIM, policy=policy, seed=11, **settings)


def events(policy: Policy, bandit: Bandit) -> Iterator[tuple[str, Any]]:
    """Play with eligible sets, late, lost and corrected rewards, and tell what happened."""
    X, rewards = sample_run(policy, N_ARMS, DIM, STEPS)
    rng, pending = random.Random(3), []
    for x, row in zip(X, rewards, strict=True):
        eligible = rng.sample(range(N_ARMS), rng.randint(1, N_ARMS)) if rng.random() < 0.3 else None
        decision = bandit.decide(x, eligible=eligible)
        pending.append((decision, float(row[int(decision.arm)])))
        yield "decide", decision
        while pending and rng.random() < 0.6:
            late, reward = pending.pop(rng.randrange(len(pending)))
            if rng.random() < 0.9:
                bandit.learn(late, reward)
                yield "learn", (late.id, reward)


@pytest.mark.parametrize("policy", every_policy(), ids=str)
def test_what_a_decision_says_of_exploring_holds_together(policy: Policy) -> None:
    for kind, d in events(policy, bandit_with(policy)):
        if kind != "decide":
            continue
        m = N_ARMS if d.eligible is None else len(d.eligible)
        rate, given, smallest = d.exploration_rate, d.exploration_propensity, d.min_exploration_probability
        assert (d.design == "choice") == (given is None) == (rate is None) == (smallest is None)
        assert d.explored or d.greedy
        if d.design == "turn":
            assert (d.explored, d.propensity, given, rate, smallest) == (True, 1.0, 1.0, 1.0, 0.0)
            assert m > 1
        if d.design == "coin":
            assert 0.0 < smallest <= min(given, 1.0 / m + 1e-12)
            best = d.greedy if rate < 1.0 else False
            explored = rate * given
            assert d.propensity == pytest.approx(explored) if not best else d.propensity >= explored * (1 - 1e-12)


def test_the_record_has_plain_types_and_the_agreed_names() -> None:
    bandit = Bandit(["north", 7], 2, policy=Algorithm1(p=2), seed=1)
    decision = bandit.decide(np.array([0.1, 0.2]))
    assert tuple(decision.to_dict()) == KEYS
    assert decision.to_dict()["x"] == [0.1, 0.2]
    assert decision.to_dict()["eligible"] is None
    bandit.learn(decision, 0.5, weight=2.0)
    assert tuple(decision.to_dict()) == (*KEYS, "reward", "weight")
    some = bandit.decide([0.0, 1.0], eligible=["north"])
    assert (some.to_dict()["eligible"], some.eligible) == (["north"], ("north",))
    kinds = {type(value) for each in (decision, some) for value in each.to_dict().values()}
    assert kinds <= {str, int, float, bool, list, type(None)}


def test_the_context_of_a_record_is_the_one_before_scaling() -> None:
    decision = bandit_with(Algorithm1(p=4), normalize="l2").decide([3.0, 0.0, 4.0])
    assert decision.to_dict()["x"] == [3.0, 0.0, 4.0]


def test_a_decision_without_its_context_is_kept_but_not_learned() -> None:
    bandit = make(2, 1)
    record = bandit.decide([1.0]).to_dict() | {"x": None}
    bare = Decision.from_dict(record)
    assert bare.to_dict() == record
    assert bare.x.shape == (0,)
    with pytest.raises(ValueError, match="kept without its context"):
        bandit.learn(bare, 1.0)
    assert not bandit.state.n.any()


def test_entries_that_a_record_does_not_know_are_passed_over() -> None:
    decision = make(2, 1).decide([1.0])
    event = {"seq": 3, "kind": "decide", **decision.to_dict(), "cost": 2.0}
    assert facts(Decision.from_dict(event)) == facts(decision)


@pytest.mark.parametrize("name", ["id", "arm", "propensity", "explored"])
def test_what_a_record_must_have_is_missed_by_name(name: str) -> None:
    record = make(2, 1).decide([1.0]).to_dict()
    for lacking in ({k: v for k, v in record.items() if k != name}, record | {name: None}):
        with pytest.raises(ValueError, match=f"has no {name}"):
            Decision.from_dict(lacking)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("t", 9, ValueError),
        ("id", 3, TypeError),
        ("explored", 1, TypeError),
        ("propensity", "half", TypeError),
        ("tag", 2**40, TypeError),
        ("exploration_rate", "often", TypeError),
        ("greedy", "yes", TypeError),
        ("eligible", "north", TypeError),
        ("x", [1.0, float("nan")], ValueError),
        ("x", "1.0", ValueError),
        ("x", [True], ValueError),
        ("reward", float("inf"), ValueError),
    ],
)
def test_a_record_that_cannot_be_is_refused_by_name(name: str, value: object, error: type[Exception]) -> None:
    record = make(2, 1).decide([1.0]).to_dict()
    with pytest.raises(error, match=name):
        Decision.from_dict(record | {name: value})


@pytest.mark.parametrize("record", [None, 3, "id", [1, 2]])
def test_only_mappings_are_records(record: Any) -> None:
    with pytest.raises(TypeError, match="give a mapping"):
        Decision.from_dict(record)


# ---- the clock


@pytest.mark.parametrize("policy", [Algorithm1(p=4), InPython(p=4)], ids=["compiled", "in Python"])
def test_the_clock_goes_forward_only(policy: Policy) -> None:
    bandit = Bandit([0, 1], 1, policy=policy, seed=1)
    assert bandit.decide([1.0], t=10).t == bandit.t == 10
    assert bandit.decide_many([[1.0]] * 3, t=20).t.tolist() == [20, 21, 22]
    bandit.replace(t=22)
    before = bandit.digest()
    for refused in (22, 5, 0, -1, 2**63, 2**64 + 30, 2**200):
        with pytest.raises(ValueError, match="t is"):
            bandit.decide([1.0], t=refused)
        with pytest.raises(ValueError, match="t is"):
            bandit.decide_many([[1.0]], t=refused)
    for refused in (21, 0, -1, 2**63, 2**64 + 30):
        with pytest.raises(ValueError, match="t is"):
            bandit.replace(t=refused)
    for wrong in ("10", 30.0, True):
        with pytest.raises(TypeError, match="t is"):
            bandit.decide([1.0], t=wrong)  # type: ignore[arg-type]  # refused
    assert bandit.digest() == before
    assert bandit.decide([1.0], t=None).t == 23


def test_the_clock_ends_and_never_wraps() -> None:
    last, bandit = 2**63 - 1, make(2, 1)
    with pytest.raises(ValueError, match="cannot take 2 more steps"):
        bandit.decide_many([[1.0], [1.0]], t=last)
    assert bandit.t == 0
    assert bandit.decide_many([[1.0], [1.0]], t=last - 1).t.tolist() == [last - 1, last]
    assert Decision.from_dict(make(2, 1).decide([1.0], t=last).to_dict()).t == last
    with pytest.raises(ValueError, match="ends at 2\\^63 - 1"):
        bandit.decide([1.0])
    bandit.replace(t=last)
    assert bandit.t == last


def test_steps_named_one_by_one_are_those_of_a_batch_and_of_the_clock() -> None:
    X = np.random.default_rng(1).normal(size=(40, 2))
    one, named, batch = (make(3, 2, p=10) for _ in range(3))
    expected = [facts(one.decide(x)) for x in X]
    assert [facts(named.decide(x, t=t)) for t, x in enumerate(X, start=1)] == expected
    assert [facts(each) for each in batch.decide_many(X, t=1)] == expected


# ---- the digest


def changed() -> dict[str, Bandit]:
    def bandit(arms: list[Any] | None = None, ridge: float = 5.0, **settings: Any) -> Bandit:
        return Bandit(arms or ["a", "b"], features=["u", "v"], policy=Greedy(ridge=ridge), seed=1, **settings)

    out = {
        "as it is": bandit(),
        "another setting": bandit(ridge=6.0),
        "another arm": bandit(["a", "c"]),
        "arms of another kind": bandit([1, "b"]),
        "another order of arms": bandit(["b", "a"]),
        "costs": bandit(objective="min"),
        "scaled": bandit(normalize="l2"),
        "a range": bandit(reward_range=(0, 1)),
        "another feature": Bandit(["a", "b"], features=["u", "w"], policy=Greedy(ridge=5.0), seed=1),
        "other units": bandit(units="as given"),
    }
    out["a step"], out["a retired arm"], out["a row"] = bandit(), bandit(), bandit()
    out["a step"].replace(t=1)
    out["a retired arm"].retire_arm("a")
    out["a row"].learn(out["a row"].decide([1.0, 2.0]), 0.5)
    return out


def test_the_digest_tells_apart_whatever_decides_or_learns_otherwise() -> None:
    digests = {name: bandit.digest() for name, bandit in changed().items()}
    assert len(set(digests.values())) == len(digests)
    assert all(len(digest) == 64 and int(digest, 16) >= 0 for digest in digests.values())


@pytest.mark.parametrize("policy", every_policy(), ids=str)
def test_the_digest_is_that_of_the_state_and_not_of_what_was_asked(policy: Policy) -> None:
    bandit = bandit_with(policy)
    for _ in events(policy, bandit):
        pass
    quiet = bandit.copy()
    quiet.replace(t=bandit.t + 3)
    bandit.predict_proba(np.ones((3, DIM)))
    for decision in bandit.decide_many(np.ones((3, DIM))):
        bandit.expire(decision)
    assert quiet.digest() == bandit.digest()
    assert armlet.from_bytes(bandit.to_bytes()).digest() == bandit.copy(seed=99).digest() == bandit.digest()
