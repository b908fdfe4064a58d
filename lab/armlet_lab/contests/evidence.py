"""Evidence as the clock: arms that come and go, an arm that comes late, delayed rewards, trained models, floors, auto.

All players of a task meet the same contexts, noise and coins. Where arms come and go or rewards are delayed, they are
played through a bandit, step by step, as a user would. q is the rows of evidence that an arm is given before it is
explored less: p = q K with K the arms that can be played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from armlet.bandit import Bandit
from armlet.environments import Delayed, Environment, News
from armlet.environments.environment import as_rows
from armlet.environments.families import FAMILIES, draw_problem
from armlet.environments.news import Payment
from armlet.policies import (
    Algorithm1,
    AllDataEpsilonGreedy,
    AutoEpsilonGreedy,
    ContextualEpsilonGreedy,
    LinUCB,
    OccasionalOptimism,
    ThompsonSampling,
    Uniform,
)
from armlet.report.document import Table
from armlet.simulation.lab import Arrays, Lab, Scale
from armlet.simulation.play import draw, player, run_streams
from armlet.types import Bool, Estimate, Float64, Int64, Policy
from armlet_lab.contests import problems
from armlet_lab.contests.contest import Columns, Part, Task, mean, our_claim, part, play_all, ratio, table
from armlet_lab.literature.optimistic_epsilon_greedy import OptimisticEpsilonGreedy
from armlet_lab.runner.experiment import Criterion, Experiment, Findings, Role, Statistic, certain, conclude

Q: Final = 6.0  # where no other is named: one setting for all families, fixed before the published seed was played
FACTORS: Final = (4.0, 12.0, 40.0, 120.0, 400.0)  # p / K of the printed law, of which the best is taken in hindsight
FIXED: Final = (1.0, 4.0, 16.0, 64.0, 256.0)  # also p / K, by evidence
FLOOR: Final = 0.02
ALIVE: Final = 20.0
SITES: Final[dict[str, tuple[Payment, float]]] = {  # how rewards are paid, and the life of an arm as a share of the run
    "gaussian": ("gaussian", 0.05),
    "clicks": ("bernoulli", 0.05),
    "clicks, long lives": ("bernoulli", 0.2),
}
SLOW: Final = "gaussian d = 30"  # not played step by step
WATCHED: Final = 300  # decisions after the arm has come, and after the training

EVIDENCE: Final = f"evidence, q = {Q:g}"
NEWS: Final = 0.25  # of uniform play: more the family of Algorithm 1 may not lose in the gaussian news
TRIES: Final = 10  # of the newcomer
LATE: Final = 1.25  # times the best of several p, chosen in hindsight
SHORT: Final = 0.03  # of all decisions
COUNT: Final = (0.9, 1.15)  # times what the formula says
PRICE: Final = 1.1  # times the floor's share of what random play loses
NOISY_ARM: Final = "one noisy arm"  # of the tournament
AUTO: Final = 1.3  # times the best of several p by evidence, chosen in hindsight
NOISY: Final = "clicks 3 % or 4 %"  # too few clicks to rank anything: printed, not judged
BY_SCHEDULE: Final = ("Algorithm 1", "evidence", "evidence, all rows", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """For every stage, how many problems, and how many steps before the newcomer, rows of the log, or steps."""

    news: tuple[int, int] = (2, 10_000)
    newcomer: tuple[int, int] = (3, 2_000)
    delay: tuple[int, int] = (2, 2_000)
    trained: tuple[int, int] = (3, 1_000)
    closed: tuple[int, int] = (3, 2_000)
    auto: tuple[int, int] = (8, 10_000)
    families: tuple[str, ...] = ("Figure (a)", "gaussian d = 10", NOISY)


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(),
    "full": Settings(
        news=(6, 100_000),
        newcomer=(20, 90_000),
        delay=(48, 20_000),
        trained=(20, 5_000),
        closed=(20, 10_000),
        auto=(40, 10_000),
        families=tuple(FAMILIES),
    ),
}


def run(lab: Lab) -> Findings:
    """Run the contest at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, then compare."""
    stages: dict[str, tuple[Callable[[Task], Arrays], Sequence[str]]] = {
        "news": (play_news, list(SITES)),
        "newcomer": (play_newcomer, ["newcomer"]),
        "delay": (play_delayed, [family for family in settings.families if family != SLOW]),
        "trained": (play_trained, ["gaussian d = 10"]),
        "closed": (play_closed, settings.families),
        "auto": (play_auto, [NOISY_ARM, *settings.families]),
    }
    found = {}
    for stage, (play, kinds) in stages.items():
        n, T = getattr(settings, stage)
        tasks = {
            kind: [Task(seeds=lab.seeds, environment=kind, horizon=T, first=i) for i in range(n)] for kind in kinds
        }
        found[stage] = play_all(lab, stage, play, tasks, f"Evidence: {stage}, {n} problems of {len(kinds)} kinds")
    return judge(settings, found, lab.rng("intervals"))


EXPERIMENT: Final = Experiment("evidence", "Evidence: news, newcomers, late rewards, trained models and floors", run)


# --- who plays, and how ----------------------------------------------------------------------------------------------


class Steps(NamedTuple):
    """What one player did."""

    lost: Float64  # (T,)
    arms: Int64
    explored: Bool

    @property
    def regret(self) -> Float64:
        """The sum of losses, (1,)."""
        return np.array([self.lost.sum()])


def _meet(environment: Environment, policies: Mapping[str, Policy], task: Task) -> tuple[dict[str, Steps], float]:
    """Play every policy on one run of an environment, drawn once; return what each did, and what random play loses."""
    contexts, noise, coins = run_streams(task.seeds, task.environment, task.first)
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


def _laws(n_arms: int, horizon: int) -> dict[str, Policy]:
    """Return the printed law by steps, the law by evidence, and others next to them."""
    return {
        "Algorithm 1": Algorithm1(p=Q * n_arms),
        "evidence": ContextualEpsilonGreedy(p=Q * n_arms),
        "evidence, q = 1": ContextualEpsilonGreedy(p=1.0 * n_arms),
        "evidence, all rows": AllDataEpsilonGreedy(p=Q * n_arms),
        "auto": AutoEpsilonGreedy(horizon=horizon),
        "optimistic": OptimisticEpsilonGreedy(),
        "LinUCB": LinUCB(),
    }


def play_news(task: Task) -> Arrays:
    """Return the regret of everybody on one site of news."""
    noise, share = SITES[task.environment]
    rng, life = task.seeds.rng("sites", task.environment, task.first), round(share * task.horizon)
    environment = News.draw(rng, horizon=task.horizon, alive=ALIVE, life=life, noise=noise)
    policies: dict[str, Policy] = {
        "uniform": Uniform(),
        **{f"Algorithm 1, p = {times * ALIVE:g}": Algorithm1(p=times * ALIVE) for times in (2.0, 32.0)},
        **{f"evidence, q = {q:g}": ContextualEpsilonGreedy(p=q * ALIVE) for q in (1.0, 2.0)},
        "auto": AutoEpsilonGreedy(),
        "evidence, all rows, q = 0.5": AllDataEpsilonGreedy(p=0.5 * ALIVE),
        "default": OccasionalOptimism(),
        "optimistic": OptimisticEpsilonGreedy(),
        "LinUCB": LinUCB(),
        "Thompson": ThompsonSampling(v=1.0),
    }
    return {name: steps.regret for name, steps in _meet(environment, policies, task)[0].items()}


def play_newcomer(task: Task) -> Arrays:
    """Return how often an arm that is best in half of the contexts is played in the first steps after it has come."""
    environment, T = newcomer(task.seeds.rng("newcomers", task.first), task.horizon), task.horizon + WATCHED
    policies, out = _laws(environment.n_arms, T), {}
    for name, steps in _meet(environment, policies, replace(task, horizon=T))[0].items():
        tried = steps.arms[task.horizon :] == environment.n_arms - 1
        rows = steps.explored[task.horizon :] if policies[name].learns_from == "explored steps" else True
        out[name], out[f"{name}, learned"] = (np.array([float(count.sum())]) for count in (tried, tried & rows))
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
    """Return the regret of everybody where rewards come a tenth of the run late."""
    environment = Delayed(environment=draw_problem(task.environment, task.seeds, task.first), delay=task.horizon // 10)
    policies: dict[str, Policy] = {
        **{f"p = {factor:g} K": Algorithm1(p=factor * environment.n_arms) for factor in FACTORS},
        EVIDENCE: ContextualEpsilonGreedy(p=Q * environment.n_arms),
        "auto": AutoEpsilonGreedy(horizon=task.horizon),
    }
    done, random = _meet(environment, policies, task)
    return {**{name: steps.regret for name, steps in done.items()}, "random": np.array([random])}


def play_trained(task: Task) -> Arrays:
    """Train on a log of random play; return the share of right decisions, of right predictions, and of exploring."""
    environment, rows = draw_problem(task.environment, task.seeds, task.first), task.horizon
    contexts, noise, coins = run_streams(task.seeds, task.environment, task.first)
    block = next(draw(environment, contexts, noise, rows + WATCHED, size=rows + WATCHED))
    logged = task.seeds.rng("log", task.first).integers(environment.n_arms, size=rows)
    X, best = block.X[rows:], block.losses[rows:].argmin(axis=1)
    out: dict[str, Float64] = {}
    for name, policy in _laws(environment.n_arms, 10 * rows).items():
        if name == "evidence, q = 1":
            continue
        bandit = Bandit(range(environment.n_arms), environment.dim, policy=policy, seed=coins)
        bandit.fit(block.X[:rows], logged, block.rewards[np.arange(rows), logged], explored=True)
        right, arms, explored = bandit.predict(X) == best, np.zeros_like(best), np.zeros(WATCHED)
        for i, x in enumerate(X):
            decision = bandit.decide(x)
            arms[i], explored[i] = decision.arm, decision.explored
            bandit.learn(decision, float(block.rewards[rows + i, arms[i]]))
        shares = {"decide": arms == best, "predict": right, "explored": explored}
        out |= {f"{name}, {what}": np.array([float(share.mean())]) for what, share in shares.items()}
    return out


def play_closed(task: Task) -> Arrays:
    """Return regret and explored steps of both clocks at one p, in free units both, and of a floor."""
    environment = draw_problem(task.environment, task.seeds, task.first)
    p = Q * environment.n_arms
    policies: dict[str, Policy] = {
        "steps": Algorithm1(p=p, units="free"),
        "evidence": ContextualEpsilonGreedy(p=p),
        "floor": ContextualEpsilonGreedy(p=p, floor=FLOOR),
    }
    done, random = _meet(environment, policies, task)
    formula = p * (1 + np.log1p((task.horizon - p) / Q))
    return {
        **{name: steps.regret for name, steps in done.items()},
        **{f"{name}, explored": np.array([float(steps.explored.sum())]) for name, steps in done.items()},
        "formula": np.array([formula]),
        "random": np.array([random]),
    }


def play_auto(task: Task) -> Arrays:
    """Return the regret of several p, of a p that sets itself, with and without the horizon, and of the default."""
    if task.environment == NOISY_ARM:
        environment = problems.draw_problem(NOISY_ARM, task.seeds, task.first, task.horizon)
    else:
        environment = draw_problem(task.environment, task.seeds, task.first)
    policies: dict[str, Policy] = {
        **{f"p = {factor:g} K": ContextualEpsilonGreedy(p=factor * environment.n_arms) for factor in FIXED},
        "auto": AutoEpsilonGreedy(),
        "auto, told T": AutoEpsilonGreedy(horizon=task.horizon),
        "default": OccasionalOptimism(),
    }
    return {name: steps.regret for name, steps in _meet(environment, policies, task)[0].items()}


# --- what follows ----------------------------------------------------------------------------------------------------


def judge(settings: Settings, found: Mapping[str, Mapping[str, Columns]], rng: np.random.Generator) -> Findings:
    """Return the verdicts and their sections, from columns by stage and kind."""
    (newcomer,), (trained,) = found["newcomer"].values(), found["trained"].values()
    return Findings.of(
        [
            _news(found["news"], settings.news[1], rng),
            _newcomer(newcomer, settings.newcomer[1], rng),
            _delayed(found["delay"], settings.delay[1], rng),
            _trained(trained, settings.trained[1], rng),
            _closed(found["closed"], settings.closed[1], rng),
            _floor(found["closed"], settings.closed[1], rng),
            _auto(found["auto"], settings.auto[1], rng),
        ]
    )


def _each(found: Mapping[str, Columns], above: str, below: str, rng: np.random.Generator) -> dict[str, Estimate]:
    return {family: ratio(columns[above], columns[below], rng) for family, columns in found.items()}


def _news(found: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "evidence-news",
        f"Where arms come and go, exploring by evidence at q = 1 or 2 regrets at most {NEWS:g} of uniform play, and so "
        "does a p that sets itself.",
        "The better of the two, gaussian rewards; learning from explored rows alone. News of clicks are printed: a "
        "click in sixteen is too little to learn an arm by in its life. Control: by steps it is more than that.",
    )
    judged = found["gaussian"]
    ratios = {name: ratio(column, judged["uniform"], rng) for name, column in judged.items()}
    better = min((ratios[f"evidence, q = {q}"] for q in (1, 2)), key=lambda each: each.value)
    small = next(name for name in judged if name.startswith("Algorithm 1"))
    statistics = (
        Statistic("evidence, the better q, over uniform play", better, Criterion("below", NEWS)),
        Statistic("auto, over uniform play", ratios["auto"], Criterion("below", NEWS)),
        Statistic(f"{small}, over uniform play", ratios[small], Criterion("above", NEWS), Role.CONTROL),
    )
    rows = tuple(
        (name, *(f"{mean(s[name], rng):,.0f}; {s[name].mean() / s['uniform'].mean():.2f}" for s in found.values()))
        for name in judged
    )
    caption = f"Mean regret and its share of uniform play, T = {horizon:,}, {len(judged['uniform'])} sites of each kind"
    return part(
        claim,
        "Evidence suits arms that come and go",
        statistics,
        Table(caption=caption, head=("policy", *found), rows=rows),
        conclusions=conclude(
            "exploring by evidence suits arms that come and go",
            "exploring by evidence regrets much where arms come and go",
        ),
    )


def _newcomer(found: Columns, late: int, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "evidence-newcomer",
        f"An arm that is best in half of the contexts and comes late is tried {TRIES} times within 300 steps.",
        f"It comes after {late:,} steps; in every problem, by every form of the law. Control: Algorithm 1, which may "
        "play it where all others look bad but learns from explored steps alone, learns less than one row of it.",
    )
    names = [name for name in found if not name.endswith(", learned")]
    laws = [name for name in names if name.startswith("evidence") or name == "auto"]
    learned, enough = mean(found["Algorithm 1, learned"], rng), Criterion("above", TRIES - 1)
    statistics = (
        *(Statistic(f"fewest tries, {name}", certain(found[name].min()), enough) for name in laws),
        Statistic("rows learned of it, Algorithm 1", learned, Criterion("below", 1.0), Role.CONTROL),
    )
    columns = {
        "tries, mean": {name: f"{mean(found[name], rng):,.1f}" for name in names},
        "fewest": {name: found[name].min() for name in names},
        "learned, mean": {name: f"{found[f'{name}, learned'].mean():.1f}" for name in names},
    }
    caption = f"Tries within 300 steps of a new arm, after {late:,} steps, {len(found['auto'])} problems"
    return part(claim, "An arm that comes late is explored soon", statistics, table(caption, "policy", columns))


def _delayed(found: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "evidence-delay",
        f"With rewards that come T / 10 late, one q regrets at most {LATE:g} times as much as the best p by steps.",
        f"q = {Q:g} for all families against the best of p / K = {', '.join(f'{factor:g}' for factor in FACTORS)} in "
        "each, chosen and judged on the same runs. Clicks are printed.",
    )
    best = _best_p(found)
    pairs = [[ratio(one[name], one[best[family]], rng) for name in (EVIDENCE, "auto")] for family, one in found.items()]
    ours, auto = (dict(zip(found, each, strict=True)) for each in zip(*pairs, strict=True))
    n = len(next(iter(found.values()))["auto"])
    columns = {
        "best fixed p by steps": {f: f"{one[best[f]].mean():,.0f} ({best[f]})" for f, one in found.items()},
        f"{EVIDENCE} / that": ours,
        "auto / that": auto,
        "random play": {family: one["random"].mean() for family, one in found.items()},
    }
    caption = f"Regret with rewards {horizon // 10:,} steps late, T = {horizon:,}, {n} problems of each family"
    statistics = [Statistic(family, ours[family], Criterion("below", LATE)) for family in found if family != NOISY]
    return part(claim, "Delayed rewards cost little", statistics, table(caption, "family", columns))


def _trained(found: Columns, rows: int, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "evidence-trained",
        "A model that was trained on a log exploits from its first decision on.",
        f"{rows:,} rows of random play, then 300 decisions: the share of right ones is at most {100 * SHORT:g} points "
        "below that of `predict` on the same contexts and the share of explored steps, for those who explore by a "
        "schedule.",
    )
    names = list(dict.fromkeys(name.rpartition(", ")[0] for name in found))
    short = {
        name: mean(found[f"{name}, predict"] - found[f"{name}, explored"] - found[f"{name}, decide"], rng)
        for name in names
    }
    statistics = [
        Statistic(f"short of predict, {name}", short[name], Criterion("below", SHORT)) for name in BY_SCHEDULE
    ]
    columns = {
        head: {name: f"{found[f'{name}, {what}'].mean():.1%}" for name in names}
        for what, head in {"predict": "right by predict", "decide": "right by decide", "explored": "explored"}.items()
    }
    caption = f"The first 300 decisions after {rows:,} logged rows, {len(found[f'{names[0]}, decide'])} problems"
    return part(
        claim, "A trained model exploits from its first decision", statistics, table(caption, "policy", columns)
    )


def _closed(found: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> Part:
    low, high = COUNT
    claim = our_claim(
        "evidence-closed",
        "In a closed environment with prompt rewards evidence explores p (1 + log(1 + (T - p) / q)) steps.",
        "What n_a rows are after t steps if each is explored with weight exp(1 - n_a / q). Up to rounding p log K more "
        f"than p/t explores, whose first rows come K times as slowly. At p = {Q:g} K: {low:g} to {high:g} times that.",
    )
    counts = _each(found, "evidence, explored", "formula", rng)
    beside = _each(found, "evidence, explored", "steps, explored", rng)
    regrets = _each(found, "evidence", "steps", rng)
    statistics = [Statistic(family, each, Criterion("within", low, high)) for family, each in counts.items()]
    columns = {"explored / formula": counts, "explored / p/t's": beside, "regret / p/t's": regrets}
    caption = f"Evidence at p = {Q:g} K, T = {horizon:,}, {_problems(found)}"
    return part(
        claim, "A closed environment is explored as the formula says", statistics, table(caption, "family", columns)
    )


def _floor(found: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "evidence-floor",
        f"A floor of {FLOOR:g} costs at most that share of what random play loses.",
        f"The regret that it adds at p = {Q:g} K over {FLOOR:g} times that of random play: in no family does the "
        f"interval lie wholly above {PRICE:g}. It may be less, since explored rows are learned.",
    )
    price = {family: ratio(one["floor"] - one["evidence"], FLOOR * one["random"], rng) for family, one in found.items()}
    over = _each(found, "floor", "evidence", rng)
    above = sum(each.low > PRICE for each in price.values())
    narrowest = min(price.values(), key=lambda each: each.high - each.low)
    statistics = (
        Statistic(f"intervals above {PRICE:g}, of {len(price)}", certain(above), Criterion("within", 0, 0)),
        Statistic("the price where it is known best", narrowest, Criterion("below", PRICE)),
    )
    columns = {
        "without": {family: one["evidence"].mean() for family, one in found.items()},
        "with": {family: one["floor"].mean() for family, one in found.items()},
        "with / without": over,
        "added, in shares of the floor's": price,
    }
    caption = f"The price of floor = {FLOOR:g}, T = {horizon:,}, {_problems(found)}"
    return part(claim, "A floor costs at most its share", statistics, table(caption, "family", columns))


def _auto(found: Mapping[str, Columns], horizon: int, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "evidence-auto",
        f"Where one arm is far noisier than the others, a p that sets itself regrets at most {AUTO:g} times as much as "
        "the best p.",
        f"The best of p / K = {', '.join(f'{factor:g}' for factor in FIXED)} by evidence, chosen and judged on the "
        f"same runs; told no horizon. Other families are printed. Control: p = {FIXED[0]:g} K is above that.",
    )
    best = _best_p(found)
    over = {
        name: {family: ratio(one[name], one[best[family]], rng) for family, one in found.items()}
        for name in ("auto", "auto, told T", "default")
    }
    small = f"p = {FIXED[0]:g} K"
    noisy = found[NOISY_ARM]
    statistics = (
        Statistic(f"auto, {NOISY_ARM}", over["auto"][NOISY_ARM], Criterion("below", AUTO)),
        Statistic(small, ratio(noisy[small], noisy[best[NOISY_ARM]], rng), Criterion("above", AUTO), Role.CONTROL),
    )
    columns: dict[str, Mapping[str, Estimate | str]] = {
        "best fixed p by evidence": {f: f"{one[best[f]].mean():,.0f} ({best[f]})" for f, one in found.items()},
        **{f"{name} / that": each for name, each in over.items()},
    }
    caption = f"Regret over that of the best fixed p, T = {horizon:,}, {len(noisy['auto'])} problems of each family"
    return part(claim, "A $p$ that sets itself copes with a noisy arm", statistics, table(caption, "family", columns))


def _best_p(found: Mapping[str, Columns]) -> dict[str, str]:
    return {f: min((p for p in one if p.startswith("p = ")), key=lambda p: one[p].mean()) for f, one in found.items()}


def _problems(found: Mapping[str, Columns]) -> str:
    return f"{len(next(iter(found.values()))['random'])} problems of each family"
