"""Evaluations, and their pages: looked at as text, and in a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from armlet.evaluation import rejection_replay
from armlet.evaluation.checks import Check, Word
from armlet.evaluation.gate import gate
from armlet.evaluation.monitor import Checks, RunningValue, WeightCounts
from armlet.evaluation.page import render
from armlet.evaluation.provenance import Provenance
from armlet.evaluation.result import Difference, Evaluation, Value
from armlet.evaluation.rows import HeldBlocks
from armlet.evaluation.search import search
from armlet.evaluation.targets import ArmLaw
from armlet.policies import ContextualEpsilonGreedy, LinUCB
from armlet.report.result import Result
from armlet.types import Interval
from support.decided import played

TARGETS = {"logged": None, "always 0": 0, "always 1": 1, "always 2": 2}


def usual() -> Evaluation:
    """Evaluate four policies by the log of a bandit, one of which has too little support."""
    rows = played(ContextualEpsilonGreedy(p=40, floor=0.05), 1500)
    checks = Checks(range(3), 3, list(TARGETS))
    paths, spreads, values = [], [], []
    chances = {name: np.tile(np.eye(3)[arm or 0], (len(rows), 1)) for name, arm in TARGETS.items()}
    chances["logged"] = np.eye(3)[rows.arm]
    checks.add(rows, {name: ArmLaw(law, rows.arm) for name, law in chances.items()})
    for name, probabilities in chances.items():
        w = probabilities[np.arange(len(rows)), rows.arm] / rows.propensity if name != "logged" else np.ones(len(rows))
        running, spread = RunningValue((0.0, 1.0)), WeightCounts()
        running.add(rows, w)
        spread.add(w)
        paths.append(running.result(name))
        spreads.append(spread.result(name))
        value, end = float((w * rows.reward).sum() / w.sum()), paths[-1]
        values.append(
            Value(
                name=name,
                value=value,
                se=0.03,
                interval=Interval(value - 0.06, value + 0.06),
                anytime=Interval(float(end.low[-1]), float(end.high[-1])),
                rows=len(rows),
                ess=float(w.sum() ** 2 / (w**2).sum()),
                estimator="doubly robust, weighted",
                why="a test asked for it",
                largest_weight=float(w.max()),
                doubtful="too few effective rows" if name == "always 2" else "",
            )
        )
    few = Check(name="rows", word=Word.WARNING, sentence="Few.", number=12.0, unit="effective rows", target="always 2")
    return Evaluation(
        values={each.name: each for each in values},
        differences={each.name: _difference(each, values[0]) for each in values[1:]},
        baseline="logged",
        objective="max",
        rows=1500,
        rewarded=1500,
        explored=300,
        explored_rewarded=300,
        missing={},
        level=0.95,
        warnings=(),
        checks=(*checks.result(), few),
        paths=tuple(paths),
        spreads=tuple(spreads),
        made=Provenance(log="a.jsonl", digest="0f" * 32, period=(0, 1), call="armlet evaluate a.jsonl --policy own"),
    )


def _difference(mine: Value, base: Value) -> Difference:
    return Difference(
        name=mine.name,
        baseline=base.name,
        value=mine.value - base.value,
        se=0.04,
        interval=Interval(-0.08, 0.03),
        adjusted=Interval(-0.1, 0.05),
        verdict=f"not judged: {mine.doubtful}" if mine.doubtful else "not clear",
    )


def far(usual: Evaluation) -> Evaluation:
    """Return the same with names that would like to be HTML, a refused policy, and no sequences."""
    name = "<b>a long name of a policy</b> & more"
    refused = Check(
        name="support",
        word=Word.REFUSED,
        sentence="It cannot be evaluated from this log: <b>all</b> of what it plays was never tried.",
        number=1.0,
        unit="share",
        target=name,
    )
    values = [replace(each, anytime=None) for each in usual.values.values()]
    values[1] = replace(values[1], name=name, value=float("nan"), interval=None)
    by_name = {each.name: each for each in values}
    return replace(usual, values=by_name, differences={}, paths=(), spreads=(), checks=(*usual.checks, refused))


def write_pages(usual: Evaluation, folder: Path) -> dict[str, Path]:
    """Write the page of an evaluation, of one that lacks what it may, and of a single policy."""
    alone = {"logged": usual["logged"]}
    bare = replace(usual, values=alone, differences={}, checks=(), paths=usual.paths[:1], spreads=usual.spreads[1:2])
    for name, result in {"usual": usual, "far": far(usual), "bare": bare}.items():
        (folder / f"{name}.html").write_text(render(result), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in ("usual", "far", "bare")}


def write_others(folder: Path) -> dict[str, Path]:
    """Write the pages of a gate, of a search and of a replayed learner."""
    rows = played(ContextualEpsilonGreedy(p=40, floor=0.05), 1500)
    log = HeldBlocks(rows, range(3), {"reward_range": (0.0, 1.0)})
    thetas = np.random.default_rng(1).standard_normal((20, 3, rows.X.shape[1]))
    results: dict[str, Result] = {
        "gate": gate(log, 1),
        "search": search(log, thetas),
        "replay": rejection_replay(log, LinUCB(alpha=1.0), seed=1),
    }
    for name, result in results.items():
        result.save(folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in results}
