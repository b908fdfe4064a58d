"""What is known of actions in one context: estimates, how sure they are, and the rows that this is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armlet.actions.table import ActionTable
from armlet.kernel import PairModel
from armlet.report.result import Columns, Result
from armlet.types import Arm, Float64


@dataclass(frozen=True, slots=True, repr=False)
class ActionExplanation(Result):
    """The actions of the highest estimates in one context, the best first."""

    arms: list[Arm]
    estimates: list[float]  # of the reward, or cost
    widths: list[float]  # the deviation of each estimate
    evidence: list[float]  # rows: how often the action would have been shown, were it by itself, to be known as well
    probabilities: list[float]  # of the next decision

    def columns(self) -> Columns:
        """Return the table by columns, one row an action."""
        return {
            "arm": list(self.arms),
            "estimate": list(self.estimates),
            "width": list(self.widths),
            "evidence": list(self.evidence),
            "probability": list(self.probabilities),
        }

    def _title(self) -> str:
        return "Actions"

    def _answer(self) -> str:
        return f"Best estimate {self.arms[0]}: {self.estimates[0]:.4g}."


def explained(
    model: PairModel, x: Float64, table: ActionTable, chances: Float64, n: int, sign: float
) -> ActionExplanation:
    """Return the n actions of the highest estimates.

    An estimate with the width w (in units of the noise) is as good as the mean of 1 / w^2 rows.
    """
    estimates, widths = model.estimates(x, table.rows), model.widths(x, table.rows)
    first = np.argsort(-estimates, kind="stable")[:n].tolist()
    return ActionExplanation(
        arms=[table.labels[row] for row in first],
        estimates=(sign * estimates[first]).tolist(),
        widths=(model.sigma * widths[first]).tolist(),
        evidence=(1.0 / widths[first] ** 2).tolist(),
        probabilities=chances[first].tolist(),
    )
