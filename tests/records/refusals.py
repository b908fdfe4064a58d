"""The part `refusals`: bad values of every option of every public call, at every face, and what is said of them."""

from __future__ import annotations

import contextlib
import io
import json
import lzma
import math
import os
import shlex
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias
from unittest import mock

import armlet
from armlet import cli
from armlet.errors import ArmletError
from armlet.inputs.ask import MANY, OPTIONS
from armlet.service.app import Service, create_app
from armlet.service.settings import load
from armlet.stores import Control, Memory, Store
from records.files import LOGS, MODELS, unpacked
from records.record import Texts, facts, left, portable
from records.scribe import shown
from records.shops import FILMS
from records.stores import FILE
from support.service.calls import Caller
from support.stores.lived import Ticks

Said: TypeAlias = dict[str, str]

BAD: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 1.5, math.nan, math.inf, 10**30),
    *("", "word", "a", b"bytes", [], ["a", "a"], [1.0, 2.0], (1.0, 0.0)),
    *({}, {"word": "word"}, {"cost": -1.0}, {"cost": {"a": 1.0}}),
)
SENT: Final[tuple[Any, ...]] = (None, True, -1, 1.5, 1e300, "", "word", [], ["a", "a"], [2, 1], {}, {"word": "word"})
LOOPS: Final[dict[str, dict[str, Any]]] = {
    "arms": {"arms": ["a", "b", 3], "features": ["age", "visits"], "policy": armlet.LinUCB(), "seed": 1},
    "router": {
        "arms": ["small", "large"],
        "features": ["age", "visits"],
        "outcomes": {"quality": 1.0, "cost": -0.5, "delay": -0.25},
        "known": {"delay": {"small": 0.25, "large": 1.0}},
        "budget": armlet.Budget("cost", total=90.0, horizon=160),
        "epoch": 20,
        "seed": 2,
    },
    "films": {"features": ["age", "visits"], "action_features": ["genre", "year"], "seed": 3},
    "fading": {
        "arms": ["a", "b"],
        "dim": 2,
        "policy": armlet.LinUCB(discount=0.97),
        "window": 60.0,
        "default_reward": 0.5,
        "seed": 4,
    },
}
LOOP: Final = (
    *("arms", "dim", "features", "encoder", "policy", "objective", "normalize", "units", "window", "default_reward"),
    *("aggregation", "early_window", "reward_range", "feature_range", "outcomes", "known", "budget", "epoch", "seed"),
    *("model", "control", "action_dim", "action_features", "action_encoder", "on_change"),
)
CHANGE: Final = (
    *("policy", "window", "default_reward", "aggregation", "early_window", "reward_range", "feature_range"),
    *("outcomes", "known", "budget", "features", "encoder", "fill", "arms", "control", "shadow", "how"),
)
DECIDE: Final = (*OPTIONS, "actions")
REWARD: Final = ("name", "rank", "played")
TOLD: Final = 90  # characters of a call


def make() -> Texts:
    """Make all bad calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        faces = {"store": _stores, "loop": _loops, "http": _http, "settings": _settings, "commands": _commands}
        return {f"refusals_{name}.json": facts(face()) for name, face in faces.items()}


def said(method: Callable[..., Any], *given: Any, **options: Any) -> str:
    """Return what a call is refused with, or that it is taken."""
    try:
        answer = method(*given, **options)
    except ArmletError as error:
        return portable(shown(error))
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        return f"not ours: {type(error).__name__}"  # its text is Python's
    return f"taken: {answer!r}" if isinstance(answer, str | bool) else "taken"


def _text(value: object) -> str:
    return shown(value)[:TOLD]


# ---- stores and loops


@contextlib.contextmanager
def _store() -> Iterator[Store]:
    ticks = Ticks()
    with Store(Memory(), wall=ticks, elapsed=ticks) as store:
        yield store


def _stores() -> Mapping[str, Said]:
    """Make loops with bad options, go on with others, and call the store."""
    found: dict[str, Said] = {}
    with _store() as store:
        for base, options in LOOPS.items():
            for name in LOOP:
                key = f"loop({base}, {name})"
                found[key] = {}
                for i, value in enumerate(BAD):
                    made = f"{base} {name} {i}"
                    found[key][_text(value)] = said(store.loop, made, **{**options, name: value})
                    if made in store.loops:
                        store.delete(made)
        found["loop(name)"] = {_text(value): said(store.loop, value, arms=["a"], dim=1) for value in BAD}
        found["prune"] = {_text(value): said(store.prune, value) for value in BAD}
        found["delete"] = {_text(value): said(store.delete, value) for value in BAD}
        for base, options in LOOPS.items():
            store.loop(base, **options)
            found[f"go on with {base}"] = {
                f"{name}={_text(value)}": said(store.loop, base, **{**options, name: value})
                for name, value in _others()
            }
    found["Store"] = {
        f"{name}={_text(value)}": said(Store, Memory(), **{name: value})
        for name in ("queue", "longest_stop")
        for value in BAD
        if not (name == "queue" and value is None)
    }
    return found


def _others() -> Iterator[tuple[str, Any]]:
    """Return values that are right, of loops of another kind or with other settings."""
    yield from {
        "dim": 5,
        "policy": armlet.ThompsonSampling(),
        "window": 7.0,
        "default_reward": 0.5,
        "aggregation": "sum",
        "early_window": 9.0,
        "reward_range": (-7.0, 7.0),
        "feature_range": {"age": (0, 1)},
        "outcomes": {"quality": 3.0, "cost": -1.0},
        "known": {"delay": {"small": 1.0, "large": 1.0}},
        "budget": armlet.Budget("cost", total=1.0, horizon=10),
        "epoch": 99,
        "objective": "min",
        "units": "as given",
        "normalize": "l2",
        "control": Control(arm="a"),
        "action_dim": 3,
        "on_change": "never",
    }.items()


def _loops() -> Mapping[str, Said]:
    """Call loops of every kind with bad arguments; each option with a loop of its own."""
    found: dict[str, Said] = {}
    with _store() as store:
        for base, options in LOOPS.items():
            for call, names in (("decide", DECIDE), ("change", CHANGE), ("change refit", CHANGE), ("reward", REWARD)):
                for name in names:
                    loop = store.loop(f"{base} {call} {name}", **options)
                    found[f"{base}.{call}({name})"] = _tried(loop, base, call, name)
            loop = store.loop(f"{base} others", **options)
            found |= {f"{base}.{call}": texts for call, texts in _verbs(loop, base)}
    return found


def _tried(loop: Any, base: str, call: str, name: str) -> Said:
    found: Said = {}
    tables = {"actions": FILMS} if base == "films" else {}
    loop.decide([0.5, 0.25], **tables, event="made")
    for value in BAD:
        if call == "decide":
            found[_text(value)] = said(loop.decide, [0.5, 0.25], **{**tables, name: value})
        elif call == "reward":
            worth: Any = {"quality": 0.5} if base == "router" else 0.5
            found[_text(value)] = said(loop.reward, "made", worth, **{name: value})
        else:
            how = {"how": "refit"} if call == "change refit" and name != "how" else {}
            found[_text(value)] = said(loop.change, **{name: value, **how})
    return found


def _verbs(loop: Any, base: str) -> Iterator[tuple[str, Said]]:
    """Call everything else of a loop."""
    tables = (FILMS,) if base == "films" else ()
    loop.decide([0.5, 0.25], *tables, event="made")
    yield "decide(x)", {_text(value): said(loop.decide, value, *tables) for value in BAD}
    yield "decide_many(X)", {_text(value): said(loop.decide_many, value, *tables) for value in BAD}
    X = [[0.5, 0.25], [0.5, 0.5]]
    for name in MANY:
        yield (
            f"decide_many({name})",
            {_text(value): said(loop.decide_many, X, *tables, **{name: value}) for value in BAD},
        )
    calls: dict[str, Callable[[Any], Any]] = {
        "reward(event)": lambda value: loop.reward(value, 0.5),
        "reward(value)": lambda value: loop.reward("made", value),
        "reward_many": loop.reward_many,
        "reward_many(item)": lambda value: loop.reward_many([value]),
        "bill(event)": lambda value: loop.bill(value, 0.5),
        "bill(cost)": lambda value: loop.bill("made", value),
        "forget_many": loop.forget_many,
        "add_arm(known)": lambda value: loop.add_arm("new", known=value),
        "restore_arm": loop.restore_arm,
        "promote(gate)": lambda value: loop.promote(gate=value),
        "promote(control)": lambda value: loop.promote(control=value),
        "prepare(name)": lambda value: loop.prepare(value, FILMS),
        "prepare(actions)": lambda value: loop.prepare("all", value),
        "remove_table": loop.remove_table,
        "activate": loop.activate,
        "add_arm": loop.add_arm,
        "retire_arm": loop.retire_arm,
    }
    for name, call in calls.items():
        yield name, {_text(value): said(call, value) for value in BAD}
    yield "freeze, thaw", {name: said(getattr(loop, name)) for name in ("freeze", "thaw", "tables", "promote")}
    with _store() as other:
        gone = other.loop("gone", arms=["a"], dim=1)
        other.delete("gone")
        texts = {name: said(call) for name, call in _of_gone(gone).items()}
    yield "gone", texts
    yield "closed", {name: said(call) for name, call in _of_gone(gone).items()}


def _of_gone(loop: Any) -> dict[str, Callable[[], Any]]:
    return {
        "decide": lambda: loop.decide([0.5]),
        "reward": lambda: loop.reward("made", 0.5),
        "change": lambda: loop.change(window=60.0, default_reward=0.0),
        "forget": lambda: loop.forget("made"),
        "model": loop.model,
        "stats": loop.stats,
        "version": loop.version,
        "log": lambda: loop.log,
    }


# ---- HTTP


BODIES: Final[dict[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "/v1/loops/arms/decide": (
        {"context": [0.5, 0.25]},
        ("context", "event", "eligible", "probabilities", "weights", "unit", "actions", "baseline", "defer", "word"),
    ),
    "/v1/loops/router/decide": ({"context": [0.5, 0.25]}, ("weights", "unit", "actions", "baseline", "defer")),
    "/v1/loops/films/decide": (
        {"context": [0.5, 0.25], "actions": FILMS},
        ("actions", "weights", "unit", "baseline", "defer", "eligible"),
    ),
    "/v1/loops/arms/decide/batch": (
        {"items": [{"context": [0.5, 0.25]}]},
        ("items", "eligible", "probabilities", "weights", "actions"),
    ),
    "/v1/rewards": ({"items": []}, ("items", "word")),
    "/v1/loops/arms/bill": ({"event": "made", "cost": 0.5}, ("event", "cost")),
    "/v1/loops/router/bill": ({"event": "made", "cost": 0.5}, ("event", "cost")),
    "/v1/loops/films/activate": ({"event": "made"}, ("event",)),
    "/v1/loops/arms/arms": ({"action": "add", "arm": "new"}, ("action", "arm", "known")),
    "/v1/loops/arms/forget": ({"events": ["made"]}, ("events",)),
    "/v1/loops/arms/promote": ({}, ("gate", "control")),
    "/v1/prune": ({"before": 1.0}, ("before",)),
}
ITEM: Final = {"loop": "arms", "event": "made", "value": 0.5}
MADE: Final = (
    *("name", "arms", "features", "categories", "hashed", "dim", "action_features", "action_categories"),
    *("action_hashed", "action_dim", "policy", "policy_settings", "window", "default_reward", "aggregation"),
    *("early_window", "reward_range", "feature_range", "objective", "seed", "control", "epoch", "outcomes", "known"),
    *("budget", "word"),
)
CHANGED: Final = (*CHANGE[:11], "policy_settings", "categories", *CHANGE[12:])


def _http() -> Mapping[str, Said]:
    """Send bodies of which one field is bad."""
    found: dict[str, Said] = {}
    with _store() as store:
        for base, options in LOOPS.items():
            tables = (FILMS,) if base == "films" else ()
            store.loop(base, **options).decide([0.5, 0.25], *tables, event="made")
        service = Service(store)
        try:
            with Caller(create_app(service)) as caller:
                for path, (body, names) in BODIES.items():
                    for name in names:
                        found[f"{path} {name}"] = _sent(caller, path, body, name)
                for name in (*ITEM, *REWARD, "word"):
                    items = {_json(value): {"items": [{**ITEM, name: value}]} for value in SENT}
                    found[f"/v1/rewards items.{name}"] = {
                        value: _answer(caller, "/v1/rewards", body) for value, body in items.items()
                    }
                for name in MADE:
                    body = {"name": f"made {name}", "arms": ["a", "b"], "features": ["age"]}
                    found[f"/v1/loops {name}"] = _sent(caller, "/v1/loops", body, name)
                for base in LOOPS:
                    for name in CHANGED:
                        path = f"/v1/loops/{base}/change"
                        found[f"{path} {name}"] = _sent(caller, path, {}, name)
        finally:
            service.close()
    return found


def _sent(caller: Caller, path: str, body: Mapping[str, Any], name: str) -> Said:
    return {_json(value): _answer(caller, path, {**body, name: value}) for value in SENT}


def _answer(caller: Caller, path: str, body: object) -> str:
    answer = caller.post(path, body)
    if answer.status < 400:
        statuses = [each for each in answer.json.get("items", ()) if "status" in each]
        return f"{answer.status} {json.dumps(statuses)}" if statuses else f"{answer.status}"
    problem = answer.json
    return f"{answer.status} {problem['type'].rpartition(':')[2]} {problem.get('field')}: {portable(problem['detail'])}"


def _json(value: object) -> str:
    return json.dumps(value)[:TOLD]


# ---- settings


LINES: Final = (
    *("arms", "features", "categories", "hashed", "dim", "action_features", "policy", "policy_settings", "window"),
    *("default_reward", "aggregation", "early_window", "reward_range", "feature_range", "objective", "seed"),
    *("control", "epoch", "on_change", "outcomes", "known", "budget", "word"),
)
WORDS: Final = (
    *("true", "-1", "0", "1.5", "nan", '""', '"word"', "[]", '["a", "a"]', "[2, 1]", "{}", '{ word = "word" }'),
    *("{ cost = -1.0 }", "{ cost = { a = 1.0 } }", "{ arm = 7 }", "{ seconds = 0 }"),
)
SECTIONS: Final = {
    "listen": ("host", "port", "word"),
    "limits": ("body", "body_seconds", "connections", "threads", "streams", "queue", "deadline"),
    "log": ("level", "format"),
    "personalizer": ("loop", "word"),
}


def _settings() -> Mapping[str, Said]:
    """Read files of which one line is bad, and variables."""
    found: dict[str, Said] = {}
    for name in LINES:
        start = 'store = "shop.db"\n[loops.home]\narms = ["a", "b"]\nfeatures = ["age"]\n'
        kept = "\n".join(line for line in start.splitlines() if not line.startswith(f"{name} "))
        found[f"[loops.home] {name}"] = {word: _loaded(f"{kept}\n{name} = {word}\n") for word in WORDS}
    for section, names in SECTIONS.items():
        for name in names:
            text = f'store = "shop.db"\n[{section}]\n{name} = '
            found[f"[{section}] {name}"] = {word: _loaded(f"{text}{word}\n") for word in WORDS}
    for name in ("sha256", "scopes", "loops", "expires", "propensity"):
        text = f'store = "shop.db"\n[keys.shop]\n{name} = '
        found[f"[keys.shop] {name}"] = {word: _loaded(f"{text}{word}\n") for word in WORDS}
    whole = ("store = ", "store = 1", "[loops]\nhome = 1", "[loops.home]", "word = 1", "[[loops]]", "")
    found["file"] = {text: _loaded(text) for text in whole}
    variables = ("ARMLET_LIMITS_BODY", "ARMLET_LISTEN_PORT", "ARMLET_LIMITS_BODDY", "ARMLET_LOOPS_HOME_WINDOW")
    found["environment"] = {f"{name}={word}": said(_from, {name: word}) for name in variables for word in WORDS}
    return found


def _loaded(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "armlet.toml"
        path.write_text(text)
        return said(lambda: [each.spec for each in load(path, {}).loops]).replace(f"{folder}/", "")


def _from(environ: Mapping[str, str]) -> object:
    return load(None, environ, store="shop.db")


# ---- commands

CALLS: Final = (
    *("evaluate none.jsonl --candidate uniform", "evaluate explored.jsonl --candidate nowhere"),
    *("evaluate explored.jsonl --candidate uniform", "evaluate explored.jsonl --candidate uniform --estimator best"),
    *("evaluate explored.jsonl --candidate uniform --level 2 --weights ignore", "evaluate shop.db --candidate uniform"),
    *("evaluate shop.db --loop nowhere --candidate uniform", "evaluate explored.jsonl --candidate LinUCB.armlet"),
    *(
        "evaluate outcomes.jsonl --candidate outcomes.armlet --dials word",
        "evaluate actions.jsonl --candidate always:a",
    ),
    *(
        "evaluate explored.jsonl --candidate uniform --reward-range 1..0",
        "evaluate explored.jsonl --candidate own --dials 3",
    ),
    *("gate explored.jsonl --candidate uniform", "gate explored.jsonl --candidate always:nowhere"),
    *("gate actions.jsonl --candidate uniform", "gate outcomes.jsonl --candidate uniform"),
    *("log show none.jsonl", "log show shop.db", "log tail explored.jsonl -n 0", "log export explored.jsonl a.txt"),
    *("log compact explored.parquet", "log export settings.jsonl a.parquet", "log compact explored.jsonl --out a.txt"),
    *("audit none.jsonl", "audit explored.jsonl --start LinUCB.armlet", "audit explored.jsonl --digest 0a"),
    *("search explored.jsonl --around none.armlet", "search explored.jsonl --around LinUCB.armlet"),
    *("rejection-replay explored.jsonl --policy Nothing", "rejection-replay explored.jsonl --policy LinUCB:alpah=1"),
    *("summary none.armlet", "summary explored.jsonl", "intervals SharedOptimism.armlet"),
    *("summary ThompsonSampling.armlet --level 2", "summary outcomes.armlet --interval anytime"),
    *("compare --policy Nothing --horizon 50 --runs 1", "compare --environment Nowhere --horizon 50 --runs 1"),
    *("compare --policy LinUCB:alpha=word --horizon 50 --runs 1", "compare --policy LinUCB --horizon 0 --runs 1"),
    *("simulate --environment Nowhere --policy Uniform", "list Nothing", "advise --horizon 10 --environment Nowhere"),
    *("fit none.parquet --out a.armlet", "fit explored.parquet --policy Nothing --out a.armlet"),
    *("serve shop.db --loop new --check", "serve shop.db --loop new --arms a,b --check", "serve --check"),
    *("serve shop.db --loop new --arms a --dim 1 --policy LinUBC --check", "serve none.toml --check"),
    *("serve shop.db --loop new --arms a --dim 1 --window 60 --check", "serve --new-key nothing"),
    *("serve shop.db --loop new --arms a --dim 1 --outcomes quality=1 --check", "serve shop.db --arms a --check"),
    *("serve shop.db --loop new --arms a --dim 1 --known cost:a=1 --check", "serve --new-key decide --key-loops ''"),
    *("serve shop.db --loop new --arms a --dim 1 --budget cost:total=1 --check", "serve shop.db --share 0.5 --check"),
    *("store none.db list", "store shop.db show nowhere", "store shop.db verify nowhere", "store explored.jsonl list"),
    *("store shop.db change nowhere --window 60", "store shop.db change arms", "store shop.db change arms --policy No"),
    *("store shop.db change arms --policy SquareCB", "store shop.db change arms --shadow none --refit"),
    *("store shop.db change arms --budget cost:total=1,horizon=5", "store shop.db change films --control a"),
    *("store shop.db change router --outcomes price=1", "store shop.db change router --known delay:small=word"),
    *("store shop.db change arms --features age --fill age=1", "store shop.db change arms --reward-range 1..0"),
    *("store shop.db promote genres --gate off", "store shop.db promote fading --gate better"),
    *(
        "store shop.db freeze films",
        "store shop.db thaw films",
        "store shop.db forget arms",
        "store shop.db delete arms",
    ),
    *("store shop.db forget arms nowhere", "store shop.db prune --before word", "store shop.db export arms a.txt"),
    *("store shop.db backup shop.db", "store shop.db change arms --control a --share 2", "watch none.db"),
)


def _commands() -> Mapping[str, Said]:
    """Call commands wrongly, next to logs, models and a store that are right; what they print, without the usage."""
    found: Said = {}
    with unpacked(LOGS) as folder, unpacked(MODELS) as models, contextlib.chdir(folder):
        for path in models.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        (folder / "shop.db").write_bytes(lzma.decompress(left(FILE)))
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ARMLET_")}
        with mock.patch.dict(os.environ, {**clean, "COLUMNS": "100", "NO_COLOR": "1"}, clear=True):
            for call in CALLS:
                found[call] = _called(call).replace(f"{folder}/", "")
    return {"armlet": found}


def _called(call: str) -> str:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        try:
            code = cli.main(shlex.split(call))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
    lines = [line for line in errors.getvalue().splitlines() if line and not line.startswith((" ", "usage:"))]
    text = portable(" | ".join(lines))
    return f"ends with {code}: {text}" if code else f"ends with 0, {len(out.getvalue()) > 0}"
