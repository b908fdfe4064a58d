"""A treatment policy learned from half of the patients of ACTG175, valued on the others.

armlet data fetch actg175
python examples/clinical_trial.py
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import armlet
from armlet import datasets
from armlet.types import Bool


def part(rows: datasets.Feedback, which: Bool) -> datasets.Feedback:
    """Return some of the patients."""
    return replace(
        rows,
        X=rows.X[which],
        arms=rows.arms[which],
        rewards=rows.rewards[which],
        propensities=rows.propensities[which],
    )


def main() -> None:
    """Learn from every other patient, and value on those between."""
    rows = datasets.actg175()
    half = np.arange(len(rows)) % 2 == 0
    known, others = part(rows, half), part(rows, ~half)
    bandit = armlet.Bandit(rows.labels, features=rows.features, policy=armlet.Greedy(), seed=1)
    bandit.partial_fit(known.X, [rows.labels[arm] for arm in known.arms], known.rewards)
    print(armlet.evaluate(armlet.log.from_dataset(others), {"learned": bandit}, baseline="zidovudine+didanosine"))


if __name__ == "__main__":
    main()
