"""The family of Algorithm 1 asked step by step in Python, as policies that are not compiled."""

from __future__ import annotations

from armlet.policies import Algorithm1, ContextualEpsilonGreedy, ScheduledEpsilonGreedy


class InPython(Algorithm1):
    """The same policy, played in Python: the kernel has no rule."""

    def rule(self) -> None:  # type: ignore[override]
        return None


class AllDataInPython(ScheduledEpsilonGreedy):
    def rule(self) -> None:  # type: ignore[override]
        return None


class EvidenceInPython(ContextualEpsilonGreedy):
    def rule(self) -> None:  # type: ignore[override]
        return None
