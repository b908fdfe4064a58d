"""Units: every policy as it was before units were free and as it is by default, on the same problems in other units.

The same problem is played in all units with the same contexts, noise and coins, so a policy whose units are free plays
the very same arms. The best fixed p is one for a family, chosen and judged on the same runs, in both forms alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np

from armlet.environments import Linear, LinearArms, NearTies, Rescaled
from armlet.environments.environment import as_rows
from armlet.environments.families import FAMILIES
from armlet.parallel import Seeds
from armlet.policies import (
    Algorithm1,
    AutoAlgorithm1,
    AutoEpsilonGreedy,
    ContextualEpsilonGreedy,
    LinUCB,
    ThompsonSampling,
)
from armlet.report.document import Table
from armlet.simulation.lab import Arrays, Lab, Scale
from armlet.types import Estimate, Float64, Policy
from armlet_lab.contests import contest
from armlet_lab.contests.contest import Columns, Part, our_claim, part, play_all, ratio, table
from armlet_lab.literature.optimistic_epsilon_greedy import OptimisticEpsilonGreedy
from armlet_lab.runner import together
from armlet_lab.runner.experiment import Criterion, Experiment, Findings, Role, Statistic, certain, conclude
from armlet_lab.runner.hindsight import grid_of_p

Form: TypeAlias = Literal["as given", "free"]
FORMS: Final[tuple[Form, ...]] = ("as given", "free")
"""As given: Algorithm 1 as printed for every fixed p, else units as given and a clock of steps. Free: the default."""
BEST: Final = "best fixed p"
NAMES: Final = ("auto", "optimistic", "LinUCB", "Thompson")  # besides the grid of fixed p
SHOWN: Final = (BEST, *NAMES)
WRONG_HORIZONS: Final = {"told 10 T": 10.0, "told T / 10": 0.1}  # the horizon that "auto" assumes
NO_HORIZON: Final = "not told"  # the free form alone plays without a horizon
SAME: Final = Criterion("within", 0.99, 1.01)
COSTS: Final = 1.4  # times: more than that no policy may lose in any family
ALLOWED: Final = {"told 10 T": 1.5, "told T / 10": 2.1}  # times the best fixed p

LEVELS: Final = "a constant and two features"
LENGTHS: Final = "gaussian d = 5"
TIES: Final[dict[str, Callable[[np.random.Generator], LinearArms]]] = {
    "a tie of 0.001 and a bad arm": lambda rng: NearTies.draw(rng, gap=0.001),
    "a tie of 0.02 and a bad arm": lambda rng: NearTies.draw(rng, gap=0.02),
    "four near-ties and four bad arms": lambda rng: NearTies.draw(rng, gap=0.02, near=4, n_bad=4),
}
PROBLEMS: Final[dict[str, Callable[[np.random.Generator], LinearArms]]] = {
    LEVELS: lambda rng: Linear(theta=as_rows(0.2 * rng.standard_normal((5, 3))), law="constant"),
    LENGTHS: lambda rng: Linear.draw(rng, n_arms=5, dim=5, law="sphere", scale=0.5),
    **TIES,
    **FAMILIES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much to run."""

    problems: int = 3
    horizon: int = 2_000
    levels: tuple[float, ...] = (0.0, 300.0, 1e6)
    lengths: tuple[float, ...] = (1.0, 0.02)
    ties: tuple[str, ...] = tuple(TIES)
    families: tuple[str, ...] = ("Figure (a)", "gaussian d = 10", "clicks 3 % or 4 %")
    ratio: float = 4.0  # between two values of p


SCALES: Final[dict[Scale, Settings]] = {
    "quick": Settings(),
    "full": Settings(
        problems=24,
        horizon=20_000,
        levels=(0.0, 30.0, 300.0, 1000.0, 1e6),
        lengths=(1.0, 0.5, 0.2, 0.1, 0.05, 0.02),
        families=tuple(FAMILIES),
        ratio=2.0,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task(contest.Task):
    """One problem in one kind of units, played by all."""

    level: float = 0.0
    length: float = 1.0
    ratio: float


def draw_problem(family: str, seeds: Seeds, problem: int, *, level: float, length: float) -> Rescaled:
    """Draw one problem of a family and put it into units: the same problem in all of them.

    Examples
    --------
    >>> draw_problem(LEVELS, Seeds(1), 0, level=30.0, length=1.0).reward_level
    30.0
    """
    environment = PROBLEMS[family](seeds.rng("problems", family, problem))
    return Rescaled(environment=environment, reward_level=level, feature_scales=(length,) * environment.dim)


def players(n_arms: int, horizon: int, ratio: float) -> dict[str, Policy]:
    """Return all policies in both forms: a grid of fixed p, the named ones, and "auto" with another horizon than T.

    Examples
    --------
    >>> list(players(5, 200, 4.0))[:4]
    ['as given: p = 5', 'as given: p = 20', 'as given: auto', 'as given: told 10 T']
    """
    grid = grid_of_p(n_arms, horizon, ratio)
    auto = {"auto": horizon, **{name: max(1, round(times * horizon)) for name, times in WRONG_HORIZONS.items()}}
    given: dict[str, Policy] = {
        **{f"p = {p:g}": Algorithm1(p=p) for p in grid},
        **{n: AutoAlgorithm1(horizon=T) for n, T in auto.items()},
        "optimistic": OptimisticEpsilonGreedy(units="as given"),
        "LinUCB": LinUCB(units="as given"),
        "Thompson": ThompsonSampling(units="as given"),
    }
    free: dict[str, Policy] = {
        **{f"p = {p:g}": ContextualEpsilonGreedy(p=p) for p in grid},
        **{n: AutoEpsilonGreedy(horizon=T) for n, T in {**auto, NO_HORIZON: None}.items()},
        "optimistic": OptimisticEpsilonGreedy(),
        "LinUCB": LinUCB(),
        "Thompson": ThompsonSampling(v=1.0),
    }
    forms = zip(FORMS, (given, free), strict=True)
    return {f"{form}: {name}": policy for form, named in forms for name, policy in named.items()}


def play(task: Task) -> Arrays:
    """Return the regret of every player, (1, players), and what random play loses, (1,)."""
    environment = draw_problem(task.environment, task.seeds, task.first, level=task.level, length=task.length)
    entries = [
        together.Entry.of(policy, environment)
        for policy in players(environment.n_arms, task.horizon, task.ratio).values()
    ]
    found = together.play(environment, entries, task.horizon, task.seeds, task.environment, task.first)
    return {"regret": found.regret[None], "random": np.array([found.random])}


def run(lab: Lab) -> Findings:
    """Run the contest at the lab's scale."""
    return find(SCALES[lab.scale], lab)


def find(settings: Settings, lab: Lab) -> Findings:
    """Play, then compare."""
    s, T = settings, settings.horizon

    def tasks(family: str, horizon: int, level: float = 0.0, length: float = 1.0) -> list[Task]:
        first = Task(seeds=lab.seeds, environment=family, horizon=horizon, ratio=s.ratio, level=level, length=length)
        return [replace(first, first=i) for i in range(s.problems)]

    places: dict[tuple[str, str], list[Task]] = {
        **{("levels", f"{level:g}"): tasks(LEVELS, T, level=level) for level in s.levels},
        **{("lengths", f"{length:g}"): tasks(LENGTHS, T, length=length) for length in s.lengths},
        **{("families", family): tasks(family, T // 2) for family in s.families},
        **{("ties", family): tasks(family, T) for family in s.ties},
    }
    found = play_all(lab, "play", play, places, f"Units: {s.problems} problems in {len(places)} families and units")
    groups: dict[str, dict[str, FamilyRegret]] = {}
    for (group, place), columns in found.items():
        task = places[group, place][0]
        n_arms = draw_problem(task.environment, lab.seeds, 0, level=0.0, length=1.0).n_arms
        names = players(n_arms, task.horizon, task.ratio)
        regret = dict(zip(names, columns["regret"].T, strict=True))
        groups.setdefault(group, {})[place] = FamilyRegret(regret | {"random": columns["random"]}, task.horizon)
    return judge(**groups, rng=lab.rng("intervals"))


EXPERIMENT: Final = Experiment("units", "Units: levels, lengths, near-ties, and the seven families old and new", run)


@dataclass(frozen=True, slots=True)
class FamilyRegret:
    """All problems of one family in one kind of units."""

    regret: Columns  # by "form: player", and "random": (problems,)
    horizon: int

    def best(self, form: Form) -> str:
        """Return the fixed p with the smallest mean regret."""
        fixed = [name for name in self.regret if name.startswith(f"{form}: p = ")]
        return min(fixed, key=lambda name: self.regret[name].mean()).removeprefix(f"{form}: ")

    def of(self, form: Form, name: str) -> Float64:
        """Return the regret of a player on every problem."""
        return self.regret[f"{form}: {self.best(form) if name == BEST else name}"]

    def shown(self, form: Form, names: Sequence[str]) -> list[str]:
        """Return mean regrets for a table."""
        return [f"{self.of(form, name).mean():,.0f}" for name in names]

    @property
    def size(self) -> str:
        """Horizon and problems, for a caption."""
        return f"T = {self.horizon:,}, {len(self.regret['random'])} problems"


ByFamily: TypeAlias = Mapping[str, FamilyRegret]


def judge(
    *, levels: ByFamily, lengths: ByFamily, families: ByFamily, ties: ByFamily, rng: np.random.Generator
) -> Findings:
    """Return the verdicts and their sections."""
    return Findings.of(
        [
            _one_change("levels", "A constant added to all rewards", "level of rewards", levels, rng),
            _one_change("lengths", "A factor on all features", "length of contexts", lengths, rng),
            _families(families, rng),
            _horizons(families, rng),
            _ties(ties, rng),
        ]
    )


def _one_change(key: str, what: str, unit: str, found: ByFamily, rng: np.random.Generator) -> Part:
    first, *others = found

    def farthest(form: Form, name: str) -> Estimate:  # from 1, of the ratios to the first kind of units
        ratios = [ratio(found[other].of(form, name), found[first].of(form, name), rng) for other in others]
        return max(ratios, key=lambda each: abs(np.log(each.value)))

    claim = our_claim(
        f"units-{key}",
        f"{what} changes nothing in the default form of these policies.",
        f"Regret within a hundredth of that at {unit} {first}, on the same contexts, noise and coins. Control: with "
        "units as given the same change multiplies the regret of LinUCB by more than 2.",
    )
    ends = conclude(f"{what.lower()} changes nothing", f"{what.lower()} changes regret")
    statistics = [Statistic(name, farthest("free", name), SAME) for name in SHOWN]
    harm = farthest("as given", "LinUCB")
    statistics.append(Statistic("LinUCB, units as given", harm, Criterion("above", 2.0), Role.CONTROL))
    rows = tuple(
        (f"{form}, {value}", f"{one.shown(form, [BEST])[0]} ({one.best(form)})", *one.shown(form, NAMES))
        for form in FORMS
        for value, one in found.items()
    )
    random = found[first].regret["random"].mean()
    caption = f"Mean regret by {unit}, {found[first].size}; random play loses {random:,.0f}"
    return part(
        claim, what, statistics, Table(caption=caption, head=(f"units, {unit}", *SHOWN), rows=rows), conclusions=ends
    )


def _families(found: ByFamily, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "units-families",
        f"Nowhere among the families does the default form regret more than {COSTS:g} times what the old form did.",
        "No interval of the ratio of regrets, over problems, lies wholly above that; the best fixed p of each form.",
    )
    ratios = {
        (family, name): ratio(one.of("free", name), one.of("as given", name), rng)
        for family, one in found.items()
        for name in SHOWN
    }
    above = sum(each.low > COSTS for each in ratios.values())
    worst = max(ratios.values(), key=lambda each: each.low)
    statistics = (
        Statistic(f"intervals above {COSTS:g}, of {len(ratios)}", certain(above), Criterion("within", 0, 0)),
        Statistic("the worst ratio", worst, Criterion("below", 2.0)),
    )
    words = {pair: f"{pair[1]} on {pair[0]} {each.value:.2f}" for pair, each in ratios.items()}
    gains = "; ".join(words[pair] for pair, each in ratios.items() if each.high < 1.0)
    losses = "; ".join(words[pair] for pair, each in ratios.items() if each.low > 1.0)
    notes = f"Gains, the interval wholly below 1: {gains or 'none'}.", f"Losses: {losses or 'none'}."
    columns = {name: {family: ratios[family, name] for family in found} for name in SHOWN}
    size = next(iter(found.values())).size
    caption = f"Regret of the default form over that of the old one, {size}, 95 % intervals over problems"
    return part(
        claim, "Free units cost little in any family", statistics, table(caption, "family", columns), notes=notes
    )


def _horizons(found: ByFamily, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "units-horizons",
        'Told a horizon ten times too long or too short, p="auto" still regrets little more than the best fixed p.',
        "The mean regret of each family over that of its best fixed p, in free units: at most "
        f"{', '.join(f'{bound:g} {name}' for name, bound in ALLOWED.items())}.",
    )
    names = ("auto", *WRONG_HORIZONS, NO_HORIZON)
    ratios = {
        (family, name): ratio(one.of("free", name), one.of("free", BEST), rng)
        for family, one in found.items()
        for name in names
    }
    largest = {name: certain(max(ratios[family, name].value for family in found)) for name in ALLOWED}
    statistics = [
        Statistic(f"the largest of the families, {name}", largest[name], Criterion("below", bound))
        for name, bound in ALLOWED.items()
    ]
    columns = {
        "told T" if name == "auto" else name: {family: ratios[family, name] for family in found} for name in names
    }
    caption = 'Regret of p = "auto" in free units over that of the best fixed p'
    return part(claim, "A wrong or missing horizon costs little", statistics, table(caption, "family", columns))


def _ties(found: ByFamily, rng: np.random.Generator) -> Part:
    claim = our_claim(
        "units-ties",
        'Near-ties next to bad arms cost the default p="auto" less than the old one.',
        "The ratio of regrets on every such family lies below 1. Not promised: that it comes near the best fixed p.",
    )
    ratios = {family: ratio(one.of("free", "auto"), one.of("as given", "auto"), rng) for family, one in found.items()}
    statistics = [Statistic(f"auto, {family}", each, Criterion("below", 1.0)) for family, each in ratios.items()]
    rows = []
    for family, one in found.items():
        for form in FORMS:
            shares = [one.of(form, name).mean() / one.of(form, BEST).mean() for name in WRONG_HORIZONS]
            over = f"{ratio(one.of(form, 'auto'), one.of(form, BEST), rng):.2f}"
            words = ", ".join(f"{value:.1f}" for value in shares)
            rows.append((f"{family}, {form}", *one.shown(form, SHOWN), over, words))
    caption = f"Mean regret next to bad arms, {next(iter(found.values())).size}"
    head = ("family, units", *SHOWN, "auto / best p", "told 10 T, T / 10")
    return part(
        claim, "Near-ties cost less than before", statistics, Table(caption=caption, head=head, rows=tuple(rows))
    )
