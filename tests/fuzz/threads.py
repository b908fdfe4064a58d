"""Threads at one bandit while arms come and go: at the end every arm's sums are those of all rewards learned.

Every thread decides, learns, corrects, forgets and reads, and two of them also change the arms. An arm that is removed
and added again under its label starts again, so labels are never used twice: what is learned of a label is learned of
one arm. Rewards are small whole numbers, whose sums are exact in any order.
"""

from __future__ import annotations

import copy
import faulthandler
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import numpy as np

import armlet
from armlet import Bandit, Decision
from armlet.types import Policy
from fuzz.faults import judge, require

DIM, START, MOST = 3, 6, 12
POLICIES: dict[str, Callable[[], Policy]] = {
    "Algorithm1": lambda: armlet.Algorithm1(p=50_000),
    "LinUCB": lambda: armlet.LinUCB(),
    "ThompsonSampling": lambda: armlet.ThompsonSampling(v=0.5),
    "FixedEpsilon": lambda: armlet.FixedEpsilon(epsilon=0.3),
}
HERE = Path(__file__).parent.parent
STUCK = 120.0  # seconds beyond its time after which a run is taken for a deadlock


class Arena:
    """One bandit, the books that its threads keep together, and what went wrong."""

    def __init__(self, policy: Policy, seconds: float, seed: int) -> None:
        self.bandit = Bandit([f"arm {i}" for i in range(START)], DIM, policy=policy, seed=seed)
        self.deadline = monotonic() + seconds
        self.lock = threading.Lock()
        self.ever = {f"arm {i}" for i in range(START)}  # every label that was ever added
        self.leaving: set[str] = set()  # labels whose removal has begun
        self.removed: set[str] = set()  # labels whose removal has ended
        self.count, self.total = Counter[str](), Counter[str]()  # rows and rewards learned, by label
        self.fresh, self.calls = START, 0
        self.faults: list[str] = []

    def note(self, decision: Decision, rows: int, reward: float) -> None:
        """Keep the books of what was learned."""
        if decision.explored or self.bandit.policy.learns_from == "every step":
            with self.lock:
                self.count[str(decision.arm)] += rows
                self.total[str(decision.arm)] += round(reward)


class Worker:
    """One thread: decisions of its own, and calls in any order."""

    def __init__(self, arena: Arena, number: int, seed: int) -> None:
        self.arena, self.bandit, self.rng = arena, arena.bandit, Random(1000 * seed + number)
        self.pending: list[Decision] = []
        self.learned: list[Decision] = []
        self.changes_arms = number < 2
        self.menu: list[Callable[[], None]] = [
            *[self.decide] * 6, *[self.decide_many] * 2, *[self.learn] * 6, self.learn_many, self.correct, self.forget,
            *[self.read] * 3, self.copy, *([self.change] * 3 if self.changes_arms else []),
        ]  # fmt: skip

    def run(self) -> None:
        """Call until time is up; what is wrong ends the thread and is kept."""
        calls = 0
        try:
            while monotonic() < self.arena.deadline and not self.arena.faults:
                self.rng.choice(self.menu)()
                calls += 1
        except BaseException as error:
            self.arena.faults.append(f"{type(error).__name__}: {error}")
        with self.arena.lock:
            self.arena.calls += calls

    def context(self) -> Any:
        return np.array([self.rng.choice((0.0, 1.0, -1.0, 0.5)) for _ in range(DIM)])

    def eligible(self) -> list[str] | None:
        known = list(map(str, self.bandit.arms))
        return None if self.rng.random() < 0.5 else self.rng.sample(known, self.rng.randint(1, len(known)))

    def decide(self) -> None:
        arms = self.eligible()
        gone = set(self.arena.removed)  # before the call: what was removed by then is not played
        try:
            decision = self.bandit.decide(self.context(), eligible=arms)
        except armlet.ArmletError as error:
            return self.excuse(error, arms)
        self.check(decision, arms, gone)
        self.pending.append(decision)
        return None

    def check(self, decision: Decision, arms: list[str] | None, gone: set[str]) -> None:
        """Require that the arm was there and might be played."""
        arm = str(decision.arm)
        require(arm in self.arena.ever, lambda: f"played {arm}, which never was")
        require(arms is None or arm in arms, lambda: f"played {arm}, eligible were {arms}")
        require(0 < decision.propensity <= 1, lambda: f"played {arm} with propensity {decision.propensity}")
        require(arm not in gone, lambda: f"played {arm}, which had been removed before")

    def excuse(self, error: Exception, arms: list[str] | None) -> None:
        """A refusal is right only if eligible arms were removed or retired meanwhile."""
        require(arms is not None, lambda: f"refused without a reason: {error!r}")
        judge(error, "a call with eligible arms", "eligible")

    def decide_many(self) -> None:
        arms, gone = self.eligible(), set(self.arena.removed)
        try:
            many = self.bandit.decide_many(np.array([self.context() for _ in range(16)]), eligible=arms)
        except armlet.ArmletError as error:
            return self.excuse(error, arms)
        for decision in many:
            self.check(decision, arms, gone)
        self.pending += list(many)[: self.rng.choice((2, 16))]
        return None

    def learn(self) -> None:
        if not self.pending:
            return None
        decision, reward = self.pending.pop(self.rng.randrange(len(self.pending))), float(self.rng.randrange(8))
        try:
            self.bandit.learn(decision, reward)
        except armlet.ArmletError as error:
            return self.late([decision], error)
        self.arena.note(decision, 1, reward)
        self.learned.append(decision)
        del self.learned[:-200], self.pending[:-200]
        return None

    def late(self, decisions: list[Decision], error: Exception) -> None:
        """A reward that cannot be learned belongs to an arm that was removed."""
        names = {str(decision.arm) for decision in decisions}
        require(bool(names & self.arena.leaving), lambda: f"refused although {names} are there: {error!r}")
        judge(error, "a reward", "decision", "arm")

    def learn_many(self) -> None:
        some = [self.pending.pop() for _ in range(min(5, len(self.pending)))]
        rewards = [float(self.rng.randrange(8)) for _ in some]
        try:
            self.bandit.learn_many(some, rewards)
        except armlet.ArmletError as error:
            return self.late(some, error)
        for decision, reward in zip(some, rewards, strict=True):
            self.arena.note(decision, 1, reward)
        return None

    def amend(self, call: Callable[[Decision, float], tuple[int, float]]) -> None:
        if not self.learned:
            return None
        decision = self.learned.pop(self.rng.randrange(len(self.learned)))
        assert decision.reward is not None
        try:
            rows, change = call(decision, decision.reward)
        except armlet.errors.DecisionError as error:  # a policy whose state is no sum of rows
            why = repr(error)
            return require("cannot take back" in why, lambda: f"refused without a reason: {why}")
        except armlet.ArmletError as error:
            return self.late([decision], error)
        self.arena.note(decision, rows, change)
        return None

    def correct(self) -> None:
        def call(decision: Decision, old: float) -> tuple[int, float]:
            new = float(self.rng.randrange(8))
            self.bandit.correct(decision, old, new)
            return 0, new - old

        self.amend(call)

    def forget(self) -> None:
        def call(decision: Decision, old: float) -> tuple[int, float]:
            self.bandit.forget(decision, old)
            return -1, -old

        self.amend(call)

    def read(self) -> None:
        X, arms = np.array([self.context() for _ in range(20)]), self.eligible()
        try:
            chances = self.bandit.predict_proba(X, eligible=arms)
            best: Any = self.bandit.predict(X, eligible=arms)
        except armlet.ArmletError as error:
            return self.excuse(error, arms)
        require(bool((abs(chances.sum(axis=1) - 1) < 1e-9).all()), lambda: f"predict_proba gave {chances.tolist()}")
        require(arms is None or set(best) <= set(arms), lambda: f"predict gave {best}, eligible were {arms}")
        return None

    def copy(self) -> None:
        """A copy is of one moment: as many arms in its state as in its labels."""
        if not hasattr(Bandit, "copy"):
            return
        twin = copy.copy(self.bandit)
        require(twin.state.n_arms == len(twin.arms), lambda: f"{twin.state.n_arms} arms in the state of {twin.arms}")

    def change(self) -> None:
        """Add an arm that is new, or retire, restore or remove one."""
        a, arms = self.arena, self.bandit.arms
        what = self.rng.choice(("add", "retire", "restore", "remove"))
        arm = str(self.rng.choice(arms))
        try:
            if what == "add" and len(arms) < MOST:
                with a.lock:
                    a.fresh += 1
                    arm = f"arm {a.fresh}"
                    a.ever.add(arm)
                self.bandit.add_arm(arm)
            elif what in ("retire", "restore"):
                getattr(self.bandit, f"{what}_arm")(arm)
            elif what == "remove" and len(arms) > 3:
                a.leaving.add(arm)
                self.bandit.remove_arm(arm)
                a.removed.add(arm)
        except armlet.ArmletError as error:  # the other one was first, or it is the last that can be played
            judge(error, what, "arm")


def sums(bandit: Bandit) -> dict[str, tuple[float, float]]:
    """Return n and the sum of rewards of every arm."""
    state = bandit.state
    n, total = state.n, state.sum_r
    return {str(arm): (float(n[i]), float(total[i])) for i, arm in enumerate(bandit.arms)}


def balance(arena: Arena) -> list[str]:
    """Compare the sums of every arm that is left with the books."""
    out = []
    for arm, (n, total) in sums(arena.bandit).items():
        expected = (float(arena.count[arm]), float(arena.total[arm]))
        # n is whole; the sum is of whole numbers, exact, both of them
        if (n, total) != expected:
            out.append(f"{arm} has n, sum = {(n, total)}, but {expected} was learned")
    return out


def play(name: str, seconds: float, n_threads: int, seed: int) -> int:
    """Let threads loose on one policy, in this process; 1 if something was wrong."""
    faulthandler.dump_traceback_later(seconds + STUCK, exit=True)
    sys.setswitchinterval(1e-5)
    arena = Arena(POLICIES[name](), seconds, seed)
    threads = [threading.Thread(target=Worker(arena, i, seed).run) for i in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    arena.faults += balance(arena) if not arena.faults else []
    calls = f"{n_threads} threads on {name}, {seconds:.0f} s: {arena.calls} calls, {sum(arena.count.values())} rows"
    print(f"{calls}, {arena.fresh - START} arms added, {len(arena.removed)} removed", flush=True)
    for fault in arena.faults:
        print(f"FAULT  {fault}", flush=True)
    return 1 if arena.faults else 0


def run(seconds: float, n_threads: int, seed: int) -> int:
    """Play every policy in a process of its own, which may crash or hang; how many of them went wrong."""
    faults = 0
    for name in POLICIES:
        part = str(seconds / len(POLICIES))
        command = [sys.executable, "-m", "fuzz.threads", name, part, str(n_threads), str(seed)]
        code = subprocess.run(command, cwd=HERE, check=False).returncode
        if code:
            print(f"FAULT  python -m fuzz.threads {name} {part} {n_threads} {seed}  ended with {code}", flush=True)
            faults += 1
    return faults


if __name__ == "__main__":
    faulthandler.enable()
    sys.exit(play(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
