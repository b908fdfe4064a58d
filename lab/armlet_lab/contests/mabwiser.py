"""MABWiser's LinUCB: the settings, and one table played in an environment of its own.

It keeps the inverse of a d x d matrix for every arm, and has no intercept: it is given a constant feature, as our
policies in units as given are. A row takes half a millisecond with two arms, and 5 with 287 features.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from armlet.datasets import DatasetTable, cache_folder
from armlet.types import Float64, Int64
from armlet_lab.contests import mabwiser_worker
from armlet_lab.contests.rival import Features, Setting, ask, wrong
from armlet_lab.runner.venvs import Recipe, environment

VERSION: Final = "2.7.4"
RECIPE: Final = Recipe(
    name="mabwiser",
    requires=(f"mabwiser=={VERSION}",),
    constraints="numpy==2.4.6\npandas==3.1.1\nscikit-learn==1.9.1\nscipy==1.17.1\n",
)


def _setting(alpha: float, ridge: float, features: Features) -> Setting:
    label = f"MABWiser LinUCB: alpha {alpha:g}, l2_lambda {ridge:g}, {features}"
    return Setting(label, json.dumps({"alpha": alpha, "l2_lambda": ridge}), features)


USUAL: Final = (
    Setting("MABWiser LinUCB", "{}"),
    Setting("MABWiser LinUCB, tuned", json.dumps({"alpha": 0.3, "l2_lambda": 1.0}), "standardised"),
)
"""As it comes, and the setting of the grid with the least error over the even tables in orders 71000 to 71002, 1,000
rows at most; tried with our LinUCB in units as given, which plays the same arms in far less time."""

GROUPS: Final[dict[str, tuple[Setting, ...]]] = {
    "mabwiser": USUAL,
    "mabwiser-grid": tuple(
        _setting(alpha, ridge, features)
        for features in ("raw", "standardised")
        for ridge in (1.0, 10.0)
        for alpha in (0.1, 0.3, 1.0)
    ),
}


def prepare(tell: Callable[[str], None] = lambda _: None) -> Path:
    """Return the Python that has MABWiser, installed now if it is not there."""
    place = cache_folder() / "environments" / f"mabwiser-{VERSION}-{RECIPE.fingerprint[:8]}"
    return environment(RECIPE, place, tell).python


def mistakes(
    table: DatasetTable,
    orders: Sequence[Int64],
    settings: Sequence[Setting],
    *,
    seeds: Sequence[int],
    logged: Sequence[Int64] = (),
) -> list[Float64]:
    """Play settings on rows in each order; return 1 for each wrong choice and 0 for each right one.

    Parameters
    ----------
    logged
        For every order the arms of its first rows, whose rewards are known before the first decision.
    """
    known = logged or [np.zeros(0, np.int64)] * len(orders)
    runs = [(*run, setting) for run in zip(orders, seeds, known, strict=True) for setting in settings]
    with tempfile.TemporaryDirectory() as folder:
        asked = []
        for place, (order, seed, arms, setting) in enumerate(runs):
            path = Path(folder) / f"{place}.npz"
            X = np.column_stack([setting.contexts(table)[order], np.ones(len(order))])
            np.savez(path, X=X, y=table.y[order], n_arms=table.n_arms, logged=arms)
            asked.append([str(path), setting.options, seed])
        answers = ask("MABWiser", prepare(), mabwiser_worker.__file__, asked)
    labels = [table.y[order[len(arms) :]] for order, _, arms, _ in runs]
    return [wrong("MABWiser", table, *each) for each in zip(labels, answers, strict=True)]
