"""What exploring is worth: the regret to expect of a choice between two arms, now and with more rows.

The arm that looks best in a context leads a rival by `lead`, known to within `deviation`; the true lead is about normal
around that. Functions of a few numbers, each equal to the kernel's to the last bit.
"""

from __future__ import annotations

import math
from typing import Final

from armlet.reference.elementary import erfc, exp, log
from armlet.types import Float64

MULTIPLE: Final = 1.5
"""Of rows, between two forecasts."""
MULTIPLES: Final = 11
"""Up to 57 times the rows; beyond that losses fall as their inverse."""
FINER: Final = 1.25
"""Between two candidates for p."""
NODES: Final = 24
"""Of the integral over what is left of the horizon."""


def regret(lead: float, deviation: float) -> float:
    """Give E max(0, deviation z - lead) for a standard normal z: what playing the leader loses on average.

    Examples
    --------
    >>> round(regret(0.0, 1.0), 4), regret(50.0, 1.0)
    (0.3989, 0.0)
    """
    if not deviation > 0:
        return 0.0
    z = lead / deviation
    density = exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return max(0.0, deviation * (density - z * 0.5 * erfc(z / math.sqrt(2.0))))


def loss(lead: float, deviation: float, times: float) -> float:
    """Give what exploiting still loses when there are so many times as many rows."""
    later = regret(lead, deviation * math.sqrt(1.0 - 1.0 / times))
    return max(0.0, regret(lead, deviation) - later)


def interpolate(losses: Float64, times: float) -> float:
    """Read losses with 1, 1.5, 1.5^2, ... times the rows off at any number of times."""
    place, last = log(times) / log(MULTIPLE), MULTIPLES - 1
    if place >= last:
        return float(losses[-1]) * math.pow(MULTIPLE, last) / times
    k = int(max(0.0, place))
    return float(losses[k] + (place - k) * (losses[k + 1] - losses[k]))


def candidates(n_arms: int, most: float) -> list[float]:
    """List values of p from the number of arms on.

    Examples
    --------
    >>> candidates(4, 7.0)
    [4.0, 5.0, 6.25]
    """
    out, p = [], float(n_arms)
    while p <= most:
        out.append(p)
        p *= FINER
    return out
