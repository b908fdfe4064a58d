"""Long contexts: adding features must not hurt.

Router: the prompts of `armlet data fetch router`, embedded by MiniLM, are sent to one of three language models; what is
earned is quality - 20 dollars of cost. The context is nothing, the first 8, 32 or 128 principal components (fitted on
the validation half), or all 384 numbers. The test half is played, in several orders; then both halves as one.
Noise: 0, 100 and 1,000 columns of standard normal noise are appended to the tables of the bake-off.
The default is `Bandit()` with nothing set. Both collections must have been fetched; MiniLM is installed if needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from armlet import datasets
from armlet.bandit import Bandit
from armlet.parallel import Seeds
from armlet.policies import Greedy, LinUCB
from armlet.report import plots
from armlet.report.document import Table
from armlet.report.plots import Picture
from armlet.simulation.lab import Arrays, Lab, Scale
from armlet.types import Estimate, Float64, Int64, Policy
from armlet_lab.contests import contest, embeddings, vowpal
from armlet_lab.contests.contest import Part, mean, our_claim, part, play_all, table
from armlet_lab.contests.embeddings import SIZE, Halves
from armlet_lab.runner.experiment import Criterion, Experiment, Findings, Role, Statistic, certain, conclude

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Which: TypeAlias = Literal["validation", "test", "all"]
NONE: Final = -1  # features: every context is a 1
KEEL: Final = "keel"
DEFAULT: Final = "default"
PLAYERS: Final[dict[str, Policy | None]] = {DEFAULT: None, "LinUCB": LinUCB(), "greedy": Greedy()}
BARS: Final = {8: 0.006, 32: 0.006, 128: 0.003, SIZE: 0.003}  # of utility, below no context
NOISE: Final = (0, 100, 1000)
WORSE: Final = 0.01  # of error, above no context
RIVALS_UP_TO: Final = 100  # columns of noise: with 1,000 only the default plays
CONTROL: Final = "LinUCB"
VOWPAL: Final = "VW RegCB-opt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to play."""

    prompts: tuple[Which, ...] = ("test", "all")  # the first is judged as written, others as a reading
    orders: int = 4  # of the prompts
    long: int = 2  # orders with all 384 numbers
    tables: tuple[str, ...] = (
        *("balanced/iris", "balanced/wine", "balanced/vehicle"),
        *("imbalanced/glass1", "imbalanced/yeast1"),
    )  # KIND/NAME; empty for all
    rows: int = 300  # of a table, at most
    rivals: tuple[str, ...] = ()  # besides ours, on the prompts


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(),
    "full": Settings(orders=20, long=20, tables=(), rows=500, rivals=(VOWPAL,)),
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
    return judge(settings, _router(settings, lab), _noise(settings, lab), lab.rng("intervals"))


def judge(
    settings: Settings, played: Sequence[Routed], kinds: Mapping[str, Errors], rng: np.random.Generator
) -> Findings:
    """Hold long contexts against none."""
    return Findings.of([judge_router(played, rng), judge_noise(kinds, settings, rng)])


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
    """Utility a prompt of some prompts, (orders,), by policy and features."""

    which: Which
    utility: Float64  # (n, K), of every model
    whole: Mapping[tuple[str, int], Float64]
    late: Mapping[tuple[str, int], Float64]  # over the second half of a run

    @property
    def words(self) -> str:
        """These prompts, in words."""
        return "all prompts" if self.which == "all" else f"{self.which} half"

    @property
    def players(self) -> list[str]:
        """Who played."""
        return list(dict.fromkeys(player for player, _ in self.whole))

    def gained(self, rng: np.random.Generator) -> dict[tuple[str, int], Estimate]:
        """Return utility minus that of the default without context, in the same orders."""
        none = self.whole[DEFAULT, NONE]
        return {entry: _mean(found - none[: len(found)], rng) for entry, found in self.whole.items()}

    def tables(self, gained: Mapping[tuple[str, int], Estimate]) -> list[Table]:
        """Return utility by policy and features, and what it is short of no context."""
        heads = {"no context": NONE, **{str(d): d for d in BARS}}

        def utility(runs: Mapping[tuple[str, int], Float64]) -> dict[str, dict[str, str]]:
            return {
                head: {who: f"{runs[who, d].mean():.4f}" if (who, d) in runs else "" for who in self.players}
                for head, d in heads.items()
            }

        short = {who: {str(d): f"{gained[who, d]:.4f}" for d in BARS} for who in self.players}
        return [
            table(f"Utility a prompt by features, {self.words}, learning included", "policy", utility(self.whole)),
            table(f"The same over the second half of every run, {self.words}", "policy", utility(self.late)),
            table(f"Utility minus that of the default without context, {self.words}", "features", short),
        ]

    def note(self) -> str:
        """Return what was played, and what fixed choices earn."""
        orders, long = len(self.whole[DEFAULT, NONE]), len(self.whole[DEFAULT, SIZE])
        mean_of_models = self.utility.mean(axis=0)
        return (
            f"{self.words.capitalize()}: {len(self.utility):,} prompts in {orders} orders ({long} with all {SIZE} "
            f"numbers); intervals are over orders of the same prompts. Uniform play earns {self.utility.mean():.4f}, "
            f"the best model for all {mean_of_models.max():.4f}, the best model of every prompt "
            f"{self.utility.max(axis=1).mean():.4f}."
        )

    def picture(self, key: str) -> Picture:
        """Return utility against the number of features, one line a policy."""
        none = float(self.whole[DEFAULT, NONE].mean())
        drawn = {who: [none, *(float(self.whole[who, d].mean()) for d in BARS)] for who in self.players}
        figure = lines_of(
            {**drawn, "uniform": [float(self.utility.mean())] * (len(BARS) + 1)},
            ticks=["none", *map(str, BARS)],
            xlabel="features of a prompt",
            ylabel="utility a prompt",
        )
        caption = f"Utility by number of features, {self.words}; 'none' is the default without context."
        return plots.picture(
            figure, key=f"{key}-{self.which}", alt=f"Utility by features, {self.words}", caption=caption
        )


@lru_cache(maxsize=1)
def _embedded() -> Halves:
    return embeddings.router_embeddings()


@lru_cache(maxsize=len(BARS))
def _components(dim: int) -> Halves:
    return _embedded() if dim == SIZE else _embedded().components(dim)


def contexts(which: Which, features: int) -> Float64:
    """Return prompts in so many numbers each: (n, d)."""
    halves = _components(abs(features))
    X = np.concatenate(halves) if which == "all" else halves.test if which == "test" else halves.validation
    return np.ones((len(X), 1)) if features == NONE else X


def utilities(which: Which) -> Float64:
    """Return what every model's answer to these prompts is worth: (n, K)."""
    validation, test = datasets.router("validation").utility(), datasets.router("test").utility()
    return np.concatenate([validation, test]) if which == "all" else test if which == "test" else validation


def play_prompts(task: Task) -> Arrays:
    """Return the mean utility of one order of prompts, and that of its second half."""
    which = cast("Which", task.environment)
    X, rewards = contexts(which, task.features), utilities(which)
    order = task.seeds.rng("order of prompts", which, task.first).permutation(len(X)).astype(np.int64)
    seed = task.seeds.seed("coins of prompts", which, task.first)
    if task.player == VOWPAL:
        arms = vowpal.choices(X[order], 1 - rewards[order], vowpal.USUAL[0].options, seed=seed % 2**31)
        earned = rewards[order, arms]
    else:
        earned = earn(X, rewards, order, task.player, seed)
    return {"whole": np.array([earned.mean()]), "late": np.array([earned[len(order) // 2 :].mean()])}


def _router(settings: Settings, lab: Lab) -> list[Routed]:
    data = _embedded().digest  # made now, not by every worker
    if VOWPAL in settings.rivals:
        vowpal.prepare(print)
    template = partial(Task, seeds=lab.seeds, horizon=0, data=data)
    entries = [(DEFAULT, NONE), *((player, d) for d in BARS for player in (*PLAYERS, *settings.rivals))]
    tasks = {
        (which, player, d): [
            template(environment=which, player=player, features=d, first=order)
            for order in range(settings.long if d == SIZE else settings.orders)
        ]
        for which in settings.prompts
        for player, d in entries
    }
    label = f"Dimensions: {settings.orders} orders of the prompts"
    found = play_all(lab, "prompts", play_prompts, tasks, label)
    return [
        Routed(
            which,
            utilities(which),
            {entry: found[which, *entry]["whole"] for entry in entries},
            {entry: found[which, *entry]["late"] for entry in entries},
        )
        for which in settings.prompts
    ]


def judge_router(played: Sequence[Routed], rng: np.random.Generator) -> Part:
    """Hold the default with every number of features against itself without context."""
    gained = [each.gained(rng) for each in played]
    statistics = [
        Statistic(
            f"utility, {d} features - no context, {each.words}",
            gained[place][DEFAULT, d],
            Criterion("above", -bar),
            Role.READING if place else Role.WRITTEN,
        )
        for place, each in enumerate(played)
        for d, bar in BARS.items()
    ]
    first, lost = played[0], Criterion("below", -BARS[SIZE])
    name = f"{CONTROL}, {SIZE} features - no context, {first.words}"
    claim = our_claim(
        "dimensions-router",
        f"Embeddings of any length cost the default at most {BARS[SIZE]} of utility ({BARS[8]} with 8 or 32 features).",
        "Against the default without context, in the same orders; as written on the test half alone, as a reading on "
        f"all prompts, which are twice as many. Control: {CONTROL} loses more with all {SIZE}.",
    )
    return part(
        claim,
        "Long embeddings of real prompts cost little",
        [*statistics, Statistic(name, gained[0][CONTROL, SIZE], lost, Role.CONTROL)],
        *(shown for each, mine in zip(played, gained, strict=True) for shown in each.tables(mine)),
        notes=[each.note() for each in played],
        pictures=[each.picture(claim.key) for each in played],
        conclusions=conclude("embeddings of any length cost the default little", "long embeddings cost the default"),
    )


def _mean(column: Float64, rng: np.random.Generator) -> Estimate:
    return certain(float(column.mean())) if len(column) < 2 else mean(column, rng)


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


def _noise(settings: Settings, lab: Lab) -> dict[str, Errors]:
    names = settings.tables or datasets.names(KEEL)
    data = datasets.collection(KEEL).sha256[:16]
    template = partial(Task, seeds=lab.seeds, horizon=settings.rows, data=data)
    entries = [
        (player, columns)
        for columns in (NONE, *NOISE)
        for player in (PLAYERS if 0 <= columns <= RIVALS_UP_TO else [DEFAULT])
    ]
    tasks = {
        (name, entry): [template(environment=name, player=entry[0], features=entry[1])]
        for entry in reversed(entries)  # the longest first
        for name in names
    }
    label = f"Dimensions: noise on {len(names)} tables"
    found = play_all(lab, "tables", play_table, tasks, label)
    kinds = {}
    for kind in dict.fromkeys(name.partition("/")[0] for name in names):
        mine = [name for name in names if name.startswith(f"{kind}/")]
        by = {entry: np.array([found[name, entry]["error"].mean() for name in mine]) for entry in entries}
        rows = [min(len(datasets.load(KEEL, name)), settings.rows) for name in mine]
        kinds[kind] = Errors(by, round(float(np.mean(rows))))
    return kinds


def judge_noise(kinds: Mapping[str, Errors], settings: Settings, rng: np.random.Generator) -> Part:
    """Hold the default on tables with noise against itself without any feature."""
    above = {
        kind: {entry: _mean(errors - found.by[DEFAULT, NONE], rng) for entry, errors in found.by.items()}
        for kind, found in kinds.items()
    }
    statistics = [
        Statistic(f"error, {c:,} columns of noise - no context, {kind}", mine[DEFAULT, c], Criterion("below", WORSE))
        for kind, mine in above.items()
        for c in NOISE[1:]
    ]
    name = f"{CONTROL}, {RIVALS_UP_TO} columns of noise - no context, imbalanced"
    lost = above.get("imbalanced", {}).get((CONTROL, RIVALS_UP_TO))
    claim = our_claim(
        "dimensions-noise",
        "With 100 or 1,000 columns of noise the default errs no more than without any feature.",
        f"Its mean error over tables is less than {WORSE} above that. Control: {CONTROL} errs more with a rare class.",
    )
    return part(
        claim,
        "Columns of noise cost little",
        [*statistics, Statistic(name, lost, Criterion("above", WORSE), Role.CONTROL)],
        *(_noise_table(kind, found, above[kind], rng) for kind, found in kinds.items()),
        notes=[_noise_note(kind, found, settings) for kind, found in kinds.items()],
        pictures=[_noise_picture(kind, found) for kind, found in kinds.items()],
        conclusions=conclude("columns of noise do it no harm", "columns of noise make it err more"),
    )


def _noise_table(
    kind: str, found: Errors, above: Mapping[tuple[str, int], Estimate], rng: np.random.Generator
) -> Table:
    by = found.by
    columns: dict[str, dict[int, str]] = {
        **{who: {c: f"{by[who, c].mean():.4f}" if (who, c) in by else "" for c in NOISE} for who in PLAYERS},
        "default - no context": {c: f"{above[DEFAULT, c]:.4f}" for c in NOISE},
        "default - no noise": {c: f"{_mean(by[DEFAULT, c] - by[DEFAULT, 0], rng):.4f}" if c else "" for c in NOISE},
        "tables worse / better": {c: _counts(by[DEFAULT, c], by[DEFAULT, 0]) if c else "" for c in NOISE},
    }
    named = {head: {f"{c:,}": cell for c, cell in cells.items()} for head, cells in columns.items()}
    return table(f"Error on {kind} tables, learning included, by columns of noise", "columns", named)


def _noise_note(kind: str, found: Errors, settings: Settings) -> str:
    none = found.by[DEFAULT, NONE]
    return (
        f"{len(none)} {kind} tables, one random order of each, at most {settings.rows:,} rows "
        f"({found.rows:,} on average); intervals are over tables. Without any feature the default errs in "
        f"{none.mean():.4f}. Worse and better: than the default without noise."
    )


def _noise_picture(kind: str, found: Errors) -> Picture:
    by, none = found.by, found.by[DEFAULT, NONE]
    drawn = {who: [by[who, c].mean() for c in NOISE if (who, c) in by] for who in PLAYERS}
    figure = lines_of(
        {**drawn, "no context": [none.mean()] * len(NOISE)},
        ticks=[f"{c:,}" for c in NOISE],
        xlabel="columns of noise",
        ylabel="error",
    )
    alt, caption = f"Error by columns of noise, {kind} tables", f"Error against columns of noise: {kind} tables."
    return plots.picture(figure, key=f"dimensions-noise-{kind}", alt=alt, caption=caption)


def _counts(one: Float64, other: Float64) -> str:
    return f"{(one > other).sum()} / {(one < other).sum()}"


def lines_of(series: Mapping[str, Sequence[float]], *, ticks: Sequence[str], xlabel: str, ylabel: str) -> Figure:
    """Draw one line for each name over steps that are named; a short line ends early."""
    with plots.frame(height=3.2, labels=list(series)) as (figure, axes):
        for index, (name, values) in enumerate(series.items()):
            style = plots.line_style(index) | plots.point_style(index)
            axes.plot(range(len(values)), values, label=name, **style)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        axes.yaxis.set_major_formatter(lambda value, _: plots.short(value))
        plots.legend(figure, axes)
    return figure
