"""Contracts that ship: run them over a policy, an environment or a store of your own."""

from armlet.testing.actions import ACTION_CHECKS, check_action_policy
from armlet.testing.environments import ENVIRONMENT_CHECKS, check_environment
from armlet.testing.outcomes import OUTCOME_CHECKS, check_outcomes
from armlet.testing.policies import CHECKS, check_policy
from armlet.testing.product import Played, check_product
from armlet.testing.refusals import arguments_of, fault_of
from armlet.testing.stores import STORE_CHECKS, check_store
from armlet.testing.units import CHANGES, check_units

__all__ = [
    "ACTION_CHECKS",
    "CHANGES",
    "CHECKS",
    "ENVIRONMENT_CHECKS",
    "OUTCOME_CHECKS",
    "STORE_CHECKS",
    "Played",
    "arguments_of",
    "check_action_policy",
    "check_environment",
    "check_outcomes",
    "check_policy",
    "check_product",
    "check_store",
    "check_units",
    "fault_of",
]
