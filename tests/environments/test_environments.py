"""The contract over the whole registry, the contract's own power to refuse, and what is special to each environment.

Where randomness is left, seeds are fixed and tolerances are five standard errors: a correct environment fails
one such check with probability 6e-7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

import armlet
from armlet.environments import (
    ENVIRONMENTS,
    Catalogue,
    Customers,
    Delayed,
    DisplayAds,
    Drifting,
    Environment,
    FigureA,
    FigureB,
    GroupActivity,
    Linear,
    NearTies,
    News,
    Rescaled,
    Scheduling,
    Section7,
    Section7Growing,
    Section41,
)
from armlet.environments.environment import Constants, FiniteEnvironment, bernoulli_sigma, noise_sigma
from armlet.environments.news import Payment
from armlet.inputs.settings import Objective
from armlet.reference.linear import smallest_eigenvalue
from armlet.testing import ENVIRONMENT_CHECKS, check_environment
from armlet.testing.environments import (
    EnvironmentCheck,
    check_arrays,
    check_constants_of_noise,
    check_constants_of_table,
    check_description,
    check_means,
    check_presence,
    check_seeds_repeat_environments,
    check_settings,
    check_start,
    check_streams_stay_apart,
    check_table_of_contexts,
    check_table_of_noise,
)
from armlet.types import Bool, Float64

pytestmark = pytest.mark.spread

N = 100_000


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


SAMPLES: dict[str, list[Environment]] = {
    "FigureA": [FigureA.draw(rng(1)), FigureA.draw(rng(2), dim=5, zero="resample")],
    "FigureB": [FigureB.draw(rng(1), I=5), FigureB.draw(rng(2), I=100)],
    "Section41": [Section41.draw(rng(1)), Section41.draw(rng(2), dim=4, w=0.2, F=1.0, entries="together")],
    "Section7": [Section7.draw(rng(1)), Section7.draw(rng(2), I=40, n_arms=2, noise="gaussian", scale=0.5)],
    "Section7Growing": [Section7Growing.draw(rng(1), rate=rate) for rate in ("log", "log2", "sqrt")],
    "Scheduling": [Scheduling.draw(rng(1)), Scheduling.draw(rng(2), n_arms=2, spread=0.0)],
    "DisplayAds": [DisplayAds.draw(rng(1))],
    "Customers": [Customers.draw(rng(1)), Customers.draw(rng(1), n_arms=4, kinds=3)],
    "GroupActivity": [GroupActivity.draw(rng(1)), GroupActivity.draw(rng(2), n_arms=2, dim=3)],
    "Linear": [
        Linear.draw(rng(1)),
        Linear.draw(rng(2), n_arms=2, dim=20, law="sphere", noise="none"),
        Linear.draw(rng(3), dim=4, law="bits", noise="proportional", scale=0.3),
        Linear.draw(rng(4), dim=3, law="bits", noise="bernoulli"),
        Linear.draw(rng(5), dim=1, law="sphere"),
        Linear.draw(rng(6), dim=4, law="constant"),
    ],
    "Drifting": [Drifting.draw(rng(1)), Drifting.draw(rng(2), dim=2, turn=0.0, jumps=(20, 150, 2000))],
    "NearTies": [NearTies.draw(rng(1)), NearTies.draw(rng(2), near=5, n_bad=4, dim=4, gap=0.02, scale=0.5)],
    "News": [News.draw(rng(1), horizon=3000, life=400), News.draw(rng(2), horizon=3000, life=400, noise="bernoulli")],
}
THREE_SCALES = (1e3, -0.02, 4.0)
MADE: list[Environment] = [
    Catalogue.draw(rng(1), horizon=300, alive=10, turnover=0.1),
    Catalogue.draw(rng(2), horizon=300, alive=5, turnover=0.05, noise="bernoulli", effect=0.7),
    Catalogue.draw(rng(3), horizon=300, alive=5, turnover=0.05, dim=2, item_dim=3, taste="distance"),
    Delayed(environment=FigureA.draw(rng(1)), delay=100),
    Delayed(environment=News.draw(rng(1), horizon=2000, life=500), delay=0),
    Rescaled(environment=FigureA.draw(rng(1)), reward_scale=3.0, feature_scales=THREE_SCALES),
    Rescaled(environment=FigureA.draw(rng(1)), reward_level=100.0),
    Rescaled(
        environment=NearTies.draw(rng(1)), reward_level=-30.0, feature_scales=THREE_SCALES
    ),  # it has a constant feature
    Rescaled(environment=Linear.draw(rng(2)), reward_level=1e3, feature_offsets=(5.0, 0.0, -7.0)),
    Rescaled(environment=Linear.draw(rng(3), law="bits", scale=0.1), reward_level=1.0, feature_offsets=(1.0, 0.0, 2.0)),
    Rescaled(environment=Customers.draw(rng(1)), reward_scale=0.5),
    Rescaled(environment=News.draw(rng(1), horizon=2000, life=500), reward_scale=2.0),
]
"""Environments that no registry draws: made from others, or with features of their arms."""


def every_environment() -> list[Environment]:
    return [environment for name in ENVIRONMENTS for environment in SAMPLES[name]]


def name_of(value: object) -> str:
    return getattr(value, "__name__", type(value).__name__)


@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=name_of)
@pytest.mark.parametrize("environment", [*every_environment(), *MADE], ids=name_of)
def test_environment_keeps_its_promises(environment: Environment, check: EnvironmentCheck) -> None:
    check(environment)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_can_be_drawn_from_a_seed_alone(name: str) -> None:
    environment = ENVIRONMENTS[name].draw(rng(3))
    assert environment == ENVIRONMENTS[name].draw(rng(3))
    assert type(environment).__name__ == name
    check_arrays(environment)


@pytest.mark.parametrize("environment", [*every_environment(), *MADE], ids=name_of)
def test_an_environment_refuses_contexts_and_steps_that_do_not_exist(environment: Environment) -> None:
    with pytest.raises(ValueError, match="dim is"):
        environment.means(np.zeros((2, environment.dim + 1)))
    with pytest.raises(ValueError, match="start is -1"):
        environment.contexts(rng(), 2, start=-1)
    with pytest.raises(ValueError, match="n is -2"):
        environment.contexts(rng(), -2)


@pytest.mark.parametrize("environment", every_environment(), ids=name_of)
def test_an_environment_prints_its_constants_or_why_it_has_none(environment: Environment) -> None:
    text = "\n".join(environment.describe())
    assert "sigma_min = " in text
    assert ("delta_min = " in text) != ("delta_min does not exist: " in text)


# --- the contract refuses --------------------------------------------------------------------------------------------


class PaysTooMuch(FigureB):
    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        return 1.05 * FigureB.rewards(self, rng, X, start=start)


class DrawsItsOwnNumbers(FigureB):
    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:  # noqa: ARG002
        return FigureB.contexts(self, np.random.default_rng(), n, start=start)


class LetsNoiseReachContexts(FigureB):
    drawn = 0

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        return np.roll(FigureB.contexts(self, rng, n, start=start), type(self).drawn, axis=0)

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        type(self).drawn += 1
        return FigureB.rewards(self, rng, X, start=start)


class ForgetsTheTime(Section7Growing):
    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        return Section7Growing.contexts(self, rng, n, start=0 * start)


class StandsStill(Drifting):
    def means(self, X: Float64, *, start: int = 0) -> Float64:
        return Drifting.means(self, X, start=0 * start)


class SingleNumbers(FigureB):
    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        return FigureB.contexts(self, rng, n, start=start).astype(np.float32)


class MisstatesChances(FigureB):
    def table(self) -> FiniteEnvironment:
        return FigureB(theta=self.theta, I=self.I / 2).table()


class LeavesAContextOut(FigureA):
    def table(self) -> FiniteEnvironment:
        X = self.support()[:-1]
        return self.tabulate(X, np.full(len(X), 1 / len(X)))


class MisstatesNoise(FigureB):
    def table(self) -> FiniteEnvironment:
        return replace(FigureB.table(self), noise="gaussian")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoastsOfConstants(FigureB):
    factor: float = 1.0
    what: str = "sigma_min"

    def constants(self) -> Constants:
        true = FigureB.constants(self)
        said = {name: getattr(true, name) for name in ("sigma_min", "delta_min", "delta_max", "Q", "sigma")}
        return Constants(**said | {self.what: self.factor * said[self.what]})


class HidesConstants(FigureB):
    def constants(self) -> Constants:
        raise ValueError("no")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepsMore(FigureB):
    notes: object = None


class SaysNothing(FigureB):
    def describe(self) -> list[str]:
        return ["", ""]


class LeavesNobody(News):
    def present(self, n: int, *, start: int = 0) -> Bool:
        mask = News.present(self, n, start=start)
        mask[np.arange(start, start + n) % 700 == 699] = False
        return mask


class CountsFromItsOwnStart(News):
    def present(self, n: int, *, start: int = 0) -> Bool:
        return News.present(self, n, start=0 * start)


@dataclass(frozen=True, slots=True, kw_only=True)
class BelievesInTheta(Rescaled):
    def constants(self) -> Constants:
        return self.environment.constants()


def boast(what: str, factor: float) -> Environment:
    return BoastsOfConstants(theta=FigureB.draw(rng(1)).theta, what=what, factor=factor)


FAULTS: list[tuple[Environment, EnvironmentCheck]] = [
    (PaysTooMuch.draw(rng(1)), check_means),
    (DrawsItsOwnNumbers.draw(rng(1)), check_seeds_repeat_environments),
    (LetsNoiseReachContexts.draw(rng(1)), check_streams_stay_apart),
    (ForgetsTheTime.draw(rng(1), rate="sqrt"), check_start),
    (StandsStill.draw(rng(1)), check_start),
    (SingleNumbers.draw(rng(1)), check_arrays),
    (MisstatesChances.draw(rng(1)), check_table_of_contexts),
    (LeavesAContextOut.draw(rng(1)), check_table_of_contexts),
    (MisstatesNoise.draw(rng(1)), check_table_of_noise),
    (boast("sigma_min", 2.0), check_constants_of_table),
    (boast("delta_min", 1.1), check_constants_of_table),
    (boast("delta_max", 0.1), check_constants_of_table),
    (boast("Q", 0.1), check_constants_of_table),
    (boast("sigma", 0.9), check_constants_of_table),
    (boast("sigma", 0.1), check_constants_of_noise),
    (HidesConstants.draw(rng(1)), check_constants_of_noise),
    (KeepsMore(theta=FigureB.draw(rng(1)).theta, notes=np.ones(2)), check_settings),
    (KeepsMore(theta=FigureB.draw(rng(1)).theta, notes=[1]), check_settings),
    (KeepsMore(theta=FigureB.draw(rng(1)).theta, notes=math.inf), check_settings),
    (LeavesNobody.draw(rng(1), horizon=2000), check_presence),
    (CountsFromItsOwnStart.draw(rng(1), horizon=2000), check_presence),
    (BelievesInTheta(environment=Linear.draw(rng(3), law="bits"), reward_level=1.0), check_constants_of_table),
    (SaysNothing.draw(rng(1)), check_description),
]


@pytest.mark.parametrize(("environment", "check"), FAULTS, ids=name_of)
def test_the_contract_refuses_a_faulty_environment(environment: Environment, check: EnvironmentCheck) -> None:
    with pytest.raises(AssertionError):
        check(environment)
    with pytest.raises(
        (AssertionError, ValueError)
    ):  # an environment without constants fails an earlier check by itself
        check_environment(environment)


# --- constants -------------------------------------------------------------------------------------------------------


def table_of(contexts: list[list[float]], chances: list[float], theta: Float64) -> FiniteEnvironment:
    X = np.array(contexts)
    return FiniteEnvironment(contexts=X, chances=np.array(chances), means=X @ theta.T)


def test_constants_leave_out_contexts_that_never_come() -> None:
    theta = np.array([[1.0, 0.0], [0.0, 4.0]])
    with_it = Constants.of(table_of([[1, 0], [0, 1], [1, 0.249]], [0.75, 0.25, 0.0], theta), theta, 1.0)
    without = Constants.of(table_of([[1, 0], [0, 1]], [0.75, 0.25], theta), theta, 1.0)
    assert with_it == without
    assert without.sigma_min == 0.25
    assert without.delta_min == 1.0
    assert without.Q == 4.0
    assert without.delta_max == pytest.approx(math.sqrt(17))
    assert np.isclose(without.L, 1 / math.sqrt(2), rtol=1e-15)


def test_a_tie_that_only_rounding_breaks_is_no_gap() -> None:
    theta = np.array([[0.1 + 0.2, 0.0], [0.3, 0.0], [0.1, 0.0]])
    table = table_of([[1.0, 0.0]], [1.0], theta)
    assert table.losses[0, 1] > 0
    assert Constants.of(table, theta, 1.0).delta_min == pytest.approx(0.2)


def test_constants_that_do_not_exist_are_named() -> None:
    theta = np.ones((2, 2))
    with pytest.raises(ValueError, match="delta_min does not exist"):
        Constants.of(table_of([[1, 0]], [1.0], theta), theta, 1.0)
    with pytest.raises(ValueError, match="sigma_min does not exist"):
        Constants.of(table_of([[0, 0]], [1.0], theta), theta, 1.0)


def test_an_eigenvalue_of_rounding_counts_as_zero() -> None:
    X = rng(1).normal(size=(200, 3)) @ rng(2).normal(size=(3, 8))  # rank 3 of 8
    values = np.linalg.eigvalsh(X.T @ X)
    assert smallest_eigenvalue(X.T @ X) == values[-3]


@pytest.mark.parametrize("p", [0.001, 0.01, 0.2, 0.49999, 0.5, 0.7, 0.999])
def test_the_constant_of_a_click_is_the_smallest_there_is(p: float) -> None:
    # sigma^2 is the supremum over g of 2 log E exp(g Z) / g^2; on a grid of spacing h the smooth maximum is
    # missed by a multiple of h^2 = 1e-4 of itself at most
    g = np.arange(-20, 20, 0.01) + 0.005
    supremum = (2 * (np.log1p(p * np.expm1(g)) - g * p) / g**2).max()
    assert float(bernoulli_sigma(np.array(p))) ** 2 == pytest.approx(supremum, rel=1e-4)


def test_every_named_noise_has_its_constant() -> None:
    X, chances, means = np.eye(2), np.array([1.0, 0.0]), np.array([[0.5, -0.9], [3.0, 3.0]])
    expected = {"proportional": 2 * 0.9 / math.sqrt(3), "gaussian": 2.0, "none": 0.0}
    for noise, sigma in expected.items():
        table = FiniteEnvironment(contexts=X, chances=chances, means=means, noise=noise, scale=2.0)  # type: ignore[arg-type]
        assert noise_sigma(table) == pytest.approx(sigma)


# --- what is special to each environment
# -----------------------------------------------------------------------------------


@pytest.mark.parametrize("I", [2.0, 5.0, 10.0, 100.0])
def test_figure_b_spans_a_plane_and_its_smallest_eigenvalue_has_a_closed_form(I: float) -> None:  # noqa: E741
    # in the basis (1,0,1)/sqrt 2, (0,1,0) the second moment is [[2, sqrt 2 / I], [sqrt 2 / I, 1/I]]
    trace, det = 2 + 1 / I, 2 / I - 2 / I**2
    expected = (trace - math.sqrt(trace**2 - 4 * det)) / 2
    assert FigureB.draw(rng(1), I=I).constants().sigma_min == pytest.approx(expected, rel=1e-12)


def test_figure_b_pays_as_figure_a_does() -> None:
    a, b = FigureA.draw(rng(4)), FigureB.draw(rng(4))
    assert a.theta == b.theta
    X = b.contexts(rng(5), 100)
    assert np.array_equal(a.rewards(rng(6), X), b.rewards(rng(6), X))


@pytest.mark.parametrize("w", [0.05, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("dim", [2, 3, 7, 10])
def test_section_41_knows_sigma_min_in_closed_form(dim: int, w: float) -> None:
    environment = Section41.draw(rng(1), dim=dim, w=w)
    assert environment.constants().sigma_min == pytest.approx(environment.sigma_min(), rel=1e-12)


def test_section_41_has_no_gap_in_one_dimension() -> None:
    environment = Section41.draw(rng(1), dim=1, w=0.3)  # every arm of length 1 is the same arm
    assert environment.sigma_min() == 0.3
    with pytest.raises(ValueError, match="delta_min does not exist"):
        environment.constants()


def test_section_41_knows_sigma_min_where_contexts_cannot_be_listed() -> None:
    environment = Section41.draw(rng(1), dim=40, w=0.25)
    X = environment.contexts(rng(2), N)
    # averaged over pairs i != j, x_i^2 - x_i x_j has mean sigma_min and lies in [-1, 1] / (d - 1), so the mean
    # of N such averages has a standard error below 1 / (d - 1) / sqrt N
    pairs = (
        np.square(X).sum(axis=1) - (X.sum(axis=1) ** 2 - np.square(X).sum(axis=1)) / (environment.dim - 1)
    ) / environment.dim
    assert abs(pairs.mean() - environment.sigma_min()) < 5 / (environment.dim - 1) / math.sqrt(N)
    with pytest.raises(ValueError, match=r"delta_min is a minimum over 2\^40 contexts"):
        environment.constants()
    assert f"sigma_min = {environment.sigma_min():.6g}" in "\n".join(environment.describe())


def test_section_41_draws_positive_arms_of_length_one() -> None:
    theta = np.array(Section41.draw(rng(1), n_arms=50, dim=8).theta)
    assert (theta >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("entries", ["independent", "together"])
def test_section_41_fluctuates_by_at_most_f_in_every_entry(entries: str) -> None:
    environment = Section41(theta=((0.6, 0.8, 0.0, 0.0),), F=0.7, entries=entries)  # type: ignore[arg-type]
    x = np.full((N, 4), 0.5)
    left = (environment.rewards(rng(1), x) - environment.means(x))[:, 0]
    assert np.abs(left).max() <= 0.7 * math.sqrt(4)
    # uniform fluctuations: variance F^2 |x|_2^2 / 3, or F^2 |x|_1^2 / 3 = d times that if all move together;
    # the fourth moment is at most 3 times the squared variance, so squares have relative error sqrt(2 / N)
    variance = 0.7**2 / 3 * (4 if entries == "together" else 1)
    assert np.square(left).mean() == pytest.approx(variance, rel=5 * math.sqrt(2 / N))
    assert environment.F / math.sqrt(3) * (2 if entries == "together" else 1) == pytest.approx(math.sqrt(variance))
    if entries == "together":  # 1 % of draws come within 1 % of the bound
        assert np.abs(left).max() > 0.99 * 0.7 * math.sqrt(4)


@pytest.mark.parametrize("I", [1.5, 10.0, 1000.0])
def test_section_7_has_the_second_moment_that_the_paper_states(I: float) -> None:  # noqa: E741
    environment = Section7.draw(rng(1), I=I)
    table = environment.table()
    moment = (table.contexts.T * table.chances) @ table.contexts
    np.testing.assert_allclose(moment, [[1, 1 / I], [1 / I, 1 / I]], rtol=1e-15)
    expected = (1 + 1 / I - math.sqrt((1 - 1 / I) ** 2 + 4 / I**2)) / 2
    assert environment.constants().sigma_min == pytest.approx(expected, rel=1e-10)  # the formula cancels for large I


@pytest.mark.parametrize("rate", ["log", "log2", "sqrt"])
@pytest.mark.parametrize("start", [0, 1_000_000])
def test_section_7_growing_shows_the_rare_context_ever_more_rarely(rate: str, start: int) -> None:
    environment = Section7Growing.draw(rng(1), rate=rate)  # type: ignore[arg-type]
    X = environment.contexts(rng(2), N, start=start)
    t = np.arange(start + 1, start + N + 1)
    grown = {"log": np.log(t), "log2": np.log(t) ** 2, "sqrt": np.sqrt(t)}[rate]
    chances = 1 / (2 + grown)
    # a sum of N independent 0/1 variables
    error = math.sqrt((chances * (1 - chances)).sum())
    assert abs(X[:, 1].sum() - chances.sum()) < 5 * error
    assert (X[:, 0] == 1).all()


def test_section_7_growing_has_constants_for_one_step_only() -> None:
    environment = Section7Growing.draw(rng(1))
    with pytest.raises(ValueError, match="sigma_min does not exist"):
        environment.constants()
    assert environment.at(1).constants().sigma_min > environment.at(1000).constants().sigma_min


def test_scheduling_pays_minus_the_delay() -> None:
    environment = Scheduling.draw(rng(1), spread=0.25)
    X = environment.contexts(rng(2), 1000)
    mean = X @ environment.seconds_per_unit.T
    delays = environment.delays(rng(3), X)
    assert np.array_equal(delays, -environment.rewards(rng(3), X))
    assert (delays >= 0.75 * mean - 1e-12).all()
    assert (delays <= 1.25 * mean + 1e-12).all()
    assert np.array_equal(environment.means(X).argmax(axis=1), mean.argmin(axis=1))


def test_scheduling_serves_a_bandit_that_is_told_to_minimise_delays() -> None:
    environment = Scheduling.draw(rng(1))
    X = environment.contexts(rng(2), 300)
    shown: list[tuple[Objective, Float64]] = [
        ("max", environment.rewards(rng(3), X)),
        (Scheduling.objective, environment.delays(rng(3), X)),
    ]
    played = []
    for objective, outcomes in shown:
        policy = armlet.Algorithm1(p=20)
        bandit = armlet.Bandit(range(environment.n_arms), environment.dim, policy=policy, seed=1, objective=objective)
        arms = []
        for x, row in zip(X, outcomes, strict=True):
            decision = bandit.decide(x)
            bandit.learn(decision, float(row[int(decision.arm)]))
            arms.append(decision.arm)
        played.append(arms)
    assert Scheduling.objective == "min"
    assert played[0] == played[1]


def test_ads_are_clicked_on_or_not_and_seldom() -> None:
    for seed in range(20):
        environment = DisplayAds.draw(rng(seed))
        table = environment.table()
        assert table is not None
        assert table.means.min() >= 0.0005
        assert table.means.max() <= 0.18
    X = environment.contexts(rng(1), 1000)
    assert (X[:, 0] == 1).all()
    assert set(np.unique(environment.rewards(rng(2), X))) <= {0.0, 1.0}


def test_a_group_votes_once_for_everyone_present() -> None:
    environment = GroupActivity.draw(rng(1))
    X = environment.contexts(rng(2), 5000)
    tally = environment.rewards(rng(3), X)
    assert np.array_equal(tally, tally.round())
    assert (tally >= 0).all()
    assert (tally <= X.sum(axis=1, keepdims=True)).all()


def test_a_tally_has_the_variance_of_independent_votes() -> None:
    environment = GroupActivity(theta=((0.1, 0.5, 0.9),), attendance=(0.5, 0.5, 0.5))
    tally = environment.rewards(rng(1), np.tile([1.0, 1.0, 0.0], (N, 1)))[:, 0]
    variance = 0.1 * 0.9 + 0.25
    # bounded by 2, squared deviations from the mean lie in [0, 4]: their standard error is below 2 / sqrt N
    assert abs(np.square(tally - 0.6).mean() - variance) < 5 * 2 / math.sqrt(N)


@pytest.mark.parametrize("law", ["gaussian", "sphere", "bits", "constant"])
def test_the_linear_environment_knows_the_second_moment_of_its_contexts(law: str) -> None:
    environment = Linear.draw(rng(1), dim=4, law=law)  # type: ignore[arg-type]
    X = environment.contexts(rng(2), N)
    # entries of xx' have variance at most 2 (a gaussian's square); an eigenvalue moves by at most the Frobenius
    # norm of the error, about d sqrt(2 / N)
    assert smallest_eigenvalue(X.T @ X / N) == pytest.approx(environment.sigma_min(), abs=5 * 4 * math.sqrt(2 / N))


def test_the_linear_environment_has_constants_only_where_contexts_can_be_listed() -> None:
    for law in ("gaussian", "sphere", "constant"):
        with pytest.raises(ValueError, match="delta_min does not exist"):
            Linear.draw(rng(1), law=law).constants()
    with pytest.raises(ValueError, match="delta_min needs every context"):
        Linear.draw(rng(1), dim=17, law="bits").constants()
    assert Linear.draw(rng(1), dim=2, law="bits").constants().sigma_min == pytest.approx(0.25)
    assert Linear.draw(rng(1), dim=1, law="sphere").constants().sigma_min == pytest.approx(1.0)


def test_drifting_arms_turn_and_come_back() -> None:
    environment = Drifting.draw(rng(1), n_arms=3, dim=4, turn=2 * math.pi / 100)
    np.testing.assert_allclose(environment.theta_at(101), environment.theta, atol=1e-13)
    np.testing.assert_allclose(environment.theta_at(51)[:, :2], -np.array(environment.theta)[:, :2], atol=1e-13)
    assert np.array_equal(environment.theta_at(51)[:, 2:], np.array(environment.theta)[:, 2:])


def test_drifting_arms_exchange_parameters_at_the_stated_steps() -> None:
    environment = Drifting(theta=((1.0, 0.0), (0.0, 2.0), (3.0, 3.0)), jumps=(2, 5, 6))
    first = [tuple(environment.theta_at(t)[0]) for t in range(1, 8)]
    assert first == [(1, 0), (3, 3), (3, 3), (3, 3), (0, 2), (1, 0), (1, 0)]


@pytest.mark.parametrize("start", [0, 17, 99_999])
def test_drifting_means_are_those_of_the_parameters_of_each_step(start: int) -> None:
    environment = Drifting.draw(rng(1), turn=0.01, jumps=(10, 20, 100_010))
    X = environment.contexts(rng(2), 30, start=start)
    expected = [environment.theta_at(start + 1 + i) @ x for i, x in enumerate(X)]
    np.testing.assert_allclose(environment.means(X, start=start), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("near", [2, 3, 6])
def test_near_ties_lose_nothing_a_hair_or_much(near: int) -> None:
    environment = NearTies.draw(rng(1), gap=0.25, bad=2.0, near=near, n_bad=2, dim=4)
    table = environment.table()
    assert table is not None
    assert set(np.unique(table.losses.round(12))) == {0.0, 0.25, 2.0}
    assert (table.losses[:, near:].round(12) == 2.0).all()
    assert environment.constants().delta_min == pytest.approx(0.25)
    assert environment.constants().sigma_min == pytest.approx(1.0)


def test_news_arrive_as_a_poisson_process_and_live_as_long_as_was_said() -> None:
    horizon, life, alive = 20_000, 500, 20.0
    environments = [News.draw(rng(seed), horizon=horizon, life=life, alive=alive) for seed in range(20)]
    counts = np.array([environment.present(horizon).sum(axis=1) for environment in environments])  # (20, T)
    # about T / L = 40 independent stretches a run, each count with variance 20
    assert abs(counts.mean() - alive) < 5 * math.sqrt(alive / (20 * horizon / life))
    # births in disjoint stretches of 100 steps are independent Poisson counts of mean 4: their variance is their mean
    arrivals = np.concatenate(
        [np.histogram(environment.births, np.arange(1, horizon + 2, 100))[0] for environment in environments]
    )
    n, mean = len(arrivals), alive * 100 / life
    assert abs(arrivals.mean() - mean) < 5 * math.sqrt(mean / n)
    assert abs(arrivals.var() - mean) < 5 * math.sqrt((mean + 2 * mean**2) / n)
    for environment in environments:
        assert {death - birth for birth, death in zip(environment.births, environment.deaths, strict=True)} == {life}


def test_news_of_clicks_spread_as_they_say_and_have_half_in_common() -> None:
    theta = np.array(News.draw(rng(1), noise="bernoulli").theta)
    assert (theta[:, 0] == 0.06).all()
    np.testing.assert_allclose(np.linalg.norm(theta[:, 1:], axis=1), 0.03, rtol=1e-9)
    means = theta[:, 1:].mean(axis=0)
    # the mean of unit vectors that are common + own, scaled, keeps between half and four fifths of the length in d = 4
    assert 0.5 < np.linalg.norm(means) / 0.03 < 0.8


def test_the_last_news_stay() -> None:
    environment = News(theta=TWO, births=(1, 5), deaths=(7, 9))
    assert environment.present(2, start=100).tolist() == [[False, True]] * 2


def test_a_catalogue_replaces_one_item_at_a_time_and_keeps_its_size() -> None:
    environment = Catalogue.draw(rng(1), horizon=2000, alive=30, turnover=0.25)
    there = environment.present(2000)
    assert (there.sum(axis=1) == 30).all()
    assert environment.n_arms == 30 + 500
    # lives are geometric of mean alive / turnover = 120 but for those that the end cuts off
    ended = [d - b for b, d in zip(environment.births, environment.deaths, strict=True) if d <= 2000]
    assert abs(np.mean(ended) - 120) < 5 * 120 / math.sqrt(len(ended))
    assert environment.offered(777).tolist() == np.flatnonzero(there[776]).tolist()


@pytest.mark.parametrize("noise", ["gaussian", "bernoulli"])
def test_scores_of_a_catalogue_spread_as_they_say(noise: Payment) -> None:
    drawn = [Catalogue.draw(rng(seed), horizon=1, alive=200, noise=noise) for seed in range(40)]
    means = np.array([each.means(rng(99).standard_normal((200, 5))) for each in drawn])
    if noise == "bernoulli":
        assert abs(means.mean() - 0.05) < 0.002  # set by a sample of 256 contexts a draw
    else:
        # a variance of 0.25 + 0.5 + 0.5; weights are drawn, which spreads it by about a third a draw
        assert abs(means.var(axis=(1, 2)).mean() - 1.25) < 5 * 0.4 / math.sqrt(40)


def test_customers_of_a_catalogue_by_distance_like_what_is_near() -> None:
    environment = Catalogue(
        items=((0.0,), (1.0,), (2.0,)), weights=((0.0, 0.0), (0.0, 1.0)), effects=(0.0, 0.0, 0.5), births=(1,) * 3,
        deaths=(9,) * 3, taste="distance",
    )  # fmt: skip
    assert environment.means(np.array([[0.0], [1.0]])).tolist() == [[0.0, -0.5, -1.5], [-0.5, 0.0, 0.0]]


@pytest.mark.parametrize("environment", [Linear.draw(rng(1), law="bits"), FigureA.draw(rng(1))], ids=name_of)
def test_other_units_leave_arms_and_losses_as_they_are(environment: Linear | FigureA) -> None:
    other = Rescaled(
        environment=environment,
        reward_level=-50.0,
        reward_scale=4.0,
        feature_scales=(2.0, -8.0, 0.5),
        feature_offsets=(3.0,) * 3,
    )
    X, shown = environment.contexts(rng(2), 500), other.contexts(rng(2), 500)
    np.testing.assert_allclose(shown, X * [2.0, -8.0, 0.5] + 3.0)
    np.testing.assert_allclose(other.means(shown), -50.0 + 4.0 * environment.means(X))
    np.testing.assert_allclose(other.rewards(rng(3), shown), -50.0 + 4.0 * environment.rewards(rng(3), X), atol=1e-12)


def test_a_table_in_other_units_is_no_table_where_its_noise_has_no_name() -> None:
    assert Rescaled(environment=FigureA.draw(rng(1)), reward_level=1.0).table() is None  # proportional, but to what?
    assert Rescaled(environment=Customers.draw(rng(1)), reward_scale=2.0).table() is None
    assert Rescaled(environment=Customers.draw(rng(1)), feature_scales=(2.0, 3.0)).table() is not None
    found = Rescaled(environment=Linear.draw(rng(1), law="bits", scale=0.5), reward_level=1.0, reward_scale=3.0).table()
    assert found is not None
    assert (found.noise, found.scale) == ("gaussian", 1.5)


TWO = ((1.0, 0.0), (0.0, 1.0))
THREE = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def one_item(**settings: object) -> Catalogue:
    given: dict[str, object] = {"items": ((1.0, 2.0),), "weights": ((0.0,) * 3,) * 2, "effects": (0.0,)}
    return Catalogue(**given | {"births": (1,), "deaths": (2,)} | settings)  # type: ignore[arg-type]


REFUSED: list[tuple[str, Callable[[], Environment]]] = [
    ("zero is", lambda: FigureA(theta=TWO, zero="drop")),  # type: ignore[arg-type]
    ("I is 0.5", lambda: FigureB(theta=THREE, I=0.5)),
    ("have 3", lambda: FigureB(theta=TWO)),
    ("w is 0", lambda: Section41(theta=TWO, w=0.0)),
    ("w is 1.5", lambda: Section41(theta=TWO, w=1.5)),
    ("F is inf", lambda: Section41(theta=TWO, F=math.inf)),
    ("entries is", lambda: Section41(theta=TWO, entries="apart")),  # type: ignore[arg-type]
    ("I is nan", lambda: Section7(theta=TWO, I=math.nan)),
    ("have 2", lambda: Section7(theta=THREE)),
    ("noise is", lambda: Section7(theta=TWO, noise="loud")),  # type: ignore[arg-type]
    ("between 0 and 1", lambda: Section7(theta=((1.0, 1.0),), noise="bernoulli")),
    ("rate is", lambda: Section7Growing(theta=TWO, rate="t")),  # type: ignore[arg-type]
    ("have 2", lambda: Section7Growing(theta=THREE)),
    ("minus seconds", lambda: Scheduling(theta=((1.0, 1.0, 1.0),))),
    ("every job", lambda: Scheduling(theta=((-1.0, -1.0),))),
    ("shares", lambda: Scheduling(theta=((-1.0, -1.0, -1.0),), shares=(0.5, 0.5))),
    ("sum to 1", lambda: Scheduling(theta=((-1.0, -1.0, -1.0),), shares=(0.5, 0.5, 0.5, 0.5, 0.5))),
    ("base rate", lambda: DisplayAds(theta=TWO)),
    (r"\[0, 1\]", lambda: Customers(theta=((0.5, 1.5),), shares=(0.5, 0.5))),
    ("sum to 1", lambda: Customers(theta=((0.5, 0.5),), shares=(0.5, 0.4))),
    ("needs 2 values", lambda: Customers(theta=((0.5, 0.5),), shares=(1.0,))),
    (r"\[0, 1\]", lambda: DisplayAds(theta=((0.5, 0.6),), attributes=("new",), shares=(0.5,))),
    (r"\[0, 1\]", lambda: DisplayAds(theta=((0.1, -0.2),), attributes=("new",), shares=(0.5,))),
    ("attendance", lambda: GroupActivity(theta=TWO, attendance=(0.5,))),
    ("probabilities", lambda: GroupActivity(theta=((1.5, 0.0),), attendance=(0.5, 0.5))),
    ("law is", lambda: Linear(theta=TWO, law="cube")),  # type: ignore[arg-type]
    ("besides the constant", lambda: Linear(theta=((1.0,),), law="constant")),
    ("noise is", lambda: Linear(theta=TWO, noise="loud")),  # type: ignore[arg-type]
    ("bernoulli", lambda: Linear(theta=TWO, law="sphere", noise="bernoulli")),
    ("bernoulli", lambda: Linear(theta=((0.6, 0.6),), law="bits", noise="bernoulli")),
    ("scale is -1", lambda: Linear(theta=TWO, scale=-1.0)),
    ("plane", lambda: Drifting(theta=((1.0,),))),
    ("jumps is", lambda: Drifting(theta=TWO, jumps=(5, 5))),
    ("turn is 4", lambda: Drifting(theta=TWO, turn=4.0)),
    ("rows of 1", lambda: NearTies(theta=((1.0,),))),
    ("bad is 0.1", lambda: NearTies.draw(rng(), gap=0.5, bad=0.1)),
    ("near is 1", lambda: NearTies.draw(rng(), near=1)),
    ("noise is", lambda: News(theta=TWO, births=(1, 1), deaths=(2, 2), noise="none")),  # type: ignore[arg-type]
    ("2 arms but 1 births", lambda: News(theta=TWO, births=(1,), deaths=(2, 2))),
    ("dies before", lambda: News(theta=TWO, births=(1, 3), deaths=(3, 3))),
    ("at step 1", lambda: News(theta=TWO, births=(2, 3), deaths=(3, 4))),
    ("at step 3", lambda: News(theta=TWO, births=(1, 4), deaths=(3, 5))),
    ("no probabilities", lambda: News(theta=((0.1, 0.2),), births=(1,), deaths=(9,), noise="bernoulli")),
    ("alive is 1", lambda: News.draw(rng(), alive=1.0, life=10)),
    ("taste is", lambda: Catalogue.draw(rng(), taste="none")),  # type: ignore[arg-type]
    ("noise is", lambda: Catalogue.draw(rng(), noise="none")),  # type: ignore[arg-type]
    ("alive 0", lambda: Catalogue.draw(rng(), alive=0)),
    ("turnover is 2", lambda: Catalogue.draw(rng(), turnover=2.0)),
    ("effect is -1", lambda: Catalogue.draw(rng(), effect=-1.0)),
    ("2 items but 1 effects", lambda: one_item(items=TWO, births=(1, 1), deaths=(2, 2))),
    ("a row more", lambda: one_item(weights=((0.0, 1.0), (1.0, 1.0)))),
    ("a row more", lambda: one_item(weights=((0.0, 1.0, 1.0),))),
    ("finite", lambda: one_item(effects=(math.nan,))),
    ("at step 1", lambda: one_item(births=(2,), deaths=(3,))),
    ("delay is -1", lambda: Delayed(environment=Linear(theta=TWO), delay=-1)),
    ("delay of its own", lambda: Delayed(environment=Delayed(environment=Linear(theta=TWO), delay=1), delay=1)),
    ("reward_scale is -1", lambda: Rescaled(environment=Linear(theta=TWO), reward_scale=-1.0)),
    ("reward_level is nan", lambda: Rescaled(environment=Linear(theta=TWO), reward_level=math.nan)),
    ("needs 2 finite", lambda: Rescaled(environment=Linear(theta=TWO), feature_scales=(1.0,))),
    ("hide a feature", lambda: Rescaled(environment=Linear(theta=TWO), feature_scales=(1.0, 0.0))),
]


@pytest.mark.parametrize(("message", "make"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_settings_without_meaning_are_refused(message: str, make: Callable[[], Environment]) -> None:
    with pytest.raises(ValueError, match=message):
        make()
