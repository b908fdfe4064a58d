"""Section 4.1 in closed form: contexts of Bernoulli(w) entries scaled to length 1, a context of zeros kept as it is.

The eigenvalues of E xx' are w, of the vector of ones, and d - 1 equal ones, which `environments.constants` derives.
O(1), for any d.
"""

from __future__ import annotations

import math

from armlet.environments.environment import scaled_bits_eigenvalue
from armlet.inputs.checks import number, positive, whole


def sigma_min(*, dim: int, w: float) -> float:
    """Give the smallest non-zero eigenvalue of E xx', (1 - (1 - w)^d - w) / (d - 1).

    For w = 1 all contexts are the same one, and the only non-zero eigenvalue is 1.

    Examples
    --------
    >>> sigma_min(dim=3, w=0.5)
    0.1875
    """
    _check(dim, w)
    return scaled_bits_eigenvalue(dim=dim, w=w)


def sigma_max(*, dim: int, w: float) -> float:
    """Give the largest eigenvalue of E xx', which is w whatever d.

    Examples
    --------
    >>> sigma_max(dim=3, w=0.5)
    0.5
    """
    _check(dim, w)
    return float(w)


def noise_bound(*, dim: int, F: float) -> float:
    """Give a sub-gaussian constant that holds however Theta fluctuates by at most F an entry: sigma = F sqrt d.

    |x'(Theta - theta)| <= F |x|_1 <= F sqrt d, and a variable of mean 0 within [-c, c] has constant c (Hoeffding).
    The paper's L is this divided by sqrt 2. If entries are independent and uniform, F / sqrt 3 is enough.

    Examples
    --------
    >>> noise_bound(dim=4, F=0.5)
    1.0
    """
    whole()("dim", dim)
    number(0)("F", F)
    return F * math.sqrt(dim)


def claimed_delta_min(*, n_arms: int, dim: int, w: float) -> float:
    """Give the order that the paper claims for delta_min, 1 / (K d sqrt w). The claim does not hold.

    Differences of opposite signs cancel across the entries of a context, and there are 2^d contexts in which they may:
    delta_min falls exponentially with d (`armlet-lab paper`, claim section41-delta-min).

    Examples
    --------
    >>> claimed_delta_min(n_arms=5, dim=4, w=0.25)
    0.1
    """
    whole()("n_arms", n_arms)
    _check(dim, w)
    return 1 / (n_arms * dim * math.sqrt(w))


def _check(dim: int, w: float) -> None:
    whole()("dim", dim)
    positive(1.0, fix="give the chance of a one, above 0 and at most 1")("w", w)
