"""Many threads at one bandit: any number may decide and read while others learn, and nothing is lost or torn."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import armlet
from armlet import (
    Algorithm1,
    AllDataEpsilonGreedy,
    Bandit,
    Decision,
    Decisions,
    Policy,
)
from armlet.errors import DecisionError
from armlet.kernel import Statistics, coins
from armlet.policies import ScheduledEpsilonGreedy
from armlet.types import Interaction
from support.bandits import facts, sizes_of_sums, snapshot
from support.in_python import AllDataInPython, InPython
from support.streams import make_stream

DIM, ARMS = 3, 5


@pytest.fixture(autouse=True)
def _provoked() -> Iterator[None]:
    """Let the interpreter change threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run(*work: Callable[[], object]) -> None:
    """Start all at the same moment, wait for all, and raise what any of them raised."""
    errors: list[BaseException] = []
    gate = threading.Barrier(len(work))

    def guarded(task: Callable[[], object]) -> None:
        try:
            gate.wait()
            task()
        except BaseException as error:  # to be raised in the test's own thread
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


LOADS: list[tuple[Policy, int]] = [
    (Algorithm1(p=5000), 15_000),
    (ScheduledEpsilonGreedy(p=50), 15_000),
    (InPython(p=5000), 1500),
    (AllDataInPython(p=50), 1500),
]


@pytest.mark.parametrize(("policy", "steps"), LOADS, ids=[type(policy).__name__ for policy, _ in LOADS])
def test_nothing_is_lost_when_threads_decide_learn_and_read_at_once(policy: Policy, steps: int, tmp_path: Path) -> None:
    bandit = Bandit(range(ARMS), DIM, policy=policy, seed=1)
    X = np.random.default_rng(0).normal(size=(64, DIM))
    handed_on: queue.SimpleQueue[Decision | None] = queue.SimpleQueue()
    ended = threading.Event()
    played: list[Decision] = []  # append is atomic
    logged, deciders = 200, 3

    def decide_and_learn() -> None:
        for i in range(steps):
            decision = bandit.decide(X[i % 64])
            played.append(decision)
            if i % 3 == 0:
                handed_on.put(decision)  # its reward comes late, through another thread
            elif i % 3 == 1:
                bandit.learn(decision, float(i % 7), weight=1 + i % 2)
        handed_on.put(None)

    def learn_late() -> None:
        left = deciders
        while left:
            decision = handed_on.get()
            left -= decision is None
            if decision is not None:
                bandit.learn(decision, -1.5)
                if decision.t % 5 == 0:
                    bandit.correct(decision, -1.5, 2.5)
                if decision.t % 7 == 0:
                    bandit.forget(decision, 2.5 if decision.t % 5 == 0 else -1.5)
        ended.set()

    def decide_many() -> None:
        for _ in range(steps // 50):
            together = bandit.decide_many(X)
            played.extend(together[row] for row in range(64))
            bandit.learn_many(together, np.ones(64))

    def learn_logs() -> None:
        for i in range(logged):
            bandit.partial_fit(X[i % 64 : i % 64 + 1], [i % ARMS], [0.5], explored=True, steps=0)

    def read() -> None:
        while not ended.is_set():
            assert bandit.predict(X).shape == (64,)
            assert np.isfinite(bandit.predict_expectations(X)).all()
            np.testing.assert_allclose(bandit.predict_proba(X).sum(axis=1), 1.0, rtol=0, atol=1e-12)
            assert bandit.state.records().shape == (ARMS, 12)
            repr(bandit)

    def save() -> None:
        clock, file = 0, tmp_path / "model.armlet"
        while not ended.is_set():
            bandit.save(file)
            again = armlet.load(file, policy=policy)
            assert again.t >= clock
            clock = again.t

    run(*[decide_and_learn] * deciders, learn_late, decide_many, learn_logs, read, save)

    assert bandit.t == len(played) == deciders * steps + steps // 50 * 64
    assert sorted(decision.t for decision in played) == list(range(1, bandit.t + 1))
    assert len({decision.id for decision in played}) == bandit.t
    rows = [
        (d.x, int(d.arm), d.reward, d.weight)
        for d in played
        if d.reward is not None and (d.explored or policy.learns_from == "every step")
    ]
    rows += [(X[i % 64], i % ARMS, 0.5, 1.0) for i in range(logged)]
    expected = policy.init(ARMS, DIM)
    assert isinstance(expected, armlet.Statistics)
    for x, arm, reward, weight in rows:
        expected.add(arm, x, reward, weight)
    # some 100 000 roundings, each within 2^-53 of the sum of sizes; what was taken back adds as many
    difference = np.abs(bandit.state.records() - expected.records())
    assert (difference <= 1e-9 * sizes_of_sums(policy, ARMS, DIM, rows)).all()


@pytest.mark.parametrize(("policy", "steps"), [(Algorithm1(p=40), 10_000), (InPython(p=40), 1000)])
def test_decision_of_a_step_is_the_same_whichever_thread_takes_it(policy: Policy, steps: int) -> None:
    """A function of the seed and t, where nothing is learned; one context, so that it is the same at every step."""
    alone, shared = (Bandit(range(ARMS), DIM, policy=policy, seed=9) for _ in range(2))
    log = make_stream(50, DIM, ARMS, seed=2)
    for bandit in (alone, shared):
        bandit.partial_fit(log.contexts, [row % ARMS for row in range(50)], log.rewards[:, 0], explored=True)
    x, taken = [1.0, -0.5, 0.25], list[Decision]()

    def one_by_one() -> None:
        for _ in range(steps):
            taken.append(shared.decide(x))

    def many() -> None:
        for _ in range(steps // 20):
            together = shared.decide_many([x] * 20)
            taken.extend(together[row] for row in range(20))

    run(one_by_one, one_by_one, many, many)
    taken.sort(key=lambda decision: decision.t)
    assert [facts(decision) for decision in taken] == [facts(alone.decide(x)) for _ in range(len(taken))]


def test_batch_decides_by_one_state_while_others_learn() -> None:
    """The estimates change sides all the time; within a batch of equal contexts they do not."""
    bandit = Bandit(["left", "right"], 1, policy=Algorithm1(p=2), seed=3)
    bandit.decide_many(np.ones((1_000_000, 1)))  # so that exploration has become rare
    bandit.partial_fit([[1.0]], ["left"], [1.0], explored=True)  # so that nothing ties
    batches: list[Decisions] = []
    ended, sides = threading.Event(), set[int]()

    def learn() -> None:
        reward = 1.0
        while not ended.is_set():
            reward *= -1.5 if abs(reward) < 1e30 else -1.5e-29
            bandit.partial_fit([[1.0]], ["left"], [reward], explored=True)
            bandit.state.estimates()  # solved at once, under the eyes of anyone who is deciding

    def decide() -> None:
        while len(batches) < 60 or (len(sides) < 2 and len(batches) < 20_000):  # a busy machine may let one wait
            batches.append(bandit.decide_many(np.ones((5000, 1))))
            sides.add(int(batches[-1].indices[~batches[-1].explored][0]))
        ended.set()

    run(learn, decide)
    for together in batches:
        exploited = together.indices[~together.explored]
        assert len(set(exploited.tolist())) == 1
    assert sides == {0, 1}, "the estimates never changed sides, so this shows nothing"


def test_logs_learned_by_several_threads_add_up() -> None:
    bandit = Bandit(range(ARMS), DIM, policy=Algorithm1(p=5), seed=3)
    stream = make_stream(10_000, DIM, ARMS, seed=1)  # more than one chunk each
    arms = [row % ARMS for row in range(10_000)]
    work = [lambda: bandit.partial_fit(stream.contexts, arms, stream.rewards[:, 0], explored=True)] * 4
    run(*work)
    assert bandit.state.n.tolist() == [8000.0] * ARMS
    for arm in range(ARMS):
        X = stream.contexts[arm::ARMS]
        np.testing.assert_allclose(bandit.state.A[arm], 4 * X.T @ X, rtol=1e-9, atol=1e-9)


# ---- once and only once, whatever comes between


@pytest.mark.parametrize("policy", [Algorithm1(p=1e6), InPython(p=1e6)], ids=["compiled", "python"])
@pytest.mark.parametrize("reward", [1.0, 1])
def test_one_of_many_threads_learns_a_decision(policy: Policy, reward: float) -> None:
    bandit = Bandit(range(2), 2, policy=policy, seed=1)
    decisions = [bandit.decide([1.0, 2.0]) for _ in range(300)]
    gate, won, refused = threading.Barrier(4), list[str](), list[str]()

    def learn() -> None:
        for decision in decisions:
            gate.wait()
            try:
                bandit.learn(decision, reward)
                won.append(decision.id)
            except DecisionError:
                refused.append(decision.id)

    run(*[learn] * 4)
    assert (len(won), len(set(won)), len(refused)) == (300, 300, 900)
    assert bandit.state.n.sum() == 300


class Interrupted(InPython):
    """Lets others in while it learns: half an update, a pause, the other half."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "pause", lambda: None)

    def update(self, state: Statistics, interaction: Interaction) -> None:
        i = interaction
        if i.replaces is not None:
            self.pause()  # type: ignore[attr-defined]
            return super().update(state, i)
        state.add(i.arm, i.x, i.reward, i.weight / 2)
        self.pause()  # type: ignore[attr-defined]
        state.add(i.arm, i.x, i.reward, i.weight / 2)
        return None


def interrupting(policy: Policy, *work: Callable[[], object], patience: float = 0.2) -> list[threading.Thread]:
    """Run work in other threads during the next update; anyone who waits for its end is left waiting for now."""
    threads = [threading.Thread(target=task) for task in work]

    def pause() -> None:
        object.__setattr__(policy, "pause", lambda: None)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(patience)

    object.__setattr__(policy, "pause", pause)
    return threads


def attempt(results: list[str], call: Callable[[], object]) -> Callable[[], None]:
    def tried() -> None:
        try:
            call()
            results.append("done")
        except DecisionError:
            results.append("refused")
        except ValueError:
            results.append("refused")

    return tried


@pytest.mark.parametrize("verb", ["learn", "correct", "forget"])
def test_second_thread_is_refused_although_the_first_is_not_done(verb: str) -> None:
    policy = Interrupted(p=5)
    bandit = Bandit(range(2), 1, policy=policy, seed=1)
    decision, other = bandit.decide([1.0]), bandit.decide([1.0])
    bandit.learn(other, 1.0)
    if verb != "learn":
        bandit.learn(decision, 1.0)
    calls: dict[str, Callable[[], None]] = {
        "learn": lambda: bandit.learn(decision, 1.0),
        "correct": lambda: bandit.correct(decision, 1.0, 3.0),
        "forget": lambda: bandit.forget(decision, 1.0),
    }
    results: list[str] = []
    waiting = interrupting(policy, *[attempt(results, calls[verb])] * 2)
    calls[verb]()
    for thread in waiting:
        thread.join()
    assert results == ["refused", "refused"]
    total = {"learn": (2.0, 2.0), "correct": (2.0, 4.0), "forget": (1.0, 1.0)}[verb]
    assert (bandit.state.n.sum(), bandit.state.sum_r.sum()) == total


class Slow(int):
    """A number whose reading takes so long that another thread learns first."""

    meanwhile: Callable[[], object]

    def __float__(self) -> float:
        run(self.meanwhile)
        return float(int(self))


@pytest.mark.parametrize("policy", [Algorithm1(p=5), InPython(p=5)], ids=["compiled", "python"])
def test_reward_that_is_read_slowly_is_not_learned_twice(policy: Policy) -> None:
    bandit = Bandit(range(2), 1, policy=policy, seed=1)
    decision, reward = bandit.decide([1.0]), Slow(3)
    reward.meanwhile = lambda: bandit.learn(decision, 1.0)
    with pytest.raises(DecisionError, match=r"learned already, with reward 1\.0"):
        bandit.learn(decision, reward)
    assert (bandit.state.n.sum(), bandit.state.sum_r.sum(), decision.reward) == (1.0, 1.0, 1.0)


def test_saved_state_is_whole_although_a_policy_in_python_is_learning(tmp_path: Path) -> None:
    policy, file = Interrupted(p=5), tmp_path / "model.armlet"
    bandit = Bandit(range(2), 1, policy=policy, seed=1)
    bandit.learn(bandit.decide([1.0]), 1.0)
    decision = bandit.decide([1.0])
    waiting = interrupting(policy, lambda: bandit.save(file))
    bandit.learn(decision, 1.0)
    for thread in waiting:
        thread.join()
    assert armlet.load(file, policy=policy).state.n.sum() in (1.0, 2.0)


READS: dict[str, Callable[[Bandit], object]] = {
    "decide": lambda bandit: bandit.decide([1.0]).propensity,
    "decide_many": lambda bandit: bandit.decide_many([[1.0]]).propensities.tolist(),
    "predict_proba": lambda bandit: bandit.predict_proba([[1.0]]).tolist(),
    "predict_expectations": lambda bandit: bandit.predict_expectations([[1.0]]).tolist(),
    "sum": lambda bandit: (bandit + bandit).state.n.tolist(),
}


@pytest.mark.parametrize("name", READS)
def test_reads_see_a_whole_state_although_a_policy_in_python_is_learning(name: str) -> None:
    """Before the update or after it, never the half of it."""
    policy = Interrupted(p=2, ridge=1.0)
    answers: list[object] = []
    for moment in ("before", "after", "meanwhile"):
        bandit = Bandit(range(2), 1, policy=policy, seed=1)
        for _ in range(4):
            bandit.learn(decision := bandit.decide([1.0]), float(decision.t % 2))
        decision = Decision.restore(f"1-{coins(1, 1).mark:016x}", 0, 1.0, True, [1.0])
        if moment == "before":
            answers.append(READS[name](bandit))
        waiting = []
        if moment == "meanwhile":
            waiting = interrupting(policy, lambda bandit=bandit: answers.append(READS[name](bandit)))  # type: ignore[misc]
        bandit.learn(decision, 40.0)
        for thread in waiting:
            thread.join()
        if moment == "after":
            answers.append(READS[name](bandit))
    assert answers[2] in answers[:2]


def test_arm_removed_while_a_log_is_being_read_does_not_write_past_the_end() -> None:
    """In a process of its own, since this is about memory: the rewards are converted after the arms were found."""
    program = """
import numpy as np, armlet
bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Uniform(), seed=1)
class Late:
    def __array__(self, dtype=None, copy=None):
        if "b" in bandit.arms:
            bandit.remove_arm("b")  # as another thread might, at this very moment
        return np.array([1.0, 1.0, 1.0])
try:
    bandit.partial_fit([[1.0]] * 3, ["b", "b", "a"], Late())
    print("learned", bandit.state.n.tolist())
except (KeyError, IndexError, ValueError, TypeError, armlet.ArmletError) as error:
    print("refused", bandit.state.n.tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused [0.0]\n"), done.stderr


def test_threads_leave_the_state_that_one_would() -> None:
    """The same decisions learned by one thread and by four: equal to the last bit where sums are exact."""
    alone, shared = (Bandit(range(2), 1, policy=AllDataEpsilonGreedy(p=2), seed=5) for _ in range(2))
    one, many = ([bandit.decide([float(i % 4)]) for i in range(2000)] for bandit in (alone, shared))
    for decision in one:
        alone.learn(decision, float(decision.t % 8))

    def learning(start: int) -> Callable[[], None]:
        def learn() -> None:
            for decision in many[start::4]:
                shared.learn(decision, float(decision.t % 8))

        return learn

    run(*[learning(start) for start in range(4)])
    assert snapshot(shared) == snapshot(alone)
