"""What an evaluation, a gate, a search and a replayed learner answer, in a sentence: the same everywhere."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.evaluation import rejection_replay
from armlet.evaluation.checks import Check, Word
from armlet.evaluation.evaluate import evaluate
from armlet.evaluation.gate import gate
from armlet.evaluation.page import forest
from armlet.evaluation.provenance import Provenance
from armlet.evaluation.result import Difference, Evaluation, Value
from armlet.evaluation.rows import HeldBlocks, rows_of
from armlet.evaluation.search import SearchResult, search
from armlet.evaluation.sources import open_rows
from armlet.evaluation.verdict import Verdict
from armlet.report.result import Result
from armlet.types import Interval

NAN = math.nan
BETTER = ("better", 0.07, (0.0212, 0.1188))
WORSE = ("worse", -0.17, (-0.23, -0.11))
UNCLEAR = ("not clear", 0.01, (-0.03, 0.05))
TRAINED = ("not judged: trained on these rows", 0.2, None)
REFUSED = ("not judged: cannot be valued by this log", NAN, None)
OUTSIDE = ("better", 0.2, (0.02, 0.12))


def value(name: str, *, estimator: str = "weighted", number: float = 0.5) -> Value:
    known: Any = {"rows": 2836, "ess": 500.0, "why": "", "largest_weight": 2.0, "anytime": None}
    interval = None if math.isnan(number) else Interval(number - 0.02, number + 0.02)
    return Value(name=name, value=number, se=0.01, interval=interval, estimator=estimator, **known)


def found(
    differences: dict[str, tuple[str, float, tuple[float, float] | None]],
    *,
    baseline: str = "logged",
    objective: str = "max",
    rewarded: int = 2836,
) -> Evaluation:
    """Return the evaluation of policies that are so far from the baseline."""
    base = value(baseline, estimator="mean" if baseline == "logged" else "weighted")
    by_name = {
        name: Difference(
            name=name,
            baseline=baseline,
            value=number,
            se=0.03,
            interval=None,
            adjusted=None if ends is None else Interval(*ends),
            verdict=verdict,
        )
        for name, (verdict, number, ends) in differences.items()
    }
    counts: Any = {"rows": 3000, "rewarded": rewarded, "explored": None, "explored_rewarded": None, "missing": {}}
    return Evaluation(
        values={baseline: base, **{name: value(name, number=0.5 + each[1]) for name, each in differences.items()}},
        differences=by_name,
        baseline=baseline,
        objective=objective,  # type: ignore[arg-type]
        level=0.95,
        warnings=(),
        **counts,
    )


ANSWERS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (
        {"always north": WORSE, "own": UNCLEAR},
        {},
        "On 2,836 rewarded decisions always north is worse than what ran, by 0.170 [0.110 to 0.230] a decision; own: "
        "not clear.",
    ),
    (
        {"a": TRAINED, "b": UNCLEAR, "c": WORSE, "d": BETTER, "e": TRAINED, "f": REFUSED, "g": UNCLEAR},
        {},
        "On 2,836 rewarded decisions d is better than what ran, by 0.070 [0.021 to 0.119] a decision; c is worse, by "
        "0.170 [0.110 to 0.230]; b and g: not clear; a and e are not judged: trained on these rows; f is not judged: "
        "cannot be valued by this log.",
    ),
    (
        {"cheap": ("better", -0.17, (-0.23, -0.11)), "dear": ("worse", 0.07, (0.0212, 0.1188))},
        {"objective": "min"},
        "On 2,836 rewarded decisions cheap is better than what ran: it costs less, by 0.170 [0.110 to 0.230] a "
        "decision; dear is worse: it costs more, by 0.070 [0.021 to 0.119].",
    ),
    (
        {"own": UNCLEAR},
        {},
        "On 2,836 rewarded decisions it is not clear whether own is better or worse than what ran: the difference is "
        "0.010 [-0.030 to 0.050] a decision.",
    ),
    (
        {"own": UNCLEAR, "uniform": UNCLEAR, "north": TRAINED},
        {},
        "On 2,836 rewarded decisions it is not clear whether own or uniform is better or worse than what ran; north is "
        "not judged: trained on these rows.",
    ),
    (
        {str(place): ("worse", -0.1 * place, (-0.1 * place - 0.06, -0.1 * place + 0.06)) for place in range(1, 8)}
        | dict.fromkeys("abcdef", UNCLEAR),
        {},
        "On 2,836 rewarded decisions 7 is worse than what ran, by 0.700 [0.640 to 0.760] a decision; 6 is worse, by "
        "0.600 [0.540 to 0.660]; 5 is worse, by 0.500 [0.440 to 0.560]; 4 is worse, by 0.400 [0.340 to 0.460]; 3 "
        "others are worse; a, b, c, d and 2 others: not clear.",
    ),
    (
        {"new": BETTER},
        {"baseline": "baseline"},
        "On 2,836 rewarded decisions new is better than the baseline, by 0.070 [0.021 to 0.119] a decision.",
    ),
    ({"new": TRAINED}, {}, "On 2,836 rewarded decisions new is not judged: trained on these rows."),
    (
        {"own": OUTSIDE},
        {"baseline": "north", "rewarded": 1},
        "On 1 rewarded decision own is better than north, by 0.020 to 0.120 a decision.",
    ),
    ({}, {}, "On 2,836 rewarded decisions what ran earned 0.500 [0.480 to 0.520] a decision."),
    ({}, {"objective": "min"}, "On 2,836 rewarded decisions what ran cost 0.500 [0.480 to 0.520] a decision."),
    (
        {},
        {"baseline": "north"},
        "On 2,836 rewarded decisions north would have earned 0.500 [0.480 to 0.520] a decision.",
    ),
]


@pytest.mark.parametrize(("differences", "about", "sentence"), ANSWERS)
def test_the_answer_names_every_policy_and_is_the_same_everywhere(
    differences: dict[str, Any], about: dict[str, Any], sentence: str
) -> None:
    result = found(differences, **about)
    assert result.answer == sentence
    assert " ".join(str(result).partition("\n\n")[0].split()) == sentence
    assert result.to_dict()["answer"] == sentence


def test_a_refused_value_alone_is_not_judged() -> None:
    result = replace(found({}), values={"a": value("a", number=NAN)})
    assert result.answer == "On 2,836 rewarded decisions a is not judged: cannot be valued by this log."


@pytest.mark.parametrize(
    ("words", "basis"),
    [
        ("f", "The only check is fine."),
        ("fff", "All 3 checks are fine."),
        ("ffw", "Of 3 checks 2 are fine, 1 warns and none refuses. The check “c” of a warns: So."),
        ("wwrr", "Of 4 checks none is fine, 2 warn and 2 refuse. The check “c” of a refuses: So."),
    ],
)
def test_what_an_answer_rests_on_counts_checks_and_begins_with_the_worst(words: str, basis: str) -> None:
    kinds = {word.value[0]: word for word in Word}
    known: Any = {"name": "c", "sentence": "So.", "number": 1.0, "unit": "rows", "target": "a"}
    checks = tuple(Check(word=kinds[each], **known) for each in words)
    basis = f"2,836 of 3,000 decisions have a reward; the log does not say which explored. {basis}"
    assert " ".join(replace(found({}), checks=checks).basis()) == basis


def verdict(answer: str, gain: tuple[float, float], **known: Any) -> Verdict:
    about: Any = {"worth": 0.0, "level": 0.95, "rows": 400, "drawn": 90, "waiting": 0, "candidate": "b", "against": "a"}
    return Verdict(answer=answer, gain=Interval(*gain), **(about | known))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            verdict("keep", (0.1, 0.3)),
            "Keep: on 400 rewarded decisions b is better than a, by 0.10 to 0.30 a decision.",
        ),
        (
            verdict("kill", (-0.3, -0.1), against="live"),
            "Kill: on 400 rewarded decisions b is worse than what runs, by 0.10 to 0.30 a decision.",
        ),
        (
            verdict("kill", (-0.3, -0.1), objective="min"),
            "Kill: on 400 rewarded decisions b is worse than a: it costs more, by 0.10 to 0.30 a decision.",
        ),
        (
            verdict("keep", (0.1, 0.3), objective="min"),
            "Keep: on 400 rewarded decisions b is better than a: it costs less, by 0.10 to 0.30 a decision.",
        ),
        (
            verdict("not yet", (-0.1, 0.3)),
            "Not yet: on 400 rewarded decisions it is not clear whether b is better or worse than a: it gains -0.10 to "
            "0.30 a decision.",
        ),
        (
            verdict("not yet", (-1.0, 1.0), rows=1, drawn=0),
            "Not yet: on 1 rewarded decision nothing is known of b, since no arm was drawn by chance.",
        ),
        (
            verdict("keep", (0.1, 0.3), worth=0.05),
            "Keep: on 400 rewarded decisions b gains 0.10 to 0.30 a decision over a, more than the 0.05 that it takes.",
        ),
        (
            verdict("kill", (-0.1, 0.1), worth=0.2, objective="min"),
            "Kill: on 400 rewarded decisions b saves -0.10 to 0.10 a decision over a, less than the 0.2 that it takes.",
        ),
        (
            verdict("not yet", (-0.1, 0.3), worth=0.2),
            "Not yet: on 400 rewarded decisions b gains -0.10 to 0.30 a decision over a, which may be more or less "
            "than the 0.2 that it takes.",
        ),
    ],
)
def test_a_gate_says_by_how_much_in_the_sense_of_the_objective(given: Verdict, sentence: str) -> None:
    assert given.sentence == sentence
    assert str(given).splitlines()[0] == sentence == given.to_dict()["sentence"]


def held(objective: str = "max") -> HeldBlocks:
    rng, n = np.random.default_rng(0), 2000
    arms = rng.integers(2, size=n)
    rewards = (rng.random(n) < 0.2 + 0.3 * arms).astype(np.float64)
    rows = rows_of(np.ones((n, 1)), arms, rewards, np.full(n, 0.5))
    return HeldBlocks(rows, ["a", "b"], {"objective": objective, "reward_range": (0.0, 1.0)})


def found_by(name: str, objective: str) -> Result:
    log = held(objective)
    match name:
        case "evaluate":
            return evaluate(log, ["a", "own"])
        case "gate":
            return gate(log, "b", against="a")
        case "search":
            return search(log, [[[0.0], [1.0]], [[1.0], [0.0]]], arms=["a", "b"])
        case _:
            return rejection_replay(log, armlet.LinUCB(alpha=1.0), seed=1)


@pytest.mark.parametrize("objective", ["max", "min"])
@pytest.mark.parametrize("name", ["evaluate", "gate", "search", "replay"])
def test_every_result_has_the_same_four_and_says_what_made_it(name: str, objective: str, tmp_path: Path) -> None:
    result: Any = found_by(name, objective)
    sentence = result.sentence if name == "gate" else result.answer
    assert len(result.to_pandas()) == len(next(iter(result.columns().values()))) > 0
    assert result.plot()._repr_png_()[1:4] == b"PNG"
    shown = result._repr_html_()
    assert f"<b>{sentence}</b>" in shown
    assert ("<svg" in shown) == (name == "evaluate")
    for end in ("html", "json", "csv"):
        result.save(tmp_path / f"result.{end}")
    page = (tmp_path / "result.html").read_text(encoding="utf-8")
    assert page.index("<h1>") < page.index(f'<p class="answer">{sentence}</p>') < page.index("<figure>")
    assert page.index("<figure>") < page.index("<details>") < page.index("What made this")
    assert "<details open" not in page
    assert result.made.digest in page
    data = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert data == json.loads(json.dumps(result.to_dict()))
    assert sentence in data.values()
    assert data["made"]["rows_sha256"] == result.made.digest
    assert " ".join(repr(result).split()).startswith(sentence)


def test_a_search_tells_what_each_policy_that_is_left_would_have_earned() -> None:
    for objective, best in (("max", 0), ("min", 1)):
        one = search(held(objective), [[[0.0], [1.0]], [[1.0], [0.0]]], arms=["a", "b"])
        assert isinstance(one, SearchResult)
        assert one.winner == best
        table = one.columns()
        assert (table["policy"][0], table["value"][0]) == (one.winner, one.value)
        assert (table["low"][0], table["high"][0]) == one.interval
        assert f"policy {best} of 2 would have {'earned' if objective == 'max' else 'cost'}" in one.answer


def test_a_log_has_one_digest_in_lines_and_compacted_and_another_when_a_reward_changes(tmp_path: Path) -> None:
    digests: list[str | None] = []
    for changed in (False, True):
        path = tmp_path / f"log{changed:d}.jsonl"
        with armlet.Log(path) as log:
            bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.Uniform(), seed=3, log=log)
            for step in range(50):
                decision = bandit.decide([float(step)])
                if step % 7:
                    bandit.learn(decision, float(step == 40 and changed))
        armlet.log.compact(path)
        lines, columns = open_rows(path), open_rows(path.with_suffix(".parquet"))
        assert lines.digest is None
        assert [len(list(blocks)) for blocks in (lines, columns)] == [1, 1]
        assert lines.digest == columns.digest
        assert lines.period == columns.period
        assert (lines.name, columns.name) == (path.name, path.with_suffix(".parquet").name)
        digests.append(lines.digest)
    assert digests[0] != digests[1]


def test_what_made_a_result_is_its_log_its_period_and_its_call() -> None:
    result = evaluate(held(), ["a", "own"], level=0.9)
    assert result.made is not None
    assert result.made.call == "evaluate('rows in memory', targets=['a', 'own'], level=0.9)"
    assert result.made.lines()["period"] == "the log has no times"
    by_command = Provenance(log="a.jsonl", digest=None, period=(0, 1_500_000), call="armlet gate a.jsonl")
    assert by_command.lines() == {
        "log": "a.jsonl",
        "period": "1970-01-01 00:00:00 to 1970-01-01 00:00:01 UTC",
        "command": "armlet gate a.jsonl",
    }
    assert by_command.to_dict()["period"] == ["1970-01-01T00:00:00+00:00", "1970-01-01T00:00:01.500000+00:00"]


def test_a_gate_draws_the_sequence_that_its_answer_is_read_off() -> None:
    one = gate(held(), "b", against="a")
    assert one.looks[-1] == (one.rows, *one.gain)
    widths = [look.high - look.low for look in one.looks]
    assert widths[-1] < widths[len(widths) // 2] <= widths[0]
    assert one.columns()["rows"] == sorted(set(one.columns()["rows"]))


def test_no_number_is_printed_without_its_interval() -> None:
    rng, arms, chances = np.random.default_rng(5), np.zeros(400, dtype=np.int64), np.full(400, 0.98)
    arms[:3], chances[:3] = 1, 0.02
    rewards = (rng.random(400) < 0.4 + 0.463 * (arms == 1)).astype(float)
    feedback = {"action": arms, "reward": rewards, "pscore": chances, "context": np.ones((400, 1))}
    log = armlet.log.from_obp(feedback)
    found = armlet.evaluate(log, {"rare": 1}, checks="none")
    bare = replace(
        found,
        values={name: replace(each, interval=None) for name, each in found.values.items()},
        differences={name: replace(each, interval=None, adjusted=None) for name, each in found.differences.items()},
    )
    assert {row[1] for row in (*bare.value_rows()[1], *bare.difference_rows()[1])} == {"none"}
    assert "not judged: no interval can be trusted" in replace(bare, differences={}).answer


def test_decimals_come_from_intervals_that_are_there() -> None:
    found = armlet.evaluate(held("max"), {"b": "b"}, baseline="a", reward_range=(0, 1))
    values = {
        name: replace(each, interval=None, anytime=Interval(0.0181, 0.0769)) for name, each in found.values.items()
    }
    bare = replace(found, values=values)
    assert {row[1:4] for row in bare.value_rows()[1]} == {("none", "none", "[0.018 to 0.077]")}
    axes = bare.plot().axes[0]
    assert not [line for line in axes.lines if line.get_marker() in ("s", "D")]  # no point, and no line at the baseline
    assert "b without an interval" in forest(bare).svg


def test_a_replay_without_an_interval_says_so() -> None:
    found = rejection_replay(held("max"), armlet.LinUCB(alpha=1.0), seed=1)
    one = replace(found, rewards=np.array([0.125]), t=found.t[:1], explored=found.explored[:1])
    assert "would have taken 1 step, and earned 0.125 (no interval) a step while it learned" in one.answer
