"""Mirrors kernel/coins/normal.cpp: standard normals of single words of Philox."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from armlet.reference.elementary import log

MIDDLE_TOP: Final = (
    3.3871328727963666080e0,
    1.3314166789178437745e2,
    1.9715909503065514427e3,
    1.3731693765509461125e4,
    4.5921953931549871457e4,
    6.7265770927008700853e4,
    3.3430575583588128105e4,
    2.5090809287301226727e3,
)
MIDDLE_BOTTOM: Final = (
    1.0,
    4.2313330701600911252e1,
    6.8718700749205790830e2,
    5.3941960214247511077e3,
    2.1213794301586595867e4,
    3.9307895800092710610e4,
    2.8729085735721942674e4,
    5.2264952788528545610e3,
)
NEAR_TOP: Final = (
    1.42343711074968357734e0,
    4.63033784615654529590e0,
    5.76949722146069140550e0,
    3.64784832476320460504e0,
    1.27045825245236838258e0,
    2.41780725177450611770e-1,
    2.27238449892691845833e-2,
    7.74545014278341407640e-4,
)
NEAR_BOTTOM: Final = (
    1.0,
    2.05319162663775882187e0,
    1.67638483018380384940e0,
    6.89767334985100004550e-1,
    1.48103976427480074590e-1,
    1.51986665636164571966e-2,
    5.47593808499534494600e-4,
    1.05075007164441684324e-9,
)
FAR_TOP: Final = (
    6.65790464350110377720e0,
    5.46378491116411436990e0,
    1.78482653991729133580e0,
    2.96560571828504891230e-1,
    2.65321895265761230930e-2,
    1.24266094738807843860e-3,
    2.71155556874348757815e-5,
    2.01033439929228813265e-7,
)
FAR_BOTTOM: Final = (
    1.0,
    5.99832206555887937690e-1,
    1.36929880922735805310e-1,
    1.48753612908506148525e-2,
    7.86869131145613259100e-4,
    1.84631831751005468180e-5,
    1.42151175831644588870e-7,
    2.04426310338993978564e-15,
)


def normal_quantile(u: float) -> float:
    """Return the inverse of the normal distribution function on (0, 1) (Wichura 1988, AS 241).

    Examples
    --------
    >>> normal_quantile(0.5), round(normal_quantile(0.975), 6), round(normal_quantile(1e-12), 6)
    (0.0, 1.959964, -7.034484)
    """
    q = u - 0.5
    if abs(q) <= 0.425:
        return q * _ratio(MIDDLE_TOP, MIDDLE_BOTTOM, 0.180625 - q * q)
    r = math.sqrt(-log(u if q < 0.0 else 1.0 - u))
    z = _ratio(NEAR_TOP, NEAR_BOTTOM, r - 1.6) if r <= 5.0 else _ratio(FAR_TOP, FAR_BOTTOM, r - 5.0)
    return -z if q < 0.0 else z


def item_normal(pick: int, tie: int, draw: int, key: int) -> float:
    """Return the standard normal of an item in one of the draws of a step.

    Examples
    --------
    >>> item_normal(1, 2, 0, 5) == item_normal(1, 2, 0, 5), item_normal(1, 2, 0, 5) == item_normal(1, 2, 1, 5)
    (True, False)
    """
    # numpy counts one up before it draws; four draws share a block
    counter = (key + (draw // 4 << 64) + (1 << 128)) - 1
    word = np.random.Philox(key=pick + (tie << 64), counter=counter).random_raw(4).tolist()[draw % 4]
    return normal_quantile(((word >> 12) + 0.5) * 2.0**-52)


def _ratio(top: tuple[float, ...], bottom: tuple[float, ...], r: float) -> float:
    above, below = top[-1], bottom[-1]
    for n, d in zip(top[-2::-1], bottom[-2::-1], strict=True):
        above, below = above * r + n, below * r + d
    return above / below
