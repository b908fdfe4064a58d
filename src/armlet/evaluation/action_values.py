"""`armlet.evaluate` on a log of actions: values, intervals, and how much of a target the log could have played.

Where a target plays what the log could not have played, no weight repairs it: the value is the model's word there, and
the interval allows any reward of the declared range; without a range there is no value.

A model of the rows before a decision knows nothing of its coin, action or reward, so an estimate that leans on it stays
unbiased although the policy that logged learned meanwhile. It is brought up to date between growing blocks of rows:
O(n (D^2 + m D)) in all, m the actions that targets may play.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from armlet.evaluation.actions import (
    ActionBanditTarget,
    ActionTarget,
    LoggedAction,
    LoggedActions,
    RowLaw,
    TableLaw,
    TableRows,
)
from armlet.evaluation.checks import ALPHA, FEWEST_TRAINED, NEGLIGIBLE, SLACK, Check, Word, share
from armlet.evaluation.estimators import Estimator, EstimatorLike
from armlet.evaluation.judge import Judge, JudgedValue, verdict
from armlet.evaluation.model import TargetSums, features_of, sum_products
from armlet.evaluation.monitor import AnytimeIntervals, Survey
from armlet.evaluation.result import Difference, Evaluation, Value
from armlet.inference.betting import bet_on_counts, p_value
from armlet.inputs.settings import Objective, Range
from armlet.kernel import ActionRows, PairModel
from armlet.parallel import Progress
from armlet.policies.shared import MOST_TERMS
from armlet.reference.evaluate import Parts
from armlet.types import Float64, Int64, Interval

FIRST: Final = 16  # rows that the model learns at once, at least
GROWTH: Final = 8  # so many times fewer than it has seen, later


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a target, (n,) each."""

    pi: Float64  # its probability of the action that was played
    played: Float64  # what the model expects of that action
    direct: Float64  # what it expects of the target where the log could have played the same
    beyond: Float64  # how much of what it plays the log could not have played
    imagined: Float64  # what the model expects of that part

    def parts(self, facts: Facts, fill: float | None) -> Parts:
        """Return what features of rows are made of; `fill` is what is put for what was out of reach, if anything is."""
        ones, zeros = np.ones(len(self.pi)), np.zeros(len(self.pi))
        direct = self.direct + (self.imagined if fill is None else self.beyond * fill)
        return Parts(self.pi, direct, facts.reward, facts.propensity, ones, zeros, self.played, zeros)


@dataclass(frozen=True, slots=True)
class Facts:
    """What rows say regardless of targets, (n,) each."""

    step: Float64
    reward: Float64
    propensity: Float64
    weight: Float64
    possible: Float64  # 1 if its propensity can be true
    likeliest: Float64  # 1 if no other action was likelier than the one that was played; NaN if there was no other
    due: Float64  # the probability of that; NaN likewise

    def logged(self) -> Parts:
        """Return parts that make the value of every estimator the mean reward."""
        e, r, ones = self.propensity, self.reward, np.ones(len(self.reward))
        return Parts(e, r, r, e, e, np.zeros(len(r)), r, ones)


def expect(
    log: LoggedActions,
    targets: Sequence[ActionTarget],
    observers: Sequence[Callable[[TableRows, Mapping[str, TableLaw]], None]],
    progress: Progress | None,
) -> tuple[Facts, list[Expected]]:
    """Ask all targets about all rows, and a model of earlier rows what comes of it."""
    model = _model(log)
    facts: list[tuple[float, ...]] = []
    expectations: list[list[tuple[float, ...]]] = [[] for _ in targets]
    waiting: list[tuple[int, Float64, Float64, float]] = []  # rows that the model is still to learn
    for block in log:
        rows = block.with_reward()
        laws = [target.law(rows) for target in targets]
        for observer in observers:
            observer(rows, {target.name: law for target, law in zip(targets, laws, strict=True)})
        for i, row in enumerate(rows.actions):
            facts.append(_facts(row))
            for law, expected in zip(laws, expectations, strict=True):
                expected.append(_expect(model, row, law.rows[i]))
            waiting.append((int(row.table.keys[row.place]), row.x, row.table.features[row.place], row.reward))
            if len(waiting) >= max(FIRST, len(facts) // GROWTH):
                for key, x, z, reward in waiting:
                    model.add(key, x, z, reward, 1.0)
                waiting.clear()
                if progress is not None:
                    progress(len(facts), log.n)
    columns = [Expected(*np.array(each, dtype=np.float64).reshape(-1, 5).T.copy()) for each in expectations]
    return Facts(*np.array(facts, dtype=np.float64).reshape(-1, 7).T.copy()), columns


def _facts(row: LoggedAction) -> tuple[float, ...]:
    chances = [] if row.support is None else list(row.support.values())
    most = max(chances, default=np.nan)
    is_open = len(chances) > 1 and min(chances) < most
    likeliest = float(row.propensity == most) if is_open else np.nan
    due = sum(chance for chance in chances if chance == most) if is_open else np.nan
    return row.t, row.reward, row.propensity, row.weight, float(row.is_possible), likeliest, due


def _model(log: LoggedActions) -> PairModel:
    """Return a model that knows nothing, of all products where there are not too many."""
    dx, dz = log.dim, log.action_dim
    all_pairs = np.array([(i, j) for i in range(1, dx + 1) for j in range(1, dz + 1)], dtype=np.int64)
    is_small = (1 + dx) * (1 + dz) <= MOST_TERMS
    return PairModel(dx, dz, all_pairs.reshape(-1, 2) if is_small else all_pairs[:0].reshape(0, 2), intercepts=True)


def _expect(model: PairModel, row: LoggedAction, law: RowLaw) -> tuple[float, float, float, float, float]:
    in_reach = np.array([row.reach(int(place)) > 0.0 for place in law.places], dtype=np.bool_)
    estimates = _estimates(model, row, np.append(law.places, row.place))
    shares = law.chances * estimates[:-1]
    return (
        law.of(row.place),
        float(estimates[-1]),
        float(shares[in_reach].sum()),
        float(law.chances[~in_reach].sum()),
        float(shares[~in_reach].sum()),
    )


def _estimates(model: PairModel, row: LoggedAction, places: Int64) -> Float64:
    """Return what the model expects of some actions of a row, of which one may come twice."""
    some, which = np.unique(places, return_inverse=True)
    rows = ActionRows(np.ascontiguousarray(row.table.features[some]), np.ascontiguousarray(row.table.keys[some]))
    estimates: Float64 = np.asarray(model.estimates(row.x, rows))[which]
    return estimates


WHY: Final = "propensities are exact, and a model of earlier rows alone is leant on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a log: the options of `armlet.evaluate` that concern actions."""

    estimator: EstimatorLike
    estimators: Mapping[str, Estimator]
    level: float
    declared: Range | None
    weights: str
    is_checked: bool


def value_actions(
    log: LoggedActions,
    several: Sequence[ActionTarget],
    question: Question,
    sequences: AnytimeIntervals | None,
    progress: Progress | None,
) -> Evaluation:
    """Estimate what policies would have earned on the decisions of a log of actions, the last of them the baseline."""
    base = several[-1]
    facts, expected = expect(log, several, [] if sequences is None else [sequences.add], progress)
    survey = _survey(log, facts)
    survey.refuse(question.weights)
    checks = _checks(facts, several, expected, question) if question.is_checked else ()
    answers = [
        _judged(log, survey, facts, several, expected, question, checks, end, sequences)
        for end in (None, "low", "high")
    ]
    judge, values, differences = answers[0]
    for place, target in enumerate(several):
        if question.declared is not None and expected[place].beyond.any() and not np.isnan(values[target.name].value):
            low, high = (each[1][target.name] for each in answers[1:])
            values[target.name] = _widened(values[target.name], low, high, float(expected[place].beyond.mean()))
    for name, difference in differences.items():
        low_end, high_end = (each[2][name] for each in answers[1:])
        differences[name] = _apart(difference, low_end, high_end, values, log.objective)
    order = [base.name, *(target.name for target in several[:-1])]
    return Evaluation(
        values={name: values[name] for name in order},
        differences=differences,
        baseline=base.name,
        objective=log.objective,
        rows=log.n,
        rewarded=survey.rewarded,
        explored=None,
        explored_rewarded=None,
        missing={},
        level=question.level,
        warnings=tuple(judge.warnings()),
        checks=judge.checks,
    )


def _survey(log: LoggedActions, facts: Facts) -> Survey:
    """Return what a log holds, in the words of other evaluations: propensities are all that is known."""
    rewarded = len(facts.reward)
    survey = Survey(n_arms=0, rows=log.n, rewarded=rewarded, silent=log.n, foreign=rewarded)
    survey.reweighted = int(np.count_nonzero(facts.weight != 1.0))
    survey.saw(facts.reward)
    return survey


Answer = tuple[Judge, dict[str, Value], dict[str, Difference]]


def _judged(
    log: LoggedActions,
    survey: Survey,
    facts: Facts,
    targets: Sequence[ActionTarget],
    expected: Sequence[Expected],
    question: Question,
    checks: tuple[Check, ...],
    end: str | None,
    sequences: AnytimeIntervals | None,
) -> Answer:
    """Value all targets, what is out of reach by the model; or at one end of what can be, the baseline at the other."""
    judge = Judge(survey, log, question.level, question.declared, question.estimator, question.estimators)
    judge.is_checked, judge.checks = question.is_checked and end is None, checks
    judge.trained = {str(check.target) for check in checks if check.name == "trained" and check.word is not Word.FINE}
    fills = [_fill(question.declared, end, is_base=target is targets[-1]) for target in targets]
    parts = [
        facts.logged() if target.is_log else each.parts(facts, fill)
        for target, each, fill in zip(targets, expected, fills, strict=True)
    ]
    known = question.declared is not None
    beyond = np.array([0.0 if known else float(each.beyond.sum()) for each in expected])
    sums: TargetSums = sum_products(features_of(parts, list(question.estimators.values())), beyond)
    judged: dict[str, JudgedValue] = judge.values(targets, sums, sequences)
    is_auto = question.estimator == "auto"
    values = {
        name: replace(each.value, why=WHY) if is_auto and each.value.estimator != "mean" else each.value
        for name, each in judged.items()
    }
    return judge, values, judge.differences(targets, judged, sums, ())


def _fill(declared: Range | None, end: str | None, *, is_base: bool) -> float | None:
    if declared is None or end is None:
        return None
    return declared[0] if (end == "low") != is_base else declared[1]


def _widened(value: Value, low: Value, high: Value, part: float) -> Value:
    """Return a value whose interval allows any reward where the log could not have played the same."""
    ends = [each for one in (low, high) if (each := one.interval) is not None]
    span = None if len(ends) < 2 or value.interval is None else _hull(*ends)
    note = (
        f"the log could not have played {share(part)} of what it plays: the value is a model's word there, and the "
        "interval allows any reward within the range"
    )
    return replace(value, interval=span, note="; ".join(filter(None, (value.note, note))))


def _apart(
    mid: Difference, low: Difference, high: Difference, values: Mapping[str, Value], objective: Objective
) -> Difference:
    """Return a difference whose intervals hold all that it can be."""
    pairs = [(low.interval, high.interval), (low.adjusted, high.adjusted)]
    alone, adjusted = (None if one is None or other is None else _hull(one, other) for one, other in pairs)
    said = verdict(values[mid.name], values[mid.baseline], adjusted, objective)
    return replace(mid, interval=alone, adjusted=adjusted, verdict=said)


def _hull(one: Interval, other: Interval) -> Interval:
    return Interval(min(one.low, other.low), max(one.high, other.high))


# ---- checks


def _checks(
    facts: Facts, targets: Sequence[ActionTarget], expected: Sequence[Expected], question: Question
) -> tuple[Check, ...]:
    checks = [_possible(facts), _drawn(facts)]
    for target, each in zip(targets, expected, strict=True):
        if not target.is_log:
            checks.append(_coverage(target.name, float(each.beyond.mean()), has_range=question.declared is not None))
        if isinstance(target, ActionBanditTarget):
            checks.append(_trained(target, facts))
    return tuple(checks)


def _possible(facts: Facts) -> Check:
    wrong = facts.step[facts.possible == 0.0]
    sentence = "Every propensity is that of an eligible action, and probabilities sum to 1."
    if len(wrong):
        sentence = (
            f"{len(wrong):,} rows, the first at step {wrong[0]:,.0f}, have a propensity that does not fit the logged "
            "probabilities, or an action that was not eligible: read the log again."
        )
    word = Word.REFUSED if len(wrong) else Word.FINE
    return Check(name="possible", word=word, sentence=sentence, number=len(wrong), unit="rows")


def _drawn(facts: Facts) -> Check:
    """Check whether the likeliest action of a row was played as often as it should have been."""
    is_open = ~np.isnan(facts.due)
    played, due, n = facts.likeliest[is_open].sum(), facts.due[is_open].sum(), int(is_open.sum())
    p = p_value(bet_on_counts(np.array([played]), np.array([due])))
    sentence = f"Likely actions were played as often as logged, in the {n:,} rows that can be tested."
    if p < ALPHA:
        sentence = (
            f"Of {n:,} rows {played:,.0f} play the likeliest action, and {due:,.0f} should: these are not the "
            "probabilities that actions were drawn with."
        )
    word = Word.REFUSED if p < ALPHA else Word.FINE
    return Check(name="propensities", word=word, sentence=sentence, number=p, unit="p-value")


def _coverage(name: str, beyond: float, *, has_range: bool) -> Check:
    covered = 1.0 - beyond
    if beyond <= NEGLIGIBLE:
        word, sentence = Word.FINE, "The log could have played all that it plays."
    else:
        sentence = f"The log could have played {share(covered)} of what it plays, and tells nothing of the rest: "
        word = Word.WARNING if has_range else Word.REFUSED
        sentence += "its interval allows any reward there." if has_range else "declare reward_range for bounds, "
        sentence += "" if has_range else "or log with armlet.SharedThompson, with more draws if it did."
    return Check(name="coverage", word=word, sentence=sentence, number=covered, unit="share", target=name)


def _trained(target: ActionBanditTarget, facts: Facts) -> Check:
    """Check whether a bandit learned from this log, by how many rows it has."""
    mine, theirs = float(target.bandit.state.n), float(facts.weight.sum())
    is_same = len(facts.weight) >= FEWEST_TRAINED and abs(mine - theirs) <= SLACK
    sentence = "It has learned another number of rows than this log holds."
    if is_same:
        sentence = (
            "It has learned exactly as many rows as this log holds, so it was trained on the rows that value it here, "
            "and its value is too good: value it on later ones."
        )
    word = Word.WARNING if is_same else Word.FINE
    return Check(name="trained", word=word, sentence=sentence, number=mine, unit="rows", target=target.name)
