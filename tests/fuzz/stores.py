"""The fuzzer of stores: damaged and edited files are refused by name, or answer as before; nobody is paid twice.

Pages are flipped, exchanged, cut and put back as they were earlier; rows are edited by SQL, with check values that are
mended or not; schemas are edited. What opens is used as a service would use it after a restart. A file whose check
values are mended is somebody's own history: it may say anything, but not with an error that nobody has promised.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import apsw

import armlet
from armlet import ArmletError
from armlet.stores import Loop, SQLite, Store
from armlet.stores.encoding import EARLY, EVENT, HEAD, LOOP, OUTCOME, SNAPSHOT, TALLY
from armlet.stores.transaction import Chore
from fuzz.faults import Fault, require
from fuzz.session import FOLDER
from support.stores import rebuilt
from support.stores.files import MENDS, tools

LENGTH = 50  # damaged files of one sound one
EVENTS = 24
NOW = 1e9
COUNTED = ("accepted", "replaced", "late")


@dataclass
class Sound:
    """A store that has lived a little: its bytes, those of a while before, and what it has answered."""

    data: bytes
    before: bytes
    decided: dict[str, tuple[list[float], str]]
    counted: dict[str, float]
    aggregation: str


def play(case: int) -> int:
    """Play one case; how many damaged stores it tried. Raises a Fault."""
    rng = Random(case)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sound, other = (live(rng, Path(folder) / f"{name}.db") for name in ("one", "two"))
        path = Path(folder) / "damaged.db"
        for step in range(LENGTH):
            how = rng.choice(WAYS)
            path.write_bytes(sound.data)
            damage = how(rng, path, sound, other)
            try:
                try_store(rng, path, sound, is_forged="mended" in damage)
            except Fault as fault:
                raise Fault(f"store {step}, {how.__name__} ({damage:.300}): {fault}") from fault
            for file in Path(folder).glob("damaged.db*"):
                file.unlink()
    return LENGTH


# ---- a sound store


def live(rng: Random, path: Path) -> Sound:
    """Make a store and use it."""
    ticks = [NOW]
    ledger = SQLite(path, synchronous="NORMAL")
    store = Store(ledger, wall=lambda: ticks[0], elapsed=lambda: ticks[0])
    sound = Sound(b"", b"", {}, {}, rng.choice(("first", "last", "sum")))
    window = rng.choice((None, 60.0))
    loop = store.loop(
        "homepage",
        arms=["a", "b", 3],
        dim=2,
        policy=rng.choice((armlet.Algorithm1(p=4), armlet.LinUCB())),
        window=window,
        default_reward=None if window is None else 0.0,
        aggregation=sound.aggregation,  # type: ignore[arg-type]
        early_window=rng.choice((None, 1000.0)),
        seed=rng.randrange(2**64),
    )
    for i in range(EVENTS):
        if i == EVENTS // 2:
            bring_in(store)
            sound.before = path.read_bytes()
        ticks[0] += rng.choice((0, 1, 20))
        step(rng, loop, sound, f"e{i}")
    forget_some(rng, loop, sound)
    if rng.random() < 0.5:
        loop.reward("not yet", 0.5)  # which may wait
    if rng.random() < 0.5:
        loop.change(reward_range=(-2.0, 2.0), aggregation=sound.aggregation)  # type: ignore[arg-type]
    if rng.random() < 0.3:
        loop.retire_arm("b")
    if rng.random() < 0.3:
        store.loop("another", arms=["a"], dim=1, policy=armlet.LinUCB())
    store.close() if rng.random() < 0.7 else _leave(store)
    sound.data = path.read_bytes()
    return sound


def bring_in(store: Store) -> None:
    """Let all that was written be in the file itself."""

    def nothing() -> Chore[None]:
        yield

    store._writer.maintain(nothing(), scrubs=True)


def _leave(store: Store) -> None:
    """Close without snapshots, as a process that is killed; what was written is brought into the file."""
    store._runners.clear()
    bring_in(store)
    store.close()


def step(rng: Random, loop: Loop, sound: Sound, event: str) -> None:
    x = [1.0, rng.choice((0.0, 0.5, -1.0))]
    sound.decided[event] = (x, loop.decide(x, event=event).id)
    if rng.random() < 0.7:
        value = rng.choice((0.0, 0.25, 0.5))
        if loop.reward(event, value, name="only") in COUNTED:
            sound.counted[event] = value


def forget_some(rng: Random, loop: Loop, sound: Sound) -> None:
    for event in rng.sample(sorted(sound.decided), rng.choice((0, 0, 3))):
        loop.forget(event)
        del sound.decided[event]
        sound.counted.pop(event, None)


# ---- use


def try_store(rng: Random, path: Path, sound: Sound, *, is_forged: bool) -> None:
    """Open one file and use it; only errors of Armlet's may come out, and nothing may be held afterwards."""
    before = held()
    try:
        ledger = SQLite(path, synchronous="NORMAL")
        try:
            with Store(ledger, wall=lambda: NOW + 500, elapsed=lambda: 0.0) as store:
                use(rng, store, sound, is_forged=is_forged)
        finally:
            ledger.close()
    except ArmletError:
        pass
    except Exception as error:
        raise Fault(f"raised {error!r:.300}") from error
    require(held() == before, lambda: f"{held() - before} descriptors are left open")


def held() -> int:
    """Return how many descriptors this process holds."""
    return len(list(Path("/proc/self/fd").iterdir()))


def use(rng: Random, store: Store, sound: Sound, *, is_forged: bool) -> None:
    """Do what a service does after a restart; any call may be refused, none may be answered otherwise than before."""
    loop = store.loop("homepage")
    for event in rng.sample(sorted(sound.decided), min(8, len(sound.decided))):
        x, name = sound.decided[event]
        with suppress(ArmletError):
            found = loop.decide(x, event=event).id
            _same(is_forged, found, name, f"{event} was decided again")
        if event in sound.counted:
            with suppress(ArmletError):
                status = loop.reward(event, sound.counted[event], name="only")
                _same(is_forged, status, "duplicate", f"a reward reported before is {status}")
    for call in rng.sample(CALLS, 4):
        with suppress(ArmletError):
            call(rng, store, loop)
    with suppress(ArmletError):
        digest = loop.model().digest()
        _same(is_forged, rebuilt(store).digest(), digest, "the state is not what the rows say")


def _same(is_forged: bool, found: str, expected: str, what: str) -> None:
    require(is_forged or found == expected, lambda: what)


CALLS: list[Callable[[Random, Store, Loop], object]] = [
    lambda rng, _, loop: loop.reward(loop.decide([1.0, 0.5], event=f"new {rng.random()}").id, 0.5),
    lambda rng, _, loop: loop.reward(f"e{rng.randrange(EVENTS)}", 0.75, name="another", rank=1),
    lambda rng, _, loop: loop.forget(f"e{rng.randrange(EVENTS)}"),
    lambda _, __, loop: list(loop.log),
    lambda _, __, loop: list(loop.log.replayable),
    lambda _, __, loop: armlet.audit(loop.log.replayable, loop.log.start),
    lambda _, __, loop: loop.log.find(loop.decide([1.0, 0.5]).id),
    lambda _, __, loop: loop.add_arm("new"),
    lambda _, __, loop: loop.health(),
    lambda _, __, loop: loop.decide([1.0, 0.5], event="not yet"),
    lambda _, __, loop: loop.change(window=30.0, default_reward=0.25),
    lambda _, store, __: store.delete("homepage"),
    lambda _, __, loop: loop.retire_arm("a"),
    lambda _, store, __: store.loop("homepage", arms=["a", "z"], dim=2, policy=armlet.LinUCB()),
    lambda _, store, __: store.prune(NOW + 20),
    lambda _, store, __: store.settle(),
    lambda _, store, __: store.loops,
    lambda rng, store, _: store.backup(Path(store._ledger._path).with_name(f"damaged.db.{rng.random()}")),  # type: ignore[attr-defined]
]


# ---- damage of pages


def flip(rng: Random, path: Path, sound: Sound, _: Sound) -> str:
    held = bytearray(sound.data)
    where = [rng.randrange(len(held)) for _ in range(rng.choice((1, 1, 2, 8, 50)))]
    for at in where:
        held[at] ^= 1 << rng.randrange(8)
    path.write_bytes(held)
    return f"bits at {where}"


def scribble(rng: Random, path: Path, sound: Sound, _: Sound) -> str:
    held, size = bytearray(sound.data), rng.choice((4, 16, 100, 512, 4096))
    at = rng.randrange(0, len(held), min(size, 512))
    held[at : at + size] = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size)))[: len(held) - at]
    path.write_bytes(held)
    return f"{size} bytes at {at}"


def cut(rng: Random, path: Path, sound: Sound, _: Sound) -> str:
    size = rng.choice((rng.randrange(len(sound.data)), 4096 * rng.randrange(len(sound.data) // 4096)))
    path.write_bytes(sound.data[:size])
    return f"to {size} bytes"


def exchange(rng: Random, path: Path, sound: Sound, other: Sound) -> str:
    """Put another page in the place of one: of the same file, of another, or as it was earlier."""
    source = rng.choice((sound.data, other.data, sound.before, sound.before))
    to = rng.randrange(len(sound.data) // 4096)
    at = to if source is sound.before else rng.randrange(len(source) // 4096)
    held = bytearray(sound.data)
    page = source[4096 * at : 4096 * at + 4096]
    held[4096 * to : 4096 * to + len(page)] = page
    path.write_bytes(held)
    kind = "earlier" if source is sound.before else "other"
    return f"page {to} is the {kind} page {at}"


# ---- edits by SQL

TABLES = {
    "loop": LOOP,
    "head": HEAD,
    "event": EVENT,
    "outcome": OUTCOME,
    "early": ("id", *EARLY),
    "snapshot": SNAPSHOT,
    "tally": TALLY,
}
KEYS = {
    "loop": "id",
    "head": "loop",
    "event": "loop, seq",
    "outcome": "loop, t",
    "early": "id",
    "snapshot": "loop",
    "tally": "loop",
}
NUMBERS = (0, 1, -1, 2, 7, 2**31, 2**53, 2**63 - 1, -(2**63), 0.5, -0.0, 1e308, float("inf"))
TEXTS = ("", "a", "x" * 300, "1-0f", "null", "\0", "snow ☃", "decide", "learn", "correct", "reward", "open", "default")
JSON = ("[]", "{}", "[1]", "[" * 100_000, '{"of": 1}', '{"arm": "a"}', '{"reward": NaN}')
ODD: tuple[Any, ...] = (None, *NUMBERS, *TEXTS, *JSON, b"", b"\xff", bytes(16), bytes(7))
NAMES = ("loop", "t", "event")  # of an outcome: with others it is that of another decision


def edit(rng: Random, path: Path, _: Sound, __: Sound) -> str:
    """Put something odd into a column of some rows."""
    connection, table = tools(path), rng.choice(sorted(TABLES))
    column, value = rng.choice(TABLES[table]), rng.choice(ODD)
    expression = rng.choice(
        ("?", "?", "?", f"{column} + 1", f"-{column}", f"{column} || {column}", f"substr({column}, 2)")
    )
    sql, some = f"UPDATE OR IGNORE {table} SET {column} = {expression}", rng.choice((None, 1, 2, 5))
    if some is not None:
        keys = KEYS[table]
        picked = f"SELECT {keys} FROM {table} LIMIT {some} OFFSET {rng.randrange(10) if ',' in keys else 0}"
        sql += f" WHERE ({keys}) IN ({picked})"
    damage = run(rng, connection, sql, (value,) if "?" in expression else ())
    return f"{damage} mended" if table == "outcome" and column in NAMES else damage


def json_edit(rng: Random, path: Path, _: Sound, __: Sound) -> str:
    """Put something odd into a field of some rows."""
    connection = tools(path)
    fields = (
        "id",
        "arm",
        "eligible",
        "propensity",
        "explored",
        "optimistic",
        "exploration_rate",
        "tag",
        "of",
        "reward",
        "event",
    )
    field = rng.choice((*fields, "design"))
    value = rng.choice((None, 0, -1, 0.5, 1e300, "x", "a", "[1]", 2**62))
    how = rng.choice(("json_set", "json_replace", "json_remove"))
    given = f"fields, '$.{field}'" + ("" if how == "json_remove" else ", ?")
    sql = f"UPDATE event SET fields = {how}({given}) WHERE seq % {rng.choice((1, 2, 5))} = 0"
    return run(rng, connection, sql, () if how == "json_remove" else (value,))


def about_edit(rng: Random, path: Path, _: Sound, __: Sound) -> str:
    """Put something odd into what a loop was made with."""
    fields = ("window", "default_reward", "aggregation", "early_window", "has_windows", "last_default", "changes")
    field = rng.choice((*fields, "unheard_of"))
    value = rng.choice((None, 0, -1, 0.5, 1e300, "x", "last", 2**62, True))
    return run(rng, tools(path), f"UPDATE loop SET about = json_set(about, '$.{field}', ?)", (value,))


def tally_edit(rng: Random, path: Path, _: Sound, __: Sound) -> str:
    """Put something odd into what was counted of a loop."""
    where = rng.choice(
        ("format", "counts", "statuses", "columns[0]", "arms", "times", "bets", "cohorts", "cohorts.usual")
    )
    value = rng.choice((None, 0, -1, 0.5, 1e300, "x", 2**62, True))
    sql = f"UPDATE tally SET counts = json_set(counts, '$.{where}', ?)"
    return run(rng, tools(path), sql, (value,))


def delete(rng: Random, path: Path, _: Sound, __: Sound) -> str:
    table = rng.choice(("event", "outcome", "outcome", "snapshot", "loop", "head", "early", "tally"))
    key = KEYS[table].rpartition(" ")[2]
    return run(rng, tools(path), f"DELETE FROM {table} WHERE {key} % {rng.choice((1, 2, 7))} = {rng.randrange(2)}", ())


def reschema(rng: Random, path: Path, _: Sound, __: Sound) -> str:
    sql = rng.choice(
        (
            "CREATE TRIGGER spy AFTER INSERT ON event BEGIN DELETE FROM outcome; END",
            "CREATE TRIGGER spy BEFORE UPDATE ON outcome BEGIN SELECT raise(IGNORE); END",
            "CREATE VIEW spy AS SELECT * FROM event",
            "CREATE TABLE spy (x)",
            "CREATE INDEX spy ON event (kind)",
            "CREATE INDEX spy ON event (json_extract(fields, '$.arm'))",
            "DROP INDEX outcome_by_event",
            "DROP INDEX outcome_by_due",
            "DROP INDEX event_by_step",
            "DROP TABLE snapshot",
            "DROP TABLE outcome",
            "DROP TABLE head",
            "DROP TABLE early",
            "ALTER TABLE outcome RENAME COLUMN value TO worth",
            "ALTER TABLE event ADD COLUMN more",
            "ANALYZE",
            "PRAGMA user_version = 0",
            "PRAGMA user_version = 1",
            "PRAGMA user_version = 2",
            "PRAGMA user_version = 3",
            "PRAGMA user_version = 6",
            "PRAGMA user_version = -1",
            "PRAGMA user_version = 99",
            "PRAGMA application_id = 0",
            "PRAGMA journal_mode = DELETE",
            "PRAGMA encoding = 'UTF-16'; VACUUM",
            "PRAGMA page_size = 1024; PRAGMA journal_mode = DELETE; VACUUM",
        )
    )
    connection = tools(path)
    with suppress(apsw.Error):
        connection.execute(sql)
    connection.close()
    return sql


def run(rng: Random, connection: apsw.Connection, sql: str, values: tuple[Any, ...]) -> str:
    """Edit, and mend check values or not; what cannot be mended stays as it is."""
    text = sql
    with suppress(apsw.Error, ValueError, TypeError):
        connection.execute(sql, values)
    if rng.random() < 0.7:
        text += " mended"
        for mend in MENDS:
            with suppress(apsw.Error, ValueError, TypeError, AttributeError):
                connection.execute(mend)
    connection.close()
    return f"{text} {values!r:.80}"


PAGES = (flip, flip, scribble, scribble, cut, exchange, exchange)
WAYS = (*PAGES, edit, edit, edit, json_edit, json_edit, about_edit, tally_edit, delete, reschema)
