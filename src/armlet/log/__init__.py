"""What happened: the log of a bandit, written, read, replayed and audited, and logs of other origin."""

from armlet.log.auditing import Audit as Audit
from armlet.log.auditing import Mismatch as Mismatch
from armlet.log.auditing import audit as audit
from armlet.log.exporting import write as write
from armlet.log.imports.columns import from_table as from_table
from armlet.log.imports.dataset import from_dataset as from_dataset
from armlet.log.imports.dsjson import from_dsjson as from_dsjson
from armlet.log.imports.obp import from_obp as from_obp
from armlet.log.parquet.compacting import compact as compact
from armlet.log.reading import read as read
from armlet.log.recording import Log as Log
from armlet.log.replaying import replay as replay
from armlet.log.resuming import resume as resume
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
    "from_dsjson",
    "from_obp",
    "from_table",
    "read",
    "replay",
    "resume",
    "write",
]
