"""Streams of contexts and rewards that the tests share: ordinary ones, and the kind that break things."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from armlet.types import Float64

CONTEXTS = ("gaussian", "bits", "normalised bits", "few", "collinear", "mostly zero", "tiny", "huge")
REWARDS = ("gaussian", "clicks", "constant", "equal arms")


@dataclass(frozen=True)
class Stream:
    contexts: Float64  # (T, d)
    rewards: Float64  # (T, K)

    @property
    def dim(self) -> int:
        return int(self.contexts.shape[1])

    @property
    def n_arms(self) -> int:
        return int(self.rewards.shape[1])


def make_contexts(kind: str, steps: int, dim: int, rng: np.random.Generator) -> Float64:
    X: Float64 = rng.normal(size=(steps, dim))
    if kind in ("bits", "normalised bits"):
        X = rng.integers(0, 2, size=(steps, dim)).astype(np.float64)
    if kind == "normalised bits":
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    if kind == "few":
        X = X[rng.integers(0, min(3, steps), size=steps)]
    if kind == "collinear":
        X = rng.integers(-2, 3, size=(steps, 1)) * X[:1]
    if kind == "mostly zero":
        X[rng.random(steps) < 0.8] = 0.0
    return np.ascontiguousarray(X * {"tiny": 1e-12, "huge": 1e12}.get(kind, 1.0))


def make_rewards(kind: str, steps: int, n_arms: int, rng: np.random.Generator) -> Float64:
    R: Float64 = rng.normal(size=(steps, n_arms))
    if kind == "clicks":
        R = (R > 1).astype(np.float64)
    if kind == "constant":
        R = np.ones((steps, n_arms))
    if kind == "equal arms":
        R = np.repeat(R[:, :1], n_arms, axis=1)
    return R


def make_stream(
    steps: int, dim: int, n_arms: int, seed: int, contexts: str = "gaussian", rewards: str = "gaussian"
) -> Stream:
    rng = np.random.default_rng(seed)
    return Stream(make_contexts(contexts, steps, dim, rng), make_rewards(rewards, steps, n_arms, rng))


@st.composite
def streams(draw: st.DrawFn, max_dim: int = 40, max_arms: int = 30, work: int = 20_000) -> Stream:
    """Draw streams of any shape; long where they are small, so that each costs about the same."""
    dim, n_arms = draw(st.integers(1, max_dim)), draw(st.integers(1, max_arms))
    steps = draw(st.integers(1, max(10, min(300, work // (dim * n_arms)))))
    kinds = draw(st.sampled_from(CONTEXTS)), draw(st.sampled_from(REWARDS))
    return make_stream(steps, dim, n_arms, draw(st.integers(0, 2**32 - 1)), *kinds)
