"""Turns: threads that change arms, policies that re-enter, signals in the middle of a batch, and forks."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, Policy
from armlet.errors import BusyError, UnknownNameError
from armlet.kernel import coins
from armlet.policies.fixed_epsilon import FixedEpsilon
from armlet.types import Bool, Choice, Coins, Float64, Interaction
from support.in_python import InPython

COMPILED: dict[str, Policy] = {
    "Algorithm1": armlet.Algorithm1(p=20),
    "auto": armlet.AutoEpsilonGreedy(horizon=10**6),
    "LinUCB": armlet.LinUCB(),
    "OFUL": armlet.OFUL(),
    "ThompsonSampling": armlet.ThompsonSampling(),
}


def run_alone(program: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since a fault would take this one down."""
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", program], capture_output=True, text=True, check=False, timeout=120
    )


# ---- arms that come and go under other threads' hands


IN_PYTHON = 'type("InPython", (armlet.Algorithm1,), {"rule": lambda self: None})(p=40)'
CHANGERS = """
import sys, threading, time
import numpy as np, armlet
sys.setswitchinterval(1e-6)
bandit = armlet.Bandit(range(4), 2, policy={policy}, seed=1)
end, X = time.monotonic() + 2, np.ones((7, 2))
errors = []
def guarded(work):
    def run():
        try:
            while time.monotonic() < end:
                work()
        except Exception as error:
            errors.append(repr(error))
    return run
def read():
    chances = bandit.predict_proba(X)
    assert abs(chances.sum(axis=1) - 1).max() < 1e-9
    bandit.predict(X) if {has_estimates} else None
def change(mine):
    bandit.add_arm(mine)
    bandit.retire_arm(mine)
    bandit.restore_arm(mine)
    bandit.remove_arm(mine)
work = [read] * 3 + [lambda: change("one"), lambda: change("two")]
threads = [threading.Thread(target=guarded(w)) for w in work]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(errors, bandit.arms)
"""


@pytest.mark.parametrize(
    ("policy", "has_estimates"),
    [("armlet.Uniform()", False), ("armlet.LinUCB()", True), (IN_PYTHON, True), ("armlet.Algorithm1(p=40)", True)],
)
def test_reads_survive_arms_that_come_and_go(policy: str, has_estimates: bool) -> None:
    done = run_alone(CHANGERS.format(policy=policy, has_estimates=has_estimates))
    assert (done.returncode, done.stdout) == (0, "[] [0, 1, 2, 3]\n"), done.stderr


@pytest.mark.parametrize("policy", [armlet.LinUCB(), InPython(p=40)], ids=["compiled", "python"])
def test_labels_mean_the_same_arm_whatever_other_threads_remove(policy: Policy) -> None:
    """An index that was looked up before a removal would hit its neighbour after it."""
    bandit = Bandit(["first", "left", "right"], 1, policy=policy, seed=1)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    stop, wrong = threading.Event(), []

    def shift_indices() -> None:
        while not stop.is_set():
            bandit.remove_arm("first")
            bandit.add_arm("first")
            bandit.remove_arm("left")
            bandit.add_arm("left")

    def play() -> None:
        for _ in range(1500):
            decision = bandit.decide([1.0], eligible=["right"])
            batch = bandit.decide_many([[1.0]], eligible=iter(["right"]))
            if decision.arm != "right" or batch.arms != ["right"]:
                wrong.append((decision, batch.arms))
            bandit.partial_fit([[1.0]], ["right"], [1.0], explored=True)

    changer = threading.Thread(target=shift_indices)
    changer.start()
    play()
    stop.set()
    changer.join()
    sys.setswitchinterval(before)
    assert wrong == []
    rows = dict(zip(bandit.arms, bandit.state.n.tolist(), strict=True))
    assert rows == {"first": 0.0, "left": 0.0, "right": 1500.0}


# ---- a policy that re-enters its bandit


@dataclass(frozen=True, slots=True, kw_only=True)
class Meddler(FixedEpsilon):
    """Does something to its bandit while it is being asked."""

    def probabilities(self, state: Any, t: int, x: Float64, eligible: Bool) -> Float64:
        MEDDLING["probabilities"]()
        return FixedEpsilon.probabilities(self, state, t, x, eligible)

    def decide(self, state: Any, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:
        MEDDLING["decide"]()
        return FixedEpsilon.decide(self, state, t, x, coins, eligible)

    def update(self, state: Any, interaction: Interaction) -> None:
        MEDDLING["update"]()
        FixedEpsilon.update(self, state, interaction)


MEDDLING: dict[str, Callable[[], object]] = {}
CHANGES: dict[str, Callable[[Bandit], object]] = {
    "remove_arm": lambda bandit: bandit.remove_arm("b"),
    "add_arm": lambda bandit: bandit.add_arm("c"),
    "retire_arm": lambda bandit: bandit.retire_arm("b"),
    "decide": lambda bandit: bandit.decide([1.0]),
    "partial_fit": lambda bandit: bandit.partial_fit([[1.0]], ["a"], [1.0]),
    "merge": lambda bandit: bandit.merge(bandit),
}
CALLS: dict[str, Callable[[Bandit], object]] = {
    "probabilities": lambda bandit: bandit.predict_proba([[1.0]]),
    "decide": lambda bandit: bandit.decide([1.0]),
    "update": lambda bandit: bandit.partial_fit([[1.0]], ["a"], [1.0]),
}


@pytest.mark.parametrize("inside", CALLS)
@pytest.mark.parametrize("change", CHANGES)
def test_policy_that_changes_its_own_bandit_is_refused(inside: str, change: str) -> None:
    bandit = Bandit(["a", "b"], 1, policy=Meddler(), seed=1)
    for name in CALLS:
        MEDDLING[name] = lambda: None
    bandit.learn(bandit.decide([1.0]), 1.0)
    before = bandit.to_bytes()
    MEDDLING[inside] = lambda: CHANGES[change](bandit)
    with pytest.raises(BusyError, match="may look at the bandit but not change it"):
        CALLS[inside](bandit)
    MEDDLING[inside] = lambda: bandit.predict_expectations([[1.0]])  # a look is fine
    assert bandit.to_bytes() == before
    CALLS[inside](bandit)


# ---- signals

MARK: int = coins(1, 1).mark


def learn_many(bandit: Bandit, X: Float64) -> Callable[[], object]:
    """Prepare a batch of decisions to learn: restoring them takes longer than learning them."""
    decisions = [armlet.Decision.restore(f"1-{MARK:016x}", 0, 1.0, True, x) for x in X]
    return lambda: bandit.learn_many(decisions, np.ones(len(X)))


BATCHES: dict[str, Callable[[Bandit, Float64], Callable[[], object]]] = {
    "decide_many": lambda bandit, X: lambda: bandit.decide_many(X),
    "predict_proba": lambda bandit, X: lambda: bandit.predict_proba(X),
    "partial_fit": lambda bandit, X: lambda: bandit.partial_fit(X, [0] * len(X), np.ones(len(X)), explored=True),
    "learn_many": learn_many,
}


@pytest.mark.parametrize("work", BATCHES)
@pytest.mark.parametrize("name", COMPILED)
def test_signal_ends_a_batch_in_its_middle(name: str, work: str) -> None:
    """A timer ticks; a batch that is over before the kernel looks for signals is followed by one of twice the rows."""
    bandit = Bandit(range(20), 40, policy=COMPILED[name], seed=1)
    rng = np.random.default_rng(1)
    bandit.partial_fit(rng.normal(size=(500, 40)), rng.integers(0, 20, 500), rng.normal(size=500), explored=True)
    fired: list[str] = []

    def handler(_number: int, _frame: object) -> None:
        if fired:
            return  # the timer ticked again before it was stopped: one signal ends the batch
        try:
            bandit.restore_arm(0)  # it is not retired, so this changes nothing
        except BusyError as error:  # so it came in the middle of the batch, and nowhere else
            fired.append(str(error))
            raise KeyboardInterrupt from None

    old = signal.signal(signal.SIGALRM, handler)
    X = rng.normal(size=(20_000, 40))
    gc.disable()  # what a handler raises in a callback of a collection is lost
    try:
        for _ in range(7):  # 2.5 million rows, 4e9 products, are many slices of 10 ms on any machine
            X = np.concatenate([X, X])
            batch = BATCHES[work](bandit, X)
            before, t = bandit.state.arrays(), bandit.t
            signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
            batch()
            signal.setitimer(signal.ITIMER_REAL, 0)
        pytest.fail("no batch was ended")
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
        gc.enable()
    assert len(fired) == 1
    assert "a batch in this thread" in fired[0]
    after = bandit.state.arrays()
    assert all(np.array_equal(before[key], after[key]) for key in before), "what was learned was not taken back"
    assert bandit.t - t == (len(X) if work == "decide_many" else 0)
    bandit.learn(bandit.decide(X[0]), 1.0)


def test_other_threads_run_during_a_long_batch() -> None:
    """Another thread makes one arm the best and the worst in turn; if a batch sees only one, the next is longer."""
    bandit = Bandit(range(50), 60, policy=armlet.LinUCB(units="as given"), seed=1)
    rng = np.random.default_rng(1)
    bandit.partial_fit(rng.normal(size=(500, 60)), rng.integers(0, 50, 500), rng.normal(size=500), explored=True)
    X, best, worst = np.ones((3000, 60)), 1e4, -1e4
    turning = bandit.decide(X[0], eligible=[0])
    bandit.learn(turning, best)
    assert set(bandit.decide_many(X).arms) == {0}
    bandit.correct(turning, best, worst)
    assert 0 not in bandit.decide_many(X).arms
    decided, steps, seen, stop = bandit.t, 0, set[bool](), threading.Event()

    def turn() -> None:
        nonlocal steps
        while not stop.is_set():
            bandit.learn(bandit.decide(X[0], eligible=[1]), 0.0)  # on the very same bandit
            bandit.correct(turning, worst, best)
            bandit.learn(bandit.decide(X[0], eligible=[1]), 0.0)
            bandit.correct(turning, best, worst)
            steps += 2

    thread = threading.Thread(target=turn, daemon=True)
    thread.start()
    for _ in range(8):  # 800,000 rows, 1e11 products, are many slices of 10 ms on any machine
        batch = bandit.decide_many(X)
        decided += len(X)
        seen = set((batch.indices == 0).tolist())
        if len(seen) == 2:
            break
        X = np.concatenate([X, X])
    stop.set()
    thread.join()
    assert seen == {False, True}, "no other thread ran in the middle of a batch"
    assert bandit.t == decided + steps


def test_arm_changes_wait_for_the_end_of_a_batch() -> None:
    bandit = Bandit(range(30), 60, policy=armlet.LinUCB(), seed=1)
    X = np.random.default_rng(1).normal(size=(20_000, 60))
    result: list[armlet.Decisions] = []
    thread = threading.Thread(target=lambda: result.append(bandit.decide_many(X)))
    thread.start()
    while bandit.t == 0 and thread.is_alive():
        pass
    bandit.remove_arm(0)
    assert bandit.arms == list(range(1, 30))
    thread.join()
    assert len(result[0]) == len(X)
    assert result[0].indices.max() < 30


# ---- forks

FORK = """
import os, sys, threading, time
import armlet
bandit = armlet.Bandit(range(3), 2, policy={policy}, seed=1)
stop = threading.Event()
def busy():
    while not stop.is_set():
        bandit.learn(bandit.decide([1.0, 2.0]), 1.0)
threads = [threading.Thread(target=busy) for _ in range(4)]
for thread in threads: thread.start()
hung = 0
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        decision = bandit.decide([1.0, 2.0])
        bandit.learn(decision, 1.0)
        bandit.add_arm("new")
        os._exit(0 if len(bandit.arms) == 4 and bandit.state.n_arms == 4 else 3)
    end = time.monotonic() + 20
    while (state := os.waitpid(pid, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.001)
    if state[0] == 0:
        hung += 1
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    elif state[1] != 0:
        print("child ended with", state[1])
stop.set()
for thread in threads: thread.join()
print("hung", hung)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.parametrize("policy", [IN_PYTHON, "armlet.LinUCB()"])
def test_child_of_a_fork_gets_a_whole_bandit(policy: str) -> None:
    done = run_alone(FORK.format(policy=policy))
    assert (done.returncode, done.stdout) == (0, "hung 0\n"), done.stderr


# ---- finalisers


class Remover:
    """Garbage whose finaliser removes an arm, whenever it is collected."""

    def __init__(self, bandit: Bandit, label: str) -> None:
        self.bandit, self.label, self.itself = bandit, label, self

    def __del__(self) -> None:
        self.bandit.remove_arm(self.label)


@pytest.mark.parametrize("threshold", range(1, 16))
def test_a_finaliser_changes_no_decision_half_made(threshold: int) -> None:
    """Wherever a collection comes: the arm is gone before the decision, which is then refused, or after it."""
    labels = [f"arm {i}" for i in range(30)]  # more than Python keeps tuples for
    bandit = Bandit([f"arm {i}" for i in range(30)], 2, policy=armlet.ContextualEpsilonGreedy(p=8), seed=1)
    before = gc.get_threshold()
    gc.collect()
    gc.disable()
    Remover(bandit, labels[-1])
    gc.set_threshold(threshold, 1, 1)
    try:
        gc.enable()
        decision = bandit.decide([1.0, 0.5], eligible=labels)
        gc.disable()
        assert list(bandit.arms) == labels  # since nothing was collected meanwhile
        assert decision.eligible == tuple(labels)
    except UnknownNameError:
        assert list(bandit.arms) == labels[:-1]
    finally:
        gc.set_threshold(*before)
        gc.enable()
