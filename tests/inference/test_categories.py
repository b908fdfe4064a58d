"""Coefficients of text columns: what rows tell are differences between levels, and nothing else is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import ArmletError
from armlet.inference.model import CONSTANT
from armlet.inference.regression import Direction, regress

SHAPE = {"round": 0.0, "square": 1.0, "oval": 2.0}
COLOUR = {"blue": 0.0, "red": -0.5}


def fitted(columns: tuple[str, ...], seed: int, **settings: Any) -> armlet.Bandit:
    """Return a bandit that has learned 400 rows whose rewards are sums of effects of levels."""
    rng = np.random.default_rng(seed)
    shapes, colours = rng.choice(list(SHAPE), 400, p=[0.6, 0.3, 0.1]), rng.choice(list(COLOUR), 400, p=[0.3, 0.7])
    table = {"shape": shapes, "colour": colours, "age": rng.normal(40, 10, 400)}
    means = [3 + SHAPE[s] + COLOUR[c] * ("colour" in columns) for s, c in zip(shapes, colours, strict=True)]
    rewards = np.array(means) + rng.normal(0, 0.3, 400)
    given = {name: table[name] for name in columns}
    encoder = armlet.Encoder().fit(given)
    bandit = armlet.Bandit(["a", "b"], encoder=encoder, policy=armlet.FixedEpsilon(epsilon=1.0), seed=1, **settings)
    bandit.partial_fit(given, rng.choice(["a", "b"], 400), rewards, design="randomized")
    return bandit


@pytest.mark.parametrize("columns", [("shape",), ("shape", "colour"), ("shape", "colour", "age")])
def test_levels_are_differences_from_the_most_frequent(columns: tuple[str, ...]) -> None:
    """Of 40 intervals at 95 % fewer than 34 cover with a probability below 0.001."""
    covered = 0
    for seed in range(20):
        found = fitted(columns, seed).inference.intervals()
        for arm in ("a", "b"):
            square = found.of(arm, "shape=square")
            assert square.base == "shape=round"
            assert square.low is not None
            assert square.high is not None
            covered += square.low < 1.0 < square.high
            assert found.of(arm, CONSTANT).base == ", ".join(
                ["shape=round", "colour=red"] if "colour" in columns else ["shape=round"]
            )
    assert covered >= 34
    assert {row.feature for row in found} & {"shape=round", "colour=red"} == set()


def test_the_base_can_be_chosen() -> None:
    bandit = fitted(("shape", "colour"), 1)
    usual, other = bandit.inference.intervals(), bandit.inference.intervals(base={"shape": "square"})
    there, back = usual.of("a", "shape=square"), other.of("a", "shape=round")
    assert there.value is not None
    assert back.value == pytest.approx(-there.value)
    assert back.error == pytest.approx(there.error)
    assert "shape=square" in str(bandit.inference.summary(base={"shape": "square"}))


@pytest.mark.parametrize(
    ("base", "text"),
    [
        ({"shape": "flat"}, "base is 'flat' for 'shape'"),
        ({"form": "round"}, "base names 'form'"),
        ({"shape": 1}, r"base is \{'shape': 1\}; give levels by column"),
        ("shape", "base is 'shape'; give levels by column"),
    ],
)
def test_an_unknown_base_is_refused(base: Any, text: str) -> None:
    with pytest.raises(ArmletError, match=text):
        fitted(("shape",), 1).inference.summary(base=base)


@pytest.mark.parametrize(
    ("arm", "feature", "text"),
    [
        ("a", "shape=round", r"'shape=round' is a base level, part of '\(constant\)'; choose another one by base="),
        ("a", "shape=sqare", "did you mean 'shape=square'"),
        ("c", "shape=square", r"arm 'c' is not one of \['a', 'b'\]"),
    ],
)
def test_a_missing_coefficient_says_where_it_is(arm: str, feature: str, text: str) -> None:
    with pytest.raises(ArmletError, match=text):
        fitted(("shape",), 1).inference.intervals().of(arm, feature)


def test_flags_that_make_up_the_constant_are_not_told_apart() -> None:
    """Two text columns, each with a flag that never varies: eigenvectors of 0 mixed, and all flags had values."""
    bandit = fitted(("shape", "colour"), 3)
    found = regress(bandit.state, 0, 1.0)
    names = list(bandit.settings.features or ())
    for name in ("shape=round", "colour=blue"):
        assert not found.tells(Direction.of_feature(names.index(name), len(names)))
    assert not found.tells(Direction(1.0, np.zeros(len(names))))


def test_an_arm_without_the_base_says_so() -> None:
    bandit = fitted(("shape",), 2)
    bandit.add_arm("c")
    bandit.partial_fit({"shape": ["square", "oval"] * 10}, ["c"] * 20, np.arange(20.0), design="randomized")
    row = bandit.inference.intervals().of("c", "shape=oval")
    assert row.low is None
    assert str(row.why).startswith("shape=round, the level that it is a difference from, does not vary")


def test_the_constant_names_what_makes_it_up() -> None:
    """Buckets of a hashed column add up to the constant, although all of them vary."""
    rng = np.random.default_rng(4)
    table = {"city": [f"{number}" for number in rng.integers(0, 40, 200)]}
    encoder = armlet.Encoder(hashed={"city": 3}).fit(table)
    bandit = armlet.Bandit(["a"], encoder=encoder, policy=armlet.FixedEpsilon(epsilon=1.0), seed=1)
    bandit.partial_fit(table, ["a"] * 200, rng.normal(size=200), design="randomized")
    why = bandit.inference.intervals().of("a", CONSTANT).why
    assert why == "the rows of this arm do not tell it from other features, which make it up"


def test_uniform_rows_compare_mean_rewards() -> None:
    """The truth is 1; 20 intervals at 95 % cover fewer than 16 times with a probability of 0.0026, on fixed seeds."""
    covered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.Uniform(), seed=seed)
        for _ in range(200):
            x = rng.normal(size=2)
            decision = bandit.decide(x)
            bandit.learn(decision, (decision.arm == "a") + x[0] + rng.normal())
        found = bandit.inference.contrast("a", "b")
        assert found.low is not None
        assert found.high is not None
        covered += found.low < 1.0 < found.high
    assert covered >= 16
    assert found.words.endswith("It compares means, without the contexts.")
