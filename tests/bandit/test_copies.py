"""Copies of a bandit: copy, deepcopy, pickle, bytes, file objects, and what other libraries do with them."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone  # type: ignore[import-untyped]

import armlet
from armlet import Algorithm1, Bandit, Policy
from armlet.errors import ModelFileError
from armlet.policies.fixed_epsilon import FixedEpsilon
from support.policies import REGISTRY, SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class Own(FixedEpsilon):
    """A policy that is not Armlet's."""


def through_a_file(bandit: Bandit) -> Bandit:
    file = io.BytesIO()
    bandit.save(file)
    file.seek(0)
    policy = bandit.policy if isinstance(bandit.policy, Own) else None
    return armlet.load(file, policy=policy)


def through_bytes(bandit: Bandit) -> Bandit:
    return armlet.from_bytes(bandit.to_bytes(), policy=bandit.policy if isinstance(bandit.policy, Own) else None)


def through_joblib(bandit: Bandit) -> Bandit:
    file = io.BytesIO()
    joblib.dump(bandit, file)
    file.seek(0)
    loaded: Bandit = joblib.load(file)
    return loaded


COPIES: dict[str, Callable[[Bandit], Bandit]] = {
    "copy()": lambda bandit: bandit.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda bandit: pickle.loads(pickle.dumps(bandit)),
    "bytes": through_bytes,
    "file object": through_a_file,
    "joblib": through_joblib,
}


def played(policy: Policy, steps: int = 60) -> Bandit:
    bandit = Bandit(["a", "b", "c", 4], 3, policy=policy, objective="min", normalize="l2", seed=5)
    rng = np.random.default_rng(2)
    for x in rng.normal(size=(steps, 3)):
        bandit.learn(bandit.decide(x), -float(rng.random() < 0.5))
    return bandit


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("policy", [Algorithm1(p=20), armlet.LinUCB(), Own()], ids=str)
def test_copies_are_exact_and_go_their_own_way(policy: Policy, way: str) -> None:
    bandit = played(policy)
    bandit.retire_arm("b")
    twin = COPIES[way](bandit)
    assert type(twin) is Bandit
    assert (twin.arms, twin.arms.retired, twin.t, twin.seed) == (bandit.arms, ["b"], 60, 5)
    assert (twin.policy, twin.settings.objective, twin.settings.normalize) == (bandit.policy, "min", "l2")
    for x in np.random.default_rng(3).normal(size=(40, 3)):
        ours, theirs = bandit.decide(x), twin.decide(x)
        assert repr(ours) == repr(theirs)
        bandit.learn(ours, -1.0)
        twin.learn(theirs, -1.0)
    assert twin.to_bytes() == bandit.to_bytes()
    twin.add_arm("d")
    twin.learn(twin.decide([1.0, 0.0, 0.0]), -1.0)
    assert bandit.arms == ["a", "b", "c", 4]
    assert bandit.t == 100


@pytest.mark.parametrize("name", REGISTRY)
def test_every_policy_is_copied_and_pickled(name: str) -> None:
    for settings in SETTINGS[name]:
        bandit = Bandit(range(4), 3, policy=REGISTRY[name](**settings), seed=5)
        for way in ("copy()", "pickle"):
            twin = COPIES[way](bandit)
            assert repr(twin.decide([1.0, 0.0, 1.0])) == repr(bandit.copy().decide([1.0, 0.0, 1.0]))


class Shop(Bandit):
    """A subclass with attributes of its own."""

    name: str


def test_subclass_keeps_its_kind_and_its_attributes() -> None:
    shop = Shop(["a", "b"], 1, policy=Algorithm1(p=4), seed=1)
    shop.name = "corner"
    for twin in (shop.copy(), copy.copy(shop), copy.deepcopy(shop), pickle.loads(pickle.dumps(shop))):
        assert type(twin) is Shop
        assert twin.name == "corner"


class Advertiser(BaseEstimator):  # type: ignore[misc]
    """What users write around a bandit."""

    def __init__(self, bandit: Bandit | None = None) -> None:
        self.bandit = bandit


def test_sklearn_clones_what_contains_a_bandit() -> None:
    bandit = played(Algorithm1(p=20))
    twin = clone(Advertiser(bandit))
    assert twin.bandit is not bandit
    assert twin.bandit.to_bytes() == bandit.to_bytes()


def step(bandit: Bandit) -> tuple[str, bytes]:
    """In another process: what comes next, and the state after it."""
    decision = bandit.decide([1.0, 2.0, 3.0])
    bandit.learn(decision, -1.0)
    return repr(decision), bandit.to_bytes()


def test_other_processes_take_bandits_as_arguments_and_results() -> None:
    bandit = played(Algorithm1(p=20))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        answers = pool.map(step, [bandit, bandit])
    assert answers == [step(bandit.copy())] * 2
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(step)(one) for one in (bandit, bandit)) == answers


def test_bytes_that_are_no_model_are_refused() -> None:
    data = played(Algorithm1(p=20)).to_bytes()
    for damaged in (b"", data[:-1], data + b"x", data[:200] + b"!" + data[201:]):
        with pytest.raises(ModelFileError):
            armlet.from_bytes(damaged)
    with pytest.raises(TypeError):
        armlet.from_bytes("text")  # type: ignore[call-overload]


def test_pickle_of_a_policy_that_cannot_be_saved_says_so() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Odd(FixedEpsilon):
        helper: Any = None

    bandit = Bandit(["a", "b"], 1, policy=Odd(helper={1, 2}), seed=1)
    assert bandit.copy().policy == bandit.policy
    with pytest.raises((TypeError, ValueError), match="JSON"):
        pickle.dumps(bandit)
