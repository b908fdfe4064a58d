"""The bandit that a log ends with, brought back from the log and its start model. O(events)."""

from __future__ import annotations

from armlet.bandit import Bandit, from_bytes, load
from armlet.log.faults import MissingFileError, reading
from armlet.log.reading import LogFile
from armlet.log.recording import Log
from armlet.log.replaying import replay
from armlet.types import Policy


def resume(log: Log, *, policy: Policy | None = None) -> Bandit:
    """Replay a log from its start model, and give the bandit that goes on with it.

    Pending decisions are learned as those of any other process: `armlet.Decision.from_dict`.

    Parameters
    ----------
    log
        A log of JSON lines that nobody writes; its start model must be beside it.
    policy
        The policy, if it is not one of Armlet's own.

    Examples
    --------
    >>> import tempfile, pathlib, armlet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.jsonl"
    >>> log = armlet.Log(path, flush="line")
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1, log=log)
    >>> decision = bandit.decide([1.0])
    >>> log.close()
    >>> with armlet.Log(path) as log:
    ...     again = armlet.log.resume(log)
    ...     again.learn(armlet.Decision.from_dict(decision.to_dict()), 0.5)
    """
    if not log.start_path.exists():
        raise MissingFileError(f"{log.start_path.name}, which {log.name} starts from, is missing; bring it back")
    with reading(log.start_path.name):
        bandit = load(log.start_path, policy=policy)
    log.expect(replay(LogFile(log.path), bandit), bandit.digest())
    return from_bytes(bandit.to_bytes(), policy=policy, log=log)
