"""What a bandit does after a row was taken back that was so large that sums have lost digits.

Sums keep sixteen digits. A row of 1e18 among rows of size 1 takes all of them, also after it is forgotten. The kernel
finds the columns (kernel/state/digits/lost_digits.cpp) and empties an arm that kept fewer than four digits. The bandit
learns its log again, and warns if it has none, unless its caller has the rows and fits it again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar

from armlet.errors import ArmletError, LostDigitsWarning
from armlet.types import Float64, Policy

if TYPE_CHECKING:
    from armlet.recording import Recording

T = TypeVar("T")

_ROWS_KEPT: Final[ContextVar[list[str] | None]] = ContextVar("rows_kept", default=None)
DIGITS: Final = 16  # of a float64
CURE: Final = "learn the other rows again with partial_fit, from where you keep them"


def keeping_rows(call: Callable[[], T], losses: list[str] | None = None) -> T:
    """Make a call that takes rows back without warnings: the caller has all rows, and fits the bandit again.

    Losses are added to a list. The call runs in a context of its own, so that no interrupt leaves it without warnings
    from then on.

    Examples
    --------
    >>> keeping_rows(lambda: _ROWS_KEPT.get(), ["of arm 'a'"]), _ROWS_KEPT.get()
    (["of arm 'a'"], None)
    """
    collected = [] if losses is None else losses
    before, outer = len(collected), _ROWS_KEPT.get()
    try:
        return copy_context().run(_kept, call, collected)
    finally:
        if outer is not None:
            outer += collected[before:]


def _kept(call: Callable[[], T], losses: list[str]) -> T:
    _ROWS_KEPT.set(losses)
    return call()


def describe(losses: Iterable[tuple[str, bool, Sequence[float] | Float64]], columns: Sequence[str]) -> str:
    """Describe losses: of what, whether it was emptied, and how many digits every column lost.

    Examples
    --------
    >>> describe([("arm 'a'", True, [0.0, 0.0, 16.0])], ["n", "reward", "age"])
    "the row that was taken back is so much larger than the others that digits are lost: of arm 'a' 16 of 16 of age, ...
    """
    texts = []
    for what, is_emptied, digits in losses:
        columns_lost = [f"{round(n)} of {DIGITS} of {name}" for n, name in zip(digits, columns, strict=True) if n > 0]
        texts.append(f"of {what} {', '.join(columns_lost)}" + (", so that it was emptied" if is_emptied else ""))
    return "the row that was taken back is so much larger than the others that digits are lost: " + "; ".join(texts)


def is_cured(loss: str, recording: Recording | None, policy: Policy | None, take: Callable[[Any], None]) -> bool:
    """Return whether rows are learned again: by the caller, or here from the log of the bandit. Warn if they are not.

    Parameters
    ----------
    loss
        Its description.
    recording
        Of a bandit with a log.
    policy
        The bandit's, if it is not one of Armlet's own.
    take
        Has the bandit take what another one has learned, and records it.
    """
    collected = _ROWS_KEPT.get()
    if collected is not None:
        collected.append(loss)
        return True
    relearning = None if recording is None else getattr(recording.recorder, "relearning", None)
    why = ""
    if recording is not None and relearning is not None:
        try:
            learned = relearning(policy)  # while others decide
            with recording.lock:
                take(learned.finish())
            return True
        except ArmletError as error:
            why = f"; its log cannot be learned again: {error}"
    warnings.warn(f"{loss}{why}; {CURE}", LostDigitsWarning, stacklevel=4)
    return False


def column_names(features: Sequence[str] | None, dim: int, prefix: str = "feature") -> list[str]:
    """Return the names of features, or their places.

    Examples
    --------
    >>> column_names(None, 2), column_names(["age"], 1)
    (['feature 0', 'feature 1'], ['age'])
    """
    return [f"{prefix} {j}" for j in range(dim)] if features is None else list(features)
