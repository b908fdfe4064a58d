"""Many contestants on the very same contexts and noise, which are drawn once for all of them.

O(T (d + K)) to draw a run, and O(T K d) for each contestant, in the kernel where its policy is compiled. Memory is
O(block (d + K)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from armlet.environments.environment import Environment, check_still
from armlet.kernel import AutoEvidence, AutoSchedule, AutoTunedStatistics, Rule
from armlet.parallel import Seeds
from armlet.policies.base import compiled_rule
from armlet.simulation.play import InKernel, InPython, draw, run_streams
from armlet.types import Float64, Policy


class Entry(NamedTuple):
    """A contestant: a rule of the kernel and its state at the start, or a policy that runs in Python."""

    rule: Rule | None
    start: Any  # a state that the kernel knows, or the policy

    @classmethod
    def of(cls, policy: Policy, environment: Environment) -> Entry:
        """Enter a policy as it is."""
        rule = compiled_rule(policy)
        return cls(rule, policy if rule is None else policy.init(environment.n_arms, environment.dim))

    def player(self, environment: Environment, coins: int) -> InKernel | InPython:
        """Make what plays it, with these coins."""
        if self.rule is None:
            return InPython(environment, self.start, coins)
        return InKernel(self.rule, self.start, coins)


class Run(NamedTuple):
    """One run of all contestants."""

    regret: Float64  # (n,)
    p: Float64  # (n,): the p that it ended with; NaN where it does not move
    random: float  # what playing at random loses


def play(environment: Environment, entries: Sequence[Entry], horizon: int, seeds: Seeds, *run: int | str) -> Run:
    """Play one run with every entry, all with the same coins; the numbers and names at the end say which run.

    Examples
    --------
    >>> from armlet import Algorithm1
    >>> from armlet.environments import FigureA
    >>> environment = FigureA(theta=((1.0, 0.0), (0.0, 1.0)))
    >>> entries = [Entry.of(Algorithm1(p=p), environment) for p in (4, 4, 1000)]
    >>> played = play(environment, entries, 1000, Seeds(1), 0)
    >>> bool(played.regret[0] == played.regret[1]), bool(played.regret[2] > played.regret[0])
    (True, True)
    """
    check_still(environment, "together.play")
    contexts, noise, coins = run_streams(seeds, *run)
    players = [entry.player(environment, coins) for entry in entries]
    regret, random = np.zeros(len(entries)), 0.0
    for _, X, rewards, losses in draw(environment, contexts, noise, horizon):
        random += float(losses.mean(axis=1).sum())
        for i, player in enumerate(players):
            regret[i] += losses[np.arange(len(X)), player.play(X, rewards)[0]].sum()
    return Run(
        regret, np.array([_p(entry.rule, player) for entry, player in zip(entries, players, strict=True)]), random
    )


def _p(rule: Rule | None, player: InKernel | InPython) -> float:
    if isinstance(player, InKernel) and isinstance(rule, (AutoSchedule, AutoEvidence)):
        state = player.state
        if isinstance(state, AutoTunedStatistics):
            return state.p(rule)
    return float("nan")
