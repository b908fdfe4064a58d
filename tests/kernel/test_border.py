"""What the kernel refuses at its border: tables that only look like one, rules and states of the wrong kind."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from armlet import _kernel, kernel
from armlet.environments.environment import FiniteEnvironment
from armlet.kernel import AutoSchedule, AutoTunedStatistics, Schedule, Statistics

SOUND: dict[str, Any] = {
    "contexts": np.eye(2),
    "chances": np.array([0.5, 0.5]),
    "means": np.array([[0.0, 1.0], [1.0, 0.0]]),
    "noise": "none",
    "scale": 1.0,
}


def algorithm_1() -> Schedule:
    return Schedule(4.0, round_robin=True, learn_always=False)


def steps(table: Any, *, start: Any = None, horizon: int = 50) -> kernel.Simulated[Any]:
    state = Statistics(2, 2) if start is None else start
    at = np.array([1, min(horizon, 50)])
    return kernel.Simulated(*_kernel.simulate_steps(table, state, algorithm_1(), horizon, at, 1, 2))


def events(table: Any, *, rule: Any = None, horizon: int = 50, generator: Any = None) -> kernel.Simulated[Any]:
    rule = algorithm_1() if rule is None else rule
    rng = np.random.default_rng(3) if generator is None else generator
    return kernel.Simulated(
        *_kernel.simulate_events(table, Statistics(2, 2), rule, horizon, np.array([1, min(horizon, 50)]), rng)
    )


@pytest.mark.parametrize("play", [steps, events])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"contexts": np.zeros((0, 2)), "chances": np.zeros(0), "means": np.zeros((0, 2))},
            "the table has no contexts",
        ),
        ({"contexts": np.array([[1.0, math.nan], [0.0, 1.0]])}, "contexts of the table hold nan"),
        ({"contexts": np.array([[1.0, 1e200], [0.0, 1.0]])}, r"contexts of the table hold 1e\+200"),
        ({"means": np.full((2, 2), math.inf)}, "means of the table hold inf"),
        ({"noise": "bernoulli", "means": np.full((2, 2), 1.5)}, "means of the table hold 1.5"),
        ({"chances": np.array([1.5, -0.5])}, "chances of the table hold 1.5"),
        ({"chances": np.array([math.nan, 1.0])}, "chances of the table hold nan"),
        ({"chances": np.array([0.5, 0.25])}, "chances of the table add up to 0.75"),
        ({"scale": math.inf}, "scale of the table hold inf"),
        ({"noise": "loud"}, "noise is 'loud'"),
    ],
)
def test_a_table_that_is_no_environment_is_refused(play: Any, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        play(SimpleNamespace(**SOUND | changed))


@pytest.mark.parametrize("play", [steps, events])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"scale": "large"}, "scale of the table is 'large'"),
        ({"chances": [0.5, 0.5]}, "chances must be a C-contiguous float64"),
        ({"means": np.zeros((2, 3))}, "means must be a C-contiguous float64"),
    ],
)
def test_a_table_of_the_wrong_types_is_refused(play: Any, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        play(SimpleNamespace(**SOUND | changed))


class Computed:
    """A table whose arrays live no longer than somebody holds them."""

    noise, scale = "none", 1.0

    @property
    def contexts(self) -> Any:
        return SOUND["contexts"].copy()

    @property
    def chances(self) -> Any:
        return SOUND["chances"].copy()

    @property
    def means(self) -> Any:
        return SOUND["means"].copy()


@pytest.mark.parametrize("play", [steps, events])
def test_a_table_that_computes_its_arrays_is_played_like_one_that_holds_them(play: Any) -> None:
    held = play(FiniteEnvironment(**SOUND))
    computed = play(Computed())
    assert computed.regret.tolist() == held.regret.tolist()
    assert computed.statistics.records().tolist() == held.statistics.records().tolist()


@pytest.mark.parametrize("p", [0.0, 5e-324, 1e-300, 1e-17])
def test_a_rate_of_almost_nothing_is_jumped_over(p: float) -> None:
    # the first step explores whatever p is, for want of rows; any other of the 10^15 with a chance below 1e-15
    run = events(FiniteEnvironment(**SOUND), rule=Schedule(p, round_robin=False, learn_always=False), horizon=10**15)
    assert run.explored[-1] == 1.0


@pytest.mark.parametrize("p", [-1.0, -math.inf, math.nan])
def test_a_schedule_without_a_probability_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match=f"p is {p}; it must be a number of at least 0"):
        Schedule(p, round_robin=True, learn_always=False)


def test_a_horizon_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="horizon is inf"):
        AutoSchedule(horizon=math.inf, caution=1.0, start=1.0, most=0.5, round_robin=True)
    with pytest.raises(ValueError, match=r"horizon is 9223372036854775808; it must be at most 2\^63 - 1"):
        steps(FiniteEnvironment(**SOUND), horizon=2**63)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AutoTunedStatistics(1, 1).merge("x", [0]), "other must be Statistics; got a str"),  # type: ignore[arg-type]
        (lambda: AutoTunedStatistics(1, 1).subtract(3, [0]), "earlier must be Statistics; got a int"),  # type: ignore[arg-type]
        (lambda: AutoTunedStatistics(1, 1).merge(AutoTunedStatistics(1, 1), [None]), "incompatible function arguments"),  # type: ignore[list-item]
        (lambda: Statistics(1, 1).merge(Statistics(1, 1), [None]), "incompatible function arguments"),  # type: ignore[list-item]
        (lambda: kernel.normals(None, 1, 2), "incompatible function arguments"),  # type: ignore[arg-type]
        (lambda: steps(FiniteEnvironment(**SOUND), start="none"), "this rule works on Statistics; got a str"),
        (lambda: events(FiniteEnvironment(**SOUND), generator="none"), r"a numpy\.random\.Generator; got a str"),
        (
            lambda: kernel.rollout(np.ones((1, 2)), np.ones((1, 2)), start=7, rule=algorithm_1(), seed=1),  # type: ignore[type-var]
            "this rule works on Statistics; got a int",
        ),
    ],
)
def test_arguments_of_the_wrong_kind_are_type_errors(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("t", [2**63 - 1, 2**63, 2**64 - 1])
def test_clock_without_room_for_the_steps_of_a_rollout_is_refused(t: int) -> None:
    x, rewards = np.ones((2, 2)), np.zeros((2, 2))
    thompson = kernel.Thompson.theory(noise_scale=1.0, delta=0.05)
    state = Statistics(2, 2, ridge="constant", value=1.0)
    with pytest.raises(ValueError, match=f"t is {t}, which leaves no room for 2 steps"):
        kernel.rollout(x, rewards, start=state, rule=thompson, seed=1, t=t)
