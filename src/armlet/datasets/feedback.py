"""Decisions that somebody really made, and what came of them: one reward a row, and the propensity of the arm.

ACTG175: S. M. Hammer and others: *A trial comparing nucleoside monotherapy with combination therapy in HIV-infected
adults with CD4 cell counts from 200 to 500 per cubic millimeter*, New England Journal of Medicine 335, 1996; as the
wheel of lifelines carries it.
Open Bandit: Y. Saito, S. Aihara, M. Matsutani, Y. Narita: *Open Bandit Dataset and Pipeline: Towards Realistic and
Reproducible Off-Policy Evaluation*, NeurIPS 2021, datasets and benchmarks; the sample in the wheel of obp 0.4.1.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import numpy as np

from armlet.datasets.collection import Collection, table_text
from armlet.datasets.table import encode_named
from armlet.errors import InvalidValueError
from armlet.types import Arm, Float64, Int64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Feedback:
    """Rows of context, arm, reward and propensity. `armlet.log.from_dataset` makes a log of them.

    Examples
    --------
    >>> some = Feedback(name="ads", X=np.ones((2, 1)), arms=np.array([1, 0]), rewards=np.array([0.0, 1.0]),
    ...                 propensities=np.array([0.5, 0.5]), labels=("a", "b"), features=("one",))
    >>> len(some), some.n_arms, some.dim, some.as_obp()["action"].tolist()
    (2, 2, 1, [1, 0])
    """

    name: str
    X: Float64  # (n, d)
    arms: Int64  # (n,): the index of the arm that was played
    rewards: Float64
    propensities: Float64  # the chance that the arm of the row had, given its context
    labels: tuple[Arm, ...]
    features: tuple[str, ...]
    slots: Int64 | None = None  # where on the page, from 1; None if there is one place only
    at: Int64 | None = None  # microseconds since 1970

    @property
    def n_arms(self) -> int:
        """How many arms there are, K."""
        return len(self.labels)

    @property
    def dim(self) -> int:
        """How many numbers a context has, d."""
        return len(self.features)

    def __len__(self) -> int:
        return len(self.arms)

    def as_obp(self) -> dict[str, object]:
        """Return the rows as the Open Bandit Pipeline calls them; `armlet.log.from_obp` reads that too."""
        position = None if self.slots is None else self.slots - 1
        counts = {"n_rounds": len(self), "n_actions": self.n_arms}
        columns = {"context": self.X, "action": self.arms, "reward": self.rewards, "pscore": self.propensities}
        return {**counts, **columns, "position": position}


def columns_of(text: str) -> dict[str, list[str]]:
    """Read comma-separated text with a head, column by column.

    Examples
    --------
    >>> columns_of("age,arm" + chr(10) + "31,a" + chr(10) + "44,b" + chr(10))
    {'age': ['31', '44'], 'arm': ['a', 'b']}
    """
    head, *rows = csv.reader(io.StringIO(text))
    return dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))


def numbers(column: Sequence[str]) -> Float64:
    """Read a column of numbers."""
    return np.array(column, dtype=np.float64)


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
    columns = columns_of(table_text(ACTG175, "actg175"))
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


Logger = Literal["random", "bts"]
Campaign = Literal["all", "men", "women"]

LOGGERS: Final = ("random", "bts")
CAMPAIGNS: Final = ("all", "men", "women")
USER: Final = tuple(f"user_feature_{i}" for i in range(4))

OPEN_BANDIT: Final = Collection(
    name="open-bandit",
    package="obp",
    version="0.4.1",
    sha256="a69c97e8d4a483f3bc212d79d9cf88105fbfe7070bdcf58eb3a8d7ec76df5936",
    files={
        f"{logger}/{campaign}": f"obp/dataset/obd/{logger}/{campaign}/{campaign}.csv"
        for logger in LOGGERS
        for campaign in CAMPAIGNS
    },
    about=(
        "the sample of the Open Bandit Dataset (Saito and others, 2021): six logs of 10,000 recommendations on a page "
        "of a fashion shop, 24 to 30 November 2019, by a uniform logger (random) and by Thompson sampling (bts)"
    ),
    licence="the package is under Apache-2.0; no terms are stated for the data apart",
)

ITEMS: Final = Collection(
    name=OPEN_BANDIT.name,
    package=OPEN_BANDIT.package,
    version=OPEN_BANDIT.version,
    sha256="8b6a39117cdd522ccf8d7dc80b1d38d14b7f054131c5bf70403d8c1fab1ff930",
    files={campaign: f"obp/dataset/obd/random/{campaign}/item_context.csv" for campaign in CAMPAIGNS},
    about="features of the items of the Open Bandit Dataset",
    licence=OPEN_BANDIT.licence,
)
"""In the same wheel as the logs, but no log."""


def open_bandit(logger: Logger = "random", campaign: Campaign = "all") -> Feedback:
    """Read one of the six logs, in the order of time. `armlet data fetch open-bandit` comes first.

    Arms are the numbers of the items: 80 in `all`, 34 in `men`, 46 in `women`. The context is four hashed features of
    the user, as flags, the same for both loggers; affinities to items are not read. A page has three places: `slots`
    says which, and a log is of one of them. Propensities are as in the file, where those of bts have six digits.

    Parameters
    ----------
    logger
        "random", uniform over items, or "bts", Bernoulli Thompson sampling.
    campaign
        "all", "men" or "women".
    """
    for value, name, known in ((logger, "logger", LOGGERS), (campaign, "campaign", CAMPAIGNS)):
        if value not in known:
            raise InvalidValueError(f"{name} is {value!r}; choose from {', '.join(known)}")
    items, columns = _read(logger, campaign)
    at = _times(columns["timestamp"])
    order = np.argsort(at, kind="stable")
    features, X = _users(columns, campaign, LOGGERS[1 - LOGGERS.index(logger)])
    return Feedback(
        name=f"open-bandit {logger}/{campaign}",
        X=X[order],
        arms=_whole(columns["item_id"])[order],
        rewards=numbers(columns["click"])[order],
        propensities=numbers(columns["propensity_score"])[order],
        labels=tuple(range(items)),
        features=features,
        slots=_whole(columns["position"])[order],
        at=at[order],
    )


def open_bandit_items(campaign: Campaign = "all") -> tuple[tuple[str, ...], Float64]:
    """Read the features of a campaign's items: their names, and a row for each item, (items, f).

    One number and flags for three hashed categories, the rows in the order of the items' numbers, which are the arms of
    `open_bandit`. `armlet data fetch open-bandit` comes first.
    """
    if campaign not in CAMPAIGNS:
        raise InvalidValueError(f"campaign is {campaign!r}; choose from {', '.join(CAMPAIGNS)}")
    columns = columns_of(table_text(ITEMS, campaign))
    order = np.argsort(_whole(columns["item_id"]))
    names, Z = encode_named({name: column for name, column in columns.items() if name.startswith("item_feature")})
    return names, Z[order]


def _read(logger: str, campaign: str) -> tuple[int, dict[str, list[str]]]:
    """Count the items by their affinities, also those that no row shows, and give the columns before these."""
    lines = table_text(OPEN_BANDIT, f"{logger}/{campaign}").splitlines()
    head = lines[0].split(",")
    wanted = head.index(USER[-1]) + 1
    rows = (line.split(",", wanted)[:wanted] for line in lines[1:])
    return len(head) - wanted, dict(zip(head, map(list, zip(*rows, strict=True)), strict=False))


def _users(columns: dict[str, list[str]], campaign: str, other: str) -> tuple[tuple[str, ...], Float64]:
    """Return the flags of these users, the same ones as those of the other logger: a policy fits both."""
    more = _read(other, campaign)[1]
    features, X = encode_named({name: columns[name] + more[name] for name in USER})
    return features, X[: len(columns[USER[0]])]


def _whole(column: list[str]) -> Int64:
    return numbers(column).astype(np.int64)


def _times(column: list[str]) -> Int64:
    return np.array([round(datetime.fromisoformat(each).timestamp() * 1e6) for each in column], dtype=np.int64)
