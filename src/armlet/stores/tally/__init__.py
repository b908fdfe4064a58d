"""The tally of a loop: running sums of all that happens to it, which `stats`, `health` and `details` are made of."""

from armlet.stores.tally.catalogue import BaselineCounts
from armlet.stores.tally.outcomes import OutcomeCounts
from armlet.stores.tally.switches import UnitCounts
from armlet.stores.tally.tally import CHANGING, FAULTS, GAPS, LAST, ArmCounts, Source, Tally

__all__ = [
    "CHANGING",
    "FAULTS",
    "GAPS",
    "LAST",
    "ArmCounts",
    "BaselineCounts",
    "OutcomeCounts",
    "Source",
    "Tally",
    "UnitCounts",
]
