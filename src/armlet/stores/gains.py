"""Gains: what the comparisons of a loop say, in an answer, an interval and words; read off their sums, O(1).

An answer may be looked at as often as anybody likes: the interval behind it covers the mean gain so far at all looks at
once, with probability 0.95. "Yes" is said when it lies above 0, "no" when it lies below. Where no coin compares, there
is nothing to say, and the note says which share would answer, and by when.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from armlet.cast.cast import role_of
from armlet.report import notebook
from armlet.report.result import Columns, Result
from armlet.stores.folds import Tally
from armlet.stores.folds.comparisons import LEAST, Against, Comparison
from armlet.types import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Answer: TypeAlias = Literal["yes", "not yet", "no", "nothing to say"]

ADVISED: Final = 0.1  # the share of exploring or of a control that notes speak of
RANDOM: Final = "random play"  # uniform over the arms that are eligible
LIFT: Final = 0.2  # of the mean reward: the gain that they speak of
LONGEST: Final = 10**9  # decisions until an answer; with more nobody should wait
DAY: Final = 86_400_000_000  # microseconds
MANY: Final = 12.5  # times variance over gain^2: rows of a comparison until the interval leaves 0, about


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Gain(Result):
    """What one policy has gained over another so far; in reward units, where more is better (saved costs too).

    Against "uniform" and "control" it is the live policy's gain, for "shadow" that of the shadow over the live policy.
    """

    against: Against
    label: str  # what it is compared with, in words
    answer: Answer
    interval: Interval | None  # of the mean gain so far; None before the first row
    seen: float | None  # the gain seen so far, which lies inside
    rows: int  # decisions with a value that could have gone either way
    compared: int  # of these, where the coin fell on the comparison
    share: float  # the chance of that now; 0 if there is none
    since: int  # microseconds since 1970; 0 for the first decision
    longer: int | None  # more decisions until an answer, if the gain stays as seen; None if that is not known
    history: tuple[tuple[int, float, float], ...]  # decisions, and both ends then
    note: str  # what the answer does not cover, or why there is none
    shadow: str | None = None  # the name of the shadow, if it has one of its own

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain JSON types."""
        fields = {name: value for name, value in asdict(self).items() if name != "shadow" or value is not None}
        interval = None if self.interval is None else list(self.interval)
        return {**fields, "interval": interval, "history": [list(each) for each in self.history]}

    def columns(self) -> Columns:
        """Return how the interval of the mean gain has moved, by columns."""
        return {name: [each[at] for each in self.history] for at, name in enumerate(("decisions", "low", "high"))}

    def plot(self) -> Figure:
        """Draw the interval of the mean gain as decisions came in; needs `armlet[plots]`."""
        from armlet.report.loops import gain_figure

        return gain_figure(self)

    def _title(self) -> str:
        return f"Gain: {self.answer}"

    def _answer(self) -> str:
        return str(self)

    def _html(self) -> Iterable[str]:
        facts = {"seen so far": self.seen, "rows": self.rows, "of these compared": self.compared}
        return [notebook.facts({**facts, "share now": self.share, "decisions until an answer": self.longer})]

    def __str__(self) -> str:
        ends = "" if self.interval is None else ": {:.4g} to {:.4g} so far, on average".format(*self.interval)
        who = "the live policy" if self.against != "shadow" else shadow_words(self.shadow)
        return f"is {who} better than {self.label}? {self.answer}{ends}{'; ' if self.note else ''}{self.note}"


def shadow_words(name: str | None) -> str:
    """Name a shadow in a sentence."""
    return "the shadow" if name is None else f'the shadow "{name}"'


def answer_of(interval: Interval, share: float) -> Answer:
    """Read the answer off an interval, with the chance of the comparison now.

    Examples
    --------
    >>> [answer_of(Interval(*ends), 0.1) for ends in ((0.1, 0.3), (-0.3, -0.1), (-0.1, 0.1))]
    ['yes', 'no', 'not yet']
    >>> answer_of(Interval(-0.1, 0.1), 0.0)
    'nothing to say'
    """
    if interval.low > 0.0:
        return "yes"
    if interval.high < 0.0:
        return "no"
    return "not yet" if share >= LEAST else "nothing to say"


def gain_of(
    tally: Tally, against: Against, label: str, share: float, *, has_window: bool, shadow: str | None = None
) -> Gain:
    """Return what a comparison says.

    Parameters
    ----------
    tally
        The sums of the loop.
    against, label
        Which comparison, and its words.
    share
        The chance of the comparison now.
    shadow
        The name of the shadow, if it has one of its own.
    has_window
        Whether every decision is learned when its window closes; else only those that got a reward are compared.
    """
    role, scale = against if shadow is None else role_of(shadow), tally.comparisons.scale
    found = tally.comparisons.between.get(role, Comparison())
    size = scale[1] - scale[0] if scale is not None else 0.0
    rows, ends = found.sums.rows, found.sums.interval()
    answer: Answer = answer_of(ends, share) if rows or share >= LEAST else "nothing to say"
    mean = found.sums.mean
    return Gain(
        against=against,
        label=label,
        answer=answer,
        interval=Interval(size * ends.low, size * ends.high) if rows else None,
        seen=None if mean is None else size * mean,
        rows=rows,
        compared=found.compared,
        share=share,
        since=found.since,
        longer=_longer(found, tally) if answer == "not yet" else None,
        history=tuple((at, size * low, size * high) for at, low, high in found.history),
        note=_note(tally, against, answer, share, has_window=has_window),
        shadow=shadow,
    )


def _longer(found: Comparison, tally: Tally) -> int | None:
    """Return how many more decisions an answer takes; some of them get no value."""
    mean = found.sums.mean
    rows = None if mean is None else found.sums.rows_until(mean)
    if rows is None or not tally.traffic.known:
        return None
    decisions = rows * max(tally.traffic.decisions - tally.open, tally.traffic.known) / tally.traffic.known
    return math.ceil(decisions) if decisions <= LONGEST else None


def _note(tally: Tally, against: Against, answer: Answer, share: float, *, has_window: bool) -> str:
    if answer == "nothing to say" and tally.catalogue is not None:
        return "Of actions with features, other policies are judged by the log: armlet.evaluate(loop.log, ...)."
    if answer == "nothing to say":
        coin = "exploring" if against == "shadow" else "exploring or a control"
        return f"{_lack(tally, against)} {advice(tally, coin=coin)}"
    if share < LEAST:
        return "It is about earlier decisions: none of the present ones compares the two."
    return "" if has_window else "Only decisions that got a reward are compared; with a window all of them are."


def _lack(tally: Tally, against: Against) -> str:
    rate = tally.comparisons.rate or 0.0
    if against == "control":
        return "The control has no share of decisions now."
    if rate >= 1.0:
        return "Every decision explores now, so there is no other play to compare with."
    now = f"in {100 * rate:.2g} % of decisions" if rate else "in no decision"
    if against == "shadow":
        return f"The live policy explores {now} now, so nobody can say what the shadow would have earned."
    return f"The policy explores {now} now, so there is nothing to compare it with."


def advice(tally: Tally, share: float = ADVISED, coin: str = "exploring or a control") -> str:
    """Say which share of exploring or of a control would answer, and by when, at the rewards so far.

    Examples
    --------
    >>> advice(Tally())
    'With a share of 10 % of decisions for exploring or a control there will be an answer.'
    """
    n = sum(arm.learned for arm in tally.counts)
    total = sum(arm.learned * arm.mean for arm in tally.counts if arm.mean is not None)
    spread = sum((arm.learned - 1) * arm.variance for arm in tally.counts if arm.variance is not None)
    start = f"With a share of {100 * share:g} % of decisions for {coin}"
    gain = LIFT * abs(total) / n if n else 0.0
    decisions = MANY * (spread / n) / (share * gain**2) if gain else math.inf
    if not 0.0 < decisions <= LONGEST:
        return f"{start} there will be an answer."
    shown = f"a gain of {gain:.3g}, {100 * LIFT:g} % of the mean, shows after about {_count(decisions)} decisions"
    return f"{start} {shown}{_days(tally, decisions)}."


def _count(n: float) -> str:
    digits = max(len(str(round(n))) - 2, 0)
    return f"{round(n, -digits):,.0f}"


def _days(tally: Tally, decisions: float) -> str:
    took = tally.traffic.last_at - tally.traffic.first_at
    if took <= 0 or tally.traffic.decisions < 2:
        return ""
    days = decisions * took / (tally.traffic.decisions - 1) / DAY
    return f", {_count(days)} days at the pace so far" if days >= 2.0 else ", within two days at the pace so far"
