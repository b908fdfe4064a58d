"""The sample of the Open Bandit Dataset that the wheel of obp 0.4.1 carries: which fashion item was shown, and clicks.

Y. Saito, S. Aihara, M. Matsutani, Y. Narita: *Open Bandit Dataset and Pipeline: Towards Realistic and Reproducible
Off-Policy Evaluation*, NeurIPS 2021, datasets and benchmarks.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

import numpy as np

from armlet.datasets import cache
from armlet.datasets.collection import Collection
from armlet.datasets.encoding import encode_named
from armlet.datasets.feedback import Feedback, numbers
from armlet.errors import InvalidValueError
from armlet.types import Float64, Int64

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


def _read(logger: str, campaign: str) -> tuple[int, dict[str, list[str]]]:
    """Count the items by their affinities, also those that no row shows, and give the columns before these."""
    lines = cache.text(OPEN_BANDIT, f"{logger}/{campaign}").splitlines()
    head = lines[0].split(",")
    wanted = head.index(USER[-1]) + 1
    rows = (line.split(",", wanted)[:wanted] for line in lines[1:])
    return len(head) - wanted, dict(zip(head, map(list, zip(*rows, strict=True)), strict=False))


def _users(columns: dict[str, list[str]], campaign: str, other: str) -> tuple[tuple[str, ...], Float64]:
    """Give the flags of these users, the same ones as those of the other logger: a policy fits both."""
    more = _read(other, campaign)[1]
    features, X = encode_named({name: columns[name] + more[name] for name in USER})
    return features, X[: len(columns[USER[0]])]


def _whole(column: list[str]) -> Int64:
    return numbers(column).astype(np.int64)


def _times(column: list[str]) -> Int64:
    return np.array([round(datetime.fromisoformat(each).timestamp() * 1e6) for each in column], dtype=np.int64)
