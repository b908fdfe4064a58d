"""Handwritten digits as a bandit: a picture is a context, the ten digits are the arms, and the right one pays 1.

A policy learns what it guessed and whether that was right, never what would have been. Needs scikit-learn for the
pictures, and matplotlib for the figure:

    python examples/digits.py                # prints the table
    python examples/digits.py digits.svg     # and draws mean reward over time
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
GREY = "#808080"  # is seen on light pages and on dark ones


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
    curves = {
        name: np.mean([play(policy, order, seed) for seed, order in enumerate(orders)], axis=0)
        for name, policy in POLICIES.items()
    }
    print(f"{rows} pictures, {shuffles} orders: mean reward, and that of the last 500 steps")
    for name, curve in curves.items():
        print(f"  {name}: {curve.mean():.3f}, {curve[-500:].mean():.3f}")
    if out is not None:
        draw(curves, out)
    return {name: float(curve.mean()) for name, curve in curves.items()}


def draw(curves: dict[str, npt.NDArray[np.float64]], out: Path) -> None:
    """Draw the mean reward up to each step."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "digits"  # the same file every time
    mpl.rc("text", color=GREY)
    mpl.rc("axes", labelcolor=GREY, edgecolor=GREY, facecolor="none")
    mpl.rc("xtick", color=GREY)
    mpl.rc("ytick", color=GREY)
    mpl.rc("figure", facecolor="none")
    mpl.rc("legend", facecolor="none")
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        axes.plot(np.cumsum(curve) / np.arange(1, len(curve) + 1), label=name)
    axes.set(xlabel="pictures", ylabel="mean reward so far", ylim=(0, 1))
    axes.legend(loc="lower right")
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main(out=Path(sys.argv[1]) if len(sys.argv) > 1 else None)
