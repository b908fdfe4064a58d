"""Figure (a) in numpy: the whole simulation as one would write it, three times, and the floor below any of them.

All three play Algorithm 1 with the same draws and come to the same regret. They differ in when they solve: before
every exploit step (`printed`), after explored steps only (`cached`), and that with all exploit steps between two
explorations taken at once by a table of the best arms (`stretches`), which only environments of few contexts allow.
The environment is drawn in blocks, which costs little next to the loop.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from armlet.environments.environment import FiniteEnvironment

Float64 = NDArray[np.float64]
BLOCK = 4096

Loop = Callable[[FiniteEnvironment, int, int, int], float]


class Draws(NamedTuple):
    """What some steps need of chance; a context is a row of the environment's table."""

    t: NDArray[np.int64]  # (n,)
    contexts: NDArray[np.int64]  # (n,)
    noise: Float64  # (n,): uniform on [0, 1), as the others
    coins: Float64  # (n,)
    picks: Float64  # (n,)


class Learner:
    """The sums of Algorithm 1, and the regret so far."""

    def __init__(self, environment: FiniteEnvironment, p: int) -> None:
        self.p, self.environment, self.losses = p, environment, environment.losses
        self.n_arms, dim = environment.means.shape[1], environment.contexts.shape[1]
        self.n = np.zeros(self.n_arms)
        self.A = np.zeros((self.n_arms, dim, dim))
        self.b = np.zeros((self.n_arms, dim))
        self.theta: NDArray[np.floating] = np.zeros((self.n_arms, dim))
        self.eye = np.eye(dim)
        self.regret = 0.0

    def explore(self, t: int, i: int, noise: float, pick: float) -> int:
        """Play an arm by turns up to step p and any arm later, and learn from what it pays."""
        arm = t % self.n_arms if t <= self.p else int(pick * self.n_arms)
        x = self.environment.contexts[i]
        self.n[arm] += 1
        self.A[arm] += x[:, None] * x
        self.b[arm] += self.environment.means[i, arm] * 2.0 * noise * x
        self.regret += self.losses[i, arm]
        return arm

    def solve(self, arm: int) -> None:
        """Estimate theta of one arm."""
        self.theta[arm] = np.linalg.solve(self.A[arm] + np.sqrt(self.n[arm]) * self.eye, self.b[arm])

    def solve_all(self) -> None:
        """Estimate theta of all arms, in one batched call: the faster way."""
        ridge = np.sqrt(self.n)[:, None, None] * self.eye
        self.theta = np.linalg.solve(self.A + ridge, self.b[:, :, None])[:, :, 0]


def blocks(environment: FiniteEnvironment, horizon: int, seed: int) -> Iterator[Draws]:
    rng = np.random.Generator(np.random.SFC64(seed))
    for start in range(0, horizon, BLOCK):
        n = min(BLOCK, horizon - start)
        contexts = rng.integers(0, len(environment.contexts), n)  # all equally likely in Figure (a)
        yield Draws(np.arange(start + 1, start + n + 1), contexts, *rng.random((3, n)))


def printed(environment: FiniteEnvironment, horizon: int, p: int, seed: int) -> float:
    """Solve for all arms before every exploit step, as Algorithm 1 is printed; return the regret."""
    learner = Learner(environment, p)
    for block in blocks(environment, horizon, seed):
        for t, i, noise, coin, pick in zip(*(part.tolist() for part in block), strict=True):
            if t <= p or coin < p / t:
                learner.explore(t, i, noise, pick)
            else:
                learner.solve_all()
                learner.regret += learner.losses[i, learner.theta.dot(environment.contexts[i]).argmax()]
    return float(learner.regret)


def cached(environment: FiniteEnvironment, horizon: int, p: int, seed: int) -> float:
    """Keep theta_hat and solve for an arm only when it was explored; return the regret."""
    learner, rows, losses = Learner(environment, p), list(environment.contexts), environment.losses.tolist()
    theta = learner.theta
    for block in blocks(environment, horizon, seed):
        for t, i, noise, coin, pick in zip(*(part.tolist() for part in block), strict=True):
            if t <= p or coin < p / t:
                learner.solve(learner.explore(t, i, noise, pick))
            else:
                learner.regret += losses[i][theta.dot(rows[i]).argmax()]
    return float(learner.regret)


def stretches(environment: FiniteEnvironment, horizon: int, p: int, seed: int) -> float:
    """Take the steps between two explorations at once, by the best arm of each context; return the regret."""
    learner, everywhere = Learner(environment, p), np.arange(len(environment.contexts))
    lost = environment.losses[:, 0]
    for block in blocks(environment, horizon, seed):
        done = 0
        for k in np.flatnonzero((block.t <= p) | (block.coins < p / block.t)).tolist():
            learner.regret += lost[block.contexts[done:k]].sum()
            arm = learner.explore(*(part[k].item() for part in (block.t, block.contexts, block.noise, block.picks)))
            learner.solve(arm)
            lost = environment.losses[everywhere, (environment.contexts @ learner.theta.T).argmax(axis=1)]
            done = k + 1
        learner.regret += lost[block.contexts[done:]].sum()
    return float(learner.regret)


def only_draw(steps: int) -> None:
    """Draw a context, a noise and a coin for every step, by the fastest generator that numpy has."""
    rng, kept = np.random.Generator(np.random.SFC64(1)), np.empty((3, BLOCK))
    for _ in range(steps // BLOCK):
        rng.random(out=kept)


def only_draw_philox(steps: int) -> None:
    """Draw as many Philox words as the kernel does: four coins a step, and one for its context."""
    np.random.Philox(1).random_raw(5 * steps, output=False)
