"""What policies with outcomes would have had of each under every dial, from one log: `armlet.evaluate(..., dials=)`.

Values are weighted means of the rows in which a policy plays what was played; what is known of arms, such as prices, is
counted over all rows instead, and is exact. Memory holds a block, and some hundred sums for every value.
"""

from __future__ import annotations

from collections.abc import Iterator

from armlet.errors import EvaluationError
from armlet.evaluation.checks import TRAINED, Check, Word, check_trained
from armlet.evaluation.pareto.curve import ParetoCurve
from armlet.evaluation.pareto.judge import DialJudge
from armlet.evaluation.pareto.policies import read_policies
from armlet.evaluation.pareto.reading import DialSurvey, sum_log, survey_dials
from armlet.evaluation.pareto.sweep import DialsLike, lay_dials
from armlet.evaluation.rows import Blocks
from armlet.evaluation.targets import BanditTarget
from armlet.parallel import Progress
from armlet.types import Arm


def value_dials(
    blocks: Blocks,
    targets: object,
    dials: DialsLike,
    curve: tuple[str, str] | None,
    order: tuple[Arm, ...] | None,
    *,
    level: float,
    weights: str,
    checks: str,
    progress: Progress | None,
) -> ParetoCurve:
    """Value policies under dials."""
    question = read_policies(targets, blocks, order)
    laid = lay_dials(dials, curve, question, blocks)
    survey = survey_dials(blocks, question.estimated, checks, progress)
    survey.log.refuse(weights)
    _refuse_checked(survey.checks)
    doubt = survey.log.doubt(blocks)
    bandits = [BanditTarget(each.names[0], each.bandit, blocks.arms) for each in question.policies if each.bandit]
    about = () if checks == "none" else check_trained(bandits, blocks, survey.log.weights)
    trained = {str(check.target): TRAINED for check in about if check.word is not Word.FINE}
    sums = sum_log(blocks, question, laid, survey, progress)
    units = survey.log.units
    return ParetoCurve(
        **DialJudge(question, laid, survey, sums, level).curve(trained, doubt),
        curve=laid.curve,
        senses=laid.senses,
        counted=tuple(name for name in question.names if name not in question.estimated),
        rows=survey.log.rows,
        told=survey.log.rewarded,
        units=None if units is None else len(units),
        level=level,
        checks=(*survey.checks, *about),
        warnings=tuple(_warnings(survey, doubt, about)),
    )


def _refuse_checked(checks: tuple[Check, ...]) -> None:
    """Refuse a log that a check refuses: nothing can be valued by it."""
    refused = next((check for check in checks if check.word is Word.REFUSED), None)
    if refused is not None:
        raise EvaluationError(f"the check of {refused.name!r} refuses this log: {refused.sentence}")


def _warnings(survey: DialSurvey, doubt: str, about: tuple[Check, ...]) -> Iterator[str]:
    if doubt:
        yield doubt
    yield from (str(check) for check in (*survey.checks, *about) if check.word is not Word.FINE)
    if gone := survey.log.rows - survey.log.rewarded:
        yield f"{gone:,} of {survey.log.rows:,} decisions lack an outcome; values are of the others, which may differ"
