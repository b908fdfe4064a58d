"""Policies that the paper names and few would deploy; `armlet` finds them by an entry point.

To add one: write its file, and add it to the imports and to `POLICIES` below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from armlet.types import Policy
from armlet_lab.literature.banditron import Banditron as Banditron
from armlet_lab.literature.confidence_ball import ConfidenceBall1 as ConfidenceBall1
from armlet_lab.literature.confidence_ball import ConfidenceBall2 as ConfidenceBall2
from armlet_lab.literature.confidit import Confidit as Confidit
from armlet_lab.literature.epoch_greedy import EpochGreedy as EpochGreedy
from armlet_lab.literature.exp4 import EXP4 as EXP4
from armlet_lab.literature.exp4p import EXP4P as EXP4P
from armlet_lab.literature.feasible_randomized_ucb import FeasibleRandomizedUCB as FeasibleRandomizedUCB
from armlet_lab.literature.greedy_first import GreedyFirst as GreedyFirst
from armlet_lab.literature.hybrid_linucb import HybridLinUCB as HybridLinUCB
from armlet_lab.literature.linrel import LinRel as LinRel
from armlet_lab.literature.newtron import Newtron as Newtron
from armlet_lab.literature.ols_bandit import OLSBandit as OLSBandit
from armlet_lab.literature.optimistic_epsilon_greedy import OptimisticEpsilonGreedy as OptimisticEpsilonGreedy
from armlet_lab.literature.pege import PEGE as PEGE
from armlet_lab.literature.policy_elimination import PolicyElimination as PolicyElimination
from armlet_lab.literature.rarely_switching_oful import RarelySwitchingOFUL as RarelySwitchingOFUL
from armlet_lab.literature.real_lin_exp3 import RealLinExp3 as RealLinExp3
from armlet_lab.literature.scrible import SCRiBLe as SCRiBLe
from armlet_lab.literature.staged import SupLinRel as SupLinRel
from armlet_lab.literature.staged import SupLinUCB as SupLinUCB
from armlet_lab.literature.tabular import UCB1 as UCB1
from armlet_lab.literature.tabular import EpsilonNGreedy as EpsilonNGreedy
from armlet_lab.literature.tabular import Exp3 as Exp3
from armlet_lab.literature.uncertainty_ellipsoid import UncertaintyEllipsoid as UncertaintyEllipsoid

POLICIES: Final[Mapping[str, type[Policy]]] = {
    "EpochGreedy": EpochGreedy,
    "PEGE": PEGE,
    "OLSBandit": OLSBandit,
    "GreedyFirst": GreedyFirst,
    "HybridLinUCB": HybridLinUCB,
    "OptimisticEpsilonGreedy": OptimisticEpsilonGreedy,
    "SupLinUCB": SupLinUCB,
    "LinRel": LinRel,
    "SupLinRel": SupLinRel,
    "ConfidenceBall1": ConfidenceBall1,
    "ConfidenceBall2": ConfidenceBall2,
    "UncertaintyEllipsoid": UncertaintyEllipsoid,
    "RarelySwitchingOFUL": RarelySwitchingOFUL,
    "RealLinExp3": RealLinExp3,
    "EXP4": EXP4,
    "EXP4P": EXP4P,
    "PolicyElimination": PolicyElimination,
    "FeasibleRandomizedUCB": FeasibleRandomizedUCB,
    "EpsilonNGreedy": EpsilonNGreedy,
    "UCB1": UCB1,
    "Exp3": Exp3,
    "SCRiBLe": SCRiBLe,
    "Banditron": Banditron,
    "Newtron": Newtron,
    "Confidit": Confidit,
}
