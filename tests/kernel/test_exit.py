"""A program that ends by an exception prints its traceback and nothing else, whatever its threads still hold."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

PROGRAM: Final = """
import threading
import armlet

held, never = threading.Event(), threading.Event()

def work(bandit):
    decision = bandit.decide([1.0])
    held.set()
    never.wait()

threading.Thread(target=work, args=(armlet.Bandit(["a", "b"], 1, seed=1),), daemon=True).start()
held.wait()
raise RuntimeError("over")
"""


def test_an_exit_with_live_bandits_prints_the_exception_alone() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.endswith("RuntimeError: over\n")
