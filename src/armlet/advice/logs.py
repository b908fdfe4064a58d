"""A log on disk as a pilot. O(N d^2)."""

from __future__ import annotations

import os
from pathlib import Path

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
    return pilot, flags.notes
