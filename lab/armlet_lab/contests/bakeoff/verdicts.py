"""What is asked of the first policy: to beat Vowpal Wabbit where classes are balanced, and to tie where one is rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from armlet.parallel.seeds import Seeds
from armlet_lab.contests.bakeoff import vowpal
from armlet_lab.contests.bakeoff.comparing import Test
from armlet_lab.contests.bakeoff.fields import SINGLE, Field, exact, mean_norm, tallied
from armlet_lab.runner.experiment import Claim, Criterion, Outcome, Role, Statistic, Verdict

RIVAL: Final = vowpal.USUAL[0].label
FLOOR: Final = "Uniform"
ASKED: Final[dict[str, dict[str, float]]] = {
    "balanced": {RIVAL: 20 / 43, SINGLE: 0.0},
    "imbalanced": {RIVAL: -0.005},  # a tie will do
}
"""Wins minus losses must be above these, as a share of the tables, by kind and rival."""
SAYS: Final = {
    "balanced": (
        "it wins more tables than it loses against Vowpal Wabbit's RegCB-opt as it comes, by more than 20 of 43, and "
        "more than it loses against the one setting that is best in hindsight."
    ),
    "imbalanced": "it does no worse than tie with Vowpal Wabbit's RegCB-opt as it comes where one class is rare.",
}
ROLES: Final[dict[Test, Role]] = {"z": Role.WRITTEN, "strict": Role.READING}
NAMES: Final[dict[Test, str]] = {"z": "z-test", "strict": "stricter test"}
WHY: Final = {Outcome.FAILS: "Some setting of Vowpal Wabbit does better on these tables."}


def held_against(kind: str, fields: Sequence[Field], ours: str, seeds: Seeds) -> Verdict:
    """Judge one policy against the rivals of a kind of tables; one that was not played leaves it open."""
    claim = Claim(
        key=f"bakeoff-{kind}",
        where="A Contextual Bandit Bake-off, JMLR 22, 2021",
        source="Armlet",
        says=f"{ours}: {SAYS[kind]}",
        reading=(
            "Wins and losses are counted by the bake-off's own z-test; the stricter one is our reading. Control: "
            "uniform play errs as it must."
        ),
    )
    statistics = [
        _against(fields, ours, rival, share * len(fields), test)
        for rival, share in ASKED[kind].items()
        for test in ROLES
    ]
    if FLOOR in fields[0].runs:
        floor = mean_norm(fields, FLOOR, seeds)
        statistics.append(Statistic("norm of uniform play", floor, Criterion("within", 0.9, 1.1), Role.CONTROL))
    return Verdict(claim=claim, statistics=tuple(statistics), explanations=WHY)


def _against(fields: Sequence[Field], ours: str, rival: str, least: float, test: Test) -> Statistic:
    found = None
    if rival in fields[0].runs:
        wins, losses = tallied(fields, ours, rival, test)
        found = exact(float(wins - losses))
    return Statistic(f"wins minus losses against {rival}, {NAMES[test]}", found, Criterion("above", least), ROLES[test])
