"""The tally of a loop: folds over all that happens to it, of which `stats`, `health` and `details` are made."""

from armlet.stores.folds.arms import ArmCounts, BaselineCounts
from armlet.stores.folds.decisions import UnitCounts
from armlet.stores.folds.fold import ERASE
from armlet.stores.folds.rewards import FAULTS, GAPS, LAST, OutcomeCounts
from armlet.stores.folds.tally import Tally

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
