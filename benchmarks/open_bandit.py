"""The sample of Open Bandit through the shared model: a demonstration that it runs, for the sample tells nothing apart.

    python benchmarks/open_bandit.py          # prints a table

Items of a fashion shop with features, 20,000 rows a campaign of both loggers, and about a hundred clicks. Models learn
from four fifths of the rows and predict the clicks of the last, five times. The area under the curve is the chance
that a row with a click was ranked above one without: 0.5 is guessing, and its standard error is about 0.03 with a
hundred clicks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import numpy as np

import armlet
from armlet import datasets
from armlet.datasets.feedback import CAMPAIGNS, LOGGERS
from armlet.types import Float64, Int64
from router_report import table

FOLDS, SEED = 5, 1


class Shown(NamedTuple):
    """What both loggers of a campaign showed, to whom, and whether it was clicked on."""

    X: Float64
    arms: Int64
    clicks: Float64
    Z: Float64  # by item
    action_features: tuple[str, ...]


def read(campaign: str) -> Shown:
    logs = [
        datasets.open_bandit(cast("datasets.Logger", logger), cast("datasets.Campaign", campaign)) for logger in LOGGERS
    ]
    names, Z = datasets.open_bandit_items(cast("datasets.Campaign", campaign))
    X, arms, clicks = (np.concatenate([getattr(log, name) for log in logs]) for name in ("X", "arms", "rewards"))
    return Shown(X, arms, clicks, Z, names)


def by_item(shown: Shown, train: Int64, test: Int64) -> Float64:
    """Predict the share of clicks of the item."""
    counts = np.bincount(shown.arms[train], minlength=len(shown.Z))
    clicked = np.bincount(shown.arms[train], weights=shown.clicks[train], minlength=len(shown.Z))
    return ((clicked + shown.clicks[train].mean()) / (counts + 1))[shown.arms[test]]


def by_model(policy: armlet.SharedOptimism, shown: Shown, train: Int64, test: Int64) -> Float64:
    """Predict by the shared model; few contexts differ, so each is asked about once."""
    bandit = armlet.ActionBandit(shown.X.shape[1], shown.Z.shape[1], policy=policy, seed=SEED)
    columns = {"x": shown.X[train], "z": shown.Z[shown.arms[train]], "arm": shown.arms[train]}
    bandit.partial_fit({**columns, "reward": shown.clicks[train]})
    items = bandit.prepare("items", (range(len(shown.Z)), shown.Z))
    contexts, which = np.unique(shown.X[test], axis=0, return_inverse=True)
    expected = np.array([bandit.predict_expectations(x, items) for x in contexts])
    return np.asarray(expected[which.ravel(), shown.arms[test]])


def area(score: Float64, clicks: Float64) -> float:
    """Return the area under the ROC curve; rows that tie count half."""
    values, places, counts = np.unique(score, return_inverse=True, return_counts=True)
    del values
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places.ravel()]
    n = clicks.sum()
    return float((ranks[clicks == 1].sum() - n * (n + 1) / 2) / (n * (len(clicks) - n)))


def areas(shown: Shown) -> Mapping[str, float]:
    """Return the area of every model, predicted rows of all folds together."""
    number = tuple((place, 0) for place in range(shown.X.shape[1]))  # item_feature_0 is the one number of an item
    models = {
        "the item's share of clicks": by_item,
        "concatenation": lambda *rows: by_model(armlet.SharedOptimism(interactions="none", intercepts=False), *rows),
        "concatenation and intercepts": lambda *rows: by_model(armlet.SharedOptimism(interactions="none"), *rows),
        "products with the item's number, too": lambda *rows: by_model(
            armlet.SharedOptimism(interactions=number), *rows
        ),
    }
    folds = np.random.default_rng(SEED).integers(FOLDS, size=len(shown.clicks))
    found = {}
    for name, predict in models.items():
        score = np.empty(len(shown.clicks))
        for fold in range(FOLDS):
            score[folds == fold] = predict(shown, np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        found[name] = area(score, shown.clicks)
    return found


def main() -> None:
    datasets.fetch(datasets.COLLECTIONS["open-bandit"])
    rows: dict[str, list[str]] = {}
    for campaign in CAMPAIGNS:
        shown = read(campaign)
        rows.setdefault("rows", []).append(f"{len(shown.clicks):,}")
        rows.setdefault("clicks", []).append(f"{shown.clicks.sum():.0f}")
        for name, value in areas(shown).items():
            rows.setdefault(name, []).append(f"{value:.2f}")
    print(table("area under the curve", list(CAMPAIGNS), rows))


if __name__ == "__main__":
    main()
