"""What a saved bandit is: its settings in the header of a model file, its sums as one array."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from armlet.core import files
from armlet.core.arms import check_labels
from armlet.core.disk import Source, Target, origin
from armlet.core.errors import ModelFileError
from armlet.core.settings import Settings, check_reward_range, check_seed
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
    seed: int
    streams: Sequence[int] = ()  # other seeds whose decisions it may learn from: its own before, and merged ones

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


def write(target: Target, model: Model) -> None:
    """Write a model to a path, whole or not at all, or to a binary file object."""
    files.write_model(target, _header(model), model.arrays)


def encode(model: Model) -> bytes:
    """Give the bytes that `write` would write."""
    return files.encode_model(_header(model), model.arrays)


def read(source: Source, policies: Registry, given: Policy | None) -> Model:
    """Read a model, or say what is wrong with the file; `given` is the policy, if the registry has it not."""
    return _checked(origin(source), *files.read_model(source), policies, given)


def decode(data: bytes, policies: Registry, given: Policy | None) -> Model:
    """Read a model from the bytes of its file."""
    return _checked(origin(data), *files.decode_model(data), policies, given)


def _header(model: Model) -> dict[str, files.Json]:
    s = model.settings
    return {
        "armlet": __version__,
        "policy": {"name": type(s.policy).__name__, "settings": _policy_settings(s.policy)},
        "arms": list(model.arms),
        "retired": list(model.retired),
        "dim": s.dim,
        "features": None if s.features is None else list(s.features),
        "objective": s.objective,
        "normalize": s.normalize,
        "reward_range": None if s.reward_range is None else list(s.reward_range),
        "t": model.t,
        "seed": model.seed,
        "streams": list(model.streams),
    }


def _checked(
    name: str, header: dict[str, Any], arrays: dict[str, files.Array], policies: Registry, given: Policy | None
) -> Model:
    try:
        model = _decode(header, arrays, policies, given)
        model.state()
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{name}: the file does not describe a usable bandit: {error}") from error
    return model


def _decode(header: dict[str, Any], arrays: dict[str, files.Array], policies: Registry, given: Policy | None) -> Model:
    names, policy, objective = header["features"], _read_policy(header["policy"], policies, given), header["objective"]
    settings = Settings(
        policy=policy,
        dim=header["dim"],
        features=None if names is None else tuple(names),
        objective=objective,
        normalize=header["normalize"],
        reward_range=check_reward_range(header.get("reward_range"), policy, objective),  # files of 0.1.0 have none
    )
    arms, t = check_labels(header["arms"]), header["t"]
    settings.policy.check(len(arms), settings.dim, t)
    seed, *streams = (_seed(stream) for stream in (header["seed"], *header.get("streams", ())))
    return Model(
        settings=settings, arms=arms, retired=header["retired"], t=t, arrays=arrays, seed=seed, streams=streams
    )


def _seed(saved: Any) -> int:
    if saved is None:
        raise ValueError("there is no seed")
    return check_seed(saved)


def _read_policy(saved: dict[str, Any], policies: Registry, given: Policy | None) -> Policy:
    name, settings = saved["name"], saved["settings"]
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
