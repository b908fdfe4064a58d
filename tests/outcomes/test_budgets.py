"""Bandits with a budget: what is spent, the price that follows from it, and decisions under that price, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, Budget, Decision
from armlet.errors import BudgetError, InvalidTypeError, InvalidValueError, MergeError
from armlet.reference.pacer import Pacer
from support.recorder import Notebook

ARMS = ["small", "medium", "large"]
COSTS: dict[str | int, float] = {"small": 0.1, "medium": 0.5, "large": 2.0}
KNOWN = {"cost": COSTS}
BUDGET = Budget("cost", total=150.0, horizon=400)
KINDS = pytest.mark.parametrize("known", [None, KNOWN], ids=["learned", "known"])
POLICIES = pytest.mark.parametrize(
    "policy", [armlet.OccasionalOptimism(), armlet.LinUCB(), armlet.ContextualEpsilonGreedy(p=30)], ids=repr
)


def made(known: Any = None, budget: Budget | None = BUDGET, **others: Any) -> Bandit:
    given: dict[str, Any] = {"outcomes": {"quality": 1.0, "cost": -0.1}, "seed": 3, **others}
    return Bandit(ARMS, 2, known=known, budget=budget, **given)


def outcome(decision: Decision, rng: np.random.Generator, known: Any) -> dict[str, float]:
    """Costlier arms are better, more so in some contexts."""
    cost = COSTS[decision.arm]
    quality = {"quality": float(cost * (1.0 + decision.x[0]) + 0.3 * rng.standard_normal())}
    return quality if known else {**quality, "cost": cost * float(rng.uniform(0.5, 1.5))}


def live(bandit: Bandit, steps: int, known: Any, seed: int = 0) -> list[Decision]:
    rng = np.random.default_rng(seed)
    decisions = []
    for _ in range(steps):
        decisions.append(bandit.decide(rng.standard_normal(2)))
        bandit.learn(decisions[-1], outcome(decisions[-1], rng, known))
    return decisions


# ---- the price


@KINDS
@POLICIES
def test_decisions_are_those_of_a_bandit_whose_weight_is_lowered_by_the_price_of_the_reference(
    known: Any, policy: armlet.Policy
) -> None:
    """The whole of it: the numpy pacer is fed by hand, and a bandit without a budget gets its price as a weight."""
    paced, plain = made(known, policy=policy), made(known, None, policy=policy)
    pacer, rng, prices = Pacer(150.0, 400.0, False), np.random.default_rng(1), set()
    for t in range(1, 401):
        x = rng.standard_normal(2)
        assert paced.budget is not None
        assert paced.budget.price == pacer.price
        prices.add(pacer.price)
        weights = {"cost": -0.1 - pacer.price}
        ours = paced.decide(x, propensity="marginal")
        theirs = plain.decide(x, t=t, propensity="marginal", weights=weights)
        assert (ours.arm, ours.propensity, ours.explored) == (theirs.arm, theirs.propensity, theirs.explored)
        pacer.begin()
        if known:
            pacer.count(COSTS[ours.arm])
        parts = outcome(ours, rng, known)
        paced.learn(ours, parts)
        plain.learn(theirs, parts)
        if not known:
            pacer.count(parts["cost"])
        worth = parts["quality"] + (0.0 if known else -0.1 * parts["cost"])
        pacer.see(worth + (-0.1 * COSTS[ours.arm] if known else 0.0))
    kept = paced._snapshot().spending
    assert kept is not None
    assert kept.tobytes() == pacer.values().tobytes()
    assert 0.0 < pacer.spent < 250.0  # a plan for 400 decisions, of which the first hundred seek the price
    assert len(prices) > 100  # it did move


@KINDS
@POLICIES
def test_propensities_are_exact_under_the_price(known: Any, policy: armlet.Policy) -> None:
    bandit, rng = made(known, policy=policy), np.random.default_rng(2)
    live(bandit, 100, known)
    for _ in range(50):
        x = rng.standard_normal(2)
        wanted = bandit.predict_proba([x])[0]
        decision = bandit.decide(x, probabilities="all")
        assert decision.probabilities is not None
        assert decision.probabilities.tobytes() == wanted.tobytes()
        assert decision.propensity == wanted[ARMS.index(str(decision.arm))]
        bandit.learn(decision, outcome(decision, rng, known))


@KINDS
def test_many_decisions_at_once_are_those_of_one_by_one(known: Any) -> None:
    for policy in (armlet.OccasionalOptimism(), armlet.LinUCB(), armlet.Algorithm1(p=9, units="free")):
        one, many = made(known, policy=policy), made(known, policy=policy)
        for bandit in (one, many):
            live(bandit, 60, known)
        X = np.random.default_rng(4).standard_normal((100, 2))
        together, alone = many.decide_many(X), [one.decide(x) for x in X]
        assert [decision.to_dict() for decision in together] == [decision.to_dict() for decision in alone]
        rng = np.random.default_rng(5)
        parts = [outcome(decision, rng, known) for decision in alone]
        for decision, part in zip(alone, parts, strict=True):
            one.learn(decision, part)
        many.learn_many(together, {name: [part[name] for part in parts] for name in parts[0]})
        assert many.digest() == one.digest()


def test_expectations_are_of_worth_and_leave_the_price_out() -> None:
    paced, plain = made(), made(budget=None)
    live(paced, 200, None)
    plain.partial_fit([[0.0, 0.0]] * 3, ARMS, {"quality": [1.0, 2.0, 3.0], "cost": [0.1, 0.2, 0.3]})
    plain._restore(paced.state, paced.arms, 0)
    assert paced.budget is not None
    assert paced.budget.price > 0.0
    X = [[0.5, 1.0]]
    assert paced.predict_expectations(X).tobytes() == plain.predict_expectations(X).tobytes()
    priced = {"cost": -0.1 - paced.budget.price}
    assert (paced.predict(X) == plain.predict(X, weights=priced)).all()
    assert (paced.predict_proba(X, mode="greedy") == plain.predict_proba(X, mode="greedy", weights=priced)).all()


# ---- what is counted when


def test_a_known_cost_counts_with_the_decision_and_a_learned_one_when_it_comes() -> None:
    known, learned = made(KNOWN), made()
    first = known.decide([0.0, 0.0])
    assert known.budget is not None
    assert known.budget.spent == COSTS[first.arm]
    decision = learned.decide([0.0, 0.0])
    assert learned.budget is not None
    assert (learned.budget.spent, learned.budget.waiting) == (0.0, 1)
    learned.learn(decision, {"cost": 0.7})
    assert (learned.budget.spent, learned.budget.waiting) == (0.7, 0)
    learned.learn(decision, {"quality": 1.0})
    assert learned.budget.spent == 0.7


def test_corrections_count_and_what_is_forgotten_stays_spent() -> None:
    bandit = made()
    one, two = bandit.decide([0.0, 0.0]), bandit.decide([1.0, 0.0])
    bandit.learn(one, {"quality": 1.0, "cost": 0.5})
    bandit.correct(one, {"cost": 0.5}, {"cost": 0.75})
    assert bandit.budget is not None
    assert bandit.budget.spent == 0.75
    bandit.correct(one, {"quality": 1.0}, {"quality": 0.5})
    bandit.forget(one, {"quality": 0.5, "cost": 0.75})
    assert (bandit.budget.spent, bandit.budget.waiting) == (0.75, 1)
    bandit.learn(one, {"quality": 1.0, "cost": 1.0})  # instead of what was spent
    assert (bandit.budget.spent, bandit.budget.waiting) == (1.0, 1)
    bandit.learn(two, {"cost": 2.0})
    bandit.forget(two, {"cost": 2.0})
    assert (bandit.budget.spent, bandit.budget.waiting) == (3.0, 0)


def test_costs_that_expire_are_not_waited_for_and_count_if_they_come_after_all() -> None:
    bandit = made()
    decisions = [bandit.decide([0.0, 0.0]) for _ in range(3)]
    bandit.expire(decisions[0])
    assert bandit.budget is not None
    assert bandit.budget.waiting == 2
    bandit.learn(decisions[1], {"cost": 0.5})
    bandit.expire(decisions[1])
    assert bandit.budget.waiting == 1
    bandit.learn(decisions[0], {"cost": 1.0, "quality": 0.0})
    assert (bandit.budget.spent, bandit.budget.waiting) == (1.5, 1)


def test_rows_from_elsewhere_teach_and_spend_nothing() -> None:
    bandit = made()
    bandit.partial_fit([[0.0, 1.0]] * 2, ["small", "large"], {"quality": [1.0, 2.0], "cost": [0.1, 2.0]})
    assert bandit.budget is not None
    assert (bandit.budget.spent, bandit.budget.decisions) == (0.0, 0)


@KINDS
def test_decisions_of_other_replicas_count(known: Any) -> None:
    here, there = made(known), made(known)
    decision = there.decide([0.0, 0.0])
    here._begin_decision(decision.arm, decision.explored)
    here.replace(t=1)
    for bandit in (here, there):
        bandit.learn(Decision.from_dict(decision.to_dict()), outcome(decision, np.random.default_rng(1), known))
    assert here.digest() == there.digest()


def test_a_period_starts_over() -> None:
    bandit = made(KNOWN, Budget("cost", total=10.0, period=50))
    live(bandit, 50, KNOWN)
    assert bandit.budget is not None
    assert (bandit.budget.decisions, bandit.budget.decisions_left) == (50, 0)
    spent, decision = bandit.budget.spent, bandit.decide([0.0, 0.0])
    assert spent > 5.0
    assert (bandit.budget.spent, bandit.budget.decisions) == (COSTS[decision.arm], 1)


def test_the_view_tells_what_is_left() -> None:
    bandit = made(KNOWN, Budget("cost", total=10.0, horizon=50), policy=armlet.Greedy())
    assert repr(bandit.budget) == "Spending(0 of 10 cost spent, 10 left for 50 decisions; price 0)"
    arm = bandit.decide([0.0, 0.0]).arm
    assert bandit.budget is not None
    assert (bandit.budget.total, bandit.budget.left, bandit.budget.decisions_left) == (10.0, 10.0 - COSTS[arm], 49)
    assert made(budget=None).budget is None


# ---- a hard total


@KINDS
def test_a_hard_total_is_never_exceeded(known: Any) -> None:
    """With learned costs of up to 3, of which 3 are kept back for each decision that waits."""
    ranges = None if known else {"cost": (0.0, 3.0)}
    bandit = made(known, Budget("cost", total=20.0, horizon=1000, hard=True), reward_range=ranges)
    rng, spent, waiting, before = np.random.default_rng(1), 0.0, list[Decision](), ""

    def go_on() -> None:
        nonlocal spent, before
        for _ in range(1000):
            before = bandit.digest()
            waiting.append(bandit.decide(rng.standard_normal(2)))
            if len(waiting) > 2:
                late = waiting.pop(0)
                parts = outcome(late, rng, known)
                spent += parts.get("cost", 0.0)
                bandit.learn(late, parts)

    with pytest.raises(BudgetError, match="the budget is hard and has"):
        go_on()
    assert bandit.digest() == before
    if known:
        assert bandit.budget is not None
        assert 20.0 - min(COSTS.values()) < bandit.budget.spent <= 20.0 + 1e-6
    else:
        assert spent + sum(outcome(one, rng, None)["cost"] for one in waiting) <= 20.0


def test_arms_that_are_too_costly_are_left_out_and_the_rest_has_exact_propensities() -> None:
    bandit = made(KNOWN, Budget("cost", total=2.4, horizon=1000, hard=True), policy=armlet.LinUCB())
    bandit.decide([0.0, 0.0], eligible=["large"])
    assert bandit.predict_proba([[1.0, 0.0]])[0][2] == 0.0
    decision = bandit.decide([1.0, 0.0], probabilities="all")
    assert decision.eligible == ("small",)
    assert decision.probabilities is not None
    assert decision.probabilities.tolist() == [1.0, 0.0, 0.0]
    with pytest.raises(BudgetError, match=r"no eligible arm can be played without exceeding that; or go on with"):
        bandit.decide([1.0, 0.0], eligible=["large"])
    bandit.replace(budget=Budget("cost", total=10.0, horizon=1000, hard=True))
    assert bandit.decide([1.0, 0.0], eligible=["large"]).arm == "large"


def test_a_batch_that_could_exceed_a_hard_total_is_refused_as_a_whole() -> None:
    bandit = made(KNOWN, Budget("cost", total=10.0, horizon=1000, hard=True))
    before = bandit.digest()
    with pytest.raises(BudgetError, match="6 decisions at once could exceed that; decide one by one"):
        bandit.decide_many(np.zeros((6, 2)))
    assert bandit.digest() == before
    assert len(bandit.decide_many(np.zeros((5, 2)))) == 5


# ---- files, copies, replays, merges


def test_a_batch_fits_into_a_period_that_it_begins() -> None:
    bandit = made(KNOWN, Budget("cost", total=20.0, period=10, hard=True))
    for _ in range(10):
        bandit.decide([0.0, 0.0])
    assert len(bandit.decide_many(np.zeros((10, 2)))) == 10
    with pytest.raises(BudgetError, match="11 decisions at once could exceed that"):
        bandit.decide_many(np.zeros((11, 2)))


@KINDS
def test_a_batch_that_is_refused_half_way_has_spent_nothing(known: Any) -> None:
    bandit = made(known)
    live(bandit, 5, known)
    before = bandit.digest()
    with pytest.raises(InvalidValueError, match="nothing says which epoch it is"):
        bandit.decide_many(np.zeros((3, 2)), units=[None, None, "session-17"])
    assert bandit.digest() == before


def test_the_digest_tells_budgets_and_spends_apart() -> None:
    one, other = made(), made(budget=Budget("cost", total=151.0, horizon=400))
    assert one.digest() != other.digest() != made(budget=None).digest()
    before = one.digest()
    one._begin_decision("small", explored=False)
    assert one.digest() != before


@KINDS
def test_a_decision_that_could_not_be_recorded_spends_nothing(known: Any) -> None:
    notebook = Notebook()
    bandit = made(known, log=notebook)
    live(bandit, 20, known)
    before = bandit.budget
    notebook.is_full = True
    for call in (lambda: bandit.decide([0.0, 0.0]), lambda: bandit.decide_many(np.zeros((3, 2)))):
        with pytest.raises(OSError, match="full"):
            call()
        assert bandit.budget == before


def test_bandits_of_other_budgets_do_not_merge() -> None:
    with pytest.raises(MergeError, match="budget is Budget"):
        made().merge(made(budget=None))


def test_a_larger_budget_goes_on_from_what_was_spent() -> None:
    bandit = made()
    live(bandit, 100, None)
    assert bandit.budget is not None
    spent, price = bandit.budget.spent, bandit.budget.price
    bandit.replace(budget=Budget("cost", total=300.0, horizon=800))
    assert (bandit.budget.spent, bandit.budget.left, bandit.budget.decisions_left) == (spent, 300.0 - spent, 700)
    assert bandit.budget.price == pytest.approx(price, rel=0.01)
    with pytest.raises(InvalidValueError, match="budget is of 'quality', but what was spent is 'cost'"):
        bandit.replace(budget=Budget("quality", total=1.0, horizon=10))
    with pytest.raises(InvalidTypeError, match=r"budget is 300.0; give an armlet.Budget"):
        bandit.replace(budget=300.0)  # type: ignore[arg-type]


def test_other_prices_are_those_that_are_counted() -> None:
    bandit = made(KNOWN)
    bandit.decide([0.0, 0.0], eligible=["large"])
    bandit.replace(known={"cost": {**COSTS, "large": 5.0}})
    bandit.decide([0.0, 0.0], eligible=["large"])
    assert bandit.budget is not None
    assert bandit.budget.spent == 7.0


@pytest.mark.parametrize(
    ("budget", "others", "words"),
    [
        (BUDGET, {"outcomes": None}, "the bandit has one reward; give outcomes too"),
        (Budget("money", total=1.0, horizon=5), {}, "budget is of 'money', which is no outcome; the outcomes are"),
        (Budget("cost", total=1.0, horizon=5, hard=True), {}, "budget is hard, but nothing bounds 'cost': give known="),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(budget: Budget, others: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        made(None, budget, **others)
