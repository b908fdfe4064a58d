"""How often the alarm `contexts` is wrong on honest features, and whether it names features that went wrong.

    python benchmarks/contexts.py --worlds 300 --decisions 30000 --seed 90000

An honest world has a feature of each kind below; the alarm is looked at every 500 decisions. Then one fault befalls one
feature of the same world: a value of 1.8e18 once, a thousand times its largest value so far once, or one value from
then on.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

import numpy as np

from armlet.stores.folds import Tally
from armlet.stores.health import alarms
from armlet.types import Float64

LOOK = 500
KINDS = (
    "normal",
    "age",
    "lognormal 1.5",
    "lognormal 2.5",
    "counts",
    "rare flag",
    "rare revenue",
    "Pareto 1.5",
    "t(2)",
    "hour",
)


def world(rng: np.random.Generator, n: int) -> Float64:
    """Draw contexts, (n, kinds)."""
    size = float(np.exp(rng.uniform(np.log(1e-3), np.log(1e6))))
    return np.column_stack(
        [
            size * rng.normal(rng.uniform(-3, 3), 1.0, n),
            np.floor(rng.gamma(9.0, 4.5, n)),
            size * rng.lognormal(0.0, 1.5, n),
            size * rng.lognormal(0.0, 2.5, n),
            rng.negative_binomial(1, rng.uniform(0.02, 0.5), n).astype(np.float64),
            (rng.random(n) < np.exp(rng.uniform(np.log(3e-4), np.log(0.1)))).astype(np.float64),
            (rng.random(n) < 0.02) * rng.lognormal(4.0, 1.5, n),
            size * (1.0 + rng.pareto(1.5, n)),
            size * rng.standard_t(2, n),
            np.floor(np.arange(n) / rng.integers(20, 400)) % 24,
        ]
    )


def looks(X: Float64, start: int = 0, every: int = LOOK) -> Iterator[set[str]]:
    """Return the features that alarms name, at every look from a decision on."""
    tally = Tally()
    for i, x in enumerate(X):
        tally.contexts.add(x.tobytes(), i, i + 1)
        if i >= start and (i + 1) % every == 0:
            yield {alarm.text.split("'")[1] for alarm in alarms(tally, i, features=KINDS)}


def main() -> None:
    """Play worlds, and print what was named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=300)
    parser.add_argument("--decisions", type=int, default=30_000)
    parser.add_argument("--seed", type=int, default=90_000)
    a = parser.parse_args()
    false, named, faults = Counter[str](), Counter[str](), ("1.8e18", "1,000 x", "constant")
    start = 2 * a.decisions // 3
    for place in range(a.worlds):
        rng = np.random.default_rng(a.seed + place)
        X = world(rng, a.decisions)
        false.update(set().union(*looks(X)))
        fault, column = faults[place % 3], place // 3 % len(KINDS)
        X = X[: start + (LOOK if fault != "constant" else a.decisions // 3)].copy()
        if fault == "constant":
            X[start:, column] = X[start, column]
        else:
            X[start, column] = 1.8e18 if fault == "1.8e18" else 1e3 * np.abs(X[:start, column]).max()
        named[fault] += KINDS[column] in set().union(*looks(X, start))
    print(f"{a.worlds} honest worlds of {a.decisions:,} decisions: {sum(false.values())} features named {dict(false)}")
    for place, fault in enumerate(faults):
        print(f"{fault}: named in {named[fault]} of {len(range(place, a.worlds, 3))}")


if __name__ == "__main__":
    main()
