"""Mirrors kernel/state/digits/lost_digits.cpp: digits that sums lose when a row is taken back.

The rounding of what was subtracted stays in what is left. A column is n, the rewards or a feature. What it lost is the
size of what sums held of it, about their origin, over what is left about the mean: 2^32 leaves about six digits of
sixteen, and is reported; 2^40 leaves fewer than four, and an arm with such a column is emptied. Where rows are
discounted, sums of squared weights lose twice as many, and widths need two digits less: they count in the column n.
"""

from __future__ import annotations

from typing import NamedTuple

from armlet.reference.units import FreeUnits
from armlet.types import Float64

EMPTIED = 2.0**40
FEW = 1.5
"""Of a weight, below which there is one row."""
NEAR_SHARE = 0.0625
"""Of a squared origin, up to which a squared mean about it is near."""
COARSE = 2.0**-8
"""Of what sums of squared weights lose, which widths need with two digits less."""

ROUNDING = 2.0**-45
"""Of what a column held: a variance below is none."""
REMAINDER = 2.0**-40
"""Of what a row held besides: what is left has fewer than four digits."""


class ColumnSums(NamedTuple):
    """What n rows hold of a column: their sum, and that of squares, about an origin."""

    n: float
    sum: float
    square: float

    def taken(self, value: float, weight: float) -> float:
        """Return what a row with this value held besides, about the origin or the mean: the less counts."""
        delta = value - self.sum / self.n
        return weight * min(value * value, delta * delta)

    def is_far_from(self, origin: float) -> bool:
        """Return whether the origin is that of a first row that is gone, and was far from all of them."""
        mean = self.sum / self.n
        return origin != 0.0 and mean * mean > NEAR_SHARE * (origin * origin)

    def variance(self, origin: float, weight: float) -> float:
        """Return the variance, of which a deviation of less than 1 is rounding; of a last row, its own square."""
        mean = self.sum / self.n
        value = mean + origin
        return max(value * value if self.n < FEW * weight else self.square / self.n - mean * mean, 1.0)

    def constant(self, value: float, weight: float) -> float | None:
        """Return the value of all rows, about the origin, if this row was the last to differ, or if rounding is left.

        Examples
        --------
        >>> ColumnSums(2.0, 0.2, 0.02).constant(1.0, 1.0), ColumnSums(2.0, 0.2, 0.03).constant(1.0, 1.0)
        (0.1, None)
        """
        mean, square = self.sum / self.n, self.square / self.n
        variance, more = square - mean * mean, self.taken(value, weight)
        held = self.square + weight * (value * value)
        is_last, seems_to_vary = more > ROUNDING * held, variance > 0.5 * ROUNDING * square
        if not (is_last or seems_to_vary) or self.n * variance > ROUNDING * held + REMAINDER * more:
            return None
        return mean if abs(self.sum) > REMAINDER * (weight * abs(value)) else 0.0


class Taken(NamedTuple):
    """A row that was taken back, as sums hold it: without x, only its reward was."""

    arm: int
    x: list[float] | None  # of the features
    reward: float
    weight: float


def columns(n: Float64, sum_r: Float64, sum_rr: Float64, first: Float64, squares: Float64) -> list[ColumnSums]:
    """Return the rewards and features of some arms together: (m,) three times, then (m, d) twice."""
    totals = [0.0] * (2 + 2 * (1 + first.shape[1]))
    for arm in range(len(n)):
        own = [n[arm], 0.0, sum_r[arm], *first[arm], sum_rr[arm], *squares[arm]]
        totals = [total + float(one) for total, one in zip(totals, own, strict=True)]
    half = 2 + 1 + first.shape[1]
    return [ColumnSums(totals[0], *pair) for pair in zip(totals[2:half], totals[half:], strict=True)]


def lost_arms(
    taken: Taken, n: Float64, sums: tuple[Float64, ...], units: FreeUnits | None, squared: float | None = None
) -> list[int]:
    """Return the arms to empty; `sums` are those of `columns`, without n, `squared` weights of the row's arm add up."""
    free, is_given = units is not None, units is not None and units.is_given
    origin = [0.0] * (1 + sums[2].shape[1]) if units is None else units.origin.tolist()
    arms = [arm for arm in range(len(n)) if arm == taken.arm or (free and n[arm] > 0.0)]
    pooled, out = columns(n[arms], *(part[arms] for part in sums)), []
    values = [taken.reward, *(taken.x or [])]
    for arm in arms:
        own, is_taken = columns(n[arm : arm + 1], *(part[arm : arm + 1] for part in sums)), arm == taken.arm
        ratios = [taken.weight / max(own[0].n, 1.0)] if is_taken and taken.x is not None else []
        if ratios and squared is not None and own[0].n > 0.0:
            ratios.append(COARSE * (taken.weight * taken.weight) / max(squared, 1.0))
        for c, (mine, each, zero) in enumerate(zip(own, pooled, origin, strict=True)):
            if mine.n > 0.0:
                size = mine.square if each.is_far_from(zero) and not is_given else 0.0
                if is_taken and c < len(values):
                    size += each.taken(values[c], taken.weight)
                ratios.append(size / (max(mine.n, 1.0) * each.variance(zero, taken.weight)))
        if any(one > EMPTIED for one in ratios):
            out.append(arm)
    return out


def constants(taken: Taken, n: Float64, first: Float64, squares: Float64) -> dict[int, float]:
    """Return features in which all rows that remain are alike, and their values there, about the origin."""
    out: dict[int, float] = {}
    for j, value in enumerate(taken.x or []):
        totals = [0.0] * 3
        for arm in range(len(n)):
            own = (float(n[arm]), float(first[arm, j]), float(squares[arm, j]))
            totals = [total + one for total, one in zip(totals, own, strict=True)]
        common = ColumnSums(*totals).constant(value, taken.weight) if totals[0] > 0.0 else None
        if common is not None:
            out[j] = common
    return out
