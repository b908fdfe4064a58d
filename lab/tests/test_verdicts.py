"""Verdicts: every outcome follows from statistics by rule, and every table tells the same story."""

from __future__ import annotations

import dataclasses
import json
import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet.report.numbers import show
from armlet.types import Estimate
from armlet_lab.runner.experiment import Claim, Criterion, Finding, Outcome, Role, Statistic, Verdict, conclude
from armlet_lab.runner.verdicts import answer, to_json, to_markdown, to_text

CLAIM = Claim(key="fig-a", where="Figure (a)", says="Regret grows as log t.", reading="At p = 600, theta fixed.")
AROUND_ONE = Criterion("within", 0.8, 1.3)
NEAR, FAR, WIDE = Estimate(1.0, 0.9, 1.1), Estimate(2.0, 1.9, 2.1), Estimate(1.3, 0.9, 1.7)
BY_FINDING = {Finding.PASSES: NEAR, Finding.FAILS: FAR, Finding.OPEN: WIDE}


def statistic(finding: Finding, role: Role = Role.WRITTEN, name: str = "doubling ratio") -> Statistic:
    return Statistic(name, BY_FINDING[finding], AROUND_ONE, role)


def verdict(*statistics: Statistic) -> Verdict:
    return Verdict(claim=CLAIM, statistics=statistics)


@pytest.mark.parametrize(
    ("criterion", "passes", "fails", "still_open"),
    [
        (AROUND_ONE, (0.8, 1.3), (1.31, 1.4), (0.7, 1.0)),
        (Criterion("outside", 0.8, 1.3), (1.31, 1.4), (0.8, 1.3), (1.0, 1.4)),
        (Criterion("above", 0), (0.1, 2.0), (-1.0, 0.0), (0.0, 1.0)),
        (Criterion("below", 2), (1.0, 1.9), (2.0, 3.0), (1.0, 2.0)),
        (Criterion("contains", 1), (1.0, 2.0), (1.1, 2.0), None),
    ],
)
def test_a_criterion_tells_met_from_contradicted_from_open(
    criterion: Criterion,
    passes: tuple[float, float],
    fails: tuple[float, float],
    still_open: tuple[float, float] | None,
) -> None:
    cases = zip((passes, fails, still_open), (Finding.PASSES, Finding.FAILS, Finding.OPEN), strict=True)
    for interval, expected in cases:
        if interval is not None:
            assert criterion.judge(Estimate(sum(interval) / 2, *interval)) is expected


@given(st.tuples(*[st.floats(-5, 5)] * 4))
def test_within_and_outside_are_opposites(numbers: tuple[float, float, float, float]) -> None:
    opposite = {Finding.PASSES: Finding.FAILS, Finding.FAILS: Finding.PASSES, Finding.OPEN: Finding.OPEN}
    (a, b), (low, high) = sorted(numbers[:2]), sorted(numbers[2:])
    found = Estimate((low + high) / 2, low, high)
    assert Criterion("outside", a, b).judge(found) is opposite[Criterion("within", a, b).judge(found)]


def test_a_number_that_is_not_defined_never_passes_and_never_fails() -> None:
    for relation in ("within", "outside"):
        assert Statistic("ratio", None, Criterion(relation, 0, 1)).finding is Finding.OPEN
    assert not Statistic("ratio", None, AROUND_ONE).passed


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match=r"ratio is .* but must be finite; give None"):
        Statistic("ratio", Estimate(1.0, 0.5, math.inf), AROUND_ONE)


P, F, O = Finding.PASSES, Finding.FAILS, Finding.OPEN  # noqa: E741


@pytest.mark.parametrize(
    ("written", "reading", "outcome"),
    [
        ([P, P], [], Outcome.HOLDS),
        ([P], [F], Outcome.HOLDS),
        ([P, F], [], Outcome.FAILS),
        ([F, O], [], Outcome.FAILS),
        ([P, O], [], Outcome.UNSETTLED),
        ([F], [P, P], Outcome.UNDER_READING),
        ([O], [P], Outcome.UNDER_READING),
        ([], [P], Outcome.UNDER_READING),
        ([F], [F], Outcome.FAILS),
        ([], [F], Outcome.FAILS),
        ([F], [O], Outcome.UNSETTLED),
        ([O], [F], Outcome.UNSETTLED),
    ],
)
def test_the_outcome_follows_from_the_findings(
    written: list[Finding], reading: list[Finding], outcome: Outcome
) -> None:
    statistics = [statistic(each) for each in written] + [statistic(each, Role.READING) for each in reading]
    assert verdict(*statistics).outcome is outcome
    assert verdict(*statistics, statistic(P, Role.CONTROL)).outcome is outcome
    for weak in (F, O):
        assert verdict(*statistics, statistic(weak, Role.CONTROL)).outcome is Outcome.UNSETTLED


def test_a_verdict_cannot_be_typed_in() -> None:
    assert {"outcome", "reason", "passed"}.isdisjoint(
        each.name for kind in (Verdict, Statistic) for each in dataclasses.fields(kind)
    )
    with pytest.raises((AttributeError, TypeError)):  # the latter with slots, before Python 3.12
        verdict(statistic(F)).outcome = Outcome.HOLDS  # type: ignore[misc]


def test_a_claim_without_statistics_is_not_judged() -> None:
    for statistics in ((), (statistic(P, Role.CONTROL),)):
        with pytest.raises(ValueError, match="fig-a has no statistic to be judged by"):
            Verdict(claim=CLAIM, statistics=statistics)


def test_the_reason_names_the_number_that_decided() -> None:
    mixed = verdict(statistic(P, name="slope"), statistic(F, name="doubling ratio"), statistic(P, Role.READING))
    assert mixed.reason == (
        "As written, 1 of 2 checks passed: doubling ratio is 2.00 [1.90 to 2.10], but passes if the interval lies "
        "within 0.8 to 1.3. Our reading, 1 of 1 check passed: doubling ratio is 1.00 [0.90 to 1.10]."
    )


def test_only_the_explanation_of_the_outcome_that_came_is_told() -> None:
    why = {outcome: f"Because it {outcome}." for outcome in Outcome}
    for finding, outcome in ((P, Outcome.HOLDS), (F, Outcome.FAILS), (O, Outcome.UNSETTLED)):
        reason = Verdict(claim=CLAIM, statistics=(statistic(finding),), explanations=why).reason
        assert [each for each in Outcome if why[each] in reason] == [outcome]


def many() -> list[Verdict]:
    pairs = product((P, F, O), (P, F, O))
    return [
        Verdict(
            claim=dataclasses.replace(CLAIM, key=f"claim-{index}", where=f"Section {index}"),
            statistics=(statistic(written), statistic(reading, Role.READING)),
        )
        for index, (written, reading) in enumerate(pairs)
    ]


def test_the_terminal_table_holds_every_verdict_and_counts_them() -> None:
    text = to_text(many(), width=80)
    assert max(map(len, text.splitlines()[:-1])) <= 80
    for each in many():
        assert f"{each.claim.key}  {each.claim.where}  {each.outcome}\n" in text
        assert " ".join(each.reason.split()) in " ".join(text.split())
    summary = " ".join(answer(many()))
    assert " ".join(text.split()).endswith(summary)
    assert "3 hold, 2 hold only under a stated reading, 1 does not hold and 3 are not settled by these runs." in summary
    assert summary.startswith("Tested: 9 claims of the paper, by 18 checks against bounds set before the runs.")


def test_the_conclusion_joins_the_clauses_of_the_outcomes_that_came_what_holds_first() -> None:
    ends = conclude("it grows slowly", "it grows fast")
    parts = [dataclasses.replace(verdict(statistic(finding)), conclusions=ends) for finding in (F, P, O)]
    parts.append(verdict(statistic(P)))  # which says nothing of its own
    assert answer(parts)[-1] == "It grows slowly; it grows fast; these runs leave open whether it grows slowly."


def test_formulas_are_typeset_in_markdown_and_spelled_out_elsewhere() -> None:
    claim = dataclasses.replace(CLAIM, says=r"At most $O(K_2^3 \sqrt d)$ | $x_1$.")
    (one,) = [Verdict(claim=claim, statistics=(statistic(P, name="$t^2$"),))]
    assert r"| At most $O(K_2^3 \sqrt d)$ \| $x_1$. |" in to_markdown([one])
    assert "At most O(K_2^3 sqrt d) | x_1." in to_text([one])
    (record,) = json.loads(to_json([one]))
    assert (record["says"], record["statistics"][0]["name"]) == ("At most O(K_2^3 sqrt d) | x_1.", "t^2")


def test_a_table_of_nothing_is_still_a_table() -> None:
    assert to_text([]).strip() == "Nothing was tested."


def test_markdown_cells_stay_in_their_row_whatever_they_hold() -> None:
    claim = dataclasses.replace(CLAIM, says="a | b\n<b>c</b> `d` *e* \\| [f](g)")
    lines = to_markdown([Verdict(claim=claim, statistics=(statistic(P),))]).splitlines()
    assert len(lines) == 5
    assert "a \\| b \\<b\\>c\\</b\\> \\`d\\` \\*e\\* \\\\\\| \\[f\\](g)" in lines[4]
    unescaped = lines[4].replace("\\\\", "").replace("\\|", "")
    assert unescaped.count("|") == lines[2].count("|")


def test_json_holds_every_number_and_repeats_to_the_byte() -> None:
    text = to_json(many())
    assert text == to_json(many())
    records = json.loads(text)
    assert [record["outcome"] for record in records] == [str(each.outcome) for each in many()]
    first = records[0]["statistics"][0]
    assert first["estimate"] == {"value": 1.0, "low": 0.9, "high": 1.1}
    assert (first["passed"], first["passes_if"], first["role"]) == (True, str(AROUND_ONE), "as written")
    undefined = verdict(Statistic("ratio", None, AROUND_ONE))
    assert json.loads(to_json([undefined]))[0]["statistics"][0]["estimate"] is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0000131, "0.0000131"),
        (1.234, "1.23"),
        (999.4, "999"),
        (0.0, "0"),
        (0.00496, "0.00496"),
        (20501.4, "20,501"),
        (2e12, "2.00 × 10¹²"),
        (-3021.0, "-3,021"),
    ],
)
def test_numbers_of_every_size_are_readable(value: float, words: str) -> None:
    assert show(Estimate(value, value, value)) == words


def test_an_estimate_and_its_interval_have_as_many_digits() -> None:
    assert show(Estimate(-0.0619, -0.125, 0.00496)) == "-0.062 [-0.125 to 0.005]"
