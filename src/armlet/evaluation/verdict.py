"""The gate's answer: a word, the confidence sequence that it is read off, and both in words, drawn and as a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from armlet.evaluation.provenance import Provenance
from armlet.evaluation.result import between
from armlet.inputs.settings import Objective
from armlet.report import notebook, plots
from armlet.report.document import Table, check_pictures, document, figure, folded_section, table
from armlet.report.numbers import common_places, percent, show_interval
from armlet.report.result import Columns, Result, fields_of
from armlet.types import Estimate, Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Answer: TypeAlias = Literal["keep", "kill", "not yet"]
LIVE: Final = "live"


class Look(NamedTuple):
    """The gain after so many rows that have a reward."""

    rows: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Result):
    """The gate's answer after so many rows. Gains are in the sense of the objective: saved costs are gains."""

    answer: Answer
    gain: Interval  # of the candidate over the baseline, in the units of rewards
    worth: float  # the gain that it takes to be kept
    level: float
    rows: int  # that had a reward
    drawn: int  # of them, those whose arm was drawn regardless of the context
    waiting: int  # rows without a reward, which say nothing yet
    candidate: str
    against: str
    objective: Objective = "max"
    notes: tuple[str, ...] = ()
    looks: tuple[Look, ...] = ()  # the confidence sequence as rows came in
    made: Provenance | None = None  # the log, the version and the call that it comes from

    @property
    def sentence(self) -> str:
        """The answer, and by how much, in a sentence."""
        head = f"{self.answer.capitalize()}: on {self.rows:,} rewarded decision{'' if self.rows == 1 else 's'}"
        if self.drawn == 0:
            return f"{head} nothing is known of {self.candidate}, since no arm was drawn by chance."
        return f"{head} {self._by_worth() if self.worth else self._by_sign()}."

    def _by_sign(self) -> str:
        base, low, high = self._base(), *self.gain
        if self.answer == "not yet":
            return (
                f"it is not clear whether {self.candidate} is better or worse than {base}: {self._gains()} a decision"
            )
        word, less = ("better", "less") if self.answer == "keep" else ("worse", "more")
        by = between(self.gain if self.answer == "keep" else Interval(-high, -low))
        cost = f": it costs {less}" if self.objective == "min" else ""
        return f"{self.candidate} is {word} than {base}{cost}, by {by} a decision"

    def _by_worth(self) -> str:
        side = {"keep": "more than", "kill": "less than", "not yet": "which may be more or less than"}[self.answer]
        gains = self._gains().removeprefix("it ")
        return f"{self.candidate} {gains} a decision over {self._base()}, {side} the {self.worth:g} that it takes"

    def _gains(self) -> str:
        return f"it {'gains' if self.objective == 'max' else 'saves'} {between(self.gain)}"

    def _base(self) -> str:
        return "what runs" if self.against in (LIVE, "logged") else self.against

    def basis(self) -> str:
        """Return what the answer rests on."""
        return (
            f"The interval is anytime-valid at {percent(self.level)}: ask as often as you like while the log grows. "
            f"{self.drawn:,} of the {self.rows:,} decisions with a reward were drawn by chance."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON types."""
        return {"sentence": self.sentence, **fields_of(self)}

    def columns(self) -> Columns:
        """Return the confidence sequence, a row a look."""
        return {name: [getattr(look, name) for look in self.looks] for name in Look._fields}

    def plot(self) -> Figure:
        """Draw the confidence sequence of the gain as rows came in; needs `armlet[plots]`."""
        low, high = self.gain
        with plots.frame(height=3.0, labels=[]) as (drawn, axes):
            rows = [look.rows for look in self.looks]
            axes.fill_between(
                rows,
                [look.low for look in self.looks],
                [look.high for look in self.looks],
                color=plots.COLOURS[0],
                alpha=0.3,
                linewidth=0,
            )
            axes.axhline(self.worth, color=plots.INK, linestyle=plots.DASHES[1], linewidth=1.2)
            room = max(high - low, abs(self.worth - low), abs(self.worth - high))
            axes.set(xscale="log", xlabel="decisions with a reward (log scale)", ylabel="gain a decision")
            axes.set_ylim(min(low, self.worth) - room, max(high, self.worth) + room)
            axes.xaxis.set_major_formatter(lambda value, _: plots.short(value))
            axes.xaxis.set_minor_formatter(lambda *_: "")
        return drawn

    def __str__(self) -> str:
        return "\n".join([self.sentence, self.basis(), *self.notes])

    def _title(self) -> str:
        return self.sentence

    def _html(self) -> Iterable[str]:
        return [notebook.note(" ".join([self.basis(), *self.notes]))]

    def _page(self) -> str:
        parts: list[Any] = []
        if self.looks:
            picture = plots.page_picture(self.plot(), key="gain", alt=self.sentence, caption=self._caption())
            check_pictures([picture])
            parts.append(figure(picture))
        parts += [f"<p>{escape(' '.join([self.basis(), *self.notes]))}</p>"]
        if self.looks:
            parts.append(folded_section("numbers", "Numbers", [table(self._looks())]))
        parts.append(folded_section("limits", "What this cannot tell", [f"<p>{escape(LIMITS)}</p>"]))
        made = {} if self.made is None else self.made.lines()
        return document("Keep, kill or not yet", self.sentence, parts, made)

    def _caption(self) -> str:
        return (
            f"Where the gain of {self.candidate} over {self._base()} lies, after so many rows: anytime-valid at "
            f"{percent(self.level)}. It is kept when the band is above the dashed line, killed when it is below."
        )

    def _looks(self) -> Table:
        places = common_places([Estimate(look.low, look.low, look.high) for look in self.looks])
        rows = tuple((f"{look.rows:,}", show_interval(Interval(look.low, look.high), places)) for look in self.looks)
        return Table(caption="The gain as rows came in", head=("decisions with a reward", "gain"), rows=rows)


LIMITS: Final = (
    "The answer is of the contexts and rewards of this log, in its time, and of the candidate as it is: nothing here "
    "says that they stay. Of a live policy that learns it compares with the mean of what it earned, which may rise."
)
