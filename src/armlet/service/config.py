"""The settings of a server: what `armlet serve` reads, as values that were checked once and never change.

`settings.py` reads them from a file and from the environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from datetime import UTC, datetime
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from armlet.cast.control import Control, check_own
from armlet.errors import InvalidValueError, choices
from armlet.inputs.budget import Budget
from armlet.inputs.codes import CONSTANT, Constant, Flags, Number
from armlet.inputs.columns import check_label, check_labels, check_text, listed
from armlet.inputs.hashed import HashedFeatures
from armlet.inputs.options import forms_of
from armlet.inputs.settings import (
    Check,
    Range,
    chance,
    check_epoch,
    check_seed,
    ends,
    number,
    one_of,
    optional,
    settle,
    whole,
)
from armlet.policies import find_policy
from armlet.policies.shared import PairPolicy
from armlet.service.keys import SCOPES, Grant, Keyring, Scope, is_loopback
from armlet.stores.spec import LoopSpec, OnChange
from armlet.types import Arm, Policy

if TYPE_CHECKING:
    from armlet.inputs.encoder import Encoder

    AnyEncoder: TypeAlias = Encoder | HashedFeatures

KIB: Final = 1 << 10
MIB: Final = 1 << 20
LONGEST: Final = 86_400.0  # seconds of any wait
HEX: Final = 64  # digits of a SHA-256
Format: TypeAlias = Literal["text", "json"]
Level: TypeAlias = Literal["debug", "info", "warning", "error"]


def seconds(least: float = 0.001) -> Check:
    """Require seconds."""
    return number(least, LONGEST, fix=f"give seconds, from {least:g} to {LONGEST:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a client may take of the server.

    Parameters
    ----------
    body, batch_body, headers
        Bytes of the body of a request, of one with a batch, and of the line and headers before it.
    header_seconds, body_seconds, idle_seconds, write_seconds
        How long a client may take to send its headers, to send its body, to send nothing, and to read an answer.
    connections, streams
        How many may be open at once; of these, how many may be streams of events.
    queue, deadline
        Calls that may wait for the store, and seconds that one may take, before they are answered with a 503.
    batch
        Items of a batch.
    threads
        For what is not a decision or a reward: statistics, changes, models.
    notice_seconds, drain_seconds
        Between /readyz answering 503 and the server taking no more requests when it is asked to stop, for proxies that
        ask; and then, for pending requests.

    Examples
    --------
    >>> Limits(body=0)
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: body is 0; give a whole number of at least 1
    """

    body: int = 256 * KIB
    batch_body: int = 8 * MIB
    headers: int = 16 * KIB
    header_seconds: float = 10.0
    body_seconds: float = 10.0
    idle_seconds: float = 60.0
    write_seconds: float = 30.0
    connections: int = 2_000
    streams: int = 100
    queue: int = 4_096
    deadline: float = 2.0
    batch: int = 10_000
    threads: int = 4
    notice_seconds: float = 0.0
    drain_seconds: float = 10.0

    def __post_init__(self) -> None:
        most = {"batch": 10_000, "threads": 64}
        for each in fields(self):
            if isinstance(each.default, float):
                settle(self, **{each.name: seconds(0.0 if each.name == "notice_seconds" else 0.001)})
            else:
                settle(self, **{each.name: whole(1, most.get(each.name, 1 << 40))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Where to listen: at an address, or at a Unix socket, which is then the only one."""

    host: str = "127.0.0.1"
    port: int = 8080  # 0 for any that is free
    socket: str | None = None

    def __post_init__(self) -> None:
        settle(self, port=whole(0, 65_535), host=text("127.0.0.1"), socket=optional(text("/run/armlet.sock")))

    @property
    def is_local(self) -> bool:
        """Whether other machines cannot reach it."""
        return self.socket is not None or is_loopback(self.host)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """What the server writes about itself, to standard error; never contexts or keys."""

    format: Format = "text"
    level: Level = "info"
    access: bool = False  # one line a request

    def __post_init__(self) -> None:
        settle(self, format=one_of(*get_args(Format)), level=one_of(*get_args(Level)), access=switch)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalizerConfig:
    """Which loops answer the routes of Azure Personalizer, and how.

    Parameters
    ----------
    loop
        The one of `/personalizer`; the only one of the store if left out. `/v1/loops/NAME/personalizer` is any other.
    apprentice
        Loops in apprentice mode: the first action is played, and what the policy would have played is kept.
    """

    loop: str | None = None
    apprentice: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        settle(self, loop=optional(check_text), apprentice=texts)

    def faults(self, loops: Mapping[str, bool]) -> Iterator[str]:
        """Return what is wrong with the loops that it names; `loops` says which there are, and whether for actions.

        Examples
        --------
        >>> list(PersonalizerConfig(loop="hmoe").faults({"home": True}))
        ["personalizer names loop 'hmoe', which is not there; did you mean 'home'?"]
        """
        named = self.apprentice if self.loop is None else (self.loop, *self.apprentice)
        for name in dict.fromkeys(named):
            if name not in loops:
                yield f"personalizer names loop {name!r}, which is not there; {choices(name, loops)}"
            elif not loops[name]:
                yield f"personalizer names loop {name!r}, which has arms; name one that was made with action_features"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlConfig:
    """An arm, or a policy, that plays a fixed share of decisions, to compare with."""

    arm: Arm | None = None
    policy: str | None = None
    policy_settings: Mapping[str, Any] = field(default_factory=dict)
    share: float = 0.1

    def __post_init__(self) -> None:
        settle(self, share=chance(fix="give a share between 0 and 1, such as 0.1"))
        if self.arm is not None:
            settle(self, arm=_arm)

    @property
    def control(self) -> Control:
        """The control that it describes."""
        policy = make_policy(self.policy, self.policy_settings)
        return Control(arm=self.arm, policy=None if policy is None else check_own("control", policy), share=self.share)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyConfig:
    """A key, by its hash.

    Examples
    --------
    >>> KeyConfig(name="web", sha256="ab" * 32, scopes=("decide", "rewards"))
    Traceback (most recent call last):
    armlet.errors.InvalidValueError: scopes has 'rewards'; did you mean 'reward'?
    """

    name: str
    sha256: str
    scopes: tuple[Scope, ...]
    loops: tuple[str, ...] | None = None  # None: all of them
    propensity: bool = True
    expires: datetime | None = None

    def __post_init__(self) -> None:
        settle(self, name=check_text, sha256=_hash, scopes=_scopes, propensity=switch, expires=optional(_moment))
        if self.loops is not None:
            settle(self, loops=texts)

    @property
    def grant(self) -> Grant:
        """What it allows."""
        return Grant(
            name=self.name,
            scopes=frozenset(self.scopes),
            loops=None if self.loops is None else frozenset(self.loops),
            propensity=self.propensity,
            expires=None if self.expires is None else self.expires.timestamp(),
        )


_EMPTY: Final = ("arms", "features", "categories", "action_features", "action_categories")  # if they are not said


def _fields_of_loops() -> Iterator[tuple[str, Any, Any]]:
    """Return fields with which a table says the options of a loop; what it does not say is None, or empty."""
    for name, form in forms_of(LoopSpec, but=("name", "on_change")).items():
        if name.endswith("categories"):
            yield name, form.type, field(default_factory=dict)
        else:
            yield name, form.type | None, field(default=() if name in _EMPTY else None, repr=name != "seed")


_Said: Any = make_dataclass("_Said", [("name", str), *_fields_of_loops()], frozen=True, kw_only=True)


@dataclass(frozen=True, kw_only=True)
class LoopConfig(_Said):  # type: ignore[misc]  # its fields are those of a LoopSpec, as plain values say them
    """A loop that the server makes or opens: the options of `armlet.stores.Store.loop`, as plain values.

    A loop that is there keeps what is left out. `on_change` says what to do if it was made otherwise than is said:
    "refuse" to start, or "apply" the change.

    Examples
    --------
    >>> loop = LoopConfig(name="home", arms=("sale", "new"), features=("age",), categories={"country": ("fr", "de")})
    >>> loop.spec.encoder.features
    ('age', 'country=de', 'country=fr', 'country=other')
    >>> LoopConfig(name="films", features=("age",), action_features=("year",)).has_actions
    True
    """

    on_change: OnChange = "refuse"

    def __post_init__(self) -> None:
        settle(
            self,
            name=check_text,
            arms=lambda _, value: tuple(check_labels(cast("tuple[Arm, ...]", value))) if value else (),
            features=texts,
            categories=_categories,
            policy=_unless_none(check_text),
            dim=optional(whole(0)),
            action_features=texts,
            action_categories=_categories,
            action_dim=optional(whole()),
            reward_range=_range,
            seed=lambda _, value: None if value is None else check_seed(cast("int", value)),
            epoch=lambda _, value: check_epoch(value),
            known=lambda _, value: None if value is None else read_known(value, self.arms),
            control=lambda _, value: ControlConfig(**value) if isinstance(value, Mapping) else value,
        )
        for of in ("", "action_"):
            _check_side(of, vars(self))
        if not self.arms and not self.has_actions:
            raise InvalidValueError("arms is missing; give it, or action_features for actions with features")
        arm = None if self.control is None else self.control.arm
        if arm is not None and arm not in self.arms:
            raise InvalidValueError(f"control.arm is {arm!r}; {choices(str(arm), map(str, self.arms))}")
        self.spec.cast()  # refuses what the store would refuse

    @property
    def has_actions(self) -> bool:
        """Whether its actions come with each decision, and have features."""
        return bool(self.action_features or self.action_categories or self.action_hashed or self.action_dim)

    @property
    def spec(self) -> LoopSpec:
        """The loop as the store takes it."""
        said = {
            name: value for name, value in vars(self).items() if value is not None and (value or name not in _EMPTY)
        }
        return LoopSpec(**read_plain(said, self.arms))


def _check_side(of: str, said: Mapping[str, Any]) -> None:
    """Refuse features of contexts, or of actions, that are said in two ways."""
    has_names = bool(said.get(f"{of}features") or said.get(f"{of}categories"))
    hashed, dim = said.get(f"{of}hashed"), said.get(f"{of}dim")
    if hashed is not None and has_names:
        raise InvalidValueError(
            f"{of}hashed is {hashed}, which takes any names, but {of}features are named; leave one out"
        )
    if dim is not None and (has_names or hashed is not None):
        raise InvalidValueError(f"{of}dim is {dim}, but features have names; leave {of}dim out")


def read_plain(said: Mapping[str, Any], arms: Iterable[Arm] = ()) -> dict[str, Any]:
    """Return the options of a loop, or of a change of one, that plain values say; `arms` are those that it has then.

    Examples
    --------
    >>> read_plain({"policy": "LinUCB", "policy_settings": {"alpha": 0.5}, "features": ["age"], "hashed": None})
    {'features': ['age'], 'policy': LinUCB(alpha=0.5, ...)}
    """
    options = {name: value for name, value in said.items() if name not in _UNLIKE}
    policy = make_policy(said.get("policy"), said.get("policy_settings") or {})
    if policy is not None:
        options["policy"] = policy
    for of in ("", "action_"):
        names = said.get(f"{of}features") or ()
        encoder = make_encoder(names, said.get(f"{of}categories") or {}, said.get(f"{of}hashed"))
        if encoder is not None:
            options.pop(f"{of}features", None)
            options[f"{of}encoder"] = encoder
    if isinstance(control := said.get("control"), Mapping | ControlConfig):
        config = control if isinstance(control, ControlConfig) else ControlConfig(**control)
        options["control"] = config.control
    if said.keys() >= {"shadow", "shadows"}:
        raise InvalidValueError("shadow and shadows are given; give one shadow, or several by name")
    if isinstance(shadow := said.get("shadow"), Mapping):
        options["shadow"] = _policy_of(shadow)
    if "shadows" in said:
        shadows = said["shadows"]
        options["shadow"] = None if shadows is None else {name: _policy_of(each) for name, each in shadows.items()}
    if isinstance(budget := said.get("budget"), Mapping):
        options["budget"] = Budget(**budget)
    if said.get("known") is not None:
        options["known"] = read_known(said["known"], arms)
    return options


def _policy_of(said: Mapping[str, Any]) -> Policy | PairPolicy | None:
    return make_policy(said.get("policy"), said.get("policy_settings") or {})


_UNLIKE: Final = ("policy", "policy_settings", "shadows", "categories", "hashed", "action_categories", "action_hashed")
"""What has no option of its name and type."""


def read_known(known: object, arms: Iterable[Arm]) -> Mapping[str, Mapping[Arm, float]]:
    """Return what is known of arms, which JSON and TOML name by their texts, or have in pairs.

    Examples
    --------
    >>> read_known({"cost": {"small": 0.001, "2": 0.03}}, ["small", 2])
    {'cost': {'small': 0.001, 2: 0.03}}
    >>> read_known({"cost": [["1", 0.001], [1, 0.03]]}, ["1", 1])
    {'cost': {'1': 0.001, 1: 0.03}}
    """
    if not isinstance(known, Mapping):
        raise InvalidValueError(f"known is {known!r}; give a table for each outcome, such as cost = {{small = 0.001}}")
    by_text: dict[str, list[Arm]] = {}
    for arm in arms:
        by_text.setdefault(str(arm), []).append(arm)
    return {name: _prices(f"known.{name}", prices, by_text) for name, prices in known.items()}


def _prices(name: str, prices: object, by_text: Mapping[str, list[Arm]]) -> dict[Arm, float]:
    pairs = prices.items() if isinstance(prices, Mapping) else listed(name, cast("Any", prices))
    by_arm: dict[Arm, float] = {}
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InvalidValueError(f"{name} has {pair!r}; give pairs of an arm and a number")
        arm, price = pair
        if isinstance(prices, Mapping) and isinstance(arm, str):
            meant = by_text.get(arm, [arm])
            if len(meant) > 1:
                raise InvalidValueError(f"{name} has {arm!r}, the text of two arms; give pairs, such as [[1, 0.03]]")
            arm = meant[0]
        if check_label(arm) in by_arm:
            raise InvalidValueError(f"{name} has {arm!r} twice; give each arm once")
        by_arm[arm] = price
    return by_arm


def make_policy(name: str | None, settings: Mapping[str, Any]) -> Policy | PairPolicy | None:
    """Make a policy, or refuse its name or settings; None for the default one."""
    if name is None:
        if settings:
            raise InvalidValueError(f"policy_settings is {dict(settings)!r}; name the policy too")
        return None
    kind = find_policy(name, None)
    known = signature(kind).parameters
    for setting in settings:
        if setting not in known:
            raise InvalidValueError(f"policy_settings has {setting!r}; {choices(setting, known)}")
    return kind(**settings)


def make_encoder(
    features: Iterable[str], categories: Mapping[str, tuple[str, ...]], hashed: int | None = None
) -> AnyEncoder | None:
    """Return what makes numbers of contexts, if there is more than numbers in them."""
    if hashed is not None:
        return HashedFeatures(hashed)
    if not categories and CONSTANT not in features:
        return None
    from armlet.inputs.encoder import Encoder

    codes = [Constant() if name == CONSTANT else Number(name) for name in features]
    flags = [Flags(name, tuple(sorted(texts)), "flag") for name, texts in categories.items()]
    return Encoder.from_dict({"columns": [each.to_dict() for each in (*codes, *flags)], "extra": "refuse"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """All of it.

    Parameters
    ----------
    store
        The path of a file, or the address of a PostgreSQL database, which may hold a password and so is not shown.
    """

    store: str = field(repr=False)
    listen: Listen = field(default_factory=Listen)
    loops: tuple[LoopConfig, ...] = ()
    keys: tuple[KeyConfig, ...] = ()
    limits: Limits = field(default_factory=Limits)
    log: LogConfig = field(default_factory=LogConfig)
    personalizer: PersonalizerConfig = field(default_factory=PersonalizerConfig)

    def __post_init__(self) -> None:
        settle(self, store=text("shop.db"))
        for section, parts in (("loops", self.loops), ("keys", self.keys)):
            names = [each.name for each in parts]
            if len(set(names)) < len(names):
                raise InvalidValueError(f"{section} has {', '.join(names)}; give each name once")
        hashes = [key.sha256 for key in self.keys]
        if len(set(hashes)) < len(hashes):
            raise InvalidValueError("keys has one sha256 twice; make a key of its own for each: armlet serve --new-key")
        if not self.keys and not self.listen.is_local:
            raise InvalidValueError(
                f"listen.host is {self.listen.host!r}, where others can reach it, but there are no keys; "
                "make one with: armlet serve --new-key decide,reward, or listen at 127.0.0.1"
            )

    @property
    def keyring(self) -> Keyring:
        """The keys, as the server looks them up."""
        return Keyring({bytes.fromhex(key.sha256): key.grant for key in self.keys})

    @property
    def is_database(self) -> bool:
        """Whether loops are in PostgreSQL rather than in a file."""
        return self.store.startswith(("postgresql://", "postgres://"))


# ---- checks


def text(example: str) -> Check:
    """Require text that is not empty."""

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or not value or "\0" in value:
            raise InvalidValueError(f"{name} is {value!r}; give text, such as {example!r}")
        return value

    return check


def texts(name: str, value: object) -> tuple[str, ...]:
    """Require a list of names, no two alike."""
    names = tuple(check_text(name, each) for each in listed(name, cast("tuple[str, ...]", value)))
    if len(set(names)) < len(names):
        raise InvalidValueError(f"{name} is {list(names)!r}; give each name once")
    return names


def switch(name: str, value: object) -> bool:
    """Require true or false."""
    if not isinstance(value, bool):
        raise InvalidValueError(f"{name} is {value!r}; give true or false")
    return value


def _range(name: str, value: object) -> Range | Mapping[str, Range] | None:
    if isinstance(value, Mapping):
        return {outcome: ends(f"{name}.{outcome}", pair) for outcome, pair in value.items()}
    return None if value is None else ends(name, value)


def _unless_none(check: Check) -> Check:
    return lambda name, value: None if value is None else check(name, value)


def _arm(_: str, value: object) -> Arm:
    return check_label(value)


def _hash(name: str, value: object) -> str:
    digits = value.strip().lower() if isinstance(value, str) else ""
    if len(digits) != HEX or not all(each in "0123456789abcdef" for each in digits):
        raise InvalidValueError(
            f"{name} is not the SHA-256 of a key, {HEX} hexadecimal digits; make both with: armlet serve --new-key"
        )
    return digits  # an error does not repeat it: the key itself may have been written there


def _scopes(name: str, value: object) -> tuple[str, ...]:
    scopes = texts(name, value)
    if not scopes:
        raise InvalidValueError(f"{name} is empty; give some of {', '.join(SCOPES)}")
    for each in scopes:
        if each not in SCOPES:
            raise InvalidValueError(f"{name} has {each!r}; {choices(each, SCOPES)}")
    return scopes


def _moment(name: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidValueError(f"{name} is {value!r}; give a date with a time, such as 2027-01-31T00:00:00Z")
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _categories(name: str, value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise InvalidValueError(f"{name} is {value!r}; give the texts of each column, such as country = ['de', 'fr']")
    return {check_text(name, column): texts(f"{name}.{column}", values) for column, values in value.items()}
