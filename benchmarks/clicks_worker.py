"""Vowpal Wabbit on one environment of clicks.py, in an environment of its own; prints one line of JSON.

    python benchmarks/clicks_worker.py '{"options": "--cb_explore_adf --squarecb", "rows": "1.npz", "seed": 1}'

The customer's kind is one feature of the shared line, the action one of its own line. The cost of a click is -1 and
else 0, as in the library's tutorials; 0 and 1 earned no more when tried. The library gives probabilities and leaves
the drawing to the caller.
"""

import json
import random
import sys

import numpy as np
import vowpalwabbit

ACTIONS = ["|a a0", "|a a1"]


def lines(kind: int) -> list[str]:
    """Write a customer for --cb_explore_adf: a shared line and one for each action."""
    return [f"shared |c c{kind}", *ACTIONS]


def labelled(kind: int, arm: int, cost: float, chance: float) -> list[str]:
    written = lines(kind)
    written[arm + 1] = f"0:{cost}:{chance} {ACTIONS[arm]}"
    return written


def line(kind: int) -> str:
    """Write a customer for --cb_explore, which keeps weights for each action by itself."""
    return f"|c c{kind}"


def labelled_line(kind: int, arm: int, cost: float, chance: float) -> str:
    return f"{arm + 1}:{cost}:{chance} {line(kind)}"


def run(options: str, rows: str, seed: int) -> dict[str, float]:
    with np.load(rows) as held:
        kinds, clicks, means = (held[name].tolist() for name in ("kinds", "clicks", "means"))
    ask, tell = (lines, labelled) if "--cb_explore_adf" in options else (line, labelled_line)
    vw = vowpalwabbit.Workspace(f"{options} --quiet --random_seed {seed}")
    choices, earned = random.Random(seed).choices, 0.0
    for kind, clicked, mean in zip(kinds, clicks, means, strict=True):
        chances = vw.predict(ask(kind))
        arm = choices((0, 1), chances)[0]
        vw.learn(tell(kind, arm, -clicked[arm], chances[arm]))
        earned += mean[arm]
    return {"rate": earned / len(kinds)}


if __name__ == "__main__":
    print(json.dumps(run(**json.loads(sys.argv[1]))))
