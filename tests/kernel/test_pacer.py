"""The compiled pacer of a budget: bit for bit its numpy reference, on the same events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet.kernel import Pacer
from armlet.reference import pacer as reference
from support.examples import scaled

costs = st.one_of(st.sampled_from([0.0, 1.0, 1e6]), st.floats(-1.0, 100.0), st.floats(-1e40, 1e40))
events = st.one_of(
    st.tuples(st.just("begin")),
    st.tuples(st.just("count"), costs),
    st.tuples(st.just("correct"), costs, costs),
    st.tuples(st.just("expire")),
    st.tuples(st.just("await_cost")),
    st.tuples(st.just("see"), costs),
)
plans = st.tuples(st.floats(1e-40, 1e40), st.integers(1, 2**63 - 1).map(float), st.booleans())


def pair(total: float, length: float, repeats: bool) -> tuple[Pacer, reference.Pacer]:
    return Pacer(total, length, repeats), reference.Pacer(total, length, repeats)


def same(ours: Pacer, theirs: reference.Pacer) -> None:
    assert ours.values().tobytes() == theirs.values().tobytes()
    assert ours.price == theirs.price
    assert np.isfinite(ours.values()).all()
    assert ours.affords(1.0, 2.0) == theirs.affords(1.0, 2.0)


def play(ours: Pacer, theirs: reference.Pacer, calls: list[tuple[str, ...]]) -> None:
    for name, *arguments in calls:
        getattr(ours, name)(*arguments)
        getattr(theirs, name)(*arguments)
        same(ours, theirs)


@given(plan=plans, calls=st.lists(events, max_size=60))
@settings(max_examples=scaled(200))
def test_every_event_changes_the_same_bits_as_in_the_reference(
    plan: tuple[float, float, bool], calls: list[tuple[str, ...]]
) -> None:
    play(*pair(*plan), calls)


@given(plan=plans, calls=st.lists(events, max_size=20), more=st.lists(events, max_size=20))
@settings(max_examples=scaled(60))
def test_merges_and_differences_have_the_bits_of_the_reference(
    plan: tuple[float, float, bool], calls: list[tuple[str, ...]], more: list[tuple[str, ...]]
) -> None:
    ours, theirs = pair(*plan)
    play(ours, theirs, calls)
    others = pair(*plan)
    play(*others, more)
    ours.merge(others[0])
    theirs.merge(others[1])
    same(ours, theirs)
    ours.subtract(others[0])
    theirs.subtract(others[1])
    same(ours, theirs)


def spend(pacer: Pacer, decisions: int, rng: np.random.Generator, worth: float = 1.0, cost: float = 1.0) -> list[float]:
    """Buy what is worth its price: values are uniform on (0, worth), and everything costs the same."""
    prices = []
    for _ in range(decisions):
        prices.append(pacer.price)
        value = worth * rng.uniform()
        buys = value > pacer.price * cost
        pacer.begin()
        pacer.count(cost * buys)
        pacer.see(value * buys)
    return prices


@pytest.mark.parametrize(("worth", "cost"), [(1.0, 1.0), (1e-6, 1.0), (1e6, 1e-9), (3.0, 1e7)])
def test_price_and_spend_do_not_depend_on_units(worth: float, cost: float) -> None:
    """With a budget for 3 of 10 the best price takes the upper 30 % of values: .7 worth / cost. The price moves about
    it by .5 % a decision, so by a few per cent; its mean over 10,000 is within 2 % with plenty of room."""
    pacer = Pacer(6000.0 * cost, 20_000.0, False)
    prices = spend(pacer, 20_000, np.random.default_rng(1), worth, cost)
    assert pacer.spent == pytest.approx(6000.0 * cost, rel=0.005)
    assert np.mean(prices[10_000:]) * cost / worth == pytest.approx(0.7, rel=0.02)


def test_an_ample_budget_has_no_price() -> None:
    pacer = Pacer(40_000.0, 20_000.0, False)
    prices = spend(pacer, 20_000, np.random.default_rng(2))
    assert set(prices[5000:]) == {0.0}


def test_every_period_spends_its_own_budget() -> None:
    pacer, rng = Pacer(300.0, 1000.0, True), np.random.default_rng(3)
    for period in range(5):
        spend(pacer, 1000, rng)
        assert pacer.decisions == 1000.0
        if period:  # the first one has to find the price
            assert pacer.spent == pytest.approx(300.0, rel=0.1)


def test_costs_under_way_count_before_they_come() -> None:
    """200 costs late: without an allowance for them the price would follow what was decided 200 ago, and swing."""
    pacer, rng, late = Pacer(6000.0, 20_000.0, False), np.random.default_rng(4), list[float]()
    spent = 0.0
    for _ in range(20_000):
        value = rng.uniform()
        late.append(float(value > pacer.price))
        spent += late[-1]
        pacer.begin()
        pacer.see(value * late[-1])
        if len(late) > 200:
            pacer.count(late.pop(0))
    assert pacer.waiting == 200.0
    assert spent == pytest.approx(6000.0, rel=0.01)


def test_a_restored_pacer_goes_on_as_the_first() -> None:
    first, second = Pacer(100.0, 1000.0, True), Pacer(100.0, 1000.0, True)
    spend(first, 500, np.random.default_rng(5))
    second.restore(first.values())
    for pacer in (first, second):
        spend(pacer, 700, np.random.default_rng(6))
    assert first.values().tobytes() == second.values().tobytes()


def test_values_that_are_not_numbers_are_refused() -> None:
    pacer = Pacer(1.0, 10.0, False)
    before = pacer.values()
    with pytest.raises(ValueError, match="values of a pacer hold nan; give numbers"):
        pacer.restore(np.full(10, np.nan))
    assert pacer.values().tobytes() == before.tobytes()
