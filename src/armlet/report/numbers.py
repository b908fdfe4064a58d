"""Numbers as people read them: as many decimals as the interval's width can bear, the same in a column.

The half-width is shown with two digits, and with more where an end would be rounded to 0 and lose its sign. A number
without an interval has three digits. Powers of ten stand only where zeros would hide a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from armlet.types import Estimate, Interval

RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NONE: Final = "not defined"
MOST: Final = 7  # decimals, before a power of ten is easier to read
LARGEST: Final = 1e12
FINER: Final = 2  # decimals more for an end next to 0
SPREAD: Final = 2  # decimals that a column has more than its coarsest number needs


def show(estimate: Estimate | float | None, places: int | None = None) -> str:
    """Write a number, with its interval unless it is exact.

    Parameters
    ----------
    places
        Decimals; by default as many as the interval's width can bear.

    Examples
    --------
    >>> show(Estimate(1.0512, 0.97, 1.118)), show(Estimate(20501.0, 20501.0, 20501.0)), show(None)
    ('1.051 [0.970 to 1.118]', '20,501', 'not defined')
    >>> show(Estimate(33.41, 30.28, 37.12)), show(Estimate(-0.1258, -0.159, -0.09258)), show(150.2), show(2.4e-9)
    ('33.4 [30.3 to 37.1]', '-0.126 [-0.159 to -0.093]', '150', '2.40 × 10⁻⁹')
    """
    known = _estimate(estimate)
    if known is None:
        return NONE
    decimals = _places(known) if places is None else places
    if known.low == known.high:
        return _written(known.value, decimals)
    return f"{_written(known.value, decimals)} {show_interval(known.interval, decimals)}"


def show_interval(interval: Interval | None, places: int | None = None) -> str:
    """Write both ends of an interval.

    Examples
    --------
    >>> show_interval(Interval(0.482, 0.65562)), show_interval(None)
    ('[0.482 to 0.656]', 'none')
    """
    if interval is None:
        return "none"
    decimals = _places(Estimate(interval.low, *interval)) if places is None else places
    return f"[{_written(interval.low, decimals)} to {_written(interval.high, decimals)}]"


def column(estimates: Iterable[Estimate | float | None]) -> list[str]:
    """Write numbers below each other, all with the same decimals.

    Examples
    --------
    >>> column([Estimate(1.0512, 0.97, 1.118), None, 12.0])
    ['1.051 [0.970 to 1.118]', 'not defined', '12.000']
    """
    values = list(estimates)
    decimals = common_places(values)
    return [show(each, decimals) for each in values]


def common_places(estimates: Sequence[Estimate | float | None]) -> int:
    """Return the decimals for numbers that stand next to each other: what the finest needs, within reason.

    Examples
    --------
    >>> common_places([Estimate(1.0512, 0.97, 1.118), Estimate(20.0, 15.0, 25.0)]), common_places([])
    (3, 0)
    """
    known = [each for each in map(_estimate, estimates) if each is not None]
    wanted = [_places(each) for each in known if each.low != each.high] or [_places(each) for each in known]
    return min(max(wanted), min(wanted) + SPREAD) if wanted else 0


def percent(share: float) -> str:
    """Write a share in percent.

    Examples
    --------
    >>> percent(0.95), percent(0.0312)
    ('95 %', '3.12 %')
    """
    return f"{100 * share:.3g} %"


def _estimate(number: Estimate | float | None) -> Estimate | None:
    estimate = number if isinstance(number, Estimate | None) else Estimate(number, number, number)
    return None if estimate is None or math.isnan(estimate.value) else estimate


def _places(estimate: Estimate) -> int:
    half = (estimate.high - estimate.low) / 2
    if not (0 < half < math.inf):
        return _digits(estimate.value)
    places = max(0, 1 - math.floor(math.log10(half)))
    nearest = min((abs(end) for end in estimate.interval if end), default=half)
    lost = nearest < half and round(nearest, places) == 0
    return min(places + FINER, -math.floor(math.log10(nearest))) if lost else places


def _digits(value: float) -> int:
    """Return the decimals of a number without an interval: none of a whole one, else three digits."""
    if value == 0 or not math.isfinite(value) or (value == round(value) and abs(value) < LARGEST):
        return 0
    return max(0, 2 - math.floor(math.log10(abs(value))))


def _written(value: float, places: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value and (places > MOST or abs(value) >= LARGEST):
        power = math.floor(math.log10(abs(value)))
        return f"{value / 10.0**power:.2f} × 10{str(power).translate(RAISED)}"
    return f"{round(value, places) + 0.0:,.{places}f}"  # adding 0 takes the sign of -0
