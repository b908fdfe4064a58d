"""Printed tables of others, rebuilt: OBP's digits, Dudik, Langford and Li's classifiers, Hadad and others' designs.

Each names in its own module what is printed and what is not. The tables of KEEL must have been fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, Self

import numpy as np

from armlet.datasets import load
from armlet.inference.intervals import bootstrap, mean_of_runs
from armlet.parallel import Seeds
from armlet.report.document import Table
from armlet.simulation.lab import Arrays, Lab, Scale, as_floats
from armlet.types import Estimate, Float64
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
)
from armlet_lab.validation.coverage.shares import mean_share
from armlet_lab.validation.printed_tables import adaptive, classifiers, digits
from armlet_lab.validation.printed_tables.classifiers import WORDS, share
from armlet_lab.validation.printed_tables.digits import OURS, PRINTED

COVERS: Final = Criterion("within", 0.92, 0.98)  # nominal .95
COVERS_90: Final = Criterion("within", 0.86, 0.94)  # nominal .90
SIGNAL: Final = ("low signal", "high signal")  # designs with a worst arm: the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to run."""

    splits: int = 4  # of digits
    tables: tuple[str, ...] = ("vehicle", "satimage")
    runs: int = 30  # of a table
    horizon: int = 500  # of an adaptive run
    repeats: int = 60


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(),
    "full": Settings(splits=40, tables=tuple(classifiers.TABLES), runs=200, horizon=2000, repeats=500),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One split of digits, one table, or one design."""

    seeds: Seeds
    part: Literal["digits", "classifiers", "adaptive"]
    name: str
    runs: int
    horizon: int = 0


@dataclass(frozen=True, slots=True)
class Digits:
    """Relative errors by split, and at the end whether our interval covers."""

    found: Float64  # (splits, estimators + 1)

    @property
    def errors(self) -> dict[str, Float64]:
        """By estimator: those that are printed, and DR with our own reward model."""
        return dict(zip((*PRINTED, OURS), self.found.T[:-1], strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Classified:
    """Estimates of a classifier's accuracy on one table."""

    errors: Float64  # (runs, estimators)
    covered: Float64
    rows: int
    n_arms: int
    truth: float

    @classmethod
    def of(cls, found: Arrays) -> Self:
        """Read what a task has found."""
        rows, n_arms, truth = as_floats(found["about"])
        columns = {name: as_floats(found[name]) for name in ("errors", "covered")}
        return cls(rows=int(rows), n_arms=int(n_arms), truth=float(truth), **columns)

    @property
    def rmse(self) -> Float64:
        """(estimators,)."""
        return np.asarray(np.sqrt((self.errors**2).mean(axis=0)))

    def bias(self, word: str) -> float:
        """Return that of an estimator, in standard errors."""
        errors = self.errors[:, WORDS.index(word)]
        return float(errors.mean() / errors.std(ddof=1) * len(errors) ** 0.5)

    def hits(self, word: str) -> Float64:
        """Return for every log whether the interval of an estimator covers; one that is missing does not."""
        return np.nan_to_num(self.covered[:, WORDS.index(word)])

    def ratio(self, one: str, other: str, rng: np.random.Generator) -> Estimate:
        """Return the RMSE of an estimator over that of another on the same logs."""
        squares = [self.errors[:, WORDS.index(word)] ** 2 for word in (one, other)]
        return bootstrap(lambda a, b: np.sqrt(a.mean(-1) / b.mean(-1)), *squares, rng=rng)


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Errors and coverage of one design: (weights + 1, runs, K), ours last."""

    errors: Float64
    covered: Float64

    @classmethod
    def of(cls, found: Arrays) -> Self:
        """Read what a task has found."""
        return cls(as_floats(found["errors"]), as_floats(found["covered"]))


def run(lab: Lab) -> Findings:
    """Run the experiment at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Rebuild all tables, then compare."""
    s = settings
    splits = [Task(seeds=lab.seeds, part="digits", name=str(i), runs=1) for i in range(s.splits)]
    tables = [Task(seeds=lab.seeds, part="classifiers", name=name, runs=s.runs) for name in s.tables]
    how = {"runs": s.repeats, "horizon": s.horizon}
    designs = [Task(seeds=lab.seeds, part="adaptive", name=name, **how) for name in adaptive.MEANS]
    first = [as_floats(one["errors"]) for one in lab.map("digits", play, splits, "Printed tables: splits of digits")]
    second = lab.map("classifiers", play, tables, "Printed tables: UCI tables as bandits")
    third = lab.map("adaptive", play, designs, "Printed tables: adaptive designs")
    return judge(
        split=Digits(np.array(first)),
        classified={task.name: Classified.of(one) for task, one in zip(tables, second, strict=True)},
        designs={task.name: Adaptive.of(one) for task, one in zip(designs, third, strict=True)},
        horizon=s.horizon,
        rng=lab.rng("intervals"),
    )


def play(task: Task) -> Arrays:
    """Play one task."""
    rng = task.seeds.rng("logs", task.part, task.name)
    match task.part:
        case "digits":
            found, covers = digits.relative_errors(rng)
            return {"errors": np.array([*found.values(), covers])}
        case "classifiers":
            table = load("keel", classifiers.TABLES[task.name])
            errors, covered, truth = classifiers.errors(table, rng, task.runs)
            about = np.array([len(table), table.n_arms, truth])
            return {"errors": errors, "covered": covered, "about": about}
        case "adaptive":
            means = adaptive.MEANS[task.name]
            theirs = adaptive.weigh(adaptive.thompson(means, task.horizon, task.runs, rng), means)
            ours = adaptive.by_algorithm_1(means, task.horizon, task.runs, rng)
            return {
                "errors": np.concatenate([theirs[0], ours[0][None]]),
                "covered": np.concatenate([theirs[1], ours[1][None]]).astype(np.float64),
            }


def judge(
    *,
    split: Digits,
    classified: Mapping[str, Classified],
    designs: Mapping[str, Adaptive],
    horizon: int,
    rng: np.random.Generator,
) -> Findings:
    """Return the verdicts and their sections."""
    return Findings.of([_digits(split, rng), _classified(classified, rng), _adaptive(designs, horizon, rng)])


def _digits(found: Digits, rng: np.random.Generator) -> tuple[Verdict, Section]:
    claim = Claim(
        key="printed-digits",
        where="README of examples/multiclass",
        says="On digits, seven estimators err by so much, relative to the value of a classifier.",
        reading="Mean errors over our own splits lie within one printed standard deviation of the printed means.",
        source="Open Bandit Pipeline",
    )
    errors = found.errors
    means = {name: bootstrap(mean_of_runs, column, rng=rng) for name, column in errors.items()}
    statistics = tuple(
        Statistic(name, means[name], Criterion("within", mean - spread, mean + spread))
        for name, (mean, spread) in PRINTED.items()
    )
    rows = [
        (name, f"{mean:.4f} ± {spread:.4f}", f"{errors[name].mean():.4f} ± {errors[name].std(ddof=1):.4f}")
        for name, (mean, spread) in PRINTED.items()
    ]
    rows.append((OURS, "", f"{errors[OURS].mean():.4f} ± {errors[OURS].std(ddof=1):.4f}"))
    caption = f"Relative error, mean ± standard deviation over splits: 20 printed, {len(found.found)} ours"
    table = Table(caption=caption, head=("estimator", "printed", "rebuilt"), rows=tuple(rows))
    covered = f"Intervals of DR with our own model covered the truth in {found.found[:, -1].mean():.2f} of the splits."
    section = Section(claim=claim.key, heading="Open Bandit Pipeline: digits", notes=(covered,), tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _classified(found: Mapping[str, Classified], rng: np.random.Generator) -> tuple[Verdict, Section]:
    claim = Claim(
        key="printed-classifiers",
        where="Figure 1",
        says="DR is without bias where DM is not, and errs less than IPS.",
        reading="Table by table, over logs of it; their bars are no numbers. No bias: within three standard errors. "
        "Coverage, mean over tables, is ours to print. Control: the bias of DM, mean over tables.",
        source="Dudik, Langford and Li 2011",
    )
    biased = np.array([abs(each.bias("dm")) for each in found.values()])
    statistics = (
        *(
            Statistic(f"RMSE of DR over that of IPS, {name}", each.ratio("dr", "ips", rng), Criterion("below", 1.0))
            for name, each in found.items()
        ),
        *(
            Statistic(f"bias of DR in standard errors, {name}", certain(each.bias("dr")), Criterion("within", -3, 3))
            for name, each in found.items()
        ),
        Statistic(
            "coverage of DR, nominal .95", mean_share({name: each.hits("dr") for name, each in found.items()}), COVERS
        ),
        Statistic(
            "bias of DM in standard errors",
            bootstrap(mean_of_runs, biased, rng=rng),
            Criterion("above", 3.0),
            Role.CONTROL,
        ),
    )
    rows = tuple(
        (
            name,
            f"{each.n_arms}, {each.rows:,}",
            f"{1 - each.truth:.3f}",
            " / ".join(f"{bias:+.3f}" for bias in each.errors.mean(axis=0)),
            " / ".join(f"{error:.3f}" for error in each.rmse),
            " / ".join(_told(each.covered[:, i]) for i in range(len(WORDS))),
        )
        for name, each in found.items()
    )
    words = " / ".join(WORDS)
    head = ("table", "classes, rows", "error", f"bias: {words}", "RMSE", "coverage, nominal .95")
    runs = len(next(iter(found.values())).errors)
    table = Table(caption=f"Accuracy of a classifier from uniform logs, {runs} logs a table", head=head, rows=rows)
    return Verdict(claim=claim, statistics=statistics), Section(
        claim=claim.key, heading="Dudik, Langford and Li: five of their nine UCI tables", tables=(table,)
    )


def _told(covered: Float64) -> str:
    found = share(covered)
    return "none" if found is None else f"{found:.2f}"


def _adaptive(found: Mapping[str, Adaptive], horizon: int, rng: np.random.Generator) -> tuple[Verdict, Section]:
    claim = Claim(
        key="printed-adaptive",
        where="Simulations",
        says="Uniform weights undercover in adaptive designs; weights that keep the variance in check do better.",
        reading="Arm means at nominal .90. Ours are of logs of Algorithm 1 in the same environments, whose "
        "exploring ignores "
        "what was learned; of Thompson sampling armlet.evaluate gives no interval. Undercover: the worst arm, where "
        "there is one. Better: two-point weights less uniform ones, mean over arms, designs and runs.",
        source="Hadad and others 2021",
    )
    ours = [_coverage(each.covered[-1], rng) for each in found.values()]
    plain = {name: _coverage(found[name].covered[0][:, :1], rng) for name in SIGNAL if name in found}
    gained = [each.covered[adaptive.WEIGHTS.index("two-point")] - each.covered[0] for each in found.values()]
    statistics = (
        *(
            Statistic(f"coverage with uniform weights, arm 1, {name}", one, Criterion("below", 0.90))
            for name, one in plain.items()
        ),
        Statistic(
            "coverage gained by two-point weights", _coverage(np.concatenate(gained), rng), Criterion("above", 0)
        ),
        *(Statistic(f"coverage of ours, {name}", one, COVERS_90) for name, one in zip(found, ours, strict=True)),
    )
    names = (*(f"Thompson sampling, {name}" for name in adaptive.WEIGHTS), adaptive.OURS)
    rows = tuple(
        (
            name,
            *(
                f"{_arms(each.covered[i].mean(axis=0), 2)}; {_arms(_rmse(each.errors[i]), 3)}"
                for each in found.values()
            ),
        )
        for i, name in enumerate(names)
    )
    runs = next(iter(found.values())).errors.shape[1]
    caption = f"Coverage (nominal .90) of the means of arms 1 / 2 / 3; RMSE. T = {horizon:,}, {runs} runs"
    table = Table(caption=caption, head=("logged by, weights", *found), rows=rows)
    section = Section(claim=claim.key, heading="Hadad and others: adaptive designs", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _coverage(covered: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(mean_of_runs, covered.mean(axis=1), rng=rng)


def _rmse(errors: Float64) -> Float64:
    return np.asarray(np.sqrt((errors**2).mean(axis=0)))


def _arms(values: Float64, digits: int) -> str:
    return " / ".join(f"{value:.{digits}f}" for value in values)


EXPERIMENT: Final = Experiment("printed-tables", "Off-policy evaluation: tables of others, rebuilt", run)
