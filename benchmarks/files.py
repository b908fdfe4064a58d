"""Learning from Parquet: rows a second and core, next to numpy's own X'X, and the memory that it takes.

    python benchmarks/files.py            # prints one line of JSON; writes a file of 300 MB, and removes it
    python benchmarks/files.py 1e7        # ten times as many rows

Contexts of 32 numbers, 8 arms, no compression. A fit is timed with all of its reading, in a process of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import armlet
from armlet.kernel import add_rows

DIM, ARMS = 32, 8
GROUP = 2**20
ROWS = 2**16  # of the sums by themselves
UNITS = {"as given": DIM, "free": DIM + 1}
FORMS = {"binary": ["x"], "columns": [f"x{j}" for j in range(DIM)]}

Float64 = NDArray[np.float64]


def rate(rows: int, work: Callable[[], object], repeats: int) -> float:
    """Return the most rows a second of processor time."""
    best = float("inf")
    for _ in range(repeats):
        started = process_time()
        work()
        best = min(best, process_time() - started)
    return rows / best


def sums(repeats: int) -> dict[str, float]:
    rng = np.random.default_rng(1)
    X, rewards, arms = rng.normal(size=(ROWS, DIM)), rng.normal(size=ROWS), rng.integers(0, ARMS, ROWS)
    out = {"numpy X'X": rate(ROWS, lambda: X.T @ X, repeats)}
    for units, size in UNITS.items():
        records = np.zeros((ARMS, 3 + size + size * (size + 1) // 2))
        origin = np.zeros(size) if units == "free" else None
        out[units] = rate(ROWS, lambda: add_rows(records, X, arms, rewards, None, origin), repeats)  # noqa: B023
    return out


def contexts(X: Float64, form: str) -> dict[str, object]:
    if form == "columns":
        return {name: np.ascontiguousarray(X[:, j]) for j, name in enumerate(FORMS[form])}
    return {"x": pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * DIM), len(X), [None, pa.py_buffer(X)])}


def write(path: Path, rows: int, form: str) -> None:
    rng, writer = np.random.default_rng(1), None
    names = pa.array([f"arm-{i}" for i in range(ARMS)])
    for start in range(0, rows, GROUP):
        n = min(GROUP, rows - start)
        x = contexts(rng.normal(size=(n, DIM)), form)
        table = pa.table({**x, "arm": names.take(pa.array(rng.integers(0, ARMS, n))), "reward": rng.normal(size=n)})
        writer = writer or pq.ParquetWriter(path, table.schema, compression="none", use_dictionary=["arm"])
        writer.write_table(table, row_group_size=GROUP)
    if writer:
        writer.close()


def peak_megabytes() -> float:
    """Return the most memory that this process held; getrusage would count what its parent held when it was started."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def fitted(path: str, form: str, units: str) -> dict[str, float]:
    """Fit and say how fast; what is imported for a first fit is not timed."""
    names = {"features": FORMS[form], "arms": [f"arm-{i}" for i in range(ARMS)], "units": units, "seed": 1}
    few = Path(path).with_name("few.parquet")
    write(few, 1000, form)
    armlet.fit(few, armlet.LinUCB(), **names)  # type: ignore[arg-type]
    started = process_time()
    bandit = armlet.fit(path, armlet.LinUCB(), **names)  # type: ignore[arg-type]
    taken = process_time() - started
    return {"rate": bandit.t / taken, "megabytes": peak_megabytes()}


def in_a_process(path: Path, form: str, units: str) -> dict[str, float]:
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "fit", str(path), form, units]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=alone)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def run(rows: int) -> dict[str, object]:
    fits: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for form in FORMS:
            for n in (rows // 10, rows):
                path = Path(folder) / "rows.parquet"
                write(path, n, form)
                for units in UNITS if n == rows else ["free"]:
                    best = max((in_a_process(path, form, units) for _ in range(3)), key=lambda found: found["rate"])
                    fits[f"{form}, {units}, {n:.0e} rows"] = best
    return {"rows": rows, "sums": sums(repeats=9), "fits": fits}


if __name__ == "__main__":
    if sys.argv[1:2] == ["fit"]:
        print(json.dumps(fitted(*sys.argv[2:])))
    else:
        for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
            if os.environ.get(name) != "1":  # read when numpy is imported
                os.environ[name] = "1"
                os.execv(sys.executable, [sys.executable, *sys.argv])
        print(json.dumps(run(int(float(sys.argv[1] if len(sys.argv) > 1 else "1e6")))))
