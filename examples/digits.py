"""Handwritten digits as a bandit: a picture is a context, the ten digits are the arms, and the right one pays 1.

A policy learns what it guessed and whether that was right, never what would have been. Needs scikit-learn for the
pictures, and matplotlib for the figure:

    python examples/digits.py                # prints the table
    python examples/digits.py digits.svg     # and draws the share of right guesses over time
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits  # type: ignore[import-untyped]

import armlet
from armlet.types import Policy

POLICIES: dict[str, Policy | None] = {
    "the default": None,
    "AutoEpsilonGreedy": armlet.AutoEpsilonGreedy(),
    "Greedy": armlet.Greedy(),
}
COLOURS = {"ink": "#101010", "paper": "#fefefe", "first": "#0b6e69", "second": "#a8480f", "third": "#5b4b9e"}
LABELS = {"the default": 0.955, "Greedy": 0.885}  # their lines end close to each other
DARK = {"ink": "#e8eeed", "paper": "#15191a", "first": "#5cc8bf", "second": "#f2a56c", "third": "#b3a5f5"}


def play(policy: Policy | None, order: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.float64]:
    """Guess every picture once, in an order; give the reward of each step."""
    X, digits = load_digits(return_X_y=True)
    bandit = armlet.Bandit(range(10), X.shape[1], policy=policy, seed=seed)
    rewards = np.zeros(len(order))
    for step, row in enumerate(order):
        decision = bandit.decide(X[row])
        rewards[step] = float(decision.arm == digits[row])
        bandit.learn(decision, rewards[step])
    return rewards


def main(shuffles: int = 5, out: Path | None = None) -> dict[str, float]:
    """Play some orders of the pictures, the same for all policies; give each policy's mean reward."""
    rows = len(load_digits().target)
    orders = [np.random.default_rng(seed).permutation(rows) for seed in range(shuffles)]
    runs = {
        name: np.array([play(policy, order, seed) for seed, order in enumerate(orders)])
        for name, policy in POLICIES.items()
    }  # (orders, steps)
    print(f"{rows} pictures, {shuffles} orders: mean reward, and that of the last 500 steps")
    for name, rewards in runs.items():
        print(f"  {name}: {rewards.mean():.3f}, {rewards[:, -500:].mean():.3f}")
    if out is not None:
        draw(runs, out)
    return {name: float(rewards.mean()) for name, rewards in runs.items()}


def draw(runs: dict[str, npt.NDArray[np.float64]], out: Path) -> None:
    """Draw the share of right guesses in the last 100: its mean over the orders, and the range of these."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    ink, paper = COLOURS["ink"], COLOURS["paper"]
    mpl.rcParams.update({"svg.hashsalt": "digits", "svg.fonttype": "none", "font.size": 12, "text.color": ink})
    mpl.rcParams.update({"axes.labelcolor": ink, "axes.edgecolor": ink, "xtick.color": ink, "ytick.color": ink})
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    figure = Figure(figsize=(7, 3.8), layout="constrained", facecolor=paper)
    axes = figure.subplots()
    axes.set_facecolor(paper)
    styles = zip(("first", "second", "third"), ("-", "--", ":"), runs.items(), strict=True)
    for colour, dashes, (name, rewards) in styles:
        right = np.array([np.convolve(row, np.ones(100) / 100, mode="valid") for row in rewards])[:, ::10]
        steps = np.arange(100, rewards.shape[1] + 1, 10)
        axes.fill_between(steps, right.min(axis=0), right.max(axis=0), color=COLOURS[colour], alpha=0.18, linewidth=0)
        axes.plot(steps, right.mean(axis=0), dashes, color=COLOURS[colour], linewidth=2.2)
        axes.text(steps[-1] + 20, LABELS.get(name, right[:, -1].mean()), name, color=COLOURS[colour])
    axes.set(xlabel="pictures seen", ylim=(0, 1), xlim=(0, 2250), xticks=range(0, 1801, 300))
    axes.set_title("Right, of the last 100 guesses: mean and range of all orders", loc="left", fontsize=12)
    axes.spines["bottom"].set_bounds(0, 1800)
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    figure.savefig(out, metadata={"Date": None})
    out.write_text(two_schemes(out.read_text()))


def two_schemes(svg: str) -> str:
    """Let the colours of a figure follow the scheme of the reader's system, light or dark."""
    light, dark = ("".join(f"--{name}: {colour}; " for name, colour in each.items()) for each in (COLOURS, DARK))
    style = f"<style>svg {{ {light}}} @media (prefers-color-scheme: dark) {{ svg {{ {dark}}} }}</style>"
    for name, colour in COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    head, tag, rest = svg.partition(' version="1.1">')
    return f"{head}{tag}\n {style}{rest}"


if __name__ == "__main__":
    main(out=Path(sys.argv[1]) if len(sys.argv) > 1 else None)
