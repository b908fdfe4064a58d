"""ACTG175: a trial that gave 2,139 patients one of four treatments at random, as the wheel of lifelines carries it.

S. M. Hammer and others: *A trial comparing nucleoside monotherapy with combination therapy in HIV-infected adults with
CD4 cell counts from 200 to 500 per cubic millimeter*, New England Journal of Medicine 335, 1996.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from armlet.datasets import cache
from armlet.datasets.collection import Collection
from armlet.datasets.feedback import Feedback, columns_of, numbers

ACTG175: Final = Collection(
    name="actg175",
    package="lifelines",
    version="0.30.3",
    sha256="5758783dcbca6f6cbac8e5b4df09aab9600bed73118a1557ee3f93fd2e669d71",
    files={"actg175": "lifelines/datasets/ACTG175.csv"},
    about=(
        "a clinical trial of 1991 to 1994: 2,139 patients with HIV, four treatments drawn with equal "
        "chances, CD4 counts before and after 20 weeks (Hammer and others, 1996)"
    ),
    licence="the package is under MIT; its data is that of the R package speff2trial, and states no terms of its own",
)

TREATMENTS: Final = ("zidovudine", "zidovudine+didanosine", "zidovudine+zalcitabine", "didanosine")
"""The arms, in the order of the trial's numbers 0 to 3."""

BEFORE: Final = (
    *("age", "wtkg", "hemo", "homo", "drugs", "karnof", "oprior", "z30", "preanti"),
    *("race", "gender", "str2", "strat", "symptom", "cd40", "cd80"),
)
"""What was known of a patient when the treatment was drawn; zprior is left out, since all had it."""


def actg175() -> Feedback:
    """Read the trial: the context is what was known before, the reward the change of CD4 (cells/mm3) in 20 weeks.

    The propensity is 1/4 as the trial was designed; 532, 522, 524 and 561 patients had the four treatments. Columns
    have the names of the file: wtkg is the weight in kg, cd40 and cd80 the counts of CD4 and CD8 before, and so on.
    `armlet data fetch actg175` comes first.
    """
    columns = columns_of(cache.text(ACTG175, "actg175"))
    n = len(columns["arms"])
    return Feedback(
        name="actg175",
        X=np.column_stack([numbers(columns[name]) for name in BEFORE]),
        arms=numbers(columns["arms"]).astype(np.int64),
        rewards=numbers(columns["cd420"]) - numbers(columns["cd40"]),
        propensities=np.full(n, 1 / len(TREATMENTS)),
        labels=TREATMENTS,
        features=BEFORE,
    )
