"""What guards add to a decision and a reward of a loop, in memory.

    python benchmarks/guards.py 5          # rounds

CPU time of the process, in microseconds a call: K = 10 arms, d = 16, FixedEpsilon(epsilon=0.1), batches of 64 of which
each is rewarded before the next. The kinds take turns, so that a busy machine hits all of them; a figure is the median
of the rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

import armlet
from armlet.stores import Control, Loop, Memory, Store

K, D, BATCH, BATCHES = 10, 16, 64, 30
POLICY = armlet.FixedEpsilon(epsilon=0.1)

KINDS: dict[str, Callable[[Loop], None]] = {
    "no guards": lambda _: None,
    "control, an arm": lambda loop: loop.change(control=Control(arm="a0", share=0.1)),
    "control, a policy": lambda loop: loop.change(control=Control(policy=POLICY, share=0.1)),
    "shadow": lambda loop: loop.change(shadow=armlet.LinUCB(), how="refit"),
    "frozen": lambda loop: loop.freeze(),
    "all, two shadows": lambda loop: _all(loop),
}


def _all(loop: Loop) -> None:
    shadows = {"bold": armlet.LinUCB(alpha=2.0), "shy": armlet.Greedy()}
    loop.change(control=Control(policy=POLICY, share=0.1))
    loop.change(shadow=shadows, how="refit")
    loop.freeze()


def measure(guard: Callable[[Loop], None]) -> tuple[float, float]:
    """Return what a decision and a reward take, in microseconds."""
    rng = np.random.default_rng(1)
    took = [0.0, 0.0]
    with Store(Memory()) as store:
        loop = store.loop("home", arms=[f"a{i}" for i in range(K)], dim=D, policy=POLICY, seed=1)
        guard(loop)
        for batch in range(BATCHES):
            X, names = rng.normal(size=(BATCH, D)), [f"{batch} {i}" for i in range(BATCH)]
            rewards = list(zip(names, rng.random(BATCH).tolist(), strict=True))
            start = time.process_time()
            loop.decide_many(X, events=names)
            between = time.process_time()
            loop.reward_many(rewards)
            took[0] += between - start
            took[1] += time.process_time() - between
    decide, reward = (1e6 * each / (BATCH * BATCHES) for each in took)
    return decide, reward


def main() -> None:
    """Print a line for each kind of guards."""
    parser = argparse.ArgumentParser(description="What guards add to a decision and a reward of a loop.")
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    rounds = [{name: measure(guard) for name, guard in KINDS.items()} for _ in range(parser.parse_args().rounds)]
    print(f"{'guards':20}{'decide':>10}{'reward':>10}   us, medians")
    for name in KINDS:
        decide, reward = (statistics.median(one[name][k] for one in rounds) for k in (0, 1))
        print(f"{name:20}{decide:10.1f}{reward:10.1f}")


if __name__ == "__main__":
    main()
