"""What the worker asks of a policy: play some steps, and say how many bytes its state takes.

A policy writes its own loop, so that nothing of the harness stands between two steps: every loop is
`for x, reward in zip(...)`, decides for x, and learns `reward[arm]`. Whatever the library needs x turned into
(text, a dict, a matrix of one row) is made inside the loop.
"""

from abc import ABC, abstractmethod

import numpy as np

from stream import Contexts, Rewards


class Policy(ABC):
    """A library's bandit behind the loop that a user would write around it."""

    @abstractmethod
    def play(self, contexts: Contexts, rewards: Rewards) -> None:
        """Decide and learn once for each context."""

    def warm(self, contexts: Contexts, rewards: Rewards) -> None:
        """Bring the state forward without being timed; the same steps unless a quicker way exists."""
        self.play(contexts, rewards)

    @abstractmethod
    def state_bytes(self) -> int:
        """Bytes that the learned state holds: arrays where it lives in arrays, else the model file."""


def array_bytes(root: object) -> int:
    """Sum the bytes of all distinct numpy arrays that can be reached from `root`."""
    seen: set[int] = set()
    pending, total = [root], 0
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            total += item.nbytes
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list | tuple | set):
            pending.extend(item)
        elif hasattr(item, "__dict__") and not isinstance(item, type):
            pending.extend(vars(item).values())
    return total
