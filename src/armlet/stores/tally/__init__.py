"""The tally of a loop: folds over all that happens to it, of which `stats`, `health` and `details` are made."""

from armlet.stores.tally.arms import ArmCounts
from armlet.stores.tally.catalogue import BaselineCounts
from armlet.stores.tally.folds import ERASE
from armlet.stores.tally.outcomes import OutcomeCounts
from armlet.stores.tally.switches import UnitCounts
from armlet.stores.tally.tally import Tally
from armlet.stores.tally.traffic import FAULTS, GAPS, LAST

__all__ = [
    "ERASE",
    "FAULTS",
    "GAPS",
    "LAST",
    "ArmCounts",
    "BaselineCounts",
    "OutcomeCounts",
    "Tally",
    "UnitCounts",
]
