"""Whether to restart an arm when it changes: regret next to the same policy without restarts, and next to D-LinUCB.

    nice python benchmarks/rebirth.py                              # chooses on seeds 1 to 10, judges on others
    nice python benchmarks/rebirth.py --seeds 2 --horizon 4000    # does it run

A policy keeps the rows of every arm in blocks of growing size. When a block closes, every suffix of an arm's blocks is
tested against the rest: Z = (theta_1 - theta_2)' (V_1^-1 + V_2^-1)^-1 (theta_1 - theta_2) / sigma^2. If the largest Z
is above h = d + 2 sqrt(d L) + 2 L with L = log 10^4 (the tail of a chi-square), only that suffix is kept, and the arm's
clock starts again. Variants take other noise than that of all arms, a larger h, or forget neglected arms.

Two bars: at most 1.05 times the regret of the same policy without restarts where nothing changes, and at most 0.6 times
that of D-LinUCB where arms jump. D-LinUCB has the best of 36 settings for each environment, chosen on the seeds that
also choose the variant. All policies meet the same contexts, noise and coins. Intervals are 95 %, of the ratio of mean
regrets, by a bootstrap over seeds. The policies are in rebirth.cpp, which needs a C++ compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from armlet.environments.drifting import Drifting
from armlet.types import Float64

CHOSEN_ON = range(1, 11)  # two of them at d = 20
STILL_BAR, JUMP_BAR = 1.05, 0.6
POOL, OWN, SIDES = range(3)


class CSteps(ctypes.Structure):
    """What both policies are given, as in rebirth.cpp."""

    _fields_ = [
        ("n", ctypes.c_int64),
        ("n_arms", ctypes.c_int32),
        ("dim", ctypes.c_int32),
        ("delay", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("x", "mu", "sd", "normals", "coins")),
    ]


class CRestarts(ctypes.Structure):
    """How arms are restarted."""

    _fields_ = [("threshold", ctypes.c_double), ("neglect", ctypes.c_double), ("noise", ctypes.c_int32)]


class CDiscount(ctypes.Structure):
    """How rows are discounted."""

    _fields_ = [("gamma", ctypes.c_double), ("alpha", ctypes.c_double), ("paper", ctypes.c_int32)]


class CPlayed(ctypes.Structure):
    """What a policy returns."""

    _fields_ = [("regret", ctypes.c_double), ("restarts", ctypes.c_int64)]


@cache
def library() -> ctypes.CDLL:
    """Compile the policies."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "rebirth.so"
        source = Path(__file__).with_suffix(".cpp")
        options = [
            "-std=c++20",
            "-O3",
            "-march=native",
            "-fassociative-math",
            "-fno-signed-zeros",
            "-fno-trapping-math",
            "-shared",
            "-fPIC",
        ]
        subprocess.run(["c++", *options, str(source), "-o", str(made)], check=True)
        return ctypes.CDLL(str(made))


@dataclass(frozen=True, slots=True)
class Steps:
    """What all policies meet: contexts (T, d), means and deviations (T, K), noise (T,) and coins (T, 2)."""

    X: Float64
    mu: Float64
    sd: Float64
    normals: Float64
    coins: Float64

    def played(self, policy: CRestarts | CDiscount, delay: int) -> tuple[float, int]:
        """Play a policy; return its regret and how often it restarted an arm."""
        arrays = [np.ascontiguousarray(each) for each in (self.X, self.mu, self.sd, self.normals, self.coins)]
        (n, n_arms), dim = self.mu.shape, self.X.shape[1]
        steps, out = CSteps(n, n_arms, dim, delay, *(each.ctypes.data for each in arrays)), CPlayed()
        play = library().play_optimism if isinstance(policy, CRestarts) else library().play_discounted
        play(ctypes.byref(steps), ctypes.byref(policy), ctypes.byref(out))
        return float(out.regret), int(out.restarts)


Means = Callable[[np.random.Generator, Drifting, Float64], Float64]


def as_drawn(_: np.random.Generator, environment: Drifting, X: Float64) -> Float64:
    return environment.means(X)


def redrawn(changes: int) -> Means:
    """Draw one arm again at each of some random steps."""

    def means(rng: np.random.Generator, environment: Drifting, X: Float64) -> Float64:
        mu, n = environment.means(X), len(X)
        for step in np.sort(rng.integers(n // 20, n, changes)):
            mu[step:, rng.integers(environment.n_arms)] = X[step:] @ rng.standard_normal(environment.dim)
        return mu

    return means


def curved(rng: np.random.Generator, environment: Drifting, X: Float64) -> Float64:
    """Add 0.5 sin 3x'w to every arm."""
    W = rng.standard_normal((environment.n_arms, environment.dim))
    mu: Float64 = environment.means(X) + 0.5 * np.sin(3.0 * X @ W.T)
    return mu


def sleeper(_: np.random.Generator, environment: Drifting, X: Float64) -> Float64:
    """Let the last arm's mean be the same in all contexts, 2 below all others, and 2 above them from the middle on."""
    X[:, 0] = 1.0
    mu, half = environment.means(X), len(X) // 2
    mu[:half, -1], mu[half:, -1] = mu[:, :-1].min() - 2.0, mu[:, :-1].max() + 2.0
    return mu


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """An environment: which of the two bars it is for, and how its steps are drawn."""

    name: str
    bar: float | None
    n_arms: int = 6
    dim: int = 3
    horizon: int = 100_000
    means: Means = as_drawn
    jump_every: int = 0
    turns: float = 0.0
    growing_noise: bool = False
    delay: int = 0
    chooses: int = 10  # seeds
    judges: int = 40  # seeds

    def grid(self) -> tuple[Discounted, ...]:
        """Return what D-LinUCB may be; at d = 20, where it is slow, not what cannot win or hardly differs."""
        slow = self.dim >= 20
        return tuple(each for each in GRID if not slow or (1_000 <= each.memory <= 5_000 and not each.paper))

    def steps(self, seed: int) -> Steps:
        """Draw the steps of a seed."""
        rng, n = np.random.default_rng([54, seed]), self.horizon
        jumps = tuple(range(self.jump_every + 1, n + 1, self.jump_every)) if self.jump_every else ()
        turn = 2.0 * math.pi * self.turns / n
        environment = Drifting.draw(rng, n_arms=self.n_arms, dim=self.dim, turn=turn, jumps=jumps)
        X = environment.contexts(rng, n)
        mu = self.means(rng, environment, X)
        sd = 0.2 + np.abs(mu) if self.growing_noise else np.ones_like(mu)
        return Steps(X, mu, sd, rng.standard_normal(n), rng.random((n, 2)))


LARGE = Setting(name="still, d = K = 20", bar=STILL_BAR, n_arms=20, dim=20, horizon=40_000, chooses=2, judges=20)
SETTINGS = (
    Setting(name="still", bar=STILL_BAR),
    Setting(name="still, noise grows with the mean", bar=STILL_BAR, growing_noise=True),
    Setting(name="still, non-linear means", bar=STILL_BAR, means=curved),
    Setting(name="still, non-linear, noise grows", bar=STILL_BAR, means=curved, growing_noise=True),
    Setting(name="still, rewards 500 steps late", bar=STILL_BAR, delay=500),
    Setting(name="still, rewards T/20 steps late", bar=STILL_BAR, delay=5_000),
    Setting(name="an arm redrawn, 8 times", bar=JUMP_BAR, means=redrawn(8)),
    Setting(name="an arm redrawn, 40 times", bar=JUMP_BAR, means=redrawn(40)),
    Setting(name="all exchanged every 20,000", bar=JUMP_BAR, jump_every=20_000),
    Setting(name="all exchanged every 5,000", bar=JUMP_BAR, jump_every=5_000),
    Setting(name="redrawn 8 times, noise grows", bar=None, means=redrawn(8), growing_noise=True),
    Setting(name="redrawn 8 times, 500 steps late", bar=None, means=redrawn(8), delay=500),
    Setting(name="all turn once round", bar=None, turns=1.0),
    Setting(name="the worst arm becomes the best", bar=None, means=sleeper),
    LARGE,
    replace(LARGE, name="d = K = 20, exchanged at T/2", bar=JUMP_BAR, jump_every=20_000),
)


def threshold(dim: int) -> float:
    """Return the h that a chi-square with d degrees of freedom exceeds with a probability of at most 10^-4."""
    tail = math.log(1e4)
    return dim + 2.0 * math.sqrt(dim * tail) + 2.0 * tail


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to restart: by how many h, whose noise, and after how many steps of neglect rows weigh 1/e."""

    name: str
    factor: float
    noise: int = POOL
    neglect: float = 0.0

    def made(self, dim: int) -> CRestarts:
        """Return the settings at d features."""
        return CRestarts(self.factor * threshold(dim), self.neglect, self.noise)


WITHOUT = Variant("without restarts", 0.0)
VARIANTS = (
    Variant("h", 1.0),
    Variant("h, own noise", 1.0, OWN),
    Variant("h, noise of each side", 1.0, SIDES),
    Variant("2 h", 2.0),
    Variant("2 h, own noise", 2.0, OWN),
    Variant("h, own noise, neglect 20,000", 1.0, OWN, 20_000.0),
)


@dataclass(frozen=True, slots=True)
class Discounted:
    """D-LinUCB, or LinUCB: how many steps are remembered, what widths are multiplied by, and which widths."""

    memory: float
    alpha: float
    paper: bool

    @property
    def name(self) -> str:
        """Return gamma and alpha."""
        return f"1 - 1/{self.memory:g}, {self.alpha:g} sd{', simple width' if not self.paper else ''}"

    def made(self, _: int) -> CDiscount:
        """Return the settings, whatever d."""
        return CDiscount(1.0 - 1.0 / self.memory, self.alpha, self.paper)


LINUCB = Discounted(math.inf, 2.0, paper=False)
UNTUNED = Discounted(1_000, 1.0, paper=False)  # the same in every environment
GRID = tuple(
    Discounted(memory, alpha, paper)
    for memory in (250, 500, 1_000, 2_000, 5_000, 20_000)
    for alpha in (0.5, 1.0, 2.0)
    for paper in (False, True)
)

Made = Variant | Discounted
Regrets = dict[Made, Float64]


def play(setting: Setting, policies: Sequence[Made], seeds: Sequence[int]) -> tuple[Regrets, dict[Made, float]]:
    """Play policies on the same steps; return their regrets by seed, and how often each restarted an arm."""
    found: dict[Made, list[tuple[float, int]]] = {policy: [] for policy in policies}
    for seed in seeds:
        steps = setting.steps(seed)
        for policy in policies:
            found[policy].append(steps.played(policy.made(setting.dim), setting.delay))
    regrets = {policy: np.array([regret for regret, _ in played]) for policy, played in found.items()}
    return regrets, {policy: float(np.mean([n for _, n in played])) for policy, played in found.items()}


def ratio(ours: Float64, theirs: Float64) -> tuple[float, float, float]:
    """Return the ratio of mean regrets and its 95 % interval, by a bootstrap over seeds."""
    picks = np.random.default_rng(0).integers(len(ours), size=(10_000, len(ours)))
    low, high = np.quantile(ours[picks].mean(axis=1) / theirs[picks].mean(axis=1), (0.025, 0.975))
    return float(ours.mean() / theirs.mean()), float(low), float(high)


def rival(setting: Setting, regrets: Regrets) -> Made:
    """Return whom a setting's bar compares with: the policy without restarts where nothing changes, else D-LinUCB."""
    return WITHOUT if setting.bar == STILL_BAR else min(setting.grid(), key=lambda each: float(regrets[each].mean()))


@dataclass(frozen=True, slots=True)
class Choice:
    """What the first seeds chose: a variant, and a rival for each setting."""

    variant: Variant
    rivals: dict[str, Made]


def choose(settings: Sequence[Setting], most: int | None) -> Choice:
    """Choose D-LinUCB for each setting, and of the variants that keep the still bar the best at its worst jump."""
    rivals: dict[str, Made] = {}
    worst = {variant: {STILL_BAR: 0.0, JUMP_BAR: 0.0} for variant in VARIANTS}
    for setting in settings:
        grid = () if setting.bar == STILL_BAR else setting.grid()
        regrets, _ = play(
            setting, (WITHOUT, *VARIANTS, *grid), CHOSEN_ON[: min(most or setting.chooses, setting.chooses)]
        )
        against = rivals[setting.name] = rival(setting, regrets)
        print(f"  {setting.name:34} next to {against.name}", flush=True)
        if setting.bar is None:
            continue
        for variant, by_bar in worst.items():
            by_bar[setting.bar] = max(by_bar[setting.bar], ratio(regrets[variant], regrets[against])[0])
    for variant in VARIANTS:
        print(f"  {variant.name:34} worst still {worst[variant][STILL_BAR]:.3f}, jump {worst[variant][JUMP_BAR]:.3f}")
    still = [variant for variant in VARIANTS if worst[variant][STILL_BAR] <= STILL_BAR]
    return Choice(min(still or VARIANTS, key=lambda variant: worst[variant][JUMP_BAR]), rivals)


def verdict(low: float, high: float, bar: float | None) -> str:
    if bar is None:
        return ""
    return "met" if high <= bar else "NOT MET" if low > bar else "not settled"


def judge(setting: Setting, choice: Choice, first: int, most: int | None) -> str:
    """Print every policy's regret on other seeds; return the verdict on the chosen variant."""
    seeds = range(first, first + (most or setting.judges))
    against = choice.rivals[setting.name]
    policies = tuple(dict.fromkeys((WITHOUT, LINUCB, UNTUNED, against, *VARIANTS)))
    regrets, restarts = play(setting, policies, seeds)
    bar = "no bar" if setting.bar is None else f"bar {setting.bar}"
    print(f"\n{setting.name}: T = {setting.horizon:,}, seeds {seeds[0]} to {seeds[-1]}, {bar}, next to {against.name}")
    said = ""
    for policy in policies:
        mean, (at, low, high) = regrets[policy].mean(), ratio(regrets[policy], regrets[against])
        name = "LinUCB, 2 sd" if policy is LINUCB else policy.name
        line = f"  {name:34} {mean:9,.0f}  restarts {restarts[policy]:6.2f}  {at:6.3f} [{low:.3f} to {high:.3f}]"
        is_variant = policy in VARIANTS
        print(f"{line}  {verdict(low, high, setting.bar) if is_variant else ''}", flush=True)
        if policy == choice.variant:
            said = verdict(low, high, setting.bar)
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, help="how many to judge on; 40, or 20 at d = 20, if left out")
    parser.add_argument("--first", type=int, default=101, help="the first seed to judge on")
    parser.add_argument("--horizon", type=int, help="T; 100,000, or 40,000 at d = 20, if left out")
    asked = parser.parse_args()
    settings = [replace(each, horizon=asked.horizon or each.horizon) for each in SETTINGS]
    print(f"chosen on seeds {CHOSEN_ON[0]} to {CHOSEN_ON[-1]}:")
    choice = choose(settings, asked.seeds)
    print(f"  chosen: {choice.variant.name}")
    said = {each.name: judge(each, choice, asked.first, asked.seeds) for each in settings}
    print(f"\n{choice.variant.name}:")
    for name, word in said.items():
        print(f"  {name:34} {word or '(no bar)'}")
    return 0 if set(said.values()) <= {"met", ""} else 1


if __name__ == "__main__":
    raise SystemExit(main())
