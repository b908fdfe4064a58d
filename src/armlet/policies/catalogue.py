"""Every policy, for type checkers: `armlet` and `armlet.policies` show them these names. Nobody else imports this file.

A running program reads a policy when it is asked for, by the registry in `armlet.policies`.
"""

from armlet.policies.algorithm_1 import Algorithm1 as Algorithm1
from armlet.policies.all_data_epsilon_greedy import AllDataEpsilonGreedy as AllDataEpsilonGreedy
from armlet.policies.banditron import Banditron as Banditron
from armlet.policies.confidence_ball import ConfidenceBall1 as ConfidenceBall1
from armlet.policies.confidence_ball import ConfidenceBall2 as ConfidenceBall2
from armlet.policies.confidit import Confidit as Confidit
from armlet.policies.contextual_epsilon_greedy import ContextualEpsilonGreedy as ContextualEpsilonGreedy
from armlet.policies.contextual_ucb import ContextualUCB as ContextualUCB
from armlet.policies.epoch_greedy import EpochGreedy as EpochGreedy
from armlet.policies.epsilon_n_greedy import EpsilonNGreedy as EpsilonNGreedy
from armlet.policies.exp3 import Exp3 as Exp3
from armlet.policies.exp4 import EXP4 as EXP4
from armlet.policies.exp4p import EXP4P as EXP4P
from armlet.policies.feasible_randomized_ucb import FeasibleRandomizedUCB as FeasibleRandomizedUCB
from armlet.policies.fixed_epsilon import FixedEpsilon as FixedEpsilon
from armlet.policies.greedy import Greedy as Greedy
from armlet.policies.greedy_first import GreedyFirst as GreedyFirst
from armlet.policies.hybrid_linucb import HybridLinUCB as HybridLinUCB
from armlet.policies.linrel import LinRel as LinRel
from armlet.policies.linucb import LinUCB as LinUCB
from armlet.policies.newtron import Newtron as Newtron
from armlet.policies.occasional_optimism import OccasionalOptimism as OccasionalOptimism
from armlet.policies.oful import OFUL as OFUL
from armlet.policies.ols_bandit import OLSBandit as OLSBandit
from armlet.policies.optimistic_epsilon_greedy import OptimisticEpsilonGreedy as OptimisticEpsilonGreedy
from armlet.policies.oracle import Oracle as Oracle
from armlet.policies.pege import PEGE as PEGE
from armlet.policies.policy_elimination import PolicyElimination as PolicyElimination
from armlet.policies.rarely_switching_oful import RarelySwitchingOFUL as RarelySwitchingOFUL
from armlet.policies.real_lin_exp3 import RealLinExp3 as RealLinExp3
from armlet.policies.scrible import SCRiBLe as SCRiBLe
from armlet.policies.square_cb import SquareCB as SquareCB
from armlet.policies.suplinrel import SupLinRel as SupLinRel
from armlet.policies.suplinucb import SupLinUCB as SupLinUCB
from armlet.policies.thompson_sampling import ThompsonSampling as ThompsonSampling
from armlet.policies.ucb1 import UCB1 as UCB1
from armlet.policies.uncertainty_ellipsoid import UncertaintyEllipsoid as UncertaintyEllipsoid
from armlet.policies.uniform import Uniform as Uniform
