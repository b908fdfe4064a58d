"""Model files whose arrays were edited under a right checksum: refused when they are read, or a bandit that works.

A number that no rows lead to must not come to light at a later decision, as a probability of nan or worse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, disk
from armlet.errors import ModelFileError
from armlet.types import Array, Policy
from support import examples
from support.policies import DIM, N_ARMS, REGISTRY, SETTINGS, every_policy, of_registry

pytestmark = [pytest.mark.spread, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

ODD = (np.nan, np.inf, -np.inf, -1.0, -1e199, 1e199, 1e308, 1e100, 5e-324, 0.0, 1e16, 0.5)
CONTEXTS = np.array([[0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, -0.5, 0.0], [1e20, 1.0, 0.0]])


def lived(policy: Policy) -> Bandit:
    bandit, rng = Bandit(range(N_ARMS), DIM, policy=policy, seed=5), np.random.default_rng(1)
    for _ in range(12):
        bandit.learn(bandit.decide(rng.choice([0.0, 1.0, -0.5], size=DIM)), float(rng.integers(2)))
    return bandit


def edited(array: Array, place: int | slice, value: float) -> Array:
    """Put a number, or the bits of one, into an array."""
    changed = array.reshape(-1).copy()
    if array.dtype == np.int64 and not (np.isfinite(value) and abs(value) < 2**62 and value == int(value)):
        changed[place] = np.array([value]).view(np.int64)[0]
    else:
        changed[place] = value
    return changed.reshape(array.shape)


def places(size: int) -> tuple[int | slice, ...]:
    """Both ends and all; for `make test-all`, the middle too."""
    middle = (size // 2,) if examples.find_profile() == "nightly" else ()
    return (0, *middle, -1, slice(None)) if size else ()


def edits(arrays: dict[str, Array]) -> Iterator[dict[str, Array]]:
    """Return the arrays with one number changed, or all of one array."""
    for name, array in arrays.items():
        for place in places(array.size):
            for value in ODD:
                yield {**arrays, name: edited(array, place, value)}


def use(bandit: Bandit) -> None:
    """Decide, learn, look and save: regardless of a bandit that loaded has to do."""
    armlet.from_bytes(bandit.to_bytes())
    for x in CONTEXTS:
        decision = bandit.decide(x)
        assert 0.0 < decision.propensity <= 1.0
        bandit.learn(decision, 1.0)
        assert np.abs(bandit.predict_proba(CONTEXTS).sum(axis=1) - 1.0).max() <= 1e-6  # which no nan is
    armlet.from_bytes(bandit.to_bytes())


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
def test_edited_arrays_are_refused_or_give_a_bandit_that_works(policy: Policy) -> None:
    header, arrays = disk.decode_model(lived(policy).to_bytes())
    for changed in edits(arrays):
        try:
            bandit = armlet.from_bytes(disk.encode_model(header, changed))
        except ModelFileError:
            continue
        use(bandit)


def load_with(name: str, settings: dict[str, Any], changes: dict[str, Any]) -> Bandit:
    header, arrays = disk.decode_model(lived(REGISTRY[name](**settings)).to_bytes())
    changed = {array: np.full_like(arrays[array], value) for array, value in changes.items()}
    return armlet.from_bytes(disk.encode_model(header, {**arrays, **changed}))


@pytest.mark.parametrize(
    ("name", "settings", "changes", "message"),
    of_registry(
        [
            ("RealLinExp3", {"horizon": 100}, {"seen": -1.0}, "seen holds -1.0"),
            ("RealLinExp3", {"horizon": 100}, {"contexts": 1e150}, "contexts holds values beyond 1e\\+40"),
            ("Newtron", {}, {"W": 1e100}, "W holds 1e\\+100"),
            ("Newtron", {}, {"H": 1e-100}, "H holds 1e-100, .* between 1 and 1e\\+200"),
            ("Newtron", {"hessian": "full"}, {"H": -1.0}, "H holds -1.0"),
            ("ContextualUCB", SETTINGS["ContextualUCB"][1], {"rows": 0.5}, "rows holds one twice for arm"),
            ("UCB1", {"contexts": "table"}, {"contexts": 0.5}, "contexts holds one twice"),
            ("AutoEpsilonGreedy", {"horizon": 100}, {"sample": 1e150}, "beyond what rows lead to"),
            ("AutoEpsilonGreedy", {"horizon": 100}, {"records": 1e250}, "not those of any rows"),
        ]
    ),
)
def test_what_no_rows_lead_to_is_refused_by_name(
    name: str, settings: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelFileError, match=message):
        load_with(name, settings, changes)
