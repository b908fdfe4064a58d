"""PEGE: cycles of exploration and greedy play."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from armlet import Bandit
from armlet.environments import FigureA
from armlet.policies import Uniform
from armlet.simulation.run import simulate
from armlet.types import Policy
from armlet_lab.literature.pege import PEGE, Exploit, place_in_cycle
from support.contract import check_settings

SETTINGS = [PEGE(), PEGE(exploit="exponential"), PEGE(exploit="exponential", rounds=2, ridge="1/n")]


@pytest.mark.parametrize("policy", SETTINGS, ids=repr)
def test_policy_keeps_its_promises(policy: Policy) -> None:
    check_settings(policy, n_arms=4, dim=3)


def walk(explored: int, exploit: Exploit, steps: int) -> list[tuple[int, int]]:
    """Write the schedule down cycle by cycle."""
    out: list[tuple[int, int]] = []
    for c in count(1):
        out += [(c, place) for place in range(explored + (c if exploit == "linear" else 2**c))]
        if len(out) >= steps:
            break
    return out[:steps]


@pytest.mark.parametrize("exploit", ["linear", "exponential"])
@pytest.mark.parametrize("explored", [1, 2, 7, 18])
def test_place_in_the_cycle_is_that_of_walking_there(explored: int, exploit: Exploit) -> None:
    steps = 3000
    assert [place_in_cycle(t, explored, exploit) for t in range(1, steps + 1)] == walk(explored, exploit, steps)


@pytest.mark.parametrize("exploit", ["linear", "exponential"])
def test_places_far_away_follow_each_other(exploit: Exploit) -> None:
    """Integers are exact at any size: a float's square root would slip here."""
    cycle, place = place_in_cycle(10**18, 18, exploit)
    greedy = cycle if exploit == "linear" else 2**cycle
    assert 0 <= place < 18 + greedy
    last = 10**18 + 18 + greedy - 1 - place
    assert place_in_cycle(last, 18, exploit) == (cycle, 18 + greedy - 1)
    assert place_in_cycle(last + 1, 18, exploit) == (cycle + 1, 0)


@pytest.mark.parametrize("policy", SETTINGS[:2], ids=repr)
def test_play_is_that_of_the_long_way(policy: PEGE) -> None:
    """Walk the cycles, keep the explored rows, and solve least squares by numpy."""
    n_arms, dim, steps = 3, 2, 150
    rng = np.random.default_rng(8)
    X, theta = rng.normal(size=(steps, dim)), rng.normal(size=(n_arms, dim))
    bandit = Bandit(range(n_arms), dim, policy=policy, seed=3)
    rows: list[list[tuple[list[float], float]]] = [[] for _ in range(n_arms)]
    for x, (_, place) in zip(X, walk(n_arms * dim, policy.exploit, steps), strict=True):
        explores = place < n_arms * dim
        if explores:
            arm = place % n_arms
        else:
            fits = [np.linalg.lstsq(np.array([r[0] for r in own]), np.array([r[1] for r in own]))[0] for own in rows]
            arm = int(np.argmax([x @ fit for fit in fits]))
        decision = bandit.decide(x)
        assert (decision.arm, decision.explored, decision.propensity) == (arm, explores, 1.0)
        reward = float(x @ theta[arm] + 0.3 * rng.normal())
        bandit.learn(decision, reward)
        if explores:
            rows[arm].append((x.tolist(), reward))


def test_greedy_steps_leave_the_sums_unchanged() -> None:
    bandit = Bandit(range(2), 1, policy=PEGE(), seed=1)
    for _ in range(100):
        decision = bandit.decide([1.0])
        before = bandit.state.arrays()["records"].copy()
        bandit.learn(decision, 1.0)
        assert decision.explored != bool((bandit.state.arrays()["records"] == before).all())


def test_linear_cycles_explore_of_order_sqrt_t_and_exponential_ones_of_order_log_t() -> None:
    explored = {
        exploit: [sum(PEGE(exploit=exploit).explores(t, n_arms=2, dim=1) for t in range(1, T)) for T in (2500, 10000)]
        for exploit in ("linear", "exponential")
    }
    assert explored["linear"][1] / explored["linear"][0] == pytest.approx(2, rel=0.05)
    assert explored["exponential"][1] - explored["exponential"][0] == 2 * 2  # two doublings, K d steps each


def test_turns_pass_over_arms_that_are_not_eligible() -> None:
    bandit = Bandit(range(3), 1, policy=PEGE(), seed=1)
    assert [bandit.decide([1.0], eligible=[0, 2]).arm for _ in range(3)] == [0, 2, 0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"exploit": "cubic"}, "exploit is 'cubic'; choose 'linear' or 'exponential'"),
        ({"rounds": 0}, "rounds is 0; give a whole number of at least 1"),
        ({"ridge": -1.0}, "ridge is -1.0"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PEGE(**settings)  # type: ignore[arg-type]


def test_beats_uniform_play() -> None:
    environment = FigureA.draw(np.random.default_rng(3))
    linear, exponential, uniform = (
        float(simulate(environment, p, horizon=2000, runs=4, seed=1, method="python", engine="serial").at(2000).mean())
        for p in (PEGE(), PEGE(exploit="exponential"), Uniform())
    )
    # 50 cycles of 18 + c steps make 2000: 45% explore with "linear"; 8 cycles, or 8%, with "exponential"
    assert linear < 0.55 * uniform
    assert exponential < 0.25 * uniform
