"""How often intervals of evaluations cover: eight environments, all looks, own values, coefficients, false alarms.

Every log is that of a bandit that decides and learns step by step. A task plays some logs of one environment, one after
the other; all that it finds follows from the seed, the environment and the number of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from armlet.evaluation.checks import Word
from armlet.evaluation.monitor import Checks
from armlet.evaluation.rows import HeldBlocks, Rows
from armlet.inference.intervals import bootstrap, mean_of_runs
from armlet.parallel import Seeds
from armlet.policies import Algorithm1, ContextualEpsilonGreedy, Uniform
from armlet.report.document import Table
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.simulation.play import run_streams
from armlet.testing.logs import play
from armlet.types import Float64
from armlet_lab.runner.experiment import (
    Claim,
    Criterion,
    Experiment,
    Findings,
    Role,
    Section,
    Statistic,
    Verdict,
    certain,
    conclude,
)
from armlet_lab.validation.coverage import coefficients
from armlet_lab.validation.coverage.environments import (
    BY_EVIDENCE,
    KINDS,
    OWN_ROWS,
    draw_environment,
    draw_steps,
    own_values,
    values,
)
from armlet_lab.validation.coverage.shares import (
    Columns,
    bias,
    covers,
    error,
    larger,
    mean_share,
    percent,
    picture_of,
    rmse_ratio,
    share,
)

A_TASK: Final = 25  # logs
WRONG: Final = 1.25  # times too much, or too little
TESTED: Final = 3_000  # rows of a log whose propensities are tested
TRUSTED: Final = {
    "Algorithm 1": Algorithm1(p=60, warmup="uniform"),
    "evidence": ContextualEpsilonGreedy(p=60),
}
EACH: Final = (0.91, 0.98)  # fixed intervals of level .95, in every environment
ALL: Final = (0.93, 0.97)  # and on average over environments
LEVEL: Final = 0.95
RMSE: Final = 0.8  # of explored rows, in the environment of the study
STUDY: Final = "p/t"
OWN: Final = 0.92
COEFFICIENTS: Final = (0.935, 0.965)
ACCUSED: Final = 1 / 200
FOUND: Final = 0.95
SPOILT: Final = "uniform, 25 % wrong on one arm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How many logs of each kind, and how long."""

    environments: tuple[str, ...] = tuple(KINDS)
    logs: int = 25
    own: int = 25
    runs: int = 25  # of coefficients
    tested: int = 25
    laws: tuple[str, ...] = ("p/t", "evidence", "auto")  # of exploring, for coefficients
    horizon: int = 1_000


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(environments=("p/t", "3 % clicks", "auto", "eligible sets")),
    "full": Settings(logs=600, own=600, runs=150, tested=200, horizon=5_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Some logs of one kind."""

    seeds: Seeds
    kind: str
    first: int
    logs: int
    horizon: int

    @property
    def numbers(self) -> range:
        """Those of its logs."""
        return range(self.first, self.first + self.logs)


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, then judge."""
    s = settings
    environments = _map(lab, "environments", play_environments, s.environments, s.logs, s.horizon)
    own = _map(lab, "own", play_own, ("noise", "signal"), s.own, OWN_ROWS)
    kinds = [f"{environment}, {law}" for environment in coefficients.ENVIRONMENTS for law in s.laws]
    slopes = _map(lab, "coefficients", play_coefficients, kinds, s.runs, coefficients.HORIZON)
    tested = _map(lab, "propensities", play_tested, (*TRUSTED, SPOILT), s.tested, TESTED)
    return judge(
        environments=environments,
        own=own,
        slopes=slopes,
        propensities=tested,
        horizon=s.horizon,
        rng=lab.rng("intervals"),
    )


def _map(
    lab: Lab, stage: str, function: Callable[[Task], Arrays], kinds: Sequence[str], logs: int, horizon: int
) -> dict[str, Columns]:
    """Run one stage in small tasks; give for each kind the columns over logs by name."""
    starts = range(0, logs, A_TASK)
    tasks = [
        Task(seeds=lab.seeds, kind=kind, first=first, logs=min(A_TASK, logs - first), horizon=horizon)
        for kind in kinds
        for first in starts
    ]
    found = lab.map(stage, function, tasks, f"Coverage: {stage}, {logs:,} logs of {len(kinds)} kinds")
    whole: dict[str, Columns] = {}
    for i, kind in enumerate(kinds):
        mine = found[i * len(starts) : (i + 1) * len(starts)]
        whole[kind] = {name: np.concatenate([as_floats(part[name]) for part in mine]) for name in mine[0]}
    return whole


def _columns(rows: Sequence[dict[str, float]]) -> Arrays:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def play_environments(task: Task) -> Arrays:
    """Value another policy by every log of one environment, in all ways that are compared."""
    environment = draw_environment(task.kind, task.seeds)
    environment = replace(environment, kind=replace(environment.kind, horizon=task.horizon))
    truth = environment.value()
    rows = []
    for log in task.numbers:
        points, rewards, eligible = draw_steps(environment, task.seeds.rng("steps", task.kind, log))
        seed = run_streams(task.seeds, task.kind, log).coins
        decided, _ = play(environment.kind.policy, environment.contexts[points], rewards, seed, eligible)
        bounds = (0.0, 1.0) if environment.kind.paid == "0 or 1" else None
        held = HeldBlocks(decided, range(environment.kind.n_arms), {"reward_range": bounds})
        rows.append({"truth": truth, **values(held, environment.target, truth)})
    return _columns(rows)


def play_own(task: Task) -> Arrays:
    """Value the model of every log by the very rows that it has learned from."""
    return _columns(
        [
            own_values(task.kind, task.seeds.rng("own", task.kind, log), task.seeds.seed("own coins", task.kind, log))
            for log in task.numbers
        ]
    )


def play_coefficients(task: Task) -> Arrays:
    """Return which coefficients every run's intervals cover."""
    name, _, law = task.kind.partition(", ")
    (environment,) = (each for each in coefficients.ENVIRONMENTS if each == name)
    rows = []
    for log in task.numbers:
        found = coefficients.run(environment, coefficients.POLICIES[law], task.seeds.seed("slopes", task.kind, log))
        rows.append(
            {
                "coefficients": float(found.coefficients.mean()),
                "contrasts": float(found.contrasts.all()),
                "anytime": float(found.anytime.all()),
            }
        )
    return _columns(rows)


def play_tested(task: Task) -> Arrays:
    """Return for every log whether its propensities are accused: right ones, or wrong ones of a uniform log."""
    accused = []
    for log in task.numbers:
        rng = task.seeds.rng("tested", task.kind, log)
        X = rng.standard_normal((task.horizon, 3))
        rewards = (rng.random((task.horizon, 3)) < 0.5).astype(np.float64)
        seed = task.seeds.seed("tested coins", task.kind, log)
        rows, _ = play(TRUSTED.get(task.kind, Uniform()), X, rewards, seed)
        accused.append(float(is_accused(rows if task.kind in TRUSTED else _spoilt(rows, log))))
    return {"accused": np.array(accused)}


def is_accused(rows: Rows) -> bool:
    """Return whether the check of propensities refuses a log."""
    checks = Checks(range(rows.eligible.shape[1]), rows.X.shape[1], [])
    checks.add(rows, {})
    return any(check.name == "propensities" and check.word is Word.REFUSED for check in checks.result())


def _spoilt(rows: Rows, log: int) -> Rows:
    """Return the rows of a uniform log with wrong propensities of one arm, too high or too low in turn."""
    wrong: Float64 = np.where(rows.arm == 0, (WRONG if log % 2 else 2.0 - WRONG) / 3, 1 / 3)
    return replace(
        rows,
        propensity=wrong,
        exploration_propensity=wrong,
        min_exploration_probability=np.full(len(rows), wrong.min()),
    )


def judge(
    *,
    environments: Mapping[str, Columns],
    own: Mapping[str, Columns],
    slopes: Mapping[str, Columns],
    propensities: Mapping[str, Columns],
    horizon: int,
    rng: np.random.Generator,
) -> Findings:
    """Return the verdicts and their sections."""
    parts = (
        _fixed(environments, horizon),
        _looks(environments),
        _errors(environments, rng),
        _past(environments, rng),
        _own(own, rng),
        _coefficients(slopes, rng),
        _propensities(propensities),
    )
    return Findings.of(parts)


def _claim(key: str, says: str, reading: str) -> Claim:
    return Claim(key=f"coverage-{key}", where="Beyond the paper", says=says, reading=reading, source="Armlet")


def _fixed(environments: Mapping[str, Columns], horizon: int) -> tuple[Verdict, Section]:
    """Judge intervals at one look."""
    claim = _claim(
        "fixed",
        "An interval of level 95 % for the value of another policy covers 91 % to 98 % of the time in each of eight "
        "environments, and 93 % to 97 % on average.",
        "What `armlet.evaluate` chooses by itself, at the end of each log. The truth is exact: contexts come from a "
        "table. Control: the same interval about the mean of all rows in which the target's arm was played, as if they "
        "were a random sample. A log that exploits plays an arm where it pays, so that this mean is too high wherever "
        "what arms pay depends on the context: its coverage, on average over environments as above, is below what "
        "each must have.",
    )
    hits = {name: covers(columns, "auto") for name, columns in environments.items()}
    found = {name: share(each) for name, each in hits.items()}
    naive = mean_share({name: covers(columns, "naive") for name, columns in environments.items()})
    statistics = (
        *(Statistic(name, each, Criterion("within", *EACH)) for name, each in found.items()),
        Statistic("mean over environments", mean_share(hits), Criterion("within", *ALL)),
        Statistic(
            "control: played rows as a sample, mean over environments", naive, Criterion("below", EACH[0]), Role.CONTROL
        ),
    )
    rows = tuple(_row(name, columns) for name, columns in environments.items())
    n = len(next(iter(environments.values()))["truth"])
    table = Table(
        caption=f"Values of another policy, {n:,} logs of {horizon:,} decisions in each environment",
        head=(
            "environment",
            "truth",
            "bias / RMSE",
            "covers",
            "half-width",
            "explored rows: covers",
            "RMSE",
            "played rows",
        ),
        rows=rows,
    )
    picture = picture_of(
        {name: (found[name], share(covers(environments[name], "explored"))) for name in environments}, EACH
    )
    section = Section(claim=claim.key, heading="Intervals at one look cover", pictures=(picture,), tables=(table,))
    ends = conclude("intervals at one look cover as often as they say", "intervals at one look cover too seldom")
    return Verdict(claim=claim, statistics=statistics, conclusions=ends), section


def _row(name: str, columns: Columns) -> tuple[str, ...]:
    ours, other = error(columns, "auto"), error(columns, "explored")
    return (
        name,
        f"{columns['truth'].mean():.4f}",
        f"{ours.mean():+.4f} / {np.sqrt((ours**2).mean()):.4f}",
        percent(share(covers(columns, "auto"))),
        f"{np.median(columns['auto high'] - columns['auto low']) / 2:.4f}",
        percent(share(covers(columns, "explored"))),
        f"{np.sqrt((other**2).mean()):.4f}",
        f"{100 * covers(columns, 'naive').mean():.1f} %",
    )


def _looks(environments: Mapping[str, Columns]) -> tuple[Verdict, Section]:
    """Judge sequences, in environments whose rewards have a range."""
    claim = _claim(
        "sequences",
        "A confidence sequence of level 95 % covers at all looks at once at least 95 % of the time.",
        "Sequences of `armlet.evaluate` at a dozen looks at each log, where rewards have a declared range: 3 % "
        "clicks among them. Control: a fixed interval at the same looks does not.",
    )
    there = {name: columns for name, columns in environments.items() if np.isfinite(columns["at all looks"]).all()}
    held = {name: share(columns["at all looks"]) for name, columns in there.items()}
    fixed = {name: share(columns["fixed at all looks"]) for name, columns in there.items()}
    statistics = (
        *(Statistic(name, each, Criterion("above", LEVEL)) for name, each in held.items()),
        Statistic("control: fixed intervals", fixed[STUDY], Criterion("below", LEVEL), Role.CONTROL),
    )
    rows = tuple(
        (
            name,
            percent(held[name]),
            percent(fixed[name]),
            f"{np.median(columns['anytime high'] - columns['anytime low']) / 2:.4f}",
            f"{np.median(columns['auto high'] - columns['auto low']) / 2:.4f}",
        )
        for name, columns in there.items()
    )
    table = Table(
        caption="Whether an interval covered at every look",
        head=("environment", "sequence", "fixed interval", "half-width at the end", "of the fixed one"),
        rows=rows,
    )
    section = Section(claim=claim.key, heading="Confidence sequences cover at all looks at once", tables=(table,))
    ends = conclude("confidence sequences cover at all looks at once", "confidence sequences cover too seldom")
    return Verdict(claim=claim, statistics=statistics, conclusions=ends), section


def _errors(environments: Mapping[str, Columns], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge what all rows add to explored rows."""
    claim = _claim(
        "errors",
        f"Weighing all rows, the error is at most {RMSE:g} of that of explored rows alone in the environment of "
        "the study, and nowhere larger.",
        "Root mean squared errors of `estimator='weighted'` over `'explored'`, on the same logs. Larger: by more than "
        "two standard errors.",
    )
    ratios = {name: rmse_ratio(columns, rng, "explored") for name, columns in environments.items()}
    statistics = (
        Statistic(f"ratio in {STUDY}", ratios[STUDY], Criterion("below", RMSE)),
        Statistic(
            f"environments where it is larger, of {len(ratios)}", certain(larger(ratios)), Criterion("within", 0, 0)
        ),
    )
    rows = tuple((name, f"{ratio:.2f}") for name, ratio in ratios.items())
    table = Table(caption="RMSE of all rows over that of explored rows", head=("environment", "ratio"), rows=rows)
    section = Section(claim=claim.key, heading="Weighing all rows lowers the error", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _past(environments: Mapping[str, Columns], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge a reward model that has seen rows after the one that it speaks of."""
    claim = _claim(
        "past",
        "Under the evidence clock a reward model of all rows but the one in question does no harm: no bias beyond "
        f"three standard errors, intervals that cover {100 * EACH[0]:g} % to {100 * EACH[1]:g} % of the time, and "
        "nowhere a larger error than by a model of earlier rows alone.",
        "Later draws depend there on earlier arms, so that leaving one row out is no exact cross-fitting, as it is at "
        "p/t; a model of earlier rows knows nothing of what came later. Both weigh the same rows alike. Larger: by "
        "more than two standard errors.",
    )
    there = {name: columns for name, columns in environments.items() if name in BY_EVIDENCE}
    ratios = {name: rmse_ratio(columns, rng, "past") for name, columns in there.items()}
    statistics = (
        *(
            Statistic(f"bias in standard errors, {name}", certain(bias(each, "weighted")), Criterion("within", -3, 3))
            for name, each in there.items()
        ),
        *(
            Statistic(f"covers, {name}", share(covers(each, "weighted")), Criterion("within", *EACH))
            for name, each in there.items()
        ),
        Statistic(
            f"environments where it is larger, of {len(there)}", certain(larger(ratios)), Criterion("within", 0, 0)
        ),
    )
    rows = tuple(
        (
            name,
            *(f"{error(columns, word).mean():+.4f} ({bias(columns, word):+.1f})" for word in ("weighted", "past")),
            f"{ratios[name]:.2f}",
            *(percent(share(covers(columns, word))) for word in ("weighted", "past")),
        )
        for name, columns in there.items()
    )
    table = Table(
        caption="The reward model fitted to all rows but one, and to earlier rows; biases also in standard errors",
        head=(
            "environment",
            "all but one: bias",
            "earlier: bias",
            "ratio of RMSE",
            "all but one: covers",
            "earlier: covers",
        ),
        rows=rows,
    )
    section = Section(claim=claim.key, heading="A reward model of all rows but one does no harm", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _own(found: Mapping[str, Columns], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge the value of a model from the very rows that it learned from."""
    claim = _claim(
        "own",
        "The value of a model from its own rows is unbiased within three standard errors where there is nothing to "
        f"learn, and its interval covers at least {OWN:.0%} of the time.",
        "300 uniform rows, 5 arms, d = 5, rewards that are noise: every policy is worth 0. Control: valued by its own "
        "rows as if they were another's, the model seems to be worth more.",
    )
    noise = found["noise"]
    naive = bootstrap(mean_of_runs, noise["same rows"] - noise["truth"], rng=rng)
    statistics = (
        Statistic("bias in standard errors", certain(bias(noise, "own")), Criterion("within", -3, 3)),
        Statistic("covers in pure noise", share(covers(noise, "own")), Criterion("above", OWN)),
        Statistic("control: bias on its own rows", naive, Criterion("above", 0.0), Role.CONTROL),
    )
    rows = tuple(
        (
            name,
            f"{error(columns, 'own').mean():+.4f}",
            f"{np.sqrt((error(columns, 'own') ** 2).mean()):.4f}",
            percent(share(covers(columns, "own"))),
            f"{(columns['same rows'] - columns['truth']).mean():+.4f}",
        )
        for name, columns in found.items()
    )
    head = ("environment", "bias", "RMSE", "covers", "bias if valued as another's")
    caption = f"Own value from 300 rows, {len(noise['truth']):,} logs"
    section = Section(
        claim=claim.key,
        heading="The value of a model from its own rows is unbiased",
        tables=(Table(caption=caption, head=head, rows=rows),),
    )
    return Verdict(claim=claim, statistics=statistics), section


def _coefficients(found: Mapping[str, Columns], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge intervals of coefficients, from sums alone."""
    claim = _claim(
        "coefficients",
        "Intervals of coefficients from the model alone cover 93.5 % to 96.5 % of the time.",
        "Mean over coefficients and three environments, K = d = 3, T = 2,000, explored rows, by each law of exploring.",
    )
    means = {name: bootstrap(mean_of_runs, columns["coefficients"], rng=rng) for name, columns in found.items()}
    laws: dict[str, list[Float64]] = {}
    for name, columns in found.items():
        laws.setdefault(name.rpartition(", ")[2], []).append(columns["coefficients"])
    statistics = tuple(
        Statistic(law, bootstrap(mean_of_runs, np.concatenate(parts), rng=rng), Criterion("within", *COEFFICIENTS))
        for law, parts in laws.items()
    )
    rows = tuple(
        (name, percent(means[name]), percent(share(columns["contrasts"])), percent(share(columns["anytime"])))
        for name, columns in found.items()
    )
    n = len(next(iter(found.values()))["coefficients"])
    table = Table(
        caption=f"Intervals of coefficients and contrasts, {n:,} runs",
        head=("environment and law", "coefficients", "all contrasts", "anytime, all coefficients at all looks"),
        rows=rows,
    )
    return Verdict(claim=claim, statistics=statistics), Section(
        claim=claim.key, heading="Intervals of coefficients cover", tables=(table,)
    )


def _propensities(found: Mapping[str, Columns]) -> tuple[Verdict, Section]:
    """Judge the check of propensities."""
    claim = _claim(
        "propensities",
        "Right propensities are accused in at most 1 of 200 logs of Algorithm 1; an error of 25 % on one arm is found "
        "in 95 of 100 uniform logs of 3,000 rows.",
        "Counts, as written. Three arms; an error up or down, in turn.",
    )
    accused = {name: columns["accused"] for name, columns in found.items()}
    right = {name: each for name, each in accused.items() if name != SPOILT}
    statistics = (
        *(
            Statistic(f"accused, {name}", certain(float(each.mean())), Criterion("within", 0.0, ACCUSED))
            for name, each in right.items()
        ),
        Statistic("found, of wrong ones", certain(float(accused[SPOILT].mean())), Criterion("within", FOUND, 1.0)),
    )
    rows = tuple((name, f"{len(each):,}", f"{each.sum():.0f}") for name, each in accused.items())
    head = ("logs", "number", "accused")
    table = Table(caption="Accused of wrong propensities", head=head, rows=rows)
    section = Section(claim=claim.key, heading="Wrong propensities are found", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


EXPERIMENT: Final = Experiment("coverage", "Coverage: whether intervals of evaluations hold what they say", run)
