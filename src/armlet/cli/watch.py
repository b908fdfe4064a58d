"""The command `armlet watch`: pages of the loops of a store, next to the process that runs them."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

from armlet.cli.command import Work, arg, command
from armlet.cli.sources import STORE, Place, choose, open_reader
from armlet.errors import ArgumentError, require_package

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armlet.stores.ledger import LoopRecord

EXTRAS: Final = ("apsw", "httptools", "msgspec", "psycopg", "uvicorn", "uvloop")
MOST: Final = 65_535


@command(
    STORE,
    arg("loop", nargs="?", metavar="NAME", help="whose page to name; default: the only one, or a list of all"),
    arg("--port", type=int, default=0, metavar="N", help="where to listen, on this machine; default: any that is free"),
    answers=(),
    extras=EXTRAS,
    refused=(ArgumentError,),
)
def watch(a: argparse.Namespace) -> Work:
    """Show the pages that `armlet serve` has, on this machine only: better than random play? exploring, arms, health.

    It only reads: nothing is locked, learned or closed, and the process that has the store open is not disturbed. All
    users of this machine can see the pages while it runs, contexts included.

    examples:
      armlet watch shop.db
      armlet watch shop.db home --port 8081

    exit codes:
      0  stopped as asked, by SIGTERM or SIGINT
      1  the store cannot be read, or the port is in use
      2  wrongly called
    """
    require_package("uvicorn", "armlet watch needs")
    if not 0 <= a.port <= MOST:
        raise ArgumentError("{port} is {given}; give a number from 0 to {most}", given=a.port, most=MOST)
    with open_reader(a.store) as ledger:
        path = _path(ledger.loops(), a.loop)
    return partial(_run, a.store, path, a.port)


def _path(records: Sequence[LoopRecord], name: str | None) -> str:
    from armlet.service.page.html import HOME, loop_url

    if name is None and len(records) != 1:
        return HOME
    return loop_url(choose(records, name, "loop").name)


def _run(where: Place, path: str, port: int) -> None:
    from armlet.service.config import Listen
    from armlet.service.server import listening, url_of
    from armlet.service.server import watch as serve

    with open_reader(where) as ledger, listening(Listen(port=port)) as listener:
        print(f"page:\n  {url_of(listener)}{path}\nstop it with Ctrl-C", flush=True)
        serve(ledger, listener)
