"""Policy search: thousands of linear policies valued in one pass over the randomized rows of a log.

Each has a confidence sequence of its own (gamma-exponential, O(1) state), all at once at the level asked for, by giving
each 1/J of the error probability: log J is all that it costs. So they race: one that is surely worse than another
is dropped and not looked at again. And whichever wins, its interval holds although it was selected, since the intervals
of all did.
O(n J K d) at first, less as policies drop out; memory O(n + J): nothing is kept for a row and a policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from armlet import kernel
from armlet.bandit import Bandit
from armlet.errors import ArgumentError, EvaluationError
from armlet.evaluation.checks import Trained, refuse_trained
from armlet.evaluation.dials.sums import checked_thetas, scored_contexts
from armlet.evaluation.provenance import Provenance, provenance
from armlet.evaluation.rows import Blocks, Rows, check_rows, deterministic_rows, randomized_rows, refuse_tables
from armlet.evaluation.sources import open_rows
from armlet.evaluation.targets import BanditTarget, places_in, read_order, through_encoders
from armlet.evaluation.units import refuse_units
from armlet.inference.intervals import LEVEL
from armlet.inference.sequences import BetSums, GammaExponential, in_range
from armlet.inputs.columns import is_number
from armlet.inputs.settings import Objective, Range, check_range
from armlet.log.reader import Source
from armlet.report import notebook, plots
from armlet.report.document import Section, Table, check_pictures, document, figure, folded_section, table
from armlet.report.numbers import column, percent, show
from armlet.report.result import Answered, Columns, fields_of
from armlet.types import Arm, Estimate, Float64, Int64, Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAT: Final = 1024
"""Rows between two looks at which policies are out."""
MOST: Final = 12  # policies in a figure
MOST_ROWS: Final = 100  # policies in a table


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SearchResult(Answered):
    """The winner of a search, and the policies that are still in the race."""

    winner: int  # which of the policies
    value: float  # what it would have earned, by its weighted mean: optimistic, since it was selected
    interval: Interval  # holds all the same, anytime-valid
    left: Int64  # the policies that are still in the race
    values: Float64  # of those, (left,)
    low: Float64  # the lower ends of their intervals, (left,)
    high: Float64
    rows: int  # drawn rows that were read
    policies: int  # that started
    level: float
    objective: Objective
    unknown: int = 0  # policies that play another arm where the log could play no other
    made: Provenance | None = None  # the log, the version and the call that it comes from

    @property
    def answer(self) -> str:
        """Which policy is the best, and what it would have earned, in a sentence."""
        earned = "earned" if self.objective == "max" else "cost"
        others = len(self.left) - 1
        others_left = "no other" if others == 0 else f"{others:,} {'other' if others == 1 else 'others'}"
        unknown = f"; {self.unknown:,} cannot be valued by this log" if self.unknown else ""
        return (
            f"On {self.rows:,} rewarded decisions drawn by chance policy {self.winner} of {self.policies:,} would have "
            f"{earned} {show(Estimate(self.value, *self.interval))} a decision, the best; {others_left} may be as good"
            f"{unknown}."
        )

    def basis(self) -> str:
        """Return what the answer rests on."""
        return (
            f"The intervals of all {self.policies:,} policies hold together, anytime-valid at {percent(self.level)}, "
            "so that of the winner holds although it was selected; its value is optimistic."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON types."""
        return {"answer": self.answer, **fields_of(self)}

    def columns(self) -> Columns:
        """Return the policies that are still in the race, the best first."""
        order = np.argsort(-self.values if self.objective == "max" else self.values, kind="stable")
        columns = {"policy": self.left, "value": self.values, "low": self.low, "high": self.high}
        return {name: column[order].tolist() for name, column in columns.items()}

    def plot(self) -> Figure:
        """Draw the best of those that are left with their intervals; needs `armlet[plots]`."""
        best = {name: column[:MOST] for name, column in self.columns().items()}
        with plots.frame(height=1.1 + 0.3 * len(best["policy"]), labels=[]) as (drawn, axes):
            for place, (value, low, high) in enumerate(zip(best["value"], best["low"], best["high"], strict=True)):
                axes.plot((low, high), (place, place), color=plots.COLOURS[0], linewidth=1.2, marker="|", markersize=7)
                axes.plot(value, place, color=plots.COLOURS[0], marker="s", markersize=6)
            axes.set_yticks(range(len(best["policy"])), [f"policy {number}" for number in best["policy"]])
            axes.set_ylim(len(best["policy"]) - 0.5, -0.5)
            axes.grid(visible=False, axis="y")
            axes.set_xlabel(f"mean {'reward' if self.objective == 'max' else 'cost'} a decision")
            axes.xaxis.set_major_formatter(lambda value, _: plots.short(value))
        return drawn

    def _html(self) -> Iterable[str]:
        return [notebook.table(self.columns()), notebook.note(self.basis())]

    def _page(self) -> str:
        columns = self.columns()
        texts = column(map(Estimate, columns["value"], columns["low"], columns["high"]))
        rows = tuple(zip((f"policy {number}" for number in columns["policy"]), texts, strict=True))
        caption = f"The best {min(MOST, len(rows))} of those that may be the best, with anytime-valid intervals."
        picture = plots.page_picture(self.plot(), key="left", alt=self.answer, caption=caption)
        check_pictures([picture])
        shown = Table(caption="Still in the race, the best first", head=("policy", "value"), rows=rows[:MOST_ROWS])
        left_out = [f"<p>{len(rows) - MOST_ROWS:,} more: to_pandas() has all.</p>"] if len(rows) > MOST_ROWS else []
        parts: list[str | Section] = [
            figure(picture),
            f"<p>{escape(self.basis())}</p>",
            folded_section("numbers", "Numbers", [table(shown), *left_out]),
            folded_section("limits", "What this cannot tell", [f"<p>{escape(LIMITS)}</p>"]),
        ]
        return document("Policy search", self.answer, parts, {} if self.made is None else self.made.lines())


LIMITS: Final = (
    "Values are of the contexts and rewards of this log, in its time. The best of many looks better than it is: the "
    "interval allows for that, the value does not. A gate on later rows settles whether the winner should be shipped."
)


def search(
    log: Source | Blocks,
    thetas: npt.ArrayLike,
    *,
    arms: Iterable[Arm] | None = None,
    reward_range: Range | None = None,
    level: float = LEVEL,
) -> SearchResult:
    """Find the best of many linear policies.

    Parameters
    ----------
    log
        As of `armlet.evaluate`.
    thetas
        (J, K, d), or (J, K, 1 + d) with a constant first: policy j plays the eligible arm with the highest
        thetas[j, a] @ x. Higher is played, also where rewards are costs.
    arms
        The order of arms in `thetas`; not needed where they are the numbers 0 to K - 1.
    reward_range
        (lowest, highest) reward there can be; that of the log if left out.
    level
        How often the interval of the winner, which is anytime-valid, holds.

    Examples
    --------
    >>> import armlet
    >>> rng = np.random.default_rng(1)
    >>> X, arms = rng.standard_normal((6000, 1)), rng.integers(2, size=6000)
    >>> rewards = (rng.random(6000) < 0.5 + 0.4 * np.tanh(3 * X[:, 0]) * (2 * arms - 1)).astype(float)
    >>> feedback = {"action": arms, "reward": rewards, "pscore": np.full(6000, 0.5), "context": X}
    >>> thetas = rng.standard_normal((500, 2, 2))
    >>> found = search(armlet.log.from_obp(feedback), thetas, reward_range=(0, 1))
    >>> 0.6 < found.interval.low < found.value < found.interval.high, len(found.left) < 250
    (True, True)
    """
    blocks = open_rows(log)
    refuse_tables(blocks, "a search")
    refuse_units(blocks, "a search", "evaluate policies by name, armlet.evaluate(log, {...}), which counts units")
    declared = blocks.reward_range if reward_range is None else reward_range
    if declared is None:
        raise ArgumentError("{reward_range} is missing, and the log declares none; a race needs it")
    check_range(declared)
    if not (is_number(level) and 0.0 < level < 1.0):
        raise ArgumentError("{level} is {value!r}; give a number between 0 and 1", value=level)
    places = places_in(blocks.arms, read_order(arms, blocks.arms), "{thetas}")
    policies = np.ascontiguousarray(checked_thetas(thetas, 3, len(blocks.arms), blocks.dim)[:, np.argsort(places)])
    race = _Race(policies[:, np.newaxis], declared, level, blocks.objective)
    for rows in blocks:
        check_rows(rows.take(rows.rewarded))
        used, chance = randomized_rows(rows)
        used &= rows.rewarded
        race.add(rows.take(used), chance[used])
    settings = {"reward_range": reward_range, "level": level}
    return race.result(provenance(blocks, search, thetas=np.shape(thetas), **settings))


def around(bandit: Bandit, n: int, *, seed: int, spread: float = 0.3) -> Float64:
    """Return n linear policies about a bandit's estimates, itself the first: (n, K, 1 + d), for `search`.

    Parameters
    ----------
    spread
        Of the changes, in units of the estimates' own size, coefficient by coefficient.

    Examples
    --------
    >>> import armlet
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    >>> _ = bandit.partial_fit([[0.0], [1.0]] * 2, ["a", "a", "b", "b"], [0.0, 1.0, 1.0, 0.0], explored=True)
    >>> around(bandit, 100, seed=1).shape
    (100, 2, 2)
    """
    if n < 1:
        raise ArgumentError("{n} is {value}; give 1 or more policies", value=n)
    if not 0.0 <= spread < np.inf:
        raise ArgumentError("{spread} is {value!r}; give 0 or a positive number", value=spread)
    if bandit.settings.normalize is not None:
        text = "{bandit} divides contexts by their length, so it is not linear in them; give one without normalize="
        raise ArgumentError(text)
    sign = 1.0 if bandit.settings.objective == "max" else -1.0
    at_zero = bandit.predict_expectations(np.zeros((1, bandit.settings.dim)))[0]
    units = bandit.predict_expectations(np.eye(bandit.settings.dim))
    own = sign * np.column_stack([at_zero, (units - at_zero).T])  # (K, 1 + d)
    scale = spread * np.sqrt((own**2).mean(axis=0))
    changes = np.random.default_rng(seed).standard_normal((n, *own.shape)) * scale
    changes[:1] = 0.0
    return np.asarray(own + changes)


def search_around(
    log: Source | Blocks,
    bandit: Bandit,
    n: int,
    *,
    seed: int,
    spread: float = 0.3,
    reward_range: Range | None = None,
    level: float = LEVEL,
) -> tuple[SearchResult, dict[Arm, list[float]]]:
    """Find the best of n linear policies about a bandit's estimates; return it, and its constant and slopes by arm.

    The bandit must not have learned from these rows, or the policies would know what they are judged by.

    Examples
    --------
    >>> import armlet
    >>> rng = np.random.default_rng(1)
    >>> X, arms = rng.standard_normal((4000, 1)), rng.integers(2, size=4000)
    >>> rewards = (rng.random(4000) < 0.5 + 0.4 * np.tanh(3 * X[:, 0]) * (2 * arms - 1)).astype(float)
    >>> bandit = armlet.Bandit([0, 1], 1, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
    >>> _ = bandit.partial_fit(X[:200], arms[:200], rewards[:200], explored=True)
    >>> later = {"action": arms[200:], "reward": rewards[200:], "pscore": np.full(3800, 0.5), "context": X[200:]}
    >>> found, theta = search_around(armlet.log.from_obp(later), bandit, 100, seed=1, reward_range=(0, 1))
    >>> found.interval.low > 0.6, sorted(theta), len(theta[0])
    (True, [0, 1], 2)
    """
    blocks = open_rows(through_encoders(log, bandit))
    if unknown := [arm for arm in blocks.arms if arm not in bandit.arms]:
        raise ArgumentError("{bandit} has no arm {arm!r}, which the log has; give one of the same arms", arm=unknown[0])
    trained = Trained(len(blocks.arms))
    for rows in blocks:
        trained.add(rows)
    refuse_trained(BanditTarget("bandit", bandit, blocks.arms), trained, blocks.arms)
    thetas = around(bandit, n, seed=seed, spread=spread)[:, [bandit.arms.index(arm) for arm in blocks.arms]]
    result = search(blocks, thetas, arms=blocks.arms, reward_range=reward_range, level=level)
    return result, dict(zip(blocks.arms, thetas[result.winner].tolist(), strict=True))


class _Race:
    """Sequences of the policies that are left, and which those are."""

    def __init__(self, policies: Float64, reward_range: Range, level: float, objective: Objective) -> None:
        self._policies, self._range, self._start = policies, reward_range, len(policies)
        self._level, self._objective, self._sign = level, objective, 1.0 if objective == "max" else -1.0
        self._left: Int64 = np.arange(len(policies))
        self._unknown = self._rows = 0
        self._sums = np.zeros((4, len(policies)))  # totals and squares of the lower bounds, then of the upper ones

    def add(self, rows: Rows, chance: Float64) -> None:
        """Add rows, heat by heat."""
        for start in range(0, len(rows), HEAT):
            part = slice(start, start + HEAT)
            if len(self._left):
                self._run(rows.take(part), chance[part])
            if len(self._left):
                self._drop()

    def _run(self, rows: Rows, chance: Float64) -> None:
        u = in_range(rows.reward, self._range)
        u = u if self._sign > 0 else 1.0 - u
        w = 1.0 / chance
        self._sums, known = kernel.race(
            scored_contexts(rows.X, self._policies),
            np.ascontiguousarray(rows.eligible).ravel(),
            rows.arm,
            w * u,
            w * (1.0 - u),
            deterministic_rows(rows),
            self._policies,
            self._rows,
            self._sums,
        )
        self._rows += len(rows)
        self._unknown += int(np.count_nonzero(~known))
        if not known.all():
            self._keep(known)

    def _drop(self) -> None:
        below, above = self._sequences()
        lowest, highest = below.bracket()
        leaders = highest >= lowest.max()  # one of these has the highest lower end
        best = below.of(leaders).bound().max()
        lowest, highest = above.bracket()
        stays = 1.0 - highest >= best
        if (close := ~stays & (1.0 - lowest >= best)).any():
            stays[close] = 1.0 - above.of(close).bound() >= best
        if not stays.all():
            self._keep(stays)

    def _sequences(self) -> tuple[GammaExponential, GammaExponential]:
        """Return those of the lower and of the upper ends."""
        each = (1.0 - self._level) / (2 * self._start)
        below, above = (BetSums(self._rows, *self._sums[side : side + 2]) for side in (0, 2))
        return GammaExponential(each, below), GammaExponential(each, above)

    def _keep(self, stays: npt.NDArray[np.bool_]) -> None:
        self._policies, self._left = self._policies[stays], self._left[stays]
        self._sums = np.ascontiguousarray(self._sums[:, stays])

    def result(self, made: Provenance) -> SearchResult:
        """Return the winner: the highest mean of those that are left."""
        if not len(self._left):
            raise EvaluationError(
                f"each of the {self._start:,} policies plays another arm where the log could have played no other, so "
                "nothing can be valued; log with a policy that explores"
            )
        rows = self._rows
        if rows == 0:
            raise EvaluationError("no row of the log was drawn by chance and has a reward, so nothing can be valued")
        # about the middle of rewards a weight that is too large by chance does not flatter
        below, above = self._sequences()
        centred = (below.sums.total - above.sums.total) / rows
        best = int(np.argmax(centred))
        shares = ((1.0 + centred) / 2, below.bound(), 1.0 - above.bound())
        values, *ends = (self._in_units(np.asarray(share)) for share in shares)
        low, high = ends if self._sign > 0 else reversed(ends)
        return SearchResult(
            winner=int(self._left[best]),
            value=float(values[best]),
            interval=Interval(float(low[best]), float(high[best])),
            left=self._left,
            values=values,
            low=low,
            high=high,
            rows=rows,
            policies=self._start,
            level=self._level,
            objective=self._objective,
            unknown=self._unknown,
            made=made,
        )

    def _in_units(self, share: Float64) -> Float64:
        low, high = self._range
        return low + (high - low) * (share if self._sign > 0 else 1.0 - share)
