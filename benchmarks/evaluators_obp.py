"""Open Bandit Pipeline 0.4.1 in its own environment: points of seven estimators, and what they cost.

Newer releases do not install with a current Python. `obp.ope` imports seaborn for its plots, and `obp.ope.estimators`
imports torch for tensors that are not used here; so a bare package of the same path stands for the first, and a module
with nothing but the name of a class for the second. The estimators themselves are as released.
"""

import json
import sys
from pathlib import Path
from time import process_time
from types import ModuleType

import numpy as np
import obp

bare = ModuleType("obp.ope")
bare.__path__ = [str(Path(obp.__file__).parent / "ope")]
sys.modules["obp.ope"] = bare
torch = ModuleType("torch")
torch.Tensor = type("Tensor", (), {})
sys.modules["torch"] = torch

from obp.ope.estimators import (  # noqa: E402 - after the bare package
    DirectMethod,
    DoublyRobust,
    DoublyRobustWithShrinkage,
    InverseProbabilityWeighting,
    SelfNormalizedDoublyRobust,
    SelfNormalizedInverseProbabilityWeighting,
    SwitchDoublyRobust,
)


def points(rows: dict[str, np.ndarray]) -> dict[str, float]:
    """Value a target: reward, action, pscore (n,), pi and q (n, K), most and shrink as numbers."""
    inputs = {name: rows[name] for name in ("reward", "action", "pscore")}
    inputs |= {"action_dist": rows["pi"][:, :, None], "estimated_rewards_by_reg_model": rows["q"][:, :, None]}
    inputs["position"] = np.zeros(len(rows["reward"]), dtype=int)
    estimators = {
        "ips": InverseProbabilityWeighting(),
        "snips": SelfNormalizedInverseProbabilityWeighting(),
        "dm": DirectMethod(),
        "dr": DoublyRobust(),
        "sndr": SelfNormalizedDoublyRobust(),
        "switch": SwitchDoublyRobust(tau=float(rows["most"])),
        "shrunk": DoublyRobustWithShrinkage(lambda_=float(rows["shrink"])),
    }
    return {name: float(each.estimate_policy_value(**inputs)) for name, each in estimators.items()}


def costs(rows: dict[str, np.ndarray]) -> dict[str, float]:
    """Time four points and one bootstrap interval of DR, from contexts X, a reward model theta and a linear target."""
    X, action, reward, pscore = (rows[name] for name in ("X", "action", "reward", "pscore"))
    started = process_time()
    n, n_arms = len(X), len(rows["theta"])
    chosen = (X @ rows["target"].T).argmax(axis=1)
    action_dist = np.zeros((n, n_arms, 1))
    action_dist[np.arange(n), chosen, 0] = 1.0
    q = (np.column_stack([np.ones(n), X]) @ rows["theta"].T)[:, :, None]
    inputs = {"reward": reward, "action": action, "pscore": pscore, "action_dist": action_dist}
    inputs |= {"position": np.zeros(n, dtype=int), "estimated_rewards_by_reg_model": q}
    built = process_time()
    four = (InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting, DirectMethod, DoublyRobust)
    values = [float(each().estimate_policy_value(**inputs)) for each in four]
    valued = process_time()
    samples = int(rows["samples"])
    DoublyRobust().estimate_interval(**inputs, n_bootstrap_samples=samples, random_state=1)
    names = dict(zip(("ips", "snips", "dm", "dr"), values, strict=True))
    return {"arrays": built - started, "points": valued - built, "interval": process_time() - valued, **names}


if __name__ == "__main__":
    with np.load(sys.argv[2]) as given:
        print(json.dumps(globals()[sys.argv[1]](dict(given))))
