"""The compiled module gets what it needs of the package once, and says so if it did not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from armlet import _kernel

ALONE = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("_kernel", sys.argv[1])
kernel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kernel)
assert not any(name.split(".")[0] == "armlet" for name in sys.modules)
for call in (
    lambda: kernel.Decision.restore("1-0000000000000001", "a", 0.5, True, [1.0], None, 0.0),
):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""


def test_a_module_that_was_handed_nothing_says_so() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE, _kernel.__file__], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert len(said) == 1
    assert all("import armlet.kernel, which calls register" in line for line in said)


def test_nothing_may_be_left_out() -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _kernel.register(errors=object())  # type: ignore[call-arg]
