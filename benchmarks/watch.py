"""How often the page of a loop says something wrong while it is watched, and how soon it says "yes".

    python benchmarks/watch.py --loops 2000 --decisions 60000 --seed 80000       # 10 CPU minutes
    python benchmarks/watch.py --loops 200 --decisions 5000 --real 4 --seed 1    # does it run

The simulated loops are those of `tests/support/stores/coin_loops.py`: click rates of 1 to 30 %, three arms, two kinds
of contexts, a live policy that learns. Every one is looked at after every decision. A loop is wrong if the interval of
the gain ever fails to cover the truth, more than a wrong "yes" or "no". The bar is 5 % and three standard errors.
z-intervals have the same scores, and are looked at every 50 decisions: how often they say something wrong shows what
watching does to an interval for one look. A median is over all loops, and is there if half of them have said "yes".

The real loops are policies of Armlet, deciding and learning, with the tally that a store keeps, over the same click
rates, looked at every 100 decisions.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from armlet.types import Bool, Float64, Int64
from support.stores.coin_loops import Setting, Watched, watch
from support.stores.real_loops import KINDS, watch_real

SETTINGS = (
    *(Setting("uniform", lift) for lift in (0.0, 0.1, 0.2, 0.3)),
    Setting("uniform", 0.3, coin=0.2),
    *(Setting("control", lift) for lift in (0.0, 0.1, 0.2, 0.3)),
    *(Setting("uniform", lift, coin=None) for lift in (0.0, 0.3)),
)
RATES = ((0.01, 0.03), (0.03, 0.1), (0.1, 0.3))
LEVEL = 0.05


def bar(loops: int) -> float:
    """Return the largest share of wrong loops that passes."""
    return LEVEL + 3.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / loops)


def when(said: Int64) -> str:
    """Return the median decision of "yes" over all loops, if half of them have said it."""
    over_all = np.where(said > 0, said, np.iinfo(np.int64).max)
    middle = float(np.median(over_all)) if len(said) else math.inf
    return f"{middle:,.0f}" if middle < 1e15 else "-"


def parts(said: Int64, rates: Float64) -> Iterator[tuple[str, str]]:
    """Yield how often and when "yes" is said, by click rate."""
    for low, high in RATES:
        which: Bool = (rates >= low) & (rates < high)
        some = said[which]
        yield f"{(some > 0).mean():.2f}" if len(some) else "-", when(some)


def name(setting: Setting) -> str:
    coin = "20/t" if setting.coin is None else f"{setting.coin:.0%}"
    return f"{setting.against}, lift {setting.lift:.0%}, coin {coin}"


def line(setting: Setting, watched: Watched, rates: Float64) -> str:
    shares, times = zip(*parts(watched.yes, rates), strict=True)
    z_wrong = "" if setting.lift else f"{((watched.z_yes > 0) | (watched.z_no > 0)).mean():.3f}"
    return (
        f"{name(setting):30} {watched.wrong.mean():7.4f} {(watched.yes > 0).mean():6.3f} {' / '.join(shares):>20} "
        f"{when(watched.yes):>8} {' / '.join(times):>26} {z_wrong:>8}"
    )


def simulated(loops: int, decisions: int, seed: int) -> bool:
    """Print a line for every setting; return whether none is wrong too often."""
    print(f"{loops:,} loops of {decisions:,} decisions, seed {seed}; bar {bar(loops):.4f}")
    print(f"{'':30}   wrong    yes     1-3 / 3-10 / 10-30 %   median        1-3 / 3-10 / 10-30 %  z wrong")
    passed = True
    for at, setting in enumerate(SETTINGS):
        watched, rates = watch(setting, loops, decisions, seed * 1000 + at)
        passed = passed and float(watched.wrong.mean()) <= bar(loops)
        print(line(setting, watched, rates), flush=True)
    return passed


def real(loops: int, decisions: int, seed: int) -> bool:
    """Print how often real policies and tallies are wrong; return whether that is not too often."""
    passed = True
    for kind in KINDS:
        found = [watch_real(kind, decisions, seed * 100_000 + at) for at in range(loops)]
        wrong, yes = (np.mean([getattr(each, part) for each in found]) for part in ("wrong", "yes"))
        passed = passed and float(wrong) <= bar(loops)
        print(f"real: {kind:30} {loops} loops of {decisions:,}: wrong {wrong:.3f}, yes {yes:.2f}", flush=True)
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=2000)
    parser.add_argument("--decisions", type=int, default=60_000)
    parser.add_argument("--real", type=int, default=100, help="loops of each kind with real policies")
    parser.add_argument("--real-decisions", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=61000)
    asked = parser.parse_args()
    passed = simulated(asked.loops, asked.decisions, asked.seed) if asked.loops else True
    passed = (real(asked.real, asked.real_decisions, asked.seed) if asked.real else True) and passed
    print(
        "passed: no statement is wrong more often than the bar" if passed else "FAILED: wrong more often than the bar"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
