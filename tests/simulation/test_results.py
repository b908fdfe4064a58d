"""Results on disk: the same bytes on any engine, and after any death."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import armlet
from armlet import cli, parallel
from armlet.environments import FigureA
from armlet.errors import load_pyarrow
from armlet.parallel import PoolLike, Progress, WorkerError, silent
from armlet.simulation import run as runner
from armlet.simulation.lab import Manifest, ResultsError, read_manifest
from armlet.simulation.play import Curves, Job, play
from armlet.simulation.results import read_parquet, write_parquet
from armlet.simulation.run import read, simulate_all

ENVIRONMENT = FigureA.draw(np.random.default_rng(2))
GREEDY = armlet.Algorithm1(p=30)
SETTINGS: dict[str, Any] = {"environment": ENVIRONMENT, "horizon": 1000, "seed": 6}
# some in Python, slow enough to be killed in the middle by one who waits for three, and some in the kernel
JOBS = [
    Job(policy=armlet.Oracle(theta=ENVIRONMENT.theta), runs=10, **SETTINGS),
    Job(policy=GREEDY, runs=3, method="python", **SETTINGS),
    Job(policy=GREEDY, runs=2, **SETTINGS),
]


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run a task."""
    monkeypatch.setattr(runner, "TASK_SECONDS", 1e-9)


def table(folder: Path, engine: PoolLike, workers: int | None = None, progress: Progress = silent) -> bytes:
    simulate_all(JOBS, engine=engine, workers=workers, store=folder, progress=progress)
    assert read_manifest(folder)["status"] == "finished"
    return (folder / "results.parquet").read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "TASK_SECONDS", 2.0)  # other tasks than the tests have: they must not matter
        return table(tmp_path_factory.mktemp("expected"), "serial")


@dataclass
class Cluster:
    address: str
    kill_one: Callable[[], None]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    distributed = parallel.distributed()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as two:
        yield Cluster(two.scheduler_address, lambda: os.kill(next(iter(two.workers.values())).pid, signal.SIGKILL))


def kill_after(runs: int, kill: Callable[[], None]) -> Progress:
    """Kill something once, when so many runs are done."""
    left = [kill]

    def watch(done: int, total: int) -> None:
        assert total == 15
        if done >= runs and left:
            left.pop()()

    return watch


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


@pytest.mark.parametrize(("engine", "workers"), [("serial", None), ("processes", 1), ("processes", 2), ("threads", 2)])
def test_bytes_are_the_same_on_any_engine(engine: str, workers: int | None, tmp_path: Path, expected: bytes) -> None:
    assert table(tmp_path, engine, workers) == expected


def test_bytes_are_the_same_on_a_dask_cluster(tmp_path: Path, expected: bytes, cluster: Cluster) -> None:
    assert table(tmp_path, cluster.address) == expected


def test_a_killed_worker_ends_the_run_which_goes_on_when_started_again(tmp_path: Path, expected: bytes) -> None:
    others = active_children()

    def kill_one() -> None:
        next(child for child in active_children() if child not in others).kill()

    with pytest.raises(WorkerError, match="a worker of processes died") as one:
        table(tmp_path, "processes", 2, kill_after(3, kill_one))
    assert "\n" not in str(one.value)
    assert read_manifest(tmp_path)["status"] == "interrupted"
    counts: list[int] = []
    assert table(tmp_path, "processes", 2, lambda done, total: counts.append(done)) == expected  # noqa: ARG005
    assert counts[0] >= 3


def test_the_executor_of_a_dask_client_is_an_engine_too(tmp_path: Path, expected: bytes, cluster: Cluster) -> None:
    with parallel.distributed().Client(cluster.address, set_as_default=False) as client:
        assert table(tmp_path, client.get_executor()) == expected


def test_a_killed_dask_worker_leaves_no_trace(tmp_path: Path, expected: bytes, cluster: Cluster) -> None:
    assert table(tmp_path, cluster.address, None, kill_after(3, cluster.kill_one)) == expected


def begin(folder: Path) -> subprocess.Popen[str]:
    """Start the same jobs in a process of its own, which stops in the middle and waits for a signal."""
    code = (
        f"import signal, sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # where the tests ignore it, as nohup does
        "import test_results as t\n"
        "t.runner.TASK_SECONDS = 1e-9\n"
        "pause = lambda done, total: done >= 3 and (print('waiting', flush=True), signal.pause())\n"
        f"t.simulate_all(t.JOBS, engine='processes', workers=2, store={str(folder)!r}, progress=pause)"
    )
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    run = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **pipes)
    assert run.stdout is not None
    assert run.stdout.readline() == "waiting\n"
    return run


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path, expected: bytes) -> None:
    run = begin(tmp_path)
    processes = children(run.pid)
    assert len(processes) >= 2
    run.kill()
    run.communicate()
    assert run.returncode == -signal.SIGKILL
    wait_until(lambda: not any(map(alive, processes)))  # none stays behind
    assert read_manifest(tmp_path)["status"] == "running"
    counts: list[int] = []
    assert table(tmp_path, "serial", None, lambda done, total: counts.append(done)) == expected  # noqa: ARG005
    assert counts[0] == 3
    assert len(read_manifest(tmp_path)["sessions"]) == 2


def test_an_interrupt_keeps_what_was_finished(tmp_path: Path, expected: bytes) -> None:
    run = begin(tmp_path)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to the workers, too
    _, err = run.communicate(timeout=30)
    assert run.returncode not in (0, None)
    assert err.count("Traceback") == 1  # ours; the workers are quiet
    assert "KeyboardInterrupt" in err
    assert read_manifest(tmp_path)["status"] == "interrupted"
    (tmp_path / "copy.parquet").write_bytes(expected)
    partial, whole = read(tmp_path)[0], read_parquet(tmp_path / "copy.parquet")[0]
    assert len(partial.runs) == 3
    np.testing.assert_array_equal(partial.regret, whole.regret[partial.runs])
    assert table(tmp_path, "processes", 2) == expected


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    results = simulate_all(JOBS[1:], engine="serial", store=tmp_path)
    for ours, theirs in zip(results, read(tmp_path), strict=True):
        assert theirs.settings == ours.settings
        np.testing.assert_array_equal(theirs.runs, ours.runs)
        np.testing.assert_array_equal(theirs.steps, ours.steps)
        for a, b in zip(theirs.curves, ours.curves, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    assert results[0].settings["policy"] == {
        "name": "Algorithm1",
        "settings": {"p": 30, "ridge": "paper", "warmup": "round-robin", "units": "as given", "origin": None},
    }


def test_a_finished_folder_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = simulate_all(JOBS[2:], engine="serial", store=tmp_path)
    monkeypatch.setattr(runner, "run_task", None)
    second = simulate_all(JOBS[2:], engine="serial", store=tmp_path)
    np.testing.assert_array_equal(first[0].regret, second[0].regret)


def interrupted(folder: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Stop a simulation of JOBS after so many runs."""
    left = [after]

    def stop(job: Job, run: int) -> Curves:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return play(job, run)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "play", stop)
        with pytest.raises(KeyboardInterrupt):
            simulate_all(JOBS, engine="serial", store=folder)


def test_a_damaged_task_is_computed_again(tmp_path: Path, expected: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(tmp_path, monkeypatch, after=4)
    task = next((tmp_path / "results").glob("*.armlet"))
    task.write_bytes(task.read_bytes()[:-1] + b"?")
    counts: list[int] = []
    assert table(tmp_path, "serial", None, lambda done, total: counts.append(done)) == expected  # noqa: ARG005
    assert counts[0] == 3
    assert not (tmp_path / "results").exists()  # the table has taken the place of the single tasks


def test_a_finished_folder_can_be_read_while_it_is_opened_again(tmp_path: Path) -> None:
    first = simulate_all(JOBS[2:], engine="serial", store=tmp_path)
    Manifest(tmp_path, JOBS[2:], engine="serial").stop("interrupted")
    np.testing.assert_array_equal(read(tmp_path)[0].regret, first[0].regret)


def test_a_table_of_other_settings_is_not_taken_for_ours(tmp_path: Path, expected: bytes) -> None:
    simulate_all([Job(policy=GREEDY, runs=2, **{**SETTINGS, "seed": 7})], engine="serial", store=tmp_path)
    (tmp_path / "manifest.json").unlink()
    assert table(tmp_path, "serial") == expected


def test_a_folder_of_other_settings_is_refused_and_stays(tmp_path: Path) -> None:
    simulate_all(JOBS[2:], engine="serial", store=tmp_path)
    before = (tmp_path / "manifest.json").read_bytes()
    other = [Job(policy=GREEDY, runs=2, **{**SETTINGS, "seed": 7})]
    with pytest.raises(ResultsError, match=r"other settings \(seed is 6 there and 7 here; choose another folder"):
        simulate_all(other, engine="serial", store=tmp_path)
    with pytest.raises(ResultsError, match="1 jobs, not 3"):
        simulate_all(JOBS, engine="serial", store=tmp_path)
    assert (tmp_path / "manifest.json").read_bytes() == before


def test_a_folder_of_another_version_is_refused(tmp_path: Path) -> None:
    simulate_all(JOBS[2:], engine="serial", store=tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["sessions"][0]["versions"]["numpy"] = "1.0"
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ResultsError, match=r"was begun with armlet .*, numpy 1.0; go on with these"):
        simulate_all(JOBS[2:], engine="serial", store=tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"format": 99}'])
def test_what_is_no_manifest_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ResultsError, match="not a manifest that this version reads"):
        simulate_all(JOBS[2:], engine="serial", store=tmp_path)
    with pytest.raises(ResultsError, match="has no manifest"):
        read(tmp_path / "elsewhere")


def test_an_environment_without_plain_settings_needs_no_store_and_gets_none(tmp_path: Path) -> None:
    class Odd(FigureA):
        pass

    odd = Odd(theta=ENVIRONMENT.theta)
    object.__setattr__(odd, "zero", object)
    job = Job(environment=odd, policy=GREEDY, horizon=10, runs=1, seed=1, method="python")
    assert simulate_all([job], engine="serial")[0].settings["environment"] == {"name": "Odd", "settings": None}
    with pytest.raises(TypeError, match="environment is a Odd, no dataclass of plain data"):
        simulate_all([job], engine="serial", store=tmp_path)


def test_missing_pyarrow_is_told_before_anything_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    load_pyarrow.cache_clear()
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'armlet\[data\]'"):
        simulate_all(JOBS[2:], engine="serial", store=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_times_and_machines_are_in_the_manifest_only(tmp_path: Path) -> None:
    results = simulate_all(JOBS[2:], engine="serial", store=tmp_path)
    session = read_manifest(tmp_path)["sessions"][0]
    assert {"started", "seconds", "engine", "versions", "machine"} <= {*session}
    write_parquet(tmp_path / "again.parquet", results)
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "results.parquet").read_bytes()


def test_another_table_is_not_taken_for_results(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="none of Armlet's results"):
        read_parquet(tmp_path / "a.parquet")


def test_the_command_writes_a_table_and_prints_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "simulate --environment FigureA --policy Algorithm1:p=30 --horizon 1e3 --runs 3 --engine serial"
    for _ in range(2):
        assert cli.main([*words.split(), "--out", str(tmp_path / "a")]) == 0
        out, err = capsys.readouterr()
        assert "regret [95 % interval]" in out
        assert str(tmp_path / "a" / "results.parquet") in out
        assert "simulating: done in " in err
    with pytest.raises(SystemExit) as caught:
        cli.main([*words.split(), "--seed", "9", "--out", str(tmp_path / "a")])
    assert caught.value.code == 1
    assert "holds results of other settings" in capsys.readouterr().err
