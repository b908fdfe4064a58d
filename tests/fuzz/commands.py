"""The fuzzer of the command line: nonsense as arguments and as files ends in one line and an exit code.

Commands run in this process, at sizes that take a moment: what simulates is given horizons that are small or refused.
"""

from __future__ import annotations

import contextlib
import functools
import io
import shutil
import tempfile
import warnings
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.csv  # type: ignore[import-untyped]
import pyarrow.parquet  # type: ignore[import-untyped]

import armlet
from armlet import cli
from fuzz.faults import Fault
from fuzz.session import FOLDER

LENGTH = 40  # commands of a case

WORDS: tuple[str, ...] = (
    "",
    "x",
    "0",
    "1",
    "-1",
    "0.5",
    "1e5",
    "50k",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "10" * 30,
    "a,b",
    "a:b=c",
    "..",
)
WORDS += ("0..1", "1..0", "é\udcff", "\t", "--", "-", "@", "%s", "{}", "{log}", "always:", "always:a", "own", "logged")
WORDS += ("uniform", "LinUCB", "LinUCB:alpha=x", "Algorithm1:p=9", "FigureA", "fig-a", "max", "min", "serial", "nope")
FILES: tuple[str, ...] = (
    "log.jsonl",
    "log.parquet",
    "rows.csv",
    "rows.parquet",
    "model.armlet",
    "log.start.armlet",
    "noise.bin",
)
FILES += ("folder", "missing.jsonl", "text.jsonl", "text.parquet", "text.armlet", "text.csv", "deep.jsonl", "empty")
FILES += ("train.json",)

# options of each command that make it do its work on these files, so that not everything ends at the first check
STARTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "evaluate": (
        ("log.jsonl", "--candidate", "uniform"),
        ("log.parquet", "--candidate", "model.armlet", "--candidate", "own"),
    ),
    "gate": (("log.jsonl", "--candidate", "model.armlet", "--reward-range", "0..1"),),
    "search": (("log.jsonl", "--around", "model.armlet", "--reward-range", "0..1"),),
    "rejection-replay": (("log.jsonl", "--policy", "LinUCB"),),
    "audit": (("log.jsonl",), ("log.jsonl", "--start", "log.start.armlet")),
    "summary": (("model.armlet",),),
    "intervals": (("model.armlet", "--json"),),
    "fit": (("rows.parquet", "--features", "age", "--arm", "ad", "--reward", "click", "--out", "out.armlet"),),
    "list": ((), ("LinUCB",)),
    "log": (
        ("show", "log.jsonl"),
        ("tail", "log.jsonl"),
        ("compact", "log.jsonl", "--out", "out.parquet"),
        ("export", "log.jsonl", "out.csv"),
        (
            "import",
            "rows.csv",
            "out.jsonl",
            *["--features", "age", "--arm", "ad", "--reward", "click", "--propensity", "p"],
        ),
        ("import", "train.json", "out.jsonl", "--kind", "dsjson"),
    ),
    "data": (("list",), ("list", "keel")),
    "report": (("folder",),),
}
OPTIONS = (
    "--policy",
    "--baseline",
    "--estimator",
    "--reward-range",
    "--level",
    "--weights",
    "--out",
    "--json",
    "--quiet",
    "--engine",
    "--workers",
    "--candidate",
    "--against",
    "--worth",
    "--start",
    "--arm",
    "--reward",
    "--features",
    "--propensity",
    "--arm-names",
    "--kind",
    "--encoder",
    "--explored",
    "--all-explored",
    "--text",
    "--seed",
    "-n",
    "--interval",
    "--noise-scale",
    "--design",
    "--objective",
    "--units",
    "--columns",
    "--exploring",
    "--plot",
    "--help",
)


@functools.cache
def sound_files() -> Path:
    """Make the files once; cases work on copies."""
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    rng = np.random.default_rng(1)
    with armlet.Log(folder / "log.jsonl") as log:
        bandit = armlet.Bandit(["a", "b"], features=["age"], policy=armlet.Algorithm1(p=9), seed=1, log=log)
        for x in rng.normal(size=(60, 1)):
            bandit.learn(bandit.decide(x), float(rng.random() < 0.5))
    armlet.log.compact(folder / "log.jsonl")
    bandit.copy().save(folder / "model.armlet")
    n = 50
    ads = rng.choice(["a", "b"], n)
    rows = pa.table({"age": rng.normal(size=n), "ad": ads, "click": rng.random(n), "p": np.full(n, 0.5)})
    pa.csv.write_csv(rows, folder / "rows.csv")
    pa.parquet.write_table(rows, folder / "rows.parquet")
    (folder / "noise.bin").write_bytes(rng.bytes(3000))
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    for ending in ("jsonl", "parquet", "armlet", "csv"):
        (folder / f"text.{ending}").write_text("these are words\nand no log\n")
    (folder / "deep.jsonl").write_text("[" * 100_000)
    (folder / "train.json").write_text('{"_label_cost": null, "_label_probability": 2, "_labelIndex": 9, "a": [1]}\n')
    return folder


def play(case: int) -> int:
    """Run some commands; how many. Raises a Fault."""
    rng = Random(case)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        folder = Path(name) / "files"
        shutil.copytree(sound_files(), folder)
        _damage(rng, folder)
        with contextlib.chdir(folder):
            for _ in range(LENGTH):
                run(arguments(rng))
    return LENGTH


def run(given: list[str]) -> None:
    """Run one command, which may end as it likes, but not with an exception."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main(given)
    except SystemExit as ended:
        if ended.code not in range(6):
            raise Fault(f"armlet {given} ended with {ended.code!r}") from ended
    except BaseException as error:
        raise Fault(f"armlet {given} raised {error!r:.300}") from error
    if "Traceback" in err.getvalue():
        raise Fault(f"armlet {given} printed a traceback")


def arguments(rng: Random) -> list[str]:
    """Draw a command: one that works, with some of its words exchanged, left out or added."""
    command = rng.choice(list(STARTS))
    words = [command, *rng.choice(STARTS[command])]
    for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
        place = rng.randrange(1, len(words) + 1)
        match rng.randrange(4):
            case 0:
                words[place : place + 1] = [rng.choice((*WORDS, *FILES))]
            case 1:
                del words[place : place + 1]
            case 2:
                words[place:place] = [rng.choice(OPTIONS), rng.choice((*WORDS, *FILES))]
            case 3:
                words[place:place] = [rng.choice((*OPTIONS, *WORDS, *FILES))]
    return [word for word in words if "processes" not in word and "dask" not in word]


def _damage(rng: Random, folder: Path) -> None:
    """Change some bytes of a few files, or cut one."""
    for path in folder.iterdir():
        if not path.is_file() or rng.random() < 0.7:
            continue
        data = bytearray(path.read_bytes())
        if data and rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        for _ in range(rng.choice((1, 1, 3, 20))):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
