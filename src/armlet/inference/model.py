"""A bandit at one moment, as inference sees it: sums by arm, names, units, how its rows came about; contrasts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from armlet.errors import InvalidTypeError, InvalidValueError, UnknownNameError, choices
from armlet.inference.intervals import t_quantile
from armlet.inference.regression import (
    Direction,
    Looks,
    Regression,
    anytime_half_width,
    ellipsoid_half_width,
    fixed_half_width,
    origin_of,
    regress,
)
from armlet.inputs.columns import is_number
from armlet.inputs.settings import Settings, positive
from armlet.kernel import Statistics
from armlet.report import notebook
from armlet.report.result import Columns, Result, fields_of
from armlet.types import Arm, Float64, Policy, State

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RowOrigin: TypeAlias = Literal["explored", "counted", "fixed", "stopped", "chosen"]
"""How rows came about: explored by a plan; explored by a plan that counts rows; by a fixed rule, as `partial_fit` was
given; so many as rewards asked for; or chosen by what had been learned."""

CONSTANT: Final = "(constant)"
MEANS_FROM: Final = 3  # rows of an arm whose mean is compared

WORDS: Final[dict[tuple[RowOrigin, Looks], str]] = {
    ("explored", "fixed"): "Rows were explored by a plan that no reward can change, so this is ordinary regression: "
    "right for one look that was fixed beforehand, exactly if noise is normal.",
    ("counted", "fixed"): "How often an arm is explored depends on how many rows it has and on no reward, so this is "
    "ordinary regression: right for one look that was fixed beforehand, exactly if noise is normal; not if how late a "
    "reward comes depends on how large it is.",
    (
        "fixed",
        "fixed",
    ): "Arms were chosen by a rule that no reward changed, so this is ordinary regression: right for one "
    "look that was fixed beforehand, exactly if noise is normal.",
    ("fixed", "anytime"): "Right at all looks at once, if noise is normal.",
    (
        "stopped",
        "fixed",
    ): "How many rows there are depends on earlier rewards (p is found on the way), so coverage is not exact; "
    "interval='anytime' has a guarantee.",
    ("explored", "anytime"): "Right at all looks at once, if noise is normal.",
    ("counted", "anytime"): "Right at all looks at once, if noise is normal, however many rows there came to be.",
    ("stopped", "anytime"): "Right at all looks at once, if noise is normal, however many rows there came to be.",
    ("chosen", "fixed"): "Rows were chosen by what had been learned, so ordinary intervals would be too short: these "
    "are ellipsoids, right at all looks if the scale of the noise is.",
    ("chosen", "anytime"): "Rows were chosen by what had been learned: these are ellipsoids, right at all looks if the "
    "scale of the noise is.",
}


def rows_of(policy: Policy, *, all_fixed: bool = False) -> RowOrigin:
    """Return how the rows in a policy's sums came about.

    Examples
    --------
    >>> import armlet
    >>> rows_of(armlet.Algorithm1(p=9)), rows_of(armlet.AutoEpsilonGreedy()), rows_of(armlet.LinUCB())
    ('explored', 'stopped', 'chosen')
    """
    design = getattr(policy, "design", None)
    if design == "uniform":
        return "explored"
    if policy.learns_from != "explored steps":
        return "fixed" if all_fixed else "chosen"
    if design == "auto":
        return "stopped"
    return "counted" if design == "evidence" else "explored"


class Term(NamedTuple):
    """A coefficient: its name, which function of an arm's regression it is, and the level that it differs from."""

    name: str
    direction: Direction
    base: str | None = None


@dataclass(frozen=True, slots=True)
class FittedModel:
    """The sums of a bandit and what they mean."""

    state: Statistics
    arms: list[Arm]
    settings: Settings
    t: int
    rows: RowOrigin

    @property
    def names(self) -> list[str]:
        """The features, by name or by place."""
        return list(self.settings.features or map(str, range(self.settings.dim)))

    @property
    def unit_free(self) -> bool:
        """Whether there is a constant next to the features."""
        return self.state.units == "free"

    def index(self, arm: Arm) -> int:
        """Find an arm by its label."""
        try:
            return self.arms.index(arm)
        except ValueError:
            raise UnknownNameError(f"arm {arm!r} is not one of {self.arms}") from None

    def regression(self, arm: int) -> Regression:
        """Regress the rewards of one arm on its contexts."""
        return regress(self.state, arm, self.settings.sign)

    def terms(self, base: Mapping[str, str] | None = None) -> list[Term]:
        """Return every coefficient; flags of a column as differences from its base level, the most frequent one.

        Flags of a column add up to the constant, so rows tell their differences and not each by itself. The constant
        is then of a context with the base levels.
        """
        bases = self._bases(base or {})
        each = np.eye(self.settings.dim)
        terms = []
        for j, name in enumerate(self.names):
            if (of := bases.get(j)) is None:
                terms.append(Term(name, Direction.of_feature(j, len(each))))
            elif of != j:
                terms.append(Term(name, Direction(0.0, each[j] - each[of]), self.names[of]))
        levels = sorted(set(bases.values()))
        if not self.unit_free and not levels:
            return terms
        at = Direction(float(self.unit_free), each[levels].sum(axis=0))
        return [Term(CONSTANT, at, ", ".join(self.names[j] for j in levels) or None), *terms]

    def _bases(self, base: Mapping[str, str]) -> dict[int, int]:
        """Return the place of the base level's flag for the place of every flag of a category."""
        encoder = self.settings.encoder
        scaled = encoder is None or self.settings.normalize is not None  # flags of scaled contexts do not add up to 1
        categories = {} if scaled or encoder is None else encoder.flags
        for column in base:
            if column not in categories:
                known = choices(column, categories) if categories else "leave it out: no column has categories"
                raise InvalidValueError(f"base names {column!r}; {known}")
        bases: dict[int, int] = {}
        counts = self._sums_of_features()
        for column, flags in categories.items():
            places = [self.names.index(name) for name in flags]
            of = places[int(np.argmax(counts[places]))]
            if column in base:
                wanted = f"{column}={base[column]}"
                if wanted not in flags:
                    levels = [name.removeprefix(f"{column}=") for name in flags]
                    raise InvalidValueError(f"base is {base[column]!r} for {column!r}; {choices(base[column], levels)}")
                of = places[flags.index(wanted)]
            bases |= dict.fromkeys(places, of)
        return bases

    def _sums_of_features(self) -> Float64:
        """Return the sum of each feature over all rows, (d,); of flags, how many rows have them."""
        A = self.state.A.sum(axis=0)
        return A[0, 1:] + A[0, 0] * origin_of(self.state)[1:] if self.unit_free else np.diag(A)

    def why_not(self, regression: Regression, name: str, direction: Direction, base: str | None = None) -> str | None:
        """Return why a coefficient has no interval; None if it has one."""
        if not regression.is_enough:
            return (
                f"{regression.rows:g} rows are too few for {regression.size} coefficients; "
                f"from {regression.size + 3} on there is one"
            )
        if regression.tells(direction):
            return None
        if name in self.names and regression.scales[self.names.index(name)] == 0.0:
            return "does not vary in the rows of this arm" if self.unit_free else "is 0 in all rows of this arm"
        if name == CONSTANT and regression.meets_flat(direction):
            return "the rows of this arm do not tell it from features that do not vary"
        if base is not None and regression.scales[self.names.index(base)] == 0.0:
            return f"{base}, the level that it is a difference from, does not vary in the rows of this arm"
        return "the rows of this arm do not tell it from other features, which make it up"

    def noise_scale(self, scale: float | None) -> float | None:
        """Return R, the sub-Gaussian scale of noise: as given, or half of the range that rewards have."""
        if scale is not None:
            return scale
        ends = self.settings.reward_range
        return None if ends is None else (ends[1] - ends[0]) / 2

    def half_width(self, arm: int, regression: Regression, direction: Direction, ask: Ask) -> float | None:
        """Return how far the estimate may be off; None where nothing can be said."""
        if self.state.fades is not None:
            return None
        if self.rows == "chosen":
            R = self.noise_scale(ask.noise_scale)
            return None if R is None else ellipsoid_half_width(self.state, arm, regression, direction, ask.chance, R)
        width = fixed_half_width if ask.interval == "fixed" else anytime_half_width
        return width(regression, direction, ask.chance)

    @property
    def why_no_width(self) -> str:
        """Why `half_width` is None."""
        return "rows are discounted" if self.state.fades is not None else "noise_scale is not known"

    def words(self, ask: Ask) -> str:
        """Return what is guaranteed."""
        if self.state.fades is not None:
            return DISCOUNTED
        if self.rows == "chosen" and self.noise_scale(ask.noise_scale) is None:
            return NO_SCALE
        return WORDS[self.rows, ask.interval]


DISCOUNTED: Final = (
    "Rows are discounted, and no interval is proved for that: estimates are given, of the rows as they count now. For "
    "intervals learn the rows with a policy that has no discount or half_life."
)
NO_SCALE: Final = (
    "Rows were chosen by what had been learned, so ordinary intervals would be too short and are not given; for "
    "ellipsoids give noise_scale, or a bandit with a reward_range."
)


_SCALE: Final = positive(fix="give a positive number up to 1e+40, the deviation of normal noise")


@dataclass(frozen=True, slots=True)
class Ask:
    """What a user wants of an interval."""

    interval: Looks = "fixed"
    level: float = 0.95
    noise_scale: float | None = None
    base: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if self.interval not in ("fixed", "anytime"):
            raise InvalidValueError(f"interval is {self.interval!r}; choose 'fixed' or 'anytime'")
        if not (is_number(self.level) and 0 < self.level < 1):
            raise InvalidValueError(f"level is {self.level!r} but must lie between 0 and 1")
        if self.noise_scale is not None:
            object.__setattr__(self, "noise_scale", _SCALE("noise_scale", self.noise_scale))
        base = {} if self.base is None else self.base
        if not isinstance(base, Mapping) or not all(isinstance(word, str) for level in base.items() for word in level):
            raise InvalidTypeError(f"base is {self.base!r}; give levels by column, such as {{'country': 'pt'}}")

    @property
    def chance(self) -> float:
        """The chance to be wrong."""
        return 1 - self.level


def model_of(settings: Settings, arms: list[Arm], state: State, t: int, fixed_rows: float = 0.0) -> FittedModel:
    """Look at a bandit, or say that its policy keeps no sums of rows.

    `fixed_rows` is the weight of the rows that no reward chose; one more row, or one less, and arms were chosen by what
    had been learned, as far as the rows show.
    """
    fitted = getattr(settings.policy, "fitted", lambda _: None)(state)
    if not isinstance(fitted, Statistics):
        name = type(settings.policy).__name__
        raise InvalidTypeError(
            f"{name} keeps no sums of rows by arm, from which coefficients would follow; ask predict_proba"
        )
    all_fixed = fixed_rows > 0 and abs(float(fitted.n.sum()) - fixed_rows) <= 1e-9 * fixed_rows
    return FittedModel(fitted, arms, settings, t, rows_of(settings.policy, all_fixed=all_fixed))


@dataclass(frozen=True, slots=True, repr=False)
class Contrast(Result):
    """The expected reward (or cost) of one arm less that of another."""

    first: Arm
    second: Arm
    where: str  # "on average over contexts" or "at x"
    value: float | None
    error: float | None
    low: float | None
    high: float | None
    freedom: float | None  # Welch's degrees of freedom, where the interval is a t
    level: float
    words: str  # what is guaranteed, or why there is no interval

    def __str__(self) -> str:
        head = f"{self.first} - {self.second}, {self.where}"
        if self.value is None:
            return f"{head}: not known. {self.words}"
        if self.low is None or self.high is None:
            return f"{head}: {self.value:.4g}, no interval. {self.words}"
        return f"{head}: {self.value:.4g} [{self.low:.4g} to {self.high:.4g}] ({100 * self.level:g} %). {self.words}"

    def columns(self) -> Columns:
        """Return it as a table of one row."""
        return {name: [value] for name, value in fields_of(self).items()}

    def plot(self) -> Figure:
        """Draw the difference and its interval next to 0; needs `armlet[plots]`."""
        from armlet.inference.drawings import contrast_figure

        return contrast_figure(self)

    def _title(self) -> str:
        return "Contrast"

    def _answer(self) -> str:
        return str(self)

    def _html(self) -> Iterable[str]:
        numbers = ("value", "error", "low", "high")
        columns = {"first": [self.first], "second": [self.second], **{name: [getattr(self, name)] for name in numbers}}
        return [notebook.table(columns)]


@dataclass(frozen=True, slots=True)
class Contexts:
    """Where arms are compared: at one context, or at the mean of those seen, which is known up to an error."""

    x: Float64
    covariance: Float64  # of contexts, about their mean; zeros at one context
    rows: float  # behind the mean

    def variance(self, difference: Float64) -> float:
        """Return how much the mean context adds to the variance of a contrast."""
        return float(difference @ self.covariance @ difference) / self.rows


def contrast(model: FittedModel, first: Arm, second: Arm, x: Float64 | None, ask: Ask) -> Contrast:
    """Compare two arms."""
    if first == second:
        raise InvalidValueError(f"first and second are both {first!r}; give two arms")
    places = (model.index(first), model.index(second))
    where = "on average over contexts" if x is None else f"at {x.tolist()}"
    if x is None and ask.interval == "anytime" and model.rows != "chosen":
        raise InvalidValueError("interval is 'anytime' but x is None: the mean context moves as rows come; give x")
    if x is None and not model.unit_free and model.rows in ("explored", "counted"):
        return _contrast_means(model, first, second, ask)
    contexts = _mean_context(model) if x is None else Contexts(x, np.zeros((len(x), len(x))), 1.0)
    fits = [model.regression(place) for place in places]
    direction = Direction.at(contexts.x)
    why = _why_not(model, fits, [first, second], direction)
    value = fits[0].value(direction) - fits[1].value(direction) if all(fit.tells(direction) for fit in fits) else None
    if why is not None or value is None:
        return Contrast(first, second, where, value, None, None, None, None, ask.level, why or "")
    error, freedom, half = _spread(model, places, fits, contexts, ask)
    low, high = (None, None) if half is None else (value - half, value + half)
    return Contrast(first, second, where, value, error, low, high, freedom, ask.level, model.words(ask))


def _contrast_means(model: FittedModel, first: Arm, second: Arm, ask: Ask) -> Contrast:
    """Compare mean rewards: arms that were explored regardless of contexts have met the same ones on average."""
    where, state = "on average over contexts", model.state
    n = np.array([float(state.n[model.index(arm)]) for arm in (first, second)])
    if n.min() < MEANS_FROM:
        arm = (first, second)[int(n.argmin())]
        why = f"Arm {arm!r}: {n.min():g} rows are too few; from {MEANS_FROM} on there is an interval."
        return Contrast(first, second, where, None, None, None, None, None, ask.level, why)
    sums = [(float(state.sum_r[i]), float(state.sum_rr[i])) for i in map(model.index, (first, second))]
    means = [total / rows for (total, _), rows in zip(sums, n, strict=True)]
    parts = [
        max(0.0, squares - rows * mean * mean) / (rows - 1) / rows
        for (_, squares), mean, rows in zip(sums, means, n.tolist(), strict=True)
    ]
    value, error, freedom = (
        model.settings.sign * (means[0] - means[1]),
        math.sqrt(math.fsum(parts)),
        _welch(parts, (n - 1).tolist()),
    )
    half = t_quantile(1 - ask.chance / 2, freedom) * error
    words = f"{model.words(ask)} It compares means, without the contexts."
    return Contrast(first, second, where, value, error, value - half, value + half, freedom, ask.level, words)


def _why_not(model: FittedModel, fits: list[Regression], arms: list[Arm], direction: Direction) -> str | None:
    for fit, arm in zip(fits, arms, strict=True):
        if why := model.why_not(fit, "", direction):
            return f"Arm {arm!r}: {why}."
    return None


def _spread(
    model: FittedModel, places: tuple[int, int], fits: list[Regression], contexts: Contexts, ask: Ask
) -> tuple[float | None, float | None, float | None]:
    """Return standard error, degrees of freedom and half width."""
    direction = Direction.at(contexts.x)
    if model.state.fades is not None or model.rows == "chosen" or ask.interval == "anytime":
        # each arm's own bound, at half of the chance
        half_each = Ask(ask.interval, 1 - ask.chance / 2, ask.noise_scale)
        halves = [model.half_width(p, f, direction, half_each) for p, f in zip(places, fits, strict=True)]
        return None, None, None if None in halves else math.fsum(half for half in halves if half is not None)
    parts = [fit.error(direction) ** 2 for fit in fits]
    parts.append(contexts.variance(fits[0].slopes - fits[1].slopes))
    freedom = _welch(parts, [fits[0].freedom, fits[1].freedom, max(1.0, contexts.rows - 1)])
    error = math.sqrt(math.fsum(parts))
    return error, freedom, t_quantile(1 - ask.chance / 2, freedom) * error


def _welch(variances: Sequence[float], freedoms: Sequence[float]) -> float:
    """Return the degrees of freedom of a sum of variances that are estimated apart; the fewest where none varies."""
    squares = math.fsum(v * v / f for v, f in zip(variances, freedoms, strict=True))
    return math.fsum(variances) ** 2 / squares if squares > 0 else min(freedoms)


def _mean_context(model: FittedModel) -> Contexts:
    """Return the mean and spread of the contexts of all arms' rows."""
    if not model.unit_free:
        raise InvalidValueError(
            "x is None, but sums in units as given do not hold the mean context; give x, or a policy in free units"
        )
    A: Float64 = model.state.A.sum(axis=0)
    n = float(A[0, 0])
    if n <= 1:
        raise InvalidValueError("x is None, but there are no rows yet whose contexts could be averaged; give x")
    mean = A[0, 1:] / n
    covariance = (A[1:, 1:] - n * np.outer(mean, mean)) / (n - 1)
    return Contexts(mean + origin_of(model.state)[1:], covariance, n)
