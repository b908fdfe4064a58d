"""What follows from playing in different units: five verdicts and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from armlet.inference.intervals import Estimate, bootstrap
from armlet.report.tables import Table
from armlet.types import Float64
from armlet_lab.contests.units.contestants import BEST, FORMS, NAMES, SHOWN, TOLD, UNTOLD, Form
from armlet_lab.runner.experiment import Claim, Criterion, Findings, Role, Section, Statistic, Verdict
from armlet_lab.runner.hindsight import ratio_of_means

SAME: Final = Criterion("within", 0.99, 1.01)
COSTS: Final = 1.4  # times: more than that no policy may lose in any family
ALLOWED: Final = {"told 10 T": 1.5, "told T / 10": 2.1}  # times the best fixed p
SOURCE: Final = "Armlet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """All problems of one family in one kind of units."""

    regret: Mapping[Form, Mapping[str, Float64]]  # by form and contestant: (problems,)
    random: Float64  # (problems,)
    horizon: int

    def best(self, form: Form) -> str:
        """Name the fixed p with the smallest mean regret."""
        fixed = {name: values.mean() for name, values in self.regret[form].items() if name.startswith("p = ")}
        return min(fixed, key=lambda name: fixed[name])

    def of(self, form: Form, name: str) -> Float64:
        """Give the regret of a contestant on every problem."""
        return self.regret[form][self.best(form) if name == BEST else name]


def judge(
    *,
    levels: Mapping[float, Played],
    lengths: Mapping[float, Played],
    families: Mapping[str, Played],
    ties: Mapping[str, Played],
    rng: np.random.Generator,
) -> Findings:
    """Give the verdicts and their sections."""
    parts = (
        _one_change("levels", "A constant added to all rewards", "level of rewards", levels, rng),
        _one_change("lengths", "A factor on all features", "length of contexts", lengths, rng),
        _families(families, rng),
        _horizons({**families}, rng),
        _ties(ties, rng),
    )
    return Findings(tuple(verdict for verdict, _ in parts), tuple(section for _, section in parts))


def _claim(key: str, says: str, reading: str) -> Claim:
    return Claim(key=f"units-{key}", where="Beyond the paper", says=says, reading=reading, source=SOURCE)


def _ratio(above: Float64, below: Float64, rng: np.random.Generator) -> Estimate:
    return bootstrap(ratio_of_means, above, below, rng=rng)


def _show(ratio: Estimate) -> str:
    return f"{ratio.value:.2f} [{ratio.low:.2f} to {ratio.high:.2f}]"


def _one_change(
    key: str, what: str, unit: str, found: Mapping[float, Played], rng: np.random.Generator
) -> tuple[Verdict, Section]:
    """Judge one change of units: in the free form regret is the same in all of them."""
    first = next(iter(found))
    claim = _claim(
        key,
        f"{what} changes nothing in the default form of these policies.",
        f"Regret within a hundredth of that at {unit} {first:g}, on the same contexts, noise and coins. Control: with "
        "units as given the same change multiplies the regret of LinUCB by more than 2.",
    )
    statistics = [Statistic(name, _farthest(found, first, "free", name, rng), SAME) for name in SHOWN]
    harm = _farthest(found, first, "as given", "LinUCB", rng)
    statistics.append(Statistic("LinUCB, units as given", harm, Criterion("above", 2.0), Role.CONTROL))
    table = _by_unit(unit, found)
    return Verdict(claim=claim, statistics=tuple(statistics)), Section(claim=claim.key, heading=what, tables=(table,))


def _farthest(found: Mapping[float, Played], first: float, form: Form, name: str, rng: np.random.Generator) -> Estimate:
    """Give the ratio to the first kind of units that is farthest from 1."""
    start = found[first].of(form, name)
    ratios = [_ratio(one.of(form, name), start, rng) for unit, one in found.items() if unit != first]
    return max(ratios, key=lambda ratio: abs(np.log(ratio.value)))


def _by_unit(unit: str, found: Mapping[float, Played]) -> Table:
    rows = []
    for form in FORMS:
        for value, one in found.items():
            cells = [f"{one.of(form, BEST).mean():,.0f} ({one.best(form)})"]
            cells += [f"{one.of(form, name).mean():,.0f}" for name in NAMES]
            rows.append((f"{form}, {value:g}", *cells))
    one = next(iter(found.values()))
    caption = (
        f"Mean regret by {unit}, T = {one.horizon:,}, {_problems(one)}; random play loses {one.random.mean():,.0f}"
    )
    return Table(caption=caption, head=(f"units, {unit}", *SHOWN), rows=tuple(rows))


def _problems(one: Played) -> str:
    return f"{len(one.random)} problems"


def _families(found: Mapping[str, Played], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge what the default form costs where units did no harm."""
    claim = _claim(
        "families",
        f"Nowhere among the families does the default form regret more than {COSTS:g} times what the old form did.",
        "No interval of the ratio of regrets, over problems, lies wholly above that; the best fixed p of each form.",
    )
    ratios = {
        (family, name): _ratio(one.of("free", name), one.of("as given", name), rng)
        for family, one in found.items()
        for name in SHOWN
    }
    above = sum(ratio.low > COSTS for ratio in ratios.values())
    statistic = Statistic(f"intervals above {COSTS:g}, of {len(ratios)}", _exact(above), Criterion("within", 0, 0))
    worst = max(ratios.values(), key=lambda ratio: ratio.low)
    second = Statistic("the worst ratio", worst, Criterion("below", 2.0))
    one = next(iter(found.values()))
    table = Table(
        caption=f"Regret of the default form over that of the old one, T = {one.horizon:,}, {_problems(one)}, "
        "95 % intervals over problems",
        head=("family", *SHOWN),
        rows=tuple((family, *(_show(ratios[family, name]) for name in SHOWN)) for family in found),
    )
    notes = (_named("Gains, the interval wholly below 1", ratios, "below"), _named("Losses", ratios, "above"))
    section = Section(claim=claim.key, heading="The families, old and new", notes=notes, tables=(table,))
    return Verdict(claim=claim, statistics=(statistic, second)), section


def _named(what: str, ratios: Mapping[tuple[str, str], Estimate], side: str) -> str:
    chosen = {
        both: ratio for both, ratio in ratios.items() if (ratio.high < 1.0 if side == "below" else ratio.low > 1.0)
    }
    told = [f"{name} on {family} {ratio.value:.2f}" for (family, name), ratio in chosen.items()]
    return f"{what}: {'; '.join(told) or 'none'}."


def _horizons(found: Mapping[str, Played], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge "auto" against the best fixed p, told the horizon, another one, and none."""
    claim = _claim(
        "horizons",
        'Told a horizon ten times too long or too short, p="auto" still regrets little more than the best fixed p.',
        "The mean regret of each family over that of its best fixed p, in free units: at most "
        + ", ".join(f"{bound:g} {name}" for name, bound in ALLOWED.items())
        + ".",
    )
    names = ("auto", *TOLD, UNTOLD)
    ratios = {
        (family, name): _ratio(one.of("free", name), one.of("free", BEST), rng)
        for family, one in found.items()
        for name in names
    }
    statistics = tuple(
        Statistic(f"the largest of the families, {name}", _exact(_largest(ratios, name)), Criterion("below", bound))
        for name, bound in ALLOWED.items()
    )
    table = Table(
        caption='Regret of p = "auto" in free units over that of the best fixed p',
        head=("family", "told T", *names[1:]),
        rows=tuple((family, *(_show(ratios[family, name]) for name in names)) for family in found),
    )
    section = Section(claim=claim.key, heading="A horizon that is wrong, or missing", tables=(table,))
    return Verdict(claim=claim, statistics=statistics), section


def _largest(ratios: Mapping[tuple[str, str], Estimate], name: str) -> float:
    return max(ratio.value for (_, which), ratio in ratios.items() if which == name)


def _ties(found: Mapping[str, Played], rng: np.random.Generator) -> tuple[Verdict, Section]:
    """Judge near-ties, where exploring buys next to nothing."""
    claim = _claim(
        "ties",
        'Near-ties beside bad arms cost the default p="auto" less than the old one.',
        "The ratio of regrets on every such family lies below 1. Not promised: that it comes near the best fixed p.",
    )
    ratios = {family: _ratio(one.of("free", "auto"), one.of("as given", "auto"), rng) for family, one in found.items()}
    statistics = tuple(Statistic(f"auto, {family}", ratio, Criterion("below", 1.0)) for family, ratio in ratios.items())
    rows = []
    for family, one in found.items():
        for form in FORMS:
            told = [one.of(form, name).mean() / one.of(form, BEST).mean() for name in TOLD]
            over = _ratio(one.of(form, "auto"), one.of(form, BEST), rng)
            means = [f"{one.of(form, name).mean():,.0f}" for name in SHOWN]
            rows.append((f"{family}, {form}", *means, _show(over), ", ".join(f"{value:.1f}" for value in told)))
    one = next(iter(found.values()))
    table = Table(
        caption=f"Mean regret beside bad arms, T = {one.horizon:,}, {_problems(one)}",
        head=("family, units", *SHOWN, "auto / best p", "told 10 T, T / 10"),
        rows=tuple(rows),
    )
    return Verdict(claim=claim, statistics=statistics), Section(claim=claim.key, heading="Near-ties", tables=(table,))


def _exact(value: float) -> Estimate:
    return Estimate(float(value), float(value), float(value))
