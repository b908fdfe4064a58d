"""The contract for policies of the registry with further settings; `test_policies.py` tries all of it with some."""

from __future__ import annotations

from armlet.testing.policies import CHECKS, Check, check_absent_arms
from armlet.types import Policy
from support import examples


def checks() -> tuple[Check, ...]:
    """Return all checks for `make test-all`, else all but absent arms, which takes as long as the rest together.

    What a policy does about arms that are not there lies in its code, which the settings of the registry run through.
    """
    return CHECKS if examples.find_profile() == "nightly" else tuple(c for c in CHECKS if c is not check_absent_arms)


def check_settings(policy: Policy, *, n_arms: int = 4, dim: int = 3) -> None:
    for check in checks():
        check(policy, n_arms, dim)
