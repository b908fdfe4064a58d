"""A bandit with a log: changes are recorded in the order of the engine, and none happens without its record."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import random
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Algorithm1, Bandit, ContextualEpsilonGreedy, Decision, Policy
from armlet.errors import BusyError, DecisionError
from armlet.kernel import Engine
from support.bandits import facts
from support.in_python import InPython
from support.recorder import Notebook, replay

POLICIES = pytest.mark.parametrize("policy", [Algorithm1(p=8), InPython(p=8)], ids=["compiled", "in Python"])


def logged(policy: Policy, **settings: Any) -> tuple[Bandit, Notebook]:
    notebook = Notebook()
    return Bandit(["a", "b", "c"], 2, policy=policy, seed=7, log=notebook, **settings), notebook


def live(bandit: Bandit, steps: int, seed: int) -> None:
    """Everything that a log knows, now and then, from one thread of several."""
    rng, known = random.Random(seed), []
    for step in range(steps):
        arms = [arm for arm in bandit.arms if arm not in bandit.arms.retired]
        some = rng.sample(arms, rng.randint(1, len(arms))) if rng.random() < 0.3 else None
        try:
            decision = bandit.decide([rng.gauss(0, 1), rng.gauss(0, 1)], eligible=some)
        except (KeyError, ValueError):  # another thread retired or removed them all
            continue
        known.append(decision)
        if rng.random() < 0.8:
            late = known.pop(rng.randrange(len(known)))
            try:
                bandit.learn(late, rng.gauss(0, 1), weight=rng.choice([1.0, 0.5]))
                if late.learned and rng.random() < 0.2:
                    bandit.correct(late, late.reward or 0.0, 2.0)
                elif rng.random() < 0.1:
                    bandit.forget(late, late.reward or 0.0)
            except (KeyError, DecisionError):  # its arm is gone
                continue
        if step % 17 == 0:
            change_arms(bandit, f"{seed} {step}", rng)
        if step % 29 == 0:
            batch = bandit.decide_many([[rng.gauss(0, 1), 1.0]] * 3)
            try:
                bandit.learn_many(batch, [0.1, 0.2, 0.3])
            except KeyError:
                continue


def change_arms(bandit: Bandit, name: str, rng: random.Random) -> None:
    bandit.add_arm(name)
    others = [arm for arm in bandit.arms if arm not in ("a", "b", "c")]
    change: Callable[[Any], None] = rng.choice([bandit.retire_arm, bandit.restore_arm, bandit.remove_arm])
    try:
        change(rng.choice(others))
    except (KeyError, ValueError):
        return


@POLICIES
def test_a_log_of_eight_threads_tells_what_the_engine_did_in_its_order(policy: Policy) -> None:
    bandit, notebook = logged(policy)
    threads = [threading.Thread(target=live, args=(bandit, 120, seed)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {event["kind"] for event in notebook.events} == {
        *("decide", "learn", "correct", "forget", "add_arm", "retire_arm", "restore_arm", "remove_arm")
    }
    assert [e["t"] for e in notebook.events if e["kind"] == "decide"] == list(range(1, bandit.t + 1))
    assert replay(notebook, policy).digest() == bandit.digest() == notebook.digest()


def test_a_log_holds_no_seed_but_its_start_does() -> None:
    seed = 123456789012345678901234567890
    notebook = Notebook()
    bandit = Bandit(["a", "b"], 1, policy=Algorithm1(p=4), seed=seed, log=notebook)
    other = Bandit(["a", "b"], 1, policy=Algorithm1(p=4), seed=seed + 1)
    bandit.merge(other)
    assert armlet.from_bytes(notebook.start).seed == seed
    assert not any(str(each) in text for each in (seed, seed + 1) for text in [*notebook.lines, str(notebook.about)])
    pending = other.decide([1.0])
    with pytest.raises(DecisionError, match="made by another bandit"):
        bandit.learn(pending, 1.0)


def test_the_start_says_what_the_bandit_is() -> None:
    bandit, notebook = logged(Algorithm1(p=8), reward_range=(0, 1))
    assert notebook.about == {
        "version": armlet.__version__,
        "policy": {
            "name": "Algorithm1",
            "settings": {"p": 8.0, "ridge": "paper", "warmup": "round-robin", "units": "as given", "origin": None},
        },
        "arms": ["a", "b", "c"],
        "retired": [],
        "dim": 2,
        "features": None,
        "objective": "max",
        "normalize": None,
        "reward_range": [0.0, 1.0],
        "t": 0,
        "units": "as given",
        "digest": bandit.digest(),
    }


def test_a_decision_that_the_log_was_not_told_of_brings_its_record() -> None:
    bandit, notebook = logged(Algorithm1(p=8))
    made = [bandit.decide([1.0, float(i)]) for i in range(3)]
    bandit.learn(Decision.from_dict(made[0].to_dict()), 1.0)
    bandit.learn(made[1], 1.0)
    assert ["decision" in event for event in notebook.events[3:]] == [True, False]
    later = Notebook()
    resumed = armlet.from_bytes(bandit.to_bytes(), log=later)
    resumed.learn(made[2], 0.5)
    resumed.correct(made[2], 0.5, 0.75)
    resumed.forget(made[1], 1.0)
    assert all("decision" in event for event in later.events)
    assert replay(later).digest() == resumed.digest()


# ---- a refused call changes nothing and is not recorded


def calls(bandit: Bandit, pending: Decision, done: Decision) -> dict[str, Callable[[], object]]:
    return {
        "learn": lambda: bandit.learn(pending, 1.0),
        "learn_many": lambda: bandit.learn_many([pending], [1.0]),
        "correct": lambda: bandit.correct(done, 0.5, 1.0),
        "forget": lambda: bandit.forget(done, 0.5),
        "add_arm": lambda: bandit.add_arm("new"),
        "retire_arm": lambda: bandit.retire_arm("a"),
        "restore_arm": lambda: bandit.restore_arm("c"),
        "remove_arm": lambda: bandit.remove_arm("b"),
        "replace t": lambda: bandit.replace(t=100),
        "partial_fit": lambda: bandit.partial_fit([[1.0, 2.0]], ["a"], [1.0], explored=True),
        "merge": lambda: bandit.merge(bandit.copy(seed=5)),
    }


@POLICIES
@pytest.mark.parametrize("name", list(calls(None, None, None)))  # type: ignore[arg-type]  # for the names alone
def test_what_a_full_log_refuses_does_not_happen(policy: Policy, name: str) -> None:
    bandit, notebook = logged(policy)
    bandit.retire_arm("c")
    pending, done = bandit.decide([1.0, 2.0]), bandit.decide([0.0, 1.0])
    bandit.learn(done, 0.5)
    before, lines = (bandit.digest(), facts(pending), facts(done)), len(notebook.lines)
    notebook.is_full = True
    with pytest.raises(OSError, match="notebook is full"):
        calls(bandit, pending, done)[name]()
    assert (bandit.digest(), facts(pending), facts(done)) == before
    notebook.is_full = False
    calls(bandit, pending, done)[name]()
    assert bandit.digest() != before[0]
    assert len(notebook.lines) == lines + 1
    assert replay(notebook, policy).digest() == bandit.digest()


@POLICIES
def test_a_decision_that_was_not_told_leaves_its_step_unused(policy: Policy) -> None:
    bandit, notebook = logged(policy)
    bandit.learn(bandit.decide([1.0, 2.0]), 1.0)
    notebook.is_full = True
    for call in (lambda: bandit.decide([1.0, 2.0]), lambda: bandit.decide_many([[1.0, 2.0]] * 2)):
        with pytest.raises(OSError, match="notebook is full"):
            call()
    notebook.is_full = False
    bandit.learn(bandit.decide([0.0, 1.0]), 1.0)
    assert [event["t"] for event in notebook.events if event["kind"] == "decide"] == [1, 5]
    assert replay(notebook, policy).digest() == bandit.digest()


class Picky(InPython):
    """Refuses rewards above 1 when it learns them."""

    def update(self, state: Any, interaction: Any) -> None:
        if interaction.reward > 1:
            raise ValueError("too good to be true")
        super().update(state, interaction)


@pytest.mark.parametrize("policy", [Algorithm1(p=8), Picky(p=8)], ids=["compiled", "in Python"])
def test_what_the_bandit_refuses_is_not_told(policy: Policy) -> None:
    bandit, notebook = logged(policy, reward_range=(0, 1) if isinstance(policy, Algorithm1) else None)
    decision, stranger = bandit.decide([1.0, 2.0]), Bandit(["a"], 2, policy=policy, seed=1).decide([1.0, 2.0])
    before, lines = (bandit.digest(), facts(decision)), list(notebook.lines)
    refused: list[Callable[[], object]] = [
        lambda: bandit.learn(decision, 2.0),
        lambda: bandit.learn(decision, float("nan")),
        lambda: bandit.learn(decision, 0.5, weight=-1.0),
        lambda: bandit.learn(stranger, 0.5),
        lambda: bandit.learn_many([decision, stranger], [0.5, 0.5]),
        lambda: bandit.learn_many([decision], [2.0]),
        lambda: bandit.correct(decision, 0.5, 0.6),
        lambda: bandit.forget(decision, 0.5),
        lambda: bandit.add_arm("a"),
        lambda: bandit.retire_arm("d"),
        lambda: bandit.remove_arm("d"),
        lambda: bandit.remove_arm(None),  # type: ignore[arg-type]  # refused
        lambda: bandit.replace(t=0),
        lambda: bandit.decide([1.0, 2.0], t=1),
        lambda: bandit.decide([1.0]),
        lambda: bandit.partial_fit([[1.0, 2.0]] * 2, ["a", "a"], [0.5, 2.0], explored=True),
        lambda: bandit.merge(Bandit(["a"], 3, policy=policy)),
        lambda: bandit.replace(seed=9),
        lambda: bandit.fit([[1.0, 2.0]], ["a"], [0.5], explored=True),
    ]
    for call in refused:
        with pytest.raises((ValueError, KeyError, armlet.ArmletError)):
            call()
    assert (bandit.digest(), facts(decision)) == before
    assert notebook.lines == lines


# ---- what a bandit with a log still is


def test_copies_sums_and_pickles_are_without_the_log() -> None:
    bandit, notebook = logged(ContextualEpsilonGreedy(p=8))
    bandit.learn(bandit.decide([1.0, 2.0]), 1.0)
    lines, base = list(notebook.lines), bandit.copy()
    others = [
        *(bandit.copy(seed=3), copy.copy(bandit), copy.deepcopy(bandit), pickle.loads(pickle.dumps(bandit))),
        *(bandit + base, bandit.difference(base), armlet.from_bytes(bandit.to_bytes())),
    ]
    for other in others:
        assert type(other) is Bandit
        other.decide([1.0, 2.0])
    assert notebook.lines == lines


def test_a_bandit_with_a_log_looks_like_one_without() -> None:
    bandit, _ = logged(Algorithm1(p=8))
    assert type(bandit) is Bandit
    assert vars(bandit).keys() == vars(bandit.copy()).keys()
    assert repr(bandit) == repr(bandit.copy())
    assert bandit.predict(np.ones((1, 2))).tolist() == bandit.copy().predict(np.ones((1, 2))).tolist()


def test_decide_and_learn_are_the_engines_own() -> None:
    for name in ("decide", "learn", "correct", "forget", "expire"):
        assert getattr(Bandit, name) is getattr(Engine, name)


def test_a_subclass_keeps_what_is_its_own() -> None:
    class Named(Bandit):
        def __init__(self, name: str, **settings: Any) -> None:
            super().__init__(["a", "b"], 1, policy=Algorithm1(p=4), seed=1, **settings)
            self.name = name

    notebook = Notebook()
    bandit = Named("shop", log=notebook)
    bandit.learn(bandit.decide([1.0]), 0.5)
    assert (bandit.name, type(bandit.copy()), bandit.copy().name) == ("shop", Named, "shop")
    assert replay(notebook).digest() == bandit.digest()


def test_a_subclass_may_override_what_is_recorded() -> None:
    class Loud(Bandit):
        def decide(self, x: Any, **settings: Any) -> Decision:
            decision = super().decide([2 * value for value in x], **settings)
            super().learn(decision, 0.25)
            return decision

        def learn(self, decision: Decision, reward: Any, *, weight: float = 1.0) -> None:
            self.correct(decision, 0.25, reward * weight)

    notebook = Notebook()
    bandit = Loud(["a", "b"], 1, policy=Algorithm1(p=4), seed=1, log=notebook)
    bandit.learn(bandit.decide([1.0]), 0.5)
    assert type(bandit) is Loud
    assert [event["kind"] for event in notebook.events] == ["decide", "learn", "correct"]
    assert notebook.events[0]["x"] == [2.0]
    assert replay(notebook).digest() == bandit.digest()


class Interrupted(Notebook):
    """Somebody presses Ctrl-C while it writes."""

    def on_events(self, kind: str, many: Any) -> None:
        if self.is_full:
            raise KeyboardInterrupt
        super().on_events(kind, many)


def test_a_decision_whose_record_was_interrupted_is_not_waited_for() -> None:
    notebook = Interrupted()
    bandit = Bandit(["a", "b"], 1, seed=7, log=notebook)
    notebook.is_full = True
    for call in (lambda: bandit.decide([1.0]), lambda: bandit.decide_many([[1.0]] * 3)):
        with pytest.raises(KeyboardInterrupt):
            call()
    assert bandit.state.under_way.tolist() == [0, 0]
    notebook.is_full = False
    with pytest.warns(RuntimeWarning, match="a change was interrupted while it was recorded"):
        assert bandit.decide([1.0]).t == 2
    assert [event["kind"] for event in notebook.events] == ["resync", "decide"]


def test_a_recorder_may_look_at_the_bandit_and_sees_it_before_the_change() -> None:
    class Curious(Notebook):
        def on_events(self, kind: str, many: Any) -> None:
            super().on_events(kind, many)
            seen.append(self.digest())

    seen: list[str] = []
    bandit = Bandit(["a", "b"], 1, policy=InPython(p=8), seed=7, log=Curious())
    decision = bandit.decide([1.0])
    before = bandit.digest()
    bandit.learn(decision, 0.5)
    assert seen == [before, before]
    assert bandit.digest() != before


def test_a_bandit_and_its_log_that_know_each_other_are_collected() -> None:
    bandit, notebook = logged(Algorithm1(p=8))
    bandit.decide([1.0, 2.0])
    gone = weakref.ref(notebook)
    del bandit, notebook
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("rewards", [99, 100])
def test_the_watch_of_rewards_that_are_all_the_same_counts_each_once(rewards: int) -> None:
    bandit, notebook = logged(Algorithm1(p=8))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(rewards):
            bandit.learn(bandit.decide([1.0, 2.0]), 1.0)
    assert len(caught) == rewards // 100
    assert all("rewards are all the same" in str(warning.message) for warning in caught)
    assert len(notebook.lines) == 2 * rewards


def test_a_warning_that_is_an_error_refuses_the_reward_before_it_is_told() -> None:
    bandit, notebook = logged(Algorithm1(p=8))
    for _ in range(99):
        bandit.learn(bandit.decide([1.0, 2.0]), 1.0)
    decision = bandit.decide([1.0, 2.0])
    lines = len(notebook.lines)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="rewards are all the same"):
            bandit.learn(decision, 1.0)
    assert len(notebook.lines) == lines
    bandit.learn(decision, 1.0)
    assert replay(notebook).digest() == bandit.digest()


def test_a_log_that_is_none_or_refuses_is_refused() -> None:
    with pytest.raises(TypeError, match="has no open"):
        Bandit(["a"], 1, policy=Algorithm1(p=1), log="log.jsonl")  # type: ignore[arg-type]  # refused
    full = Notebook()
    full.is_full = True
    with pytest.raises(OSError, match="notebook is full"):
        Bandit(["a"], 1, policy=Algorithm1(p=1), log=full)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_the_child_of_a_fork_leaves_the_log_alone() -> None:
    bandit, notebook = logged(Algorithm1(p=8))
    child = os.fork()
    if child == 0:
        try:
            bandit.decide([1.0, 2.0])
        except BusyError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    bandit.decide([1.0, 2.0])
    assert len(notebook.lines) == 1
