"""Long contexts: adding features must not hurt.

Router: the prompts of `armlet data fetch router`, embedded by MiniLM, are sent to one of three language models; what is
earned is quality - 20 dollars of cost. The context is nothing, the first 8, 32 or 128 principal components (fitted on
the validation half), or all 384 numbers. The test half is played, in several orders.
Noise: 0, 100 and 1,000 columns of standard normal noise are appended to the tables of the bake-off.
The default is `Bandit()` with nothing set. Both collections must have been fetched; MiniLM is installed if needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from armlet import datasets
from armlet.bandit import Bandit
from armlet.datasets.answers import Half
from armlet.inference.intervals import Estimate
from armlet.parallel import Seeds
from armlet.policies import Greedy, LinUCB
from armlet.report import plots
from armlet.simulation.lab import Arrays, Lab, Scale
from armlet.types import Float64, Int64, Policy
from armlet_lab.contests import contest, embeddings
from armlet_lab.contests.contest import Part, mean, our_claim, part, play_all, table
from armlet_lab.contests.embeddings import SIZE, Halves
from armlet_lab.runner.experiment import Criterion, Experiment, Findings, Role, Statistic, certain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NONE: Final = -1  # features: every context is a 1
KEEL: Final = "keel"
DEFAULT: Final = "default"
PLAYERS: Final[dict[str, Policy | None]] = {DEFAULT: None, "LinUCB": LinUCB(), "greedy": Greedy()}
BARS: Final = {8: 0.006, 32: 0.006, 128: 0.003, SIZE: 0.003}  # of utility, below no context
NOISE: Final = (0, 100, 1000)
WORSE: Final = 0.01  # of error, above no context
RIVALS_UP_TO: Final = 100  # columns of noise: with 1,000 only the default plays
CONTROL: Final = "LinUCB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to play."""

    half: Half = "test"
    orders: int = 4  # of the prompts
    long: int = 2  # orders with all 384 numbers
    tables: tuple[str, ...] = (
        *("balanced/iris", "balanced/wine", "balanced/vehicle"),
        *("imbalanced/glass1", "imbalanced/yeast1"),
    )  # KIND/NAME; empty for all
    rows: int = 300  # of a table, at most
    shuffles: int = 1  # of a table


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(),
    "full": Settings(orders=20, long=20, tables=(), rows=1000, shuffles=2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(contest.Task):
    """One policy in one order (`first`), on the router's prompts or on a table."""

    features: int  # principal components, or columns of noise; NONE for no context
    data: str  # other embeddings or other tables: another task


def run(lab: Lab) -> Findings:
    """Run the contest at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play the prompts, then the tables, and judge."""
    rng = lab.rng("intervals")
    return Findings.of([_router(settings, lab, rng), *_noise(settings, lab, rng)])


EXPERIMENT: Final = Experiment("dimensions", "Long contexts: embeddings of prompts, and columns of noise", run)


def earn(X: Float64, rewards: Float64, order: Int64, player: str, seed: int) -> Float64:
    """Play rows in an order, learning from each choice; return what each paid, (n,)."""
    bandit = Bandit(arms=range(rewards.shape[1]), dim=X.shape[1], policy=PLAYERS[player], seed=seed)
    earned = np.empty(len(order))
    for place, row in enumerate(order.tolist()):
        decision = bandit.decide(X[row])
        earned[place] = rewards[row, int(decision.arm)]
        bandit.learn(decision, earned[place])
    return earned


# --- the router ------------------------------------------------------------------------------------------------------


class Routed(NamedTuple):
    """Utility a prompt, by order."""

    whole: Float64  # (orders,)
    late: Float64  # over the second half of the prompts


@lru_cache(maxsize=1)
def _embedded() -> Halves:
    return embeddings.router_embeddings()


@lru_cache(maxsize=len(BARS))
def _components(dim: int) -> Halves:
    return _embedded() if dim == SIZE else _embedded().components(dim)


def contexts(half: Half, features: int) -> Float64:
    """Return the prompts of a half in so many numbers each: (n, d)."""
    X: Float64 = getattr(_components(abs(features)), half)
    return np.ones((len(X), 1)) if features == NONE else X


def play_prompts(task: Task) -> Arrays:
    """Return the mean utility of one order of prompts, and that of its second half."""
    half: Half = "test" if task.environment == "test" else "validation"
    X, rewards = contexts(half, task.features), datasets.router(half).utility()
    order = task.seeds.rng("order of prompts", task.first).permutation(len(X)).astype(np.int64)
    earned = earn(X, rewards, order, task.player, task.seeds.seed("coins of prompts", task.first))
    return {"whole": np.array([earned.mean()]), "late": np.array([earned[len(order) // 2 :].mean()])}


def _router(settings: Settings, lab: Lab, rng: np.random.Generator) -> Part:
    data = _embedded().digest  # made now, not by every worker
    template = partial(Task, seeds=lab.seeds, environment=settings.half, horizon=0, data=data)
    entries = {
        (player, features): settings.long if features == SIZE else settings.orders
        for features in (NONE, *BARS)
        for player in (PLAYERS if features != NONE else [DEFAULT])
    }
    tasks = {
        (player, features): [template(player=player, features=features, first=order) for order in range(orders)]
        for (player, features), orders in entries.items()
    }
    label = f"Dimensions: {settings.orders} orders of the prompts"
    found = {
        place: Routed(columns["whole"], columns["late"])
        for place, columns in play_all(lab, "prompts", play_prompts, tasks, label).items()
    }
    return judge_router(found, datasets.router(settings.half).utility(), rng)


def below(found: Mapping[tuple[str, int], Routed], player: str, features: int, rng: np.random.Generator) -> Estimate:
    """Return utility minus that of the default without context, in the same orders."""
    with_them = found[player, features].whole
    lost = with_them - found[DEFAULT, NONE].whole[: len(with_them)]
    return certain(float(lost.mean())) if len(lost) < 2 else mean(lost, rng)


def judge_router(found: Mapping[tuple[str, int], Routed], utility: Float64, rng: np.random.Generator) -> Part:
    """Hold the default with every number of features against no context."""
    lost = {(player, d): below(found, player, d, rng) for player in PLAYERS for d in BARS}
    statistics = [
        Statistic(f"utility with {d} features - no context", lost[DEFAULT, d], Criterion("above", -bar))
        for d, bar in BARS.items()
    ]
    control = Statistic(
        f"{CONTROL} with {SIZE} features - no context",
        lost[CONTROL, SIZE],
        Criterion("below", -BARS[SIZE]),
        Role.CONTROL,
    )
    uniform, best, oracle = utility.mean(), utility.mean(axis=0).max(), utility.max(axis=1).mean()
    none = found[DEFAULT, NONE]
    columns = {
        "no context": {DEFAULT: f"{none.whole.mean():.4f}", f"{DEFAULT}, second half": f"{none.late.mean():.4f}"},
        **{
            f"{d}": {
                row: f"{run.mean():.4f}"
                for player in PLAYERS
                for row, run in zip((player, f"{player}, second half"), found[player, d], strict=True)
            }
            for d in BARS
        },
    }
    rows = list(columns[f"{SIZE}"])
    columns["no context"] = {row: columns["no context"].get(row, "") for row in rows}
    differences = {player: {f"{d}": f"{lost[player, d]:.4f}" for d in BARS} for player in PLAYERS}
    orders = len(none.whole)
    claim = our_claim(
        "dimensions-router",
        f"Embeddings of any length cost the default at most {BARS[SIZE]} of utility ({BARS[8]} with 8 or 32 features).",
        "Against the default without context, in the same orders. Control: LinUCB loses more with all features.",
    )
    figure = lines_of(
        {
            **{player: [none.whole.mean(), *(found[player, d].whole.mean() for d in BARS)] for player in PLAYERS},
            "uniform": [uniform] * (len(BARS) + 1),
        },
        ticks=["none", *map(str, BARS)],
        xlabel="features of a prompt",
        ylabel="utility a prompt",
    )
    return part(
        claim,
        "Real prompts, three language models",
        [*statistics, control],
        table("Utility a prompt, learning included, by features", "policy", columns),
        table("Utility minus that of the default without context", "features", differences),
        notes=(
            f"{len(utility):,} prompts in {orders} orders ({len(found[DEFAULT, SIZE].whole)} with all {SIZE} numbers); "
            f"intervals are over orders of the same prompts. Uniform play earns {uniform:.4f}, the best model for all "
            f"{best:.4f}, the best model of every prompt {oracle:.4f}.",
        ),
        pictures=[
            plots.picture(
                figure,
                key=claim.key,
                alt="Utility of each policy against the number of features",
                caption="Utility a prompt against the number of features; 'none' is the default without context.",
            )
        ],
    )


# --- columns of noise ------------------------------------------------------------------------------------------------


class Errors(NamedTuple):
    """The share of mistakes on every table of a kind, (tables,), by policy and columns of noise."""

    by: Mapping[tuple[str, int], Float64]
    rows: int  # played, on average


def play_table(task: Task) -> Arrays:
    """Return the share of mistakes in one order of a table with columns of noise."""
    given = datasets.load(KEEL, task.environment)
    place = (task.environment, task.first)
    order = task.seeds.rng("shuffle", *place).permutation(len(given))[: task.horizon].astype(np.int64)
    X = noisy(given.X, task.features, task.seeds, *place)
    earned = earn(X, given.rewards(), order, task.player, task.seeds.seed("coins of a shuffle", *place))
    return {"error": np.array([1 - earned.mean()])}


def noisy(X: Float64, columns: int, seeds: Seeds, *which: int | str) -> Float64:
    """Append columns of noise, or leave nothing but a 1.

    Examples
    --------
    >>> noisy(np.zeros((5, 2)), 3, Seeds(1), "one").shape, noisy(np.zeros((5, 2)), NONE, Seeds(1), "one").shape
    ((5, 5), (5, 1))
    """
    if columns == NONE:
        return np.ones((len(X), 1))
    return np.column_stack([X, seeds.rng("columns of noise", *which).standard_normal((len(X), columns))])


def _noise(settings: Settings, lab: Lab, rng: np.random.Generator) -> list[Part]:
    names = settings.tables or datasets.names(KEEL)
    data = datasets.collection(KEEL).sha256[:16]
    template = partial(Task, seeds=lab.seeds, horizon=settings.rows, data=data)
    entries = [
        (player, columns)
        for columns in (NONE, *NOISE)
        for player in (PLAYERS if 0 <= columns <= RIVALS_UP_TO else [DEFAULT])
    ]
    tasks = {
        (name, entry): [
            template(environment=name, player=entry[0], features=entry[1], first=shuffle)
            for shuffle in range(settings.shuffles)
        ]
        for entry in reversed(entries)  # the longest first
        for name in names
    }
    label = f"Dimensions: noise on {len(names)} tables"
    found = play_all(lab, "tables", play_table, tasks, label)
    parts = []
    for kind in dict.fromkeys(name.partition("/")[0] for name in names):
        mine = [name for name in names if name.startswith(f"{kind}/")]
        by = {entry: np.array([found[name, entry]["error"].mean() for name in mine]) for entry in entries}
        rows = [min(len(datasets.load(KEEL, name)), settings.rows) for name in mine]
        parts.append(judge_noise(kind, Errors(by, round(np.mean(rows))), settings, rng))
    return parts


def judge_noise(kind: str, found: Errors, settings: Settings, rng: np.random.Generator) -> Part:
    """Hold the default on tables with noise against itself without any feature."""
    by = found.by
    none, n = by[DEFAULT, NONE], len(by[DEFAULT, NONE])

    def minus(entry: tuple[str, int], other: Float64) -> Estimate:
        lost = by[entry] - other
        return certain(float(lost.mean())) if n < 2 else mean(lost, rng)

    claim = our_claim(
        f"dimensions-noise-{kind}",
        f"With 100 or 1,000 columns of noise the default errs no more than without any feature ({kind} tables).",
        f"Its mean error over tables is less than {WORSE} above. Control: its error without noise is lower.",
    )
    statistics = [
        Statistic(
            f"error with {c:,} columns of noise - no context", minus((DEFAULT, c), none), Criterion("below", WORSE)
        )
        for c in NOISE[1:]
    ]
    control = Statistic(
        "error without noise - no context", minus((DEFAULT, 0), none), Criterion("below", 0.0), Role.CONTROL
    )
    rows = [f"{c:,}" for c in NOISE]
    columns: dict[str, dict[str, str]] = {
        player: {
            row: f"{by[player, c].mean():.4f}" if (player, c) in by else "" for row, c in zip(rows, NOISE, strict=True)
        }
        for player in PLAYERS
    }
    columns["default - no noise"] = {
        row: f"{minus((DEFAULT, c), by[DEFAULT, 0]):.4f}" if c else "" for row, c in zip(rows, NOISE, strict=True)
    }
    columns["default - no context"] = {
        row: f"{minus((DEFAULT, c), none):.4f}" for row, c in zip(rows, NOISE, strict=True)
    }
    columns["tables with more / fewer mistakes than without noise"] = {
        row: "{} / {}".format(*_counts(by[DEFAULT, c], by[DEFAULT, 0])) if c else ""
        for row, c in zip(rows, NOISE, strict=True)
    }
    drawn = {player: [by[player, c].mean() for c in NOISE if (player, c) in by] for player in PLAYERS}
    figure = lines_of(
        {**drawn, "no context": [none.mean()] * len(NOISE)}, ticks=rows, xlabel="columns of noise", ylabel="error"
    )
    return part(
        claim,
        f"Columns of pure noise, {kind} tables",
        [*statistics, control],
        table("Error, learning included, by columns of noise", "columns", columns),
        notes=(
            f"{n} tables, {settings.shuffles} orders of each, at most {settings.rows:,} rows ({found.rows:,} on "
            f"average); intervals are over tables. Without any feature the default errs in {none.mean():.4f}.",
        ),
        pictures=[
            plots.picture(
                figure,
                key=claim.key,
                alt=f"Error of each policy against columns of noise, {kind} tables",
                caption=f"Error against columns of noise: means over {n} {kind} tables.",
            )
        ],
    )


def _counts(one: Float64, other: Float64) -> tuple[int, int]:
    return int((one > other).sum()), int((one < other).sum())


def lines_of(series: Mapping[str, Sequence[float]], *, ticks: Sequence[str], xlabel: str, ylabel: str) -> Figure:
    """Draw one line for each name over steps that are named; a short line ends early."""
    with plots.frame(height=3.2, labels=list(series)) as (figure, axes):
        for index, (name, values) in enumerate(series.items()):
            axes.plot(
                range(len(values)),
                values,
                color=plots.COLOURS[index % 6],
                marker=plots.MARKERS[index % 6],
                linestyle=plots.DASHES[index % 6],
                label=name,
            )
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.yaxis.set_major_formatter(lambda value, _: plots.short(value))
        plots.legend(figure, axes)
    return figure
