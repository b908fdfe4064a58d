"""The fuzzer of logs: damaged, edited with right check values, compacted; through every reader and the command line.

A file is read, or refused with one sentence: a LogError, a ModelFileError or an EvaluationError; and no audit calls a
log right that is not the sound one.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

import armlet
from armlet import ArmletError, cli
from armlet.errors import EvaluationError, LogError, ModelFileError
from armlet.evaluation.learners import rejection_replay
from armlet.log import log as logs
from armlet.log.exporting import compact
from armlet.log.parquet import events_beside
from armlet.record.jsonl import encode_event
from armlet.record.values import Event
from fuzz import files
from fuzz.faults import Fault, require
from fuzz.session import FOLDER
from support.actions.lives import ActionLife, new_action_bandit

LENGTH = 25  # damaged files of one sound one
READERS = 3  # that each of them is given to
OF_ACTIONS = 0.3  # of the logs, those of actions with features
POLICIES = (armlet.ContextualEpsilonGreedy(p=20), armlet.OccasionalOptimism(), armlet.LinUCB())


class Sound(NamedTuple):
    """A log as it was written, and its start model."""

    lines: list[bytes]
    start: bytes
    digest: str


def play(case: int) -> int:
    """Damage the lines of a log; how many files were tried. Raises a Fault."""
    return _play(case, _damage_lines)


def play_compacted(case: int) -> int:
    """Damage a compacted log, either of its files; how many were tried. Raises a Fault."""
    return _play(case, _damage_compacted)


def _play(case: int, damage: Callable[[Random, Sound, Path], tuple[Path, str, bool]]) -> int:
    rng = Random(case)
    with tempfile.TemporaryDirectory(dir=FOLDER) as home, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        sound = written(rng, Path(home))
        for step in range(LENGTH):
            folder = Path(home) / "damaged"
            folder.mkdir()
            (folder / "a.start.armlet").write_bytes(sound.start)
            path, how, is_other = damage(rng, sound, folder)
            for read in rng.sample(ALL, READERS):
                _try(read, path, f"file {step}, {how}", is_other)
            shutil.rmtree(folder)
    return LENGTH


def _try(read: Callable[[Path], bool | None], path: Path, what: str, is_other: bool) -> None:
    copy = path.parent / "again"
    copy.mkdir(exist_ok=True)
    try:
        is_proved = read(path)
    except (LogError, ModelFileError, EvaluationError) as error:
        message = str(error)
        require(bool(message) and "\n" not in message, lambda: f"{what}: {read.__name__} is refused with {message!r}")
    except Exception as error:
        raise Fault(f"{what}: {read.__name__} raised {error!r:.300}") from error
    else:
        require(not (is_proved and is_other), lambda: f"{what}: the audit finds nothing wrong")
    shutil.rmtree(copy)


# ---- a sound log


def written(rng: Random, folder: Path) -> Sound:
    """Let a bandit live, with everything that a log may hold."""
    path = folder / "a.jsonl"
    before, logs.CHECKPOINT = logs.CHECKPOINT, 15  # type: ignore[misc]
    try:
        with armlet.Log(path) as log:
            if rng.random() < OF_ACTIONS:
                return _written_actions(rng, path, log)
            policy = rng.choice(POLICIES)
            kinds: tuple[list[str | int], ...] = (["a", "b", "c"], [1, 2, 3], ["a", 1, 2**70])
            arms = rng.choice(kinds)
            bandit = armlet.Bandit(arms, 2, policy=policy, seed=rng.randrange(2**64), log=log)
            for step in range(rng.choice((3, 25, 40))):
                _live(rng, bandit, log, step)
    finally:
        logs.CHECKPOINT = before  # type: ignore[misc]
    return Sound(path.read_bytes().splitlines(keepends=True), log.start_path.read_bytes(), bandit.digest())


def _written_actions(rng: Random, path: Path, log: armlet.Log) -> Sound:
    """Let a bandit of actions with features live."""
    policy = rng.choice((armlet.SharedOptimism(), armlet.SharedThompson(draws=3)))
    bandit = new_action_bandit(log, policy, seed=rng.randrange(2**64))
    ActionLife(bandit, rng.randrange(2**32)).live(rng.choice((3, 10, 20)))
    log.close()
    return Sound(path.read_bytes().splitlines(keepends=True), log.start_path.read_bytes(), bandit.digest())


def _live(rng: Random, bandit: armlet.Bandit, log: armlet.Log, step: int) -> None:
    x = [1.0, rng.choice((0.0, -0.5, 1e-3))]
    active = [arm for arm in bandit.arms if arm not in bandit.arms.retired]
    eligible = rng.sample(active, rng.randrange(1, len(active) + 1)) if rng.random() < 0.3 else None
    decision = bandit.decide(x, eligible=eligible, probabilities=rng.choice((None, None, "all")))
    if rng.random() < 0.7:
        bandit.learn(decision, float(rng.randrange(2)))
        chance = rng.random()
        if chance < 0.1:
            bandit.correct(decision, *((1.0, 0.0) if decision_reward(decision) else (0.0, 1.0)))
        elif chance < 0.15:
            bandit.forget(decision, decision_reward(decision))
    if rng.random() < 0.1:
        log.note(decision, outcomes={"latency": 0.5}, source="web", unit="u", epoch=step, more=[1, {"a": None}])
    kind = rng.randrange(40)
    if kind == 0:
        bandit.add_arm(f"new {step}")
    elif kind == 1 and len(active) > 1:
        bandit.retire_arm(active[0])
    elif kind == 2:
        bandit.partial_fit([[1.0, 0.5]], [active[0]], [1.0], explored=True)
    elif kind == 3:
        bandit.replace(t=bandit.t + 3)
    elif kind == 4:
        other = armlet.from_bytes(bandit.to_bytes()).copy(seed=step)
        other.learn(other.decide(x), 1.0)
        with contextlib.suppress(ArmletError, ValueError):
            bandit.merge(other)


def decision_reward(decision: armlet.Decision) -> float:
    """Return the reward that a decision has learned."""
    return float(decision.reward or 0.0)


# ---- damage of lines


def _damage_lines(rng: Random, sound: Sound, folder: Path) -> tuple[Path, str, bool]:
    path = folder / "a.jsonl"
    whole = b"".join(sound.lines)
    how = rng.choice(LINE_WAYS)
    data = how(rng, sound.lines)
    path.write_bytes(data)
    return path, how.__name__, data != whole


def flipped(rng: Random, lines: list[bytes]) -> bytes:
    return files.flip(rng, b"".join(lines), b"")


def cut(rng: Random, lines: list[bytes]) -> bytes:
    return files.cut(rng, b"".join(lines), b"")


def ends_early(rng: Random, lines: list[bytes]) -> bytes:
    """Whole lines, but not all."""
    return b"".join(lines[: rng.randrange(len(lines))])


def garbage(rng: Random, lines: list[bytes]) -> bytes:
    whole = b"".join(lines)
    deep = b"[" * rng.choice((10, 5000, 200_000))
    return rng.choice(
        (rng.randbytes(300), b"\n", b'{"a":1}\n', deep, whole[: len(whole) // 2] + deep + b"\n", b"null\n")
    )


def chained(lines: list[bytes]) -> bytes:
    """Return lines numbers of theirs and check values that are right, whatever they hold."""
    out, crc = [], 0
    for line in lines:
        body = line[: line.rindex(b',"crc":')]
        crc = crc32(body, crc)
        out.append(body + b',"crc":"%08x"}\n' % crc)
    return b"".join(out)


def edited(rng: Random, lines: list[bytes]) -> bytes:
    """Other values anywhere in one or two events, with right check values."""
    changed = list(lines)
    for _ in range(rng.choice((1, 1, 2))):
        at = _place(rng, lines)
        with contextlib.suppress(ValueError, TypeError, OverflowError):  # of a line that the first edit made unreadable
            event = json.loads(changed[at])
            files.replace(rng, event, json.loads(rng.choice(lines)))
            changed[at] = _spelled(event)
    return chained(changed)


def _place(rng: Random, lines: list[bytes]) -> int:
    """Draw a line; the rare kinds as often as the others."""
    kinds: dict[bytes, list[int]] = {}
    for at, line in enumerate(lines):
        kinds.setdefault(line.split(b'"', 6)[5], []).append(at)
    return rng.choice(rng.choice(list(kinds.values())))


def _spelled(event: Event) -> bytes:
    """Write whatever an event has become, with a place for its check value at the end."""
    event = {name: value for name, value in event.items() if name != "crc"} | {"crc": "00000000"}
    return _json(event) + b"\n"


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace(f'"{files.DIGITS}"', "7" * 5000).encode(errors="surrogatepass")


def doubled_key(rng: Random, lines: list[bytes]) -> bytes:
    """A key twice, the second time with the true value, so that a careless reader sees nothing."""
    changed, at = list(lines), _place(rng, lines)
    event = json.loads(lines[at])
    name = rng.choice([name for name in event if name != "crc"])
    other = {name: files.substitute(rng, event[name])}
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        changed[at] = b"{" + json.dumps(other, separators=(",", ":")).encode()[1:-1] + b"," + lines[at][1:]
    return chained(changed)


def moved(rng: Random, lines: list[bytes]) -> bytes:
    """Events dropped, doubled or exchanged, numbered again, with right check values."""
    changed = [json.loads(line) for line in lines]
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        del changed[at]
    elif kind == 1:
        changed.insert(at, dict(changed[other]))
    elif kind == 2:
        changed[at], changed[other] = changed[other], changed[at]
    else:
        changed = [event for event in changed if event["kind"] != "checkpoint"]
    out, crc = [], 0
    for seq, event in enumerate(changed):
        event.pop("crc", None)
        line, crc = encode_event({**event, "seq": seq}, crc)
        out.append(line)
    return b"".join(out)


LINE_WAYS = (flipped, cut, ends_early, garbage, moved, moved, doubled_key, *[edited] * 6)


# ---- damage of compacted logs


def _damage_compacted(rng: Random, sound: Sound, folder: Path) -> tuple[Path, str, bool]:
    lines = folder / "a.jsonl"
    lines.write_bytes(b"".join(sound.lines))
    path = compact(lines, contexts=rng.choice(("binary", "columns")))
    lines.unlink()
    before, how = _contents(path), rng.choice(COMPACTED_WAYS)
    with contextlib.suppress(pa.ArrowException, OverflowError, ValueError, TypeError):  # a value that no column takes
        how(rng, path)
    return path, how.__name__, _contents(path) != before


def _contents(path: Path) -> object:
    """Return all that can be read of a compacted log: rows, columns, and the lines next to them."""
    try:
        table = pq.read_table(path)
        rows, about = repr(table.to_pylist()), repr(json.loads(table.schema.metadata[b"armlet"]))
        return rows, about, gzip.decompress(events_beside(path).read_bytes())
    except Exception:  # whatever makes it unreadable
        return None


def flipped_rows(rng: Random, path: Path) -> None:
    path.write_bytes(files.flip(rng, path.read_bytes(), b""))


def cut_rows(rng: Random, path: Path) -> None:
    path.write_bytes(files.cut(rng, path.read_bytes(), b""))


def garbage_rows(rng: Random, path: Path) -> None:
    data = path.read_bytes()
    at = rng.randrange(len(data))
    path.write_bytes(rng.choice((b"", b"PAR1", rng.randbytes(100), data[:at] + rng.randbytes(30) + data[at + 30 :])))


def flipped_side(rng: Random, path: Path) -> None:
    beside = events_beside(path)
    beside.write_bytes(files.flip(rng, beside.read_bytes(), b""))


def cut_side(rng: Random, path: Path) -> None:
    beside = events_beside(path)
    beside.write_bytes(rng.choice((files.cut(rng, beside.read_bytes(), b""), b"", gzip.compress(rng.randbytes(50)))))


def edited_side(rng: Random, path: Path) -> None:
    """Other values in the events next to the rows, in a file that gzip takes for right."""
    beside = events_beside(path)
    lines = gzip.decompress(beside.read_bytes()).splitlines(keepends=True)
    beside.write_bytes(gzip.compress(rng.choice((edited, edited, moved, doubled_key, garbage))(rng, lines)))


def edited_cell(rng: Random, path: Path) -> None:
    """Another value in a column, in a file that Arrow takes for right."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    if not rows:
        return
    row, name = rng.choice(rows), rng.choice(table.column_names)
    kind = table.schema.field(name).type
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind):
        row[name] = rng.choice((None, 0, -1, 2**62, 1, 2**63 - 1))
    elif pa.types.is_floating(kind):
        row[name] = rng.choice((None, 0.0, -1.0, 1e308, float("nan"), float("inf"), 0.5))
    elif pa.types.is_binary(kind):
        row[name] = rng.choice((None, b"", b"{}", b"null", rng.randbytes(9), b'{"seq":1}\n'))
    elif pa.types.is_list(kind):
        row[name] = rng.choice((None, [], [None], row[name] and row[name] * 2))
    elif pa.types.is_boolean(kind):
        row[name] = rng.choice((None, True, False))
    else:
        row[name] = rng.choice((None, "", "\x00", "1-00", "[", "[]", '"a"', "turn", "9" * 30 + "-0123456789abcdef"))
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def edited_columns(rng: Random, path: Path) -> None:
    """A column that is gone, twice, or of another type; or fewer rows."""
    table = pq.read_table(path)
    at = rng.randrange(table.num_columns)
    name = table.column_names[at]
    kind = rng.randrange(5)
    if kind == 0:
        table = table.drop_columns([name])
    elif kind == 1:
        table = table.append_column(name, table.column(at))
    elif kind == 2:
        other = pa.array([rng.choice((1, 2))] * table.num_rows, rng.choice((pa.int8(), pa.float32(), pa.int64())))
        table = table.set_column(at, name, other)
    elif kind == 3:
        table = table.slice(rng.randrange(table.num_rows + 1))
    else:
        table = table.rename_columns([f"{name}x" if i == at else each for i, each in enumerate(table.column_names)])
    pq.write_table(table, path)


def edited_metadata(rng: Random, path: Path) -> None:
    """Other words about the log and its layout."""
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"armlet"])
    files.replace(rng, about, about)
    text = _json(about) if rng.random() < 0.9 else rng.randbytes(20)
    pq.write_table(table.replace_schema_metadata({b"armlet": text}), path)


COMPACTED_WAYS = (
    *(flipped_rows, flipped_rows, cut_rows, garbage_rows, flipped_side, cut_side, edited_side, edited_side),
    *(edited_cell, edited_cell, edited_cell, edited_columns, edited_metadata, edited_metadata),
)


# ---- readers


def lists(path: Path) -> None:
    for _ in armlet.log.read(path):
        pass


def audits(path: Path) -> bool:
    found = armlet.audit(path, path.with_name("a.start.armlet"))
    require("\n\n" not in str(found) and len(str(found)) < 2000, lambda: f"the audit tells {found}")
    return found.ok


def evaluates(path: Path) -> None:
    armlet.evaluate(path, ["uniform"], estimator="ips", checks="none")


def replays(path: Path) -> None:
    armlet.log.replay(armlet.log.read(path), armlet.load(path.with_name("a.start.armlet")))


def lets_learn(path: Path) -> None:
    rejection_replay(path, armlet.Greedy(), seed=1)


def compacts(path: Path) -> None:
    compact(path, path.parent / "again" / "a.parquet")


def writes(path: Path) -> None:
    armlet.log.write(path, path.parent / "again" / "a.jsonl")


def tabulates(path: Path) -> None:
    armlet.log.write(path, path.parent / "again" / "a.csv")


def resumes(path: Path) -> None:
    """Continue a copy: a log that is taken over must be right once it is closed."""
    again = path.parent / "again" / path.name
    shutil.copy(path, again)
    shutil.copy(path.with_name("a.start.armlet"), again.with_name("a.start.armlet"))
    with armlet.Log(again) as log:
        bandit = armlet.log.resume(log)
        if isinstance(bandit, armlet.Bandit):
            bandit.decide([0.0] * bandit.settings.dim)


def command(*words: str) -> None:
    """Run a command in this process: it ends with a code, and with at most one line of complaint."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(list(words))
        except SystemExit as ended:
            code = ended.code
    require(code in (0, 1, 2, 3), lambda: f"{words[:2]} ended with {code!r}")
    require(err.getvalue().count("\n") <= 1, lambda: f"{words[:2]} said {err.getvalue()!r:.400}")


def shows(path: Path) -> None:
    command("log", "show", str(path))


def tails(path: Path) -> None:
    command("log", "tail", str(path), "-n", "2")


def exports(path: Path) -> None:
    command("log", "export", str(path), str(path.parent / "again" / "a.arrow"))


def audits_at_the_command_line(path: Path) -> None:
    command("audit", str(path), "--json")


def evaluates_at_the_command_line(path: Path) -> None:
    command("evaluate", str(path), "--candidate", "uniform", "--estimator", "ips", "--json")


def replays_at_the_command_line(path: Path) -> None:
    command("rejection-replay", str(path), "--policy", "Greedy")


ALL: tuple[Callable[[Path], bool | None], ...] = (
    *(lists, audits, audits, evaluates, replays, lets_learn, compacts, writes, tabulates, resumes),
    *(shows, tails, exports, audits_at_the_command_line, evaluates_at_the_command_line, replays_at_the_command_line),
)
