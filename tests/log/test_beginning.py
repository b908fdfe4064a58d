"""How a log begins: whole or not at all, in an ordinary file, and nothing is removed that was there before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import armlet
from armlet.errors import LogError

POLICY = armlet.ContextualEpsilonGreedy(p=20)


def begun(path: Path) -> armlet.Log:
    """Begin a log, or continue the one that is there."""
    log = armlet.Log(path)
    armlet.Bandit(["a", "b"], 1, policy=POLICY, seed=1, log=log).decide([1.0])
    log.close()
    return log


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(path: Path) -> None:
    path.with_name("target").touch()
    path.symlink_to("target")


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("make", [pipe, link, dangling, Path.mkdir])
def test_what_is_no_ordinary_file_is_refused_and_stays(tmp_path: Path, make: type) -> None:
    path = tmp_path / "a.jsonl"
    make(path)
    before = names(tmp_path), path.lstat()
    for _ in range(2):
        with pytest.raises(
            LogError, match=r"a\.jsonl cannot be opened: is (a symbolic link|not an ordinary file); name"
        ):
            begun(path)
    after = names(tmp_path), path.lstat()
    assert (after[0], after[1].st_ino, after[1].st_mode) == (before[0], before[1].st_ino, before[1].st_mode)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_full_disk_leaves_nothing_of_a_log_that_began(
    tmp_path: Path, is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    if is_there:
        path.touch()
    before = sorted(tmp_path.iterdir())

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LogError, match=r"a\.start\.armlet cannot be written: no space"):
            begun(path)
    assert sorted(tmp_path.iterdir()) == before
    assert not is_there or path.stat().st_size == 0
    assert armlet.audit(begun(path), tmp_path / "a.start.armlet").ok  # with room


@pytest.mark.parametrize("kept", [10, 40, None])
def test_a_crash_while_a_log_begins_is_no_obstacle(tmp_path: Path, kept: int | None) -> None:
    """The start line is written first, then the start model: whatever is there of the line, nothing was decided yet."""
    path = tmp_path / "a.jsonl"
    begun(path)
    line = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(line[:kept])
    (tmp_path / "a.start.armlet").unlink()
    assert armlet.audit(begun(path), tmp_path / "a.start.armlet").ok
    assert names(tmp_path) == ["a.jsonl", "a.start.armlet"]


@pytest.mark.parametrize("data", [b"a picture without a newline", b"x" * 300, b'{"seq":0,"kind":"start","at":5}\n{}\n'])
def test_a_file_of_somebody_else_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    with pytest.raises(LogError):
        begun(path)
    assert (path.read_bytes(), names(tmp_path)) == (data, ["a.jsonl"])


def test_a_start_model_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    start = tmp_path / "a.start.armlet"
    start.write_bytes(b"precious")
    with pytest.raises(LogError, match=r"a\.start\.armlet is there but its log is not"):
        begun(tmp_path / "a.jsonl")
    assert (start.read_bytes(), names(tmp_path)) == (b"precious", ["a.start.armlet"])


def test_what_is_read_must_be_an_ordinary_file_that_is_a_log(tmp_path: Path) -> None:
    """Neither an endless device nor a huge file is read to find that out."""
    huge = tmp_path / "huge.jsonl"
    with huge.open("wb") as file:
        file.truncate(2**40)
    for path, why in ((Path("/dev/zero"), "a device or a pipe"), (huge, "huge.jsonl is not an Armlet log: its first")):
        with pytest.raises(LogError, match=why):
            list(armlet.log.read(path))
    log = begun(tmp_path / "a.jsonl")
    with log.path.open("ab") as file:
        file.truncate(2**40)
    with pytest.raises(LogError, match=r"event 3 of a\.jsonl .* longer than 1,048,576 bytes"):
        list(log)
