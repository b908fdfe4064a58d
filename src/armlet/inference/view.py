"""`bandit.inference`: what a bandit's sums say of its coefficients, and how surely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from armlet.inference.model import Ask, Contrast, FittedModel, contrast, model_of
from armlet.inference.summary import Coefficients, Explanation, Summary, coefficients, explanation, summary
from armlet.types import Arm, Context

if TYPE_CHECKING:
    from armlet.bandit import Bandit
    from armlet.inference.regression import Looks


@dataclass(frozen=True, slots=True)
class Inference:
    """Intervals, contrasts, a summary and explanations of a bandit, from its sums as they are when asked."""

    bandit: Bandit

    def intervals(
        self,
        *,
        interval: Looks = "fixed",
        level: float = 0.95,
        noise_scale: float | None = None,
        base: Mapping[str, str] | None = None,
    ) -> Coefficients:
        """Return every coefficient of every arm, by least squares, with an interval; in the user's units.

        What is guaranteed depends on how the rows were chosen, and is said in `words` of the result. A coefficient that
        the rows do not determine has no interval and says why.

        Parameters
        ----------
        interval
            "fixed": valid at one time, fixed in advance. "anytime": valid at all times together.
        level
            The coverage of an interval.
        noise_scale
            For policies that choose rows by what they learned: a bound on the sub-Gaussian scale of the noise, which is
            the standard deviation of normal noise. Left out, it is half of `reward_range`; without either there is no
            interval.
        base
            The level of a column of categories that its other levels are differences from, by column; left out, the
            most frequent level.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), seed=1)
        >>> for t in range(60):
        ...     decision = bandit.decide([t % 7])
        ...     bandit.learn(decision, (t % 7) * (decision.arm == "b") + 0.1 * (t % 3))
        >>> found = bandit.inference.intervals().of("b", "0")
        >>> found.low < 1.0 < found.high
        True
        """
        return coefficients(self._model(), Ask(interval, level, noise_scale, base))

    def contrast(
        self,
        first: Arm,
        second: Arm,
        x: Context | None = None,
        *,
        interval: Looks = "fixed",
        level: float = 0.95,
        noise_scale: float | None = None,
    ) -> Contrast:
        """Return how much more one arm earns than another, in a context or on average over contexts; Welch's t.

        Parameters
        ----------
        x
            The context; left out, the mean of those that were learned from, whose own error counts too.
        interval, level, noise_scale
            As in `intervals`; "anytime" needs x.
        """
        bandit = self.bandit
        row = None if x is None else bandit._scaled(bandit._reader.row(x)[None])[0]
        return contrast(self._model(), first, second, row, Ask(interval, level, noise_scale))

    def summary(
        self,
        *,
        interval: Looks = "fixed",
        level: float = 0.95,
        noise_scale: float | None = None,
        base: Mapping[str, str] | None = None,
    ) -> Summary:
        """Return arms, rows, mean rewards, and coefficients with their errors; prints as tables."""
        return summary(self._model(), Ask(interval, level, noise_scale, base), self.bandit.arms.retired)

    def explain(self, x: Context) -> Explanation:
        """Return what each feature of a context adds to the estimate of each arm: the sum is `predict_expectations`.

        Examples
        --------
        >>> import armlet
        >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Algorithm1(p=100), features=["age"], seed=1)
        >>> _ = bandit.partial_fit([[1.0], [1.0], [1.0]], ["a", "b", "b"], [0.0, 1.0, 1.0], explored=True)
        >>> print(bandit.inference.explain({"age": 2.0}))
        arm  estimate  base    age
        a           0     0      0
        b       1.172     0  1.172
        """
        settings = self.bandit.settings
        labels, playable, rows, theta, base = self.bandit._estimated(self.bandit._reader.row(x)[None], None)
        names = list(settings.features or map(str, range(settings.dim)))
        return explanation(labels, playable, names, rows[0], theta, base, settings.sign)

    def _model(self) -> FittedModel:
        bandit = self.bandit
        now = bandit._snapshot()
        return model_of(bandit._settings, now.arms, now.state, now.t, bandit._fixed_rows)
