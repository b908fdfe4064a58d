"""The part `files`: logs and model files that an earlier Armlet wrote, what they lead to, and what is written today."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import tarfile
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

import armlet
from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.cast.cast import SHADOW, Cast
from armlet.cast.control import Control
from armlet.cast.model import read_cast
from armlet.errors import ArgumentError
from armlet.log import Log, compact, read, resume, write
from armlet.log.replaying import play_all
from armlet.policies import POLICIES
from armlet.stores import Memory
from armlet.testing.product import SETTINGS
from records.record import Texts, facts, left, short
from records.scribe import shown
from records.shops import FILMS, Shop, context
from support import lives
from support.actions.lives import ActionLife, new_action_bandit

LOGS: Final = "logs.tar.xz"
MODELS: Final = "models.tar.xz"
VOLATILE: Final = ("at", "crc", "seal", "version", "start_model")  # of an event: its time, and what depends on it
ENDINGS: Final = (".jsonl", ".parquet")
OF_LOOPS: Final = {"arms": 39, "router": 47, "films": 39, "genres": 60}
"""Of loops of a shop: how many steps they live until a change lets them go on from another start model."""
WHOLE: Final = ("arms", "router", "films")
"""Of loops of a shop that live on: these logs are read, but played again by the loop alone."""


def make() -> Texts:
    """Read what was left, and write the same lives again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with unpacked(LOGS) as folder:
            texts = {"files_logs.json": facts({path.name: _log(path) for path in _logs(folder)})}
        with unpacked(MODELS) as folder:
            texts["files_models.json"] = facts({path.stem: _model(path) for path in sorted(folder.iterdir())})
        with tempfile.TemporaryDirectory() as name:
            _write_logs(Path(name))
            written = {path.name: _written(path) for path in _logs(Path(name))}
        written_models = {name: hashlib.sha256(_unversioned(data)).hexdigest() for name, data in _models().items()}
    return {**texts, "files_written.json": facts({"logs": written, "models": written_models})}


def leave() -> dict[str, bytes]:
    """Write logs of every kind with their start models, compacted logs, and model files of every kind."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        folder = Path(name)
        _write_logs(folder)
        logs = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
        return {LOGS: _packed(logs), MODELS: _packed({f"{name}.armlet": data for name, data in _models().items()})}


def _packed(contents: Mapping[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:xz", preset=9) as archive:
        for name, data in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return target.getvalue()


@contextmanager
def unpacked(name: str) -> Iterator[Path]:
    """Unpack files that were left, into a folder of their own."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(left(name))) as archive:
        archive.extractall(folder, filter="data")
        yield Path(folder)


def _logs(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in ENDINGS)


# ---- logs


def _write_logs(folder: Path) -> None:
    """Write the logs of lives, those of some loops, and compact some of them."""
    plain: dict[str, Any] = {
        "explored": armlet.ContextualEpsilonGreedy(p=4, floor=0.2),
        "sums": armlet.LinUCB(),
        "python": armlet.ContextualUCB(search="counts", history="explored", p=8),
        "faded": armlet.ThompsonSampling(discount=0.97),
    }
    for name, policy in plain.items():
        bandit, log = lives.new_bandit(policy, folder / f"{name}.jsonl")
        with log:
            lives.Life(bandit).live(200)
    with armlet.Log(folder / "outcomes.jsonl") as log:
        lives.RouterLife(lives.new_router(log)).live(120)
    with armlet.Log(folder / "actions.jsonl") as log:
        ActionLife(new_action_bandit(log)).live(80)
    with armlet.Log(folder / "settings.jsonl") as log:
        _change_all(log)
    with armlet.Log(folder / "fitted.jsonl") as log:
        _fit_all(log)
    for name, last in OF_LOOPS.items():
        _write_loops(folder, "loop", [name], last)
    _write_loops(folder, "whole", WHOLE, 160)
    for name in ("explored", "outcomes", "actions"):
        compact(folder / f"{name}.jsonl")


def _write_loops(folder: Path, prefix: str, names: Iterable[str], last: int) -> None:
    """Write the logs of loops that live for so many steps."""
    shop = Shop(_kept(Memory()))
    shop.live(last)
    with shop.store as store:
        for name in names:
            loop = store.loop(name)
            write(loop.log, folder / f"{prefix}_{name}.jsonl")
            (folder / f"{prefix}_{name}.start.armlet").write_bytes(loop.log.start)


def _kept(ledger: Memory) -> Callable[[], Memory]:
    return lambda: ledger


def _change_all(log: Log) -> None:
    """Change whatever may change in a bandit, fading by time."""
    policy = armlet.LinUCB(half_life="3 hours")
    bandit = armlet.Bandit(["a", 1, "1"], features=["u", "v"], policy=policy, reward_range=(-1, 1), seed=3, log=log)
    made = [bandit.decide(context(i), at=1e9 + 60.0 * i) for i in range(12)]
    for each in made[:9]:
        bandit.learn(each, 0.5)
    log.note(made[2], outcomes={"latency": 0.5}, source="checkout")
    bandit.correct(made[0], 0.5, -0.25)
    bandit.forget(made[1], 0.5)
    bandit.expire(made[10])
    bandit.replace(reward_range=(-2.0, 2.0))
    bandit.replace(feature_range={"u": (-1.0, 1.0, "clip")})
    bandit.replace(policy=armlet.LinUCB(alpha=0.5, half_life="3 hours"))
    bandit.replace(features=["v", "u", "w"], fill={"w": 0.5})
    bandit.replace(t=40)
    bandit.add_arm("new")
    bandit.remove_arm(1)
    before, other = bandit.copy(), bandit.copy(seed=5)
    other.learn(other.decide([0.5, 0.0, 1.0], at=1e9 + 1e4), 0.25)
    bandit.merge(other.difference(before))
    bandit.learn(bandit.decide([0.0, 0.0, 1.0], at=1e9 + 2e4), 1.0)


def _fit_all(log: Log) -> None:
    """Learn rows without decisions, many decisions at once, and a log of another system."""
    bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.ContextualEpsilonGreedy(p=4, floor=0.2), seed=3, log=log)
    X = np.array([context(i) for i in range(6)])
    bandit.partial_fit(X, list("ababab"), [0.5, 0.0, 1.0, 0.25, 0.75, 0.0], explored=True)
    made = bandit.decide_many(X)
    bandit.learn_many(made, [0.5] * 6)
    row = {"t": [bandit.t + 1], "x": [[0.5, 0.25]], "arm": ["a"], "propensity": [0.5], "explored": [True]}
    bandit.partial_fit({**row, "reward": [0.25], "weight": [2.0]})


def _log(path: Path) -> dict[str, Any]:
    """Return what a log that was left reads as, and what it leads to."""
    log = read(path)
    start = path.with_name(f"{path.stem}.start.armlet")
    found = _events(log)
    if not path.name.startswith("whole_"):
        again = read_cast(start.read_bytes())
        play_all(log, again)
        found |= {"audit": str(armlet.audit(path, start)), "replayed": again.digest()}
    if path.suffix == ".parquet":
        lines = write(path, path.with_name(f"{path.stem} again.jsonl"))
        found["lines"] = hashlib.sha256(lines.read_bytes()).hexdigest()
        found["same lines"] = lines.read_bytes() == path.with_suffix(".jsonl").read_bytes()
        return found
    try:
        with write(path, path.with_name(f"{path.stem}.csv")).open(newline="") as file:
            head, *rows = csv.reader(file)
        found["table"] = {"columns": " ".join(head), "rows": short(repr([[*map(_cell, row)] for row in rows]))}
    except ArgumentError as error:
        found["table"] = shown(error)
    if "_" not in path.name:
        with Log(path) as more:
            bandit = resume(more)
            found["resumed"] = bandit.digest()
    return found


def _cell(text: str) -> object:
    """Return a cell of a table as a number, if it is one, however many digits were written."""
    try:
        return float(text)
    except ValueError:
        return text


def _events(events: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many events of each kind there are, the names of their fields, and a hash of all."""
    kinds: Counter[str] = Counter()
    fields: dict[str, set[str]] = {}
    whole = hashlib.sha256()
    for event in events:
        kept = {name: value for name, value in event.items() if name not in VOLATILE}
        if "model" in kept:  # it has the seeds of copies, which are drawn
            kept["model"] = armlet.from_bytes(base64.b64decode(kept["model"])).digest()
        kinds[event["kind"]] += 1
        fields.setdefault(event["kind"], set()).update(kept)
        whole.update(json.dumps(kept, sort_keys=True).encode())
    names = {kind: " ".join(sorted(each)) for kind, each in fields.items()}
    return {"events": dict(kinds), "fields": names, "whole": whole.hexdigest()}


def _written(path: Path) -> dict[str, Any]:
    """Return what is written today; times and what depends on them are left out."""
    return _events(read(path))


# ---- model files


def _models() -> dict[str, bytes]:
    """Return a model file of every policy, and of every option of a bandit."""
    found: dict[str, Bandit] = {}
    for name in (name for name in POLICIES if name != "Oracle"):
        kind: Any = POLICIES[name]
        found[name] = armlet.Bandit(["a", "b", 3], features=["u", "v"], policy=kind(**SETTINGS.get(name, {})), seed=7)
    names: dict[str, Any] = {"features": ["u", "v"], "seed": 7}
    found["faded"] = armlet.Bandit(["a", "b"], policy=armlet.LinUCB(discount=0.97), **names)
    found["faded by steps"] = armlet.Bandit(["a", "b"], policy=armlet.Greedy(half_life=30), **names)
    found["settings"] = armlet.Bandit(
        ["a", "b", "c"],
        policy=armlet.LinUCB(),
        objective="min",
        normalize="l2",
        units="as given",
        reward_range=(-1, 1),
        feature_range={"u": (-1, 1, "clip")},
        epoch=20,
        **names,
    )
    found["retired"] = armlet.Bandit(["a", "b", "c"], policy=armlet.ContextualEpsilonGreedy(p=4), **names)
    found["encoded"] = armlet.Bandit(
        ["a", "b"], encoder=armlet.Encoder().fit([{"u": 1.5, "country": "de"}, {"u": 0.5, "country": "fr"}]), seed=7
    )
    for name, bandit in found.items():
        _teach(bandit)
        if name == "retired":
            bandit.retire_arm("b")
    one = armlet.ContextualEpsilonGreedy(p=4, floor=0.2)
    live, other = (armlet.Bandit(["a", "b"], policy=each, **names) for each in (one, armlet.LinUCB()))
    casts = {
        "control by an arm": Cast(live.copy(), control=Control(arm="a", share=0.25)),
        "control by a policy": Cast(live.copy()).with_control(Control(policy=other.policy, share=0.25), other),
        "shadow": Cast(live.copy()).with_shadows({SHADOW: other.policy}, {SHADOW: other}),
        "frozen": Cast(live.copy()).frozen(),
    }
    for each in casts.values():
        _teach_cast(each)
    router = lives.new_router()
    lives.RouterLife(router, changes=0.0).live(40)
    found["outcomes"] = router
    hard = armlet.Budget("cost", total=40.0, period=100, hard=True)
    found["hard budget"] = lives.new_router(budget=hard, reward_range={"cost": (0, 1), "quality": (-2, 2)})
    lives.RouterLife(found["hard budget"], changes=0.0).live(20)
    files = {name: each.to_bytes() for name, each in found.items()}
    files |= {name: each.to_bytes() for name, each in casts.items()}
    for policy in (armlet.SharedOptimism(), armlet.SharedThompson(v=0.5, intercepts=False)):
        acting = new_action_bandit(policy=policy)
        ActionLife(acting).live(30)
        name = type(policy).__name__
        files |= {name: acting.to_bytes(), f"{name} without tables": acting.to_bytes(tables="names")}
    return files


def _context(bandit: Bandit, i: int) -> Any:
    if bandit.settings.encoder is not None:
        return {"u": context(i)[0], "country": "de" if i % 2 else "fr"}
    return context(i)


def _teach(bandit: Bandit, n: int = 40) -> None:
    for i in range(n):
        decision = bandit.decide(_context(bandit, i))
        if i % 4:
            bandit.learn(decision, float(i % 3 == 0))


def _teach_cast(cast: Cast) -> None:
    for i in range(40):
        decision, _ = cast.decide(context(i), t=cast.live.t + 1)
        cast.learn(decision, float(i % 3 == 0))


def _model(path: Path) -> dict[str, Any]:
    """Return what a model file that was left holds, and how it goes on."""
    cast = read_cast(path.read_bytes())
    bandit: Any = cast.live
    digest = cast.digest()
    settings = {name: shown(getattr(bandit.settings, name)) for name in _names(bandit)}
    found = {"digest": digest, "settings": settings, "t": bandit.t}
    if not cast.is_alone:
        return {
            **found,
            "guards": cast.describe(),
            "next": [shown(cast.decide(context(i), t=100 + i)) for i in (1, 2)],
        }
    if isinstance(bandit, ActionBandit):
        films = {label: [each["genre"], each["year"], 0.5] for label, each in FILMS.items()}
        made = [bandit.decide(context(i), films) for i in range(5)]
    else:
        made = [bandit.decide(_any_context(bandit, i)) for i in range(5)]
    return {**found, "next": [shown(each) for each in made], "again": _again(bandit)}


def _any_context(bandit: Bandit, i: int) -> Any:
    return [*context(i), 0.5] if bandit.settings.dim == 3 else _context(bandit, i)


def _again(bandit: Any) -> str:
    """Return the digest of the same bandit written and read again."""
    digest: str = armlet.from_bytes(bandit.to_bytes()).digest()
    return digest


def _names(bandit: Any) -> list[str]:
    return sorted(name for name in bandit.settings.__dataclass_fields__ if name not in ("encoder", "action_encoder"))


def _unversioned(data: bytes) -> bytes:
    return data.replace(f'"armlet":"{armlet.__version__}"'.encode(), b"")
