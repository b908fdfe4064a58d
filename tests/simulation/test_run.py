"""The runner: paired streams, exact sums, flat memory, and what it prints while it works."""

from __future__ import annotations

import io
import itertools
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import armlet
from armlet import cli
from armlet.environments import FigureA, Section7Growing
from armlet.environments.environment import Constants, FiniteEnvironment
from armlet.kernel import Statistics
from armlet.parallel import Seeds, _Shown, reporter
from armlet.simulation import run as runner
from armlet.simulation.play import PLACE, Curves, Job, Method, block_size, play, run_streams, spaced
from armlet.simulation.run import simulate, simulate_all, split
from armlet.types import Bool, Choice, Coins, Float64, Policy

ENVIRONMENT = FigureA.draw(np.random.default_rng(3))
GREEDY = armlet.Algorithm1(p=30)
POLICIES: list[Policy] = [
    GREEDY,
    armlet.AllDataEpsilonGreedy(p=30),
    armlet.Uniform(),
    armlet.Oracle(theta=ENVIRONMENT.theta),
]


@dataclass
class Recording:
    """An environment that remembers what it was asked for."""

    environment: FigureA
    shown: list[Float64] = field(default_factory=list)
    paid: list[Float64] = field(default_factory=list)

    @property
    def n_arms(self) -> int:
        return self.environment.n_arms

    @property
    def dim(self) -> int:
        return self.environment.dim

    def contexts(self, rng: np.random.Generator, n: int, *, start: int = 0) -> Float64:
        self.shown.append(self.environment.contexts(rng, n, start=start))
        return self.shown[-1]

    def means(self, X: Float64, *, start: int = 0) -> Float64:
        return self.environment.means(X, start=start)

    def rewards(self, rng: np.random.Generator, X: Float64, *, start: int = 0) -> Float64:
        self.paid.append(self.environment.rewards(rng, X, start=start))
        return self.paid[-1]

    def table(self) -> FiniteEnvironment | None:
        return None

    def constants(self) -> Constants:
        return self.environment.constants()

    def describe(self) -> list[str]:
        return self.environment.describe()


def by_hand(policy: Policy, seed: int, run: int, horizon: int) -> tuple[Float64, Float64, Float64]:
    """Play one run with a Bandit, a step at a time, and sum in plain Python."""
    contexts, noise, coins = run_streams(Seeds(seed, PLACE), run)
    X = ENVIRONMENT.contexts(contexts, horizon)
    rewards = ENVIRONMENT.rewards(noise, X)
    bandit = armlet.Bandit(range(ENVIRONMENT.n_arms), ENVIRONMENT.dim, policy=policy, seed=coins)
    sums, rows = [0.0, 0.0, 0.0], []
    for t in range(horizon):
        decision = bandit.decide(X[t])
        bandit.learn(decision, float(rewards[t, int(decision.arm)]))
        mu = ENVIRONMENT.means(X[t : t + 1])[0]
        lost = float(mu.max() - mu[int(decision.arm)])
        sums = [a + b for a, b in zip(sums, (lost, lost * decision.explored, decision.explored), strict=True)]
        rows.append(sums)
    regret, exploring, explored = np.array(rows).T
    return regret, exploring, explored


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
def test_a_run_is_the_loop_over_a_bandit(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armlet.simulation.play.block_size", lambda _: 97)  # several blocks, the last one short
    job = Job(environment=ENVIRONMENT, policy=policy, horizon=500, runs=3, seed=8, method="python")
    at = np.array(job.checkpoints) - 1
    regret, exploring, explored = by_hand(policy, 8, 2, 500)
    curves = play(job, 2)
    # one product for a block and one for a row may round otherwise in the last place
    np.testing.assert_allclose(curves.regret, regret[at], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(curves.exploring, exploring[at], rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(curves.explored, explored[at])


def test_all_policies_meet_the_same_contexts_and_noise() -> None:
    seen = []
    for policy in POLICIES:
        environment = Recording(ENVIRONMENT)
        simulate(environment, policy, horizon=200, runs=2, seed=5, engine="serial")
        seen.append((np.concatenate(environment.shown), np.concatenate(environment.paid)))
    for shown, paid in seen[1:]:
        np.testing.assert_array_equal(shown, seen[0][0])
        np.testing.assert_array_equal(paid, seen[0][1])


def test_runs_differ_and_do_not_depend_on_how_many_there_are() -> None:
    few, many = (simulate(ENVIRONMENT, GREEDY, horizon=300, runs=n, seed=5, engine="serial") for n in (2, 5))
    np.testing.assert_array_equal(few.regret, many.regret[:2])
    assert len({*many.at(300).tolist()}) == 5


def test_what_an_environment_was_before_a_block_is_told() -> None:
    environment = Section7Growing.draw(np.random.default_rng(1), rate="sqrt")
    jobs = [
        Job(environment=environment, policy=GREEDY, horizon=block_size(environment) + n, runs=1, seed=2)
        for n in (1, 900)
    ]
    short, long = (play(job, 0) for job in jobs)
    assert jobs[0].method == "python"
    assert short.explored[-1] <= long.explored[-1]


def test_memory_does_not_grow_with_the_horizon() -> None:
    def peak(horizon: int) -> int:
        job = Job(environment=ENVIRONMENT, policy=GREEDY, horizon=horizon, runs=1, seed=1, method="python")
        play(job, 0)
        tracemalloc.start()
        play(job, 0)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    short, long = peak(50_000), peak(800_000)
    assert long < 1.2 * short  # 16 times the steps


@pytest.mark.parametrize("method", ["steps", "events"])
def test_compiled_methods_follow_the_same_law(method: Method) -> None:
    settings = {"environment": ENVIRONMENT, "policy": GREEDY, "horizon": 3000, "runs": 300, "seed": 4}
    jobs = [Job(**settings, method=name) for name in ("python", method)]  # type: ignore[arg-type]
    python, compiled = simulate_all(jobs, engine="serial")
    for ours, theirs in ((python.at(3000), compiled.at(3000)), (python.explored[:, -1], compiled.explored[:, -1])):
        error = np.sqrt((ours.var() + theirs.var()) / 300)
        assert abs(ours.mean() - theirs.mean()) < 4.5 * error  # about 1 in 10^5 by chance, and the seeds are fixed


@pytest.mark.parametrize(
    ("policy", "environment", "horizon", "method"),
    [
        (GREEDY, ENVIRONMENT, 1000, "steps"),
        (GREEDY, ENVIRONMENT, 10**12, "events"),
        (armlet.AllDataEpsilonGreedy(p=30), ENVIRONMENT, 10**12, "steps"),
        (armlet.Oracle(theta=ENVIRONMENT.theta), ENVIRONMENT, 1000, "python"),
        (GREEDY, Section7Growing.draw(np.random.default_rng(1)), 1000, "python"),
    ],
)
def test_auto_takes_what_can_be_had(policy: Policy, environment: FigureA, horizon: int, method: str) -> None:
    assert Job(environment=environment, policy=policy, horizon=horizon, runs=1, seed=1).method == method


class Contrary(armlet.Uniform):
    """Plays the first arm always: a law that the kernel does not know."""

    def decide(self, state: Statistics, t: int, x: Float64, coins: Coins, eligible: Bool) -> Choice:  # noqa: ARG002
        return Choice(0, 1.0, True)

    def probabilities(self, state: Statistics, t: int, x: Float64, eligible: Bool) -> Float64:  # noqa: ARG002
        return np.array([1.0] + [0.0] * (state.n_arms - 1))


def test_a_subclass_with_a_law_of_its_own_is_played_by_it() -> None:
    job = Job(environment=ENVIRONMENT, policy=Contrary(), horizon=500, runs=3, seed=8)
    regret, _, _ = by_hand(Contrary(), 8, 2, 500)
    np.testing.assert_allclose(play(job, 2).regret, regret[np.array(job.checkpoints) - 1], rtol=1e-12, atol=1e-13)


def test_a_horizon_of_a_trillion_steps_is_no_matter() -> None:
    result = simulate(ENVIRONMENT, GREEDY, horizon=10**12, runs=2, seed=1, engine="serial")
    assert int(result.steps[-1]) == 10**12
    assert (np.diff(result.regret, axis=1) >= 0).all()
    assert (result.exploring <= result.regret * (1 + 1e-12)).all()


def test_checkpoints_are_spaced_in_log_t_with_the_quarters() -> None:
    steps = spaced(100_000)
    assert {1, 25_000, 50_000, 100_000} <= {*steps}
    assert 55 <= len(steps) <= 63
    assert spaced(1) == (1,)
    given = simulate(ENVIRONMENT, GREEDY, horizon=50, runs=1, seed=1, checkpoints=[50, 7, 7], engine="serial")
    assert given.steps.tolist() == [7, 50]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"horizon": 0}, "horizon is 0; give at least 1 step"),
        ({"runs": 0}, "runs is 0; give at least 1"),
        ({"seed": -1}, "seed is -1; give an integer from 0"),
        ({"checkpoints": (0, 3)}, r"checkpoints lie in 0..3; they must lie in 1..100"),
        ({"checkpoints": (101,)}, r"checkpoints lie in 101..101"),
        ({"method": "fast"}, "method is 'fast'; choose 'auto', 'steps', 'events', 'python'"),
        ({"policy": armlet.Algorithm1(p=3)}, "p is 3 but there are 6 arms"),
        ({"policy": armlet.Uniform(), "method": "events"}, "Uniform learns from every step, so it cannot jump"),
        (
            {"policy": armlet.Oracle(theta=ENVIRONMENT.theta), "method": "steps"},
            "needs a compiled policy and an environment that is",
        ),
    ],
)
def test_a_job_that_cannot_be_is_refused(wrong: dict[str, object], message: str) -> None:
    settings = {"environment": ENVIRONMENT, "policy": GREEDY, "horizon": 100, "runs": 2, "seed": 1, **wrong}
    with pytest.raises(ValueError, match=message):
        Job(**settings)  # type: ignore[arg-type]


def test_tasks_cover_all_runs_once_and_short_ones_go_together() -> None:
    job = Job(environment=ENVIRONMENT, policy=armlet.Oracle(theta=ENVIRONMENT.theta), horizon=50_000, runs=11, seed=1)
    tasks = split(0, job)
    assert [run for task in tasks for run in range(task.first, task.last)] == list(range(11))
    assert len(tasks) > 1
    assert len(split(0, Job(environment=ENVIRONMENT, policy=GREEDY, horizon=1000, runs=500, seed=1))) == 1


def test_a_worker_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    task = split(0, Job(environment=ENVIRONMENT, policy=GREEDY, horizon=10, runs=1, seed=1))[0]
    monkeypatch.setattr(runner, "versions", lambda: {"armlet": "9", "numpy": "9"})
    with pytest.raises(armlet.ArmletError, match=r"this worker has .*; install the same"):
        runner.run_task(task)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_renews_its_line() -> None:
    ticks, out = iter([0.0, 30.0, 40.0]), Terminal()
    report = reporter("runs", stream=out, clock=lambda: next(ticks))
    for done in (10, 20, 40):
        report(done, 40)
    first, second, third = out.getvalue().strip("\r\n").split("\r")
    assert "runs: 25 %" in first  # done before: no speed to tell yet
    assert "left" not in first
    assert "runs: 50 %, about 1 min 0 s left" in second
    assert "runs: done in 40 s" in third
    assert out.getvalue().count("\n") == 1


def test_progress_elsewhere_is_a_line_every_five_seconds() -> None:
    ticks, out = itertools.count(0.0, 0.1), io.StringIO()
    report = reporter("runs", stream=out, clock=lambda: next(ticks))
    for done in range(1001):
        report(done, 1000)
    assert out.getvalue().count("\n") == 1 + 100 / 5
    assert "\r" not in out.getvalue()


def test_progress_in_a_notebook_is_a_bar_after_a_second_and_ends_with_the_time() -> None:
    times, shown = iter([0.0, 0.5, 1.5, 1.6, 3.0]), list[Mapping[str, str]]()
    report = _Shown("runs", shown.append, lambda: next(times))
    for done in (0, 10, 20, 21, 40):
        report(done, 40)
    assert [bundle["text/plain"] for bundle in shown] == ["runs: 50 %, about 1.5 s left", "runs: done in 3.0 s"]
    assert 'max="40" value="40"' in shown[-1]["text/html"]


def test_what_is_over_at_once_shows_no_bar_in_a_notebook() -> None:
    times, shown = iter([0.0, 0.3]), list[Mapping[str, str]]()
    report = _Shown("runs", shown.append, lambda: next(times))
    report(0, 2)
    report(2, 2)
    assert shown == []


def test_list_names_every_environment_and_policy(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    out = capsys.readouterr().out
    for name in ("FigureA", "Drifting", "Algorithm1", "ContextualEpsilonGreedy", "Oracle"):
        assert re.search(rf"\b{name}\b", out)
    assert cli.main(["list", "Algorithm1", "FigureA"]) == 0
    assert "settings: p, ridge=paper, warmup=round-robin, units=as given" in capsys.readouterr().out


def test_list_imports_no_policy() -> None:
    code = "import sys; from armlet.cli import main; main(['list']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert {"armlet.policies.linucb", "armlet.evaluation", "pyarrow"}.isdisjoint(loaded)


def test_a_reader_who_has_seen_enough_ends_a_command_quietly() -> None:
    code = "import sys; from armlet.cli import main; sys.exit(main(['list'] + ['Algorithm1'] * 20000))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_misspelt_names_are_told_the_closest() -> None:
    for word, meant in (("LinUBC", "LinUCB"), ("Bandits", "Bandit")):
        with pytest.raises(AttributeError, match=f"no attribute '{word}'.*did you mean '{meant}'"):
            getattr(armlet, word)
    with pytest.raises(AttributeError, match=r"no attribute 'spam'$"):
        _ = armlet.spam  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compar"], "there is no command 'compar'; did you mean 'compare'"),
        (
            ["list", "LinUBC"],
            "there is no environment or policy 'LinUBC'; did you mean 'LinUCB'? armlet list shows all",
        ),
        (
            ["simulate", "--environment", "FigureA", "--policy", "LinUBC"],
            "there is no policy 'LinUBC'; did you mean 'LinUCB'? armlet list shows all",
        ),
        (
            ["compare", "--horizn", "100"],
            "there is no option --horizn; did you mean --horizon? see armlet compare --help",
        ),
        (["evaluate", "log.jsonl", "--candiate=uniform"], "there is no option --candiate; did you mean --candidate?"),
        (["--versoin"], "there is no option --versoin; did you mean --version?"),
        (["store", "shop.db", "verfy"], "there is no action 'verfy'; did you mean 'verify'?"),
    ],
)
def test_commands_suggest_the_closest_name(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--environment", "Mars", "--policy", "Uniform"], "there is no environment 'Mars'; armlet list shows all "),
        (["--environment", "FigureA", "--policy", "Luck"], "there is no policy 'Luck'; armlet list shows all "),
        (
            ["--environment", "FigureA", "--policy", "Algorithm1"],
            "Algorithm1 needs p; write Algorithm1:p=VALUE",
        ),
        (["--environment", "FigureA", "--policy", "Uniform:q=1"], "no setting 'q'; choose one of ridge"),
        (["--environment", "FigureA", "--policy", "Uniform:q"], "'q' is not a setting; write KEY=VALUE"),
        (["--environment", "FigureA", "--policy", "Uniform", "--horizon", "1.5"], "invalid count: '1.5'"),
        (["--environment", "FigureA", "--policy", "Uniform", "--engine", "spark"], "engine is 'spark'"),
    ],
)
def test_a_wrong_simulation_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["simulate", *arguments])
    out, err = capsys.readouterr()
    assert (caught.value.code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_an_interrupted_command_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "TASK_SECONDS", 1e-9)  # one run a task
    left = [1, 2]

    def interrupt(job: Job, run: int) -> Curves:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return play(job, run)

    monkeypatch.setattr(runner, "play", interrupt)
    words = "simulate --environment FigureA --policy Oracle --horizon 100 --runs 5 --engine serial --out"
    assert cli.main([*words.split(), str(tmp_path)]) == 130
    assert f"interrupted: 2 of 5 runs are kept in {tmp_path}; the same command goes on" in capsys.readouterr().err
