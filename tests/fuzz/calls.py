"""The fuzzer of calls: every public method of a bandit, with good and bad arguments, in any order."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from armlet import Bandit, Decision
from armlet.inference.view import Inference
from fuzz import outcomes, policies, records, upkeep, values
from fuzz.faults import Fault, View, plain, require, same_moment
from fuzz.session import FOLDER, PLENTY, Call, Session

LENGTHS = {True: 200, False: 60}  # calls in a case of a compiled policy, and of one that runs in Python


def play(case: int) -> int:
    """Play one case; how many calls it made. Raises a Fault."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        session = Session(case, Path(folder))
        name = policies.name_of(session.policy)
        length = 20 if name in policies.SLOW else LENGTHS[name in policies.COMPILED]
        for step in range(length):
            call = draw(session)
            try:
                session.play(call)
                if session.rng.random() < 0.2:
                    session.probe()
            except Fault as fault:
                raise Fault(f"call {step} of {session.policy!r:.300}, {session.settings}: {fault}") from fault
        return length


def draw(s: Session) -> Call:
    """Draw the next call."""
    s.busy = True  # hostile objects wait until they are in the bandit's hands
    call = None
    while call is None:  # some need a decision to be there first
        call = s.rng.choice(MENU)(s)
    s.busy = False
    return call


def context(s: Session) -> Any:
    return values.row(s.rng, s.dim, s.scale, s.deed, s.features)


ASKED: Final[tuple[Literal["marginal"] | None, ...]] = (None, "marginal")


def contexts(s: Session) -> tuple[Any, int]:
    """Draw a batch of contexts and its length, as far as it has one."""
    kind, n = s.rng.random(), s.rng.choice((0, 1, 1, 2, 5, 40))
    if kind < 0.6:
        return np.array([[s.scale * s.rng.uniform(-1, 1) for _ in range(s.dim)] for _ in range(n)]).reshape(n, s.dim), n
    if kind < 0.9:
        return [context(s) for _ in range(n)], n
    return context(s), 1


def eligible(s: Session) -> Any:
    """Draw who may be played: mostly all or some."""
    kind = s.rng.random()
    if kind < 0.6:
        return None
    some: list[Any] = s.rng.sample(s.bandit.arms, s.rng.randint(0, len(s.bandit.arms)))
    if kind < 0.85:
        return some
    return values.column(s.rng, [*some, upkeep.label(s)], s.deed)


def decide(s: Session) -> Call:
    x, arms, asked = context(s), eligible(s), s.rng.choice(ASKED)
    more = {"weights": outcomes.dial(s), **outcomes.unit(s)}

    def check(d: Decision, before: View) -> None:
        require(d.marginal or asked is None, lambda: "a propensity is not marginal, though it was asked for")
        require(not (d.explored and d.optimistic), lambda: "a step explores and is optimistic")
        require(s.bandit.t == before.t + 1 == d.t, lambda: f"decide went from step {before.t} to {s.bandit.t}")
        check_played(d.arm, d.propensity, before, arms)
        keep(s, d)

    return Call("decide", lambda: s.bandit.decide(x, eligible=arms, propensity=asked, **more), "decides", check)


def check_played(arm: object, propensity: float, before: View, arms: Any) -> None:
    """Require an arm that was there, was not retired and was eligible, and a probability that is one."""
    name = plain(arm)
    require(name in before.arms and name not in before.retired, lambda: f"played {arm!r}, which was not there to play")
    if type(arms) is list:
        require(name in [plain(each) for each in arms], lambda: f"played {arm!r}, which was not eligible")
    require(0 < propensity <= 1, lambda: f"played with propensity {propensity!r}")


def keep(s: Session, decision: Decision) -> None:
    s.decisions.append(decision)
    del s.decisions[:-PLENTY]


def decide_many(s: Session) -> Call:
    (X, n_rows), arms, asked, dial = contexts(s), eligible(s), s.rng.choice(ASKED), outcomes.dial(s)
    of = outcomes.unit(s)
    more = {"weights": dial, "epoch": of.get("epoch"), "units": [of["unit"], None] * n_rows if of else None}
    if of and s.rng.random() < 0.8:
        more["units"] = [s.rng.choice((of["unit"], None)) for _ in range(n_rows)]

    def check(ds: Any, before: View) -> None:
        n = len(ds)
        require(ds.marginal.all() or asked is None, lambda: "propensities are not marginal, though it was asked for")
        require(s.bandit.t == before.t + n, lambda: f"{n} decisions went from step {before.t} to {s.bandit.t}")
        for arm, propensity in zip(ds.arms, ds.propensities, strict=True):
            check_played(arm, propensity, before, arms)
        for row in range(min(n, 3)):
            keep(s, ds[row])
        with contextlib.suppress(IndexError, TypeError):
            ds[s.rng.choice([-1, n, n + 1, -n - 1, 2**31, 2**63, -(2**70), "0", None, 0.5])]

    return Call(
        "decide_many", lambda: s.bandit.decide_many(X, eligible=arms, propensity=asked, **more), "decides", check
    )


def learn(s: Session) -> Call | None:
    if not s.decisions:
        return None
    d, reward = s.rng.choice(s.decisions), outcomes.reward(s)
    more = {"weight": s.number()} if s.rng.random() < 0.2 else {}

    def check(_: None, before: View) -> None:
        whole = not s.learned or set(d.reward or ()) == set(s.learned)
        require(d.learned == whole and s.bandit.t == before.t, lambda: f"learned, but the decision says {d.learned}")

    return Call("learn", lambda: s.bandit.learn(d, reward, **more), "changes", check, d)


def learn_strange(s: Session) -> Call:
    """A decision of a bandit that this one never met, or no decision at all."""
    if s.rng.random() < 0.5:
        nothing: Any = values.pick(s.rng, [None, 1, "id", object(), s.bandit, values.Fights(s.deed)])
        return Call("learn of no decision", lambda: s.bandit.learn(nothing, 1.0), "reads", of=(Bandit.learn,))
    d = strange(s)

    def check(_: None, __: View) -> None:
        raise Fault("a decision of a bandit that this one never met was learned")

    return Call(
        "learn of a stranger",
        lambda: s.bandit.learn(d, outcomes.good_reward(s)),
        "changes",
        check,
        d,
        of=(Bandit.learn,),
    )


def strange(s: Session) -> Decision:
    return s.stranger.decide([s.scale] * s.dim)


def learn_many(s: Session) -> Call | None:
    if not s.decisions:
        return None
    n = s.rng.choice((0, 1, 3, 8))
    some = s.rng.sample(s.decisions, min(n, len(s.decisions)))
    if s.rng.random() < 0.5:
        some = [d for d in some if not d.learned]
    if s.rng.random() < 0.1:
        some.append(strange(s) if s.rng.random() < 0.5 else s.rng.choice(s.decisions))
    rewards = outcomes.rewards(s, len(some), s.number)
    weights = values.column(s.rng, [s.number() for _ in some], s.deed)
    chosen = {"weights": weights} if s.rng.random() < 0.2 else {}
    one = some[0] if some else None
    return Call("learn_many", lambda: s.bandit.learn_many(some, rewards, **chosen), "changes", None, one)


def logged(s: Session) -> Call:
    """A log, to learn on top or afresh."""
    X, n = contexts(s)
    arms = values.column(s.rng, [upkeep.label(s) if s.rng.random() < 0.1 else known(s) for _ in range(n)], s.deed)
    plain_rewards = s.rng.random() < 0.6
    held = outcomes.rewards(s, n, (lambda: float(s.rng.randrange(2))) if plain_rewards else s.number)
    marks = values.column(s.rng, [s.rng.choice([True, False, 0, 1]) for _ in range(n)], s.deed)
    explored = s.rng.choice([None, True, True, False, marks])
    name = s.rng.choice(("partial_fit", "partial_fit", "fit"))
    steps = s.rng.choice([None, None, None, 0, 7, s.number()])
    counted = n if steps is None else steps

    def learn() -> None:
        getattr(s.bandit, name)(X, arms, held, explored=explored, steps=steps)

    says_another = isinstance(steps, values.Fights | values.FightingInt)  # number each time
    return Call(name, learn, "changes", None if says_another else check_clock(s, counted))


def check_clock(s: Session, steps: Any = 0) -> Callable[[Any, View], None]:
    def check(_: Any, before: View) -> None:
        require(
            s.bandit.t == before.t + int(steps),
            lambda: f"the clock went from {before.t} to {s.bandit.t}, not by {steps}",
        )

    return check


def known(s: Session) -> Any:
    return s.rng.choice(s.bandit.arms)


def amend(s: Session) -> Call | None:
    """Correct or forget."""
    done = [d for d in s.decisions if d.reward is not None]
    if not (done or s.decisions):
        return None
    d = s.rng.choice(done or s.decisions)
    old = d.reward if s.rng.random() < 0.8 and d.reward is not None else outcomes.reward(s)
    new = outcomes.other_rewards(s, old)
    if s.rng.random() < 0.5:
        return Call("correct", lambda: s.bandit.correct(d, old, new), "changes", check_clock(s), d)
    return Call("forget", lambda: s.bandit.forget(d, old), "changes", check_clock(s), d)


def expire(s: Session) -> Call | None:
    if not s.decisions:
        return None
    d = s.rng.choice(s.decisions)

    def check(_: Any, before: View) -> None:
        require(d.expired and not d.learned, lambda: f"{d!r} was expired, but says otherwise")
        now = before._replace(spending=s.bandit._spending)  # a cost may be waited for no more
        same_moment(s.bandit, now, "expire ends a wait", but_for="under_way")

    return Call("expire", lambda: s.bandit.expire(d), "changes", check, d)


def read(s: Session) -> Call:
    (X, _), arms, dial = contexts(s), eligible(s), outcomes.dial(s)
    kind = s.rng.randrange(4)
    if kind == 0:
        return Call("predict_expectations", lambda: s.bandit.predict_expectations(X, weights=dial), "reads")
    if kind == 1:
        return Call("predict", lambda: s.bandit.predict(X, eligible=arms, weights=dial), "reads")
    check = chances_check(s, arms)
    return Call("predict_proba", lambda: s.bandit.predict_proba(X, eligible=arms, weights=dial), "reads", check)


def inspect(s: Session) -> Call:
    """What it knows and how surely; some policies have no sums to say so."""
    x, kind = context(s), s.rng.randrange(4)
    if kind == 0:
        return Call("explain", lambda: s.bandit.inference.explain(x), "reads", of=(Inference.explain,))
    if kind == 1:
        arms = [upkeep.label(s) for _ in range(2)]
        contrast = lambda: s.bandit.inference.contrast(arms[0], arms[1], x, noise_scale=1.0)  # noqa: E731
        return Call("contrast", contrast, "reads", of=(Inference.contrast,))
    number = s.number()
    if kind == 2:
        intervals = lambda: s.bandit.inference.intervals(interval="anytime", noise_scale=number)  # noqa: E731
        return Call("intervals", intervals, "reads", of=(Inference.intervals,))
    return Call("summary", lambda: str(s.bandit.inference.summary(level=number)), "reads", of=(Inference.summary,))


def chances_check(s: Session, arms: Any) -> Callable[[Any, View], None]:
    def check(chances: Any, before: View) -> None:
        out = set(before.retired)
        if type(arms) is list:
            out |= set(before.arms) - {plain(each) for each in arms}
        s.sound(chances, [i for i, arm in enumerate(before.arms) if arm in out])

    return check


def restored(s: Session) -> Call | None:
    """A decision from its parts, some of them wrong; kept to be learned later."""
    if not s.decisions:
        return None
    d = s.rng.choice(s.decisions)
    parts: dict[str, Any] = {
        "id": d.id, "arm": d.arm, "propensity": d.propensity, "explored": d.explored, "x": d.x,
        "reward": d.reward, "weight": d.weight, "tag": d.tag, "optimistic": d.optimistic, "marginal": d.marginal,
        "unit": d.unit, "epoch": d.epoch, "weights": d.weights, "learned": d.learned,
    }  # fmt: skip
    if s.rng.random() < 0.6:
        part = s.rng.choice(list(parts))
        parts[part] = s.rng.choice(
            [
                s.number(),
                context(s),
                upkeep.label(s),
                "1-0",
                "0-0011223344556677",
                f"{2**63}-{'f' * 16}",
            ]
        )

    def restore() -> None:
        keep(s, Decision.restore(**parts))

    return Call("Decision.restore", restore, "reads", of=(Decision.restore,))


MENU: tuple[Callable[[Session], Call | None], ...] = (
    *[decide] * 6, *[decide_many] * 3, *[learn] * 7, *[learn_many] * 2, *[logged] * 3, *[amend] * 3, *[read] * 3,
    expire, inspect, learn_strange, restored, *records.MENU, *upkeep.MENU, *outcomes.MENU,
)  # fmt: skip
