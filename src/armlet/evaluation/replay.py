"""A policy that learns, on rows that another has played: what it would have earned (Li, Chu, Langford, Wang 2011).

Rows whose arms were drawn uniformly are walked in order. The policy decides with the coins of its next step; if it
plays the arm that was played, it learns the reward and the step is done, else the row is passed over. Its coins stay
the same until then: given those, the choice is a function of x, and each x is as likely to be accepted, so what it
sees is what it would have seen. Where the draw was weighted, a row is first kept with chance (smallest / that of its
arm), by a coin of its own. K rows a step, O(n) decisions in the kernel; memory holds one block and the accepted
rewards.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from armlet import kernel
from armlet.bandit import Bandit
from armlet.errors import LogError
from armlet.evaluation.drawn import Drawn, find_drawn
from armlet.evaluation.rows import Blocks, Rows, open_rows
from armlet.inference.intervals import Interval, Z, rough_t_quantile
from armlet.log.reader import Source
from armlet.parallel.seeds import Seeds
from armlet.policies.dispatch import compiled_rule
from armlet.types import Bool, Float64, Int64, Interaction, Policy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay:
    """What a policy would have earned while learning, and what it has learned."""

    bandit: Bandit
    """The trained bandit, its clock at the last step."""
    rewards: Float64
    """(steps,): what the accepted rows paid, in order."""
    t: Int64
    """(steps,): their steps in the log."""
    explored: Bool
    """(steps,): whether the policy that learns explored there."""
    rows: int
    """Rows of the log."""
    drawn: int
    """Those that were drawn whatever the context, and have a reward."""
    kept: int
    """Those that were kept so that all arms are as likely."""
    seed: int

    @property
    def accepted(self) -> int:
        """How many rows the policy would have played too: its steps."""
        return len(self.rewards)

    @property
    def mean(self) -> float:
        """Reward a step."""
        return float(self.rewards.mean())

    @property
    def interval(self) -> Interval | None:
        """Where the expected reward a step of this run lies, 95 % of the time; None if there is no saying.

        It is of the choices that this run made. Other rows would have taught other choices: replay several logs, or
        several seeds, to see by how much those differ.
        """
        return _interval(self.rewards)

    @property
    def curve(self) -> Float64:
        """(steps,): the mean reward up to each step."""
        return np.asarray(self.rewards.cumsum() / np.arange(1, self.accepted + 1))

    def __str__(self) -> str:
        found = self.interval
        between = "" if found is None else f" [{found.low:.4g} to {found.high:.4g}]"
        words = f"{self.accepted:,} {'step' if self.accepted == 1 else 'steps'} of {self.rows:,} rows"
        return f"{type(self.bandit.policy).__name__}: {self.mean:.4g}{between} a step, {words}"


def replay(log: Source | Blocks, policy: Policy, *, seed: int | None = None) -> Replay:
    """Let a policy learn from a log whose arms were drawn whatever the context, exactly as if it had run itself.

    Parameters
    ----------
    log
        A path or a log, of any origin: explored rows of a bandit's own; or rows of others, where each arm has one
        propensity throughout. Refused where contexts may have moved the draw.
    policy
        Any policy; it starts knowing nothing.
    seed
        Of its coins, and of those that keep a row; drawn at random if left out.

    Examples
    --------
    >>> import armlet
    >>> rng = np.random.default_rng(0)
    >>> X, arms = rng.normal(size=(3000, 2)), rng.integers(2, size=3000)
    >>> log = armlet.log.from_obp(
    ...     {"context": X, "action": arms, "reward": X[np.arange(3000), arms], "pscore": np.full(3000, 0.5)}
    ... )
    >>> found = replay(log, armlet.LinUCB(alpha=1.0), seed=1)
    >>> found.accepted, round(found.mean, 2)  # the best policy earns 0.564 in expectation
    (1506, 0.58)
    >>> found.bandit.predict([[2.0, -1.0]])
    array([0])
    """
    blocks = open_rows(log)
    drawn = find_drawn(blocks)
    chosen = secrets.randbits(127) if seed is None else seed
    bandit = Bandit(
        blocks.arms,
        blocks.dim,
        policy=policy,
        features=blocks.features,
        objective=blocks.objective,
        seed=chosen,
    )
    steps = _walk(blocks, drawn, bandit, Seeds(chosen, "replay").rng("kept"))
    if not len(steps.rewards):
        raise LogError(f"{type(policy).__name__} would have played none of the {steps.kept:,} rows that were drawn")
    return Replay(bandit=bandit, rows=blocks.n, seed=chosen, **steps._asdict())


class _Steps(NamedTuple):
    rewards: Float64
    t: Int64
    explored: Bool
    drawn: int
    kept: int


class _Learner(Protocol):
    state: Any

    def learn(self, rows: Rows, rewards: Float64, t: int) -> tuple[Int64, Bool]:
        """Give which rows were accepted, and which of those the learner explored."""


class _InKernel:
    def __init__(self, rule: kernel.Rule, state: Any, seed: int) -> None:
        self.state = state
        self._rule, self._seed = rule, seed

    def learn(self, rows: Rows, rewards: Float64, t: int) -> tuple[Int64, Bool]:
        X, allowed = np.ascontiguousarray(rows.X), None if rows.eligible.all() else rows.eligible
        how: Any = {"rule": self._rule, "seed": self._seed, "t": t, "eligible": allowed}
        found = kernel.replay(X, np.ascontiguousarray(rows.arm), rewards, start=self.state, **how)
        self.state = found.statistics
        return found.rows, found.explored


class _InPython:
    def __init__(self, policy: Policy, state: Any, seed: int) -> None:
        self.state = state
        self._policy, self._seed = policy, seed

    def learn(self, rows: Rows, rewards: Float64, t: int) -> tuple[Int64, Bool]:
        accepted: list[int] = []
        explored: list[bool] = []
        coins = kernel.coins(self._seed, t + 1)
        for i, (x, arm) in enumerate(zip(rows.X, rows.arm.tolist(), strict=True)):
            choice = self._policy.decide(self.state, t + 1, x, coins, rows.eligible[i])
            if choice.arm != arm:
                continue
            t += 1
            told = Interaction(
                t=t,
                x=x,
                arm=arm,
                reward=float(rewards[i]),
                propensity=choice.propensity,
                explored=choice.explored,
                tag=choice.tag,
            )
            self._policy.update(self.state, told)
            accepted.append(i)
            explored.append(choice.explored)
            coins = kernel.coins(self._seed, t + 1)
        return np.array(accepted, dtype=np.int64), np.array(explored, dtype=np.bool_)


def _learner(bandit: Bandit, seed: int) -> _Learner:
    policy = bandit.policy
    rule, state = compiled_rule(policy), policy.init(len(bandit.arms), bandit.dim)
    return _InPython(policy, state, seed) if rule is None else _InKernel(rule, state, seed)


def _walk(blocks: Blocks, drawn: Drawn, bandit: Bandit, coins: np.random.Generator) -> _Steps:
    """Let the bandit learn from the rows, block by block, and set its state and clock."""
    learner = _learner(bandit, bandit._seed)
    sign = -1.0 if blocks.objective == "min" else 1.0
    taken: list[tuple[Float64, Int64, Bool]] = []
    n_drawn = n_kept = t = 0
    for block in blocks:
        some = block.take(drawn.which(block))
        rows = some.take(coins.random(len(some)) < drawn.chances(some))
        at, explored = learner.learn(rows, sign * rows.reward, t)
        n_drawn, n_kept, t = n_drawn + len(some), n_kept + len(rows), t + len(at)
        taken.append((rows.reward[at], rows.t[at], explored))
    bandit._restore(learner.state, list(bandit.arms), 0)
    bandit.advance_to(t)
    rewards, steps, tried = (np.concatenate(column) for column in zip(*taken, strict=True))
    return _Steps(rewards, steps, tried, n_drawn, n_kept)


def _interval(rewards: Float64) -> Interval | None:
    n, mean = len(rewards), float(rewards.mean())
    if np.isin(rewards, (0.0, 1.0)).all():  # Wilson's: it has room where nobody has clicked yet
        middle, room = mean + Z * Z / (2 * n), Z * np.sqrt(mean * (1 - mean) / n + (Z / (2 * n)) ** 2)
        return Interval(*(float(end / (1 + Z * Z / n)) for end in (middle - room, middle + room)))
    if n < 3 or np.ptp(rewards) == 0.0:
        return None
    half = rough_t_quantile(n - 1) * float(rewards.std(ddof=1)) / n**0.5
    return Interval(mean - half, mean + half)
