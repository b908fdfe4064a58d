"""MABWiser on one table; run by the Python of its own environment, which has nothing of ours.

    python mabwiser_worker.py < '{"settings": [["rows.npz", "{}", 1]]}'

A setting is a file, options of LinUCB and a seed. It plays the rows of the file in order, with `predict` and
`partial_fit` a row at a time, and answers one line of JSON: the class that it chose in every row, counted from 0. If
the file has logged arms, they are those of its first rows, which are not decided: it learns them in one `fit`.
"""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np


def choices(rows: str, options: str, seed: int) -> list[int]:
    """Play the rows of a file in order."""
    mab = importlib.import_module("mabwiser.mab")
    with np.load(rows) as file:
        X, y, n_arms, logged = file["X"], file["y"], int(file["n_arms"]), file["logged"]
    learner = mab.MAB(list(range(n_arms)), mab.LearningPolicy.LinUCB(**json.loads(options)), seed=seed)
    n = len(logged)
    # a row of zeros for each arm teaches nothing; it sets the number of features, without which nothing is predicted
    contexts = np.vstack([np.zeros((n_arms, X.shape[1])), X[:n]])
    rewards = np.concatenate([np.zeros(n_arms), logged == y[:n]])
    learner.fit([*range(n_arms), *logged.tolist()], rewards, contexts)
    chosen = []
    for place in range(n, len(y)):
        row = X[place : place + 1]
        arm = learner.predict(row)
        learner.partial_fit([arm], [float(arm == y[place])], row)
        chosen.append(int(arm))
    return chosen


def main() -> None:
    """Answer what was asked."""
    for asked in json.load(sys.stdin)["settings"]:
        print(json.dumps(choices(*asked)), flush=True)


if __name__ == "__main__":
    main()
