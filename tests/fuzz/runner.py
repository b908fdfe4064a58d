"""Cases in processes of their own: one that crashes is counted, named and left behind, and the next one starts."""

from __future__ import annotations

import faulthandler
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from fuzz import actions, calls, commands, files, logs, pieces, stores
from fuzz.faults import Fault

KINDS: dict[str, Callable[[int], int]] = {
    "calls": calls.play,
    "actions": actions.play,
    "pieces": pieces.play,
    "files": files.play,
    "logs": logs.play,
    "compacted": logs.play_compacted,
    "stores": stores.play,
    "commands": commands.play,
}
NOUNS = {
    "calls": "calls of bandits",
    "actions": "calls of bandits of actions",
    "pieces": "calls of kernel objects",
    "files": "damaged files",
    "logs": "damaged logs",
    "compacted": "damaged compacted logs",
    "stores": "damaged stores",
    "commands": "commands",
}
PATIENCE = 240.0  # seconds for one case, of which most take a fraction of one: beyond, it hangs
MOST = 25  # faults after which a run stops
HERE = Path(__file__).parent.parent


@dataclass
class Tally:
    """What a run has done so far."""

    kind: str
    wanted: int
    done: int = 0
    cases: int = 0
    faults: dict[int, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def ended(self) -> bool:
        """Whether enough was done, or enough went wrong."""
        return self.done >= self.wanted or len(self.faults) >= MOST

    def report(self, seconds: float) -> str:
        """Describe in one line what was done."""
        what = f"{self.done} {NOUNS[self.kind]} in {self.cases} cases, {seconds:.0f} s"
        return f"{what}: {len(self.faults)} faults" if self.faults else f"{what}: no fault"


def run(kind: str, wanted: int, first: int, workers: int) -> Tally:
    """Play cases until `wanted` calls or files are done, and print every fault with the command that shows it again."""
    started, tally = monotonic(), Tally(kind, wanted)
    threads = [threading.Thread(target=follow, args=(tally, first + i, workers)) for i in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(tally.report(monotonic() - started), flush=True)
    return tally


def follow(tally: Tally, case: int, stride: int) -> None:
    """Keep a process at work on cases case, case + stride, ...; start another where one ends before its time."""
    while not tally.ended:
        command = [sys.executable, "-m", "fuzz", tally.kind, "--from", str(case), "--stride", str(stride)]
        with subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            said: list[str] = []
            listener = threading.Thread(target=said.extend, args=(process.stderr,))
            listener.start()
            for line in process.stdout:
                case = hear(tally, line, case, stride)
                if tally.ended:
                    process.kill()
                    break
            listener.join()
        if not tally.ended:
            complain(tally, case, f"the process ended with {process.returncode}\n{''.join(said)[-6000:]}")
            case += stride


def hear(tally: Tally, line: str, case: int, stride: int) -> int:
    """Count one case that came to its end; the number of the next."""
    done, _, fault = line.rstrip("\n").partition(" ")
    with tally.lock:
        tally.done += int(done)
        tally.cases += 1
    if fault:
        complain(tally, case, fault)
    return case + stride


def complain(tally: Tally, case: int, fault: str) -> None:
    with tally.lock:
        tally.faults[case] = fault
    print(f"FAULT  python -m fuzz {tally.kind} --case {case}\n       {fault}", flush=True)


def work(kind: str, first: int, stride: int) -> None:
    """Play cases forever, a line for each: how many calls it made, and the fault if there was one."""
    case = first
    while True:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            print(KINDS[kind](case), flush=True)
        except Fault as fault:
            print(0, str(fault).replace("\n", " "), flush=True)
        case += stride
