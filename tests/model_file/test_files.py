"""The model file: exact round trips, atomic writes, and a refusal for every kind of damage."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import resource
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from armlet import disk
from armlet.disk import SCHEMA_VERSION, Array, Json, read_model, write_model
from armlet.errors import ModelFileError

HEADER: dict[str, Json] = {"armlet": "0.1.0", "arms": ["north", "süd"], "seed": 2**127 + 1, "p": 0.1}
ARRAYS: dict[str, Array] = {
    "b": np.array([[0.5, -0.0], [np.pi, 1e-310]]),
    "n": np.array([3, -(2**62)]),
    "on": np.array([True, False]),
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
headers = st.dictionaries(st.text().filter(lambda name: name not in disk.RESERVED), json_values, max_size=4)
stored_arrays = st.sampled_from(disk.DTYPES).flatmap(
    lambda dtype: hnp.arrays(np.dtype(dtype), hnp.array_shapes(min_dims=0, min_side=0, max_side=4))
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.armlet"


@pytest.fixture
def small(path: Path) -> Path:
    write_model(path, HEADER, ARRAYS)
    return path


def forge(path: Path, entries: Json, body: bytes = b"", schema: int = SCHEMA_VERSION) -> None:
    """Write a file whose checksum is right although its content is wrong."""
    full: dict[str, Json] = {"schema": schema, "arrays": entries}
    line = disk._canonical({**full, "checksum": disk._checksum(full, [body])})
    path.write_bytes(disk._MAGIC + line + body)


@given(headers, st.dictionaries(st.text(min_size=1), stored_arrays, max_size=3))
def test_what_is_written_is_read_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, header: dict[str, Json], arrays: dict[str, Array]
) -> None:
    path = tmp_path_factory.getbasetemp() / "roundtrip.armlet"
    write_model(path, header, arrays)
    found, restored = read_model(path)
    assert disk._canonical(found) == disk._canonical(header)  # tells 1, 1.0 and True apart
    assert list(restored) == list(arrays)
    for name, array in arrays.items():
        assert restored[name].dtype == array.dtype
        assert restored[name].shape == array.shape
        assert restored[name].tobytes() == array.tobytes()  # NaN payloads and signed zeros included


def test_bytes_file_objects_and_paths_hold_the_same_model(small: Path, tmp_path: Path) -> None:
    data = disk.encode_model(HEADER, ARRAYS)
    memory = io.BytesIO(b"before")
    memory.seek(0, io.SEEK_END)
    write_model(memory, HEADER, ARRAYS)
    with (tmp_path / "unbuffered").open("wb", buffering=0) as raw:
        write_model(raw, HEADER, ARRAYS)
    assert small.read_bytes() == data
    assert memory.getvalue() == b"before" + data
    assert (tmp_path / "unbuffered").read_bytes() == data
    memory.seek(len(b"before"))
    with small.open("rb") as file, small.open("rb", buffering=0) as raw:
        found = [disk.decode_model(data), read_model(memory), read_model(file), read_model(raw), read_model(small)]
    for header, arrays in found:
        assert header == HEADER
        assert {name: array.tobytes() for name, array in arrays.items()} == {n: a.tobytes() for n, a in ARRAYS.items()}


class Trickle(io.RawIOBase):
    """Takes one byte at a time, as a pipe may."""

    def __init__(self) -> None:
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self.taken += bytes(data[:1])
        return 1


def test_a_file_that_takes_a_little_at_a_time_gets_all() -> None:
    file = Trickle()
    write_model(file, HEADER, ARRAYS)
    assert file.taken == disk.encode_model(HEADER, ARRAYS)
    assert not file.closed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: write_model(io.StringIO(), {}, {}), "takes text; open the file with mode 'wb'"),  # type: ignore[arg-type]
        (lambda: write_model(7, {}, {}), "target is 7; give a path or a file object"),  # type: ignore[arg-type]
        (lambda: read_model(io.StringIO("armlet")), "reads str, not bytes; open the file with mode 'rb'"),  # type: ignore[arg-type]
        (lambda: read_model(None), "source is None; give a path or a file object"),  # type: ignore[arg-type]
        (lambda: disk.decode_model("armlet"), r"data is 'armlet' \(str\); give the bytes"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_binary_file_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_a_refused_file_object_is_named_by_what_it_is(small: Path) -> None:
    small.write_bytes(small.read_bytes()[:-1])
    with small.open("rb") as file, pytest.raises(ModelFileError, match=re.escape(f"{small}: truncated")):
        read_model(file)
    with pytest.raises(ModelFileError, match="the bytes: truncated"):
        disk.decode_model(small.read_bytes())
    with pytest.raises(ModelFileError, match="the file object: truncated"):
        read_model(io.BytesIO(small.read_bytes()))


def test_layout_in_memory_does_not_matter(path: Path) -> None:
    base = np.arange(24.0).reshape(4, 6)
    arrays: dict[str, Array] = {"fortran": np.asfortranarray(base), "strided": base[::2, ::-3]}
    write_model(path, {}, arrays)
    for name, array in read_model(path)[1].items():
        np.testing.assert_array_equal(array, arrays[name])
        assert array.flags.writeable
        assert array.flags.c_contiguous


def test_two_lines_for_people_then_nothing_but_the_arrays(small: Path) -> None:
    magic, line, body = small.read_bytes().split(b"\n", 2)
    header = json.loads(line)
    assert magic == b"armlet model 3"
    assert list(header) == sorted(header)
    assert "süd" in line.decode()
    assert header["arrays"][0] == {"name": "b", "dtype": "<f8", "shape": [2, 2]}
    assert re.fullmatch("sha256:[0-9a-f]{64}", header["checksum"])
    assert body == b"".join(array.tobytes() for array in ARRAYS.values())


def test_equal_models_make_equal_files(small: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "again", dict(reversed(HEADER.items())), ARRAYS)
    assert (tmp_path / "again").read_bytes() == small.read_bytes()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"p": [float("nan"), float("inf")]}, "header is not JSON"),
        ({"clock": np.int64(3)}, "header is not JSON"),
        ({"arm": "\ud800"}, "header is not JSON"),
        ({"arms": ("a", {1: "b"})}, "use str keys and lists only"),
        ({"checksum": ""}, "'checksum', which the file uses itself"),
    ],
)
def test_a_header_that_cannot_come_back_is_refused(path: Path, header: dict[str, Json], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_model(path, header, {})
    assert not path.exists()


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i4", "<u8", "<c16", "<U3", "O", "<M8[s]", "V4"])
def test_only_four_dtypes_are_written(path: Path, dtype: str) -> None:
    with pytest.raises(ValueError, match="array 'A' has dtype"):
        write_model(path, {}, {"A": np.zeros(2, dtype=dtype)})


def test_a_write_that_fails_half_way_leaves_the_old_file(small: Path) -> None:
    before = small.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, limits[1]))  # no file may outgrow 64 KiB
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            write_model(small, {}, {"A": np.zeros(1 << 17)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert small.read_bytes() == before
    assert list(small.parent.iterdir()) == [small]


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failed_last_step_leaves_the_old_file(
    small: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: type[BaseException]
) -> None:
    def fail(*_: object) -> None:
        raise error("no")

    before = small.read_bytes()
    monkeypatch.setattr(os, call, fail)
    with pytest.raises(error, match="no"):
        write_model(small, {"new": True}, {})
    assert small.read_bytes() == before
    assert list(small.parent.iterdir()) == [small]


def test_a_reader_sees_the_old_model_or_the_new_one(path: Path) -> None:
    def write() -> None:
        for turn in range(100):
            write_model(path, {"turn": turn}, {"A": np.full(1000, turn)})

    write_model(path, {"turn": 0}, {"A": np.full(1000, 0)})
    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        header, arrays = read_model(path)
        assert np.all(arrays["A"] == header["turn"])
    writer.join()
    assert read_model(path)[0] == {"turn": 99}


def test_bytes_and_directory_are_synced_before_returning(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    real = os.fsync

    def spy(descriptor: int) -> None:
        synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    write_model(path, HEADER, ARRAYS)
    assert synced == [False, True]


def test_a_model_is_its_owner_s_alone_since_it_holds_a_seed_unless_somebody_says_otherwise(path: Path) -> None:
    before = os.umask(0o000)
    try:
        write_model(path, {}, {})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o604)
    write_model(path, {}, {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_link_stays_a_link(small: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(small)
    write_model(tmp_path / "latest", {"new": True}, {})
    assert (tmp_path / "latest").is_symlink()
    assert read_model(small)[0] == {"new": True}


def test_impossible_places_are_refused_as_open_would(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="create it first"):
        write_model(tmp_path / "missing" / "model", {}, {})
    with pytest.raises(IsADirectoryError):
        write_model(tmp_path, {}, {})
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not an ordinary file"):
        write_model(tmp_path / "pipe", {}, {})
    assert list(tmp_path.iterdir()) == [tmp_path / "pipe"]


def test_every_truncation_and_a_trailing_byte_are_refused(small: Path) -> None:
    whole = small.read_bytes()
    for damaged in [whole + b"\n", *(whole[:length] for length in range(len(whole)))]:
        small.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=re.escape(str(small))):
            read_model(small)


@pytest.mark.parametrize("mask", [1, 0x20, 0x80, 0xFF])
def test_one_changed_byte_anywhere_is_refused(small: Path, mask: int) -> None:
    whole = small.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= mask
        small.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=re.escape(str(small))):
            read_model(small)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty; restore a copy"),
        (b"armlet mod", "truncated in the first line"),
        (b"PK\x03\x04", "not an Armlet model file; check where it comes from"),
        (b"armlet model 1\nanything", "written with schema 1 by a development version before 0.1.0"),
        (b"armlet model 4\nanything", "written with schema 4, this version reads up to 3; upgrade armlet"),
        (b"armlet model 3\n{}", "truncated in the header"),
        (b"armlet model 3\n[]\n", "not the JSON object that was written"),
        (b'armlet model 3\n{"a":1}\n', "not the JSON object that was written"),
        (b'armlet model 3\n{"a": NaN}\n', "not the JSON object that was written"),
        (b'armlet model 3\n{"a": 1, "a": 1}\n', "not the JSON object that was written"),
        (b"armlet model 3\n" + b"[" * 100_000 + b"\n", "not the JSON object that was written"),
        (b"armlet model 3\n{}\n", "lists no arrays"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_to_do(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as caught:
        read_model(path)
    assert str(caught.value).startswith(str(path))


def test_an_absurdly_long_header_is_refused(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "MAX_HEADER_BYTES", 100)
    with pytest.raises(ModelFileError, match="longer than 100 bytes"):
        read_model(small)
    with pytest.raises(ValueError, match=r"header takes \d+ bytes"):
        write_model(small, HEADER, ARRAYS)


@pytest.mark.parametrize("shape", [[-1], [True], [1.0], [2**63], [1] * 65, [2**62, 2**62], [2], [], None])
def test_a_forged_shape_is_refused(path: Path, shape: Json) -> None:
    forge(path, [{"name": "A", "dtype": "|u1", "shape": shape}], bytes(8))
    with pytest.raises(ModelFileError, match=r"cannot be|truncated|bytes follow"):
        read_model(path)


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "|O", "|V8", 8, "|b1"])
def test_a_forged_dtype_is_refused(path: Path, dtype: Json) -> None:
    forge(path, [{"name": "A", "dtype": dtype, "shape": [8]}], bytes(range(8)))
    with pytest.raises(ModelFileError, match=r"cannot be|neither 0 nor 1"):
        read_model(path)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "lists no arrays"),
        ([{"name": "A", "dtype": "|u1"}], "cannot be"),
        ([{"name": "A", "dtype": "|u1", "shape": [0]}] * 2, "same name"),
        ([{"name": "A", "dtype": "|u1", "shape": [0, 2**62, 2]}], "cannot have shape"),
    ],
)
def test_a_forged_list_of_arrays_is_refused(path: Path, entries: Json, message: str) -> None:
    forge(path, entries)
    with pytest.raises(ModelFileError, match=message):
        read_model(path)


def test_lines_that_disagree_on_the_schema_are_refused(path: Path) -> None:
    forge(path, [], schema=1)
    with pytest.raises(ModelFileError, match="different schema versions"):
        read_model(path)


def test_a_file_that_cannot_be_opened_raises_as_open_does(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        read_model(tmp_path)
