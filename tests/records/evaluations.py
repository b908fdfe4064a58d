"""The part `evaluations`: what off-policy evaluation says, as JSON with 12 digits, of curves with 4."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import armlet
from armlet.evaluation import rejection_replay
from armlet.evaluation.dials.curve import ParetoCurve
from armlet.evaluation.gate import gate
from armlet.evaluation.rows import HeldBlocks
from armlet.evaluation.search import search
from armlet.policies import ContextualEpsilonGreedy, LinUCB
from records.files import LOGS, unpacked
from records.record import Texts, facts
from support.decided import imported, played


def make() -> Texts:
    """Evaluate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of logs that are too short for some
        found = {**_in_memory(), **_of_files()}
    return {
        f"evaluations_{name}.json": facts(rounded(result.to_dict(), 4 if isinstance(result, ParetoCurve) else 12))
        for name, result in found.items()
    }


def rounded(value: Any, digits: int) -> Any:
    """Return numbers with so many digits: the last ones, of a band many, depend on the processor."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, dict):
        return {name: rounded(each, digits) for name, each in value.items() if name != "made"}
    return [rounded(each, digits) for each in value] if isinstance(value, list | tuple) else value


def _in_memory() -> dict[str, Any]:
    rows = played(ContextualEpsilonGreedy(p=40, floor=0.05), 1500)
    log = HeldBlocks(rows, range(3), {"reward_range": (0.0, 1.0)})
    thetas = np.random.default_rng(1).standard_normal((20, 3, rows.X.shape[1]))
    others = HeldBlocks(imported(800), range(3), {})
    return {
        "usual": armlet.evaluate(log, {"always 0": 0, "always 1": 1, "even": "uniform"}),
        "imported": armlet.evaluate(others, [0, "uniform"], estimator="snips", baseline="uniform", interval="fixed"),
        "gate": gate(log, 1),
        "gate_against": gate(log, 1, against=0),
        "search": search(log, thetas),
        "replay": rejection_replay(log, LinUCB(alpha=1.0), seed=1),
    }


def _of_files() -> dict[str, Any]:
    with unpacked(LOGS) as folder:
        return {
            "explored": armlet.evaluate(folder / "explored.jsonl", ["own", "uniform", "arm 0"], weights="ignore"),
            "compacted": armlet.evaluate(folder / "explored.parquet", ["uniform", "arm 0"], weights="ignore"),
            "actions": armlet.evaluate(folder / "actions.jsonl", ["uniform"], weights="ignore"),
            "loop": armlet.evaluate(folder / "loop_arms.jsonl", ["uniform", "a"], weights="ignore"),
            "outcomes": _curve(folder / "outcomes.jsonl"),
            "router": _curve(folder / "loop_router.jsonl"),
        }


def rewarded() -> ParetoCurve:
    """Return the curve of a log with outcomes."""
    with unpacked(LOGS) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _curve(folder / "outcomes.jsonl")


def _curve(path: Any) -> ParetoCurve:
    return armlet.evaluate(path, {"small": "small"}, dials=5, weights="ignore")
