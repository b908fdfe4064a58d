"""Contextual linear bandits in constant time and memory."""

from importlib import import_module
from typing import TYPE_CHECKING

# "X as X" tells type checkers that X is meant for users
from armlet import policies as policies
from armlet.bandit import Bandit as Bandit
from armlet.bandit import from_bytes as from_bytes
from armlet.bandit import load as load
from armlet.errors import ArmletError as ArmletError
from armlet.errors import BusyError as BusyError
from armlet.errors import DecisionError as DecisionError
from armlet.errors import EvaluationError as EvaluationError
from armlet.errors import EventError as EventError
from armlet.errors import LogError as LogError
from armlet.errors import MergeError as MergeError
from armlet.errors import ModelFileError as ModelFileError
from armlet.errors import NotFittedError as NotFittedError
from armlet.errors import PolicyError as PolicyError
from armlet.errors import StoreError as StoreError
from armlet.errors import TableError as TableError
from armlet.errors import UnknownNameError
from armlet.kernel import Decision as Decision
from armlet.kernel import Decisions as Decisions
from armlet.kernel import Statistics as Statistics
from armlet.types import Interaction as Interaction
from armlet.types import Policy as Policy
from armlet.types import __version__ as __version__

if TYPE_CHECKING:
    from armlet import environments as environments
    from armlet import evaluation as evaluation
    from armlet import log as log
    from armlet import stores as stores
    from armlet import testing as testing
    from armlet import theory as theory
    from armlet.advice import advise as advise
    from armlet.evaluation.evaluate import evaluate as evaluate
    from armlet.inputs.encoder import Encoder as Encoder
    from armlet.log import Log as Log
    from armlet.log import audit as audit
    from armlet.log.fitting import fit_parquet as fit_parquet
    from armlet.policies import *  # noqa: F403
    from armlet.stores import open_store as open_store

_MODULES = ("environments", "evaluation", "log", "stores", "testing", "theory")
_ELSEWHERE = {
    "Encoder": "armlet.inputs.encoder",
    "Log": "armlet.log",
    "advise": "armlet.advice",
    "audit": "armlet.log",
    "evaluate": "armlet.evaluation.evaluate",
    "fit_parquet": "armlet.log.fitting",
    "open_store": "armlet.stores",
}

if not TYPE_CHECKING:  # a checker knows the names from the imports above, and so sees one that is misspelt
    __all__ = [
        "ArmletError",
        "Bandit",
        "BusyError",
        "Decision",
        "DecisionError",
        "Decisions",
        "Encoder",
        "EvaluationError",
        "EventError",
        "Interaction",
        "Log",
        "LogError",
        "MergeError",
        "ModelFileError",
        "NotFittedError",
        "Policy",
        "PolicyError",
        "Statistics",
        "StoreError",
        "TableError",
        "__version__",
        "advise",
        "audit",
        "evaluate",
        "fit_parquet",
        "from_bytes",
        "load",
        "open_store",
        "policies",
        *_MODULES,
        *policies.POLICIES,
    ]

    def __getattr__(name: str) -> object:
        """Find the other policies, the advisor, logs and the larger parts when they are asked for: `armlet.LinUCB`."""
        if name in policies.POLICIES:
            return policies.POLICIES[name]
        if name in _ELSEWHERE:
            return globals().setdefault(name, getattr(import_module(_ELSEWHERE[name]), name))  # asked for once
        if name in _MODULES:
            return import_module(f"armlet.{name}")
        lacking = f"module 'armlet' has no attribute {name!r}"
        reason = ""
        if name[:1].isupper():  # the name of a policy, perhaps; for others plug-ins need not be asked
            try:
                return policies.find_policy(name)
            except UnknownNameError as error:
                reason = f": {error}"
        from armlet.errors import closest  # only an error needs it

        near = closest(name, __all__)
        raise AttributeError(lacking + (f"; did you mean {near!r}?" if near else reason))

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
