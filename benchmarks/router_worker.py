"""ParetoBandit on the prompts of router.py, in an environment of its own; prints one line of JSON.

    python benchmarks/router_worker.py features EMBEDDINGS.npy OUT.npy
    python benchmarks/router_worker.py play ROWS.npz TASKS.json OUT.npz

`features` are those of the package: its own 25 principal components of MiniLM's embeddings, whitened, and a 1. `play`
is the loop of its authors' experiments: `BanditRouter.create` with the prices of its own registry and a `BudgetPacer`,
`route`, the true cost into the log, `process_feedback`. ROWS has X (n, 26), quality and cost (n, 3) and orders; OUT has
the arms that every task played, and its CPU time a step in microseconds.
"""

import json
import logging
import sys
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from pareto_bandit.budget_pacer import BudgetPacer, PacingMode
from pareto_bandit.config import DEFAULT_MODEL_REGISTRY_PATH, DEFAULT_PCA_PATH, K3_ARM_ORDER
from pareto_bandit.feature_service import FeatureService
from pareto_bandit.router import BanditRouter

PRICES = ("input_cost_per_m", "output_cost_per_m")


def features(embeddings: np.ndarray) -> np.ndarray:
    """Return what the package makes of embeddings that another process computed."""
    service = FeatureService(
        custom_encoder=lambda text: embeddings[int(text)],  # a prompt is its place
        embedding_dim=embeddings.shape[1],
        pca_path=DEFAULT_PCA_PATH,
        allow_jit_training=False,
    )
    return service.extract_features_batch([str(place) for place in range(len(embeddings))])


def registry() -> dict[str, dict[str, float]]:
    """Return list prices, as the authors' experiments have them: without speed profiles."""
    models = json.loads(DEFAULT_MODEL_REGISTRY_PATH.read_text())["models"]
    return {one["model_id"]: {name: one[name] for name in PRICES} for one in models}


def created(task: dict[str, Any], models: dict[str, dict[str, float]], dim: int) -> BanditRouter:
    """Return the router of a task; what its settings leave out is the package's default."""
    settings = task["settings"]
    pacer: dict[str, Any] = {"lr": settings["lr"]} if "lr" in settings else {}
    if "mode" in settings:
        pacer["mode"] = PacingMode(settings["mode"])
    learner = {name: settings[name] for name in ("alpha", "forgetting_factor", "prior_n_effective") if name in settings}
    return BanditRouter.create(
        model_registry=models,
        feature_service=FeatureService.for_precomputed(dim),
        priors=settings["priors"],
        cost_penalty=0.0,
        budget_pacer=BudgetPacer(task["budget"], **pacer),
        bandit_seed=task["seed"],
        **learner,
    )


def play(
    task: dict[str, Any], X: np.ndarray, quality: np.ndarray, cost: np.ndarray, order: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the arms of one run, and what a step of it costs in CPU time."""
    prices = registry()
    newcomer = task["newcomer"]  # None, or which arm comes when, and how many prompts it is sent first
    late = K3_ARM_ORDER[newcomer["arm"]] if newcomer else None
    shown = {name: each for name, each in prices.items() if name != late}
    router = created(task, shown, X.shape[1])
    places = {name: place for place, name in enumerate(K3_ARM_ORDER)}
    arms, forced, change = np.empty(len(order), dtype=np.int8), 0, task["change"]
    scale = np.ones(len(K3_ARM_ORDER))
    started = process_time()
    for t, row in enumerate(order):
        if change and t == change["at"]:
            scale = np.array(change["scale"])
            for name, times in zip(K3_ARM_ORDER, change["scale"], strict=True):
                if change["told"] and times != 1.0:
                    router.update_model_pricing(name, **{price: prices[name][price] * times for price in PRICES})
        if newcomer and t == newcomer["at"]:
            router.register_model(late, **prices[late])
            forced = newcomer["forced"]
        if forced:
            arm, forced = newcomer["arm"], forced - 1
            router.update(K3_ARM_ORDER[arm], X[row], float(quality[row, arm]))
            router.budget_pacer.observe(float(cost[row, arm] * scale[arm]))
        else:
            name, log = router.route(X[row])
            arm = places[name]
            log.cost_usd = float(cost[row, arm] * scale[arm])
            router.process_feedback(log.request_id, reward=float(quality[row, arm]))
        arms[t] = arm
    return arms, 1e6 * (process_time() - started) / len(order)


def main(verb: str, *paths: str) -> dict[str, object]:
    """Do what is asked."""
    logging.disable(logging.WARNING)
    if verb == "features":
        np.save(paths[1], features(np.load(paths[0])))
        return {"arms": K3_ARM_ORDER, "prices": registry()}
    with np.load(paths[0]) as held:
        X, quality, cost, orders = (held[name] for name in ("X", "quality", "cost", "orders"))
    tasks = json.loads(Path(paths[1]).read_text())
    played = [play(task, X, quality, cost, orders[task["order"]]) for task in tasks]
    np.savez(paths[2], arms=np.array([arms for arms, _ in played]), us=np.array([us for _, us in played]))
    return {"runs": len(tasks)}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
