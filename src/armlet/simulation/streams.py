"""The randomness of one run: contexts, noise and the policy's coins, each a stream of its own.

They follow from the number of the run, not from the policy, so all policies meet the same contexts and noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from armlet.parallel.seeds import Seeds


class Streams(NamedTuple):
    """What a run draws from where the world is drawn by numpy."""

    contexts: np.random.Generator
    noise: np.random.Generator
    coins: int  # the policy's seed


def of_run(seeds: Seeds, *run: int | str) -> Streams:
    """Give the streams of a run by its number, or by whatever tells it from the others of its place.

    Examples
    --------
    >>> of_run(Seeds(1), 0).coins == of_run(Seeds(1), 0).coins, of_run(Seeds(1), 0).coins == of_run(Seeds(1), 1).coins
    (True, False)
    """
    return Streams(seeds.rng("contexts", *run), seeds.rng("noise", *run), _coins(seeds, run))


def of_table(seeds: Seeds, *run: int | str) -> tuple[int, int]:
    """Give the seeds of the world and of the policy where the kernel draws a world that is a table.

    Examples
    --------
    >>> of_table(Seeds(1), 0)[1] == of_run(Seeds(1), 0).coins
    True
    """
    return seeds.seed("table", *run), _coins(seeds, run)


def _coins(seeds: Seeds, run: tuple[int | str, ...]) -> int:
    return seeds.seed("coins", *run)
