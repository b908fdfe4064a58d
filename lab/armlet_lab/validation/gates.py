"""How often the gate keeps a candidate that gains nothing, at any of many looks; and how soon it keeps a good one.

Three arms, drawn alike, whose clicks do not depend on the arm; a candidate that goes by the context, so it plays
otherwise than what it is compared with and gains nothing. With a gain, the candidate's arms have so many clicks more.
Run as a module it prints a table: python -m armlet_lab.validation.gates --runs 1000
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.evaluation.gate import AgainstLive, AgainstOther, Compared, answer_of
from armlet.evaluation.rows import Rows, rows_of
from armlet.evaluation.targets import Always, FunctionTarget
from armlet.evaluation.verdict import Answer
from armlet.parallel import Seeds

Against: TypeAlias = Literal["live", "other", "other, weights bounded"]

AGAINST: Final[tuple[Against, ...]] = ("live", "other", "other, weights bounded")
ROWS: Final = 1500
LOOKS: Final = (10, 20, 40, 80, 160, 250, 350, 500, 700, 900, 1200, 1500)
CLICKS: Final = 0.3


def drawn(rng: np.random.Generator, gain: float) -> Rows:
    """Draw a log of uniform play; the candidate's arm has `gain` clicks more."""
    X, arms = rng.standard_normal((ROWS, 1)), rng.integers(3, size=ROWS)
    chance = CLICKS + gain * (arms == (X[:, 0] > 0))
    return rows_of(X, arms, (rng.random(ROWS) < chance).astype(np.float64), np.full(ROWS, 1 / 3), n_arms=3)


def candidate() -> FunctionTarget:
    """Play arm 1 where x is positive, else arm 0."""
    return FunctionTarget("candidate", lambda X, _: np.eye(3)[(X[:, 0] > 0).astype(np.int64)], (0, 1, 2))


def first_answer(against: Against, rows: Rows) -> tuple[Answer, int]:
    """Look again and again, and stop at the first answer; give it, and after how many rows it came."""
    compared: Compared
    if against == "live":
        compared = AgainstLive(candidate(), (0.0, 1.0), 0.95)
    else:
        most = 3.0 if "bounded" in against else None
        compared = AgainstOther(candidate(), Always("other", 2), (0.0, 1.0), 0.95, most)
    start = 0
    for look in LOOKS:
        compared.add(rows.take(slice(start, look)))
        start, answer = look, answer_of(compared.interval(), 0.0)
        if answer != "not yet":
            return answer, look
    return "not yet", ROWS


@dataclass(frozen=True, slots=True)
class Gated:
    """Shares of runs that ended so, and the rows that it took where there was an answer."""

    against: str
    gain: float
    runs: int
    keep: float
    kill: float
    rows: float | None


def gated(against: Against, gain: float, seeds: Iterable[int]) -> Gated:
    """Let the gate answer once for every seed.

    Examples
    --------
    >>> gated("other", 0.0, range(3)).keep
    0.0
    """
    found = [first_answer(against, drawn(Seeds(seed, "gates").rng("gated log"), gain)) for seed in seeds]
    words = [answer for answer, _ in found]
    took = [rows for answer, rows in found if answer != "not yet"]
    median = float(np.median(took)) if took else None
    n = len(found)
    return Gated(against, gain, n, words.count("keep") / n, words.count("kill") / n, median)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="How often the gate is wrong, at any of 12 looks.")
    parser.add_argument("--runs", type=int, default=1000, help="runs that gain nothing; a tenth of them gain something")
    runs = parser.parse_args().runs
    print(f"{'against':<24} gain  runs   keep   kill  median rows to an answer")
    for against in AGAINST:
        for gain, seeds in ((0.0, range(runs)), (0.3, range(runs // 10)), (-0.25, range(runs // 10))):
            g = gated(against, gain, seeds)
            took = "-" if g.rows is None else f"{g.rows:.0f}"
            print(f"{against:<24} {gain:>4} {g.runs:>5} {g.keep:>6.3f} {g.kill:>6.3f}  {took:>24}", flush=True)


if __name__ == "__main__":
    main()
