"""Many contestants on the very same contexts and noise, which are drawn once for all of them.

O(T (d + K)) to draw a run, and O(T K d) for each contestant, in the kernel. Memory is O(block (d + K)).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from armlet.environments.environment import Environment, check_still
from armlet.errors import InvalidValueError
from armlet.kernel import AutoEvidence, AutoSchedule, AutoTunedStatistics, Rule
from armlet.parallel import Seeds
from armlet.policies.base import compiled_rule
from armlet.simulation.play import InKernel, draw, run_streams
from armlet.types import Float64, Policy, State


class Entry(NamedTuple):
    """What takes part: a rule of the kernel, and what it knows at the start."""

    rule: Rule
    start: Any  # a state that the kernel knows

    @classmethod
    def of(cls, policy: Policy, environment: Environment) -> Entry:
        """Enter a compiled policy as it is."""
        rule = compiled_rule(policy)
        if rule is None:
            raise InvalidValueError(f"{type(policy).__name__} is not compiled, so it cannot play together with others")
        return cls(rule, policy.init(environment.n_arms, environment.dim))


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
    players = [InKernel(entry.rule, entry.start, coins) for entry in entries]
    regret, random = np.zeros(len(entries)), 0.0
    for _, X, rewards, losses in draw(environment, contexts, noise, horizon):
        random += float(losses.mean(axis=1).sum())
        for i, player in enumerate(players):
            regret[i] += losses[np.arange(len(X)), player.play(X, rewards)[0]].sum()
    return Run(regret, np.array([_p(e.rule, each.state) for e, each in zip(entries, players, strict=True)]), random)


def _p(rule: Rule, state: State) -> float:
    return (
        state.p(rule)
        if isinstance(rule, (AutoSchedule, AutoEvidence)) and isinstance(state, AutoTunedStatistics)
        else float("nan")
    )
