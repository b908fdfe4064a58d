"""Mirrors kernel/state/units.cpp: units in which a policy sees features and rewards, as given or free of them.

Free: a row (x, r) is kept as y = (1, x - o) and r - l, about an origin that stays, and looked at as
z = (1, (x - o - m) / s) and r - l - r0, where m, s and r0 are the means and deviations of all rows of all arms. The
ridge acts on z, so neither the zero nor the size of a feature or of rewards matters. All of it follows from the sums of
y y' and r y, which add up as before.

The origin is that of rewards, then those of the features. It is zero, or beyond 1024 eight bits of the first row; give
one to a policy if values are far from zero and no row may be used to find out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from armlet.types import Float64

ORDINARY = 1024.0
"""Values up to this size have their origin at zero."""
GROWTH = 0.1
"""Means and deviations are taken again when the rows have grown by this share."""
MANY = 64
"""Values of z from which on, while rows are few, they must double for that: solving all arms takes long."""
ROUNDING = 2.0**-46
"""64 units in the last place: a variance that is a smaller share of its mean square is none."""
LEAST_SQUARE = 1e-120
"""A variance below this has lost its digits, or other values of the feature could overflow."""

FAR = 64.0
"""Squared deviations from its mean within which no value of a feature is unheard of."""
LEAST_GAIN = 3.0
"""What one row must add to a variance, as a multiple of it, to end a snapshot: it doubles the deviation."""

LEAST_SHARE = 0.25
"""What one row must be of all that an arm knows about a feature, for the arm to be solved at once."""


def rounded(value: float) -> float:
    """Return eight bits of a value, or zero for ordinary sizes: nobody's row can be read off an origin.

    Examples
    --------
    >>> rounded(129_900.0), rounded(-7.5)
    (130048.0, 0.0)
    """
    if not abs(value) > ORDINARY:
        return 0.0
    fraction, exponent = math.frexp(value)
    return math.ldexp(round(fraction * 256.0), exponent - 8)


@dataclass(slots=True)
class FreeUnits:
    """The origin, means and deviations of d features and of rewards."""

    dim: int
    origin: Float64 = field(init=False)  # (D,): l, o
    middle: Float64 = field(init=False)  # (D,): r0, m
    spread: Float64 = field(init=False)  # (D,): the deviation of rewards, s
    left: float = 0.0  # rows until means and deviations are taken again
    is_given: bool = False

    def __post_init__(self) -> None:
        self.origin, self.middle, self.spread = (np.zeros(self.dim + 1) for _ in range(3))

    @classmethod
    def of(cls, values: Float64) -> FreeUnits:
        """Restore what `values` returned, or the array "units" of a state."""
        out = cls((len(values) - 1) // 3 - 1, float(values[0]))
        out.origin, out.middle, out.spread = values[1:].reshape(3, -1).copy()
        return out

    @property
    def rank(self) -> int:
        """How many of the values of z are not zero regardless of x."""
        return 1 + int((self.spread[1:] > 0).sum())

    @property
    def base(self) -> float:
        """What scores leave out, since all arms share it."""
        return float(self.origin[0] + self.middle[0])

    def set_origin(self, x: Float64, reward: float) -> None:
        """Find an origin for a first row."""
        if not self.is_given:
            self.origin[:] = [rounded(value) for value in (reward, *x.tolist())]

    def row(self, x: Float64) -> Float64:
        """Return y, what sums are of."""
        return np.concatenate([[1.0], x - self.origin[1:]])

    def view(self, x: Float64) -> Float64:
        """Return z, what estimates are of."""
        return np.concatenate([[1.0], ((x - self.origin[1:]) - self.middle[1:]) * self._scales()[1:]])

    def _scales(self) -> Float64:
        scales, seen = np.zeros(self.dim + 1), self.spread > 0
        scales[seen] = 1.0 / self.spread[seen]
        scales[0] = 1.0
        return scales

    def renew(self, A: Float64, b: Float64, sum_rr: Float64) -> None:
        """Take means and deviations from the sums of all arms, (K, D, D), (K, D) and (K,)."""
        n, first, squares = 0.0, np.zeros(self.dim + 1), np.zeros(self.dim + 1)
        for arm in range(len(A)):
            n += float(A[arm, 0, 0])
            first += np.concatenate([b[arm, :1], A[arm, 0, 1:]])
            squares += np.concatenate([sum_rr[arm : arm + 1], np.diag(A[arm])[1:]])
        self.left = max(GROWTH * n, min(n, self._worth(len(A)))) if n > 0 else 0.0
        if not n > 0:
            self.middle[:], self.spread[:] = 0.0, 0.0
            if not self.is_given:
                self.origin[:] = 0.0
            return
        mean, square = first / n, squares / n
        variance = square - mean * mean
        is_spread = (variance > ROUNDING * square) & (variance > LEAST_SQUARE)
        self.middle, self.spread = mean, np.sqrt(np.where(is_spread, variance, 0.0))

    def _worth(self, n_arms: int) -> float:
        """Return the rows in which steps take as long as solving all arms does; 0 if that takes no time."""
        d, k = float(self.dim + 1), float(n_arms)
        return k * (d * d) / (6.0 * (k + d)) if self.dim + 1 >= MANY else 0.0

    def leaves(self, row: Float64, weight: float, n: float) -> bool:
        """Return whether a row, of this weight among n, is outside of what a feature has been.

        It lies further than eight deviations from the mean and doubles the deviation; or it differs where nothing did.

        Examples
        --------
        >>> units = FreeUnits(1)
        >>> units.spread[1] = 0.0  # nothing but 0 was seen
        >>> units.leaves(np.array([1.0, 0.0]), 1.0, 100.0), units.leaves(np.array([1.0, 1e-6]), 1.0, 100.0)
        (False, True)
        >>> units.spread[1] = 1.0
        >>> [units.leaves(np.array([1.0, value]), 1.0, 100.0) for value in (9.0, 17.0, 18.0)]
        [False, False, True]
        """
        share = weight / n
        delta, variance = row[1:] - self.middle[1:], self.spread[1:] * self.spread[1:]
        square, mean = delta * delta, self.middle[1:] + share * delta
        more = share * (1.0 - share) * square
        is_far = (square > FAR * variance) & (more > LEAST_GAIN * variance)
        begins = (more > 2.0 * ROUNDING * (more + mean * mean)) & (more > LEAST_SQUARE)
        return bool(np.where(variance > 0.0, is_far, begins).any())

    def has_leverage(self, row: Float64, A: Float64, shift: float) -> bool:
        """Return whether a row is more than a quarter of what its arm knows about a feature, beyond the arm's own mean.

        With S what V leaves once the constant is solved and x~ what x leaves, x'V^-1 x >= x~_j^2 / S_jj.
        """
        t, m, n = self._scales(), self.middle, A[0, 0]
        centred = A[0] - m * n
        total = centred * t
        lean = total / (n + 1.0)
        V = (((np.diag(A) - m * A[0]) - m * centred) * t) * t + shift
        left = (row - m) * t - lean
        return bool((left * left > LEAST_SHARE * (V - lean * total))[1:].any())

    def system(self, A: Float64, b: Float64) -> tuple[Float64, Float64]:
        """Return A_z = M A M' and b_z = M (b - r0 A_0) of one arm, where z = M y."""
        t, m, r0 = self._scales(), self.middle.copy(), self.middle[0]
        m[0] = 0.0
        out = np.zeros_like(A)
        for k in range(len(A)):
            centred = A[0, k] - m[k] * A[0, 0]
            out[k:, k] = (((A[k:, k] - m[k] * A[0, k:]) - m[k:] * centred) * t[k]) * t[k:]
            out[k, k:] = out[k:, k]
        left = b[0] - r0 * A[0, 0]
        return out, ((b - r0 * A[0]) - m * left) * t

    def centred_squares(self, n: float, sum_r: float, sum_rr: float) -> float:
        """Return the sum of (r - l - r0)^2 of one arm, where rounding may leave less than nothing."""
        r0 = float(self.middle[0])
        return max((sum_rr - r0 * sum_r) - r0 * (sum_r - r0 * n), 0.0)

    def to_user(self, theta: Float64) -> tuple[Float64, float]:
        """Return slopes and intercept in the user's units."""
        slopes = theta * self._scales()
        intercept = self.base + float(theta[0])
        for j in range(1, self.dim + 1):
            intercept -= float(slopes[j] * (self.middle[j] + self.origin[j]))
        return slopes[1:], intercept

    def values(self) -> Float64:
        """Return all that must be kept, (1 + 3 D,)."""
        return np.concatenate([[self.left], self.origin, self.middle, self.spread])
