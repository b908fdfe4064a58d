"""What a saved bandit is: its settings in the header of a model file, its sums as one array."""

from __future__ import annotations

import dataclasses
import json
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from armlet import disk
from armlet.disk import Json, Source, Target, origin
from armlet.errors import ArmletError, InvalidTypeError, InvalidValueError, ModelFileError, UnknownNameError
from armlet.inputs.columns import check_label, check_labels
from armlet.inputs.ranges import check_feature_range
from armlet.inputs.settings import NEWER, Settings, check_epoch, check_reward_range, check_seed, epoch_json, units_of
from armlet.kernel import Engine, outcome_shapes, sum_shapes
from armlet.types import Arm, Array, Bool, EpochUnderWay, Float64, Policy, Shapes, State, __version__

if TYPE_CHECKING:
    from armlet.inputs.budget import Budget
    from armlet.inputs.encoder import Encoder
    from armlet.inputs.outcomes import Outcomes

PolicyT = TypeVar("PolicyT")
Find: TypeAlias = Callable[[str], type[Policy]]
"""Returns a policy's class by its name, or raises UnknownNameError."""

# what a header that says anything at all can make settings, policies and states raise
REFUSALS = (ArithmeticError, ArmletError, AttributeError, LookupError, MemoryError, TypeError, ValueError)

# what two bandits may differ in and still be the same: whose coins they toss, who wrote them down, what inference knows
UNHASHED = ("armlet", "seed", "streams", "fixed_rows")

MET = "epoch_"  # before the names of the arrays of the state that units meet

# arrays that are left out of the digest while they are zero: a bandit that waits for no reward, and none of whose arms
# came or left, knows sums alone
UNHASHED_ZEROS = ("under_way", "turnover")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BanditModel:
    """Everything that a bandit needs to go on where it stopped."""

    settings: Settings
    arms: list[Arm]
    retired: list[Arm]
    t: int
    seed: int
    streams: Sequence[int]  # other seeds whose decisions it may learn from: its own before, and merged ones
    state: State  # nobody else's: `write` checks it by restoring it to what it is
    fixed_rows: float = 0.0  # weight of the rows that no reward chose
    epoch: EpochUnderWay | None = None
    spending: Float64 | None = None  # of a budget: what its pacer keeps


def write(target: Target, model: BanditModel) -> None:
    """Write a model to a path, whole or not at all, or to a binary file object."""
    disk.write_model(target, *_parts(model))


def encode(model: BanditModel) -> bytes:
    """Return the bytes that `write` would write."""
    return disk.encode_model(*_parts(model))


def read(source: Source, find: Find, given: Policy | None) -> BanditModel:
    """Read a model, or say what is wrong with the file; `given` is the policy, if the registry has it not."""
    return restore(origin(source), *disk.read_model(source), find, given)


def decode(data: bytes, find: Find, given: Policy | None) -> BanditModel:
    """Read a model from the bytes of its file."""
    return restore(origin(data), *disk.decode_model(data), find, given)


def digest(model: BanditModel) -> str:
    """Return the SHA-256 of a model, but for its seeds and the version that wrote it."""
    header = _header(model)
    arrays = {name: array for name, array in _arrays(model).items() if name not in UNHASHED_ZEROS or array.any()}
    return disk.digest({name: header[name] for name in header if name not in UNHASHED}, arrays)


def describe(model: BanditModel) -> dict[str, Json]:
    """Describe a bandit in plain JSON types, without its seed and its arrays."""
    header = _header(model)
    fields = {name: header[name] for name in header if name not in UNHASHED}
    return {"version": __version__, **fields, "units": units_of(model.settings.policy), "digest": digest(model)}


def _header(model: BanditModel) -> dict[str, Json]:
    s = model.settings
    optional: dict[str, Json] = {} if s.encoder is None else {"encoder": s.encoder.to_dict()}
    optional |= {"fixed_rows": model.fixed_rows} if model.fixed_rows else {}
    if s.epoch is not None:
        optional["epoch"] = epoch_json(s.epoch)
    if model.epoch is not None:
        optional["epoch_start"] = list(model.epoch[:2])
        optional |= {"epoch_price": model.epoch[3]} if model.epoch[3] else {}
    optional |= {} if s.outcomes is None else {"outcomes": s.outcomes.to_dict()}
    optional |= {} if s.feature_range is None else {"feature_range": s.feature_range.to_dict()}
    if s.budget is not None and model.spending is not None:
        optional |= {"budget": s.budget.to_dict(), "spending": model.spending.tolist()}
    return optional | {
        "armlet": __version__,
        "policy": policy_header(s.policy),
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


def _parts(model: BanditModel) -> tuple[dict[str, Json], dict[str, disk.Array]]:
    """Return header and arrays, unless `read` would refuse them."""
    header, policy = _header(model), model.settings.policy
    try:
        fields = _read_header(header, policy)
        for state in _states(model):
            arrays = state.arrays()
            if hasattr(policy, "shapes"):
                check_shapes(
                    arrays, expected(policy, len(fields.arms), fields.settings.dim, _n_outcomes(fields.settings))
                )
            state.restore_arrays(arrays)
    except REFUSALS as error:
        raise InvalidValueError(
            f"this bandit cannot be saved, since no file of it could be loaded: {why(error)}"
        ) from error
    return header, _arrays(model)


def _states(model: BanditModel) -> list[State]:
    return [model.state] if model.epoch is None else [model.state, model.epoch[2]]


def _arrays(model: BanditModel) -> dict[str, Array]:
    """Return the arrays of the state, and those of the state that units meet, by names of their own."""
    met = {} if model.epoch is None else model.epoch[2].arrays()
    return {**model.state.arrays(), **{MET + name: array for name, array in met.items()}}


def restore(
    name: str, header: dict[str, Any], arrays: dict[str, Array], find: Find, given: Policy | None
) -> BanditModel:
    """Make a model of the parts of a file, or say what is wrong with them."""
    if header.get("kind") == "actions":
        raise ModelFileError(f"{name}: the file holds an ActionBandit, not a Bandit; read it with armlet.load")
    try:
        policy = read_policy(header["policy"], find, given)
        fields = _read_header(header, policy)
        n_arms, dim = len(fields.arms), fields.settings.dim
        own = {name: array for name, array in arrays.items() if not name.startswith(MET)}
        met = {name.removeprefix(MET): array for name, array in arrays.items() if name.startswith(MET)}
        # before `check` and `init`, which make whatever the header says; a policy of others need not give its shapes
        if given is None or hasattr(policy, "shapes"):
            for each in (own, met) if met else (own,):
                check_shapes(each, expected(policy, n_arms, dim, _n_outcomes(fields.settings)))
        policy.check(n_arms, dim, fields.t)
        state = _restored(fields.settings, n_arms, own)
        policy.rule()  # which the bandit asks for next
        _try(policy, state, fields)
        epoch = _epoch_under_way(header, policy, fields, met)
    except REFUSALS as error:
        raise ModelFileError(f"{name}: the file does not describe a usable bandit: {why(error)}") from error
    return BanditModel(**fields._asdict(), state=state, epoch=epoch)


def _restored(settings: Settings, n_arms: int, arrays: dict[str, Array]) -> State:
    state = settings.init(n_arms)
    check_shapes(arrays, {name: (None,) * array.ndim for name, array in state.arrays().items()})
    state.restore_arrays(arrays)
    return state


def _epoch_under_way(
    header: dict[str, Any], policy: Policy, fields: _Header, arrays: dict[str, Array]
) -> EpochUnderWay | None:
    if "epoch_start" not in header and not arrays:
        return None
    numbers = listed(header, "epoch_start")
    if [type(each) for each in numbers] != [int, int] or not (0 <= numbers[0] < 2**63 and 1 <= numbers[1] <= fields.t):
        raise InvalidValueError(f"epoch_start is {numbers!r}, not the number of an epoch and a step up to {fields.t}")
    state = _restored(fields.settings, len(fields.arms), arrays)
    _try(policy, state, fields)
    price = header.get("epoch_price", 0.0)
    if type(price) is not float or not 0.0 <= price < np.inf or (price and fields.settings.budget is None):
        raise InvalidValueError(f"epoch_price is {price!r}, not the price of a budget")
    return numbers[0], numbers[1], state, price


def _try(policy: Policy, state: State, fields: _Header) -> None:
    """Require probabilities where nothing is unusual: arrays may be of the right shapes and yet those of no rows."""
    retired = set(fields.retired)
    eligible = np.array([arm not in retired for arm in fields.arms], dtype=np.bool_)
    for value in (0.0, 0.5):
        x = np.full(fields.settings.dim, value)
        chances = _chances(policy, state.copy(), min(fields.t + 1, 2**63 - 1), x, eligible)
        if not (np.shape(chances) == eligible.shape and np.abs(np.sum(chances) - 1.0) < 1e-6 and np.min(chances) >= 0):
            raise InvalidValueError(f"its arrays lead to the probabilities {reprlib.repr(chances)}")


def _chances(policy: Policy, state: State, t: int, x: Float64, eligible: Bool) -> Float64:
    """Ask the kernel where it plays the policy by itself; a subclass of others may have a law of its own."""
    rule = policy.rule() if type(policy).__module__.startswith("armlet.") else None
    if rule is None:
        with np.errstate(all="ignore"):
            return policy.probabilities(state, t, x, eligible)
    engine = Engine(policy, rule, state, list(range(len(eligible))), 0, np.asarray)
    chances: Float64 = engine._probabilities(x[None], t, eligible)[0]
    return chances


class _Header(NamedTuple):
    """The header of a file, read and checked."""

    settings: Settings
    arms: list[Arm]
    retired: list[Arm]
    t: int
    seed: int
    streams: list[int]
    fixed_rows: float
    spending: Float64 | None


def _read_header(header: dict[str, Any], policy: Policy) -> _Header:
    objective = header["objective"]
    names = None if header["features"] is None else tuple(listed(header, "features"))
    settings = Settings(
        policy=policy,
        dim=header["dim"],
        features=names,
        objective=objective,
        normalize=header["normalize"],
        reward_range=check_reward_range(header["reward_range"], policy, objective),
        encoder=_encoder(header.get("encoder")),
        epoch=check_epoch(header.get("epoch")),
        outcomes=_outcomes(header.get("outcomes")),
        budget=_budget(header.get("budget")),
        feature_range=check_feature_range(header.get("feature_range"), names),
    )
    arms = check_labels(listed(header, "arms"))
    if settings.outcomes is not None:
        settings.outcomes.check_arms(arms)
    retired = [check_label(arm) for arm in listed(header, "retired")]
    if len(set(retired)) != len(retired) or not set(retired) < set(arms):
        raise InvalidValueError(
            f"the retired arms are {reprlib.repr(retired)}, which are not some but not all of its arms"
        )
    if type(header["t"]) is not int or not 0 <= header["t"] < 2**63:
        raise InvalidValueError(f"the clock is {header['t']!r}, not a number of decisions")
    seed, *streams = (read_seed(stream) for stream in (header["seed"], *listed(header, "streams")))
    fixed_rows = header.get("fixed_rows", 0.0)
    if type(fixed_rows) is not float or not 0.0 <= fixed_rows < np.inf:
        raise InvalidValueError(f"fixed_rows is {fixed_rows!r}, not a weight of rows")
    return _Header(settings, arms, retired, header["t"], seed, streams, fixed_rows, _spending(header))


def _encoder(saved: Any) -> Encoder | None:
    if saved is None:
        return None
    from armlet.inputs.encoder import Encoder  # not before there is one: most models have none

    return Encoder.from_dict(saved)


def _outcomes(saved: Any) -> Outcomes | None:
    if saved is None:
        return None
    from armlet.inputs.outcomes import Outcomes  # not before there are any: most models have one reward

    return Outcomes.from_dict(saved)


def _budget(saved: Any) -> Budget | None:
    if saved is None:
        return None
    from armlet.inputs.budget import Budget  # not before there is one: most models have none

    return Budget.from_dict(saved)


def _spending(header: dict[str, Any]) -> Float64 | None:
    if header.get("budget") is None:
        return None
    values = np.array(listed(header, "spending"), dtype=np.float64)
    if values.shape != (10,) or not np.isfinite(values).all() or (values[[0, 2, 4, 6, 7, 9]] < 0.0).any():
        raise InvalidValueError(f"the spending of its budget is {reprlib.repr(header['spending'])}, which it cannot be")
    return values


def read_seed(saved: Any) -> int:
    """Return a seed of a header."""
    if saved is None:
        raise InvalidValueError("there is no seed")
    return check_seed(saved)


def listed(header: dict[str, Any], name: str) -> list[Any]:
    """Return a list of a header."""
    value = header[name]
    if not isinstance(value, list):
        raise InvalidTypeError(f"{name} is {reprlib.repr(value)}, not a list")
    return value


def why(error: Exception) -> str:
    """Return what an error says."""
    return str(error) or type(error).__name__  # a lack of memory comes without words


def read_policy(saved: dict[str, Any], find: Callable[[str], type[PolicyT]], given: PolicyT | None) -> PolicyT:
    """Return the policy of a header; `given`, if the registry has it not."""
    name, settings = saved["name"], saved["settings"]
    try:
        kind = find(name) if given is None else type(given)
    except UnknownNameError as error:
        raise InvalidValueError(f"{error}; or pass your own: load(path, policy={name}(...))") from None
    if not isinstance(settings, dict):
        raise InvalidTypeError(f"the settings of its policy are {reprlib.repr(settings)}, not a mapping")
    policy = kind(**settings) if given is None else given
    has = _policy_settings(policy)
    if type(policy).__name__ != name or {**has, **settings} != has:  # a setting newer than the file has its default
        raise InvalidValueError(f"it was saved with {name} and settings {settings}, not with {policy}")
    return policy


def policy_header(policy: object) -> dict[str, Json]:
    """Return the name of a policy and its settings, as plain JSON types."""
    return {"name": type(policy).__name__, "settings": _policy_settings(policy)}


def _policy_settings(policy: object) -> dict[str, Any]:
    if not dataclasses.is_dataclass(policy):
        raise InvalidTypeError(f"policy is a {type(policy).__name__}, not a dataclass, so its settings cannot be saved")
    settings = {field.name: _plain(getattr(policy, field.name)) for field in dataclasses.fields(policy)}
    settings = {name: value for name, value in settings.items() if not (name in NEWER and value is None)}
    for name, value in settings.items():
        if not _is_json(value):
            raise InvalidTypeError(f"policy has {name}={reprlib.repr(value)}, which is not JSON and cannot be saved")
    return settings


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value


def _is_json(value: object) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


# ---- the arrays of a state: a file is compared with their shapes before anything is allocated, so that a few hundred
# bytes that claim a large problem cost nothing; a policy whose state is not plain `Statistics` has a method `shapes`


def expected(policy: Policy, n_arms: int, dim: int, n_outcomes: int = 0) -> Shapes:
    """Return the shapes of a policy's state: those of `Statistics` unless it says otherwise.

    Examples
    --------
    >>> import armlet
    >>> expected(armlet.Uniform(), 2, 10**9)
    {'records': (2, 500000001500000003)}
    """
    units = units_of(policy)
    shapes: Shapes = policy.shapes(n_arms, dim) if hasattr(policy, "shapes") else sum_shapes(n_arms, dim, units=units)
    if n_outcomes == 0:
        return shapes
    return {**shapes, **outcome_shapes(n_arms, dim, n_outcomes, units=units, is_lazy="solved" in shapes)}


def _n_outcomes(settings: Settings) -> int:
    return 0 if settings.outcomes is None else len(settings.outcomes.learned)


def check_shapes(arrays: Mapping[str, Array], wanted: Shapes) -> None:
    """Refuse arrays of other names or shapes than those that a state would have.

    Examples
    --------
    >>> check_shapes({"records": np.zeros((2, 8))}, sum_shapes(2, 3))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: its array 'records' has shape (2, 8) where its arms, dim and settings ...
    """
    if set(arrays) != set(wanted):
        raise InvalidValueError(f"it holds the arrays {sorted(arrays)} where its policy keeps {sorted(wanted)}")
    for name, shape in wanted.items():
        actual = arrays[name].shape
        if len(actual) != len(shape) or any(size not in (None, has) for has, size in zip(actual, shape, strict=True)):
            sizes = str(shape).replace("None", "any")
            raise InvalidValueError(
                f"its array {name!r} has shape {actual} where its arms, dim and settings need {sizes}"
            )
