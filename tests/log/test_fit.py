"""Learning from Parquet: equal to learning the same rows, the same bytes on any engine, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

import armlet
from armlet.log import compact, tables
from armlet.log.fitting import is_sums
from armlet.parallel import make_pool
from armlet.types import Policy
from support.policies import DIM, N_ARMS, every_policy

ARMS = ["north", "south", "west"]
COLUMNS: dict[str, Any] = {"features": ["age", "visits"], "arm": "ad", "reward": "click"}


def table(n: int, seed: int = 1, *, shift: float = 0.0) -> Any:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "id": np.arange(n),
            "age": rng.normal(size=n) + shift,
            "visits": rng.integers(0, 9, n),
            "country": rng.choice(["no", "fr", "jp"], n),
            "ad": rng.choice(ARMS, n),
            "click": rng.normal(size=n) + shift,
            "random": rng.random(n) < 0.3,
            "size": rng.uniform(0.5, 2.0, n),
        }
    )


def write(folder: Path, n: int = 3000, *, shift: float = 0.0) -> Any:
    """Write a table in three files, with groups of 300 rows."""
    whole = table(n, shift=shift)
    for i in range(3):
        part = whole.slice(i * n // 3, n // 3)
        pq.write_table(part, folder / f"part-{i}.parquet", row_group_size=300)
    return whole


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PIECE", 600)
    monkeypatch.setattr(tables, "BATCH", 256)


def learned(rows: Any, policy: Policy, x: Any = None, **settings: Any) -> armlet.Bandit:
    """The same rows through `Bandit.fit`."""
    bandit = armlet.Bandit(
        sorted(ARMS), features=None if x is not None else COLUMNS["features"], policy=policy, seed=1, **settings
    )
    bandit.fit(
        rows.select(COLUMNS["features"]) if x is None else x(rows),
        rows["ad"].to_pylist(),
        rows["click"].to_numpy(),
        explored=rows["random"].to_numpy(zero_copy_only=False),
    )
    return bandit


def assert_close(one: armlet.Bandit, other: armlet.Bandit) -> None:
    """Equal to rounding: sums of 3,000 rows are exact to 3,000 eps of the sum of sizes."""
    assert one.t == other.t
    assert one.arms == other.arms
    mine, theirs = one.state.arrays(), other.state.arrays()
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert np.allclose(mine[name], theirs[name], rtol=1e-11, atol=1e-9), name


@pytest.mark.parametrize(
    "policy",
    [
        armlet.LinUCB(),
        armlet.LinUCB(units="as given"),
        armlet.ThompsonSampling(),
        armlet.Greedy(),
        armlet.Algorithm1(p=60),
        armlet.ContextualEpsilonGreedy(p=60),
        armlet.AllDataEpsilonGreedy(p=60),
        armlet.OccasionalOptimism(),
    ],
    ids=lambda policy: f"{type(policy).__name__}-{getattr(policy, 'units', '')}",
)
@pytest.mark.parametrize("settings", [{}, {"objective": "min"}, {"normalize": "l2"}], ids=str)
def test_sums_are_those_of_learning_the_same_rows(policy: Policy, settings: dict[str, Any], tmp_path: Path) -> None:
    rows = write(tmp_path)
    found = armlet.fit(tmp_path, policy, **COLUMNS, explored="random", seed=1, **settings)
    assert is_sums(found)
    assert_close(found, learned(rows, policy, **settings))
    assert found.settings.features == ("age", "visits")


@pytest.mark.parametrize("policy", every_policy(), ids=lambda policy: type(policy).__name__)
def test_every_policy_of_the_registry_learns_from_a_file(policy: Policy, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    n = 40
    names = [f"x{j}" for j in range(DIM)]
    X = np.eye(DIM)[rng.integers(0, DIM, n)]  # what policies that keep a table of contexts take too
    rows = dict(zip(names, X.T, strict=True))
    rows |= {
        "arm": rng.integers(0, N_ARMS, n),
        "reward": rng.integers(0, 2, n).astype(float),
        "random": np.full(n, True),
    }
    pq.write_table(pa.table(rows), tmp_path / "log.parquet")
    wanted = armlet.Bandit(range(N_ARMS), features=names, policy=policy, seed=1)
    if type(policy).__name__.startswith("SupLin"):
        with pytest.raises(ValueError, match="rows of a log cannot be learned"):
            armlet.fit(tmp_path, policy, features=names, explored="random", arms=range(N_ARMS), seed=1)
        return
    found = armlet.fit(tmp_path, policy, features=names, explored="random", arms=range(N_ARMS), seed=1)
    wanted.partial_fit(X, rows["arm"], rows["reward"], explored=True)
    assert found.t == wanted.t == n
    if is_sums(found):
        assert np.allclose(found.state.records(), wanted.state.records(), rtol=1e-11, atol=1e-12)
    else:
        assert found.to_bytes() == wanted.to_bytes()
    assert found.decide(X[0]).arm in found.arms


def test_without_a_policy_the_default_learns(tmp_path: Path) -> None:
    rows = write(tmp_path)
    found = armlet.fit(tmp_path, **COLUMNS, seed=1)
    assert found.policy == armlet.Bandit(["a"], 1).policy
    assert_close(found, learned(rows, found.policy))


def test_the_origin_of_free_units_is_that_of_the_first_row(tmp_path: Path) -> None:
    rows = write(tmp_path, shift=130_000.0)
    found = armlet.fit(tmp_path, armlet.LinUCB(), **COLUMNS, explored="random", seed=1)
    wanted = learned(rows, armlet.LinUCB())
    assert found.state.arrays()["units"][1] == wanted.state.arrays()["units"][1] != 0.0
    assert np.allclose(found.predict_expectations([[130_000.0, 3.0]]), wanted.predict_expectations([[130_000.0, 3.0]]))


def test_what_is_no_sum_learns_row_by_row_and_in_order(tmp_path: Path) -> None:
    rows, policy = write(tmp_path, 900), armlet.AutoEpsilonGreedy()
    found = armlet.fit(tmp_path, policy, **COLUMNS, explored="random", seed=1)
    assert not is_sums(found)
    wanted = armlet.Bandit(sorted(ARMS), features=COLUMNS["features"], policy=policy, seed=1)
    wanted.partial_fit(
        rows.select(COLUMNS["features"]),
        rows["ad"],
        rows["click"],
        explored=rows["random"].to_numpy(zero_copy_only=False),
    )
    assert found.to_bytes() == wanted.to_bytes()


@pytest.mark.parametrize(
    "engine",
    [
        lambda: make_pool("threads", workers=3),
        lambda: make_pool("processes", workers=2),
        lambda: ThreadPoolExecutor(2),
        lambda: make_pool("dask", workers=1),
    ],
    ids=["threads", "processes", "an executor", "dask"],
)
def test_every_engine_gives_the_same_bytes(engine: Callable[[], Any], tmp_path: Path) -> None:
    write(tmp_path)
    alone = armlet.fit(tmp_path, armlet.LinUCB(), **COLUMNS, weight="size", seed=1)
    with engine() as pool:
        assert isinstance(pool, Executor) or pool.name
        found = armlet.fit(tmp_path, armlet.LinUCB(), **COLUMNS, weight="size", seed=1, engine=pool)
    assert found.to_bytes() == alone.to_bytes()


def test_weights_count_and_rows_without_a_reward_only_take_their_step(tmp_path: Path) -> None:
    rows = table(400)
    pays = rows["click"].to_pylist()
    pays[3] = pays[100] = pays[101] = None
    gaps = rows.set_column(rows.column_names.index("click"), "click", pa.array(pays))
    pq.write_table(gaps, tmp_path / "log.parquet")
    kept = rows.take([i for i in range(400) if pays[i] is not None])
    wanted = armlet.Bandit(sorted(ARMS), features=COLUMNS["features"], policy=armlet.LinUCB(), seed=1)
    wanted.fit(kept.select(COLUMNS["features"]), kept["ad"], kept["click"], weights=kept["size"], steps=400)
    found = armlet.fit(tmp_path / "log.parquet", armlet.LinUCB(), **COLUMNS, weight="size", seed=1)
    assert_close(found, wanted)
    one_by_one = armlet.fit(tmp_path, armlet.AutoEpsilonGreedy(), **COLUMNS, explored=True, seed=1)
    assert one_by_one.t == 400


@pytest.mark.parametrize("form", ["binary", "list", "float32 list"])
def test_a_column_may_hold_whole_contexts(form: str, tmp_path: Path) -> None:
    rows = write(tmp_path)
    X = np.column_stack([rows["age"].to_numpy(), rows["visits"].to_numpy().astype(float)])
    if form == "binary":
        column = pa.array([x.tobytes() for x in X], pa.binary(16))
    else:
        kind = pa.float32() if "32" in form else pa.float64()
        X = X.astype(np.float32).astype(float) if "32" in form else X
        column = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel(), kind), 2)
    pq.write_table(rows.append_column("context", column), tmp_path / "one.parquet", row_group_size=300)
    names = {**COLUMNS, "features": ["context"]}
    found = armlet.fit(tmp_path / "one.parquet", armlet.LinUCB(), **names, seed=1)
    assert_close(found, learned(rows, armlet.LinUCB(), lambda _: X, dim=2))
    assert found.settings.features is None


def test_text_goes_through_an_encoder(tmp_path: Path) -> None:
    rows = write(tmp_path)
    names = {**COLUMNS, "features": ["country", "age"]}
    encoder = armlet.Encoder(["country", "age"]).fit(rows)
    wanted = armlet.Bandit(sorted(ARMS), encoder=encoder, policy=armlet.LinUCB(), seed=1)
    wanted.fit(rows.select(["country", "age"]), rows["ad"], rows["click"])
    for given in (armlet.Encoder(), encoder):
        found = armlet.fit(tmp_path, armlet.LinUCB(), **names, encoder=given, seed=1)
        assert_close(found, wanted)
        assert found.settings.encoder == encoder
    assert armlet.Encoder() == armlet.Encoder()
    without = {name: value for name, value in names.items() if name != "features"}
    assert_close(armlet.fit(tmp_path, armlet.LinUCB(), **without, encoder=encoder, seed=1), wanted)


def test_files_folders_patterns_and_lists_are_found(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "_temporary").mkdir()
    (tmp_path / "_temporary" / "half.parquet").write_bytes(b"half a file")
    whole = armlet.fit(tmp_path, armlet.LinUCB(), **COLUMNS, seed=1).to_bytes()
    paths = [tmp_path / f"part-{i}.parquet" for i in range(3)]
    for data in (str(tmp_path), str(tmp_path / "part-*.parquet"), paths, [str(tmp_path / "part-[012].parquet")]):
        assert armlet.fit(data, armlet.LinUCB(), **COLUMNS, seed=1).to_bytes() == whole


def test_whole_numbers_name_arms_too(tmp_path: Path) -> None:
    rows = table(100).append_column("place", pa.array(np.arange(100) % 4))
    pq.write_table(rows, tmp_path / "log.parquet")
    names = {**COLUMNS, "arm": "place"}
    assert armlet.fit(tmp_path, armlet.LinUCB(), **names, seed=1).arms == [0, 1, 2, 3]
    found = armlet.fit(tmp_path, armlet.LinUCB(), **names, arms=[3, 2, 1, 0, 9], seed=1)
    assert found.state.n.tolist() == [25] * 4 + [0]


def changed(name: str, values: list[Any]) -> Any:
    rows = table(400)
    kept = rows[name].to_pylist()
    kept[300 : 300 + len(values)] = values
    return rows.set_column(rows.column_names.index(name), name, pa.array(kept))


@pytest.mark.parametrize(
    ("rows", "change", "message"),
    [
        (changed("age", [float("nan")]), {}, r"log.parquet, row 300: column 'age' is nan; give a finite number"),
        (changed("click", [float("inf")]), {}, r"row 300: column 'click' is inf; give a finite number"),
        (changed("size", [0.0]), {"weight": "size"}, r"row 300: column 'size' is 0.0; give a positive number"),
        (changed("ad", [None]), {}, r"row 300: column 'ad' has no value"),
        (
            table(400),
            {"arms": ["north", "south"]},
            r"row \d+: column 'ad' is 'west', which is none of the arms",
        ),
        (
            table(400),
            {"features": ["age", "hight"]},
            "features names 'hight', which is not a column of log.parquet; choose",
        ),
        (table(400), {"features": ["age", "age"]}, "features names a column twice: age; give each once"),
        (
            table(400),
            {"features": None},
            "features is missing: name the columns that were known .*; those of log.parquet are id, age",
        ),
        (table(400), {"features": []}, "features is empty"),
        (table(400), {"reward": "age"}, "reward names 'age', which features names before; give every column one part"),
        (table(400), {"explored": "visits"}, r"row \d+: column 'visits' is \d.0; give true or false"),
        (table(400), {"policy": armlet.Algorithm1(p=9)}, "explored is missing: .* or give explored=True if all were"),
        (table(400), {"reward_range": (0.0, 0.1)}, r"row 0: column 'click' is .*; reward_range is from 0.0 to 0.1"),
        (table(400), {"arm": "size"}, r"row 0: column 'size': an arm is named .* use a str or an int"),
        (table(0), {}, "data has no rows; give some to learn from, or name the arms"),
        (table(400), {"data": []}, "data is empty; give a file"),
        (table(400), {"engine": "spark"}, "engine is 'spark'; choose"),
    ],
)
def test_bad_data_are_named_by_file_row_and_column(
    rows: Any, change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    pq.write_table(rows, tmp_path / "log.parquet", row_group_size=250)
    given = {"data": tmp_path, "policy": armlet.LinUCB(), **COLUMNS, **change}
    if change.get("explored") == "visits":
        given |= {"policy": armlet.Algorithm1(p=9), "features": ["age"]}
    with pytest.raises((ValueError, TypeError), match=message):
        armlet.fit(**given)


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="which does not exist"):
        armlet.fit(tmp_path / "log.parquet", armlet.LinUCB(), **COLUMNS)
    with pytest.raises(ValueError, match="where there is no Parquet file"):
        armlet.fit(tmp_path, armlet.LinUCB(), **COLUMNS)
    (tmp_path / "log.parquet").write_bytes(b"no table at all")
    with pytest.raises(ValueError, match=r"data has .*log\.parquet, which cannot be read: "):
        armlet.fit(tmp_path, armlet.LinUCB(), **COLUMNS)


PEAK = """
import sys, pathlib, armlet
bandit = armlet.fit(sys.argv[1], armlet.LinUCB(), features=[f"x{j}" for j in range(8)], seed=1)
# getrusage would count what the parent held when it started this process
print(bandit.t, int(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024)
"""


def peak(path: Path) -> list[int]:
    """Return rows and the most MiB of memory that a process of its own held."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def test_memory_does_not_grow_with_the_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for n in (100_000, 1_000_000):
        columns = {f"x{j}": rng.normal(size=n) for j in range(8)}
        rows = pa.table({**columns, "arm": rng.integers(0, 4, n), "reward": rng.normal(size=n)})
        pq.write_table(rows, tmp_path / f"{n}.parquet", use_dictionary=False, compression="none")
    (few, small), (many, large) = (peak(tmp_path / f"{n}.parquet") for n in (100_000, 1_000_000))
    assert (few, many) == (100_000, 1_000_000)
    assert large < small + 20, (small, large)  # the file has 80 MB, all of it in one group


@pytest.mark.parametrize("contexts", ["binary", "columns"])
def test_a_compacted_log_says_itself_what_is_what(contexts: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    policy = armlet.ContextualEpsilonGreedy(p=60)
    log = armlet.Log(tmp_path / "decisions.jsonl")
    bandit = armlet.Bandit(ARMS, features=["age", "visits"], policy=policy, objective="min", seed=1, log=log)
    for i in range(200):
        decision = bandit.decide(rng.normal(size=2))
        if i % 5:
            bandit.learn(decision, rng.normal())
    log.close()
    compact(tmp_path / "decisions.jsonl", contexts=contexts)
    found = armlet.fit(tmp_path / "decisions.parquet", policy, seed=1)
    assert (found.t, found.arms, found.settings.features, found.settings.objective) == (
        200,
        ARMS,
        ("age", "visits"),
        "min",
    )
    # those of the bandit that lived it, but that units were looked at when they were due
    assert np.allclose(found.state.records(), bandit.state.records(), rtol=1e-12, atol=1e-12)


def test_the_contexts_of_a_log_went_through_the_encoder_already(tmp_path: Path) -> None:
    encoder = armlet.Encoder().fit({"country": ["no", "fr"], "age": [31.0, 44.0]})
    log = armlet.Log(tmp_path / "decisions.jsonl")
    bandit = armlet.Bandit(ARMS, encoder=encoder, policy=armlet.LinUCB(), seed=1, log=log)
    for i in range(60):
        bandit.learn(bandit.decide({"country": ["no", "fr", "jp"][i % 3], "age": i}), i % 7)
    log.close()
    compact(tmp_path / "decisions.jsonl")
    found = armlet.fit(tmp_path / "decisions.parquet", armlet.LinUCB(), encoder=encoder, seed=1)
    assert found.settings.encoder == encoder
    assert np.allclose(found.state.records(), bandit.state.records(), rtol=1e-12, atol=1e-12)
