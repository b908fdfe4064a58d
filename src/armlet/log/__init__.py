"""The log of a bandit: written, read, replayed, audited and exported; and logs of other origin."""

from armlet.log.auditing import Audit as Audit
from armlet.log.auditing import Mismatch as Mismatch
from armlet.log.auditing import audit as audit
from armlet.log.exporting import compact as compact
from armlet.log.exporting import write as write
from armlet.log.imports import from_dataset as from_dataset
from armlet.log.imports import from_dsjson as from_dsjson
from armlet.log.imports import from_obp as from_obp
from armlet.log.imports import from_table as from_table
from armlet.log.log import Log as Log
from armlet.log.log import resume as resume
from armlet.log.reader import read as read
from armlet.log.replaying import replay as replay
from armlet.log.schema import Event as Event
from armlet.log.schema import Events as Events
from armlet.log.tables import Roles as Roles

__all__ = [
    "Audit",
    "Event",
    "Events",
    "Log",
    "Mismatch",
    "Roles",
    "audit",
    "compact",
    "from_dataset",
    "from_dsjson",
    "from_obp",
    "from_table",
    "read",
    "replay",
    "resume",
    "write",
]
