"""A bandit on disk: it goes on as if nothing had happened, and its file is as small as what it has to hold."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import armlet
from armlet import Algorithm1, AllDataEpsilonGreedy, Bandit, Policy, Uniform, disk
from armlet.errors import ModelFileError
from armlet.policies import Oracle
from armlet.types import Arm, LearnsFrom, Memory, RewardKind
from support.bandits import facts, play, snapshot
from support.in_python import InPython
from support.streams import make_stream


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.armlet"


def saved_and_loaded(bandit: Bandit, path: Path, **options: Any) -> Bandit:
    bandit.save(path)
    loaded: Bandit = armlet.load(path, **options)
    return loaded


def header_of(path: Path) -> dict[str, Any]:
    header: dict[str, Any] = json.loads(path.read_bytes().split(b"\n", 2)[1])
    return header


def change_header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Edit a file as somebody would who knows the format: with the right checksum."""
    header, arrays = disk.read_model(path)
    change(header)
    disk.write_model(path, header, arrays)


# ---- it goes on as if nothing had happened


def test_loading_leaves_the_file_and_saving_leaves_the_bandit(path: Path) -> None:
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=4), seed=1)
    play(bandit, make_stream(10, 2, 2, seed=1))
    before = snapshot(bandit)
    bandit.save(path)
    written = path.read_bytes()
    armlet.load(path).decide([1.0, 1.0])
    assert snapshot(bandit) == before
    assert path.read_bytes() == written
    saved_and_loaded(bandit, path).save(path)
    assert path.read_bytes() == written


# ---- every setting comes back

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "int arms": {"arms": [3, -1, 2**70]},
    "str arms": {"arms": ["", "süd", "😀", "a\0b", "1"]},
    "mixed arms": {"arms": ["1", 1, "x"]},
    "features": {"dim": None, "features": ["age", "größe"]},
    "costs": {"objective": "min"},
    "unit length": {"normalize": "l2"},
    "seed 0": {"seed": 0},
    "largest seed": {"seed": 2**128 - 1},
    "random seed": {"seed": None},
    "numpy seed": {"seed": np.int64(12)},
    "p not whole": {"policy": Algorithm1(p=9.75)},
    "p a numpy float": {"policy": Algorithm1(p=np.float64(9.75))},
    "uniform warm-up": {"policy": Algorithm1(p=9, warmup="uniform")},
    "ridge 1/n": {"policy": Algorithm1(p=9, ridge="1/n")},
    "ridge constant": {"policy": Algorithm1(p=9, ridge=0.1)},
    "ridge whole": {"policy": AllDataEpsilonGreedy(p=9, ridge=3)},
    "uniform": {"policy": Uniform()},
    "uniform ridge": {"policy": Uniform(ridge=1e-3)},
    "oracle": {"policy": Oracle(theta=[[1 / 3, -0.0], [1e-300, 2.5]])},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_restored(name: str, path: Path) -> None:
    given: dict[str, Any] = {
        "arms": ["a", "b"],
        "dim": 2,
        "policy": Algorithm1(p=9),
        "seed": 1,
        **SETTINGS[name],
    }
    bandit = Bandit(**given)
    play(bandit, make_stream(25, 2, len(bandit.arms), seed=1))
    bandit.retire_arm(bandit.arms[1])
    again = saved_and_loaded(bandit, path)
    for what in ("arms", "settings", "policy", "seed", "t"):
        assert getattr(again, what) == getattr(bandit, what), what
    assert (again.arms.retired, again.state.nbytes) == (bandit.arms.retired, bandit.state.nbytes)
    assert [type(arm) for arm in again.arms] == [type(arm) for arm in bandit.arms]
    assert snapshot(again) == snapshot(bandit)
    assert [facts(again.decide([0.3, 0.4])) for _ in range(50)] == [facts(bandit.decide([0.3, 0.4])) for _ in range(50)]
    assert (again + bandit).t == again.t + bandit.t  # settings that are equal, not only alike


def test_arms_beyond_p_that_came_after_the_warmup_come_back(path: Path) -> None:
    bandit = Bandit(["a", "b"], 1, policy=Algorithm1(p=2), seed=1)
    bandit.decide_many([[1.0]] * 3)
    for arm in ("c", "d", 5):
        bandit.add_arm(arm)
    assert saved_and_loaded(bandit, path).arms == ["a", "b", "c", "d", 5]


# ---- size


def fill(bandit: Bandit, steps: int) -> None:
    X = np.random.default_rng(1).normal(size=(steps, bandit.settings.dim))
    bandit.learn_many(bandit.decide_many(X), X[:, 0])


@pytest.mark.parametrize(("dim", "n_arms"), [(3, 6), (32, 32), (128, 100)])
def test_state_is_as_small_as_what_it_has_to_hold(dim: int, n_arms: int, path: Path) -> None:
    bandit = Bandit(range(n_arms), dim, policy=AllDataEpsilonGreedy(p=n_arms), seed=1)
    fill(bandit, 3 * n_arms)
    bandit.predict(np.zeros((1, dim)))
    size = dim + 1  # a constant, in free units, which take 1 + 3 D numbers besides
    needed = (n_arms * (size * (size + 1) // 2 + size + 3) + 1 + 3 * size) * 8
    bandit.save(path)
    content = path.read_bytes()
    header = sum(len(line) + 1 for line in content.split(b"\n", 2)[:2])
    assert len(content) - header <= 1.1 * needed
    assert header <= 1000 + 10 * n_arms  # settings, and labels of a few digits
    assert needed <= bandit.state.nbytes <= 2.5 * needed
    assert armlet.load(path).state.nbytes <= 2.5 * needed


def test_state_does_not_grow_with_t(path: Path) -> None:
    bandit = Bandit(range(6), 3, policy=AllDataEpsilonGreedy(p=6), seed=1)
    sizes = []
    for steps in (100, 900, 9_000, 90_000):
        fill(bandit, steps)
        bandit.predict(np.zeros((1, 3)))
        bandit.save(path)
        sizes.append((bandit.state.nbytes, path.stat().st_size - len(str(bandit.t))))
    assert bandit.t == 100_000
    assert len(set(sizes)) == 1


def test_arms_that_come_and_go_leave_nothing_behind() -> None:
    bandit, fresh = (Bandit(range(6), 3, policy=Uniform(), seed=1) for _ in range(2))
    for round_ in range(50):
        bandit.add_arm(100 + round_)
        fill(bandit, 10)
        bandit.remove_arm(100 + round_)
    bandit.predict(np.zeros((1, 3)))
    assert bandit.state.nbytes <= 2 * fresh.state.nbytes


# ---- policies of others


@dataclass(frozen=True, slots=True, kw_only=True)
class Mine(Uniform):
    """A policy that Armlet does not know."""

    note: str = "mine"
    nested: tuple[tuple[int, ...], ...] = ((1, 2), (3,))
    learns_from: ClassVar[LearnsFrom] = "every step"


def test_policy_of_ones_own_is_passed_to_load(path: Path) -> None:
    for policy in (Mine(), Mine(note="other"), InPython(p=5)):
        bandit = Bandit(["a", "b"], 2, policy=policy, seed=1)
        play(bandit, make_stream(20, 2, 2, seed=1))
        bandit.save(path)
        name = type(policy).__name__
        with pytest.raises(ModelFileError, match=rf"there is no policy '{name}'.*load\(path, policy={name}"):
            armlet.load(path)
        again = armlet.load(path, policy=policy)
        assert again.policy is policy
        assert snapshot(again) == snapshot(bandit)
        assert facts(again.decide([1.0, 2.0])) == facts(bandit.decide([1.0, 2.0]))


@pytest.mark.parametrize(
    "wrong",
    [
        Algorithm1(p=6),
        Algorithm1(p=5, ridge="1/n"),
        Algorithm1(p=5, warmup="uniform"),
        AllDataEpsilonGreedy(p=5),
        InPython(p=5),
        Uniform(),
    ],
    ids=str,
)
def test_another_policy_than_the_saved_one_is_refused(wrong: Policy, path: Path) -> None:
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=5), seed=1)
    bandit.save(path)
    with pytest.raises(ModelFileError, match="it was saved with Algorithm1"):
        armlet.load(path, policy=wrong)
    assert armlet.load(path, policy=Algorithm1(p=5)).t == 0


def test_policy_that_is_no_dataclass_is_refused_before_the_disk_is_touched(path: Path) -> None:
    class Plain:
        learns_from: ClassVar[LearnsFrom] = "every step"
        memory: ClassVar[Memory] = "constant"
        rewards: ClassVar[RewardKind] = "any"

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return getattr(Uniform(), name)

    bandit = Bandit(["a", "b"], 2, policy=Plain(), seed=1)
    with pytest.raises(TypeError, match="not a dataclass, so its settings cannot be saved"):
        bandit.save(path)
    assert list(path.parent.iterdir()) == []


# ---- files that describe no bandit


WRONG_HEADERS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "policy name 'Stranger'": (
        lambda h: h["policy"].update(name="Stranger"),
        "there is no policy 'Stranger'",
    ),
    "policy name 'os.system'": (
        lambda h: h["policy"].update(name="os.system"),
        r"there is no policy 'os\.system'",
    ),
    "policy with p '4'": (lambda h: h["policy"]["settings"].update(p="4"), "p is '4'"),
    "policy with extra 1": (lambda h: h["policy"]["settings"].update(extra=1), "extra"),
    "policy with ridge 'none'": (lambda h: h["policy"]["settings"].update(ridge="none"), "ridge is 'none'"),
    "no policy": (lambda h: h.pop("policy"), "policy"),
    "policy 'Algorithm1'": (lambda h: h.update(policy="Algorithm1"), "does not describe"),
    "arms ['a']": (lambda h: h.update(arms=["a"]), "does not describe"),
    "arms ['a', 'a']": (lambda h: h.update(arms=["a", "a"]), "more than once"),
    "arms ['a', None]": (lambda h: h.update(arms=["a", None]), "None"),
    "arms 'ab'": (lambda h: h.update(arms="ab"), "does not describe"),
    "retired ['z']": (lambda h: h.update(retired=["z"]), "z"),
    "retired ['a', 'b']": (lambda h: h.update(retired=["a", "b"]), "does not describe"),
    "retired None": (lambda h: h.update(retired=None), "does not describe"),
    "dim 3": (lambda h: h.update(dim=3), "does not describe"),
    "dim 0": (lambda h: h.update(dim=0), "dim"),
    "dim '2'": (lambda h: h.update(dim="2"), "dim"),
    "features ['u']": (lambda h: h.update(features=["u"]), "features|dim"),
    "features [1, 2]": (lambda h: h.update(features=[1, 2]), "features"),
    "objective 'best'": (lambda h: h.update(objective="best"), "objective"),
    "normalize 'l1'": (lambda h: h.update(normalize="l1"), "normalize"),
    "t -1": (lambda h: h.update(t=-1), "does not describe"),
    "t 2.5": (lambda h: h.update(t=2.5), "does not describe"),
    "t True": (lambda h: h.update(t=True), "does not describe"),
    "t 2**64": (lambda h: h.update(t=2**64), "does not describe"),
    "t None": (lambda h: h.update(t=None), "does not describe"),
    "seed None": (lambda h: h.update(seed=None), "seed"),
    "seed -1": (lambda h: h.update(seed=-1), "seed"),
    "seed 2**128": (lambda h: h.update(seed=2**128), "seed"),
    "seed 1.0": (lambda h: h.update(seed=1.0), "seed"),
    "no seed": (lambda h: h.pop("seed"), "seed"),
}


@pytest.mark.parametrize("name", WRONG_HEADERS)
def test_header_that_describes_no_bandit_is_refused(name: str, path: Path) -> None:
    """The checksum is right; what it says is wrong."""
    change, message = WRONG_HEADERS[name]
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=4), seed=1)
    play(bandit, make_stream(3, 2, 2, seed=1))
    bandit.save(path)
    change_header(path, change)
    with pytest.raises(ModelFileError, match=message) as caught:
        armlet.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_sums_of_no_rows_are_refused(value: float, path: Path) -> None:
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=4), seed=1)
    bandit.save(path)
    header, arrays = disk.read_model(path)
    records = bandit.state.records()
    records[1, 0] = value
    disk.write_model(path, header, {**arrays, "records": records})
    with pytest.raises(ModelFileError, match="not those of any rows"):
        armlet.load(path)


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"records": np.zeros((2, 7))},
        {"records": np.zeros((3, 8))},
        {"records": np.zeros(16)},
        {"records": np.zeros((2, 8), dtype=np.int64)},
        {"sums": np.zeros((2, 8))},
    ],
)
def test_arrays_of_another_shape_are_refused(arrays: dict[str, Any], path: Path) -> None:
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=4), seed=1)
    assert bandit.state.records().shape == (2, 8)
    bandit.save(path)
    header, _ = disk.read_model(path)
    disk.write_model(path, header, arrays)
    with pytest.raises(ModelFileError, match="does not describe"):
        armlet.load(path)


def test_every_flipped_byte_is_refused(path: Path) -> None:
    bandit = Bandit(["a", "b"], 1, policy=Algorithm1(p=4), seed=1)
    play(bandit, make_stream(6, 1, 2, seed=1))
    bandit.save(path)
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(ModelFileError):
            armlet.load(path)
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError):
            armlet.load(path)


def test_failed_save_keeps_the_file_that_was_there(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bandit = Bandit(["a", "b"], 1, policy=Algorithm1(p=4), seed=1)
    bandit.save(path)
    before = path.read_bytes()
    bandit.decide([1.0])

    def full(_descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        bandit.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# ---- what the file is


def test_file_is_two_readable_lines_and_little_endian_doubles(path: Path) -> None:
    bandit = Bandit(["a", "b"], 2, policy=Algorithm1(p=4), seed=1)
    play(bandit, make_stream(6, 2, 2, seed=1))
    bandit.save(path)
    magic, _, body = path.read_bytes().split(b"\n", 2)
    assert magic == b"armlet model 3"
    np.testing.assert_array_equal(np.frombuffer(body, dtype="<f8").reshape(2, 8), bandit.state.records())
    header = header_of(path)
    assert (header["arms"], header["t"], header["seed"], header["dim"]) == (["a", "b"], 6, 1, 2)
    settings = {"p": 4, "ridge": "paper", "warmup": "round-robin", "units": "as given", "origin": None}
    assert header["policy"] == {"name": "Algorithm1", "settings": settings}


def test_reading_and_writing_need_no_pickle(path: Path) -> None:
    """With every way into pickle shut, in a process of its own."""
    Bandit(["a", "b"], 2, policy=Algorithm1(p=4), seed=1).save(path)
    program = f"""
import pickle, sys
def shut(*args, **kwargs):
    raise RuntimeError("pickle was used")
for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
    setattr(pickle, name, shut)
sys.modules["_pickle"] = None
import armlet
bandit = armlet.load({str(path)!r})
bandit.decide([1.0, 2.0])
bandit.save({str(path)!r})
print(armlet.load({str(path)!r}).t)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_labels_of_a_file_are_never_looked_up_as_code(path: Path) -> None:
    labels: list[Arm] = ["__import__('os').system('true')", "policy", "records"]
    bandit = Bandit(labels, 1, policy=Uniform(), seed=1)
    assert saved_and_loaded(bandit, path).arms == labels
