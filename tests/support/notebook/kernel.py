"""A real Jupyter kernel that runs cells and returns what a notebook would show below each."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from queue import Empty
from typing import Any, TypeAlias

from jupyter_client.manager import start_new_kernel

Bundle: TypeAlias = dict[str, Any]  # mime type -> what to show

SETUP = """
import tempfile, pathlib
import numpy as np
import armlet
rng = np.random.default_rng(1)
folder = pathlib.Path(tempfile.mkdtemp())
log = armlet.Log(folder / "decisions.jsonl")
features = ["age", "visits", "member", "a name that is rather long for a feature"]
policy = armlet.ContextualEpsilonGreedy(p=60)
bandit = armlet.Bandit(["north", "south", "<b>east</b>"], features=features, policy=policy, seed=1, log=log)
for _ in range(200):
    decision = bandit.decide(rng.normal(size=4))
    bandit.learn(decision, float(rng.normal() + (decision.arm == "south")))
x = [1.0, 0.5, 0.0, 2.0]
encoder = armlet.Encoder().fit({"price": [1.0, 2.0], "colour": ["red", "blue"]})
store = armlet.open_store(folder / "shop.db")
loop = store.loop("homepage", arms=["sale", "new"], dim=1, policy=armlet.ContextualEpsilonGreedy(p=30), seed=1)
for i in range(60):
    loop.decide([0.5], event=f"e{i}")
    loop.reward(f"e{i}", float(i % 2))
"""

CELLS: Mapping[str, str] = {
    "bandit": "bandit",
    "decision": "bandit.decide(x)",
    "decisions": "bandit.decide_many(rng.normal(size=(100, 4)))",
    "intervals": "bandit.inference.intervals()",
    "summary": "bandit.inference.summary()",
    "contrast": "bandit.inference.contrast('north', 'south')",
    "explanation": "bandit.inference.explain(x)",
    "summary plot": "bandit.inference.summary().plot()",
    "explanation plot": "bandit.inference.explain(x).plot()",
    "encoder": "encoder",
    "new encoder": "armlet.Encoder(most=7)",
    "log": "log",
    "audit": "log.close(); armlet.audit(log, log.start_path)",
    "reader": "armlet.log.read(log.path)",
    "loop": "loop",
    "store": "store",
    "stats": "loop.stats()",
    "details": "loop.details()",
    "gain": "loop.gains()[0]",
    "closed store": "store.close(); store",
    "closed loop": "loop",
    "evaluation": "armlet.evaluate(log.path, {'always north': 'north'})",
}
"""What a notebook shows, by a name for it: the last expression of each cell."""

BAR = """
from armlet.parallel import reporter
ticks = iter([0.0, 2.0, 4.0])
report = reporter("simulating", clock=lambda: next(ticks))
for done in (0, 1, 2):
    report(done, 2)
"""


def run(cells: Mapping[str, str]) -> dict[str, list[Bundle]]:
    """Run cells in one kernel, and return the bundles that each one shows or renews, in order."""
    manager, client = start_new_kernel(startup_timeout=60)
    try:
        return {name: _run(client, code) for name, code in cells.items()}
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _run(client: Any, code: str) -> list[Bundle]:
    asked, shown = client.execute(code), list[Bundle]()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            message = client.get_iopub_msg(timeout=1)
        except Empty:
            continue
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        if message["msg_type"] in ("execute_result", "display_data", "update_display_data"):
            shown.append(content["data"])
        elif message["msg_type"] in ("error", "stream"):
            raise AssertionError(f"{code}: {content.get('text') or content['evalue']}")
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            return shown
    raise AssertionError(f"{code}: no answer within a minute; python is {sys.executable}")
