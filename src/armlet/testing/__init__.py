"""Contracts that ship: run them over a policy or a world of your own."""

from armlet.testing.environments import ENVIRONMENT_CHECKS, check_environment
from armlet.testing.policies import CHECKS, check_policy

__all__ = ["CHECKS", "ENVIRONMENT_CHECKS", "check_environment", "check_policy"]
