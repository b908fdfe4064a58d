"""The commands `armlet evaluate`, `rejection-replay`, `gate` and `search`: what policies would have earned on a log."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from armlet.bandit import Bandit
from armlet.cli.answer import Answer
from armlet.cli.command import (
    REPEATED,
    arg,
    between,
    command,
    count,
    engine,
    level,
    named_policy,
    names,
    progress,
    seed,
)
from armlet.cli.sources import LOG_OR_STORE, LOOP, ROLES, open_log
from armlet.errors import InvalidValueError, choices
from armlet.evaluation import rejection_replay as replayed
from armlet.evaluation.evaluate import evaluate as evaluate_log
from armlet.evaluation.gate import gate as judge
from armlet.evaluation.provenance import made_by
from armlet.evaluation.search import search_around
from armlet.evaluation.sources import open_rows
from armlet.evaluation.targets import through_encoders
from armlet.inputs.named import parse_named
from armlet.loading import load
from armlet.parallel import silent
from armlet.simulation.compare import make_policy

if TYPE_CHECKING:
    from armlet.evaluation.learners import RejectionReplay
    from armlet.evaluation.rows import Blocks
    from armlet.evaluation.targets import TargetLike
    from armlet.report.result import Result

TARGET: Final = "a model file, always:ARM, uniform, logged or own"
WORDS: Final = ("uniform", "logged", "own")
NAMES: Final = {"data": "LOG", "arms": "--arm-names"}  # of arguments that commands call otherwise
VERDICTS: Final = {"better": "good", "worse": "bad", "not clear": "open"}


def dials(text: str) -> int | list[dict[str, float]]:
    """Read how many dials, or the weights that one outcome has in each.

    Examples
    --------
    >>> dials("20"), dials("cost=-5,-20")
    (20, [{'cost': -5.0}, {'cost': -20.0}])
    """
    name, equals, values = text.partition("=")
    if not equals:
        return count(text)
    try:
        return [{name: float(value)} for value in values.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"invalid dials: {text!r}; write 20, or weights as in cost=-5,-20") from None


@command(
    LOG_OR_STORE,
    LOOP,
    arg("--candidate", action="append", required=True, metavar="POLICY", help=f"what to value: {TARGET}; {REPEATED}"),
    arg(
        "--dials",
        type=dials,
        metavar="N",
        help="value models with outcomes under so many weights, or under some, such as cost=-5,-20: the Pareto curve",
    ),
    arg("--curve", type=names, metavar="Y,X", help="with --dials: which outcome is drawn against which, and swept"),
    arg("--baseline", default="logged", metavar="POLICY", help="what to compare with; default: logged"),
    arg("--estimator", default="auto", metavar="NAME", help="default: auto, which says why it chose"),
    arg("--exploring", action="store_true", help="models play as their next decision would, exploring included"),
    arg("--reward-range", type=between, metavar="LOW..HIGH", help="of rewards, for anytime-valid intervals"),
    level(),
    arg("--weights", choices=("refuse", "ignore"), default="refuse", help="rows learned with a weight other than 1"),
    arg("--out", type=Path, metavar="FILE", help="write a page, such as report.html"),
    *engine("serial"),
    ROLES,
    options=NAMES | {"targets": "--candidate", "mode": "--exploring"},
    extras=("pyarrow", "matplotlib", "distributed"),
    interrupted="nothing was written",
)
def evaluate(a: argparse.Namespace) -> Answer:
    """Describe what policies would have earned on the decisions of a log, with intervals and checks.

    examples:
      armlet evaluate log.jsonl --candidate model.armlet --candidate uniform --out page.html
      armlet evaluate decisions.parquet --candidate uniform --baseline always:north --json
      armlet evaluate decisions.parquet --candidate own
      armlet evaluate ab.csv --candidate model.armlet --reward paid --propensity 1/2
      armlet evaluate shop.db --loop homepage --candidate uniform
      armlet evaluate routed.parquet --candidate model.armlet --dials 20 --out pareto.html

    A candidate is a model file (what looks best to it, or with --exploring its next decision), always:ARM, uniform,
    logged, or own: the honest value of what these very rows teach. With --dials it is a model with outcomes, or
    always:ARM; what ran is always on the curve.
    """
    _check_out(a)
    blocks = _read(a, a.candidate, a.baseline)
    words = WORDS if a.dials is None else ()
    options: dict[str, Any] = {
        "dials": a.dials,
        "curve": a.curve,
        "baseline": _target("--baseline", a.baseline, blocks.arms, *WORDS),
        "estimator": a.estimator,
        "mode": "exploring" if a.exploring else "greedy",
        "reward_range": a.reward_range,
        "level": a.level,
        "weights": a.weights,
        "pool": a.engine,
        "workers": a.workers,
        "progress": silent if len(blocks) < 8 else progress(a, "evaluating"),
    }
    result = evaluate_log(
        blocks, {name: _target("--candidate", name, blocks.arms, *words) for name in a.candidate}, **options
    )
    result = made_by(result, a.line)
    return Answer(result, [result, *_save(a, result)], tones=VERDICTS)


def _read(a: argparse.Namespace, *targets: Any) -> Blocks:
    """Read a log, and the contexts of a table as the models do."""
    with open_log(a) as log:
        return open_rows(through_encoders(log, *targets))


def _check_out(a: argparse.Namespace) -> None:
    """Refuse a page that cannot be written: better now than after all was read."""
    if a.out is not None and not a.out.absolute().parent.is_dir():
        raise FileNotFoundError(f"--out is {a.out}, in a folder that does not exist")


def _save(a: argparse.Namespace, result: Result) -> list[str]:
    """Write the page that was asked for, and return the lines that say so."""
    if a.out is None:
        return []
    result.save(a.out)
    return ["", f"Page: {a.out}"]


def _target(option: str, word: str, arms: tuple[str | int, ...], *words: str) -> TargetLike:
    """Read a policy: always:ARM is the arm of that name, a number if arms have numbers for names."""
    kind, colon, label = word.partition(":")
    by_name = {str(arm): arm for arm in arms}
    if kind == "always" and colon:
        if label not in by_name:
            raise InvalidValueError(f"{option} is {word}, but the log has no such arm; {choices(label, by_name)}")
        return by_name[label]
    if word not in (*words, *by_name) and not word.endswith(".armlet") and not Path(word).is_file():
        known = [*words, *(f"always:{name}" for name in by_name)]
        raise InvalidValueError(f"{option} is {word}, which is not a model file; {choices(word, known)}")
    return Path(word) if word.endswith(".armlet") else word


@command(
    LOG_OR_STORE,
    LOOP,
    named_policy(REPEATED, "default: OccasionalOptimism", action="append", default=[]),
    seed("all coins", 0),
    arg("--out", type=Path, metavar="FILE", help="write a page of the one policy, such as replay.html"),
    ROLES,
    options=NAMES | {"path": "LOG"},
    extras=("pyarrow", "matplotlib"),
)
def rejection_replay(a: argparse.Namespace) -> Answer:
    """Let policies learn from a log, exactly as if they had run themselves (Li and others, 2011).

    examples:
      armlet rejection-replay decisions.jsonl --policy LinUCB:alpha=1
      armlet rejection-replay decisions.parquet --policy Greedy --policy Uniform --seed 3
      armlet rejection-replay decisions.parquet --policy Greedy --out replay.html

    The log must have rows whose arms were drawn whatever the context: explored rows of a bandit that explores so, or
    rows of others where every arm has one propensity throughout. K rows make a step, K the number of arms.
    """
    _check_out(a)
    names = a.policy or ["OccasionalOptimism"]
    if a.out is not None and len(names) > 1:
        raise InvalidValueError(f"--out is {a.out} for {len(names)} policies; a page is of one: give --policy once")
    policies = [make_policy(*parse_named(name)) for name in names]
    with open_log(a) as log:
        rows = open_rows(log)
    found = [made_by(replayed(rows, policy, seed=a.seed), a.line) for policy in policies]
    data = [_replayed(name, each) for name, each in zip(names, found, strict=True)]
    lines = [f"{'reward a step':>13}  {'95 % interval':22}{'steps':>9}{'of rows':>10}  policy"]
    for name, each in zip(names, found, strict=True):
        interval = "none" if each.interval is None else f"{each.interval.low:.4f} to {each.interval.high:.4f}"
        lines.append(f"{each.mean:13.4f}  {interval:22}{each.accepted:9,}{each.rows:10,}  {name}")
    return Answer({"seed": a.seed, "policies": data}, [*lines, *_save(a, found[0])])


def _replayed(name: str, found: RejectionReplay) -> dict[str, Any]:
    interval = None if found.interval is None else list(found.interval)
    return {"policy": name, "mean": found.mean, "interval": interval, "steps": found.accepted, "rows": found.rows}


CODES: Final = {"keep": 0, "kill": 3, "not yet": 4}


@command(
    LOG_OR_STORE,
    LOOP,
    arg("--candidate", required=True, metavar="POLICY", help="a model file, always:ARM, or uniform"),
    arg("--against", default="live", metavar="POLICY", help="live (default), a model file, always:ARM, or uniform"),
    arg("--reward-range", type=between, metavar="LOW..HIGH", help="default: that of the log"),
    arg("--worth", type=float, default=0.0, metavar="X", help="the gain that it takes to be kept; default: 0"),
    level("how often all answers are right, whenever it is asked"),
    arg("--out", type=Path, metavar="FILE", help="write a page, such as gate.html"),
    ROLES,
    options=NAMES,
    extras=("pyarrow", "matplotlib"),
)
def gate(a: argparse.Namespace) -> Answer:
    """Return whether a candidate is better than what plays now: keep, kill or not yet.

    Ask as often as you like while the log grows; all answers together are wrong with at most the chance
    that --level leaves.

    exit codes:
      0 keep, 3 kill, 4 not yet; 1 the log or the model cannot be read, 2 wrongly called

    examples:
      armlet gate decisions.jsonl --candidate new.armlet --against live --reward-range 0..1
      armlet gate decisions.parquet --candidate new.armlet --against always:north --worth 0.01
      armlet gate ab.csv --candidate new.armlet --propensity 1/2 --reward-range 0..1
    """
    _check_out(a)
    blocks = _read(a, a.candidate, a.against)
    candidate = _target("--candidate", a.candidate, blocks.arms, "uniform")
    against = _target("--against", a.against, blocks.arms, "uniform", "live")
    given = _range(a.reward_range)
    found = judge(blocks, candidate, against=against, reward_range=given, worth=a.worth, level=a.level)
    found = made_by(found, a.line)
    tones = {"Keep": "good", "Kill": "bad", "Not yet": "open"}
    return Answer(found, [found, *_save(a, found)], code=CODES[found.answer], tones=tones)


def _range(given: float | tuple[float, float] | None) -> tuple[float, float] | None:
    if given is None or isinstance(given, tuple):
        return given
    raise InvalidValueError(f"--reward-range is {given}; write two numbers as in 0..1")


@command(
    LOG_OR_STORE,
    LOOP,
    arg("--around", type=Path, required=True, metavar="MODEL", help="the model file; itself one of the policies"),
    arg("--policies", type=count, default=1000, metavar="N", help="how many; default: 1000"),
    arg(
        "--spread",
        type=float,
        default=0.3,
        metavar="X",
        help="of changes, in units of the estimates; default: 0.3",
    ),
    seed("the changes", 1),
    arg("--reward-range", type=between, metavar="LOW..HIGH", help="of rewards; default: that of the log"),
    level(),
    arg("--out", type=Path, metavar="FILE", help="write a page, such as search.html"),
    ROLES,
    options=NAMES | {"bandit": "--around", "n": "--policies"},
    extras=("pyarrow", "matplotlib"),
)
def search(a: argparse.Namespace) -> Answer:
    """Find the best of many linear policies about what a model has learned, by the rows of a log.

    examples:
      armlet search decisions.parquet --around model.armlet --reward-range 0..1
      armlet search decisions.jsonl --around model.armlet --policies 1e4 --spread 0.5 --json

    Those that are surely worse than another drop out; the interval of the winner holds although it was selected, and is
    anytime-valid. The model must have been trained on other rows.
    """
    _check_out(a)
    how = {"reward_range": _range(a.reward_range), "level": a.level, "seed": a.seed, "spread": a.spread}
    with open_log(a) as log:
        found, theta = search_around(log, load(a.around, kind=Bandit), a.policies, **how)
    found = made_by(found, a.line)
    lines = [
        f"  {arm}: {constant:.4g} + ({', '.join(f'{slope:.4g}' for slope in slopes)}) @ x"
        for arm, (constant, *slopes) in theta.items()
    ]
    return Answer({**found.to_dict(), "theta": theta}, [found, *lines, *_save(a, found)])
