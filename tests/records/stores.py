"""The part `stores`: the lives of loops, what they know at every 50th row, and a file that an earlier Armlet left."""

from __future__ import annotations

import lzma
import tempfile
from pathlib import Path
from typing import Final

from armlet.stores import SQLite, Store
from records.record import Texts, facts, left
from records.scribe import Scribe
from records.shops import FILMS, Opener, Shop, context, facts_of
from support.stores.lived import START, Ticks

FILE: Final = "shop.db.xz"
NAMES: Final = ("arms", "router", "films", "genres", "fading", "sticky")
END: Final = START + 2 * 160 + 600 * 4  # by the clock of the life, when the file was left


def make() -> Texts:
    """Live in a file; open the file that was left, and go on with it."""
    with tempfile.TemporaryDirectory() as folder:
        return {**lived(_file(Path(folder) / "shop.db")), **opened(Path(folder) / "left.db")}


def _file(path: Path) -> Opener:
    return lambda: SQLite(path, synchronous="NORMAL")


def lived(opener: Opener) -> Texts:
    """Let all loops live over any ledger; return what was answered, and what is known."""
    shop = Shop(opener)
    shop.live()
    shop.reopen()
    with shop.store as store:
        texts = {f"stores_{life.name}.txt": life.scribe.text for life in shop.lives}
        for life in shop.lives:
            found = {"looks": life.looks, "before pruning": shop.before[life.name], "told": facts_of(store, life.name)}
            texts[f"stores_{life.name}.json"] = facts(found)
    texts["stores_rows.txt"] = "".join(f"{name} {line}\n" for name, lines in shop.rows.items() for line in lines)
    return {**texts, "stores_tallies.json": facts({life.name: life.tallies for life in shop.lives})}


def leave() -> dict[str, bytes]:
    """Leave a file as a process does that is killed: with the snapshots of its last restart."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        shop = Shop(_file(path))
        shop.live()
        shop.store._runners.clear()  # so that it keeps no further snapshots
        shop.store.close()
        return {FILE: lzma.compress(path.read_bytes(), preset=9)}


def opened(path: Path) -> Texts:
    """Open the file that was left, and go on."""
    path.write_bytes(lzma.decompress(left(FILE)))
    ticks = Ticks()
    ticks.now = END
    with Store(SQLite(path, synchronous="NORMAL"), wall=ticks, elapsed=ticks) as store:
        found = {name: facts_of(store, name) for name in NAMES}
        scribe = Scribe()
        for name in NAMES:
            go_on(store, ticks, name, scribe)
    return {"stores_left.json": facts(found), "stores_left.txt": scribe.text}


def go_on(store: Store, ticks: Ticks, name: str, scribe: Scribe) -> None:
    """Reward what was decided before, ask again what was asked, and go on."""
    loop = store.loop(name)
    value: object = {"quality": 0.5, "cost": 0.25} if name == "router" else 0.5
    tables = (FILMS,) if name in ("films", "genres") else ()
    for i in (150, 156, 159):
        scribe.call(f"{name}.decide", loop.decide, context(i), *tables, event=f"e{i}")
        scribe.call(f"{name}.reward", loop.reward, f"e{i}", value, name="later")
    for i in range(1, 21):
        ticks.now += 3.0
        scribe.call(f"{name}.decide", loop.decide, context(i), *tables, event=f"on {i}")
        if i % 3:
            scribe.call(f"{name}.reward", loop.reward, f"on {i}", value)
    scribe.call(f"{name}.forget", loop.forget, "on 2")
    scribe.call(f"{name}.model", loop.model)
    scribe.call(f"{name}.health", loop.health)
