"""Every policy of the registry, with the settings that tests try it with.

ARMLET_POLICIES=literature gives those of the laboratory instead, so that tests over a registry serve both.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from armlet.policies import POLICIES
from armlet.types import Policy

TESTED = os.environ.get("ARMLET_POLICIES", "library")
REGISTRY: Mapping[str, type[Policy]] = (
    POLICIES if TESTED == "library" else import_module(f"armlet_lab.{TESTED}").POLICIES
)
"""The policies that tests over a registry try."""

N_ARMS, DIM = 4, 3
Row = TypeVar("Row", str, tuple[Any, ...])
_SETTINGS: dict[str, list[dict[str, object]]] = {
    "Algorithm1": [
        {"p": 20},
        {"p": 4.5, "ridge": "1/n", "warmup": "uniform"},
        {"p": 30, "ridge": 0.2},
        {"p": 20, "units": "free", "warmup": "uniform"},
    ],
    "ContextualEpsilonGreedy": [
        {"p": 20},
        {"p": 0.5, "cap": 0.5, "floor": 0.1, "ridge": "1/n"},
    ],
    "AutoEpsilonGreedy": [{"horizon": 3000}, {"ridge": 0.5, "floor": 0.05}],
    "AutoAlgorithm1": [{"horizon": 500, "ridge": 0.5, "warmup": "uniform"}],
    "AllDataEpsilonGreedy": [{"p": 20}],
    "ScheduledEpsilonGreedy": [{"p": 6, "units": "free", "warmup": "uniform"}],
    # histories that stay short: the searches of long ones are the business of test_contextual_ucb.py
    "ContextualUCB": [
        {"history": "explored", "p": 8},
        {"search": "counts", "history": "explored", "p": 8.5, "alpha": 0.3},
    ],
    "OccasionalOptimism": [
        {},
        {"p": 1, "share": 1, "noise": "max", "floor": 0.1, "units": "as given"},
        {"half_life": 60},
    ],
    "OptimisticEpsilonGreedy": [{}, {"clock": "evidence", "p": 2.0, "floor": 0.05}, {"p": 20, "growth": 0.5}],
    "FixedEpsilon": [{"epsilon": 0.2}],
    "EpochGreedy": [{}, {"oracle": "tabular"}, {"oracle": "finite", "n_policies": 20}],
    "PEGE": [{}],
    "OLSBandit": [{"q": 2, "h": 0.5}],
    "Greedy": [{}, {"half_life": 60, "ridge": "paper"}],
    "GreedyFirst": [{}],
    "LinUCB": [{}, {"discount": 0.98}],
    "HybridLinUCB": [{}],
    "SupLinUCB": [{"horizon": 3000}, {"horizon": 3000, "width_scale": 0.2}],
    "LinRel": [{"horizon": 3000}],
    "SupLinRel": [{"horizon": 3000}, {"horizon": 3000, "noise_scale": 0.1}],
    "ConfidenceBall1": [{"beta_scale": 1e-5}],
    "ConfidenceBall2": [{"beta_scale": 1e-5}],
    "UncertaintyEllipsoid": [{"alpha": 0.1}],
    "OFUL": [{}],
    "RarelySwitchingOFUL": [{}],
    "ThompsonSampling": [{"v": 0.5}, {"v": 0.5, "half_life": 60}],
    "SquareCB": [{}, {"gamma": 30.0, "discount": 0.98}],
    "RealLinExp3": [{"horizon": 3000}],
    "EXP4": [{"gamma": 0.1, "n_experts": 20}, {"experts": "all maps", "gamma": 0.1}],
    "EXP4P": [{"horizon": 3000, "n_experts": 20}],
    "PolicyElimination": [{"n_policies": 20, "width_scale": 0.1}],
    "FeasibleRandomizedUCB": [{"n_policies": 20, "width_scale": 0.1}],
    "EpsilonNGreedy": [{"gap": 0.5, "c": 0.5}, {"gap": 0.5, "c": 0.5, "contexts": "table"}],
    "UCB1": [{}, {"contexts": "table"}],
    "Exp3": [{"gamma": 0.1}, {"gamma": 0.1, "contexts": "table"}],
    "SCRiBLe": [{"eta": 0.05}, {"eta": 0.05, "contexts": "table"}],
    "Banditron": [{}],
    "Newtron": [{}, {"hessian": "full"}],
    "Confidit": [{}],
    "Uniform": [{}],
    "Oracle": [{"theta": [[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]}],
}


SETTINGS = defaultdict(lambda: [{}], _SETTINGS)  # a policy that is not named above is tried with its defaults


def of_registry(rows: Iterable[Row]) -> list[Row]:
    """Keep the names, or the rows that begin with one, of policies that are tried now."""
    rows = list(rows)
    names = [row if isinstance(row, str) else row[0] for row in rows]
    assert set(names) <= {*_SETTINGS, *REGISTRY}, "a name of neither registry"
    return [row for row, name in zip(rows, names, strict=True) if name in REGISTRY]


def every_policy() -> list[Policy]:
    return [REGISTRY[name](**settings) for name in REGISTRY for settings in SETTINGS[name]]
