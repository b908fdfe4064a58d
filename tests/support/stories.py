"""What an evaluation tells, and its pages: looked at as text, and in a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from armlet.evaluation.checks import Check, Checks, Word
from armlet.evaluation.page import Compared, Story, Valued, render
from armlet.evaluation.traces import Running, Spread
from armlet.inference.intervals import Interval
from armlet.policies import ContextualEpsilonGreedy
from support.decided import played

TARGETS = {"logged": None, "always 0": 0, "always 1": 1, "always 2": 2}


def usual() -> Story:
    """Tell of a log of a bandit and four policies, one of which has too little support."""
    rows = played(ContextualEpsilonGreedy(p=40, floor=0.05), 1500)
    checks = Checks(range(3), 3, list(TARGETS))
    paths, spreads, told = [], [], []
    chances = {name: np.tile(np.eye(3)[arm or 0], (len(rows), 1)) for name, arm in TARGETS.items()}
    chances["logged"] = np.eye(3)[rows.arm]
    checks.add(rows, chances)
    for name, probabilities in chances.items():
        w = probabilities[np.arange(len(rows)), rows.arm] / rows.propensity if name != "logged" else np.ones(len(rows))
        running, spread = Running((0.0, 1.0)), Spread()
        running.add(rows.reward, w)
        spread.add(w)
        paths.append(running.found(name))
        spreads.append(spread.found(name))
        value, end = float((w * rows.reward).sum() / w.sum()), paths[-1]
        told.append(
            Valued(
                name=name,
                value=value,
                fixed=Interval(value - 0.06, value + 0.06),
                anytime=Interval(float(end.low[-1]), float(end.high[-1])),
                rows=len(rows),
                ess=float(w.sum() ** 2 / (w**2).sum()),
                estimator="doubly robust, weighted",
                doubtful="too few effective rows" if name == "always 2" else "",
            )
        )
    few = Check(name="rows", word=Word.WARNING, sentence="Few.", number=12.0, unit="effective rows", target="always 2")
    return Story(
        title="What four policies would have earned",
        counts="1,500 of 1,500 decisions have a reward; 300 explored, 300 of them rewarded",
        unit="reward",
        policies=told,
        baseline="logged",
        differences=[
            Compared(
                name=each.name,
                value=each.value - told[0].value,
                interval=Interval(-0.1, 0.05),
                verdict=f"not judged: {each.doubtful}" if each.doubtful else "not clear",
            )
            for each in told[1:]
        ],
        compared="difference in reward from logged (higher is better); intervals hold together at 95%",
        paths=paths,
        weights=spreads,
        checks=(*checks.found(), few),
        manifest={"made by": "a test", "log": "decisions.jsonl"},
    )


def far(usual: Story) -> Story:
    """Tell the same with names that would like to be HTML, a policy that is refused, no sequences and no baseline."""
    refused = Check(
        name="support",
        word=Word.REFUSED,
        sentence="It cannot be evaluated from this log: <b>all</b> of what it plays was never tried.",
        number=1.0,
        unit="share",
        target="<b>a long name of a policy</b> & more",
    )
    policies = [replace(each, anytime=None) for each in usual.policies]
    policies[1] = replace(policies[1], name="<b>a long name of a policy</b> & more", value=float("nan"), fixed=None)
    return replace(usual, policies=policies, baseline=None, paths=(), weights=(), checks=(*usual.checks, refused))


def write_pages(usual: Story, folder: Path) -> dict[str, Path]:
    """Write the page of a story, of one that lacks what it may, and of a single policy."""
    bare = replace(
        usual, policies=usual.policies[:1], differences=(), checks=(), paths=usual.paths[:1], weights=usual.weights[1:2]
    )
    for name, story in {"usual": usual, "far": far(usual), "bare": bare}.items():
        (folder / f"{name}.html").write_text(render(story), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in ("usual", "far", "bare")}
