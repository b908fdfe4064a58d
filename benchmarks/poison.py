"""One row of nonsense, learned and forgotten: the share of the best arm before, after the row, and after forgetting it.

In memory, where rows are gone, 1,500 more rows come first; a loop and a bandit with a log learn their rows again. Seeds
101 to 103: constants were chosen on 1 to 3. The last column is the largest fall of a seed.

    python benchmarks/poison.py [memory] [log] [loop] [--seeds FIRST LAST]
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import armlet

POLICIES: dict[str, Any] = {
    "default": None,
    "LinUCB": armlet.LinUCB(),
    "ThompsonSampling": armlet.ThompsonSampling(),
    "SharedOptimism": armlet.SharedOptimism(),
}
PLACES = ("memory", "log", "loop")
LOOK, MORE = 300, 1500


class Life:
    """Rows of three arms with four features, in memory, with a log, or in a loop."""

    def __init__(self, name: str, seed: int, store: Any | None, log: Any | None = None) -> None:
        self.rng, policy = np.random.default_rng(seed), POLICIES[name]
        self.theta, self.n = self.rng.normal(size=(3, 4)), 0
        given: dict[str, Any] = {} if policy is None else {"policy": policy}
        pairs, self.how = name == "SharedOptimism", {}
        if pairs:
            self.how = {"actions": armlet.ActionTable(list("abc"), np.eye(3))}
        if store is not None:
            shape = {"dim": 4, "action_dim": 3} if pairs else {"arms": list("abc"), "dim": 4}
            self.bandit, self.loop = (
                None,
                store.loop(f"{name}-{seed}", seed=seed, reward_range=(-20, 20), **shape, **given),
            )
        else:
            made = (
                armlet.ActionBandit(4, 3, seed=seed, log=log, **given)
                if pairs
                else armlet.Bandit(list("abc"), 4, seed=seed, log=log, **given)
            )
            self.bandit, self.loop = made, None
        self.has_rows = log is not None or store is not None

    def step(self, bad: float | None = None) -> tuple[bool, Any]:
        """Return whether the best arm was played, and what names the row."""
        x = self.rng.normal(size=4)
        means = self.theta @ x
        if bad is not None:
            x[1] = bad
        self.n += 1
        if self.loop is not None:
            d = self.loop.decide(x, event=f"e{self.n}", **self.how)
        else:
            d = self.bandit.decide(x, *self.how.values())
        arm = "abc".index(d.arm)
        reward = float(means[arm] + 0.1 * self.rng.normal())
        if self.loop is not None:
            self.loop.reward(f"e{self.n}", reward)
            return arm == means.argmax(), f"e{self.n}"
        self.bandit.learn(d, reward)
        return arm == means.argmax(), d

    def share(self, n: int = LOOK) -> float:
        """Return how often the best arm is played."""
        return float(np.mean([self.step()[0] for _ in range(n)]))

    def forget(self, row: Any) -> None:
        """Forget a row; in memory, learn more."""
        if self.loop is not None:
            self.loop.forget(row)
        else:
            self.bandit.forget(row, row.reward)
        if not self.has_rows:
            self.share(MORE)


def lives(name: str, bad: float, at: int, where: str, seed: int, folder: Path) -> tuple[float, float, float]:
    """Return the three shares; for a first row, before is a life without it that is as long."""
    path = folder / f"{name}-{bad:g}-{at}-{seed}-{where}"
    store = armlet.open_store(f"{path}.db") if where == "loop" else None
    log = armlet.Log(f"{path}.jsonl") if where == "log" else None
    life = Life(name, seed, store, log)
    if at:
        life.share(at)
        before = life.share()
        row = life.step(bad)[1]
        after = life.share()
    else:
        plain = Life(name, seed + 1000, store)
        plain.share()
        before = plain.share()
        row = life.step(bad)[1]
        after = life.share()
    life.forget(row)
    found = before, after, life.share()
    for opened in (store, log):
        if opened is not None:
            opened.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("where", nargs="*", default=PLACES)
    parser.add_argument("--seeds", nargs=2, type=int, default=(101, 103), metavar=("FIRST", "LAST"))
    asked = parser.parse_args()
    seeds = range(asked.seeds[0], asked.seeds[1] + 1)
    warnings.simplefilter("ignore", armlet.errors.LostDigitsWarning)
    print(f"{'where':7}{'policy':17}{'row':>5}{'value':>9}{'before':>8}{'bad row':>9}{'forgotten':>11}{'fall':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for where in asked.where:
            for name in POLICIES:
                for at in (0, 300):
                    for bad in (1e3, 1e8, 1.8e18):
                        found = np.array([lives(name, bad, at, where, seed, Path(folder)) for seed in seeds])
                        before, after, last = found.mean(axis=0)
                        head = f"{where:7}{name:17}{at + 1:5}{bad:9.2g}"
                        fall = (found[:, 0] - found[:, 2]).max()
                        print(f"{head}{before:8.3f}{after:9.3f}{last:11.3f}{fall:8.3f}", flush=True)


if __name__ == "__main__":
    main()
