"""The fuzzer of files: damaged and edited model files are refused by name, or give a bandit that works."""

from __future__ import annotations

import copy
import hashlib
import json
import resource
import tempfile
import warnings
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import armlet
from armlet import Bandit, Decision
from armlet.errors import ModelFileError
from fuzz import policies
from fuzz.faults import Fault, View, difference, judge, look, require
from fuzz.session import FOLDER
from support.policies import REGISTRY

LENGTH = 100  # damaged files of one sound one
ROOM = 200_000  # kilobytes that a few hundred bytes of file may make the process grow by
DIGITS = "@digits@"  # becomes a number of more digits than Python reads
HUGE = (2**31, 2**32, 2**53, 2**62, 2**63, 2**64, 2**70, 10**9, 10**300, 10**4000, DIGITS, 10**4, 65536, -1, 0)
ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0.5,
    -1.0,
    1e308,
    1e100,
    1e-320,
    "",
    "linear",
    "\u0000",
    [],
    [[]],
    {},
    [1, 2],
    {"a": 1},
    [None],
)


def play(case: int) -> int:
    """Play one case; how many damaged files it tried. Raises a Fault."""
    rng = Random(case)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        path = Path(folder) / "m.armlet"
        names = list(REGISTRY)
        sound = [saved(rng, names[(case + i) % len(names)], path) for i in (0, 1)]
        for step in range(LENGTH):
            how = rng.choice(WAYS)
            data = how(rng, sound[0], sound[1])
            try:
                try_file(path, data)
            except Fault as fault:
                raise Fault(
                    f"file {step} of {names[case % len(names)]}, {how.__name__}: {fault}; {data[:900]!r}"
                ) from fault
    return LENGTH


def saved(rng: Random, name: str, path: Path) -> bytes:
    """Return the file of a bandit that has lived a little."""
    policy = policies.ordinary(name)
    bandit = Bandit(
        ["a", 1, "c", 2**70], 3, policy=policy, seed=rng.randrange(2**128), features=rng.choice((None, ["x", "y", "z"]))
    )
    for _ in range(rng.choice((0, 1, 12))):
        bandit.learn(bandit.decide([rng.choice((0.0, 1.0, -0.5)) for _ in range(3)]), float(rng.randrange(2)))
    if rng.random() < 0.3:
        bandit.retire_arm("c")
    bandit.save(path)
    return path.read_bytes()


def try_file(path: Path, data: bytes) -> None:
    """Load one file: a ModelFileError, or a bandit that works and can be saved."""
    path.write_bytes(data)
    before = peak()
    try:
        bandit = armlet.load(path)
    except ModelFileError:
        bandit = None
    except Exception as error:
        raise Fault(f"load raised {error!r:.300}") from error
    grown = peak() - before
    require(grown < ROOM, lambda: f"{len(data)} bytes of file took {grown} kilobytes of memory")
    if bandit is not None:
        work(bandit, path)


def peak() -> int:
    """Return the most memory that this process ever held, in kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def work(bandit: Bandit, path: Path) -> None:
    """Decide, learn, save and load again."""
    try:
        there_and_back(bandit, path)
        decision = bandit.decide([0.5] * bandit.settings.dim)
        require(0 < decision.propensity <= 1, lambda: f"the loaded bandit plays with propensity {decision.propensity}")
        learn(bandit, decision)
        chances = bandit.predict_proba(np.full((1, bandit.settings.dim), 0.5))
        require(bool(abs(chances.sum() - 1) < 1e-6), lambda: f"the loaded bandit plays with {chances.tolist()}")
        there_and_back(bandit, path)
    except Fault:
        raise
    except Exception as error:
        raise Fault(f"the loaded bandit does not work: {error!r:.300}") from error


def learn(bandit: Bandit, decision: Decision) -> None:
    """Learn a reward, if the settings in the file, which may have been edited, allow it."""
    try:
        bandit.learn(decision, 1.0)
    except Exception as error:
        judge(error, "learn of the loaded bandit", "reward")


def there_and_back(bandit: Bandit, path: Path) -> None:
    bandit.save(path)
    before: View = look(bandit)
    changed = difference(before, look(armlet.load(path)))
    require(not changed, lambda: f"saved and loaded again, it differs in {changed}")


# ---- damage


def flip(rng: Random, data: bytes, _: bytes) -> bytes:
    held = bytearray(data)
    for _i in range(rng.choice((1, 1, 2, 8))):
        held[rng.randrange(len(held))] ^= 1 << rng.randrange(8)
    return bytes(held)


def cut(rng: Random, data: bytes, _: bytes) -> bytes:
    start = rng.choice((0, 0, rng.randrange(len(data))))
    return data[start : rng.randrange(start, len(data))]


def splice(rng: Random, data: bytes, other: bytes) -> bytes:
    kind = rng.randrange(3)
    if kind == 0:
        return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :]
    if kind == 1:
        head, body = parts(data)[0], parts(other)[1]
        return sealed(head, body)
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.choice((1, 8, 100))) + data[at:]


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    _, line, body = data.split(b"\n", 2)
    return json.loads(line), body


def sealed(header: dict[str, Any], body: bytes) -> bytes:
    """Write a header and a body with a checksum that is right."""
    header = {name: value for name, value in header.items() if name != "checksum"}
    digest = hashlib.sha256(spelled(header) + body).hexdigest()
    return b"armlet model 3\n" + spelled({**header, "checksum": f"sha256:{digest}"}) + body


def spelled(header: dict[str, Any]) -> bytes:
    line = json.dumps(header, sort_keys=True, ensure_ascii=False).encode(errors="surrogatepass")
    return line.replace(f'"{DIGITS}"'.encode(), b"7" * 5000) + b"\n"


def edit(rng: Random, data: bytes, other: bytes) -> bytes:
    """Change one or two values of the header, wherever they are, and seal it again."""
    header, body = parts(data)
    for _ in range(rng.choice((1, 1, 2))):
        replace(rng, header, parts(other)[0])
    return sealed(header, body)


def replace(rng: Random, header: dict[str, Any], other: dict[str, Any]) -> None:
    """Put something else in a random place of a JSON value."""
    place: Any = header
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and rng.random() < 0.75:
            place = place[key]
            continue
        if rng.random() < 0.08:
            del place[key]
        elif rng.random() < 0.1 and key in other:
            place[key] = other[key]
        else:
            place[key] = substitute(rng, place[key])
        return


def substitute(rng: Random, value: Any) -> Any:
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(HUGE)
    if kind < 0.65:
        return copy.deepcopy(rng.choice(ODD))  # a second edit may go into it
    if kind < 0.7:
        return nested(rng.choice((3, 100, 5000)))
    if isinstance(value, int | float):
        return (
            rng.choice((value + 1, value - 1, -value, value * 1000, float(value), value / 3))
            if abs(value) < 2**900
            else 0
        )
    if isinstance(value, list):
        return rng.choice((value[1:], value * 2, value[::-1], [*value, 1]))
    return rng.choice(
        ("table", "ignored", "all maps", "exact", "min", "l2", "paper", "1/n", "auto", "<i8", "<f8", "records", "a")
    )


def nested(depth: int) -> Any:
    held: Any = []
    for _ in range(depth if depth < 900 else 900):
        held = [held]
    return held


def grow(rng: Random, data: bytes, _: bytes) -> bytes:
    """Absurd sizes: of a dim, of a count among the settings, of arms; the arrays stay as small as they were."""
    header, body = parts(data)
    many = rng.choice((10**3, 10**4, 10**5, 10**9, 2**31, 2**63 - 1))
    counts = [name for name, value in header["policy"]["settings"].items() if type(value) is int or value is None]
    kind = rng.randrange(3)
    if kind == 0 and counts:
        header["policy"]["settings"][rng.choice(counts)] = many
    elif kind == 1:
        header["arms"] = list(range(min(many, 3000)))
        header["retired"] = []
    else:
        header["dim"], header["features"] = many, None
    return sealed(header, body)


def scribble(rng: Random, data: bytes, _: bytes) -> bytes:
    """Other numbers in the arrays, and a checksum that is right."""
    header, body = parts(data)
    if len(body) < 8:
        return flip(rng, data, data)
    held = bytearray(body)
    for _i in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(held) // 8) * 8
        new = np.array([rng.choice((np.nan, np.inf, -np.inf, -1.0, 1e308, -1e308, 1e100, 5e-324, 0.0, 1e16, 0.5))])
        held[at : at + 8] = rng.choice((new.tobytes(), rng.randbytes(8)))
    return sealed(header, bytes(held))


def reshape(rng: Random, data: bytes, _: bytes) -> bytes:
    """An array of another shape or type, with as many bytes as that takes."""
    header, body = parts(data)
    entry = rng.choice(header["arrays"])
    entry["shape"] = rng.choice(
        ([], [0], [0, 2**62], [len(body) // 8], [1] * 70, [2**62, 4], entry["shape"][::-1], [*entry["shape"], 1])
    )
    entry["dtype"] = rng.choice((entry["dtype"], entry["dtype"], "<i8", "|u1", "|b1", "<f4", "O", ">f8"))
    size = min(sum(int(np.prod([float(n) for n in e["shape"]])) * 8 for e in header["arrays"]), 100_000)
    return sealed(header, (body * (size // max(len(body), 1) + 1))[:size] if rng.random() < 0.7 else body)


WAYS = (flip, cut, splice, edit, edit, edit, edit, edit, edit, grow, scribble, scribble, scribble, reshape)
