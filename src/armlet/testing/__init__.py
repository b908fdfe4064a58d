"""Contracts that ship: run them over a policy, an environment or a store of your own."""

from armlet.testing.environments import ENVIRONMENT_CHECKS, check_environment
from armlet.testing.outcomes import OUTCOME_CHECKS, check_outcomes
from armlet.testing.policies import CHECKS, check_policy
from armlet.testing.stores import STORE_CHECKS, check_store
from armlet.testing.units import CHANGES, check_units

__all__ = [
    "CHANGES",
    "CHECKS",
    "ENVIRONMENT_CHECKS",
    "OUTCOME_CHECKS",
    "STORE_CHECKS",
    "check_environment",
    "check_outcomes",
    "check_policy",
    "check_store",
    "check_units",
]
