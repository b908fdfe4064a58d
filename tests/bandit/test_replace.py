"""Other settings while a bandit runs: what was learned stays, and what does not fit is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Algorithm1, Bandit, ContextualEpsilonGreedy, LinUCB, Policy
from armlet.types import Policy as AnyPolicy
from support.in_python import InPython
from support.recorder import Notebook


def trained(policy: Policy, **settings: Any) -> Bandit:
    bandit = Bandit(["a", "b"], 2, policy=policy, seed=3, **settings)
    for x in np.random.default_rng(1).normal(size=(60, 2)):
        bandit.learn(bandit.decide(x), float(x[0]))
    return bandit


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Algorithm1(p=30), Algorithm1(p=5)),
        (InPython(p=30), InPython(p=5)),
        (ContextualEpsilonGreedy(p=30), ContextualEpsilonGreedy(p=5, floor=0.1)),
        (ContextualEpsilonGreedy(p=30), ContextualEpsilonGreedy(p=30, clock="steps")),
        (LinUCB(alpha=1.0), LinUCB(alpha=0.1)),
        (armlet.ThompsonSampling(v=1.0), armlet.ThompsonSampling(v=0.1)),
        (armlet.OptimisticEpsilonGreedy(), armlet.OptimisticEpsilonGreedy(width_scale=0.1)),
        (armlet.FixedEpsilon(epsilon=0.5), armlet.FixedEpsilon(epsilon=0.1, ridge=3.0)),
    ],
    ids=str,
)
def test_a_bandit_goes_on_as_one_that_had_the_settings_and_the_state(old: Policy, new: Policy) -> None:
    bandit = trained(old)
    pending, arrays = bandit.decide([1.0, 2.0]), bandit.state.arrays()
    bandit.replace(policy=new)
    assert bandit.policy == new
    assert all(np.array_equal(bandit.state.arrays()[name], arrays[name]) for name in arrays)
    state = new.init(2, 2)
    state.restore_arrays(arrays)
    expected = Bandit(["a", "b"], 2, policy=new, seed=3)
    expected._restore(state, expected.arms, bandit.t)
    bandit.learn(pending, 0.5)
    expected.learn(armlet.Decision.from_dict(pending.to_dict() | {"reward": None}), 0.5)
    for x in np.random.default_rng(2).normal(size=(40, 2)):
        one, other = bandit.decide(x), expected.decide(x)
        assert one.to_dict() == other.to_dict()
        bandit.learn(one, 1.0)
        expected.learn(other, 1.0)
    assert bandit.digest() == expected.digest() == armlet.from_bytes(bandit.to_bytes(), policy=new).digest()


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (Algorithm1(p=30), LinUCB(), "state is one of Algorithm1"),
        (LinUCB(), LinUCB(units="as given"), "units are 'free'"),
        (ContextualEpsilonGreedy(p=30), ContextualEpsilonGreedy(p="auto"), "another state"),
        (Algorithm1(p=30), Algorithm1(p=1), None),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(old: Policy, new: Policy, match: str | None) -> None:
    notebook = Notebook()
    bandit = trained(old, log=notebook)
    before, told = bandit.digest(), len(notebook.lines)
    if match is None:  # the clock is past the warm-up that would be too short
        bandit.replace(policy=new)
        return
    with pytest.raises(ValueError, match=match):
        bandit.replace(policy=new)
    with pytest.raises((TypeError, ValueError)):
        bandit.replace(policy="p=3")  # type: ignore[arg-type]  # refused
    assert (bandit.digest(), len(notebook.lines), bandit.policy) == (before, told, old)


def test_a_log_tells_of_it() -> None:
    notebook = Notebook()
    bandit = trained(Algorithm1(p=30), log=notebook)
    new: AnyPolicy = Algorithm1(p=7)
    bandit.replace(policy=new)
    said = notebook.events[-1]
    assert said["kind"] == "replace"
    assert armlet.policies.POLICIES[said["policy"]["name"]](**said["policy"]["settings"]) == new
    notebook.is_full = True
    with pytest.raises(OSError, match="full"):
        bandit.replace(policy=Algorithm1(p=8))
    assert bandit.policy == new
