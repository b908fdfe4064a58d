"""Contracts that ship: run them over a policy of your own."""

from armlet.testing.policies import CHECKS, check_policy

__all__ = ["CHECKS", "check_policy"]
