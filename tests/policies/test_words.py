"""One name for one number: the ridge is `ridge` and the noise has one default, whatever the policy."""

from __future__ import annotations

import inspect

from armlet.inputs.settings import NOISE_SCALE
from armlet.policies import POLICIES


def test_noise_scale_has_one_default() -> None:
    fields = {name: inspect.signature(POLICIES[name]).parameters.get("noise_scale") for name in POLICIES}
    defaults = {name: field.default for name, field in fields.items() if field is not None}
    assert len(defaults) == 7
    assert set(defaults.values()) == {NOISE_SCALE}
