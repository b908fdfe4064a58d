"""What a saved bandit is: its settings in the header of a model file, its sums as one array."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from armlet.core import files
from armlet.core.arms import check_labels
from armlet.core.errors import ModelFileError
from armlet.core.settings import Settings, check_seed
from armlet.core.types import Arm, Policy, State
from armlet.core.version import __version__

Registry: TypeAlias = Mapping[str, Callable[..., Policy]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Everything that a bandit needs to go on where it stopped."""

    settings: Settings
    arms: list[Arm]
    retired: list[Arm]
    t: int
    arrays: dict[str, files.Array]  # the state's

    def __post_init__(self) -> None:
        if type(self.t) is not int or not 0 <= self.t < 2**63:
            raise ValueError(f"the clock is {self.t!r}, not a number of decisions")
        if len(set(self.retired)) != len(self.retired) or not set(self.retired) < set(self.arms):
            raise ValueError(f"the retired arms are {self.retired!r} of {self.arms!r}, which leaves none to play")

    def state(self) -> State:
        """Build the state from its arrays."""
        state = self.settings.policy.init(len(self.arms), self.settings.dim)
        wanted = set(state.arrays())
        if set(self.arrays) != wanted:
            raise ValueError(f"it holds {sorted(self.arrays)}, not {sorted(wanted)}")
        state.restore_arrays(self.arrays)
        return state


def write(path: str | os.PathLike[str], model: Model) -> None:
    """Write a model to a file, whole or not at all."""
    s = model.settings
    header: dict[str, files.Json] = {
        "armlet": __version__,
        "policy": {"name": type(s.policy).__name__, "settings": _policy_settings(s.policy)},
        "arms": list(model.arms),
        "retired": list(model.retired),
        "dim": s.dim,
        "features": None if s.features is None else list(s.features),
        "objective": s.objective,
        "normalize": s.normalize,
        "t": model.t,
        "seed": s.seed,
    }
    files.write_model(path, header, model.arrays)


def read(path: str | os.PathLike[str], policies: Registry, given: Policy | None) -> Model:
    """Read a model, or say what is wrong with the file; `given` is the policy, if the registry has it not."""
    header, arrays = files.read_model(path)
    try:
        model = _decode(header, arrays, policies, given)
        model.state()
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{os.fspath(path)}: the file does not describe a usable bandit: {error}") from error
    return model


def _decode(header: dict[str, Any], arrays: dict[str, files.Array], policies: Registry, given: Policy | None) -> Model:
    names, seed = header["features"], header["seed"]
    if seed is None:
        raise ValueError("there is no seed")
    settings = Settings(
        policy=_read_policy(header["policy"], policies, given),
        dim=header["dim"],
        features=None if names is None else tuple(names),
        objective=header["objective"],
        normalize=header["normalize"],
        seed=check_seed(seed),
    )
    arms, t = check_labels(header["arms"]), header["t"]
    settings.policy.check(len(arms), settings.dim, t)
    return Model(settings=settings, arms=arms, retired=header["retired"], t=t, arrays=arrays)


def _read_policy(saved: dict[str, Any], policies: Registry, given: Policy | None) -> Policy:
    name, settings = saved["name"], saved["settings"]
    if (now := getattr(policies, "renamed", {}).get(name)) is not None:
        raise ValueError(f"its policy is {name}, which is called {now} now: start a new bandit with that")
    if given is None and name not in policies:
        raise ValueError(f"its policy is {name}, which is not Armlet's; pass it as load(path, policy={name}(...))")
    policy = policies[name](**settings) if given is None else given
    has = _policy_settings(policy)
    if type(policy).__name__ != name or {**has, **settings} != has:  # a setting newer than the file has its default
        raise ValueError(f"it was saved with {name} and settings {settings}, not with {policy}")
    return policy


def _policy_settings(policy: Policy) -> dict[str, Any]:
    if not dataclasses.is_dataclass(policy):
        raise TypeError(f"policy is a {type(policy).__name__}, not a dataclass, so its settings cannot be saved")
    return {field.name: _plain(getattr(policy, field.name)) for field in dataclasses.fields(policy)}


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
