"""Off-policy evaluation: what policies that did not decide would have earned, from the log of one that did."""

from armlet.evaluation.dials.curve import ParetoCurve as ParetoCurve
from armlet.evaluation.estimators import ESTIMATORS as ESTIMATORS
from armlet.evaluation.estimators import Estimator as Estimator
from armlet.evaluation.estimators import Shrunk as Shrunk
from armlet.evaluation.estimators import Switch as Switch
from armlet.evaluation.learners import RejectionReplay as RejectionReplay
from armlet.evaluation.learners import rejection_replay as rejection_replay
from armlet.evaluation.result import Evaluation as Evaluation
