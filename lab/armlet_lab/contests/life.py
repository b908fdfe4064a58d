"""What goes wrong in life, a fault a claim: newcomers, silent arms, blocks, contexts that avoid optimism or come late.

Each fault has environments that were made to show it, a number that says how bad a run was, and a bar that was fixed
before the published seed was played: they show whether a fault is there, not how common it is. The default is judged;
other policies stand next to it. A run draws its environment by its number, the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from armlet.environments import Environment, LinearArms
from armlet.environments.environment import Noise
from armlet.policies import OFUL, AutoEpsilonGreedy, LinUCB, OccasionalOptimism, ThompsonSampling
from armlet.simulation.lab import Arrays, Lab, Scale
from armlet.simulation.play import Player, draw, player, run_streams
from armlet.types import Bool, Estimate, Float64, Int64, Policy
from armlet_lab.contests import tournament
from armlet_lab.contests.contest import (
    Columns,
    Entry,
    Part,
    Task,
    mean,
    our_claim,
    part,
    play_all,
    ratio,
    table,
    tune_and_play,
)
from armlet_lab.contests.problems import Plain, ProblemLoop, bad_arm, draw_problem
from armlet_lab.runner.experiment import Criterion, Experiment, Findings, Statistic, conclude

DEFAULT, AS_GIVEN, OPTIMIST = "occasional optimism", "the same, units as given", "OFUL"
POLICIES: Final[dict[str, Policy]] = {
    DEFAULT: OccasionalOptimism(),
    AS_GIVEN: OccasionalOptimism(units="as given"),
    "LinUCB": LinUCB(),
    "Thompson sampling": ThompsonSampling(),
    "epsilon-greedy, p found": AutoEpsilonGreedy(),
    OPTIMIST: OFUL(noise_scale=0.1, theta_norm=1.0),
}
"""As they come, but OFUL: it knows the noise, and a bound on theta, of the environments with late contexts."""
USUAL: Final = (DEFAULT, "LinUCB", "Thompson sampling", "epsilon-greedy, p found")

NEWCOMER, SILENT, BLOCKS = "newcomer", "silent arm", "blocks of 1,000"
COMES: Final = 5000  # steps before the newcomer
DELAY: Final = 1000  # decisions before the reward of one comes, and so before the newcomer's first
PLAYS: Final = 100  # of the newcomer before its first reward comes, and of the silent arm
RARE: Final = 0.2  # how often the second context comes
CHANCE: Final = "by chance"
BETWEEN: Final = "between public steps"
HALF: Final = "from half-time on"
GAPS: Final = ((0.3, 0.0), (0.1, 0.3), (0.0, 0.1))  # what three arms pay in the first context and in the second
AVOIDED: Final = 2.0  # times the regret if it comes by chance
LATE: Final = {"the same arm is best": ((0.5, 0.6), (0.0, 0.3)), "another arm is best": ((0.5, 0.3), (0.0, 0.6))}
"""What two arms pay in the context of the first half of a run, and in that of the second half."""
LATER: Final = 3.0  # times OFUL's mistakes


class InBlocks(NamedTuple):
    """So many runs and steps with rewards in blocks, and what they may cost."""

    runs: int
    horizon: int
    bar: float  # times tuned Thompson sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """For every fault, how many runs and how many steps."""

    newcomer: tuple[int, int] = (40, COMES + DELAY)
    silent: tuple[int, int] = (40, 5000)
    blocks: tuple[InBlocks, ...] = (InBlocks(100, 10_000, 1.2), InBlocks(40, 100_000, 1.5))
    trials: int = 10  # of every constant of the rivals in blocks
    avoided: tuple[int, int] = (200, 30_000)
    late: tuple[int, int] = (10, 1_000_000)


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(
        newcomer=(2, COMES + DELAY),
        silent=(2, 2000),
        blocks=(InBlocks(2, 3000, 1.2),),
        trials=1,
        avoided=(4, 5000),
        late=(2, 20_000),
    ),
    "full": Settings(),
}


# --- environments ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer(Plain):
    """Arms with late rewards, the first of which comes later than the others."""

    delay: int = DELAY

    def present(self, n: int, *, start: int = 0) -> Bool:
        """Return which arms can be played, (n, K)."""
        here = np.ones((n, self.n_arms), dtype=np.bool_)
        here[:, 0] = np.arange(start, start + n) >= COMES
        return here


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoContexts(LinearArms):
    """Contexts e1 and e2; when the second comes is what is tried."""

    second: Literal["by chance", "between public steps", "from half-time on"]
    deviation: float = 1.0
    half: int = 0  # steps

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Self:  # noqa: ARG003
        """Return the one in which gaps are 0.2 and 0.3, and each context has a best arm of its own."""
        return cls(theta=GAPS, second=CHANCE)

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        """Draw contexts, (n, 2)."""
        t, u = np.arange(start + 1, start + n + 1), rng.random(n)
        comes = {
            CHANCE: u < RARE,
            BETWEEN: ~public_steps(t, RARE) & (u < RARE / (1 - RARE)),
            HALF: t > self.half,
        }[self.second]
        return np.eye(2)[comes.astype(np.int64)]

    def reward_noise(self) -> tuple[Noise, float]:
        """Return that noise is gaussian, and its deviation."""
        return "gaussian", self.deviation

    def describe(self) -> list[str]:
        """Describe it in one line."""
        return [f"two contexts, the second {self.second}: K = {self.n_arms}"]


def public_steps(t: Int64, share: float) -> Bool:
    """Return which steps a public function of t chooses, that mixes its bits as SplitMix64 does and knows no seed.

    Examples
    --------
    >>> np.flatnonzero(public_steps(np.arange(40), 0.2)).tolist()
    [0, 3, 5, 7, 33, 34]
    """
    bits = t.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    out: Bool = ((bits ^ (bits >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53 < share
    return out


# --- playing ---------------------------------------------------------------------------------------------------------

Make: TypeAlias = Callable[[Environment, Policy, int], Player]


def _steps(
    environment: Environment, policy: Policy, task: Task, run: int, make: Make = player
) -> tuple[Int64, Float64]:
    """Return the arm of every step of a run, and what each lost."""
    contexts, noise, coins = run_streams(task.seeds, task.environment, run)
    plays, arms, lost = make(environment, policy, coins), [], []
    for _, X, rewards, losses in draw(environment, contexts, noise, task.horizon):
        arms.append(plays.play(X, rewards)[0])
        lost.append(losses[np.arange(len(X)), arms[-1]])
    return np.concatenate(arms), np.concatenate(lost)


def _plays_of_newcomer(policy: Policy, task: Task, run: int) -> float:
    environment = Newcomer.affine(*bad_arm(task.seeds.rng("newcomers", run)))
    return float((_steps(environment, policy, task, run)[0][COMES:] == 0).sum())


def _plays_of_silent(policy: Policy, task: Task, run: int) -> float:
    environment = draw_problem(SILENT, task.seeds, run, task.horizon)
    return float((_steps(environment, policy, task, run, partial(ProblemLoop, silent=0))[0] == 0).sum())


def _regret(policy: Policy, task: Task, run: int) -> float:
    environment = TwoContexts(theta=GAPS, second=CHANCE if task.environment == CHANCE else BETWEEN)
    return float(_steps(environment, policy, task, run)[1].sum())


def _mistakes(policy: Policy, task: Task, run: int) -> float:
    environment = TwoContexts(theta=LATE[task.environment], second=HALF, deviation=0.1, half=task.horizon // 2)
    return float((_steps(environment, policy, task, run)[1] > 0).sum())


class LifeRow(NamedTuple):
    """A fault: how bad a run of a policy was, where, and who plays."""

    score: Callable[[Policy, Task, int], float]
    environments: tuple[str, ...]
    players: tuple[str, ...] = USUAL


ROWS: Final[dict[str, LifeRow]] = {
    "newcomer": LifeRow(_plays_of_newcomer, (NEWCOMER,)),
    "silent": LifeRow(_plays_of_silent, (SILENT,)),
    "avoided": LifeRow(_regret, (CHANCE, BETWEEN)),
    "late": LifeRow(_mistakes, tuple(LATE), tuple(POLICIES)),
}
"""By the name of the settings; rewards in blocks are played by the tournament."""


def play(task: Task) -> Arrays:
    """Play every run of a task, and return how bad each was, (runs,)."""
    row = next(row for row in ROWS.values() if task.environment in row.environments)
    return {"score": np.array([row.score(POLICIES[task.player], task, run) for run in task.draws])}


def run(lab: Lab) -> Findings:
    """Run the contest at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play what every fault asks for, and judge."""
    scores: dict[tuple[str, str], Float64] = {}  # by environment and player
    for name, row in ROWS.items():
        runs, T = getattr(settings, name)
        tasks = {
            (where, who): [Task(seeds=lab.seeds, environment=where, horizon=T, runs=runs, player=who)]
            for where in row.environments
            for who in row.players
        }
        found = play_all(lab, name, play, tasks, f"Life: {name}, {runs} runs")
        scores |= {place: columns["score"] for place, columns in found.items()}
    return judge(settings, scores, _play_blocks(settings, lab), lab.rng("resampling"))


def _play_blocks(settings: Settings, lab: Lab) -> Blocks:
    """Return the regret of every player of the tournament that is shown, by horizon: rivals tuned on other draws."""
    names = (DEFAULT, tournament.BEFORE, *tournament.RIVALS)
    entries = {
        (T, name): Entry(
            Task(seeds=lab.seeds, environment=BLOCKS, horizon=T, player=name),
            runs=runs,
            trials=settings.trials if name in tournament.RIVALS else 0,
            settings=len(tournament.RIVALS.get(name, "1")),
        )
        for runs, T, _ in settings.blocks
        for name in names
    }
    found = tune_and_play(lab, tournament.play, list(entries.values()), "Life", "rewards in blocks")
    return {T: {name: found[entries[T, name]].tuned for name in names} for _, T, _ in settings.blocks}


EXPERIMENT: Final = Experiment("life", "Life: newcomers, silent arms, blocks, and contexts that come late", run)


# --- judging ---------------------------------------------------------------------------------------------------------

Scores: TypeAlias = Mapping[tuple[str, str], Float64]
"""How bad each run was, (runs,), by environment and player."""
Blocks: TypeAlias = Mapping[int, Columns]
"""Regret by horizon and player."""


def judge(settings: Settings, scores: Scores, blocks: Blocks, rng: np.random.Generator) -> Findings:
    """Judge the default by every fault's bar, and show the others."""
    late = f"A bad arm that comes at step {COMES:,} while rewards are {DELAY:,} steps late does not take over."
    before = f"Of the {DELAY:,} decisions before its first reward, on average at most {PLAYS} take it."
    never = f"Of {settings.silent[1]:,} decisions, on average at most {PLAYS} take it."
    return Findings.of(
        [
            _plays("newcomer", late, before, _where(scores, NEWCOMER), rng),
            _plays("silent", "An arm whose rewards never come does not take over.", never, _where(scores, SILENT), rng),
            _in_blocks(settings, blocks, rng),
            _avoided(scores, rng),
            _later(settings, scores, rng),
        ]
    )


def _where(scores: Scores, environment: str) -> Columns:
    return {who: each for (where, who), each in scores.items() if where == environment}


def _spread(columns: Columns) -> Mapping[str, str]:
    return {who: f"{r.mean():,.1f} / {np.median(r):,.0f} / {r.max():,.0f}" for who, r in columns.items()}


def _caption(what: str, columns: Columns) -> str:
    return f"{what}: mean / median / worst of {len(columns[DEFAULT])} runs"


def _plays(name: str, says: str, reading: str, counts: Columns, rng: np.random.Generator) -> Part:
    claim = our_claim(f"life-{name}", says, reading)
    statistic = Statistic("plays of it", mean(counts[DEFAULT], rng), Criterion("below", PLAYS))
    shown = table(_caption("Plays of the bad arm", counts), "policy", {"plays": _spread(counts)})
    ends = conclude(f"the {name} arm does not take over", f"the {name} arm takes over")
    return part(claim, f"The {name} arm does not take over", [statistic], shown, conclusions=ends)


def _in_blocks(settings: Settings, blocks: Blocks, rng: np.random.Generator) -> Part:
    bars = " and ".join(f"{bar:g} times at T = {T:,}" for _, T, bar in settings.blocks)
    claim = our_claim(
        "life-blocks",
        "Where rewards come in blocks of 1,000, the default does nearly as well as tuned Thompson sampling.",
        f"Ten arms that pay 0.5 or 0.4, no features: mean regret at most {bars}.",
    )
    statistics: list[Statistic] = []
    columns: dict[str, Mapping[str, Estimate | str]] = {}
    for runs, T, bar in settings.blocks:
        over = {who: ratio(each, blocks[T]["Thompson sampling"], rng) for who, each in blocks[T].items()}
        statistics.append(Statistic(f"T = {T:,}", over[DEFAULT], Criterion("below", bar)))
        columns |= {f"T = {T:,}, {runs} runs": _spread(blocks[T]), f"over Thompson sampling, {T:,}": over}
    caption = "Regret: mean / median / worst run, and means over that of tuned Thompson sampling"
    return part(claim, "Rewards in blocks cost little", statistics, table(caption, "policy", columns))


def _avoided(scores: Scores, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "life-avoided",
        "Contexts that come between the steps of a public function of t cost little more than others of the same rate.",
        f"Mean regret at most {AVOIDED:g} times that with contexts by chance, at a rate of {RARE:g}. The function is "
        "that by which steps were optimistic before the coin was private.",
    )
    chance, between = _where(scores, CHANCE), _where(scores, BETWEEN)
    over = {who: ratio(each, chance[who], rng) for who, each in between.items()}
    statistic = Statistic(f"{BETWEEN} over {CHANCE}", over[DEFAULT], Criterion("below", AVOIDED))
    columns: dict[str, Mapping[str, Estimate | str]] = {CHANCE: _spread(chance), BETWEEN: _spread(between)}
    shown = table(_caption("Regret", chance), "policy", {**columns, "means, second over first": over})
    return part(claim, "Contexts that avoid optimism cost little", [statistic], shown)


def _later(settings: Settings, scores: Scores, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "life-late",
        "A context that is first seen at half-time is learned about as fast as by OFUL, in units as given and free.",
        f"Two arms, T = {settings.late[1]:,}: mean number of mistakes at most {LATER:g} times OFUL's, which is told "
        "the noise and a bound on theta.",
    )
    statistics: list[Statistic] = []
    columns: dict[str, Mapping[str, Estimate | str]] = {}
    for where in LATE:
        here = _where(scores, where)
        over = {who: ratio(each, here[OPTIMIST], rng) for who, each in here.items()}
        statistics += [
            Statistic(f"{where}: {who}", over[who], Criterion("below", LATER)) for who in (DEFAULT, AS_GIVEN)
        ]
        columns |= {where: _spread(here), f"{where}: over OFUL's": over}
    return part(
        claim,
        "A late context is learned about as fast as by OFUL",
        statistics,
        table(_caption("Mistakes", here), "policy", columns),
    )
