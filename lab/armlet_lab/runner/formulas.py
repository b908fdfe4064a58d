r"""Formulas in texts: marked as `$O(K^3 d^5)$`, in LaTeX, and written as MathML, as plain text or for a figure.

A claim is read in a page, in Markdown, in a terminal and in JSON. Markdown keeps the marks, which the site and others
understand; a page gets MathML, which needs no script and no network; the others get `O(K^3 d^5)`.
"""

from __future__ import annotations

import functools
import re
from html import unescape
from typing import Final, Literal

from latex2mathml.converter import convert

from armlet.report.numbers import RAISED

FORMULA: Final = re.compile(r"\$([^$<]+)\$")
OUTSIDE: Final = re.compile(rf"<svg\b.*?</svg>|<[^>]*>|{FORMULA.pattern}", re.DOTALL)  # figures and tags stay
TOUCHING: Final = re.compile(r"</math>(?=[,.;:)])")  # a line must not begin with the sign
JOINER: Final = "&#8288;"
ALLOWED: Final = re.compile(r"[\w\\{}^'+\-*/=<>()\[\]|,.:! ]+", re.ASCII)

PRIME: Final = "<mi>&#x02032;</mi>"  # as a name browsers slant it, and find no such letter
SPACE: Final = '<mspace width="0.167em" />'
NAMED: Final = r"<mi>(?:log|exp)</mi>"
BEFORE: Final = re.compile(rf"(?:(?<=</m[in]>)|(?<=</mfrac>))(?={NAMED}|<msup>{NAMED})")
AFTER: Final = re.compile(rf"({NAMED}|<msup>{NAMED}<mn>\d</mn></msup>)(?=<mi>|<mn>|<msub>|<msup>)")


@functools.cache
def mathml(formula: str, display: Literal["inline", "block"] = "inline") -> str:
    r"""Return a formula as MathML, with the spaces about `log` and `exp` that the converter leaves out.

    Examples
    --------
    >>> mathml(r"p \log T").count("mspace"), mathml(r"\log(t)").count("mspace")
    (2, 0)
    >>> "<mo>&#x02032;</mo>" in mathml("l'"), "<mn>10,000</mn>" in mathml("T = 10,000")
    (True, True)
    """
    found = convert(formula, display=display).replace(PRIME, PRIME.replace("mi>", "mo>"))
    for number in re.findall(r"\d+(?:,\d{3})+", formula):
        found = found.replace(
            "<mo>&#x0002C;</mo>".join(f"<mn>{part}</mn>" for part in number.split(",")), f"<mn>{number}</mn>"
        )
    return AFTER.sub(rf"\1{SPACE}", BEFORE.sub(SPACE, found))


def typeset(html: str) -> str:
    r"""Return a piece of a page, already escaped, with its formulas as MathML; in attributes they become plain.

    Examples
    --------
    >>> typeset("at most $K^2$ &lt;b&gt;").count("msup"), typeset('<td title="$K^2$">')
    (2, '<td title="K^2">')
    >>> typeset("costs $5 & more$")
    Traceback (most recent call last):
    ValueError: '5 & more' is not a formula; write LaTeX between two $, or spell the currency out
    """

    def replaced(match: re.Match[str]) -> str:
        formula = match[1]
        if formula is None:
            return match[0] if match[0].startswith("<svg") else plain(match[0])
        return mathml(_checked(unescape(formula)))

    return TOUCHING.sub(f"</math>{JOINER}", OUTSIDE.sub(replaced, html))


def _checked(formula: str) -> str:
    if not ALLOWED.fullmatch(formula):
        raise ValueError(f"{formula!r} is not a formula; write LaTeX between two $, or spell the currency out")
    return formula


def plain(text: str) -> str:
    r"""Return a text with its formulas as a terminal shows them.

    Examples
    --------
    >>> plain(r"$O(K^3)$, $\sqrt d$, $10^{12}$, $t^{-p/16K}$, $\delta_{\min} \ge 1/(K d \sqrt w)$, $\mathbb{E} xx'$")
    "O(K^3), sqrt d, 10^12, t^(-p/16K), delta_min >= 1/(K d sqrt w), E xx'"
    """
    return FORMULA.sub(lambda match: _spelled(match[1]), text)


SPELLED: Final = (
    (r"\\(?:mathbb|text)\{([^}]*)\}", r"\1"),
    (r"\\[lr]vert\s?", "|"),
    (r"\\ge\b", ">="),
    (r"\\le\b", "<="),
    (r"\\times\b", "x"),
    (r"\\[,;]", " "),
    (r"\\([A-Za-z]+)", r"\1"),
    (r"([_^])\{(-?[\w.]+)\}", r"\1\2"),
    (r"\{([^}]*)\}", r"(\1)"),
)


def _spelled(formula: str) -> str:
    for pattern, text in SPELLED:
        formula = re.sub(pattern, text, formula)
    return formula


def two_digits(value: float) -> str:
    r"""Return a number with two digits, as a formula where it is too large or too small to be written out.

    Examples
    --------
    >>> two_digits(5.6e11), plain(two_digits(4.2e-10)), two_digits(0.19), two_digits(173.0)
    ('$5.6 \\times 10^{11}$', '4.2 x 10^-10', '0.19', '173')
    """
    if 1e-3 <= abs(value) < 1e6 or value == 0:
        return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"
    digits, exponent = f"{value:.1e}".split("e")
    return rf"${digits} \times 10^{{{int(exponent)}}}$"


def drawn(text: str) -> str:
    r"""Return a text for a figure, whose letters are not typeset: with roots and raised digits.

    Examples
    --------
    >>> drawn(r"$I = 2 + \log^2 t$, $2 + \sqrt t$, $10^{12}$")
    'I = 2 + log² t, 2 + √t, 10¹²'
    """
    raised = re.sub(r"\^(-?\d+)", lambda match: match[1].translate(RAISED), plain(text))
    return raised.replace("sqrt ", "√")
