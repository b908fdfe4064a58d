"""A catalogue whose items share features and come and go: Armlet's shared model, a model for each item, Vowpal Wabbit.

    python benchmarks/catalogue.py --quick          # 3 seeds, two environments: some minutes
    python benchmarks/catalogue.py                  # 20 seeds: writes results/catalogue/
    python benchmarks/catalogue.py --tune           # Vowpal Wabbit's settings, on other seeds

`armlet-lab publish catalogue` runs this and puts its tables into docs/results/catalogue.md. Vowpal Wabbit is installed
into an environment of its own and played there by catalogue_worker.py. 200 items are on offer, and every second step
one of them is replaced: 2,700 in 5,000 steps. All players meet the same customers and items, and the same luck: the
noise of a step is that of whichever item is played. Regret is in expectation, against the best item on offer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

import armlet
from armlet.environments import Catalogue
from armlet.types import Float64, Int64, Policy
from armlet_lab.literature.hybrid_linucb import HybridLinUCB
from catalogue_report import Played, Report, write
from peers import VOWPAL_WABBIT
from timing import call
from venvs import ROOT, environment

OUT = ROOT / "results" / "catalogue"
HOUR = 3600.0
STEPS = 5_000
BLOCK = 250
FIRST, SECOND = range(1, 3), range(3, 9)  # seeds that choose


@dataclass(frozen=True, slots=True)
class World:
    """An environment, and for how long it is played."""

    key: str
    name: str
    settings: tuple[tuple[str, Any], ...] = ()
    horizon: int = STEPS

    @property
    def clicks(self) -> bool:
        """Whether rewards are clicks."""
        return ("noise", "bernoulli") in self.settings


CLICKS, ITEMS = ("noise", "bernoulli"), ("effect", 0.7)
WORLDS = (
    World("both", "values"),
    World("clicks", "clicks", (CLICKS,)),
    World("both-item", "values, items differ", (ITEMS,)),
    World("clicks-item", "clicks, items differ", (CLICKS, ITEMS)),
    World("taste", "values by distance", (("taste", "distance"),)),
)


class Draws(NamedTuple):
    """One environment on one seed, all drawn: T steps, n items on offer."""

    X: Float64  # (T, d)
    Z: Float64  # (K, f)
    offered: Int64  # (T, n): which items; one that comes takes the place of one that leaves
    means: Float64  # (T, n)
    rewards: Float64  # (T, n)
    seed: int


@cache
def draw(world: World, seed: int) -> Draws:
    which, contexts, noise = (np.random.default_rng([30, seed, part]) for part in range(3))
    made = Catalogue.draw(which, horizon=world.horizon, **dict(world.settings))
    X = made.contexts(contexts, world.horizon)
    offered = places(made, world.horizon)
    means = np.empty(offered.shape)
    for start in range(0, world.horizon, BLOCK):
        rows = slice(start, start + BLOCK)
        items, at = np.unique(offered[rows], return_inverse=True)
        means[rows] = np.take_along_axis(made.means_of(items, X[rows]), at.reshape(offered[rows].shape), axis=1)
    if world.clicks:
        rewards = (noise.random((world.horizon, 1)) < means).astype(np.float64)
    else:
        rewards = means + made.scale * noise.standard_normal((world.horizon, 1))
    return Draws(X, made.features, offered, means, rewards, seed)


def places(made: Catalogue, horizon: int) -> Int64:
    """Return which item is in which place at every step."""
    now = made.offered(1)
    place = {int(item): at for at, item in enumerate(now)}
    dying = {death: item for item, death in enumerate(made.deaths) if death <= horizon}
    found = np.empty((horizon, len(now)), dtype=np.int64)
    births, filled = np.array(made.births), 0
    for item in np.flatnonzero(births > 1).tolist():
        found[filled : births[item] - 1] = now
        filled = int(births[item]) - 1
        place[item] = place.pop(dying[int(births[item])])
        now[place[item]] = item
    found[filled:] = now
    return found


Answer = tuple[Int64, float]
"""The places that were played, (T,), and the CPU time of a step in microseconds."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One model over the features of context and item."""

    name: str
    policy: armlet.SharedOptimism | armlet.SharedThompson
    squares: bool = False  # of the features of items, too

    def play(self, draws: Draws) -> Answer:
        """Play one seed; the table of items changes whenever one is replaced."""
        Z = np.hstack([draws.Z, np.square(draws.Z)]) if self.squares else draws.Z
        bandit = armlet.ActionBandit(draws.X.shape[1], Z.shape[1], policy=self.policy, seed=draws.seed)
        played = np.empty(len(draws.X), dtype=np.int64)
        now, started = draws.offered[0], thread_time()
        table = armlet.ActionTable(now.tolist(), Z[now])
        for t, x in enumerate(draws.X):
            for place in np.flatnonzero(draws.offered[t] != now).tolist():
                item = int(draws.offered[t, place])
                table = table.changed(add={item: Z[item]}, remove=[int(now[place])])
            now = draws.offered[t]
            decision = bandit.decide(x, table)
            played[t] = place = int(np.flatnonzero(now == decision.arm)[0])
            bandit.learn(decision, float(draws.rewards[t, place]))
        return played, 1e6 * (thread_time() - started) / len(draws.X)


@dataclass(frozen=True, slots=True)
class PerItem:
    """A model for each item, which comes with it and goes with it."""

    name: str
    policy: Policy

    def play(self, draws: Draws) -> Answer:
        """Play one seed; arms are added and removed."""
        now, started = draws.offered[0], thread_time()
        bandit = armlet.Bandit(now.tolist(), draws.X.shape[1], policy=self.policy, seed=draws.seed)
        played = np.empty(len(draws.X), dtype=np.int64)
        for t, x in enumerate(draws.X):
            for place in np.flatnonzero(draws.offered[t] != now).tolist():
                bandit.remove_arm(int(now[place]))
                bandit.add_arm(int(draws.offered[t, place]))
            now = draws.offered[t]
            decision = bandit.decide(x)
            played[t] = place = int(np.flatnonzero(now == decision.arm)[0])
            bandit.learn(decision, float(draws.rewards[t, place]))
        return played, 1e6 * (thread_time() - started) / len(draws.X)


@dataclass(frozen=True, slots=True)
class Products:
    """LinUCB in a dozen lines of numpy, over a constant, the features of context and item, and their products."""

    name: str
    alpha: float

    def play(self, draws: Draws) -> Answer:
        """Play one seed; features are divided by their deviation."""
        X, Z = (V / np.maximum(V.std(axis=0), 1e-12) for V in (draws.X, draws.Z))
        items = np.column_stack([np.ones(len(Z)), Z])
        inverse = np.eye(items.shape[1] * (1 + X.shape[1]))  # of A + I
        b, played = np.zeros(len(inverse)), np.empty(len(X), dtype=np.int64)
        started = thread_time()
        for t, x in enumerate(np.column_stack([np.ones(len(X)), X])):
            rows = np.einsum("i,nj->nij", x, items[draws.offered[t]]).reshape(draws.offered.shape[1], -1)
            solved = rows @ inverse
            scores = solved @ b + self.alpha * np.sqrt(np.einsum("ij,ij->i", solved, rows))
            played[t] = place = int(np.argmax(scores))
            u = solved[place]
            inverse -= np.outer(u, u) / (1.0 + u @ rows[place])
            b += draws.rewards[t, place] * rows[place]
        return played, 1e6 * (thread_time() - started) / len(X)


@dataclass(frozen=True, slots=True)
class Vowpal:
    """Vowpal Wabbit with the products of context and item; `ids`: an item also has its name as a feature."""

    name: str
    options: str
    ids: bool = False

    def play(self, draws: Draws) -> Answer:
        """Play one seed."""
        return ask([self], draws)[0]


@dataclass(frozen=True, slots=True)
class Random:
    """Any item, regardless of what is known; for scale."""

    name: str = "uniform"

    def play(self, draws: Draws) -> Answer:
        """Play one seed."""
        return np.random.default_rng(draws.seed).integers(draws.means.shape[1], size=len(draws.X)), 0.0


Player = Shared | PerItem | Products | Vowpal | Random


def ask(players: Sequence[Vowpal], draws: Draws) -> list[Answer]:
    """Let Vowpal Wabbit play in its own environment."""
    tasks = [{"options": f"-q xz {each.options}", "ids": each.ids, "seed": draws.seed + 1} for each in players]
    with tempfile.TemporaryDirectory() as folder:
        given, asked, out = (str(Path(folder) / name) for name in ("draws.npz", "tasks.json", "out.npz"))
        np.savez(given, X=draws.X, Z=draws.Z, offered=draws.offered, rewards=draws.rewards)
        Path(asked).write_text(json.dumps(tasks))
        call(vowpal_python(), "catalogue_worker.py", given, asked, out, timeout=HOUR)
        with np.load(out) as held:
            return list(zip(held["played"].astype(np.int64), held["us"].tolist(), strict=True))


@cache
def vowpal_python() -> Path:
    """Return the Python that has Vowpal Wabbit, installed now if it is not there."""
    return environment(VOWPAL_WABBIT).python


OURS, WITHOUT = "shared model", "without intercepts"
LINUCB, TUNED = "LinUCB for each item", "LinUCB for each item, tuned"
PRODUCTS = "LinUCB over the same products"
CONCATENATION, DEFAULT = "concatenation", "the default for each item"
ARMLET: tuple[Player, ...] = (
    Shared(OURS, armlet.SharedOptimism()),
    Shared(WITHOUT, armlet.SharedOptimism(intercepts=False)),
    Shared("greedy", armlet.SharedOptimism(share=0.0)),
    Shared("draws", armlet.SharedThompson()),
    Shared(CONCATENATION, armlet.SharedOptimism(interactions="none")),
    PerItem(LINUCB, armlet.LinUCB(alpha=1.0)),
    PerItem(TUNED, armlet.LinUCB(alpha=0.1)),  # of 0.1, 0.3, 0.5, 1 and 2, on seeds 1 and 2
    Products(PRODUCTS, 0.03),  # of 0.03, 0.1, 0.3 and 1, on seeds 1 and 2
    PerItem(DEFAULT, armlet.OccasionalOptimism()),
    PerItem("HybridLinUCB", HybridLinUCB(alpha=0.1)),
    Random(),
)

SQUARES = Shared("with squares", armlet.SharedOptimism(), squares=True)
ALONE = (LINUCB, TUNED, PRODUCTS)
SEEDS = {"both": 20, "clicks": 20, "both-item": 10, "clicks-item": 10, "taste": 10}
FEW = 10  # seeds of who is there for scale
VW = "Vowpal Wabbit, tuned"
VOWPAL = {  # by --tune
    "both": Vowpal(VW, "--regcbopt --mellowness 0.0001 --cb_min_cost -6 --cb_max_cost 6 -l 20"),
    "clicks": Vowpal(VW, "--regcbopt --mellowness 0.0001 --cb_min_cost -1 --cb_max_cost 0 -l 1"),
    "both-item": Vowpal(VW, "--regcbopt --mellowness 0.0001 --cb_min_cost -6 --cb_max_cost 6 -l 20", ids=True),
    "clicks-item": Vowpal(VW, "--regcbopt --mellowness 0.001 --cb_min_cost -1 --cb_max_cost 0 -l 1", ids=True),
    "taste": Vowpal(VW, "--squarecb --gamma_scale 3000 -l 20", ids=True),
}
DRAWN = {
    OURS: "one model for all items",
    VW: "Vowpal Wabbit, tuned",
    TUNED: "LinUCB for each item, tuned",
    DEFAULT: "the default for each item",
    "uniform": "uniform play",
}

RANGE = {False: "--cb_min_cost -6 --cb_max_cost 6", True: "--cb_min_cost -1 --cb_max_cost 0"}


def grid(world: World) -> list[Vowpal]:
    """Return what is tried; where items differ or taste is a distance, less of it."""
    wide, cost = world.key in ("both", "clicks"), RANGE[world.clicks]
    if world.clicks:
        rates, scales = ((0.2, 0.5, 1, 2, 5), (1_000, 10_000, 100_000)) if wide else ((0.5, 1, 2), (10_000, 100_000))
        mellow = dict.fromkeys((1e-4, 1e-3), (0.1, 0.2, 0.5, 1, 2) if wide else (0.5, 1))
    else:
        rates, scales = ((2, 5, 10, 20, 40), (300, 3_000, 30_000)) if wide else ((20,), (3_000,))
        mellow = {1e-4: (20, 40), 1e-3: (2, 10, 20, 40), 1e-2: (2, 10, 40)} if wide else {1e-4: (20,), 1e-3: (20,)}
    greedy = rates if world.clicks else (2, 5, 10, 20, 40, 80) if wide else (40,)
    options = [
        *(("SquareCB", f"--squarecb --gamma_scale {scale} -l {rate}") for scale in scales for rate in rates),
        *(("greedy", f"--epsilon 0 -l {rate}") for rate in greedy),
        *(
            ("RegCB-opt", f"--regcbopt --mellowness {m:g} {cost} -l {rate}")
            for m, few in mellow.items()
            for rate in few
        ),
    ]
    with_names = (False, True) if world.key == "taste" else (ITEMS in world.settings,)  # names of items
    return [Vowpal(family, each, ids) for ids in with_names for family, each in options]


def tune(world: World) -> None:
    """Try settings of Vowpal Wabbit on two seeds, and in two environments the best two of each family on six more."""
    found = regrets(world, grid(world), FIRST)
    if world.key in ("both", "clicks"):
        families = [[one for one in found if one.name == name] for name in ("SquareCB", "greedy", "RegCB-opt")]
        regrets(world, [one for each in families for one in sorted(each, key=lambda one: found[one])[:2]], SECOND)


def regrets(world: World, tried: Sequence[Vowpal], seeds: range) -> dict[Vowpal, float]:
    """Print and return the mean regret of settings."""
    played = [ask(tried, draw(world, seed)) for seed in seeds]
    means = {}
    for place, one in enumerate(tried):
        found = zip(seeds, played, strict=True)
        lost = [Played.of(draw(world, seed), answers[place][0], 0.0).regret for seed, answers in found]
        means[one] = float(np.mean(lost))
        settings = f"{one.name:10} {one.options}{' ids' * one.ids}"
        print(f"{world.key:12} seeds {seeds[0]}-{seeds[-1]} {means[one]:9.1f}  {settings}", flush=True)
    return means


def measured(world: World, player: Player, seed: int, kept: Path) -> Played:
    """Play one seed, unless what was played is kept in the folder."""
    draws = draw(world, seed)
    settings = f"{player.options} {player.ids}" if isinstance(player, Vowpal) else repr(player)
    path = kept / f"{hashlib.sha256(f'{world} {settings} {seed}'.encode()).hexdigest()[:16]}.npz"
    if not path.exists():
        played, us = player.play(draws)
        kept.mkdir(parents=True, exist_ok=True)
        np.savez(path, played=played.astype(np.int16), us=us)
    with np.load(path) as held:
        return Played.of(draws, held["played"].astype(np.int64), float(held["us"]))


def players(world: World) -> dict[Player, int]:
    """Return who plays an environment, and on how many seeds: those that verdicts are about on all of them."""
    n = SEEDS[world.key]
    judged = {player: n for player in ARMLET if player.name in (OURS, WITHOUT, *ALONE, "uniform")}
    scale = {player: min(n, FEW) for player in ARMLET if player.name in (CONCATENATION, DEFAULT)}
    more = {player: min(n, FEW) for player in ARMLET if player not in judged and player not in scale}
    if world.key not in ("both", "clicks"):
        more = {SQUARES: n} if world.key == "taste" else {}
    return judged | scale | more | {VOWPAL[world.key]: n}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, metavar="N", help="so many, from 100 on; 20, or 10 of some")
    parser.add_argument("--only", nargs="+", choices=[world.key for world in WORLDS], metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="three seeds and two environments")
    parser.add_argument("--tune", action="store_true", help="Vowpal Wabbit's settings, on seeds 1 to 8")
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER")
    given = parser.parse_args(arguments)
    keys = given.only or (["both", "clicks"] if given.quick else [world.key for world in WORLDS])
    worlds = [world for world in WORLDS if world.key in keys]
    if given.tune:
        for world in worlds:
            tune(world)
        return
    reports = {world.key: Report(world, OURS, (*ALONE, VW)) for world in worlds}
    for world in worlds:
        for player, count in players(world).items():
            seeds = range(100, 100 + (given.seeds or (3 if given.quick else count)))
            found = [measured(world, player, seed, given.out / "played") for seed in seeds]
            reports[world.key].played[player.name] = found
            print(f"    {world.name}: {player.name} {reports[world.key].regret(player.name)}", flush=True)
    names = dict.fromkeys(name for report in reports.values() for name in report.played)
    write(reports, list(names), DRAWN, given.out)


if __name__ == "__main__":
    main()
