"""One name for one number: the ridge is `ridge` and the noise has one default, whatever the policy."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import armlet
from armlet.core.checks import NOISE_SCALE
from armlet.core.files import encoding
from armlet.policies import POLICIES
from support.policies import SETTINGS

RENAMED = [name for name in POLICIES if getattr(POLICIES[name], "renamed", None)]


def test_no_policy_has_the_old_word_and_some_had_it() -> None:
    assert len(RENAMED) == 10
    for name in POLICIES:
        assert "lam" not in inspect.signature(POLICIES[name]).parameters


@pytest.mark.parametrize("name", RENAMED)
def test_old_word_is_refused_by_the_new_one(name: str) -> None:
    kind, needed = cast(Any, POLICIES[name]), SETTINGS[name][0]
    with pytest.raises(TypeError, match=rf"^lam is called ridge now: {name}\(ridge=2\.0\)$"):
        kind(**needed, lam=2.0)
    assert kind(**needed, ridge=2.0).ridge == 2.0


@pytest.mark.parametrize("name", RENAMED)
def test_model_file_with_the_old_word_goes_on_as_it_would_have(name: str, tmp_path: Path) -> None:
    kind, needed = cast(Any, POLICIES[name]), SETTINGS[name][0]
    bandit = armlet.Bandit(["a", "b"], 2, policy=kind(**needed, ridge=0.3), seed=4)
    for x in np.random.default_rng(1).normal(size=(30, 2)):
        bandit.learn(bandit.decide(x), float(x[0]))
    bandit.save(path := tmp_path / "model.armlet")
    header, arrays = encoding.read_model(path)
    saved: Any = header["policy"]
    settings = saved["settings"]
    settings["lam"] = settings.pop("ridge")
    encoding.write_model(path, header, arrays)
    told, given = armlet.load(path), armlet.load(path, policy=bandit.policy)
    played = [[repr(each.decide([1.0, t])) for t in range(5)] for each in (bandit, told, given)]
    assert played[0] == played[1] == played[2]
    assert told.to_bytes() == given.to_bytes() == bandit.to_bytes()
    settings["ridge"] = 0.3
    encoding.write_model(path, header, arrays)
    with pytest.raises(armlet.ModelFileError, match="lam is called ridge now"):
        armlet.load(path)


def test_noise_scale_has_one_default() -> None:
    fields = {name: inspect.signature(POLICIES[name]).parameters.get("noise_scale") for name in POLICIES}
    defaults = {name: field.default for name, field in fields.items() if field is not None}
    assert len(defaults) == 7
    assert set(defaults.values()) == {NOISE_SCALE}
