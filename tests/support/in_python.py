"""Algorithm 1 asked step by step in Python, as a policy that is not compiled."""

from __future__ import annotations

from armlet.policies import Algorithm1, AllDataEpsilonGreedy


class InPython(Algorithm1):
    """The same policy, asked in Python: the kernel is told of no rule."""

    def rule(self) -> None:  # type: ignore[override]
        return None


class AllDataInPython(AllDataEpsilonGreedy):
    def rule(self) -> None:  # type: ignore[override]
        return None
