"""Every result of the public API has the same four, `to_dict`, `to_pandas`, `plot` and `save`, and shows itself."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import Rectangle

import armlet
import armlet.advice
import armlet.environments
import armlet.evaluation
import armlet.inference.view
import armlet.log
import armlet.stores
import armlet.theory
from armlet.report.result import Result
from armlet.stores import Memory, Store

WITHOUT_PLOT = {
    "ActionExplanation": "a few rows of figures in different units",
    "Audit": "a verdict and a few counts",
}
"""Results without a `plot`, and why: nothing to draw is better than a drawing of nothing."""

NOT_RESULTS = {
    "RequiredP": "a p and the conditions behind it",
    "Alarm": "one of the lines that loop.health() lists",
    "Bound": "a number with the terms that it is the sum of",
    "Condition": "a p and the constants behind it",
    "Constants": "the constants of an environment",
    "EstimatedConstants": "constants and how far they may be off",
    "Problem": "an input of the theory",
    "Promotion": "yes or no, and the Gain behind it",
    "Settings": "what a bandit was made with",
}
"""What public functions, and methods of what users hold, return that is a dataclass and no result, and why."""

HOMES = (
    *(armlet, armlet.advice, armlet.evaluation, armlet.log, armlet.stores, armlet.theory),
    *(armlet.Bandit, armlet.inference.view.Inference, armlet.stores.Loop, armlet.stores.Store),
)


@cache
def kinds() -> list[type[Result]]:
    """Return every class of results in the library but bases, after importing all of it."""
    for module in pkgutil.walk_packages(armlet.__path__, "armlet."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, waiting = [], [Result]
    while waiting:
        subclasses = waiting.pop().__subclasses__()
        waiting += subclasses
        found += [each for each in subclasses if each.__module__.startswith("armlet.") and not inspect.isabstract(each)]
    return found


def test_no_class_of_results_lacks_one_of_the_four() -> None:
    assert {"Coefficients", "Contrast", "Explanation", "Summary", "Audit", "Stats", "Evaluation", "Advice"} <= {
        kind.__name__ for kind in kinds()
    }
    for kind in [*kinds(), armlet.Decisions]:
        for name in ("to_dict", "to_pandas", "save", "_repr_html_"):
            assert callable(getattr(kind, name)), f"{kind.__name__} has no {name}"
        has_plot = callable(getattr(kind, "plot", None))
        assert has_plot != (kind.__name__ in WITHOUT_PLOT), f"{kind.__name__}: a plot, or its reason in WITHOUT_PLOT"


def public(home: Any) -> Iterator[Any]:
    """Yield the public functions of a module, or methods of a class."""
    for name in getattr(home, "__all__", [name for name in vars(home) if not name.startswith("_")]):
        thing = getattr(home, name)
        function = thing.fget if isinstance(thing, property) else inspect.unwrap(thing) if callable(thing) else None
        if inspect.isfunction(function) and function.__module__.startswith("armlet"):
            yield function


def returned(function: Any) -> Iterator[type]:
    """Yield the dataclasses of the library that a function says it returns."""
    for word in re.findall(r"\w+", str(function.__annotations__.get("return", ""))):
        found = getattr(sys.modules[function.__module__], word, None)
        if isinstance(found, type) and is_dataclass(found) and found.__module__.startswith("armlet"):
            yield found


@pytest.mark.parametrize("home", HOMES, ids=lambda home: home.__name__)
def test_whatever_a_public_function_returns_is_a_result_or_says_why_not(home: Any) -> None:
    for function in public(home):
        for kind in returned(function):
            known = issubclass(kind, Result) or kind.__name__ in NOT_RESULTS
            assert known, f"{function.__qualname__} returns {kind.__name__}: neither a Result nor among NOT_RESULTS"


def test_the_scan_finds_the_results_that_there_are() -> None:
    found = {kind.__name__ for home in HOMES for function in public(home) for kind in returned(function)}
    assert {"Summary", "Explanation", "Audit", "Stats", "Details", "Gain", "Promotion"} <= found


# ---- one of each


@cache
def bandit() -> armlet.Bandit:
    rng = np.random.default_rng(1)
    made = armlet.Bandit(["a", "$b$ & <c>"], 2, policy=armlet.ContextualEpsilonGreedy(p=40), seed=1)
    for _ in range(80):
        decision = made.decide(rng.normal(size=2))
        made.learn(decision, float(rng.normal()))
    return made


def log_in(folder: Path) -> armlet.Log:
    with armlet.Log(folder / "log.jsonl") as log:
        made = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=40), seed=1, log=log)
        for t in range(60):
            made.learn(made.decide([t % 3]), float(t % 2))
    return log


def ask_loop(question: Callable[[armlet.stores.Loop], Any]) -> Any:
    with Store(Memory()) as store:
        loop = store.loop("shop", arms=["a", "b"], dim=1, policy=armlet.ContextualEpsilonGreedy(p=30), seed=1)
        for i in range(60):
            loop.decide([0.5], event=str(i))
            loop.reward(str(i), float(i % 2))
        return question(loop)


def routed() -> Any:
    """A log with two outcomes, one of them with a name that is no formula."""
    n = 200
    rng = np.random.default_rng(4)
    table = {"x": rng.normal(size=n), "model": ["a", "b"] * (n // 2), "reward": np.zeros(n), "p": np.full(n, 0.5)}
    outcomes = {"reward_quality": rng.normal(size=n), "reward_$c$": rng.random(n)}
    return armlet.Table({**table, **outcomes}, features=["x"], arm="model", propensity="p")


SAMPLES: dict[str, Callable[[Path], Any]] = {
    "Decisions": lambda _: bandit().copy().decide_many(np.ones((40, 2))),
    "Coefficients": lambda _: bandit().inference.intervals(),
    "Contrast": lambda _: bandit().inference.contrast("a", "$b$ & <c>"),
    "Summary": lambda _: bandit().inference.summary(),
    "Explanation": lambda _: bandit().inference.explain([1.0, 2.0]),
    "Audit": lambda folder: armlet.audit(log := log_in(folder), log.start_path),
    "Evaluation": lambda folder: armlet.evaluate(log_in(folder).path, {"always a": "a"}),
    "ParetoCurve": lambda _: armlet.evaluate(routed(), np.eye(4).reshape(4, 2, 2, 1), arms=["a", "b"], dials=5),
    "Stats": lambda _: ask_loop(lambda loop: loop.stats()),
    "Details": lambda _: ask_loop(lambda loop: loop.details()),
    "Gain": lambda _: ask_loop(lambda loop: loop.gains()[0]),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_four_of_a_result_agree(name: str, tmp_path: Path) -> None:
    found = SAMPLES[name](tmp_path)
    assert type(found).__name__ == name
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    frame = found.to_pandas()
    assert {column: len(frame) for column in frame.columns} == {c: len(v) for c, v in found.columns().items()}
    for ending in (".html", ".json", ".csv"):
        found.save(tmp_path / f"found{ending}")
    assert json.loads((tmp_path / "found.json").read_text()) == plain
    assert len((tmp_path / "found.csv").read_text().splitlines()) == 1 + len(frame)
    page = (tmp_path / "found.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<script" not in page
    assert len(repr(found).splitlines()) <= 41


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - WITHOUT_PLOT.keys()))
def test_a_plot_is_no_wider_than_a_notebook(name: str, tmp_path: Path) -> None:
    figure = SAMPLES[name](tmp_path).plot()
    width, height = figure.get_size_inches() * figure.dpi
    assert 300 <= width <= 1000
    assert height <= 2500
    assert figure._repr_png_()[1:4] == b"PNG"  # and labels with dollar signs are no formulas


def test_a_plot_is_saved_as_a_picture(tmp_path: Path) -> None:
    for ending, begin in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        bandit().inference.contrast("a", "$b$ & <c>").save(tmp_path / f"found{ending}")
        assert (tmp_path / f"found{ending}").read_bytes().startswith(begin)


def test_a_figure_of_many_features_and_arms_says_what_it_leaves_out() -> None:
    many = armlet.Bandit(range(30), 40, policy=armlet.Uniform(), seed=1)
    rng = np.random.default_rng(2)
    arms = rng.integers(30, size=3000)
    many.partial_fit(rng.normal(size=(3000, 40)), arms, rng.normal(size=3000), design="randomized")
    figure = many.inference.summary().plot()
    width, height = figure.get_size_inches() * figure.dpi
    assert width <= 1000
    assert height <= 2500
    assert figure.get_supxlabel() == (
        "not drawn: 20 features with smaller coefficients next to their intervals and 18 arms with fewer rows; "
        "to_pandas() has all"
    )


def test_a_waterfall_adds_up_to_the_estimates_of_the_best_arm_and_the_next() -> None:
    costs = armlet.Bandit(["a", "b", "c"], 20, policy=armlet.Greedy(), objective="min", seed=1)
    rng = np.random.default_rng(3)
    X, arms = rng.normal(size=(400, 20)), rng.integers(3, size=400)
    costs.partial_fit(X, np.array(["a", "b", "c"])[arms], X[:, 0] * arms + rng.normal(size=400))
    costs.retire_arm("a")
    found = costs.inference.explain(X[0])
    costs_of = dict(zip(found.arms, found.total.tolist(), strict=True))
    assert found.ranked == sorted(["b", "c"], key=lambda arm: costs_of[arm])  # the lowest first
    panels = found.plot().axes
    assert [panel.get_title().split(" (")[0] for panel in panels] == found.ranked
    for panel, arm in zip(panels, found.ranked, strict=True):
        *steps, estimate = [bar.get_width() for bar in panel.patches if isinstance(bar, Rectangle)]
        assert len(steps) == 1 + 12 + 1  # base, the largest features, all others together
        assert sum(steps) == pytest.approx(estimate)
        assert estimate == pytest.approx(found.total[found.arms.index(arm)])
