"""What is billed is spent, whatever is learned; a hard budget keeps the upper end back until a cost is there."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, Budget, Decision
from armlet.errors import ArmletError, BudgetError, DecisionError, InvalidTypeError, InvalidValueError

HARD = Budget("cost", total=20.0, horizon=10_000, hard=True)
SOFT = Budget("cost", total=20.0, horizon=10_000)


def made(budget: Budget | None = HARD, most: float = 5.0, **others: Any) -> Bandit:
    given: dict[str, Any] = {
        "outcomes": {"quality": 1.0, "cost": 0.0},
        "reward_range": {"cost": (0.0, most)},
        "seed": 3,
    }
    return Bandit(["a", "b"], 1, budget=budget, **{**given, **others})


def decided(bandit: Bandit) -> list[Decision]:
    """Decide until the budget refuses."""
    found: list[Decision] = []
    while len(found) < 1000:
        try:
            found.append(bandit.decide([0.5]))
        except BudgetError:
            break
    return found


def spent(bandit: Bandit) -> tuple[float, int]:
    assert bandit.budget is not None
    return bandit.budget.spent, bandit.budget.waiting


# ---- a hard total


def test_a_hard_budget_outlasts_expiry() -> None:
    """50 decisions, expired before their costs of 5 came, once spent 250 of 20."""
    bandit, late = made(), list[Decision]()
    for _ in range(20):
        try:
            late.append(bandit.decide([0.5]))
        except BudgetError:
            break
        bandit.expire(late[-1])
    assert len(late) == 4
    for decision in late:
        bandit.learn(decision, {"quality": 1.0, "cost": 5.0})
    assert spent(bandit) == (20.0, 0)


def test_a_bill_of_nothing_releases_what_is_kept_back() -> None:
    bandit = made()
    waiting = decided(bandit)
    bandit.expire(waiting[0])
    for decision in waiting[:2]:
        bandit.bill(decision, 0.0)
        bandit.bill(decision, 0.0)  # a retry
    assert (spent(bandit), waiting[0].billed) == ((0.0, 2), 0.0)
    assert len(decided(bandit)) == 2
    bandit.learn(waiting[0], {"cost": 4.0})  # it came after all
    assert (spent(bandit), waiting[0].billed) == ((4.0, 4), None)


def test_a_correction_above_a_hard_total_is_spent_and_said() -> None:
    bandit = made()
    first = bandit.decide([0.5])
    bandit.learn(first, {"cost": 0.0, "quality": 1.0})
    for decision in decided(bandit):
        bandit.learn(decision, {"cost": 4.0})
    assert spent(bandit) == (16.0, 0)
    with pytest.warns(RuntimeWarning, match=r"takes the spend to 21 of a hard budget of 20.0: it is spent"):
        bandit.correct(first, {"cost": 0.0}, {"cost": 5.0})
    assert bandit.budget is not None
    assert bandit.budget.left == -1.0
    with pytest.raises(BudgetError, match=r"is hard and is exceeded by 1: 21 of 20.0 are spent"):
        bandit.decide([0.5])


@pytest.mark.parametrize("budget", [SOFT, HARD], ids=["soft", "hard"])
def test_a_forgotten_cost_is_spent_once(budget: Budget) -> None:
    bandit = made(budget)
    waiting = [bandit.decide([0.5]) for _ in range(4)]
    bandit.learn(waiting[0], {"cost": 2.0, "quality": 1.0})
    bandit.forget(waiting[0], {"cost": 2.0, "quality": 1.0})
    bandit.learn(waiting[0], {"cost": 3.0, "quality": 1.0})
    bandit.learn(waiting[1], {"cost": 1.0})
    bandit.forget(waiting[1], {"cost": 1.0})
    assert spent(bandit) == (4.0, 2)


# ---- bills outside of the range


@pytest.mark.parametrize("budget", [SOFT, HARD], ids=["soft", "hard"])
def test_bills_outside_the_range_are_spent(budget: Budget) -> None:
    bandit, rows = made(budget, 0.1), 0
    for _ in range(50):
        try:
            decision = bandit.decide([0.5])
        except BudgetError:
            break
        rows += 1
        with pytest.warns(RuntimeWarning, match="outside of its reward_range: it is spent, and nothing was learned"):
            bandit.learn(decision, {"quality": 1.0, "cost": 0.5})
        assert not decision.learned
        assert (decision.reward, decision.billed) == (None, 0.5)
    assert spent(bandit) == (0.5 * rows, 0)
    assert rows == (50 if budget is SOFT else 40)
    assert bandit.state.n.sum() == 0.0


def test_a_batch_with_a_bill_outside_the_range_is_refused_as_a_whole() -> None:
    bandit = made(SOFT, 0.1)
    decisions, before = [bandit.decide([0.5]) for _ in range(2)], bandit.digest()
    with pytest.raises(InvalidValueError, match=r"cost is 0\.5 but reward_range has"):
        bandit.learn_many(decisions, {"quality": [1.0, 1.0], "cost": [0.1, 0.5]})
    assert bandit.digest() == before


def test_a_wider_range_learns_a_bill_and_spends_it_once() -> None:
    bandit = made(SOFT)
    one, two = bandit.decide([0.5]), bandit.decide([0.5])
    with pytest.warns(RuntimeWarning, match="it is spent"):
        bandit.learn(one, {"cost": 7.0})
    bandit.learn(two, {"cost": 3.0, "quality": 1.0})
    with pytest.warns(RuntimeWarning, match="it is spent"):
        bandit.correct(two, {"cost": 3.0}, {"cost": 8.0})
    assert (spent(bandit), two.reward, two.billed) == ((15.0, 0), {"quality": 1.0, "cost": 3.0}, 8.0)
    bandit.replace(reward_range={"cost": (0.0, 10.0)})
    bandit.learn(one, {"cost": 7.0, "quality": 1.0})
    bandit.correct(two, {"cost": 3.0}, {"cost": 8.0})
    assert (spent(bandit), one.learned, two.billed) == ((15.0, 0), True, None)


def test_another_outcome_outside_its_range_is_refused() -> None:
    bandit = made(SOFT, reward_range={"cost": (0.0, 1.0), "quality": (0.0, 1.0)})
    decision, before = bandit.decide([0.5]), bandit.digest()
    with pytest.raises(InvalidValueError, match=r"quality is 9.0 but reward_range has"):
        bandit.learn(decision, {"quality": 9.0, "cost": 3.0})
    assert bandit.digest() == before


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({"budget": None}, "cost is 1.0, but the bandit has no budget"),
        ({"known": {"cost": {"a": 1.0, "b": 2.0}}, "reward_range": None}, "the cost of every arm is known"),
    ],
    ids=["none", "known"],
)
def test_a_bill_needs_a_budget_of_a_learned_cost(others: dict[str, Any], why: str) -> None:
    bandit = made(**others)
    decision, before = bandit.decide([0.5]), bandit.digest()
    with pytest.raises(InvalidValueError, match=why):
        bandit.bill(decision, 1.0)
    assert bandit.digest() == before
    with pytest.raises(DecisionError, match="was made by another bandit"):
        made().bill(made(seed=4).decide([0.5]), 1.0)


@pytest.mark.parametrize("cost", [np.nan, np.inf, "much", None])
def test_a_bill_that_is_no_number_is_refused(cost: Any) -> None:
    bandit = made()
    decision, before = bandit.decide([0.5]), bandit.digest()
    with pytest.raises(ArmletError, match=r"^cost is "):
        bandit.bill(decision, cost)
    assert bandit.digest() == before


def test_bills_survive_records_and_pickles() -> None:
    bandit = made()
    waiting = decided(bandit)
    bandit.bill(waiting[0], 2.0)
    bandit.learn(waiting[1], {"cost": 1.0}, weight=3.0)
    for copied in (Decision.from_dict(waiting[0].to_dict()), pickle.loads(pickle.dumps(waiting[0]))):
        assert copied.billed == 2.0
        bandit.copy().learn(copied, {"cost": 1.0})
    for copied in (Decision.from_dict(waiting[1].to_dict()), pickle.loads(pickle.dumps(waiting[1]))):
        assert (copied.weight, copied.learned, copied.reward) == (3.0, False, {"cost": 1.0})


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("hard", [False, True])
def test_a_log_of_bills_leads_to_the_same_spending(hard: bool, tmp_path: Path) -> None:
    rng, path, waiting = np.random.default_rng(5), tmp_path / "bills.jsonl", list[Decision]()
    budget = Budget("cost", total=90.0, period=30, hard=hard)
    with armlet.Log(path) as log:
        start, bandit = made(budget, epoch=20), made(budget, log=log, epoch=20)
        for step in range(150):
            try:
                waiting.append(bandit.decide(rng.standard_normal(1), unit=f"u{step % 3}"))
            except BudgetError:
                bandit.bill(waiting.pop(0), 0.0)
            if step % 3 or not waiting:
                continue
            late = waiting.pop(int(rng.integers(len(waiting))))
            act = rng.integers(5)
            if act == 0:
                bandit.expire(late)
            if act == 1:
                bandit.bill(late, float(rng.uniform(0.0, 9.0)))
            parts = {"quality": 1.0, "cost": float(rng.uniform(0.0, 6.0))}
            bandit.learn(late, parts)
            if act == 2 and late.learned:
                bandit.correct(late, parts, {"quality": 0.5, "cost": float(rng.uniform(0.0, 6.0))})
            if act == 3 and late.learned:
                bandit.forget(late, parts)
                bandit.learn(late, {"cost": 1.0})
        bandit.replace(budget=None)
        bandit.decide([0.5], unit="u1")
    kinds = [event["kind"] for event in armlet.Log(path)]
    assert kinds.count("bill") > 10
    found = armlet.audit(armlet.Log(path), start)
    assert found.ok
    assert found.digest == bandit.digest()


# ---- no budget any more


def test_a_budget_can_be_removed() -> None:
    bandit = made(SOFT, epoch=100)
    for _ in range(30):
        bandit.learn(bandit.decide([0.5], unit="u"), {"cost": 1.5, "quality": 1.0})
    assert bandit.budget is not None
    assert bandit.budget.price > 0.0
    bandit.replace(budget=None)
    plain = armlet.from_bytes(bandit.to_bytes())
    for _ in range(20):
        ours, theirs = (each.decide([0.5], unit="u") for each in (bandit, plain))
        assert ours.to_dict() == theirs.to_dict()
    assert [each.settings.budget for each in (bandit, plain)] == [None, None]
    with pytest.raises(InvalidValueError, match="there is none to remove"):
        bandit.replace(budget=None)
    with pytest.raises(InvalidTypeError, match=r"replace got budget and t|replace got t and budget"):
        bandit.replace(budget=None, t=1000)
    bandit.replace(budget=SOFT)
    assert spent(bandit) == (0.0, 0)


# ---- weights of rows in parts


def test_the_first_weight_of_parts_counts() -> None:
    bandit = made(None)
    decision = bandit.decide([0.5])
    bandit.learn(decision, {"quality": 1.0}, weight=5.0)
    before = bandit.digest()
    with pytest.raises(InvalidValueError, match=r"weight is 2.0, but the outcomes of decision .* have weight 5.0"):
        bandit.learn(decision, {"cost": 2.0}, weight=2.0)
    assert (bandit.digest(), decision.learned) == (before, False)
    bandit.learn(decision, {"cost": 2.0})
    assert (bandit.state.n.sum(), decision.weight) == (5.0, 5.0)
    other = bandit.decide([0.5])
    bandit.learn(other, {"quality": 1.0}, weight=2.0)
    bandit.learn(other, {"cost": 2.0}, weight=2.0)
    assert bandit.state.n.sum() == 7.0


def test_a_log_keeps_the_first_weight_of_parts(tmp_path: Path) -> None:
    with armlet.Log(tmp_path / "parts.jsonl") as log:
        start, bandit = made(None), made(None, log=log)
        decision = bandit.decide([0.5])
        bandit.learn(decision, {"quality": 1.0}, weight=5.0)
        bandit.learn(Decision.from_dict(decision.to_dict()), {"cost": 2.0})
    found = armlet.audit(armlet.Log(tmp_path / "parts.jsonl"), start)
    assert (found.ok, found.digest) == (True, bandit.digest())
    assert bandit.state.n.sum() == 5.0
