"""Theorem 2 on the environments of its experiment."""

from __future__ import annotations

import math

import numpy as np
import pytest

from armlet import theory
from armlet.theory import Problem
from armlet_lab.paper.theorem_2 import environments


def test_the_p_of_the_experiment_is_equation_4_with_C_of_128() -> None:
    for environment in (environments.one_context(), environments.figure_a(np.random.default_rng(1))):
        c, K = environment.constants, environment.table.means.shape[1]
        by_hand = 128 * K * max(1, c.L) ** 2 / (min(1, c.delta_min) ** 2 * min(1, c.sigma_min) ** 2)
        assert environment.p == pytest.approx(by_hand, rel=1e-14)  # the same number in another order of products


def test_the_bound_of_the_experiment_is_the_printed_one_to_the_letter() -> None:
    environment, T = environments.figure_a(np.random.default_rng(1)), np.array([10**3, 10**6])
    c, (K, d) = environment.constants, (environment.table.means.shape[1], environment.table.contexts.shape[1])
    assert c.Q > 1  # so that e^(Q/4) tells rewards in their own unit from divided ones
    by_hand = c.delta_max * math.sqrt(d) * (environment.p + 14 * K * math.exp(c.Q / 4) + environment.p * np.log(T))
    assert environment.bound(environment.p, T) == pytest.approx(by_hand, rel=1e-14)


def test_asking_a_table_gives_the_p_of_its_problem() -> None:
    environment = environments.two_contexts()
    asked = theory.asked_p(environment.table)
    assert asked.reasons == ()
    assert asked.problem == Problem.of(environment.table, np.eye(2), sigma=environment.constants.sigma)
    assert asked.printed is not None
    assert asked.printed.p == pytest.approx(1024)
