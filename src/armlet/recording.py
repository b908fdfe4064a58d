"""Attach a recorder to a bandit: the engine then passes it every change, in order, under the recorder's lock.

With a recorder the threads of a bandit take turns. Without one nothing here is in use.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable

from armlet import model_file
from armlet.disk import give_up_in_children
from armlet.errors import BusyError, InvalidTypeError
from armlet.inputs.settings import Settings, check_seed
from armlet.kernel import Engine
from armlet.recorder import Fields, Recorder
from armlet.types import Policy, Snapshot

_RLOCK = type(threading.RLock())


class Recording:
    """A recorder and its lock, as the engine holds them; a forked child gives both up."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder: Recorder = recorder
        lock = getattr(recorder, "lock", None)
        self.lock = lock if isinstance(lock, _RLOCK) else threading.RLock()  # one owner: a log's own, if it has one
        give_up_in_children(self)

    def forked(self) -> None:
        """Leave the recorder to the process that opened it."""
        self.lock = threading.RLock()  # the other may have been copied while a thread held it
        self.recorder = _Elsewhere()


class _Elsewhere:
    """The recorder of a process that was forked from the one that has it."""

    def _refuse(self, *_: object) -> None:
        raise BusyError(
            "the bandit's log belongs to the process that this one was forked from; use bandit.copy(seed=...) here, "
            "with a log of its own"
        )

    open = decided = decided_many = happened = happened_many = _refuse


def attach(bandit: Engine, recorder: Recorder, now: model_file.Model, digest: Callable[[], str]) -> None:
    """Pass a recorder the bandit as it is `now`, and every change from now on; or leave the bandit as it was."""
    for name in ("open", "decided", "decided_many", "happened", "happened_many"):
        if not callable(getattr(recorder, name, None)):
            raise InvalidTypeError(
                f"log is {recorder!r}, which has no {name}; give an armlet.Log, or a Recorder of your own"
            )
    recorder.open(model_file.encode(now), model_file.describe(now), digest)
    bandit._attach(Recording(recorder))


def merge_fields(settings: Settings, other: Snapshot) -> Fields:
    """Describe a merge: what was learned elsewhere, as a model with these settings and a seed that nobody used."""
    safe = other._replace(seed=check_seed(None), streams=[])
    learned = model_file.Model(settings=settings, **safe._asdict())
    return {"model": base64.b64encode(model_file.encode(learned)).decode()}


def replace_fields(policy: Policy) -> Fields:
    """Describe a new policy: its name and settings."""
    return {"policy": model_file.policy_header(policy)}
