"""A short demonstration: Algorithm 1 on the problem of Figure (a), Section 6.

One theta, the first draw from the seed, whatever it turns out to be. Run by run, every p meets the same
contexts, rewards and coins, so that differences between them are paired. Regret is the paper's R(t):
expected rewards, not the sampled ones. Intervals are percentile bootstraps over whole runs, because the
steps of one run depend on each other.
O(runs T K d) for each p, memory O(T (d + K)) for one run at a time.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from armlet.core import kernel
from armlet.core.intervals import RATES, RESAMPLES, classify
from armlet.core.intervals import Estimate as Estimate
from armlet.core.types import Float64, Int64
from armlet.core.version import __version__
from armlet.environments.figure_a import FigureA
from armlet.policies import ContextualEpsilonGreedy, Uniform

N_ARMS, DIM = 6, 3  # as in Figure (a)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
DASHES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)))

Player: TypeAlias = ContextualEpsilonGreedy | Uniform


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to run.

    Examples
    --------
    >>> Settings(runs=1)
    Traceback (most recent call last):
    ValueError: runs is 1 but an interval needs at least 2
    """

    horizon: int = 100_000
    runs: int = 20
    p: tuple[float, ...] = (24, 120, 600)
    seed: int = 2013

    def __post_init__(self) -> None:
        if self.horizon < 100:
            raise ValueError(f"horizon is {self.horizon} but rates need at least 100 steps")
        if self.runs < 2:
            raise ValueError(f"runs is {self.runs} but an interval needs at least 2")
        if self.seed < 0:
            raise ValueError(f"seed is {self.seed} but must be 0 or more")
        bad = [p for p in self.p if not N_ARMS <= p < math.inf]
        if bad or not self.p:
            raise ValueError(f"p is {bad} but needs finite values of at least {N_ARMS}, the number of arms")

    def checkpoints(self) -> Int64:
        """Give the steps at which regret is kept: log-spaced, with T/4, T/2 and T among them."""
        spaced = np.geomspace(1, self.horizon, 60).round().astype(np.int64)
        return np.union1d(spaced, [self.horizon // 4, self.horizon // 2, self.horizon])


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one policy did, over all runs."""

    policy: str
    p: float | None
    explored_share: float
    doubling_ratio: Estimate | None  # None if some resample has no regret at all in (T/4, T/2]
    exploring: Estimate  # the part of the regret at T that was paid on explored steps
    final: Estimate  # regret at T
    final_by_run: tuple[float, ...]
    regret: tuple[Estimate, ...]  # at the checkpoints


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The settings, the world they led to, and what every policy did in it."""

    settings: Settings
    world: FigureA
    findings: tuple[Finding, ...]


def run(settings: Settings, say: Callable[[str], None]) -> Demo:
    """Play every p and the uniform policy, and tell `say` about each as it ends.

    Examples
    --------
    >>> demo = run(Settings(horizon=200, runs=2, p=(12,)), say=lambda _: None)
    >>> [finding.policy for finding in demo.findings]
    ['p = 12', 'uniform']
    """
    world = FigureA.draw(np.random.default_rng(settings.seed), n_arms=N_ARMS, dim=DIM)
    players: list[Player] = [*(ContextualEpsilonGreedy(p=p) for p in settings.p), Uniform()]
    findings = []
    for player in players:
        start = time.perf_counter()
        findings.append(_measure(player, world, settings))
        seconds = time.perf_counter() - start
        say(f"{findings[-1].policy}: {settings.runs} runs of {settings.horizon:,} steps in {seconds:.1f} s")
    return Demo(settings=settings, world=world, findings=tuple(findings))


def _measure(player: Player, world: FigureA, settings: Settings) -> Finding:
    """Let one policy play all runs, and keep what is reported."""
    p = float(player.p) if isinstance(player, ContextualEpsilonGreedy) else None
    steps, weights = settings.checkpoints(), _resamples(settings)
    runs = [_play(player, world, settings, index) for index in range(settings.runs)]
    regret = np.array([at_steps for at_steps, _, _ in runs])  # (runs, checkpoints)
    quarter, half, end = (regret[:, np.searchsorted(steps, settings.horizon // k)] for k in (4, 2, 1))
    curve = tuple(_estimate(column, weights) for column in regret.T)
    return Finding(
        policy="uniform" if p is None else f"p = {p:.12g}",
        p=p,
        explored_share=float(np.mean([share for _, _, share in runs])),
        doubling_ratio=_estimate_ratio(end - half, half - quarter, weights),
        exploring=_estimate(np.array([paid for _, paid, _ in runs]), weights),
        final=curve[-1],
        final_by_run=tuple(end.tolist()),
        regret=curve,
    )


def _play(player: Player, world: FigureA, settings: Settings, index: int) -> tuple[Float64, float, float]:
    """Play one run: regret at the checkpoints, regret paid on explored steps, share of explored steps."""
    contexts, rewards, seed = _stream(world, settings, index)
    start = player.init(world.n_arms, world.dim)
    out = kernel.rollout(contexts, rewards, start=start, rule=player.rule(), seed=seed)
    gaps = np.take_along_axis(_losses(world, contexts), out.arms[:, None], axis=1)[:, 0]
    paid = gaps[out.explored].sum()
    return gaps.cumsum()[settings.checkpoints() - 1], float(paid), float(out.explored.mean())


def _stream(world: FigureA, settings: Settings, index: int) -> tuple[Float64, Float64, int]:
    """Give the contexts, the rewards and the policy's seed of one run, the same for every policy."""
    seeds = [np.random.SeedSequence(settings.seed, spawn_key=(index, part)) for part in range(3)]
    contexts = world.contexts(np.random.default_rng(seeds[0]), settings.horizon)
    rewards = world.rewards(np.random.default_rng(seeds[1]), contexts)
    return contexts, rewards, int(seeds[2].generate_state(1, np.uint64)[0])


def _losses(world: FigureA, contexts: Float64) -> Float64:
    """Give what every arm loses against the best one in every context, in expectation: (n, K)."""
    mu = world.means(contexts)
    best: Float64 = mu.max(axis=1, keepdims=True)
    return best - mu


def _resamples(settings: Settings) -> Float64:
    """Give each run's weight in each bootstrap resample, the same for all policies: (resamples, runs)."""
    n = settings.runs
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(n,)))
    return rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n


def _estimate(values: Float64, weights: Float64) -> Estimate:
    """Give the mean of one value per run, and its interval."""
    low, high = np.quantile(weights @ values, [0.025, 0.975])
    return Estimate(float(values.mean()), float(low), float(high))


def _estimate_ratio(above: Float64, below: Float64, weights: Float64) -> Estimate | None:
    """Give the ratio of two means over runs, and its interval; None where the ratio is not defined."""
    divisors = weights @ below
    if divisors.min() <= 0:
        return None
    low, high = np.quantile(weights @ above / divisors, [0.025, 0.975])
    return Estimate(float(above.mean() / below.mean()), float(low), float(high))


def describe(demo: Demo) -> list[str]:
    """Say what was seen, in numbers that this run computed.

    Examples
    --------
    >>> print(describe(run(Settings(horizon=200, runs=2, p=(12,)), say=lambda _: None))[-2])
    <BLANKLINE>
    Least mean regret at T: p = 12.
    """
    settings, gaps = demo.settings, _losses(demo.world, demo.world.support())
    rows = [
        f"{f.policy:10}{f'{f.final:,.0f}':>34}{f.exploring.value:>19,.0f}{f.explored_share:>12.2%}"
        for f in demo.findings
    ]
    return [
        f"Figure (a), {N_ARMS} arms: {settings.runs} runs of T = {settings.horizon:,} steps with one theta, "
        f"the first draw from seed {settings.seed}.",
        f"A random arm costs {gaps.mean():.3f} a step on average; the smallest gap to a best arm is "
        f"{gaps[gaps > 0].min():.3f}. Intervals are bootstraps over runs.",
        f"\n{'':10}{'regret R(T) [95 % interval]':>34}{'paid exploring':>19}{'explored':>12}",
        *rows,
        "\n[R(T) - R(T/2)] / [R(T/2) - R(T/4)] is 1 if regret grows as log t, 1.41 as sqrt t, 2 as t:",
        *(f"  {found.policy}: {growth(found.doubling_ratio)}" for found in demo.findings),
        "\n" + _compare(demo.findings, _resamples(settings)),
        "One theta and one horizon: others may rank the values of p otherwise.",
    ]


def growth(ratio: Estimate | None) -> str:
    """Put a doubling ratio into words, chosen by which rates its interval contains.

    Examples
    --------
    >>> growth(Estimate(1.05, 0.97, 1.12))
    '1.05 [0.97 to 1.12], consistent with logarithmic growth'
    >>> growth(Estimate(1.2, 1.1, 1.3))
    '1.20 [1.10 to 1.30], between logarithmic and square-root growth'
    """
    if ratio is None:
        return "not defined, too little regret after T/4"
    below = [name for name, rate in RATES.items() if rate < ratio.low]
    above = [name for name, rate in RATES.items() if rate > ratio.high]
    if inside := classify(ratio):
        words = f"consistent with {' or '.join(inside)}"
    elif below and above:
        words = f"between {below[-1]} and {above[0]}"
    else:
        words = f"slower than {above[0]}" if above else f"faster than {below[-1]}"
    return f"{ratio:.2f}, {words} growth"


def _compare(findings: Sequence[Finding], weights: Float64) -> str:
    """Say which p had the least regret at T, and whether the runs tell it from the next."""
    best, *others = sorted((f for f in findings if f.p is not None), key=lambda found: found.final.value)
    line = f"Least mean regret at T: {best.policy}."
    if others:
        more = _estimate(np.subtract(others[0].final_by_run, best.final_by_run), weights)
        verdict = "tell" if more.low > 0 else "cannot tell"
        line += f" {others[0].policy} paid {more:,.0f} more: these runs {verdict} the two apart."
    return line


def save(demo: Demo, out: Path) -> list[Path]:
    """Write the figures as JSON and the plot as SVG and PNG; the same demo gives the same bytes."""
    record = {"armlet": __version__, "checkpoints": demo.settings.checkpoints().tolist(), **asdict(demo)}
    path = out / "demo.json"
    path.write_text(json.dumps(record, indent=1, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
    return [*_draw(demo, out), path]


def _draw(demo: Demo, out: Path) -> list[Path]:
    """Plot regret against log t with its intervals: a logarithmic tail is a straight line."""
    import matplotlib as mpl  # heavy, and only this function needs it
    from matplotlib.figure import Figure

    steps = demo.settings.checkpoints()
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes = figure.subplots()
    for index, found in enumerate(demo.findings):
        mean, low, high = np.array([(e.value, e.low, e.high) for e in found.regret]).T
        colour, style = (COLOURS[index % 6], DASHES[index % 4]) if found.p else ("#555555", ":")
        axes.plot(steps, mean, color=colour, linestyle=style, linewidth=2, label=found.policy)
        axes.fill_between(steps, low, high, color=colour, alpha=0.2, linewidth=0)
    # the uniform policy soon leaves the frame, or the others would be flat lines at the bottom
    top = max(found.final.high for found in demo.findings if found.p is not None)
    axes.set(xscale="log", xlim=(1, steps[-1]), ylim=(0, 1.08 * top))
    title = f"Algorithm 1 on Figure (a): mean of {demo.settings.runs} runs, 95 % bootstrap bands"
    axes.set(title=title, xlabel="step t (log scale)", ylabel="cumulative regret R(t)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    svg, png = out / "demo.svg", out / "demo.png"
    with mpl.rc_context({"svg.hashsalt": "armlet"}):  # no random ids, no date: the same bytes every time
        figure.savefig(svg, metadata={"Date": None})
    figure.savefig(png, dpi=160)
    return [svg, png]


def main(settings: Settings, folder: str | os.PathLike[str]) -> None:
    """Run the demonstration, write its files into the folder, and print what was seen."""
    if importlib.util.find_spec("matplotlib") is None:  # better now than after the computation
        raise ModuleNotFoundError("plots need matplotlib; pip install 'armlet[bench]'", name="matplotlib")
    (out := Path(folder)).mkdir(parents=True, exist_ok=True)
    demo = run(settings, say=lambda line: print(line, file=sys.stderr, flush=True))
    written = ", ".join(map(str, save(demo, out)))
    print("", *describe(demo), f"Written: {written}", sep="\n")
