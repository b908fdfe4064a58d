"""How fast regret grows, in words."""

from __future__ import annotations

from armlet.core.intervals import RATES, Estimate, classify


def growth(ratio: Estimate | None) -> str:
    """Put a doubling ratio into words, chosen by which rates its interval contains.

    Examples
    --------
    >>> growth(Estimate(1.05, 0.97, 1.12))
    '1.05 [0.97 to 1.12], consistent with logarithmic growth'
    >>> growth(Estimate(1.2, 1.1, 1.3))
    '1.20 [1.10 to 1.30], between logarithmic and square-root growth'
    """
    if ratio is None:
        return "not defined, too little regret after T/4"
    below = [name for name, rate in RATES.items() if rate < ratio.low]
    above = [name for name, rate in RATES.items() if rate > ratio.high]
    if inside := classify(ratio):
        words = f"consistent with {' or '.join(inside)}"
    elif below and above:
        words = f"between {below[-1]} and {above[0]}"
    else:
        words = f"slower than {above[0]}" if above else f"faster than {below[-1]}"
    return f"{ratio:.2f}, {words} growth"
