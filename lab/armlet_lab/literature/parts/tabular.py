"""What policies for finitely many contexts share: a table that is one for all contexts, or one for each.

With contexts="ignored" they are the context-free algorithms of their papers, which on a contextual problem can at best
find the arm that is best on average: a floor. With contexts="table" every distinct context is a problem of its own, and
regret grows with the number of contexts. A table looks a row up in O(d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armlet.inputs.checks import one_of, settle
from armlet.policies.base import BasePolicy
from armlet.policies.state import ContextUse, Table
from armlet.reference.refusals import check_counted
from armlet.types import Float64, Interaction, Memory, StateT


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabular(BasePolicy[StateT]):
    """The common part of such policies; not one by itself.

    Examples
    --------
    >>> from armlet.policies import UCB1
    >>> UCB1(contexts="tables")
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: contexts is 'tables'; choose 'ignored' or 'table'
    """

    contexts: ContextUse = "ignored"

    memory: ClassVar[Memory] = "grows with contexts"  # a single row if they are ignored

    def __post_init__(self) -> None:
        settle(self, contexts=one_of("ignored", "table"))


class Means(Table):
    """How often each arm was learned from in each context, and the sum of its rewards.

    Examples
    --------
    >>> state = Means(2, 1, "ignored")
    >>> state.add(Interaction(t=1, x=np.ones(1), arm=1, reward=0.5), 0.5, None)
    >>> state.means(np.ones(1))
    array([inf, 0.5])
    """

    def __init__(self, n_arms: int, dim: int, contexts: ContextUse) -> None:
        super().__init__(n_arms, dim, contexts=contexts, fields={"n": 0.0, "sum_r": 0.0}, additive=True)

    def add(self, interaction: Interaction, reward: float, replaces: float | None) -> None:
        """Add a row, take it back, or change its reward: all of them are sums."""
        i = interaction
        if replaces is not None or i.weight < 0.0:
            check_counted(float(self.read("n", i.x)[i.arm]), i.weight)
        row = self.write(i.x)
        row["sum_r"][i.arm] += i.weight * (reward - (replaces or 0.0))
        if replaces is None:
            row["n"][i.arm] += i.weight

    def means(self, x: Float64) -> Float64:
        """Return the mean reward of each arm, (K,): infinity for one without rows, so that it is tried first."""
        n, sum_r = self.read("n", x), self.read("sum_r", x)
        known = n > TRACE
        return np.where(known, sum_r / np.where(known, n, 1.0), np.inf)


class Levels(Table):
    """A table of which one field only means something relative to the other arms, such as a log-weight.

    A new arm starts at the mean of the others: at 0 it would be far ahead or far behind for no reason.

    Examples
    --------
    >>> state = Levels(2, 1, contexts="ignored", fields={"gain": 0.0}, level="gain")
    >>> state.write(np.ones(1))["gain"][:] = 4.0, 8.0
    >>> state.add_arm()
    >>> state.read("gain", np.ones(1))
    array([4., 8., 6.])
    """

    def __init__(
        self,
        n_arms: int,
        dim: int,
        *,
        contexts: ContextUse,
        fields: dict[str, float],
        level: str,
        additive: bool = False,
    ) -> None:
        super().__init__(n_arms, dim, contexts=contexts, fields=fields, additive=additive)
        self._level = level

    def add_arm(self) -> None:
        """Return every context one more arm, neither ahead nor behind."""
        super().add_arm()
        for row in self._rows:
            row[self._level][-1] = row[self._level][:-1].mean()


TRACE = 1e-9  # what rounding may leave of a count whose rows were all taken back
