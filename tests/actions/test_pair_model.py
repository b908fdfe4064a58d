"""The model over pairs: the kernel against the reference, both against a joint ridge regression."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armlet import kernel
from armlet.errors import InvalidValueError, MergeError
from armlet.reference import pair_model as reference
from armlet.types import Float64
from support.actions.pairs import (
    Pair,
    Row,
    all_products,
    assert_same,
    make_models,
    make_pair,
    random_pair,
    random_row,
)
from support.examples import scaled


def live(rng: np.random.Generator, pair: Pair, steps: int, middle: float) -> None:
    """Learn, take back, correct, merge and fork, and compare after every step."""
    past: list[Row] = []
    for step in range(steps):
        kind = rng.random()
        if past and kind < 0.1:
            pair.do("remove", *past.pop(int(rng.integers(len(past)))))
        elif past and kind < 0.2:
            at, new = int(rng.integers(len(past))), float(rng.normal())
            key, x, z, old, weight = past[at]
            if pair.do("correct", key, x, z, old, new, weight):
                past[at] = (key, x, z, new, weight)
        elif past and kind < 0.24:
            other = pair.fresh()
            for row in [random_row(rng, pair) for _ in range(5)]:
                past.append(row)
                other.do("add", *row)
            pair.join("merge", other)
        elif past and kind < 0.28:
            base, since = pair.copy(), pair.copy()
            for row in [random_row(rng, pair, middle) for _ in range(3)]:
                since.do("add", *row)
            since.join("subtract", base)
            since.assert_same()
            base.join("merge", since)
            base.assert_same()
        else:
            past.append(random_row(rng, pair, middle))
            pair.do("add", *past[-1])
        pair.assert_same()
        if rng.random() < 0.3:
            allowed = None if rng.random() < 0.5 else rng.random(len(pair.keys)) < 0.5
            pair.ask(random_row(rng, pair, middle)[1], step + 1, allowed)


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60), middle=st.sampled_from([0.0, 1000.0]))
@settings(max_examples=scaled(30))
def test_the_kernel_is_the_reference_to_the_last_bit(seed: int, steps: int, middle: float) -> None:
    rng = np.random.default_rng(seed)
    live(rng, random_pair(rng), steps, middle)


def learned(n: int, seed: int, *, dx: int = 2, dz: int = 3, kept: int = 10_000) -> tuple[Pair, list[Row]]:
    """Return models of n rows of 12 actions, nine of them played."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(12, dz)) * np.array([1.0, 5.0, 0.1])[:dz] + np.array([0.0, 30.0, 2.0])[:dz]
    keys = np.arange(12, dtype=np.uint64) + 7
    pair = make_pair(make_models(dx, dz, all_products(dx, dz), intercepts=True, kept=kept), Z, keys)
    rows: list[Row] = []
    for _ in range(n):
        a, x = int(rng.integers(9)), rng.normal(size=dx) * 3.0 + 100.0
        reward = 5.0 + x[0] * Z[a, 0] + a % 3 + 0.5 * rng.normal()
        rows.append((int(keys[a]), x, Z[a], float(reward), 1.0))
        pair.do("add", *rows[-1])
    return pair, rows


def joint_ridge(pair: Pair, rows: list[Row], x: Float64) -> tuple[Float64, Float64]:
    """Return estimates and widths of a ridge regression with a column for every action, in the model's units."""
    model = pair.models[1]
    at, dx = model._solved, model.terms.dx
    origin = model._origin

    def view(x: Float64, z: Float64, action: int) -> Float64:
        both = ((np.concatenate([x, z]) - origin[1:]) - at.middles) * at.scales
        phi = model.terms.spread(np.concatenate([[1.0], both[:dx]]), np.concatenate([[1.0], both[dx:]]))
        return np.concatenate([phi, np.eye(12)[action]])

    X = np.array([view(x, z, pair.keys.index(key)) for key, x, z, _, _ in rows])
    V = X.T @ X + np.diag(np.concatenate([model._ridge(), np.full(12, model.kappa)]))
    theta = np.linalg.solve(V, X.T @ np.array([row[3] - origin[0] for row in rows]))
    F = np.array([view(x, pair.Z[a], a) for a in range(12)])
    return origin[0] + F @ theta, np.sqrt(np.einsum("ij,ij->i", F, np.linalg.solve(V, F.T).T))


def test_intercepts_in_closed_form_are_those_of_a_column_for_every_action() -> None:
    pair, rows = learned(150, 0)
    for model in pair.models:
        model.solve()
    x = np.array([103.0, 98.0])
    estimates, widths = joint_ridge(pair, rows, x)
    np.testing.assert_allclose(pair.models[0].estimates(x, pair.rows[0]), estimates, rtol=1e-11)
    np.testing.assert_allclose(pair.models[0].widths(x, pair.rows[0]), widths, rtol=1e-9)


def test_merged_models_are_the_model_of_all_rows() -> None:
    whole, rows = learned(150, 1)
    parts = whole.fresh(), whole.fresh()
    for i, row in enumerate(rows):
        parts[i % 2].do("add", *row)
    parts[0].join("merge", parts[1])
    empty = whole.fresh()
    empty.join("merge", whole)  # which weighs the evidence of all rows, as the other merge does
    x = np.array([101.0, 99.0])
    got, expected = (p.models[0].estimates(x, p.rows[0]) for p in (parts[0], empty))
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    assert parts[0].models[0].n == 150.0


def test_a_row_taken_back_was_never_there() -> None:
    pair, rows = learned(60, 2)
    before = pair.models[0].copy()
    extra = (7, np.array([90.0, 95.0]), pair.Z[0], 3.0, 1.0)
    pair.do("add", *extra)
    pair.do("remove", *extra)
    before.solve()
    x, table = rows[0][1], pair.rows[0]
    np.testing.assert_allclose(pair.models[0].estimates(x, table), before.estimates(x, table), rtol=1e-9)
    for row in rows:
        pair.do("remove", *row)
    assert_same(pair.models[0], pair.fresh().models[0])


@pytest.mark.parametrize("left", [100, 64, 10])
def test_ridges_are_those_of_rows_not_taken_back(left: int) -> None:
    pair, rows = learned(128, 2)
    few, _ = learned(left, 2)
    few.do("solve")
    for row in rows[left:]:
        pair.do("remove", *row)
    pair.assert_same()
    model, expected = pair.models[0], few.models[0]
    np.testing.assert_allclose([*model.ridges, model.kappa], [*expected.ridges, expected.kappa], rtol=1e-6)


def test_a_correction_is_the_row_with_the_new_reward() -> None:
    pair, rows = learned(60, 3)
    key, x, z, old, weight = rows[10]
    other = pair.copy()
    pair.do("correct", key, x, z, old, 9.0, weight)
    other.do("remove", key, x, z, old, weight)
    other.do("add", key, x, z, 9.0, weight)
    other.do("solve")
    got, expected = (p.models[0].estimates(x, p.rows[0]) for p in (pair, other))
    np.testing.assert_allclose(got, expected, rtol=1e-9)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=scaled(20))
def test_neither_zero_nor_size_of_features_and_rewards_matters(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dx, dz, n = 2, 3, 40
    Z, keys = rng.normal(size=(n, dz)), np.arange(n, dtype=np.uint64)
    Z[:, 2] = rng.random(n) < 0.2  # does not vary at first
    units = [(np.zeros(dx), np.ones(dx), np.zeros(dz), np.ones(dz), 0.0, 1.0)]
    far = rng.normal(size=dx) * 100.0, rng.normal(size=dz) * 9.0, float(rng.normal() * 30.0)
    large = rng.uniform(0.01, 50.0, dx), rng.uniform(0.1, 9.0, dz), float(rng.uniform(0.01, 90.0))
    units.append((far[0], large[0], far[1], large[1], far[2], large[2]))
    models = [kernel.PairModel(dx, dz, all_products(dx, dz), intercepts=True) for _ in units]
    tables = [kernel.ActionRows(oz + sz * Z, keys) for _, _, oz, sz, _, _ in units]
    for t in range(60):
        x, kind = rng.normal(size=dx), t % 5 == 0
        played: list[list[int]] = []
        for model, table, (ox, sx, _, _, _, _) in zip(models, tables, units, strict=True):
            there = ox + sx * x
            if kind:
                played.append(model.optimistic(there, table, t, None).tolist())
            else:
                played.append(model.greedy(there, table, None).tolist())
        # an action played alone has a residual of zero, but for rounding
        assert played[0] == played[1] or t < 5
        a = int(rng.choice(played[0]))
        reward = float(x[0] * Z[a, 0] + Z[a, 1] + rng.normal())
        for model, table, (ox, sx, _, _, low, size) in zip(models, tables, units, strict=True):
            model.add(a, ox + sx * x, table.Z[a], low + size * reward, 1.0)


@pytest.mark.parametrize("reward", [0.0, 0.1, -7.7, 1e6 + 0.1])
def test_rewards_that_are_all_the_same_leave_a_tie(reward: float) -> None:
    pair, rows = learned(60, 5)
    same = pair.fresh()
    for key, x, z, _, weight in rows:
        same.do("add", key, x, z, reward, weight)
    kernels, _ = same.models
    everything = list(range(12))
    table, x = same.rows[0], np.array([101.0, 99.0])
    assert kernels.greedy(x, table, None).tolist() == kernels.optimistic(x, table, 9, None).tolist() == everything
    assert all(won.tolist() == everything for won in kernels.draws(x, table, 9, 1, 4, 1.0, None))
    key, x, z, _, weight = rows[0]
    same.do("add", key, x, z, reward + 1.0, weight)
    same.assert_same()
    assert kernels.greedy(x, table, None).tolist() == [same.keys.index(key)]


def test_features_far_from_zero_are_learned_as_well() -> None:
    near, rows = learned(120, 6)
    far = 1.1e6
    moved = make_pair(near.fresh().models, near.Z + far, np.array(near.keys, dtype=np.uint64))
    for key, x, z, reward, weight in rows:
        moved.do("add", key, x + far, z + far, reward, weight)
    moved.assert_same()
    x = np.array([103.0, 98.0])
    here = near.models[0].estimates(x, near.rows[0])
    there = moved.models[0].estimates(x + far, moved.rows[0])
    np.testing.assert_allclose(there, here, rtol=1e-4)


def test_a_restored_model_goes_on_as_the_saved_one() -> None:
    pair, rows = learned(100, 4, kept=6)
    again = pair.fresh()
    # the kernel's from the reference, and the other way round
    again.models[0].restore_arrays(pair.models[1].arrays())
    again.models[1].restore_arrays(pair.models[0].arrays())
    for part in (pair, again):
        for row in rows[:30]:
            part.do("add", *row)
        part.assert_same()
    assert_same(pair.models[0], again.models[0])


def test_items_beyond_those_kept_are_folded_in_and_cannot_be_taken_back() -> None:
    pair, rows = learned(80, 5, kept=3)
    assert pair.models[0].n_items == 3
    kept = pair.models[0].arrays()["item_keys"].tolist()
    gone = next(row for row in rows if row[0] not in kept)
    with pytest.raises(InvalidValueError, match="no longer kept apart"):
        pair.models[0].remove(*gone)
    new = (99, *rows[-1][1:])
    pair.do("add", *new)
    pair.do("remove", *new)
    pair.assert_same()


def test_rows_of_an_item_that_came_back_cannot_be_taken_back() -> None:
    """Nothing tells those from before it was folded in from those since."""
    pair, rows = learned(80, 5, kept=3)
    back = next(row for row in rows if row[0] not in pair.models[0].arrays()["item_keys"])
    pair.do("add", *back)
    pair.assert_same()
    before = pair.models[0].arrays()
    assert back[0] in before["item_keys"]
    assert back[0] in before["folded_keys"]
    again = pair.copy()
    for model in (*pair.models, *again.models):
        with pytest.raises(InvalidValueError, match="no longer kept apart"):
            model.remove(*back)
        with pytest.raises(InvalidValueError, match="no longer kept apart"):
            model.correct(*back[:4], 9.0, back[4])
        for name, array in model.arrays().items():
            np.testing.assert_array_equal(array, before[name])


def test_as_many_folded_keys_are_known_as_is_written() -> None:
    pair, rows = learned(1, 5, kept=2)
    for key in range(1, 30):
        pair.do("add", key, *rows[0][1:])
    assert pair.models[0].arrays()["folded_keys"].tolist() == list(range(12, 28))
    pair.assert_same()


def test_a_delta_holds_what_a_base_gave_up() -> None:
    """The base kept items that were folded in since: merged with the difference it gives them up too."""
    pair, rows = learned(80, 6, kept=3)
    base = pair.fresh()
    for row in rows[:40]:
        base.do("add", *row)
    since = base.copy()
    for row in rows[40:]:
        since.do("add", *row)
    whole = since.copy()
    since.join("subtract", base)
    base.join("merge", since)
    x = rows[0][1]
    assert base.models[0].n_rows == 80
    again = whole.fresh()
    again.join("merge", whole)
    got, expected = (p.models[0].estimates(x, p.rows[0]) for p in (base, again))
    np.testing.assert_allclose(got, expected, rtol=1e-8)


def test_models_of_other_terms_are_not_merged() -> None:
    pair, _ = learned(5, 7)
    others = make_models(2, 3, all_products(2, 3)[:-1], intercepts=True, kept=10)
    with pytest.raises(MergeError, match="different features, products or intercepts"):
        pair.models[0].merge(others[0])
    with pytest.raises(MergeError, match="different features, products or intercepts"):
        pair.models[1].merge(others[1])
    for m in (kernel, reference):
        with pytest.raises(InvalidValueError, match="from 1 to 2 and from 1 to 3"):
            m.PairModel(2, 3, np.array([[0, 1]]), intercepts=True)
        with pytest.raises(InvalidValueError, match="products must differ"):
            m.PairModel(2, 3, np.array([[1, 1], [1, 1]]), intercepts=True)
        with pytest.raises(InvalidValueError, match="keys must differ"):
            m.ActionRows(np.zeros((2, 1)), np.zeros(2, dtype=np.uint64))


def test_a_refused_row_changes_nothing() -> None:
    pair, rows = learned(20, 8)
    model, before = pair.models[0], pair.models[0].copy()
    key, x, z, reward, weight = rows[0]
    for wrong in [
        (key, x * np.nan, z, reward, weight),
        (key, x, z, np.inf, weight),
        (key, x, z, reward, 0.0),
        (key, x, z * 1e300, reward, weight),
    ]:
        with pytest.raises(InvalidValueError):
            model.add(*wrong)
    with pytest.raises(InvalidValueError, match="no longer kept apart"):
        model.remove(99, x, z, reward, weight)
    assert_same(model, before)
