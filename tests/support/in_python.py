"""The family of Algorithm 1 asked step by step in Python, as policies that are not compiled."""

from __future__ import annotations

from dataclasses import dataclass

from armlet.inputs.settings import Units
from armlet.policies import Algorithm1, AllDataEpsilonGreedy, ContextualEpsilonGreedy
from armlet.reference.evidence import Clock


class InPython(Algorithm1):
    """The same policy, asked in Python: the kernel is told of no rule."""

    def rule(self) -> None:  # type: ignore[override]
        return None


@dataclass(frozen=True, kw_only=True)
class AllDataBySteps(AllDataEpsilonGreedy):
    """Algorithm 1 on all rows, but otherwise as printed."""

    clock: Clock = "steps"
    units: Units = "as given"


class AllDataInPython(AllDataBySteps):
    def rule(self) -> None:  # type: ignore[override]
        return None


class EvidenceInPython(ContextualEpsilonGreedy):
    def rule(self) -> None:  # type: ignore[override]
        return None
