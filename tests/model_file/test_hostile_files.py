"""Files that claim what they do not hold: refused before memory or time is spent, whatever the policy.

Their checksums are right, as those of anybody who knows the format would be.
"""

from __future__ import annotations

import io
import json
import math
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet import Bandit, Policy, Uniform, disk, model_file
from armlet.errors import ModelFileError
from armlet.inputs.settings import NEWER
from armlet.policies.state import Arrays
from armlet.types import Array
from support import examples
from support.bandits import play
from support.policies import DIM, N_ARMS, REGISTRY, SETTINGS, every_policy
from support.streams import make_stream

SPARE = 1 << 28  # bytes that a process under attack may ask for beyond what it has
ABSURD: tuple[Any, ...] = (
    10**5,
    10**9,
    10**18,
    2**63,
    10**400,
    1e-300,
    1e300,
    -1,
    True,
    None,
    "x",
    [],
    [[1.0]],
    {"a": 1},
)


def saved(policy: Policy) -> tuple[dict[str, Any], dict[str, Array]]:
    file = io.BytesIO()
    Bandit(range(N_ARMS), DIM, policy=policy, seed=1).save(file)
    return disk.decode_model(file.getvalue())


def absurd_headers(header: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Change one thing at a time: the dimension, the arms, each setting."""
    for dim in (DIM + 1, 10**4, 10**6, 10**9, 2**62, 2**70, 10**400):
        yield {**header, "dim": dim}
    for n_arms in (N_ARMS + 1, 20_000):
        yield {**header, "arms": list(range(n_arms))}
    policy = header["policy"]
    for name in policy["settings"]:
        for value in ABSURD:
            yield {**header, "policy": {**policy, "settings": {**policy["settings"], name: value}}}


def absurd_clocks(header: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What every policy has: the arms that are retired, the clock."""
    for value in ABSURD:
        yield {**header, "retired": value}
        yield {**header, "t": value}


def peak() -> int:
    """Bytes that this process ever had in memory at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def attack() -> None:
    """Load every such file of every policy with little memory to spare; print how many were tried and refused."""
    np.linalg.eigh(np.eye(100))  # the library behind it takes its room when it is first used
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = peak()
    resource.setrlimit(resource.RLIMIT_AS, (held + SPARE, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CPU, (300, 300))  # ends a run that would not end
    tried = refused = 0
    met: set[str] = set()
    for policy in every_policy():
        header, arrays = saved(policy)
        new = type(policy).__name__ not in met or examples.find_profile() == "nightly"
        met.add(type(policy).__name__)
        for changed in chain(absurd_headers(header), absurd_clocks(header) if new else ()):
            tried += 1
            try:
                armlet.load(io.BytesIO(disk.encode_model(changed, arrays)))
            except ModelFileError as error:
                refused += 1
                if isinstance(error.__cause__, MemoryError):
                    raise AssertionError(f"{policy} with {changed!s:.300} asked for too much memory") from error
    print(json.dumps([tried, refused, peak() - before]))


def test_absurd_sizes_and_settings_cost_no_memory_in_any_policy() -> None:
    program = "import test_hostile_files; test_hostile_files.attack()"
    command = [sys.executable, "-c", program]
    here = Path(__file__).parent
    paths = {**os.environ, "PYTHONPATH": f"{here.parent}{os.pathsep}{here}", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=paths)
    assert done.stderr == ""
    tried, refused, grown = json.loads(done.stdout)
    assert tried > 60 * len(REGISTRY)
    assert refused > 0.8 * tried  # the others describe bandits that can be: another rate, a table of wider contexts
    assert grown < SPARE


def test_a_small_file_with_a_large_dim_is_refused_by_its_bytes() -> None:
    header, arrays = saved(Uniform())
    data = disk.encode_model({**header, "dim": 10_000}, arrays)
    assert len(data) < 1000
    with pytest.raises(ModelFileError, match=r"'records' has shape \(4, 12\) where .* need \(4, 50015003\)"):
        armlet.load(io.BytesIO(data))


@pytest.mark.parametrize("policy", every_policy(), ids=repr)
@pytest.mark.parametrize(("n_arms", "dim"), [(4, 3), (2, 1), (7, 5)])
def test_every_policy_knows_the_shapes_of_its_state(policy: Policy, n_arms: int, dim: int) -> None:
    arrays = policy.init(n_arms, dim).arrays()
    shapes = model_file.expected(policy, n_arms, dim)
    model_file.check_shapes(arrays, shapes)
    loose = {name for name, shape in shapes.items() if None in shape}
    assert all(arrays[name].size == 0 for name in loose)  # only what grows with what is learned may have any length


@pytest.mark.parametrize("name", REGISTRY)
def test_shapes_hold_after_learning_and_with_other_arms(name: str) -> None:
    for settings in SETTINGS[name]:
        policy = REGISTRY[name](**settings)
        bandit = Bandit(range(N_ARMS), DIM, policy=policy, seed=1)
        rewards = "clicks" if policy.rewards != "any" else "linear"
        play(bandit, make_stream(30, DIM, N_ARMS, seed=1, rewards=rewards))
        model_file.check_shapes(bandit.state.arrays(), model_file.expected(policy, N_ARMS, DIM))


def test_memory_that_runs_out_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise MemoryError

    header, arrays = saved(Uniform())
    data = disk.encode_model(header, arrays)
    monkeypatch.setattr(Uniform, "init", full)
    with pytest.raises(ModelFileError, match="does not describe a usable bandit: MemoryError"):
        armlet.load(io.BytesIO(data))
    monkeypatch.setattr(disk, "_arrays", full)
    with pytest.raises(ModelFileError, match="the file object: there is not enough memory"):
        armlet.load(io.BytesIO(data))


# ---- headers that would have been taken for others


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"retired": [True]}, "an arm is named True"),
        ({"retired": [1.0]}, "an arm is named 1.0"),
        ({"retired": {"1": 2}}, "retired is {'1': 2}, not a list"),
        ({"arms": {"a": 1, "b": 2, "c": 3, "d": 4}}, "arms is .*, not a list"),
        ({"features": "uvw"}, "features is 'uvw', not a list"),
        ({"features": {"u": 1, "v": 2, "w": 3}}, "features is .*, not a list"),
        ({"policy": {"name": ["Uniform"], "settings": {}}}, "unhashable"),
        ({"policy": {"name": "Uniform", "settings": None}}, "mapping"),
    ],
)
def test_only_what_save_writes_is_read(change: dict[str, Any], message: str) -> None:
    header, arrays = saved(Uniform())
    with pytest.raises(ModelFileError, match=message):
        armlet.load(io.BytesIO(disk.encode_model({**header, **change}, arrays)))


# ---- what load would refuse, save does not write


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Uniform):
    """A policy that takes any setting."""

    note: object = None


def refused_by_save(bandit: Bandit, tmp_path: Path) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        bandit.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
    return str(caught.value)


@pytest.mark.parametrize("note", [math.nan, math.inf, {1, 2}, object(), {1: "a"}, b"x", np.zeros(2), 1j])
def test_settings_that_are_no_json_are_not_saved(note: object, tmp_path: Path) -> None:
    bandit = Bandit(["a", "b"], 2, policy=Noted(note=note), seed=1)
    assert "policy has note=" in refused_by_save(bandit, tmp_path)


def test_labels_that_cannot_be_written_are_not_saved(tmp_path: Path) -> None:
    assert "4300 digits" in refused_by_save(Bandit([10**5000, 1], 2, policy=Uniform(), seed=1), tmp_path)


def test_a_header_that_is_too_long_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "MAX_HEADER_BYTES", 500)
    bandit = Bandit([f"arm {i}" for i in range(100)], 1, policy=Uniform(), seed=1)
    assert "header takes" in refused_by_save(bandit, tmp_path)


class Odd(Arrays):
    """A state that gives what no file can hold, or what it would not take back."""

    def __init__(self, entry: Any) -> None:
        super().__init__(2, 2, by_arm={"W": np.zeros((2, 2))}, whole={"odd": entry})


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeps(Uniform):
    """A policy with such a state."""

    kind: str

    def rule(self) -> None:  # type: ignore[override]
        return None

    def init(self, n_arms: int, dim: int) -> Odd:  # type: ignore[override]  # noqa: ARG002
        odd = {"nan": np.array([math.nan]), "single": np.zeros(1, np.float32), "text": np.array(["a"])}
        return Odd(odd[self.kind])


@pytest.mark.parametrize(("kind", "message"), [("nan", "odd holds"), ("single", "<f4"), ("text", "<U1")])
def test_arrays_that_load_would_refuse_are_not_saved(kind: str, message: str, tmp_path: Path) -> None:
    assert message in refused_by_save(Bandit(["a", "b"], 2, policy=Keeps(kind=kind), seed=1), tmp_path)


def test_every_setting_of_every_policy_is_attacked() -> None:
    """A policy that keeps a setting out of its file would escape the attack above."""
    for policy in every_policy():
        header, _ = saved(policy)
        named = {field.name for field in fields(policy)}  # type: ignore[arg-type]
        unset = {name for name in NEWER if getattr(policy, name, None) is None}
        assert set(header["policy"]["settings"]) == named - unset
