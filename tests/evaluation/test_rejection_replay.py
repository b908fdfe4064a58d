"""A learner on rows that another has played: exactly what it would have done live, or a refusal."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import kernel
from armlet.cli import main
from armlet.errors import LogError
from armlet.evaluation import rejection_replay
from armlet.evaluation.rows import Blocks, Rows
from armlet.log import from_obp, write
from armlet.types import Bool, Float64, Policy

K, D = 3, 2
THETA = np.array([[1.0, 0.0], [-1.0, 0.2], [0.0, 1.0]])
UNIFORM = np.full(K, 1 / K)
WEIGHTED = np.array([0.6, 0.3, 0.1])


class Made(Blocks):
    """Rows that lie in memory, cut into blocks."""

    def __init__(self, rows: Rows, cut: int = 10**9, **about: Any) -> None:
        super().__init__({"dim": D, **about})
        self.arms, self.n, self._rows, self._cut = ("a", "b", "c"), len(rows), rows, cut

    def __len__(self) -> int:
        return -(-self.n // self._cut)

    def _read(self, block: int) -> Rows:
        return self._rows.take(slice(block * self._cut, (block + 1) * self._cut))


def environment(rng: np.random.Generator, n: int) -> tuple[Float64, Float64]:
    """Draw contexts and what each arm pays: most where x_1 is high, and there arm a is best."""
    X = rng.normal(size=(n, D))
    return X, X @ THETA.T + X[:, :1] + 0.3 * rng.normal(size=(n, K))


def logged(seed: int, n: int, chances: Float64, eligible: Bool | None = None) -> Rows:
    """Log rows whose arms were drawn with these chances, whatever the context, among those that might be played."""
    rng = np.random.default_rng(seed)
    X, paid = environment(rng, n)
    may = np.ones((n, K), dtype=np.bool_) if eligible is None else eligible
    given = np.where(may, chances, 0.0)
    given /= given.sum(axis=1, keepdims=True)
    arm = (given.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    at = np.arange(n)
    return Rows(
        t=at + 1,
        X=X,
        arm=arm,
        reward=paid[at, arm],
        propensity=given[at, arm],
        explored=np.ones(n, dtype=np.int8),
        exploration_rate=np.ones(n),
        exploration_propensity=given[at, arm],
        min_exploration_probability=np.where(may, given, 1.0).min(axis=1),
        greedy=np.full(n, -1, dtype=np.int8),
        turn=np.zeros(n, dtype=np.bool_),
        eligible=may,
        weight=np.ones(n),
        probabilities=None,
    )


STEPS = 100
POLICIES: list[Policy] = [
    armlet.ContextualEpsilonGreedy(p=12),
    armlet.LinUCB(alpha=0.5),
    armlet.ThompsonSampling(v=0.5),
]


def live(policy: Policy, runs: int) -> Float64:
    """Return the mean reward of 100 steps in each of some runs, as the policy earns it by itself."""
    out = np.empty(runs)
    for run in range(runs):
        X, paid = environment(np.random.default_rng([7, run]), STEPS)
        rule = policy.rule()
        assert rule is not None
        played = kernel.rollout(X, paid, start=policy.init(K, D), rule=rule, seed=run, propensities="skipped")
        out[run] = paid[np.arange(STEPS), played.arms].mean()
    return out


def replayed(policy: Policy, runs: int, chances: Float64, rows: int) -> Float64:
    """Return the same from logs."""
    found = [rejection_replay(Made(logged(run, rows, chances)), policy, seed=run) for run in range(runs)]
    assert min(each.accepted for each in found) >= STEPS
    return np.array([each.rewards[:STEPS].mean() for each in found])


def z_score(ours: Float64, theirs: Float64) -> float:
    return float(
        (ours.mean() - theirs.mean()) / np.hypot(ours.std() / len(ours) ** 0.5, theirs.std() / len(theirs) ** 0.5)
    )


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize(("chances", "rows"), [(UNIFORM, 480), (WEIGHTED, 1500)], ids=["uniform", "weighted"])
def test_a_learner_earns_on_a_log_what_it_earns_live(policy: Policy, chances: Float64, rows: int) -> None:
    found = z_score(replayed(policy, 120, chances, rows), live(policy, 400))
    assert abs(found) < 3.5  # six of them at fixed seeds: by chance in 1 of 400


def test_weighted_rows_that_are_not_thinned_would_be_found_out() -> None:
    policy = armlet.LinUCB(alpha=0.5)
    rows = [
        replace(
            logged(run, 600, WEIGHTED),
            exploration_propensity=np.full(600, 1 / 3),
            min_exploration_probability=np.full(600, 1 / 3),
        )
        for run in range(120)
    ]
    wrong = np.array(
        [rejection_replay(Made(each), policy, seed=run).rewards[:STEPS].mean() for run, each in enumerate(rows)]
    )
    assert abs(z_score(wrong, live(policy, 400))) > 10


def test_sets_that_go_with_the_context_are_kept_alike() -> None:
    """Where x_1 > 0 arms b and c may be played, else all: accepted contexts must still be half of each kind."""
    policy, shares = armlet.Uniform(), []
    for run in range(40):
        X, _ = environment(np.random.default_rng(run), 900)
        may = np.ones((900, K), dtype=np.bool_)
        may[X[:, 0] > 0, 0] = False
        rows = logged(run, 900, UNIFORM, may)
        assert np.array_equal(rows.X, X)
        found = rejection_replay(Made(rows), policy, seed=run)
        shares.append((X[found.t - 1, 0] > 0).mean())
    assert abs(np.mean(shares) - 0.5) < 4 * np.std(shares) / 40**0.5


def in_python(policy: Any) -> Policy:
    """Return the same policy, but of which the kernel knows no rule."""
    kind = type(type(policy).__name__, (type(policy),), {"rule": lambda _: None})
    made: Policy = kind(**{field.name: getattr(policy, field.name) for field in fields(policy) if field.init})
    return made


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_kernel_and_python_accept_the_same_rows_and_learn_the_same(policy: Policy) -> None:
    rows = logged(1, 400, WEIGHTED)
    ours, slow = (
        rejection_replay(Made(rows, cut=cut), each, seed=5) for cut, each in ((10**9, policy), (150, in_python(policy)))
    )
    assert ours.t.tolist() == slow.t.tolist()
    assert ours.explored.tolist() == slow.explored.tolist()
    for name, array in ours.bandit.state.arrays().items():
        assert np.array_equal(array, slow.bandit.state.arrays()[name]), name


def test_the_trained_bandit_has_learned_the_accepted_rows_and_no_others() -> None:
    rows = logged(3, 500, WEIGHTED)
    found = rejection_replay(Made(rows), armlet.LinUCB(alpha=0.5), seed=2)
    assert found.bandit.t == found.accepted == len(found.curve)
    at = found.t - 1
    again = armlet.Bandit(["a", "b", "c"], D, policy=armlet.LinUCB(alpha=0.5), seed=2)
    again.partial_fit(rows.X[at], [again.arms[arm] for arm in rows.arm[at]], rows.reward[at])
    weighed = found.bandit + armlet.Bandit(
        ["a", "b", "c"], D, policy=armlet.LinUCB(alpha=0.5), seed=3
    )  # as one batch is
    assert np.allclose(again.predict_expectations(rows.X[:5]), weighed.predict_expectations(rows.X[:5]), atol=1e-9)
    assert found.curve[-1] == pytest.approx(found.mean)
    assert found.kept < found.drawn == found.rows == 500
    assert str(found.accepted) in str(found)


def test_costs_are_costs() -> None:
    rows = logged(3, 900, UNIFORM)
    more = rejection_replay(Made(rows), armlet.LinUCB(alpha=0.5), seed=2)
    less = rejection_replay(Made(rows, objective="min"), armlet.LinUCB(alpha=0.5), seed=2)
    mirrored = rejection_replay(
        Made(replace(rows, reward=-rows.reward), objective="min"), armlet.LinUCB(alpha=0.5), seed=2
    )
    assert less.mean < rows.reward.mean() < more.mean
    assert mirrored.t.tolist() == more.t.tolist()
    assert mirrored.mean == -more.mean


def test_intervals_have_room_where_nobody_clicks_and_are_none_where_nothing_varies() -> None:
    rows = logged(3, 300, UNIFORM)
    none = rejection_replay(Made(replace(rows, reward=np.zeros(300))), armlet.Uniform(), seed=1).interval
    assert none is not None
    assert none.low == pytest.approx(0.0)
    assert 0.0 < none.high < 0.1
    assert rejection_replay(Made(replace(rows, reward=np.full(300, 2.0))), armlet.Uniform(), seed=1).interval is None
    found = rejection_replay(Made(rows), armlet.Uniform(), seed=1)
    assert found.interval is not None
    assert found.interval.low < found.mean < found.interval.high


def test_a_running_bandits_log_is_replayed_on_the_rows_that_its_coins_drew(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / "log.jsonl"
    with armlet.Log(path) as log:
        bandit = armlet.Bandit(
            ["a", "b", "c"], D, policy=armlet.Algorithm1(p=60, warmup="round-robin"), seed=4, log=log
        )
        explored = []
        X, paid = environment(rng, 400)
        for x, pay in zip(X, paid, strict=True):
            decision = bandit.decide(x)
            bandit.learn(decision, float(pay["abc".index(str(decision.arm))]))
            explored.append(decision.explored and decision.propensity < 1.0)
    found = rejection_replay(path, armlet.Greedy(), seed=1)
    assert found.drawn == sum(explored)  # neither exploited steps nor turns
    assert all(explored[t - 1] for t in found.t)


UNKNOWN: dict[str, Any] = {"explored": np.full(300, -1, dtype=np.int8), "exploration_propensity": np.full(300, np.nan)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"explored": np.zeros(300, dtype=np.int8)}, "no row of the log explored"),
        ({"exploration_propensity": np.full(300, np.nan)}, "300 of 300 explored rows have no exploration_propensity"),
        ({"reward": np.full(300, np.nan)}, "no row with a reward"),
        ({"weight": np.full(300, 2.0)}, "weights other than 1"),
        ({"explored": np.repeat(np.array([1, -1], dtype=np.int8), 150)}, "150 of 300 rows do not say"),
        (UNKNOWN | {"propensity": np.linspace(0.2, 0.5, 300)}, "may have depended on the context"),
        (UNKNOWN | {"propensity": np.full(300, 0.5)}, "add up to 1.5"),
        (UNKNOWN | {"arm": np.zeros(300, dtype=np.int64)}, "'b' was never played"),
    ],
)
def test_a_log_that_cannot_be_replayed_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(LogError, match=message):
        rejection_replay(Made(replace(logged(1, 300, UNIFORM), **change)), armlet.Greedy(), seed=1)


def test_a_log_of_others_is_replayed_where_every_arm_has_one_propensity() -> None:
    rows = logged(1, 300, WEIGHTED)
    known = rejection_replay(Made(rows), armlet.LinUCB(), seed=1)
    unknown = rejection_replay(Made(replace(rows, **UNKNOWN)), armlet.LinUCB(), seed=1)
    assert known.t.tolist() == unknown.t.tolist()


def test_the_command_prints_what_each_policy_would_have_earned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = logged(1, 300, UNIFORM)
    feedback = {"context": rows.X, "action": rows.arm, "reward": rows.reward, "pscore": rows.propensity}
    write(from_obp(feedback), tmp_path / "log.jsonl")
    main(
        [
            "rejection-replay",
            str(tmp_path / "log.jsonl"),
            "--policy",
            "LinUCB:alpha=1",
            "--policy",
            "Uniform",
            "--seed",
            "3",
        ]
    )
    printed = capsys.readouterr().out
    expected = rejection_replay(from_obp(feedback), armlet.LinUCB(alpha=1), seed=3)
    assert f"{expected.mean:.4f}" in printed
    assert "Uniform" in printed
    page = tmp_path / "replay.html"
    main(["rejection-replay", str(tmp_path / "log.jsonl"), "--policy", "Greedy", "--out", str(page)])
    assert f"Page: {page}" in capsys.readouterr().out
    assert "armlet rejection-replay" in page.read_text()
    both = ["--policy", "Greedy", "--policy", "Uniform", "--out", str(tmp_path / "both.html")]
    with pytest.raises(SystemExit, match="2"):
        main(["rejection-replay", str(tmp_path / "log.jsonl"), *both])
    assert "a page is of one: give --policy once" in capsys.readouterr().err
    assert not (tmp_path / "both.html").exists()
    with pytest.raises(SystemExit, match="2"):
        main(["rejection-replay", str(tmp_path / "log.jsonl"), "--policy", "Nobody"])
    write(from_obp(feedback | {"pscore": np.linspace(0.1, 0.9, 300)}), tmp_path / "other.jsonl")
    with pytest.raises(SystemExit, match="1"):
        main(["rejection-replay", str(tmp_path / "other.jsonl"), "--policy", "Uniform"])
