"""vw-estimators 0.2.2 in its own environment: IPS, SNIPS, the normal interval of IPS and the confidence sequence."""

import json
import sys

import numpy as np
from estimators.bandits import cs, gaussian, ips, snips


def points(rows: dict[str, np.ndarray]) -> dict[str, object]:
    """Value a target: reward and pscore (n,), and chance, the target's of the arm that was played."""
    parts = {"ips": ips.Estimator(), "snips": snips.Estimator(), "gaussian": gaussian.Interval()}
    low, high = (float(rows[name]) for name in ("low", "high"))
    parts["cs"] = cs.Interval(rmin=low, rmax=high)
    columns = (rows[name].tolist() for name in ("pscore", "reward", "chance"))
    for p_log, reward, p_pred in zip(*columns, strict=True):
        for part in parts.values():
            part.add_example(p_log, reward, p_pred)
    return {name: part.get() for name, part in parts.items()}


if __name__ == "__main__":
    with np.load(sys.argv[2]) as given:
        print(json.dumps(globals()[sys.argv[1]](dict(given))))
