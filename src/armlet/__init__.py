"""Contextual linear bandits in constant time and memory."""

from importlib import import_module
from typing import TYPE_CHECKING

# "X as X" tells type checkers that X is meant for users
from armlet import errors as errors
from armlet import policies as policies
from armlet.bandit import Bandit as Bandit
from armlet.errors import ArmletError as ArmletError
from armlet.kernel import Decision as Decision
from armlet.kernel import Decisions as Decisions
from armlet.kernel import Statistics as Statistics
from armlet.types import Policy as Policy
from armlet.types import __version__ as __version__

if TYPE_CHECKING:  # for type checkers, which cannot follow __getattr__
    from armlet import environments as environments
    from armlet import evaluation as evaluation
    from armlet import log as log
    from armlet import stores as stores
    from armlet import testing as testing
    from armlet import theory as theory
    from armlet.actions.bandit import ActionBandit as ActionBandit
    from armlet.actions.decision import ActionDecision as ActionDecision
    from armlet.actions.table import ActionTable as ActionTable
    from armlet.advice import advise as advise
    from armlet.evaluation.evaluate import evaluate as evaluate
    from armlet.inputs.budget import Budget as Budget
    from armlet.inputs.encoder import Encoder as Encoder
    from armlet.inputs.hashed import HashedFeatures as HashedFeatures
    from armlet.inputs.table import Table as Table
    from armlet.loading import from_bytes as from_bytes
    from armlet.loading import load as load
    from armlet.log import Log as Log
    from armlet.log import audit as audit
    from armlet.log.fitting import fit as fit
    from armlet.policies import *  # noqa: F403
    from armlet.policies.shared import SharedOptimism as SharedOptimism
    from armlet.policies.shared import SharedThompson as SharedThompson
    from armlet.stores import open_store as open_store

_LOADED = (
    *("ArmletError", "Bandit", "Decision", "Decisions", "Policy", "Statistics"),
    *("errors", "policies"),
)
_LAZY = {  # name -> its module, imported on first use so that `import armlet` stays fast
    "ActionBandit": "armlet.actions.bandit",
    "ActionDecision": "armlet.actions.decision",
    "ActionTable": "armlet.actions.table",
    "Budget": "armlet.inputs.budget",
    "Encoder": "armlet.inputs.encoder",
    "HashedFeatures": "armlet.inputs.hashed",
    "Log": "armlet.log",
    "SharedOptimism": "armlet.policies.shared",
    "SharedThompson": "armlet.policies.shared",
    "Table": "armlet.inputs.table",
    "advise": "armlet.advice",
    "audit": "armlet.log",
    "environments": None,
    "evaluate": "armlet.evaluation.evaluate",
    "evaluation": None,
    "fit": "armlet.log.fitting",
    "from_bytes": "armlet.loading",
    "load": "armlet.loading",
    "log": None,
    "open_store": "armlet.stores",
    "stores": None,
    "testing": None,
    "theory": None,
}
_VARIANTS = ("AutoAlgorithm1", "Oracle", "ScheduledEpsilonGreedy")  # not listed here, but by armlet.policies

if not TYPE_CHECKING:  # a checker knows the names from the imports above, and so sees one that is misspelt
    __all__ = [*_LOADED, *_LAZY, *(name for name in policies.POLICIES if name not in _VARIANTS)]

    def __getattr__(name: str) -> object:
        """Import policies and the larger parts on first use: `armlet.LinUCB`, `armlet.theory`."""
        if name in policies.POLICIES:
            return policies.POLICIES[name]
        if name in _LAZY:
            home = _LAZY[name]
            value = getattr(import_module(home), name) if home else import_module(f"armlet.{name}")
            return globals().setdefault(name, value)
        missing, reason = f"module 'armlet' has no attribute {name!r}", ""
        if name[:1].isupper():  # the name of a policy, perhaps; for others plug-ins need not be asked
            try:
                return policies.find_policy(name)
            except errors.UnknownNameError as error:
                reason = f": {error}"
        near = errors.closest(name, __all__)
        raise AttributeError(missing + (f"; did you mean {near!r}?" if near else reason))

    def __dir__() -> list[str]:
        return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
