"""One name for one number: the noise has one default, regardless of the policy."""

from __future__ import annotations

import inspect

from armlet.inputs.settings import NOISE_SCALE
from support.policies import REGISTRY


def test_noise_scale_has_one_default() -> None:
    fields = [inspect.signature(REGISTRY[name]).parameters.get("noise_scale") for name in REGISTRY]
    assert {field.default for field in fields if field is not None} - {None} == {NOISE_SCALE}  # or it must be given
