"""The command `armlet serve`: decisions over HTTP, from a file of settings or from a few options."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from armlet.cli.command import Work, arg, command, group, named_policy, names
from armlet.cli.loops import loop_arguments, said
from armlet.cli.outcomes import in_words
from armlet.cli.sources import ADDRESSES
from armlet.errors import ArgumentError, require_package
from armlet.service.config import KeyConfig, LoopConfig, ServerConfig
from armlet.service.keys import digest, new_key
from armlet.service.preview import preview
from armlet.service.settings import Option, load, to_toml, without_password
from armlet.stores.spec import LoopSpec

if TYPE_CHECKING:
    from armlet.bandit import Bandit
    from armlet.service.app import Service

EXTRAS: Final = ("apsw", "httptools", "msgspec", "psycopg", "uvicorn", "uvloop")
ACTIONS: Final = ("action_features", "action_categories", "action_hashed", "action_dim")
JSON_HEADER: Final = "content-type: application/json"
KEY_HEADER: Final = '-H "authorization: Bearer $ARMLET_KEY"'


@command(
    arg("place", nargs="?", metavar="PLACE", help="settings in a .toml, or a store: shop.db or postgresql://..."),
    arg("--host", metavar="NAME", help="where to listen; default: 127.0.0.1, others need keys"),
    arg("--port", type=int, metavar="N", help="default: 8080; 0 for any that is free"),
    arg("--check", action="store_true", help="read settings and store, say what would change, and start nothing"),
    arg("--print-config", action="store_true", help="print all settings with their variables, without secrets"),
    group(
        "a key",
        arg("--new-key", type=names, metavar="SCOPES", help="make one for decide, reward, read, admin; print it once"),
        arg("--key-loops", type=names, metavar="NAMES", help="for these loops only, separated by commas"),
        arg("--key-name", default="mine", metavar="NAME", help="what to call it; default: mine"),
        arg("--without-propensity", action="store_true", help="answers leave it out, for keys in browsers"),
    ),
    group(
        "a loop, without a .toml",
        arg("--loop", metavar="NAME", help="make it, or open the one of this name"),
        named_policy("default: OccasionalOptimism"),
        arg("--control", metavar="ARM", help="an arm to compare with, which a share of decisions plays"),
        arg("--share", type=float, metavar="SHARE", help="of the control; default: 0.1"),
        *loop_arguments(LoopSpec, but=("name", "on_change")),
    ),
    answers=(),
    extras=EXTRAS,
    options={"default_reward": "--default-reward", "reward_range": "--reward-range"},
)
def serve(a: argparse.Namespace) -> Work | int | None:
    r"""Serve the loops of a store over HTTP: durable before the answer, exact after a crash.

    Without keys it listens on this machine only. Every scalar setting is also a variable, such as ARMLET_LIMITS_BODY
    for body of [limits], and wins over the file; the store's address and hashes of keys may be in files that
    ARMLET_STORE_FILE and the like name. --print-config lists them all.

    examples:
      armlet serve shop.db --loop home --arms sale,new --features age,basket
      armlet serve shop.db --loop router --arms small,large --features tokens \
          --outcomes quality=1,cost=-40 --known cost:small=0.001,large=0.03 \
          --budget cost:total=250,horizon=100k
      armlet serve shop.db --loop films --features age --action-features year \
          --action-categories genre=crime,western
      armlet serve armlet.toml
      armlet serve armlet.toml --check
      armlet serve --new-key decide,reward --key-loops home

    exit codes:
      0  stopped as asked, by SIGTERM or SIGINT
      1  the store cannot be opened, or the address is in use; or --check found a loop that
         would be refused
      2  wrongly called, or a setting is wrong
    """
    if a.new_key is not None:
        _print_key(a)
        return None
    if a.place is None:
        raise ArgumentError("{place} is missing; give armlet.toml, or a store such as shop.db")
    config = read_config(a)
    if a.print_config:
        print(to_toml(config), end="")
        return None
    if a.check:
        return partial(check, config)
    return partial(_run, config)


# ---- settings


def read_config(a: argparse.Namespace) -> ServerConfig:
    """Read the settings of a file, or make them of the options."""
    places = {"--host": ("host", a.host), "--port": ("port", a.port)}
    options = [Option(name, ("listen", to), value) for name, (to, value) in places.items() if value is not None]
    if not a.place.endswith(".toml") or a.place.startswith(ADDRESSES):
        return load(None, os.environ, options=options, **_table(a))
    for name in (*said(a, LoopSpec), "loop"):
        if name == "loop" and a.loop is None:
            continue
        raise ArgumentError("{" + name + "} is given, but {place} is a file of settings; write it there")
    return load(Path(a.place), os.environ, options=options)


def _table(a: argparse.Namespace) -> dict[str, object]:
    """Return what a file would have."""
    loop = {name: value for name, value in said(a, LoopSpec).items() if value is not None}
    if a.loop is None and loop:
        option = next(iter(loop)).replace("_", "-")
        raise ArgumentError("{name} is given, but {loop} is not; name the loop", name=f"--{option}")
    if a.loop is not None and "arms" not in loop and not any(name in loop for name in ACTIONS):
        if loop:
            raise ArgumentError("{arms} is missing; give the arms of the loop, such as sale,new")
        return {"store": a.place}  # all loops that are there are served
    return {"store": a.place, "loops": {} if a.loop is None else {a.loop: loop}}


# ---- a key


def _print_key(a: argparse.Namespace) -> None:
    key = new_key()
    made = KeyConfig(
        name=a.key_name,
        sha256=digest(key).hex(),
        scopes=a.new_key,
        loops=a.key_loops,
        propensity=not a.without_propensity,
    )
    name = made.name if made.name.replace("-", "").replace("_", "").isalnum() else json.dumps(made.name)
    print(f"# the key, shown this once: {key}")
    print(f'[keys.{name}]\nsha256 = "{made.sha256}"\nscopes = {json.dumps(list(made.scopes))}')
    if made.loops is not None:
        print(f"loops = {json.dumps(list(made.loops))}")
    if not made.propensity:
        print("propensity = false")


# ---- a check


def check(config: ServerConfig) -> int:
    """Say what starting would do; return 1 if it would be refused."""
    is_there, plans = preview(config)
    print(f"store {without_password(config.store)} {'is there' if is_there else 'would be made'}")
    for plan in plans:
        print(plan)
    for loop in config.loops:
        for line in _outcome_lines(loop):
            print(line)
    known = {plan.name: True for plan in plans} | {loop.name: loop.has_actions for loop in config.loops}
    for line in config.personalizer.faults(known):
        print(line)
    for key in config.keys:
        of = "all loops" if key.loops is None else f"loops {', '.join(key.loops)}"
        print(f"key {key.name!r}: {', '.join(key.scopes)} of {of}")
    if not config.keys:
        print("no keys: requests from this machine may do everything, others nothing")
    return int(any(plan.refusal for plan in plans))


def _outcome_lines(loop: LoopConfig) -> Iterator[str]:
    if loop.outcomes is not None:
        yield f"loop {loop.name!r} weighs {in_words(loop.outcomes, loop.known or ())}"
    if loop.budget is not None:
        budget = loop.budget
        each = "in each" if budget.period is not None else "within"
        hard = ", which is a hard limit" if budget.hard else ""
        yield f"loop {loop.name!r} spends {budget.total:g} {budget.outcome} {each} {budget.length:,} decisions{hard}"


# ---- the server


def _run(config: ServerConfig) -> None:
    for package in ("uvicorn", "httptools"):
        require_package(package, "armlet serve needs")
    from armlet.service.server import run

    run(config, partial(announce, config))


def announce(config: ServerConfig, url: str, service: Service) -> None:
    """Print where it is and what to try; lines can be pasted into a shell. Logs of JSON are not for people."""
    if config.log.format == "json":
        return
    for line in banner(config, url, service):
        print(line, flush=True)


def banner(config: ServerConfig, url: str, service: Service) -> Iterator[str]:
    """Return the lines that say where a server is, and what to try first."""
    yield f"armlet serves {', '.join(map(repr, service.loops)) or 'no loops'} at {url}"
    if not service.loops:
        yield "there is no loop yet; make one: armlet serve shop.db --loop home --arms sale,new --features age,basket"
        return
    name = config.loops[0].name if config.loops else next(iter(service.loops))
    model = service.loops[name].model()
    event = f"try-{time.time_ns() // 10**6}"
    call = _caller(config, url)
    path = f"/v1/loops/{quote(name, safe='')}/decide"
    yield "decide:"
    yield "  " + call(path, {"event": event, "context": example(model), **_example_actions(model)})
    yield "reward:"
    yield "  " + call("/v1/rewards", {"items": [{"loop": name, "event": event, "value": best_reward(model)}]})
    host = url if config.listen.socket is None else "http://localhost"  # through the socket
    yield f"page:\n  {host}/loops/{quote(name, safe='')}"


def _caller(config: ServerConfig, url: str) -> Callable[[str, object], str]:
    socket = config.listen.socket
    start = ["curl", "-sS", *([] if socket is None else ["--unix-socket", socket])]
    host = url if socket is None else "http://localhost"
    key = f" {KEY_HEADER}" if config.keys else ""

    def call(path: str, body: object) -> str:
        words: Sequence[str] = [*start, host + path, "-H", JSON_HEADER, "-d", json.dumps(body)]
        return shlex.join(words) + key

    return call


def example(model: Bandit) -> object:
    """Return a context that a bandit can read, in plain JSON types."""
    settings = model.settings
    return _example_row(settings.encoder, settings.features, settings.dim)


def _example_actions(model: Any) -> dict[str, object]:
    """Return actions to choose from, if they come with each decision."""
    settings = model.settings
    if not hasattr(settings, "action_dim"):
        return {}
    row = _example_row(settings.action_encoder, settings.action_features, settings.action_dim)
    return {"actions": {"one": row, "other": row}}


def _example_row(encoder: Any, features: Sequence[str] | None, dim: int) -> object:
    if encoder is None:
        return [1.0] * dim if features is None else dict.fromkeys(features, 1.0)
    cells: dict[str, object] = {}
    for code in encoder.to_dict().get("columns", ({"kind": "number", "column": "anything"},)):
        if code["kind"] == "number":
            cells[code["column"]] = 1.0
        elif code["kind"] == "flags":
            cells[code["column"]] = next(iter(code["texts"]), "other")
        elif code["kind"] != "constant":
            return [1.0] * dim  # the numbers themselves are read too
    return cells


def best_reward(model: Bandit) -> float | dict[str, float]:
    """Return the best reward that a bandit takes, 1 if there is no end to it; of outcomes those that are learned."""
    settings, several = model.settings, model.settings.outcomes
    if several is None:
        low, high = settings.reward_range or (0.0, 1.0)
        return high if settings.objective == "max" else low
    ranges = {name: several.ranges.get(name, (0.0, 1.0)) for name in several.learned}
    return {name: high if several.weights[name] > 0.0 else max(low, 0.0) for name, (low, high) in ranges.items()}
