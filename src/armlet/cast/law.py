"""The law of a step: with which probability each arm is played, over all coins that are thrown for it.

A mixture of laws, such as of a live policy and of a control that plays a share of the steps, is a law again:
P(a) = sum over i of s_i P_i(a). Cost: O(arms that it tells of).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import add
from typing import NamedTuple

from armlet.errors import InvalidTypeError
from armlet.kernel import Decision
from armlet.types import Arm


class Law(NamedTuple):
    """The distribution of what a step plays.

    Parameters
    ----------
    labels
        The arms that it tells of: all that have a chance, or the ones that were asked for.
    chances
        (k,): the probability of each, over all coins. They sum to 1 where all are told of.
    given
        Named parts of a step, such as "explore": with which probability a step is one.
    """

    labels: Sequence[Arm]
    chances: Sequence[float]
    given: Mapping[str, float]

    def chance(self, label: Arm) -> float:
        """Return the probability of an arm; 0 if the law does not tell of it."""
        return self.chances[self.labels.index(label)] if label in self.labels else 0.0

    def at(self, labels: Sequence[Arm]) -> Sequence[float]:
        """Return the probabilities of some arms."""
        if labels is self.labels:
            return self.chances
        if len(labels) == 1:  # as of most steps
            return (self.chance(labels[0]),)
        known = dict(zip(self.labels, self.chances, strict=True))
        return [known.get(label, 0.0) for label in labels]


def point(label: Arm) -> Law:
    """Return the law of a step that plays one arm in any case.

    Examples
    --------
    >>> point("a").chance("a"), point("a").chance("b")
    (1.0, 0.0)
    """
    return Law((label,), (1.0,), {})


def mix(parts: Sequence[tuple[str, float, Law]]) -> Law:
    """Return the law of a step that belongs to each of some parts with a probability; it tells of the first's labels.

    Parameters
    ----------
    parts
        A name, the probability of the part, and the law of the steps that belong to it.

    Examples
    --------
    >>> live = Law(("a", "b"), (0.9, 0.1), {"explore": 0.2})
    >>> law = mix([("live", 0.5, live), ("control", 0.5, point("b"))])
    >>> law.chances, law.given
    ([0.45, 0.55], {'live': 0.5, 'explore': 0.1, 'control': 0.5})
    """
    labels = parts[0][2].labels
    given: dict[str, float] = {}
    chances: list[float] = []
    for name, share, law in parts:
        given[name] = given.get(name, 0.0) + share
        for each, chance in law.given.items():
            given[each] = given.get(each, 0.0) + share * chance
        mine = [share * chance for chance in law.at(labels)]
        chances = [*map(add, chances, mine)] if chances else mine
    return Law(labels, chances, given)


def law_of(decision: Decision, labels: Sequence[Arm], asked: Arm | None = None) -> Law:
    """Return the law that a decision was made by, of all labels or of the one that is asked for."""
    rate = decision.exploration_rate
    given = {} if rate is None else {"explore": rate}
    if asked is not None and asked == decision.arm:
        return Law((asked,), (decision.propensity,), given)
    if decision.probabilities is None:
        raise InvalidTypeError(f"decision {decision.id} was made without the probabilities of all arms")
    return Law(labels, decision.probabilities.tolist(), given)
