"""The log of a bandit: written, read, replayed, audited and exported; and logs of other origin."""

from armlet.log.action_tables import with_tables
from armlet.log.auditing import Audit, Mismatch, audit
from armlet.log.exporting import compact, write
from armlet.log.imports import from_dataset, from_dsjson, from_obp
from armlet.log.log import Log, resume
from armlet.log.reader import read
from armlet.log.replaying import replay
from armlet.record.events import Events
from armlet.record.values import Event

__all__ = [
    "Audit",
    "Event",
    "Events",
    "Log",
    "Mismatch",
    "audit",
    "compact",
    "from_dataset",
    "from_dsjson",
    "from_obp",
    "read",
    "replay",
    "resume",
    "with_tables",
    "write",
]
