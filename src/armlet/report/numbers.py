"""Numbers as people read them."""

from __future__ import annotations

import math

from armlet.inference.intervals import Estimate


def show(estimate: Estimate | None) -> str:
    """Write an estimate with as many digits as can be read, and its interval unless it is exact.

    Examples
    --------
    >>> show(Estimate(1.0512, 0.97, 1.118)), show(Estimate(20501.0, 20501.0, 20501.0)), show(None)
    ('1.05 [0.97 to 1.12]', '20,501', 'not defined')
    """
    if estimate is None:
        return "not defined"
    size = max(abs(estimate.value), abs(estimate.low), abs(estimate.high))
    spec = f",.{max(0, 2 - math.floor(math.log10(size)))}f" if 1e-3 <= size < 1e9 else ".3g"
    return f"{estimate.value:{spec}}" if estimate.low == estimate.high else f"{estimate:{spec}}"
