"""What an `ActionBandit` promises: decide, learn, and back from files, in any order of rows."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import numpy as np
import pytest

import armlet
from armlet import ActionBandit, ActionDecision, ActionTable, SharedOptimism, SharedThompson, model_file
from armlet.errors import DecisionError, ForgetError, InvalidTypeError, InvalidValueError, MergeError, ModelFileError
from armlet.types import Float64

POLICIES = [SharedOptimism(), SharedThompson(draws=5), SharedOptimism(interactions="none", intercepts=False)]


def catalogue(n: int = 12, dim: int = 3, seed: int = 1) -> dict[str, Float64]:
    rng = np.random.default_rng(seed)
    return {f"item-{i}": rng.normal(size=dim) for i in range(n)}


def played(bandit: ActionBandit, steps: int = 40, seed: int = 2) -> list[ActionDecision]:
    """Decide and learn, with another table at every tenth step."""
    rng, made = np.random.default_rng(seed), []
    for step in range(steps):
        x = rng.normal(size=bandit.settings.dim)
        decision = bandit.decide(x, catalogue(seed=step // 10))
        bandit.learn(decision, float(decision.z[0] * (1 + x.sum()) + rng.normal()))
        made.append(decision)
    return made


def new(policy: Any = None, **options: Any) -> ActionBandit:
    return ActionBandit(2, 3, policy=policy, **{"seed": 5, **options})


def test_a_file_may_leave_tables_out() -> None:
    bandit = new()
    bandit.prepare("films", catalogue())
    twin = armlet.from_bytes(bandit.to_bytes(tables="names"), kind=ActionBandit)
    assert twin.digest() == bandit.digest()
    with pytest.raises(InvalidValueError, match="prepare it again"):
        twin.decide([0.0, 1.0], "films")
    without = twin.copy()
    without.remove_table("films")
    assert without.digest() == new().digest() != twin.digest()
    twin.prepare("films", catalogue())
    assert twin.decide([0.0, 1.0], "films").id == bandit.decide([0.0, 1.0], "films").id


def test_load_reads_both_kinds() -> None:
    for bandit in (new(), armlet.Bandit(["a", "b"], 1, seed=1)):
        file = io.BytesIO()
        bandit.save(file)
        file.seek(0)
        found: Any = armlet.load(file)
        assert type(found) is type(bandit)
        assert found.digest() == bandit.digest()
    with pytest.raises(InvalidTypeError, match="holds an ActionBandit"):
        armlet.from_bytes(new().to_bytes(), kind=armlet.Bandit)
    with pytest.raises(ModelFileError, match="holds an ActionBandit"):
        model_file.decode(new().to_bytes(), armlet.policies.find_policy, None)


def test_a_decision_is_learned_from_its_record_when_its_table_is_gone() -> None:
    one, other = new(), new()
    decision = one.decide([0.1, 0.2], catalogue())
    other.decide([0.1, 0.2], catalogue())
    record = json.loads(json.dumps(decision.to_dict()))
    one.learn(decision, 0.5)
    other.learn(ActionDecision.from_dict(record), 0.5)
    assert one.digest() == other.digest()
    again = ActionDecision.from_dict(decision.to_dict())
    assert again.to_dict() == decision.to_dict()
    with pytest.raises(DecisionError, match="learned already"):
        other.learn(again, 0.5)


def test_the_order_of_a_table_is_nothing() -> None:
    table = catalogue()
    turned = dict(reversed(table.items()))
    assert new().decide([0.0, 1.0], table).to_dict() == new().decide([0.0, 1.0], turned).to_dict()
    labels = list(table)
    assert ActionTable(labels, np.array(list(table.values()))).hash == new().table(table).hash


def test_learning_many_is_learning_one_by_one() -> None:
    one, other = new(), new()
    rows = [([0.1, 0.2], 1.0), ([0.3, 0.1], 2.0), ([0.5, 0.5], 0.0)]
    for bandit in (one, other):
        made = bandit.decide_many([x for x, _ in rows], catalogue())
        if bandit is one:
            bandit.learn_many(made, [r for _, r in rows])
        else:
            for decision, (_, reward) in zip(made, rows, strict=True):
                bandit.learn(decision, reward)
    assert one.digest() == other.digest()


def test_a_table_of_rows_is_learned_as_one_by_one() -> None:
    bandit, other = new(), new()
    made = played(bandit)
    other.partial_fit(
        {
            "x": [d.x for d in made],
            "z": [d.z for d in made],
            "arm": [d.arm for d in made],
            "reward": [d.reward for d in made],
        }
    )
    other.replace(t=bandit.t)
    bandit._state.solve()
    assert other.digest() == bandit.digest()


def test_forget_takes_back_and_correct_replaces() -> None:
    bandit, other = new(), new()
    made = played(bandit, 30)
    played(other, 30)
    for each in (bandit, other):
        each._state.solve()
    before = bandit.predict_expectations([0.3, 0.4], catalogue())
    extra, twin = (each.decide([5.0, 1.0], catalogue()) for each in (bandit, other))
    bandit.learn(extra, 7.0)
    bandit.forget(extra, 7.0)
    assert extra.expired
    assert not extra.learned
    np.testing.assert_allclose(bandit.predict_expectations([0.3, 0.4], catalogue()), before, rtol=1e-9)
    bandit.learn(extra, 1.0)
    bandit.correct(extra, 1.0, 2.0)
    other.learn(twin, 2.0)
    other._state.solve()
    expected = other.predict_expectations([0.3, 0.4], catalogue())
    np.testing.assert_allclose(bandit.predict_expectations([0.3, 0.4], catalogue()), expected, rtol=1e-9)
    assert made[0].learned


def test_rows_of_an_action_that_came_back_are_not_confused() -> None:
    bandit = new()
    bandit._state = type(bandit.state)(2, 3, bandit.settings.products(), intercepts=True, kept=2)
    rng, z = np.random.default_rng(3), np.array([0.5, -1.0, 2.0])
    made = []
    for label in ("back", "b", "c", "d", "back"):
        made.append(bandit.decide(rng.normal(size=2), {label: z}))
        bandit.learn(made[-1], 1.5)
    file = bandit.to_bytes()
    for decision in (made[0], made[-1]):
        with pytest.raises(ForgetError, match="'back' with these features were folded into the sums"):
            bandit.forget(decision, 1.5)
        with pytest.raises(ForgetError, match="folded='approximate'"):
            bandit.correct(decision, 1.5, 0.5)
    assert bandit.to_bytes() == file
    assert armlet.from_bytes(file, kind=armlet.ActionBandit).digest() == bandit.digest()
    bandit.forget(made[3], 1.5)


def test_a_row_of_a_folded_action_is_taken_back_only_approximately() -> None:
    bandit, other = new(), new()
    for each in (bandit, other):
        products = each.settings.products()
        each._state = type(each.state)(2, 3, products, intercepts=True, kept=2)
    rng, made = np.random.default_rng(3), []
    for step in range(20):
        x, table = rng.normal(size=2), {f"item-{step}": rng.normal(size=3)}
        for each in (bandit, other):
            decision = each.decide(x, table)
            if each is bandit:
                made.append(decision)
            if each is bandit or step != 4:
                each.learn(decision, float(step % 5))
    before = bandit.to_bytes()
    with pytest.raises(ForgetError, match="folded='approximate'"):
        bandit.forget(made[4], 4.0)
    with pytest.raises(ForgetError, match="folded='approximate'"):
        bandit.correct(made[4], 4.0, 1.0)
    assert bandit.to_bytes() == before
    assert made[4].learned
    twin = bandit.copy()
    bandit.correct(made[4], 4.0, 1.0, folded="approximate")
    bandit.forget(made[4], 1.0, folded="approximate")
    twin.forget(ActionDecision.from_dict({**made[4].to_dict(), "reward": 4.0}), 4.0, folded="approximate")
    for found in (bandit, twin):
        arrays: dict[str, Any] = found.state.arrays()
        expected = other.state.arrays()
        assert arrays["counts"][0] == 19
        np.testing.assert_allclose(arrays["moments"], _moved(expected, arrays["origin"]), atol=1e-9)
        assert np.isfinite(found.predict_expectations([0.1, 0.2], catalogue())).all()
    one, two = (cast("dict[str, Any]", found.state.arrays()) for found in (bandit, twin))
    for name in ("sums", "moments", "theta"):
        np.testing.assert_allclose(one[name], two[name], atol=1e-9)


def _moved(arrays: Any, origin: Float64) -> Float64:
    """Return the sums of r, x and z, and of their squares, about an origin, which must be that of the model."""
    np.testing.assert_array_equal(arrays["origin"], origin)
    moments: Float64 = arrays["moments"]
    return moments


def test_merge_adds_what_two_learned() -> None:
    one, other, both = new(seed=1), new(seed=2), new(seed=3)
    rows = [(bandit, decision) for bandit in (one, other) for decision in played(bandit, 20, bandit.seed)]
    pending = other.decide([0.0, 1.0], catalogue())
    both.partial_fit(
        {
            "x": [d.x for _, d in rows],
            "z": [d.z for _, d in rows],
            "arm": [d.arm for _, d in rows],
            "reward": [d.reward for _, d in rows],
        }
    )
    base = one.copy()
    one.merge(other)
    assert one.t == 41
    assert one.state.n == both.state.n
    one.learn(pending, 1.0)
    rest = one.difference(base)
    assert rest.state.n == 21
    with pytest.raises(MergeError, match="action_dim"):
        one.merge(ActionBandit(2, 4))


def test_probabilities_are_those_of_decisions() -> None:
    for policy in POLICIES:
        bandit = new(policy)
        played(bandit, 15)
        table = bandit.table(catalogue())
        some = list(table.labels[:5])
        for x in ([0.1, 0.3], [2.0, -1.0]):
            chances = bandit.predict_proba(x, table, eligible=some)
            decision = bandit.decide(x, table, eligible=some, probabilities="all")
            assert decision.probabilities is not None
            np.testing.assert_array_equal(decision.probabilities, chances)
            assert abs(chances.sum() - 1) < 1e-12
            assert not chances[5:].any()
            assert decision.propensity == chances[table.place(decision.arm)]
            support = decision.support or dict.fromkeys(some, 0.2)
            assert {label: float(p) for label, p in zip(table.labels, chances, strict=True) if p} == support


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda b: b.decide([1.0], {"a": [1.0, 2.0, 3.0]}), "dim is 2"),
        (lambda b: b.decide([1.0, 2.0], {"a": [1.0, 2.0]}), r"actions\['a'\]|dim is 3"),
        (lambda b: b.decide([1.0, 2.0], {}), "actions is empty"),
        (lambda b: b.decide([1.0, 2.0], "films"), "no table 'films'"),
        (lambda b: b.decide([1.0, 2.0], {"a": [1.0, 2.0, 3.0]}, eligible=["b"]), "no action 'b'"),
        (lambda b: b.decide([1.0, 2.0], {"a": [1.0, 2.0, 3.0]}, eligible=[]), "eligible is empty"),
        (lambda b: b.decide([1.0, 2.0], {"a": [1.0, 2.0, float("nan")]}), "nan"),
        (lambda b: b.decide([1.0, 2.0], {"a": [1.0, 2.0, 3.0]}, t=1), "clock stands at 10"),
        (lambda b: b.replace(policy=SharedOptimism(interactions="none")), "interactions"),
        (lambda b: b.replace(), "give one of"),
        (lambda b: b.partial_fit({"x": [[1.0, 2.0]], "arm": ["a"], "reward": [1.0]}), "no column z"),
    ],
)
def test_refused_calls_leave_everything_as_it_was(call: Any, text: str) -> None:
    bandit = new()
    played(bandit, 10)
    before = bandit.to_bytes()
    with pytest.raises(armlet.ArmletError, match=text):
        call(bandit)
    assert bandit.to_bytes() == before


def test_no_contexts_at_all() -> None:
    bandit = ActionBandit(action_features=["price"], seed=3, objective="min")
    for _ in range(30):
        decision = bandit.decide(None, {"a": {"price": 1.0}, "b": {"price": 2.0}})
        bandit.learn(decision, float(decision.z[0]))
    assert bandit.predict(None, {"a": {"price": 1.0}, "b": {"price": 2.0}}) == "a"
    assert armlet.from_bytes(bandit.to_bytes(), kind=ActionBandit).decide({}, {"c": [1.0]}).arm == "c"


def test_policies_of_the_other_kind_are_refused_by_name() -> None:
    with pytest.raises(InvalidTypeError, match="ActionBandit"):
        armlet.Bandit(["a", "b"], 1, policy=SharedOptimism())  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="SharedOptimism"):
        ActionBandit(1, 1, policy=armlet.LinUCB())  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="pass an instance"):
        ActionBandit(1, 1, policy=SharedOptimism)  # type: ignore[arg-type]


def test_too_many_terms_name_the_way_out() -> None:
    with pytest.raises(InvalidValueError, match="Vowpal Wabbit"):
        ActionBandit(30, 30)
    assert ActionBandit(30, 30, policy=SharedOptimism(interactions="none")).state.n_terms == 61
