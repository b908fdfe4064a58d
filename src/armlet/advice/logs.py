"""A log on disk as a pilot. O(N d^2)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from armlet.advice.pilot import Pilot
from armlet.log.tables import Roles, check_columns, flag_texts, labels, read_table


def read_pilot(path: str | os.PathLike[str], roles: Roles) -> tuple[Pilot, tuple[str, ...]]:
    """Read a log; give it as a pilot, with notes on how its columns were read."""
    table = read_table(Path(path))
    check_columns(table, Path(path).name, roles)
    flags = flag_texts(table, roles.features)
    pilot = Pilot.from_table(
        flags.table,
        features=flags.features,
        arm=roles.arm,
        reward=roles.reward,
        propensity=roles.propensity,
        arm_names=labels(table[roles.arm].type, roles.arm_names),
    )
    return pilot, (*flags.notes, *_without_constant(pilot))


def _without_constant(pilot: Pilot) -> tuple[str, ...]:
    """Warn if no weights of the features sum to the same in every row: the model then has no base level."""
    ones = np.ones(pilot.n_rows)
    weights = np.linalg.lstsq(pilot.X, ones, rcond=None)[0]
    if np.abs(pilot.X @ weights - ones).max() < 1e-6:
        return ()
    return (
        "the features hold no constant, so a reward is taken to be 0 on average where all of them are 0; "
        "if that is wrong, put 1 among --features, and a 1 into the bandit's contexts",
    )
