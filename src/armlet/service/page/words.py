"""Numbers, times and labels as a reader of the page sees them.

A number has as many decimals as the width of its interval supports; thousands are separated; there is no `1.5e+02`. A
label may be anything a user has typed, so what cannot be seen is written out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from html import escape
from typing import Final

from armlet.types import Arm

MINUS: Final = "\u2212"
SPACE: Final = "\u00a0"  # does not break between a number and its unit
ELLIPSIS: Final = "\u2026"
JOINERS: Final = "\u200c\u200d"  # invisible, and part of how Persian words and emoji are spelled
MOST_DECIMALS: Final = 12
PLAIN: Final = 1e15  # larger numbers have more digits than anyone reads
FEWEST: Final = 5e-13  # smaller ones have no digits left
SUPERSCRIPTS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
SECOND: Final = 1_000_000  # microseconds
UNITS: Final = (("day", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def count(n: float) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count(12345), count(0), count(-3)
    ('12,345', '0', '−3')
    """
    return number(n, 0)


def number(value: float, decimals: int) -> str:
    """Return a number with so many decimals.

    Examples
    --------
    >>> number(1234.5678, 2), number(-0.001, 2), number(-2.5e21, 0)
    ('1,234.57', '0.00', '−2.5 × 10²¹')
    """
    if abs(value) >= PLAIN:
        exponent = math.floor(math.log10(abs(value)))
        return f"{value / 10.0**exponent:.1f} × 10{str(exponent).translate(SUPERSCRIPTS)}".replace("-", MINUS)
    rounded = round(value, decimals) + 0.0  # no minus before a zero
    return f"{rounded:,.{decimals}f}".replace("-", MINUS)


def signed(value: float, decimals: int) -> str:
    """Return a difference with its sign; a plain zero if all its digits are.

    Examples
    --------
    >>> signed(0.0123, 3), signed(-0.2, 1), signed(0.0001, 2)
    ('+0.012', '−0.2', '0')
    """
    rounded = round(value, decimals)
    return f"+{number(value, decimals)}" if rounded > 0 else number(value, decimals) if rounded < 0 else "0"


def decimals_of(width: float) -> int:
    """Return how many decimals a number deserves that is known up to this width: two digits of the width.

    Examples
    --------
    >>> decimals_of(0.22), decimals_of(0.0031), decimals_of(150.0), decimals_of(0.0)
    (2, 4, 0, 0)
    """
    if not FEWEST < width < math.inf:
        return 0 if not 0.0 < width <= FEWEST else MOST_DECIMALS
    return min(max(0, 1 - math.floor(math.log10(width))), MOST_DECIMALS)


def between(low: float, high: float) -> str:
    """Return where a number lies.

    Examples
    --------
    >>> between(0.214, 0.5381)
    '0.21 to 0.54'
    """
    decimals = decimals_of(high - low)
    return f"{number(low, decimals)} to {number(high, decimals)}"


def gain_between(low: float, high: float) -> str:
    """Return where a difference lies; an end that is not zero does not look like zero, since that is the question.

    Examples
    --------
    >>> gain_between(0.0102, 0.228), gain_between(-0.217, 0.263), gain_between(0.0004, 0.2)
    ('+0.01 to +0.23', '−0.22 to +0.26', '+0.0004 to +0.2000')
    """
    decimals = decimals_of(high - low)
    while decimals < MOST_DECIMALS and any(end and not round(end, decimals) for end in (low, high)):
        decimals += 1
    return f"{signed(low, decimals)} to {signed(high, decimals)}"


def plain(value: float) -> str:
    """Return a number of which no interval is known, such as a setting or one reward, with up to four digits.

    Examples
    --------
    >>> plain(1.0), plain(0.12345), plain(31.0), plain(150000.0), plain(-0.5)
    ('1', '0.1235', '31', '150,000', '−0.5')
    """
    if not math.isfinite(value):
        return str(value)
    if value == 0.0 or abs(value) < FEWEST:
        return "0"
    decimals = min(max(0, 3 - math.floor(math.log10(abs(value)))), MOST_DECIMALS)
    text = number(value, decimals)
    return text.rstrip("0").rstrip(".") if "." in text and "×" not in text else text


def amount(value: float | Mapping[str, float]) -> str:
    """Return a number, or numbers by name, as HTML.

    Examples
    --------
    >>> amount(0.5), amount({"quality": 0.9, "cost": 0.002})
    ('0.5', '<bdi>quality</bdi> 0.9, <bdi>cost</bdi> 0.002')
    """
    if not isinstance(value, Mapping):
        return plain(value)
    return ", ".join(f"{label(name, 24)} {plain(each)}" for name, each in value.items())


def percent(share: float) -> str:
    """Return a share in hundredths.

    Examples
    --------
    >>> [percent(share).replace(SPACE, " ") for share in (0.2, 0.0123, 0.0004, 0.0, 1.0, 0.9996)]
    ['20 %', '1.2 %', 'under 0.1 %', '0 %', '100 %', 'over 99.9 %']
    """
    hundredths = 100.0 * share
    if 0.0 < hundredths < 0.1:
        return f"under 0.1{SPACE}%"
    if 99.9 < hundredths < 100.0:
        return f"over 99.9{SPACE}%"
    near_an_end = 0.0 < hundredths < 9.95 or 90.05 < hundredths < 100.0
    text = f"{hundredths:.1f}" if near_an_end else f"{hundredths:.0f}"
    return f"{text.removesuffix('.0')}{SPACE}%"


def about(n: float) -> str:
    """Return an estimate of a number of things, with one or two digits that mean something.

    Examples
    --------
    >>> about(12345), about(870), about(9), about(2.4e6)
    ('12,000', '870', '9', '2,400,000')
    """
    if n < 10:
        return count(math.ceil(n))
    unit = 10.0 ** (math.floor(math.log10(n)) - 1)
    return count(round(n / unit) * unit)


# ---- times


def span(seconds: float) -> str:
    """Return a length of time.

    Examples
    --------
    >>> [span(seconds).replace(SPACE, " ") for seconds in (0.2, 2.0, 90.0, 7200.0, 86400.0, 300000.0)]
    ['under 1 s', '2 s', '1 min', '2 h', '1 day', '3 days']
    """
    for unit, size in UNITS:
        if seconds >= size:
            n = int(seconds // size)
            return f"{n:,}{SPACE}{unit}" + ("s" if unit == "day" and n > 1 else "")
    return f"under 1{SPACE}s"


def ago(ts: int, now: int) -> str:
    """Return how long ago a moment is; both are microseconds since 1970.

    Examples
    --------
    >>> ago(0, 2_000_000).replace(SPACE, " "), ago(5, 0)
    ('2 s ago', 'just now')
    """
    seconds = (now - ts) / SECOND
    return "just now" if seconds < 1.0 else f"{span(seconds)} ago"


def clock(ts: int) -> str:
    """Return a moment by the clock.

    Examples
    --------
    >>> clock(1_700_000_000_000_000)
    '14 Nov 2023, 22:13:20 UTC'
    """
    return f"{_moment(ts):%-d %b %Y, %H:%M:%S} UTC"


def when(ts: int, now: int) -> str:
    """Return a moment as an element that the page's script keeps up to date."""
    iso = f"{_moment(ts):%Y-%m-%dT%H:%M:%SZ}"
    return f'<time datetime="{iso}" title="{clock(ts)}" data-ago="{ts // SECOND}">{ago(ts, now)}</time>'


def _moment(ts: int) -> datetime:
    return datetime.fromtimestamp(ts / SECOND, UTC)


# ---- labels


def visible(text: object) -> str:
    r"""Return a text whose every character can be seen and sent; others are written as escapes.

    Examples
    --------
    >>> visible("a\nb\u202e"), visible("caf\u00e9"), visible("\ud800")
    ('a\\nb\\u202e', 'café', '\\ud800')
    """
    return "".join(
        letter if letter.isprintable() or letter in JOINERS else letter.encode("unicode_escape").decode()
        for letter in str(text)
    )


def shorten(text: str, most: int) -> str:
    """Return a text of so many characters at most.

    Examples
    --------
    >>> shorten("short", 8), shorten("much too long", 8)
    ('short', 'much to…')
    """
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS


def label(text: object, most: int = 64) -> str:
    """Return any text as HTML that keeps to itself, in its own direction of writing.

    Examples
    --------
    >>> label("<b>")
    '<bdi>&lt;b&gt;</bdi>'
    """
    whole = visible(text)
    short = shorten(whole, most)
    title = f' title="{escape(whole)}"' if short != whole else ""
    return f"<bdi{title}>{escape(short)}</bdi>"


def arm_label(arm: Arm, most: int = 64) -> str:
    """Return the label of an arm as HTML; one that is empty or only spaces is quoted."""
    return label(arm if str(arm).strip() else repr(arm), most)
