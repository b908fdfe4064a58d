"""Units keep their arm within an epoch: their coins, the state that they meet, and what survives what."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet import Bandit, Decision, Policy, disk
from armlet.errors import ModelFileError
from armlet.kernel import coins, unit_seed
from armlet.reference import epoch as oracle
from armlet.reference.choice import coins as tossed
from armlet.testing.policies import sample_run
from support.examples import scaled
from support.in_python import InPython
from support.policies import DIM, N_ARMS, every_policy
from support.recorder import Notebook

ARMS = ["a", "b", "c"]


def make(policy: Policy | None = None, *, epoch: int | timedelta | None = 20, **others: Any) -> Bandit:
    return Bandit(ARMS, 2, policy=policy or armlet.FixedEpsilon(epsilon=0.3), epoch=epoch, seed=7, **others)


# ---- coins


@pytest.mark.parametrize("unit", ["", "a", "session-17", "12345678", "é" * 20, "x" * 255])
def test_units_have_the_coins_of_the_reference(unit: str) -> None:
    if not unit:
        with pytest.raises(ValueError, match="unit is ''; give text of 1 to 256 characters"):
            unit_seed(7, unit)
        return
    for seed in (0, 7, 2**128 - 1):
        assert unit_seed(seed, unit) == oracle.unit_seed(seed, unit)
        assert [coins(unit_seed(seed, unit), e) for e in (0, 1, 2**63 - 1)] == [
            tossed(oracle.unit_seed(seed, unit), e) for e in (0, 1, 2**63 - 1)
        ]


def test_the_hash_is_that_of_its_authors() -> None:
    """Test vectors of SipHash-2-4-128: the key is 0, 1, ..., 15 and the text 0, 1, ..., n - 1."""
    key = int.from_bytes(bytes(range(16)), "little")
    vectors = {0: "a3817f04ba25a8e66df67214c7550293", 15: "5493e99933b0a8117e08ec0f97cfc3d9"}  # also by OpenSSL
    assert {n: oracle.siphash(key, bytes(range(n))).to_bytes(16, "little").hex() for n in vectors} == vectors


def test_coins_of_units_differ_from_each_other_and_from_those_of_steps() -> None:
    seeds = {unit_seed(7, f"s{i}") for i in range(1000)} | {unit_seed(8, "s0"), 7}
    assert len(seeds) == 1002
    assert len({coins(seed, e).coin for seed in seeds for e in range(3)}) == 3006


# ---- what a unit meets


@pytest.mark.parametrize("policy", every_policy(), ids=str)
def test_a_unit_meets_what_the_reference_says(policy: Policy) -> None:
    """The state and the clock of the epoch's first decision of a unit, with the coins of (seed, unit, epoch)."""
    bandit = Bandit(range(N_ARMS), DIM, policy=policy, epoch=25, seed=3)
    X, rewards = sample_run(policy, N_ARMS, DIM, 120)
    met: oracle.Epoch | None = None
    everything = np.ones(N_ARMS, dtype=bool)
    for i, x in enumerate(X):
        if i % 3 == 0:  # one without a unit in between
            decision = bandit.decide(x)
        else:
            number = i // 25
            if met is None or met.number != number:
                met = oracle.Epoch(number, i + 1, bandit.state.copy())
            expected = met.decide(policy, 3, f"u{i % 7}", x, everything)
            decision = bandit.decide(x, unit=f"u{i % 7}", propensity="marginal")
            found = (decision.arm, decision.propensity, decision.explored, decision.epoch, decision.unit, decision.t)
            assert found == (expected.arm, expected.propensity, expected.explored, number, f"u{i % 7}", i + 1)
        bandit.learn(decision, float(rewards[i, int(decision.arm)]))


def test_propensities_are_those_over_units() -> None:
    """Shares of 3,000 units against their probabilities, within 5 standard deviations."""
    bandit = make(epoch=10_000)
    bandit.partial_fit([[1.0, 0.0]] * 3, ARMS, [0.0, 1.0, 0.5])
    first = bandit.decide([1.0, 0.0], unit="first", probabilities="all").probabilities
    assert first is not None
    played = [bandit.decide([1.0, 0.0], unit=f"u{i}") for i in range(3000)]
    for arm, p in zip(ARMS, first, strict=True):
        share = float(np.mean([d.arm == arm for d in played]))
        assert abs(share - p) < 5 * np.sqrt(p * (1 - p) / 3000)
        assert {d.propensity for d in played if d.arm == arm} == {p}
    assert first.tolist() == pytest.approx([0.1, 0.8, 0.1])


# ---- any life leaves units on their arms


LIVES: dict[str, Callable[[Bandit], Bandit]] = {
    "saved": lambda bandit: armlet.from_bytes(bandit.to_bytes()),
    "pickled": lambda bandit: pickle.loads(pickle.dumps(bandit)),
    "copied": lambda bandit: bandit.copy(),
    "deep": copy.deepcopy,
    "itself": lambda bandit: bandit,
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.integers(0, 4)),
        st.tuples(st.just("many"), st.integers(1, 12)),
        st.tuples(st.just("learn"), st.floats(-2, 2)),
        st.tuples(st.just("plain"), st.floats(-2, 2)),
        st.tuples(st.sampled_from(sorted(LIVES)), st.none()),
    ),
    min_size=5,
    max_size=80,
)
KINDS: list[Policy] = [
    armlet.OccasionalOptimism(),
    armlet.ThompsonSampling(),
    armlet.AutoEpsilonGreedy(),
    InPython(p=8),
]


@pytest.mark.parametrize("policy", KINDS, ids=str)
@settings(max_examples=scaled(25))
@given(steps=STEPS, epoch=st.sampled_from([1, 3, 30]))
def test_any_interleaving_leaves_units_on_their_arms(policy: Policy, steps: list[Any], epoch: int) -> None:
    bandit, arms, pending = make(policy, epoch=epoch), dict[tuple[Any, Any], Any](), list[Decision]()

    def heard(decision: Decision) -> None:
        pending.append(decision)
        if decision.unit is not None:
            assert arms.setdefault((decision.unit, decision.epoch), decision.arm) == decision.arm

    for what, value in steps:
        if what == "decide":
            heard(bandit.decide([float(value), 1.0], unit=f"u{value}"))
        elif what == "many":
            for decision in bandit.decide_many(
                [[i % 5, 1.0] for i in range(value)], units=[f"u{i % 5}" for i in range(value)]
            ):
                heard(decision)
        elif what == "plain":
            heard(bandit.decide([value, 0.0]))
        elif what == "learn" and pending:
            bandit.learn(pending.pop(0), value)
        elif what in LIVES and not (what in ("saved", "pickled") and isinstance(policy, InPython)):
            before = bandit.digest()
            bandit = LIVES[what](bandit)
            assert bandit.digest() == before


@pytest.mark.parametrize("policy", [*KINDS, armlet.LinUCB(), armlet.ContextualEpsilonGreedy(p=5)], ids=str)
@pytest.mark.parametrize("normalize", [None, "l2"])
def test_a_batch_is_one_by_one(policy: Policy, normalize: Any) -> None:
    rng = random.Random(1)
    one, many = (make(policy, epoch=7, normalize=normalize) for _ in range(2))
    for size in (1, 5, 30, 16):
        X = [[rng.gauss(0, 1), 1.0] for _ in range(size)]
        units = [rng.choice([None, "u1", "u2", "u3"]) for _ in range(size)]
        batch = many.decide_many(X, units=units, propensity="marginal")
        single = [one.decide(x, unit=u, propensity="marginal") for x, u in zip(X, units, strict=True)]
        assert [d.to_dict() for d in batch] == [d.to_dict() for d in single]
        if any(units):
            assert (batch.units, batch.epochs) == ([d.unit for d in single], [d.epoch for d in single])
        for ours, theirs in zip(batch, single, strict=True):
            reward = rng.gauss(0, 1)
            many.learn(ours, reward)
            one.learn(theirs, reward)
    assert one.digest() == many.digest()


def test_a_table_of_decisions_has_their_units() -> None:
    decisions = make().decide_many([[1.0, 0.0]] * 3, units=["u", None, "v"])
    assert decisions.to_arrow().select(["unit", "epoch"]).to_pylist() == [
        {"unit": "u", "epoch": 0},
        {"unit": None, "epoch": None},
        {"unit": "v", "epoch": 0},
    ]
    plain = make().decide_many([[1.0, 0.0]])
    assert (plain.units, plain.epochs, "unit" in plain.to_arrow().column_names) == (None, None, False)


# ---- a bandit that never used units is what it was


def test_without_units_nothing_is_stored() -> None:
    plain, ready = make(epoch=None), make()
    for bandit in (plain, ready):
        bandit.learn(bandit.decide([1.0, 0.0]), 1.0)
    assert b"epoch" not in plain.to_bytes()
    assert len(ready.to_bytes()) - len(plain.to_bytes()) == len('"epoch": 20, ')
    size = len(ready.to_bytes())
    ready.decide([1.0, 0.0], unit="u")
    assert len(ready.to_bytes()) > size + ready.state.arrays()["records"].nbytes


def test_a_file_that_says_another_epoch_is_refused() -> None:
    bandit = make()
    bandit.decide([1.0, 0.0], unit="u")
    header, arrays = disk.decode_model(bandit.to_bytes())
    wrong: list[disk.Json] = [[0, 2], [-1, 1], [0], "0", None, [0.0, 1]]
    for changed in wrong:
        data = disk.encode_model({**header, "epoch_start": changed}, arrays)
        with pytest.raises(ModelFileError, match="epoch_start is"):
            armlet.from_bytes(data)
    fewer = {name: array for name, array in arrays.items() if not name.startswith("epoch_")}
    with pytest.raises(ModelFileError, match="where its policy keeps"):
        armlet.from_bytes(disk.encode_model(header, fewer))


# ---- epochs


def test_epochs_can_be_named_and_go_forward() -> None:
    bandit = make(epoch=None)
    with pytest.raises(ValueError, match="nothing says which epoch it is; make the bandit with epoch=1000"):
        bandit.decide([1.0, 0.0], unit="u")
    arms = {bandit.decide([1.0, 0.0], unit="u", epoch=5).arm for _ in range(100)}
    assert len(arms) == 1
    before = bandit.to_bytes()
    with pytest.raises(ValueError, match="epoch is 4 but epoch 5 has begun, and they go forward only"):
        bandit.decide([1.0, 0.0], unit="u", epoch=4)
    assert bandit.to_bytes() == before
    assert bandit.decide([1.0, 0.0], unit="u", epoch=9).epoch == 9


def test_a_counted_epoch_is_not_named_otherwise() -> None:
    bandit = make(epoch=20)
    assert bandit.decide([1.0, 0.0], unit="u", epoch=0).epoch == 0
    with pytest.raises(ValueError, match="epoch is 3 but step 2 is in epoch 0, of 20 decisions; leave epoch out"):
        bandit.decide([1.0, 0.0], unit="u", epoch=3)
    with pytest.raises(ValueError, match="nothing says which epoch"):
        make(epoch=timedelta(hours=1)).decide([1.0, 0.0], unit="u")
    assert make(epoch=timedelta(hours=1)).decide([1.0, 0.0], unit="u", epoch=480_000).epoch == 480_000


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ({"unit": 5}, TypeError, "unit is 5; give the name of a unit"),
        ({"unit": ""}, ValueError, "unit is ''; give text of 1 to 256"),
        ({"unit": "x" * 257}, ValueError, "give text of 1 to 256"),
        ({"unit": "\ud800"}, ValueError, "give text that can be written as UTF-8"),
        ({"epoch": 1}, ValueError, "epoch is 1 but there is no unit"),
        ({"unit": "u", "epoch": "1"}, TypeError, "epoch is '1'; give a whole number"),
        ({"unit": "u", "epoch": True}, TypeError, "epoch is True; give a whole number"),
        ({"unit": "u", "epoch": -1}, ValueError, "epoch is -1; give a whole number from 0 to"),
        ({"unit": "u", "epoch": 2**63}, ValueError, "give a whole number from 0 to"),
        ({"unit": "u", "eligible": ["nobody"]}, KeyError, "nobody"),
    ],
)
def test_refusals_leave_everything_as_it_was(said: dict[str, Any], error: type[Exception], message: str) -> None:
    bandit = make()
    before = bandit.to_bytes()
    with pytest.raises(error, match=message):
        bandit.decide([1.0, 0.0], **said)
    if "unit" in said:
        with pytest.raises(error, match=message):
            bandit.decide_many([[1.0, 0.0]], units=[said["unit"]], **{k: v for k, v in said.items() if k != "unit"})
    assert bandit.to_bytes() == before


def test_batches_have_a_unit_for_each_row() -> None:
    bandit = make()
    with pytest.raises(ValueError, match="there are 2 units for 1 rows of X; give one for each"):
        bandit.decide_many([[1.0, 0.0]], units=["u", "v"])
    with pytest.raises(TypeError, match="units is the string 'u'"):
        bandit.decide_many([[1.0, 0.0]], units="u")
    assert bandit.t == 0


@pytest.mark.parametrize("epoch", [0, -1, True, 1.5, "1h", timedelta(0), timedelta(days=20_000), {"minutes": 1}])
def test_epochs_that_are_none_are_refused(epoch: Any) -> None:
    with pytest.raises(ValueError, match=r"epoch is .*; give a number of decisions, at least 1, or a timedelta"):
        make(epoch=epoch)


@pytest.mark.parametrize("epoch", [1, 20, timedelta(hours=1), timedelta(microseconds=1)])
def test_the_length_of_an_epoch_is_kept(epoch: Any) -> None:
    bandit = make(epoch=epoch)
    assert armlet.from_bytes(bandit.to_bytes()).settings.epoch == bandit.copy().settings.epoch == epoch


# ---- changes in the middle of an epoch


def settled(policy: Policy | None = None) -> tuple[Bandit, dict[str, Any]]:
    bandit = make(policy, epoch=10_000)
    bandit.partial_fit([[1.0, 0.0]] * 3, ARMS, [0.0, 1.0, 0.5])
    return bandit, {f"u{i}": bandit.decide([1.0, 0.0], unit=f"u{i}").arm for i in range(50)}


def now(bandit: Bandit) -> dict[str, Any]:
    return {f"u{i}": bandit.decide([1.0, 0.0], unit=f"u{i}").arm for i in range(50)}


def test_learning_changes_nobody_before_the_epoch_ends() -> None:
    bandit, arms = settled()
    bandit.partial_fit([[1.0, 0.0]] * 300, ["c"] * 300, [9.0] * 300)
    assert now(bandit) == arms
    assert bandit.predict([[1.0, 0.0]]).tolist() == ["c"]
    bandit.replace(t=20_000)
    assert list(now(bandit).values()).count("c") > 30


def test_an_arm_that_goes_takes_only_its_own_units() -> None:
    bandit, arms = settled()
    bandit.retire_arm("b")
    for unit, arm in now(bandit).items():
        assert arm != "b"
        assert arm == arms[unit] or arms[unit] == "b" or arm in ("a", "c")
    bandit.restore_arm("b")
    assert now(bandit) == arms
    bandit.remove_arm("b")
    assert set(now(bandit).values()) == {"a", "c"}
    assert armlet.from_bytes(bandit.to_bytes()).digest() == bandit.digest()


def test_a_new_arm_moves_nobody_who_exploits() -> None:
    bandit, arms = settled(armlet.Greedy(units="as given"))
    bandit.add_arm("d")
    assert now(bandit) == arms
    assert armlet.from_bytes(bandit.to_bytes()).digest() == bandit.digest()


@pytest.mark.parametrize("change", ["merge", "policy", "features", "fit"])
def test_another_state_ends_what_units_meet(change: str) -> None:
    bandit, _ = settled()
    if change == "merge":
        bandit.merge(make(epoch=10_000).copy(seed=3))
    elif change == "policy":
        bandit.replace(policy=armlet.FixedEpsilon(epsilon=0.1))
    elif change == "features":
        bandit.replace(features=["x", "y"])
    else:
        bandit.fit([[1.0, 0.0]], ["c"], [1.0])
    assert bandit._epoch is None
    assert bandit.decide([1.0, 0.0], unit="u").epoch == 0


def test_another_range_of_rewards_ends_nothing() -> None:
    bandit, arms = settled()
    bandit.replace(reward_range=(-9.0, 9.0))
    assert now(bandit) == arms


def test_differences_have_no_epoch() -> None:
    bandit, _ = settled()
    base = bandit.copy()
    bandit.learn(bandit.decide([1.0, 0.0], unit="u"), 1.0)
    assert bandit.difference(base)._epoch is None


# ---- logs


@pytest.mark.parametrize("how", ["decide", "decide_many"])
def test_a_decision_that_could_not_be_recorded_begins_no_epoch(how: str) -> None:
    notebook = Notebook()
    bandit = make(log=notebook)
    bandit.decide([1.0, 0.0], unit="u")
    bandit.replace(t=25)
    notebook.is_full = True
    with pytest.raises(OSError, match="full"):
        _ = bandit.decide([1.0, 0.0], unit="u") if how == "decide" else bandit.decide_many([[1.0, 0.0]], units=["u"])
    assert bandit._epoch == 0
