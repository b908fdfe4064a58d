"""What forgetting costs where nothing changes, and saves where something does: regret with and without a discount.

    python benchmarks/drift.py                                # 20 seeds of 100,000 steps: a few minutes of one core
    python benchmarks/drift.py --figure docs/figures/drift.svg
    python benchmarks/drift.py --seeds 7100-7103 --steps 20000 --only still sleeper
    python benchmarks/drift.py --half-lives --seeds 9310-9319 --steps 60000  # which half-life: two minutes
    python benchmarks/drift.py --cost                         # instructions of a step, by valgrind: three minutes

Six arms, contexts of three values on the unit sphere, noise of deviation 1. "still": nothing changes. "redrawn": eight
times one arm gets another parameter. "exchange": all arms exchange theirs four times. "turn": all turn once round,
slowly. "sleeper": one arm is the worst by far, and half-way becomes the best of all by 2 on average. Then the two
simulations of Russac, Vernade and Cappe (2019): 6,000 steps, one parameter on the unit circle that jumps thrice, or
moves along a quarter of it within the first half and stays, 50 actions a step, noise of deviation 1; there LinUCB and
D-LinUCB have the radius of the paper, and its discount, 1 - (B / (d T))^(2/3) with B how far the parameter moves.
Policies have their defaults but for the discount. No constant was chosen by these figures, on any seeds.
Regret is the sum of expected losses against the best arm of each step. Intervals are 95 %, of the mean over seeds.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import armlet
from armlet.environments import Drifting
from armlet.inference.intervals import t_quantile
from armlet.kernel import rollout
from armlet.types import Float64, Policy

N_ARMS, DIM = 6, 3
LONG, SHORT = 1 - 1 / 5000, 1 - 1 / 1000
POLICIES: dict[str, Policy] = {
    "LinUCB": armlet.LinUCB(),
    "LinUCB, 1 - 1/5000 (D-LinUCB)": armlet.LinUCB(discount=LONG),
    "LinUCB, 1 - 1/1000 (D-LinUCB)": armlet.LinUCB(discount=SHORT),
    "Thompson sampling": armlet.ThompsonSampling(),
    "Thompson sampling, 1 - 1/5000 (D-LinTS)": armlet.ThompsonSampling(discount=LONG),
    "Thompson sampling, 1 - 1/1000 (D-LinTS)": armlet.ThompsonSampling(discount=SHORT),
    "the default": armlet.OccasionalOptimism(),
    "the default, 1 - 1/5000": armlet.OccasionalOptimism(discount=LONG),
    "the default, 1 - 1/1000": armlet.OccasionalOptimism(discount=SHORT),
    "greedy": armlet.Greedy(),
    "greedy, 1 - 1/1000": armlet.Greedy(discount=SHORT),
}
Means = Callable[[np.random.Generator, Float64, int], Float64]


def still(rng: np.random.Generator, X: Float64, _: int) -> Float64:
    return Drifting.draw(rng, n_arms=N_ARMS, dim=DIM, turn=0.0).means(X)


def redrawn(rng: np.random.Generator, X: Float64, steps: int) -> Float64:
    theta = rng.standard_normal((N_ARMS, DIM))
    means, ends = np.zeros((steps, N_ARMS)), [*sorted(rng.choice(steps, 8, replace=False)), steps]
    start = 0
    for end in ends:
        means[start:end] = X[start:end] @ theta.T
        theta[rng.integers(N_ARMS)] = rng.standard_normal(DIM)
        start = end
    return means


def exchange(rng: np.random.Generator, X: Float64, steps: int) -> Float64:
    jumps = tuple(range(steps // 5 + 1, steps, steps // 5))
    return Drifting.draw(rng, n_arms=N_ARMS, dim=DIM, turn=0.0, jumps=jumps).means(X)


def turn(rng: np.random.Generator, X: Float64, steps: int) -> Float64:
    return Drifting.draw(rng, n_arms=N_ARMS, dim=DIM, turn=2 * math.pi / steps).means(X)


def sleeper(rng: np.random.Generator, X: Float64, steps: int) -> Float64:
    means = still(rng, X, steps)
    means[:, 0] = means[:, 1:].min(axis=1).mean() - 1.0
    means[steps // 2 :, 0] = means[steps // 2 :, 1:].max(axis=1).mean() + 2.0
    return means


ENVIRONMENTS: dict[str, Means] = {
    "still": still,
    "redrawn": redrawn,
    "exchange": exchange,
    "turn": turn,
    "sleeper": sleeper,
}


def regrets(name: str, seed: int, steps: int, points: int = 100) -> dict[str, Float64]:
    """Play all policies in one draw of an environment: each one's regret at evenly spaced steps."""
    rng = np.random.default_rng([seed, list(ENVIRONMENTS).index(name)])
    X = rng.standard_normal((steps, DIM))
    X = np.ascontiguousarray(X / np.linalg.norm(X, axis=1, keepdims=True))
    means = ENVIRONMENTS[name](rng, X, steps)
    rewards = means + rng.standard_normal(means.shape)
    best, at = means.max(axis=1), np.arange(1, points + 1) * steps // points - 1
    out = {}
    for label, policy in POLICIES.items():
        start, rule = policy.init(N_ARMS, DIM), policy.rule()
        run = rollout(X, rewards, start=start, rule=rule, seed=seed, propensities="skipped")  # type: ignore[type-var]
        out[label] = np.cumsum(best - means[np.arange(steps), run.arms])[at]
    return out


# ---- which half-life: all arms turn at a steady rate, once round in so many steps

PERIODS = (6_000, 20_000, 60_000)
HALF_LIVES = (60, 125, 250, 500, 1000, 2000, 4000, None)
FORGETTING: dict[str, Callable[[int | None], Policy]] = {
    "the default": lambda half_life: armlet.OccasionalOptimism(half_life=half_life),
    "LinUCB": lambda half_life: armlet.LinUCB(half_life=half_life),
}


def turning_loss(policy: Policy, period: int, seed: int, steps: int) -> float:
    """Return the regret of a step, on average, in a draw of "turn" with this period."""
    rng = np.random.default_rng([seed, period])
    X = rng.standard_normal((steps, DIM))
    X = np.ascontiguousarray(X / np.linalg.norm(X, axis=1, keepdims=True))
    means = Drifting.draw(rng, n_arms=N_ARMS, dim=DIM, turn=2 * math.pi / period).means(X)
    rewards = means + rng.standard_normal(means.shape)
    start, rule = policy.init(N_ARMS, DIM), policy.rule()
    run = rollout(X, rewards, start=start, rule=rule, seed=seed, propensities="skipped")  # type: ignore[type-var]
    return float((means.max(axis=1) - means[np.arange(steps), run.arms]).mean())


def show_half_lives(seeds: Sequence[int], steps: int, periods: Sequence[int]) -> None:
    columns = [(name, period) for name in FORGETTING for period in periods]
    print("| half-life | " + " | ".join(f"{name}, {period:,}" for name, period in columns) + " |")
    print("|--:|" + "--:|" * len(columns))
    for half_life in HALF_LIVES:
        cells = []
        for name, period in columns:
            losses = [turning_loss(FORGETTING[name](half_life), period, seed, steps) for seed in seeds]
            cells.append(interval(losses, ".3f"))
        print(f"| {half_life or 'none'} | " + " | ".join(cells) + " |", flush=True)


# ---- the cost in time: instructions of a step, which no load of the machine changes

SIZES = ((6, 3), (32, 32))  # arms, features
WARM, COUNTED = 1000, 1000  # steps
COUNTER = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void stop(const char* label) { CALLGRIND_DUMP_STATS_AT(label); CALLGRIND_STOP_INSTRUMENTATION; }
"""


def count_steps(counter: Path) -> None:
    """Play `decide` and `learn` of a bandit in memory, under callgrind, which writes a file for each configuration."""
    library = ctypes.CDLL(str(counter))
    for name, (n_arms, dim), half_life in itertools.product(FORGETTING, SIZES, (None, 250, 1000)):
        bandit = armlet.Bandit(range(n_arms), dim, policy=FORGETTING[name](half_life), seed=1)
        rng = np.random.default_rng(1)
        X, rewards = rng.standard_normal((WARM + COUNTED, dim)), rng.standard_normal(WARM + COUNTED).tolist()
        rows = list(X)
        for t in range(WARM):
            bandit.learn(bandit.decide(rows[t]), rewards[t])
        library.start()
        for t in range(WARM, WARM + COUNTED):
            bandit.learn(bandit.decide(rows[t]), rewards[t])
        library.stop(f"{name}|{n_arms}|{dim}|{half_life}".encode())


def show_cost() -> None:
    """Run this file again under callgrind, and print instructions a step."""
    with tempfile.TemporaryDirectory() as folder:
        source, counter = Path(folder, "counter.c"), Path(folder, "counter.so")
        source.write_text(COUNTER)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", counter, source], check=True)
        options = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out"]
        subprocess.run(["valgrind", "-q", *options, sys.executable, __file__, "--count", counter], check=True)
        steps: dict[tuple[str, ...], float] = {}
        for file in Path(folder).glob("out.*"):
            text = file.read_text()
            label, total = (
                re.search(r"Client Request: (.*)", text),
                re.search(r"^(?:totals|summary): (\d+)", text, re.M),
            )
            if label and total:
                steps[tuple(label[1].split("|"))] = int(total[1]) / COUNTED
    print("| policy | arms, features | instructions a step | half_life=1000 | half_life=250 |\n|---|--:|--:|--:|--:|")
    for name, (n_arms, dim) in itertools.product(FORGETTING, SIZES):
        plain, short, long = (steps[name, str(n_arms), str(dim), each] for each in ("None", "250", "1000"))
        print(f"| {name} | {n_arms}, {dim} | {plain:,.0f} | {long / plain:.2f} | {short / plain:.2f} |")


# ---- the simulations of the paper: one parameter, many actions

HORIZON, ACTIONS = 6000, 50


def circle(turns: Float64) -> Float64:
    return np.stack([np.cos(turns), np.sin(turns)], axis=1)


def jumping() -> Float64:
    quarters = np.array([0.0, 2.0, 1.0, 3.0])[np.minimum(np.arange(HORIZON) // 1000, 3)]
    return circle(quarters * math.pi / 2)


def moving() -> Float64:
    return circle(np.minimum(np.arange(HORIZON) / 3000, 1.0) * math.pi / 2)


PAPER = {"jumps": jumping, "moves": moving}


def radius(t: int, gamma: float) -> float:
    """Return beta of the paper's theorem, with |x| <= 1, |theta| <= 1, ridge 1 and delta = 1 / T; gamma = 1: OFUL's."""
    rows = t if gamma == 1.0 else (1 - gamma ** (2 * t)) / (1 - gamma**2)
    return 1.0 + math.sqrt(2 * math.log(HORIZON) + 2 * math.log(1 + rows / 2))


def paper_regret(theta: Float64, gamma: float, seed: int) -> float:
    """Play LinUCB, with a discount below 1, with one model over the features of actions."""
    policy = armlet.LinUCB(units="as given", discount=None if gamma == 1.0 else gamma)
    state, rng, regret = policy.init(1, 2), np.random.default_rng(seed), 0.0
    for t in range(1, HORIZON + 1):
        actions = circle(rng.uniform(0, 2 * math.pi, ACTIONS))
        state.as_of(t)
        theta_hat, beta = state.estimates()[0], radius(t, gamma)
        bounds = [x @ theta_hat + beta * state.widths(x)[0] for x in actions]
        chosen, means = actions[int(np.argmax(bounds))], actions @ theta[t - 1]
        state.add(0, chosen, float(chosen @ theta[t - 1] + rng.standard_normal()), t=t)
        regret += float(means.max() - chosen @ theta[t - 1])
    return regret


def paper_gamma(theta: Float64) -> float:
    moved = float(np.linalg.norm(np.diff(theta, axis=0), axis=1).sum())
    return 1.0 - float((moved / (2 * HORIZON)) ** (2 / 3))


# ---- tables and the figure


def interval(values: Sequence[float], digits: str = ",.0f") -> str:
    array = np.array(values)
    half = t_quantile(0.975, len(array) - 1) * array.std(ddof=1) / math.sqrt(len(array))
    return f"{array.mean():{digits}} ± {half:{digits}}"


def show(curves: dict[str, list[dict[str, Float64]]]) -> None:
    print("| policy | " + " | ".join(curves) + " |\n|---|" + "--:|" * len(curves))
    for label in POLICIES:
        cells = [interval([float(run[label][-1]) for run in runs]) for runs in curves.values()]
        print(f"| {label} | " + " | ".join(cells) + " |")


def show_paper(seeds: Sequence[int]) -> None:
    print(f"\n| {HORIZON:,} steps, {ACTIONS} actions | discount | LinUCB | D-LinUCB | ratio |\n|---|--:|--:|--:|--:|")
    for name, made in PAPER.items():
        theta = made()
        gamma = paper_gamma(theta)
        plain, discounted = ([paper_regret(theta, each, seed) for seed in seeds] for each in (1.0, gamma))
        ratio = np.mean(discounted) / np.mean(plain)
        print(f"| {name} | {gamma:.5f} | {interval(plain)} | {interval(discounted)} | {ratio:.2f} |", flush=True)


DRAWN = {
    "LinUCB": "LinUCB",
    "LinUCB, 1 - 1/1000 (D-LinUCB)": "LinUCB, discount 0.999",
    "the default": "the default",
    "the default, 1 - 1/1000": "the default, discount 0.999",
}
TITLES = {"still": "nothing changes", "turn": "all arms turn slowly", "sleeper": "the worst becomes the best"}


def draw(curves: dict[str, list[dict[str, Float64]]], steps: int) -> str:
    """Draw regret over time, with intervals, in three environments."""
    from armlet.report.drawing import drawing  # needs matplotlib
    from armlet.report.plots import line_style, short, svg

    with drawing(9.6, 3.6) as figure:
        for axes, (name, title) in zip(figure.subplots(1, len(TITLES)), TITLES.items(), strict=True):
            for place, (label, shown) in enumerate(DRAWN.items()):
                runs, style = np.stack([run[label] for run in curves[name]]), line_style(place)
                mean = runs.mean(axis=0)
                half = t_quantile(0.975, len(runs) - 1) * runs.std(axis=0, ddof=1) / math.sqrt(len(runs))
                t = np.arange(1, runs.shape[1] + 1) * steps / runs.shape[1]
                axes.plot(t, mean, label=shown, **style)
                axes.fill_between(t, mean - half, mean + half, color=style["color"], alpha=0.22, linewidth=0)
            axes.set_title(title, fontsize=11)
            axes.set(xlabel="step", xlim=(0, steps), ylim=(0, None), xticks=(0, steps // 2, steps))
            axes.xaxis.set_major_formatter(lambda value, _: short(value))
            axes.yaxis.set_major_formatter(lambda value, _: short(value))
        figure.axes[0].set_ylabel("regret")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return svg(figure, key="drift", alt="Regret over time with and without a discount, in three environments")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what a discount costs and saves.")
    parser.add_argument("--seeds", default="7000-7019", help="the first and the last")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", choices=[*ENVIRONMENTS, "paper"], help="some environments")
    parser.add_argument("--half-lives", action="store_true", help="which half-life, where arms turn; nothing else")
    parser.add_argument("--periods", type=int, nargs="+", default=PERIODS, help="in steps, for --half-lives")
    parser.add_argument("--cost", action="store_true", help="instructions of a step; nothing else; needs valgrind")
    parser.add_argument("--count", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--figure", type=Path, help="where to draw regret over time, as SVG")
    return parser.parse_args()


def show_discounts(given: argparse.Namespace, seeds: Sequence[int]) -> None:
    chosen = [name for name in ENVIRONMENTS if given.only is None or name in given.only]
    curves: dict[str, list[dict[str, Float64]]] = {}
    for name in chosen:
        curves[name] = [regrets(name, seed, given.steps) for seed in seeds]
        print(f"{name} is played", file=sys.stderr, flush=True)
    print(f"Regret of {given.steps:,} steps, seeds {given.seeds}\n")
    show(curves)
    if given.only is None or "paper" in given.only:
        show_paper(seeds)
    if given.figure is not None:
        given.figure.write_text(draw(curves, given.steps))


if __name__ == "__main__":
    given = parse()
    first, last = map(int, given.seeds.split("-"))
    seeds = range(first, last + 1)
    if given.count:
        count_steps(given.count)
    elif given.cost:
        show_cost()
    elif given.half_lives:
        show_half_lives(seeds, given.steps, given.periods)
    else:
        show_discounts(given, seeds)
