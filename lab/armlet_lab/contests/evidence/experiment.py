"""Evidence as the clock: arms that come and go, an arm that comes late, rewards that come late, trained models, floors.

All contestants of a task meet the same contexts, noise and coins. Where arms come and go or rewards come late, they
are played through a bandit, step by step, as a user would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from armlet.bandit import Bandit
from armlet.environments import Delayed, Environment, News
from armlet.environments.families import FAMILIES, draw_problem
from armlet.environments.linear import as_rows
from armlet.environments.news import Payment
from armlet.parallel.seeds import Seeds
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.simulation.play import draw, player, run_streams
from armlet.types import Bool, Float64, Int64, Policy
from armlet_lab.contests.evidence.contestants import (
    Q,
    in_a_closed_environment,
    in_the_news,
    trained,
    with_a_newcomer,
    with_late_rewards,
)
from armlet_lab.contests.evidence.report import Columns, judge
from armlet_lab.runner.experiment import Experiment, Findings

ALIVE: Final = 20.0
SITES: Final[dict[str, tuple[Payment, float]]] = {  # how rewards are paid, and the life of an arm as a share of the run
    "gaussian": ("gaussian", 0.05),
    "clicks": ("bernoulli", 0.05),
    "clicks, long lives": ("bernoulli", 0.2),
}
SLOW: Final = "gaussian d = 30"  # not played step by step
WATCHED: Final = 300  # decisions after the arm has come, and after the training


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to run."""

    problems: int = 3
    news: int = 2  # sites
    delayed: int = 2  # problems
    news_horizon: int = 10_000
    late: int = 2_000  # steps before the newcomer
    delay_horizon: int = 2_000
    horizon: int = 2_000
    rows: int = 1_000  # of the log
    families: tuple[str, ...] = ("Figure (a)", "gaussian d = 10", "clicks 3 % or 4 %")


SCALES: dict[Scale, Settings] = {
    "quick": Settings(),
    "full": Settings(
        problems=20,
        news=6,
        delayed=48,
        news_horizon=100_000,
        late=90_000,
        delay_horizon=20_000,
        horizon=10_000,
        rows=5_000,
        families=tuple(FAMILIES),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One problem of one kind, played by all who play that kind."""

    seeds: Seeds
    kind: str  # a site of news, or a family
    problem: int
    horizon: int


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, then compare."""
    s = settings
    prompt = tuple(family for family in s.families if family != SLOW)
    news = _map(lab, "news", play_news, tuple(SITES), s.news, s.news_horizon)
    newcomer = _map(lab, "newcomer", play_newcomer, ("newcomer",), s.problems, s.late)
    delayed = _map(lab, "delay", play_delayed, prompt, s.delayed, s.delay_horizon)
    logged = _map(lab, "trained", play_trained, ("gaussian d = 10",), s.problems, s.rows)
    closed = _map(lab, "closed", play_closed, s.families, s.problems, s.horizon)
    return judge(
        news=news,
        newcomer=newcomer["newcomer"],
        delayed=delayed,
        trained=logged["gaussian d = 10"],
        closed=closed,
        settings={
            "news": s.news_horizon,
            "late": s.late,
            "delay": s.delay_horizon,
            "closed": s.horizon,
            "rows": s.rows,
        },
        rng=lab.rng("intervals"),
    )


def _map(
    lab: Lab, stage: str, function: Callable[[Task], Arrays], kinds: Sequence[str], problems: int, T: int
) -> dict[str, Columns]:
    """Run one stage; give for each kind the columns over problems by name."""
    tasks = [Task(seeds=lab.seeds, kind=kind, problem=i, horizon=T) for kind in kinds for i in range(problems)]
    found = lab.map(stage, function, tasks, f"Evidence: {stage}, {problems} problems of {len(kinds)} kinds")
    whole: dict[str, Columns] = {}
    for i, kind in enumerate(kinds):
        mine = found[i * problems : (i + 1) * problems]
        whole[kind] = {name: np.array([float(as_floats(one[name])[0]) for one in mine]) for name in mine[0]}
    return whole


class Steps(NamedTuple):
    """What one contestant did."""

    lost: Float64  # (T,)
    arms: Int64
    explored: Bool


def _play_all(environment: Environment, policies: Mapping[str, Policy], task: Task) -> tuple[dict[str, Steps], float]:
    """Play every policy on one run of an environment, drawn once; give what each did, and what random play loses."""
    contexts, noise, coins = run_streams(task.seeds, task.kind, task.problem)
    players = {name: player(environment, policy, coins) for name, policy in policies.items()}
    parts: dict[str, list[Steps]] = {name: [] for name in policies}
    random = 0.0
    for _, X, rewards, losses in draw(environment, contexts, noise, task.horizon):
        random += float(np.nanmean(losses, axis=1).sum())
        for name, each in players.items():
            arms, explored = each.play(X, rewards)
            parts[name].append(Steps(losses[np.arange(len(X)), arms], arms, explored))
    done = {name: Steps(*(np.concatenate(part) for part in zip(*steps, strict=True))) for name, steps in parts.items()}
    return done, random


def play_news(task: Task) -> Arrays:
    """Give the regret of everybody on one site of news, by name."""
    noise, share = SITES[task.kind]
    life = round(share * task.horizon)
    rng = task.seeds.rng("sites", task.kind, task.problem)
    environment = News.draw(rng, horizon=task.horizon, alive=ALIVE, life=life, noise=noise)
    done, _ = _play_all(environment, in_the_news(ALIVE), task)
    return {name: np.array([steps.lost.sum()]) for name, steps in done.items()}


def play_newcomer(task: Task) -> Arrays:
    """Give how often an arm that is best in half of the contexts is played in the first steps after it has come."""
    environment, T = newcomer(task.seeds.rng("newcomers", task.problem), task.horizon), task.horizon + WATCHED
    policies = with_a_newcomer(environment.n_arms, T)
    done, _ = _play_all(environment, policies, replace(task, horizon=T))
    out = {}
    for name, policy in policies.items():
        tried = done[name].arms[task.horizon :] == environment.n_arms - 1
        learned = tried & done[name].explored[task.horizon :] if policy.learns_from == "explored steps" else tried
        out[name], out[f"{name}, learned"] = (np.array([float(count.sum())]) for count in (tried, learned))
    return out


def newcomer(rng: np.random.Generator, late: int) -> News:
    """Make an environment of five arms that stay, and a sixth after `late` steps that is best in half of the contexts.

    It goes by the sign of a value that the others do not look at, and much farther than they differ.

    Examples
    --------
    >>> environment = newcomer(np.random.default_rng(1), 50)
    >>> mu = environment.means(environment.contexts(np.random.default_rng(2), 4000))
    >>> bool(abs((mu.argmax(axis=1) == 5).mean() - 0.5) < 0.05)
    True
    """
    theta = np.zeros((6, 5))
    theta[:5, :3] = 0.5 * rng.standard_normal((5, 3))
    theta[5, 3] = 8.0
    return News(theta=as_rows(theta), births=(1,) * 5 + (late + 1,), deaths=(late + 10**6,) * 6)


def play_delayed(task: Task) -> Arrays:
    """Give the regret of everybody where rewards come a tenth of the run late."""
    environment = Delayed(environment=draw_problem(task.kind, task.seeds, task.problem), delay=task.horizon // 10)
    done, random = _play_all(environment, with_late_rewards(environment.n_arms, task.horizon), task)
    return {name: np.array([steps.lost.sum()]) for name, steps in done.items()} | {"random": np.array([random])}


def play_trained(task: Task) -> Arrays:
    """Train on a log of random play; give the share of right decisions, of right predictions, and of exploring."""
    environment = draw_problem(task.kind, task.seeds, task.problem)
    contexts, noise, coins = run_streams(task.seeds, task.kind, task.problem)
    block = next(draw(environment, contexts, noise, task.horizon + WATCHED, size=task.horizon + WATCHED))
    logged = task.seeds.rng("log", task.problem).integers(environment.n_arms, size=task.horizon)
    out = {}
    for name, policy in trained(environment.n_arms, task.horizon).items():
        bandit = Bandit(range(environment.n_arms), environment.dim, policy=policy, seed=coins)
        past = np.arange(task.horizon)
        bandit.fit(block.X[past], logged, block.rewards[past, logged], explored=True)
        X, best = block.X[task.horizon :], block.losses[task.horizon :].argmin(axis=1)
        right = float((bandit.predict(X) == best).mean())
        arms, explored = np.empty(WATCHED, dtype=np.int64), np.empty(WATCHED, dtype=np.bool_)
        for i, x in enumerate(X):
            decision = bandit.decide(x)
            arms[i], explored[i] = decision.arm, decision.explored
            bandit.learn(decision, float(block.rewards[task.horizon + i, arms[i]]))
        for what, value in {"decide": (arms == best).mean(), "predict": right, "explored": explored.mean()}.items():
            out[f"{name}, {what}"] = np.array([float(value)])
    return out


def play_closed(task: Task) -> Arrays:
    """Give regret and explored steps of both clocks at one p, and of a floor."""
    environment = draw_problem(task.kind, task.seeds, task.problem)
    done, random = _play_all(environment, in_a_closed_environment(environment.n_arms), task)
    regret = {name: np.array([steps.lost.sum()]) for name, steps in done.items()}
    explored = {f"{name}, explored": np.array([float(steps.explored.sum())]) for name, steps in done.items()}
    p = Q * environment.n_arms
    formula = p * (1 + np.log1p((task.horizon - p) / Q))
    return {**regret, **explored, "formula": np.array([formula]), "random": np.array([random])}


EXPERIMENT: Final = Experiment("evidence", "Evidence: news, newcomers, late rewards, trained models and floors", run)
