"""Forked children give up the locks and files of their parent: none hangs, and none keeps a file locked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from armlet.disk import LockedFile

HANGING = """
import os, signal, sys, threading, armlet
log = armlet.Log(sys.argv[1])
bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), log=log)
decision = bandit.decide([1.0])
append, inside, leave = log._append_all, threading.Event(), threading.Event()

def slowly(*event):
    inside.set()
    leave.wait()
    return append(*event)

log._append_all = slowly
thread = threading.Thread(target=log.note, args=(decision,), kwargs={"source": "parent"})
thread.start()
inside.wait()  # the log's lock is held by a thread that a child does not have
codes = []
for call in (lambda: log.note(decision, source="child"), log.flush, lambda: list(log), log.close, log.sync):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        log._append_all = append
        try:
            call()
        except armlet.errors.LogError as error:
            os._exit(2 if "belongs to the process that forked this one" in str(error) else 3)
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
leave.set()
thread.join()
log.close()
print(codes, [event["kind"] for event in log], armlet.audit(log, log.start_path).ok)
"""


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_children_of_a_process_whose_threads_log_do_not_hang(tmp_path: Path) -> None:
    printed = run(HANGING, tmp_path / "a.jsonl")
    assert printed == "[2, 2, 0, 0, 2] ['start', 'decide', 'note', 'checkpoint'] True"


LIVING = """
import os, sys, armlet
folder = sys.argv[1]
log = armlet.Log(f"{folder}/a.jsonl")
bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), log=log)
store = armlet.open_store(f"{folder}/shop.db")
waits, ends = os.pipe()
child = os.fork()
if child == 0:
    os.close(ends)
    os.read(waits, 1)  # lives until the parent is done
    os._exit(0)
os.close(waits)
bandit.decide([1.0])
log.close()
store.close()
log = armlet.Log(f"{folder}/a.jsonl")
again = armlet.log.resume(log)
with armlet.open_store(f"{folder}/shop.db"):
    print(again.t)
log.close()
os.close(ends)
os.waitpid(child, 0)
"""


def test_a_child_that_lives_on_keeps_neither_log_nor_store_locked(tmp_path: Path) -> None:
    assert run(LIVING, tmp_path) == "1"


def test_closing_ends_the_lock_whoever_else_has_the_file_open(tmp_path: Path) -> None:
    lock = LockedFile(tmp_path / "a", 0o600)
    copy = os.dup(lock.fd)  # as a child that was forked without Python's knowledge
    lock.close()
    lock.close()
    LockedFile(tmp_path / "a", 0o600).close()
    os.close(copy)


def test_a_child_closes_its_copy_and_leaves_the_lock_to_its_parent(tmp_path: Path) -> None:
    lock = LockedFile(tmp_path / "a", 0o600)
    copy = os.dup(lock.fd)
    fd = lock.fd
    lock.forked()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    with pytest.raises(BlockingIOError):
        LockedFile(tmp_path / "a", 0o600)
    os.close(copy)


def test_only_a_file_that_was_made_is_removed(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    for name, is_left in (("old", True), ("new", False)):
        lock = LockedFile(tmp_path / name, 0o600)
        lock.remove()
        lock.close()
        assert (tmp_path / name).exists() == is_left
    lock = LockedFile(tmp_path / "new", 0o600)
    (tmp_path / "new").unlink()
    (tmp_path / "new").write_text("of somebody else")
    lock.remove()
    lock.close()
    assert (tmp_path / "new").read_text() == "of somebody else"
