"""What the fields of one event must be together: how an event contradicts itself, or the log that it is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from armlet.errors import ArmletError
from armlet.inputs.budget import Budget
from armlet.inputs.outcomes import Outcomes
from armlet.record.faults import explain, shorten
from armlet.record.values import Event

SCHEMA: Final = 3
ACTION_SCHEMA: Final = 4
"""Of logs of actions with features, which have tables of them and name no arms."""
REPLACED: Final = ("policy", "features", "reward_range", "feature_range", "outcomes", "budget", "guards")
"""What a replacement may be of: one of these."""
EVEN: Final = 1e-9
"""By which the sum of probabilities may differ from 1."""


class Shape(NamedTuple):
    """How many values contexts have, and, in a log of actions with features, actions."""

    dim: int
    action_dim: int | None = None

    @classmethod
    def of(cls, about: Mapping[str, Any]) -> Shape:
        """Return the shape that a start has."""
        return cls(about["dim"], about.get("action_dim"))


def of_start(event: Event, _: Shape | None) -> str | None:
    """Return how the fields of a start contradict each other, if they do."""
    return _impossible_start(event) or _impossible_outcomes(event)


def of_decision(event: Event, shape: Shape | None) -> str | None:
    """Return how those of a decision do, if they do."""
    if event["id"][:-17].lstrip("0") != str(event["t"]).lstrip("0"):
        return f"its id is {event['id']}, but its step {event['t']}"
    if shape is not None and event["x"] is not None and len(event["x"]) != shape.dim:
        return f"x has {len(event['x'])} values, but contexts have {shape.dim}"
    return _impossible_choice(event, shape) if "actions" in event else None


def of_replacement(event: Event, _: Shape | None) -> str | None:
    """Return how those of a replacement do, if they do."""
    return _unclear_replacement(event) or _impossible_outcomes(event)


def _impossible_start(event: Event) -> str | None:
    schema = ACTION_SCHEMA if "action_dim" in event else SCHEMA
    if event["schema"] != schema:
        return f"schema is {event['schema']}, but a log with {'actions' if schema > SCHEMA else 'arms'} has {schema}"
    for prefix in ("", "action_"):
        features, dim = event.get(f"{prefix}features"), event.get(f"{prefix}dim", 0)
        if features is not None and (len(features) != dim or len(set(features)) != len(features)):
            names = f"{prefix}features has {len(features)} names, some of them alike"
            return f"{names}, or {prefix}dim, {dim}, is another number"
    if not set(event.get("retired", ())) <= set(event.get("arms", ())):
        return "retired names an arm that is not among arms"
    return None


def _impossible_choice(event: Event, shape: Shape | None) -> str | None:
    """Return why nobody can have chosen that action with that probability, if so."""
    z, eligible, arm = event["z"], None if event["eligible"] is None else set(event["eligible"]), event["arm"]
    if shape is not None and z is not None and len(z) != shape.action_dim:
        return f"z has {len(z)} values, but actions have {shape.action_dim}"
    if eligible is not None and arm not in eligible:
        return f"arm is {arm!r}, which is not among eligible"
    if event["support"] is None:
        n = event["n_actions"] if eligible is None else len(eligible)
        is_even = abs(n * event["propensity"] - 1.0) <= EVEN
        return None if is_even else f"propensity is {event['propensity']}, but one of {n} that are alike has 1/{n}"
    support = dict(event["support"])
    if support.get(arm) != event["propensity"]:
        return f"propensity is {event['propensity']}, but by support {support.get(arm)}"
    if abs(sum(support.values()) - 1.0) > EVEN:
        return f"the probabilities of support add up to {sum(support.values())}"
    outside = None if eligible is None else next((label for label in support if label not in eligible), None)
    return None if outside is None else f"support has {outside!r}, which is not among eligible"


def of_table(event: Event, shape: Shape | None) -> str | None:
    """Return why an event is not a table of actions, whole or by what changed, if so."""
    names = {name for name in ("labels", "Z", "from", "add", "remove") if name in event}
    if names not in ({"labels", "Z"}, {"from", "add", "remove"}):
        return f"it has {' and '.join(sorted(names)) or 'no table'}; give labels and Z, or from, add and remove"
    labels, Z = (event if "Z" in event else event["add"])["labels"], (event if "Z" in event else event["add"])["Z"]
    if len(labels) != len(Z):
        return f"it has {len(labels)} labels, but {len(Z)} rows in Z"
    widths = {*map(len, Z)} | (set() if shape is None or shape.action_dim is None else {shape.action_dim})
    if len(widths) > 1:
        return f"Z has rows of {' and '.join(map(str, sorted(widths)))} values" + (
            "" if shape is None else f", but actions have {shape.action_dim}"
        )
    return None


def _impossible_outcomes(event: Event) -> str | None:
    """Return what is wrong with the outcomes of a bandit or with its budget, if something is."""
    try:
        outcomes = Outcomes.from_dict(event["outcomes"]) if "outcomes" in event else None
        budget = Budget.from_dict(event["budget"]) if event.get("budget") is not None else None
        if budget is not None and event["kind"] == "start":
            budget.check(outcomes)
    except ArmletError as error:
        return explain(error)
    return None


def of_correction(event: Event, _: Shape | None) -> str | None:
    """Return why a correction is not of the outcomes that there were, if so."""
    old, new = event["old_reward"], event["new_reward"]
    if (old.keys() if type(old) is dict else None) == (new.keys() if type(new) is dict else None):
        return None
    return f"old_reward is {shorten(old)} and new_reward {shorten(new)}, which are not of the same outcomes"


def _unclear_replacement(event: Event) -> str | None:
    """Return why it is not clear what is replaced by what, if so."""
    replaced = [name for name in REPLACED if name in event]
    if len(replaced) != 1:
        has = " and ".join(replaced) or "nothing"
        return f"it has {has}; one of {', '.join(REPLACED[:-1])} and {REPLACED[-1]} is replaced"
    names = event.get("features")
    if names is None:
        extra = [name for name in ("fill", "encoder") if name in event]
        return f"it has {extra[0]} without features" if extra else None
    if not names or len(set(names)) != len(names):
        return f"features has {len(names)} names, some of them alike, or none"
    wrong = [name for name in event.get("fill", ()) if name not in names]
    return f"fill has {shorten(wrong[0])}, which is not among features" if wrong else None
