"""Where the theory ends: the error that names the assumption which fails.

A bound is a statement with conditions. Nothing here returns one where its conditions do not hold.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from armlet.errors import ArmletError

Assumption: TypeAlias = Literal["gap", "contexts", "linear", "p", "multiple"]

MEANINGS: Final = {
    "delta_min": "the smallest lead of the best arm over the next one",
    "sigma_min": "the smallest variance of the contexts in any direction",
}
"""What the constants that may fail are called where nobody has read the paper."""


class AssumptionError(ArmletError, ValueError):
    """A bound or a p was asked for where an assumption of its theorem does not hold.

    Attributes
    ----------
    assumption
        "gap": some arm loses, and by at least delta_min > 0 wherever it does. "contexts": they are not all zero, and no
        longer than the statement allows. "linear": expected rewards are. "p": it is as large as the statement asks for.
        "multiple": p is one of K, so that the warm-up serves all arms alike.
    needed
        If p is too small: the p that would do.
    plainly
        What fails, without symbols and without advice on how to call the theory; the message itself where it has none.

    Examples
    --------
    >>> try:
    ...     raise AssumptionError("p", "p is 3; use p >= 32", needed=32.0)
    ... except ValueError as error:
    ...     print(error, error.assumption, error.needed, sep=" | ")
    p is 3; use p >= 32 | p | 32.0
    """

    def __init__(
        self, assumption: Assumption, message: str, *, needed: float | None = None, plainly: str | None = None
    ) -> None:
        super().__init__(message)
        self.assumption = assumption
        self.needed = needed
        self.plainly = message if plainly is None else plainly
