"""The alarm `contexts`: features far beyond their usual size, that stand still, or that are always missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armlet
from armlet.stores import Loop, Memory, Store
from armlet.stores.folds import Tally
from armlet.stores.folds.decisions import ContextSums
from armlet.stores.health import RECENT, Alarm, alarms
from armlet.testing.stores import Place
from armlet.types import Float64
from support.examples import scaled

NANOSECONDS = 1.8e18
MADE: dict[str, Any] = {"arms": ["a", "b"], "features": ["age", "clicks"], "seed": 3}


def texts_of(X: Float64, features: tuple[str, ...] | None = None, ranges: tuple[str, ...] = ()) -> list[str]:
    tally = Tally()
    for i, x in enumerate(X):
        tally.contexts.add(x.tobytes(), i, i + 1)
    return [alarm.text for alarm in alarms(tally, len(X), features=features, ranges=ranges) if alarm.rule == "contexts"]


def visit(loop: Loop, rng: np.random.Generator, n: int) -> None:
    rows = np.column_stack([np.floor(rng.uniform(18, 80, n)), rng.poisson(3.0, n)])
    loop.decide_many(rows)


# ---- of loops


def test_a_wild_value_is_named_until_a_refit(place: Place) -> None:
    rng = np.random.default_rng(1)
    with Store(place()) as store:
        loop = store.loop("shop", **MADE)
        visit(loop, rng, 200)
        assert loop.health() == []
        loop.decide([NANOSECONDS, 1.0], event="wrong")
        loop.reward("wrong", 1.0)
        visit(loop, rng, 300)
        (alarm,) = loop.health()
        assert (alarm.rule, loop.details().alarms) == ("contexts", (alarm,))
        assert "Feature 'age' lay beyond" in alarm.text
        assert "the decision of step 201." in alarm.text
        assert "loop.change(policy=loop.model().policy, how='refit')" in alarm.text
    with Store(place()) as store:
        loop = store.loop("shop")
        assert loop.health() == [alarm]  # a restart counts the same
        loop.forget("wrong")
        loop.change(policy=loop.model().policy, how="refit")
        assert loop.health() == []


def follow(alarm: Alarm, loop: Loop) -> None:
    """Run the commands of the alarm."""
    forget, then, _ = alarm.text.partition("Take it back: ")[2].partition(", then ")
    assert then
    assert eval(forget, {"loop": loop}) is True
    assert eval(alarm.text.partition(", then ")[2].partition(". To keep")[0], {"loop": loop}) is True


@pytest.mark.parametrize("at", [0, 7, 15, 16, 40])
def test_commands_of_the_alarm_cure_the_loop(at: int) -> None:
    rng = np.random.default_rng(9)
    with Store(Memory()) as store:
        loop, never = (store.loop(name, **MADE, policy=armlet.LinUCB()) for name in ("shop", "never"))
        loop.change(window=60.0, default_reward=0.0)  # a row that is no event of the log
        loop.change(window=None, default_reward=None)
        for i in range(60):
            x = [NANOSECONDS if i == at else float(rng.uniform(18, 80)), float(rng.poisson(3.0))]
            arm = loop.decide(x, event=f"visit-{i}").arm
            loop.reward(f"visit-{i}", 0.1 * i % 1.0)
            if i != at:
                never.decide(x, event=f"visit-{i}", eligible=[arm])
                never.reward(f"visit-{i}", 0.1 * i % 1.0)
        (alarm,) = loop.health()
        follow(alarm, loop)
        assert loop.health() == []
        np.testing.assert_allclose(loop.model().state.A, never.model().state.A, rtol=1e-9)


def test_a_wild_context_among_actions_is_named(place: Place) -> None:
    rng = np.random.default_rng(10)
    actions = {"tea": {"price": 2.0}, "milk": {"price": 1.0}}
    with Store(place()) as store:
        loop = store.loop("bar", features=["age"], action_features=["price"], seed=1)
        for i in range(40):
            loop.decide([NANOSECONDS if i == 3 else float(rng.uniform(18, 80))], actions, event=f"visit-{i}")
            loop.reward(f"visit-{i}", 0.5)
        (alarm,) = loop.health()
        assert "Feature 'age' lay beyond" in alarm.text
        assert alarm.text.endswith("To keep others out: check x first.")
    with Store(place()) as store:
        loop = store.loop("bar")
        assert loop.health() == [alarm]
        follow(alarm, loop)
        assert loop.health() == []


def test_a_range_takes_the_place_of_the_alarm() -> None:
    rng = np.random.default_rng(2)
    with Store(Memory()) as store:
        loop = store.loop("shop", **MADE)
        visit(loop, rng, 100)
        loop.decide([NANOSECONDS, 1.0])
        assert [alarm.rule for alarm in loop.health()] == ["contexts"]
        loop.change(feature_range={"age": (0, 120)})
        assert loop.health() == []


def test_other_features_begin_again() -> None:
    rng = np.random.default_rng(3)
    with Store(Memory()) as store:
        loop = store.loop("shop", **MADE)
        visit(loop, rng, 100)
        loop.decide([NANOSECONDS, 1.0])
        loop.change(features=["clicks", "member", "age"])
        assert loop.health() == []
        loop.decide([1.0, 1.0, NANOSECONDS])  # nothing is usual yet
        assert loop.health() == []


# ---- what is named


@pytest.mark.parametrize("at", [0, 5, 15, 16, 40, 300, 999])
@pytest.mark.parametrize("value", [NANOSECONDS, -NANOSECONDS, 1e7])
def test_one_wild_value_does_not_become_usual(at: int, value: float) -> None:
    X = np.random.default_rng(4).uniform(18.0, 80.0, (1000, 1))
    X[at] = value
    (text,) = texts_of(X, ("age",))
    assert "Feature 'age' lay beyond" in text
    assert "in 1 of 1,000 contexts" in text


def test_a_feature_without_a_name_can_have_no_range() -> None:
    X = np.random.default_rng(11).uniform(18.0, 80.0, (100, 1))
    X[50] = NANOSECONDS
    (text,) = texts_of(X)
    assert text.startswith("Feature 0 lay beyond")
    assert text.endswith("To keep others out: check x first.")


def test_wild_values_of_a_rare_flag_are_named() -> None:
    X = np.zeros((3000, 1))
    X[::100] = 1.0
    assert texts_of(X) == []
    X[2999] = NANOSECONDS
    assert len(texts_of(X)) == 1


def test_a_wild_value_is_told_for_a_while() -> None:
    X = np.random.default_rng(5).normal(size=(RECENT + 200, 1))
    X[100] = NANOSECONDS
    assert len(texts_of(X[:RECENT])) == 1
    assert texts_of(X) == []


def test_a_feature_that_stands_still_is_named() -> None:
    X = np.random.default_rng(6).normal(size=(3000, 2))
    X[1500:, 1] = X[1499, 1]
    (text,) = texts_of(X, ("age", "clicks"))
    assert "Feature 'clicks' was the same in the last 1,50" in text


def test_a_column_that_is_always_missing_is_named() -> None:
    encoder = armlet.Encoder(missing="flag").fit({"age": [30.0, None], "price": [1.0, None]})
    rng = np.random.default_rng(7)
    with Store(Memory()) as store:
        loop = store.loop("shop", arms=["a", "b"], encoder=encoder, seed=1)
        loop.decide_many([{"age": None, "price": price} for price in rng.uniform(1, 9, 1100).tolist()])
        (alarm,) = loop.health()
        assert "'age=missing' says that a column was missing in all of 1,100 decisions" in alarm.text


# ---- what is in order


@pytest.mark.parametrize("seed", range(5))
def test_honest_heavy_tails_raise_no_alarm(seed: int) -> None:
    rng, n = np.random.default_rng([8, seed]), 20_000
    columns = {
        "constant": np.ones(n),
        "lognormal": rng.lognormal(0.0, 1.5, n),
        "counts": rng.negative_binomial(1, 0.05, n),
        "flag": rng.random(n) < 0.001,
        "revenue": (rng.random(n) < 0.02) * rng.lognormal(4.0, 1.5, n),
        "hour": np.arange(n) // 60 % 24,
    }
    assert texts_of(np.column_stack(list(columns.values())).astype(np.float64), tuple(columns)) == []


# ---- the fold


@given(st.lists(st.integers(1, 90), min_size=1, max_size=8), st.integers(0, 2**32))
@settings(max_examples=scaled(60))
def test_cuts_and_restarts_change_nothing(cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.where(
        rng.random((sum(cuts), 2)) < 0.5, rng.integers(0, 3, (sum(cuts), 2)), rng.lognormal(0, 9, (sum(cuts), 2))
    )
    whole, cut = ContextSums(), ContextSums()
    for i, x in enumerate(X):
        whole.add(x.tobytes(), i, i + 1)
    at = 0
    for n in cuts:
        for i in range(at, at + n):
            cut.add(X[i].tobytes(), i, i + 1)
        cut = ContextSums.restore(cut.state())
        at += n
    assert cut.state() == whole.state()
