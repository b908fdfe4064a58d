"""The fuzzer of kernel objects: what policies and experiments call, with wrong shapes, types, sizes and orders.

These calls are not public: a refusal is a ValueError, a TypeError, a KeyError of an array, an IndexError of an
arm or a MergeError, in the kernel's words. Public calls that pass arguments on to the kernel refuse in Armlet's, which
the fuzzer of calls requires.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from random import Random
from typing import Any, cast

import numpy as np

from armlet import kernel
from armlet.environments.environment import FiniteEnvironment
from armlet.errors import MergeError
from armlet.kernel import AutoTunedStatistics, Statistics
from fuzz import values
from fuzz.faults import Fault, Hostility
from fuzz.values import pick

LENGTH = 100
SIZES = (0, 1, 2, 3, 5, 17)
ALLOWED = (ValueError, TypeError, KeyError, IndexError, MergeError, Hostility)


def play(case: int) -> int:
    """Play one case; how many calls it made. Raises a Fault."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        desk = Desk(case)
        for step in range(LENGTH):
            act = desk.rng.choice(MENU)
            try:
                act(desk)
            except ALLOWED:
                continue
            except Exception as error:
                raise Fault(f"call {step}, {act.__name__}: raised {error!r:.300}") from error
        return LENGTH


class Desk:
    """Kernel objects of one shape, and others of another."""

    def __init__(self, case: int) -> None:
        self.rng = rng = Random(case)
        self.n_arms, self.dim = rng.choice((1, 2, 3, 7)), rng.choice((1, 2, 3, 9))
        self.held: list[Any] = [make(rng, self.n_arms, self.dim) for _ in range(4)]
        self.held += [make(rng, rng.choice((1, 2, 5)), rng.choice((1, 2, 4)))]

    def deed(self) -> Any:
        """Raise, or answer nonsense."""
        if self.rng.random() < 0.3:
            raise Hostility("an object")
        return self.rng.choice(values.WRONG + values.ODD)

    def one(self) -> Any:
        return self.rng.choice(self.held)

    def arm(self) -> Any:
        return self.rng.choice(
            (*range(self.n_arms), *range(self.n_arms), self.n_arms, -1, 2**31, 2**32, 2**63, 2**64, None, 0.5)
        )

    def number(self) -> Any:
        return values.number(self.rng, self.deed)

    def array(self, *shape: int) -> Any:
        """Draw an array: mostly of this shape and float64."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.1:
            shape = tuple(rng.choice(SIZES) for _ in range(rng.choice((0, 1, 2, 3))))
        flat = [
            rng.choice((rng.gauss(0, 1), rng.gauss(0, 1), rng.choice(values.EXTREMES)))
            for _ in range(int(np.prod(shape)))
        ]
        made = np.array(flat, dtype=np.float64).reshape(shape)
        if kind > 0.97:
            made.flat[:1] = rng.choice((np.nan, np.inf, -np.inf, 1e308))
        if kind > 0.85:
            return self.disguised(made)
        return made

    def floats(self, *shape: int) -> Any:
        """Draw a float64 array of this shape, with an extreme value here and there."""
        flat = [self.rng.choice((self.rng.gauss(0, 1), *values.EXTREMES[-9:])) for _ in range(math.prod(shape))]
        return np.array(flat, dtype=np.float64).reshape(shape)

    def disguised(self, made: Any) -> Any:
        return pick(
            self.rng,
            [
                lambda: made,
                lambda: made,
                lambda: made.astype(self.rng.choice(["f4", "i8", "u1", "?", ">f8", "O", "c16"])),
                lambda: made.T,
                lambda: np.repeat(made, 2, axis=-1)[..., ::2] if made.ndim else made,
                lambda: made.tolist(),
                lambda: np.frombuffer(b"\0" + made.tobytes(), dtype=np.uint8)[1:].view("f8") if made.size else made,
                lambda: values.Fights(self.deed, made.tolist()),
                lambda: self.rng.choice(values.ODD),
            ],
        )()


def make(rng: Random, n_arms: int, dim: int) -> Any:
    """Make sums of one kind or another."""
    given: dict[str, Any] = (
        {"ridge": "constant", "value": rng.choice((1.0, 1e-40, 1e40, 0.3))} if rng.random() < 0.5 else {}
    )
    return rng.choice((Statistics, Statistics, AutoTunedStatistics))(n_arms, dim, **given)


def build(d: Desk) -> None:
    kind: Any = d.rng.choice((Statistics, AutoTunedStatistics))
    shape = [d.rng.choice((0, -1, 1, 3, 2.0, "2", None, True)) for _ in range(d.rng.choice((1, 2, 3)))]
    d.held[d.rng.randrange(4)] = kind(
        *shape, ridge=d.rng.choice(("paper", "1/n", "constant", "", None)), value=d.number()
    )


def add(d: Desk) -> None:
    d.one().add(d.arm(), d.array(d.dim), d.number(), *([d.number()] if d.rng.random() < 0.3 else []))


def add_plainly(d: Desk) -> None:
    d.one().add(d.rng.randrange(d.n_arms), d.array(d.dim), d.rng.choice((0.0, 1.0, -1e20, 1e40)))


def correct(d: Desk) -> None:
    d.one().correct(d.arm(), d.array(d.dim), d.number(), d.number(), d.number())


def read(d: Desk) -> None:
    s = d.one()
    name = d.rng.choice(
        [
            "estimates",
            "noise",
            "log_determinants",
            "records",
            "arrays",
            "copy",
            "scores",
            "widths",
        ]
    )
    if hasattr(s, name):
        getattr(s, name)(*([d.array(d.dim)] if name in ("scores", "widths") else []))


def change_arms(d: Desk) -> None:
    s = d.one()
    if d.rng.random() < 0.5 and s.n_arms < 20:
        s.add_arm()
    else:
        s.remove_arm(d.rng.choice((0, d.arm())))


def merge(d: Desk) -> None:
    s, other = d.one(), d.one()
    into = [
        d.rng.choice((i, d.arm())) if d.rng.random() < 0.2 else i
        for i in range(d.rng.choice((other.n_arms, other.n_arms, 0, 3)))
    ]
    s.merge(other, d.rng.choice((into, into, into, None, values.Fights(d.deed, into))))


def restore(d: Desk) -> None:
    s, held = d.one(), cast("dict[str, Any]", d.one().arrays())
    for name in list(held):
        if d.rng.random() < 0.3:
            held[name] = d.array(*held[name].shape)
        if d.rng.random() < 0.05:
            del held[name]
    if d.rng.random() < 0.3 and hasattr(s, "restore"):
        s.restore(held.get("records"))
    else:
        s.restore_arrays(held)


def rule(d: Desk) -> Any:
    """Draw a rule that the kernel plays, some settings of which are wild or wrong."""

    def n() -> Any:
        return d.number() if d.rng.random() < 0.2 else d.rng.choice((1.0, 0.5, 4.0, 0.05, 1e-40, 1e40))

    yes = d.rng.choice((True, False))
    return pick(
        d.rng,
        [
            lambda: kernel.Schedule(n(), round_robin=yes, learn_always=d.rng.choice((True, False))),
            lambda: kernel.Optimism.constant(n()),
            lambda: kernel.Optimism.oful(
                d.rng.choice(("per-arm", "joint", "")), noise_scale=n(), bound=n(), delta=n(), scale=n()
            ),
            lambda: kernel.Thompson.constant(n()),
            lambda: kernel.Thompson.theory(noise_scale=n(), delta=n(), scale=n()),
            lambda: kernel.AutoSchedule(
                horizon=d.rng.choice((1.0, 100.0, 1e12, n())), caution=n(), start=n(), most=n(), round_robin=yes
            ),
        ],
    )()


def roll(d: Desk) -> None:
    steps = d.rng.choice((0, 1, 20))
    kernel.rollout(
        d.array(steps, d.dim), d.array(steps, d.n_arms), start=d.one(), rule=rule(d),
        seed=d.rng.choice((1, 2**127, 2**128, -1)),
        t=d.rng.choice((0, 0, 5, 2**62, 2**63 - 2, 2**64 - 1, -1)), propensities=d.rng.choice(("exact", "skipped")),
    )  # fmt: skip


def simulate(d: Desk) -> None:
    m, noise = d.rng.choice((1, 1, 2, 3, 0)), pick(d.rng, ("none", "proportional", "gaussian", "bernoulli", "odd"))
    table = FiniteEnvironment(
        contexts=d.floats(m, d.dim), means=d.floats(m, d.n_arms), noise=noise, scale=d.number(),
        chances=d.rng.choice((np.full(m, 1 / max(m, 1)), d.floats(m))),
    )  # fmt: skip
    horizon = d.rng.choice((1, 50, 200))
    marks = np.array(sorted(d.rng.sample(range(1, horizon + 1), min(3, horizon))))
    at = d.rng.choice(
        (marks, marks, marks[::-1], marks - 1, marks + horizon, marks.astype("f8"), np.zeros(0, dtype=np.int64))
    )
    run: Any = d.rng.choice((kernel.simulate_steps, kernel.simulate_events))
    run(table, start=d.one(), rule=rule(d), horizon=horizon, checkpoints=at, environment_seed=1, policy_seed=2)


def search(d: Desk) -> None:
    n = d.rng.choice((0, 1, 2, 6, 30))
    rows, counts = d.array(n, d.dim), np.array([float(d.rng.choice((1, 1, 2, 3))) for _ in range(n)])
    if n and d.rng.random() < 0.1:
        counts[d.rng.randrange(n)] = d.rng.choice((0.0, -1.0, 0.5, np.nan, np.inf, 1e60))
    how = d.rng.choice(("exact", "relaxed", "counts", "none"))
    if d.rng.randrange(3) < 2:
        kernel.search_subset(how, d.array(d.dim), rows, counts)
    else:
        kernel.estimate_subset(rows, counts, d.array(n), d.array(n), d.rng.choice((d.dim, d.dim, 0, -1, 2**40)))


def small(d: Desk) -> None:
    n = d.rng.choice(SIZES)
    pick(
        d.rng,
        [
            lambda: kernel.coins(
                pick(d.rng, (1, -1, 2**128, 2**127, 0.5, None)), d.rng.choice((0, 1, -1, 2**64, 2**63))
            ),
            lambda: kernel.normals(d.arm(), d.arm(), pick(d.rng, (0, 1, 9, -1, 0.5))),
            lambda: kernel.win_probabilities(d.array(n), d.array(n)),
            lambda: kernel.argmax_rows(d.array(n, d.dim), d.array(d.n_arms, d.dim)),
            lambda: kernel.argmax_rows(d.array(70, d.dim), d.array(d.n_arms, d.dim)),
            lambda: kernel.clear_argmax(d.array(70, d.dim), d.array(d.n_arms, d.dim)),
            lambda: kernel.sum_moments(d.array(n, d.dim), d.array(d.dim)),
        ],
    )()


def tune(d: Desk) -> None:
    s = d.one()
    if isinstance(s, AutoTunedStatistics):
        plan = rule(d)
        s.p(plan), s.look(plan, d.number()), s.learned(plan, d.array(d.dim), d.number(), d.arm())


MENU: tuple[Callable[[Desk], None], ...] = (
    build, *[add] * 3, *[add_plainly] * 4, correct, *[read] * 4, change_arms, merge, merge, restore, restore,
    roll, roll, simulate, simulate, search, search, small, small, tune, tune,
)  # fmt: skip
