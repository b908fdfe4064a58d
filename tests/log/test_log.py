"""The log of a running bandit: what is written when, who may continue it, and what crashes leave."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armlet
from armlet.errors import InvalidTypeError, LogError
from armlet.log.log import CHECKPOINT
from armlet.log.writer import Flush
from support.lives import Life, new_bandit

POLICY = armlet.ContextualEpsilonGreedy(p=20)
BLOCK = 2**16  # bytes that wait for the system if lines go by blocks


def kinds(path: Path) -> list[str]:
    return [event["kind"] for event in armlet.log.read(path)]


def test_the_seed_is_in_the_start_model_alone_which_is_private(tmp_path: Path) -> None:
    seed = 123456789012345678901234567890
    bandit, log = new_bandit(POLICY, tmp_path / "a.jsonl", seed=seed)
    Life(bandit).live(50)
    log.close()
    start = tmp_path / "a.start.armlet"
    assert stat.S_IMODE(start.stat().st_mode) == 0o600
    assert armlet.load(start).seed == seed
    text = (tmp_path / "a.jsonl").read_text()
    assert str(seed) not in text
    assert "seed" not in text


def test_a_checkpoint_comes_every_thousand_events_and_at_the_end(tmp_path: Path) -> None:
    bandit, log = new_bandit(POLICY, tmp_path / "a.jsonl")
    Life(bandit).live(2500)
    log.close()
    places = [i for i, kind in enumerate(kinds(tmp_path / "a.jsonl")) if kind == "checkpoint"]
    gaps = np.diff([-1, *places])
    assert len(places) > 3
    assert (gaps[:-1] >= CHECKPOINT).all()
    assert (gaps < CHECKPOINT + 50).all()  # it waits for the next decision
    assert places[-1] == len(kinds(tmp_path / "a.jsonl")) - 1


def test_batches_are_logged_row_by_row(tmp_path: Path) -> None:
    bandit, log = new_bandit(POLICY, tmp_path / "a.jsonl")
    decisions = bandit.decide_many(np.ones((5, 3)))
    bandit.learn_many(decisions, np.arange(5.0))
    log.close()
    assert kinds(tmp_path / "a.jsonl") == ["start", *["decide"] * 5, *["learn"] * 5, "checkpoint"]
    assert armlet.audit(tmp_path / "a.jsonl", tmp_path / "a.start.armlet").ok


def test_threads_leave_a_log_that_can_be_replayed(tmp_path: Path) -> None:
    bandit, log = new_bandit(POLICY, tmp_path / "a.jsonl")

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for x in rng.normal(size=(300, 3)):
            bandit.learn(bandit.decide(x), float(rng.normal()))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    found = armlet.audit(tmp_path / "a.jsonl", tmp_path / "a.start.armlet")
    assert found.ok
    assert (found.decisions, found.digest) == (1200, bandit.digest())


@pytest.mark.parametrize("call", ["decide", "learn"])
def test_a_log_is_closed_between_a_change_and_the_next_never_within_one(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread closes it while the line of a change is written, before the change is made."""
    log = armlet.Log(tmp_path / "a.jsonl", flush="line")
    bandit = armlet.Bandit(["a", "b"], 3, policy=POLICY, log=log)
    decision = bandit.decide([1.0, 0.0, 0.0])
    closing = threading.Thread(target=log.close)
    was_closed: list[bool] = []
    write = os.write

    def interrupted(fd: int, data: Any) -> int:
        if not was_closed:
            was_closed.append(False)
            closing.start()
            closing.join(0.05)  # which the lock makes it use up
            was_closed[0] = not closing.is_alive()
        return write(fd, data)

    monkeypatch.setattr(os, "write", interrupted)
    if call == "learn":
        bandit.learn(decision, 1.0)
    else:
        bandit.decide([1.0, 0.0, 0.0])
    closing.join()
    assert was_closed == [False]
    found = armlet.audit(log, log.start_path)
    assert (found.status, found.digest) == ("ok", bandit.digest())


def test_a_signal_handler_cannot_write_into_the_middle_of_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit, log = new_bandit(POLICY, tmp_path / "a.jsonl")
    decision = bandit.decide([1.0, 0.0, 0.0])
    write, refused = os.write, []

    def interrupted(fd: int, data: Any) -> int:
        try:
            log.note(decision, source="signal")
        except armlet.errors.BusyError as error:
            refused.append(str(error))
        return write(fd, data)

    monkeypatch.setattr(os, "write", interrupted)
    log.flush()
    monkeypatch.undo()
    log.close()
    assert refused == ["a.jsonl is being written by this very thread; write to it after that"]
    assert armlet.audit(log, log.start_path).ok


def test_a_refused_call_leaves_no_event(tmp_path: Path) -> None:
    bandit, log = new_bandit(POLICY, tmp_path / "a.jsonl")
    decision = bandit.decide([1.0, 0.0, 0.0])
    bandit.learn(decision, 1.0)
    for refused in (
        lambda: bandit.decide([1.0]),
        lambda: bandit.learn(decision, 2.0),
        lambda: bandit.learn(bandit.decide([1.0, 0.0, 0.0]), float("nan")),
        lambda: bandit.retire_arm("none"),
        lambda: bandit.add_arm("arm 0"),
        lambda: bandit.correct(decision, 5.0, 2.0),
    ):
        with pytest.raises((ValueError, KeyError, armlet.ArmletError)):
            refused()
    log.close()
    assert kinds(tmp_path / "a.jsonl") == ["start", "decide", "learn", "decide", "checkpoint"]


def test_a_closed_log_is_continued_by_the_bandit_that_it_ends_with(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    bandit, log = new_bandit(POLICY, path)
    life = Life(bandit)
    life.live(100)
    log.close()
    with pytest.raises(LogError, match=r"a\.jsonl is closed"):
        bandit.decide([1.0, 0.0, 0.0])
    other = armlet.load(tmp_path / "a.start.armlet")
    before = path.read_bytes()
    with pytest.raises(LogError, match=r"a\.jsonl ends in another state than this bandit's; continue it with"):
        armlet.from_bytes(other.to_bytes(), log=armlet.Log(path))
    assert path.read_bytes() == before
    log = armlet.Log(path)
    again = armlet.log.resume(log)
    assert again.t == bandit.t == 100  # a refused decision has not happened
    life.bandit = again
    life.live(100)
    log.close()
    found = armlet.audit(path, tmp_path / "a.start.armlet")
    assert (found.mismatch, found.decisions) == (None, 200)


def test_a_log_has_one_bandit(tmp_path: Path) -> None:
    _, log = new_bandit(POLICY, tmp_path / "a.jsonl")
    with pytest.raises(LogError, match="is the log of another bandit already"):
        armlet.Bandit(["a", "b"], 1, policy=POLICY, log=log)
    with pytest.raises(LogError, match="is being written by another bandit or process"):
        new_bandit(POLICY, tmp_path / "a.jsonl")
    log.close()
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(LogError, match=r"a\.start\.armlet is there but its log is not"):
        new_bandit(POLICY, tmp_path / "a.jsonl")
    with pytest.raises(LogError, match=r"a\.parquet is a compacted log, which is for reading"):
        new_bandit(POLICY, tmp_path / "a.parquet")


def test_a_line_cut_by_a_crash_is_cut_off_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    bandit, log = new_bandit(POLICY, path)
    Life(bandit).live(30)
    log.flush()
    data = path.read_bytes()
    log.close()
    path.write_bytes(data[:-25])  # as if the process had been killed while it wrote
    lost = len(data[:-25]) - data[:-25].rfind(b"\n") - 1
    log = armlet.Log(path)
    warning = rf"a\.jsonl ended in the middle of a line.*: its last {lost} bytes were cut off"
    with pytest.warns(UserWarning, match=warning):
        armlet.log.resume(log)
    log.close()
    assert armlet.audit(path, tmp_path / "a.start.armlet").ok
    assert path.read_bytes().startswith(data[: data[:-25].rfind(b"\n") + 1])


KILLED = """
import sys, armlet
log = armlet.Log(sys.argv[1], flush=sys.argv[2])
bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.ContextualEpsilonGreedy(p=20), log=log)
t = 0
while True:
    decision = bandit.decide([1.0, t % 7])
    bandit.learn(decision, t % 3)
    t += 1
    print(decision.id, flush=True)
"""


@pytest.mark.filterwarnings("ignore:.* ended in the middle of a line:UserWarning")  # a kill may come into a write
@pytest.mark.parametrize("flush", ["line", "disk"])
def test_what_was_answered_survives_a_kill(tmp_path: Path, flush: str) -> None:
    path = tmp_path / "a.jsonl"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), flush], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    answered = [process.stdout.readline().strip() for _ in range(200)]
    process.send_signal(signal.SIGKILL)
    answered += [line.strip() for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    process.wait()
    process.stdout.close()
    killed = armlet.audit(path, tmp_path / "a.start.armlet")
    assert (killed.status, killed.mismatch) == ("incomplete", None)
    log = armlet.Log(path)
    again = armlet.log.resume(log)
    logged = [event for event in armlet.log.read(path) if event["kind"] == "learn"]
    assert set(answered) <= {event["id"] for event in logged}
    assert again.t >= len(answered)
    log.close()
    assert armlet.audit(path, tmp_path / "a.start.armlet").ok


def test_a_log_that_is_being_written_can_be_read(tmp_path: Path) -> None:
    bandit, log = new_bandit(POLICY, tmp_path / "a.jsonl")
    bandit.decide([1.0, 0.0, 0.0])
    assert [event["kind"] for event in log] == ["start", "decide"]
    assert log.about["arms"] == bandit.arms
    log.close()


def test_notes_are_in_the_log_and_change_nothing(tmp_path: Path) -> None:
    bandit, log = new_bandit(POLICY, tmp_path / "a.jsonl")
    decision = bandit.decide([1.0, 0.0, 0.0])
    log.note(decision, outcomes={"latency": 0.5}, source="checkout")
    log.note(decision.id, user=17)
    log.close()
    assert armlet.audit(tmp_path / "a.jsonl", tmp_path / "a.start.armlet").ok
    noted = [json.dumps(event["outcomes"]) for event in log if "outcomes" in event]
    assert noted == ['{"latency": 0.5}']


@pytest.mark.parametrize("flush", ["never", None])
def test_words_for_flushing_are_checked(tmp_path: Path, flush: str | None) -> None:
    with pytest.raises(ValueError, match=r"flush is .*; choose one of 'block', 'line', 'disk'"):
        armlet.Log(tmp_path / "a.jsonl", flush=flush)  # type: ignore[arg-type]


FULL = """
import resource, signal, sys, armlet
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, flush = sys.argv[1:]
log = armlet.Log(path, flush=flush)
bandit = armlet.Bandit(["a", "b"], 2, policy=armlet.ContextualEpsilonGreedy(p=20), log=log)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_050, resource.RLIM_INFINITY))
given = []
try:
    while True:
        given.append(bandit.decide([1.0, len(given) % 7]))
        bandit.learn(given[-1], 0.5)
except armlet.errors.LogError as error:
    print(error)
with open(path, "rb") as file:
    print(file.read()[-1:])
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
if not given[-1].learned:
    bandit.learn(given[-1], 0.5)
bandit.learn(bandit.decide([1.0, 1.0]), 0.5)
log.close()
print({decision.id for decision in given} <= {event["id"] for event in log if event["kind"] == "learn"})
print(armlet.audit(path, log.start_path).ok)
"""


@pytest.mark.parametrize("flush", ["block", "line", "disk"])
def test_a_full_disk_refuses_whole_events_and_the_log_goes_on_once_there_is_room(tmp_path: Path, flush: str) -> None:
    """The system stops writing in the middle of a line; what was answered before is not lost."""
    run = [sys.executable, "-c", FULL, str(tmp_path / "a.jsonl"), flush]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    refusal = "a.jsonl cannot be written: File too large; nothing was logged"
    assert done.stdout.splitlines() == [refusal, "b'\\n'", "True", "True"]


@pytest.mark.parametrize(("flush", "there"), [("block", 1), ("line", 3), ("disk", 3)])
def test_lines_are_with_the_system_when_they_should_be(tmp_path: Path, flush: Flush, there: int) -> None:
    path = tmp_path / "a.jsonl"
    log = armlet.Log(path, flush=flush)
    bandit = armlet.Bandit(["a", "b"], 1, policy=POLICY, log=log)
    bandit.learn(bandit.decide([1.0]), 0.5)
    assert path.read_bytes().count(b"\n") == there
    log.sync()
    assert path.read_bytes().count(b"\n") == 3
    for _ in range(BLOCK // 100):
        bandit.decide([1.0])
    assert path.stat().st_size > BLOCK
    log.close()


FORKED = """
import os, sys, armlet
log = armlet.Log(sys.argv[1])
bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=20), log=log)
bandit.decide([1.0])
if os.fork() == 0:
    refused = 0
    for call in (lambda: bandit.decide([1.0]), lambda: log.note("1-0000000000000000", source="child")):
        try:
            call()
        except armlet.ArmletError as error:
            refused += "forked" in str(error)
    log.close()
    sys.exit(refused)
code = os.waitstatus_to_exitcode(os.wait()[1])
bandit.decide([1.0])
log.close()
sys.exit(code)
"""


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FORKED, str(tmp_path / "a.jsonl")], check=False)
    assert done.returncode == 2
    assert kinds(tmp_path / "a.jsonl") == ["start", "decide", "decide", "checkpoint"]


def test_a_log_that_was_resumed_and_closed_at_once_goes_on(tmp_path: Path) -> None:
    """Its last two lines are checkpoints: that of the process that was killed, and that of the close."""
    log = armlet.Log(tmp_path / "a.jsonl", flush="line")
    bandit = armlet.Bandit(["a", "b"], 1, seed=1, log=log)
    bandit.learn(bandit.decide([1.0]), 1.0)
    log._journal.close()  # type: ignore[union-attr]  # as a kill does
    for _ in range(2):
        with armlet.Log(log.path) as again:
            bandit = armlet.log.resume(again)
    assert kinds(log.path)[-2:] == ["checkpoint", "checkpoint"]
    with armlet.Log(log.path) as again:
        armlet.log.resume(again).decide([1.0])
    assert armlet.audit(log.path, log.start_path).status == "ok"


def test_lines_that_wait_are_written_when_nobody_closes_the_log(tmp_path: Path) -> None:
    code = (
        "import sys, armlet\n"
        "bandit = armlet.Bandit(['a'], 1, policy=armlet.Greedy(), log=armlet.Log(sys.argv[1]))\n"
        "bandit.decide([1.0])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.jsonl")], check=True)
    assert kinds(tmp_path / "a.jsonl") == ["start", "decide"]


@pytest.mark.parametrize("path", [5, None, b"log.jsonl", [], "", "."])
def test_a_log_needs_the_name_of_a_file(path: Any) -> None:
    for call in (armlet.Log, armlet.log.resume):
        with pytest.raises(InvalidTypeError, match=r"^path is .*; give the name of a file"):
            call(path)
