"""Maintenance of a loop: decisions are forgotten and pruned, arms, terms, policies and the cast are changed.

Each function takes the runner of the loop, inside a transaction. What takes long is a chore: it works in pieces,
between which other calls are served. What changes the bandit leaves a row, or a model that the loop goes on from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, Final, TypeAlias

from armlet.actions.bandit import ActionBandit
from armlet.bandit import Bandit
from armlet.cast.cast import SHADOW, Cast
from armlet.errors import DecisionError, InvalidValueError, LoopStateError
from armlet.inputs.encoder import Encoder
from armlet.inputs.hashed import HashedFeatures
from armlet.inputs.options import declared
from armlet.inputs.settings import Range, Settings, units_of
from armlet.lost_digits import keeping_rows
from armlet.policies import is_registered
from armlet.recording import policy_fields
from armlet.stores.choosing import check_has_arms
from armlet.stores.folds import ERASE
from armlet.stores.ledger import Decided, Moment, Row
from armlet.stores.overview import gains_of
from armlet.stores.promotion import Gate, Promotion, check_shadow, passes
from armlet.stores.refit import Refit, like
from armlet.stores.rewards import expire
from armlet.stores.rows.decisions import known_of
from armlet.stores.rows.tables import TableUse
from armlet.stores.runner import Going, LoopRunner, undoing
from armlet.stores.spec import LIVE, RULES, LoopChange, LoopSpec, Prices, Ranges, rules_of_parts
from armlet.stores.terms import Terms
from armlet.stores.transaction import Chore, Draft, Recent, Transaction
from armlet.types import KEEP, Arm, Keep

OF_ANY_LOOP: Final = (*RULES, "policy", "reward_range")  # may change also where actions come with each decision
FORGOTTEN: Final = 8  # decisions in one piece of a chore
PRUNED: Final = 32
LOOKED_AT: Final = 200  # rows in one piece

Refits: TypeAlias = Mapping[str, Refit] | None  # by the role of the policy that learns the log again

log = logging.getLogger("armlet.store")


def copying(runner: LoopRunner) -> Chore[Bandit]:
    """Copy the bandit when all windows that are due are closed."""
    yield from runner.settling()
    tx, now = yield
    runner.open(tx, now)
    return runner.bandit.copy()


# ---- forgetting


def forgetting(runner: LoopRunner, events: Sequence[str], losses: list[str]) -> Chore[int]:
    """Unlearn decisions and delete all about them but the step, the arm and its probability; return how many.

    Digits that the bandit loses by it are added to `losses`.
    """
    found = 0
    for first in range(0, len(events), FORGOTTEN):
        tx, now = yield
        lost: list[str] = []
        found += keeping_rows(partial(_forget, runner, tx, now, events[first : first + FORGOTTEN], lost), lost)
        losses += lost
    if found:
        log.info("loop %s: %d decisions forgotten", runner.name, found)
    return found


@undoing
def _forget(runner: LoopRunner, tx: Transaction, now: Moment, events: Sequence[str], lost: Sequence[str]) -> int:
    """Let the bandit go on from what it knows without these; no row is left, nor needed, that says how.

    Digits that were `lost` by it are in the loop's terms until its rows are learned again.
    """
    draft = runner.open(tx, now, events)
    known = [recent for event in dict.fromkeys(events) if (recent := runner.find(tx, event)) is not None]
    for recent in known:
        _unlearn(runner, recent, now, lost)
        if runner.terms.frozen_at:
            with _passing_emptied(runner, lost):
                _unlearn_frozen(runner, tx, draft, recent)
    _drop_early(runner, tx, draft, events)
    session = tx.direct(runner.id)
    for recent in known:
        session.erase(runner.id, recent.pending.t)
        runner.drop(recent)
    if lost:
        runner.describe(tx, replace(runner.terms, lost_digits=lost[-1]))
    if known:
        runner.rebase(tx, now)
    return len(known)


def keep_losses(runner: LoopRunner, tx: Transaction, now: Moment) -> str:
    """Keep in the loop's terms which digits a correction has cost the sums; return which are lost by them."""
    runner.open(tx, now)
    if runner.lost_digits:
        runner.describe(tx, replace(runner.terms, lost_digits=runner.lost_digits))
        runner.lost_digits = ""
    return runner.terms.lost_digits


@contextmanager
def _passing_emptied(runner: LoopRunner, lost: Sequence[str]) -> Iterator[None]:
    """Pass over a row whose arm was emptied by one before it: the loop learns again what is left."""
    try:
        yield
    except DecisionError:
        if not lost and not runner.terms.lost_digits:
            raise


def _unlearn(runner: LoopRunner, known: Recent, now: Moment, lost: Sequence[str]) -> None:
    """Let the bandit unlearn a decision, and the folds see what it was; no row says so."""
    pending, cast = known.pending, runner.cast
    gone: dict[str, Any] = {"of": pending.seq}
    is_waiting = pending.phase in ("open", "deferred")
    if pending.given:
        gone["reward"] = runner.rules.value(pending.given)
    if pending.played is not None:
        gone["played"] = pending.played
    if pending.phase == "deferred":
        gone["deferred"] = True
    if is_waiting and not known.decision.expired:  # as it is if another arm was played
        cast.expire(known.decision)
        gone["is_open"] = True
    elif not is_waiting and pending.phase != "expired":
        with _passing_emptied(runner, lost):
            cast.forget(known.decision, gone["reward"])
    runner.tally.see(Row(0, now.wall, ERASE, pending.t, gone), known.row)


def _unlearn_frozen(runner: LoopRunner, tx: Transaction, draft: Draft, known: Recent) -> None:
    """Let a frozen policy unlearn what it knew of a decision when it was frozen; rows since then told the other."""
    if known.pending.seq > runner.terms.frozen_at:
        return
    row = runner.terms.carry.row(runner.row(tx, draft, known))
    tx.flush()
    heard = [each for each in tx.session.heard(runner.id, known.pending.t) if each.seq <= runner.terms.frozen_at]
    then = known_of(row, heard)
    if then is not None:
        runner.cast.forget_frozen(then, then.reward if then.learned else None)


def _drop_early(runner: LoopRunner, tx: Transaction, draft: Draft, events: Sequence[str]) -> None:
    if draft.entered.head.early:
        waiting = {event: len(tx.session.early(runner.id, event)) for event in events}
        draft.arrived += [(event, n) for event, n in waiting.items() if n]


# ---- pruning


def pruning(runner: LoopRunner, before: int) -> Chore[int]:
    """Delete what is old and did not explore; return how many.

    What still waits for a reward is expired before it goes, by rows that can be replayed, so that the model does
    not count decisions that nobody can reward.
    """
    yield from runner.settling()
    pruned, waiting = yield from _prune(runner, before)
    if waiting:
        pruned += (yield from _prune(runner, before))[0]
    if runner.tally.catalogue is not None:
        yield from _prune_tables(runner)
    log.info("loop %s: %d decisions pruned", runner.name, pruned)
    return pruned


def _prune(runner: LoopRunner, before: int) -> Chore[tuple[int, int]]:
    """Delete what can go, and expire what waits for a reward; return how many of each."""
    tx, now = yield
    runner.open(tx, now)
    runner.rebase(tx, now)
    after: int | None = 0
    pruned = waiting = 0
    while after is not None:
        tx, now = yield
        runner.open(tx, now)
        piece = tx.direct(runner.id).prune(runner.id, before, after, PRUNED)
        runner.drop_recent()
        _expire(runner, tx, now, piece.open)
        pruned, waiting, after = pruned + piece.n, waiting + len(piece.open), piece.after
    return pruned, waiting


def _prune_tables(runner: LoopRunner) -> Chore[None]:
    """Delete tables of actions that no decision names any more, of those that the start model goes on from.

    Tables that have a name stay, those that were used last, and those that these are changes of.
    """
    found, after = TableUse(), 0
    while True:
        tx, now = yield
        runner.open(tx, now)
        page = [*islice(tx.session.rows(runner.id, after), LOOKED_AT)]
        found.see(page)
        if len(page) < LOOKED_AT:
            break
        after = page[-1].seq
    record, catalogue = tx.session.find(runner.name), runner.tally.catalogue
    gone = found.unused(0 if record is None else record.base, set() if catalogue is None else catalogue.rows)
    for first in range(0, len(gone), PRUNED):
        runner.open(tx, now)
        tx.direct(runner.id).drop_rows(runner.id, gone[first : first + PRUNED])
        tx, now = yield


@undoing
def _expire(runner: LoopRunner, tx: Transaction, now: Moment, waiting: Sequence[Decided]) -> None:
    draft = runner.open(tx, now)
    for decided in waiting:
        known, first = runner.remember(decided), len(draft.rows)
        if not known.decision.expired:  # as it is if another arm was played, of which some parts have come
            expire(runner, draft, now, known)
        known.pending = known.pending._replace(phase="expired")
        draft.change(known.pending)
        runner.see(draft, known, first)
    runner.end(draft)


# ---- arms


@undoing
def add_arm(runner: LoopRunner, tx: Transaction, now: Moment, arm: Arm, known: Mapping[str, float]) -> None:
    """Add an arm with its prices."""
    if known:
        change(runner, tx, now, LoopChange(known={name: {arm: price} for name, price in known.items()}))
    add_rows(runner, tx, now, [("add_arm", arm)])


@undoing
def add_rows(runner: LoopRunner, tx: Transaction, now: Moment, changes: Iterable[tuple[str, Arm]]) -> None:
    """Add, retire or restore arms."""
    draft = runner.open(tx, now)
    check_has_arms(runner, "a list of arms")
    for kind, arm in changes:
        runner.act(tx, draft, now, kind, {"arm": arm})
        log.info("loop %s: %s", runner.name, kind)
    runner.end(draft)


def arms_to(runner: LoopRunner, tx: Transaction, now: Moment, arms: Iterable[Arm]) -> list[tuple[str, Arm]]:
    """Return what to add, restore and retire until those of a list are the ones that are played."""
    runner.open(tx, now)
    check_has_arms(runner, "a list of arms")
    bandit = runner.bandit
    wanted, known, retired = dict.fromkeys(arms), bandit.arms, set(bandit.arms.retired)
    added = wanted.keys() - set(known)
    add = (("add_arm", arm) for arm in wanted if arm in added)
    restore = (("restore_arm", arm) for arm in wanted if arm in retired)
    retire = (("retire_arm", arm) for arm in known if arm not in wanted and arm not in retired)
    return [*chain(add, restore, retire)]


# ---- other terms, another policy, another cast


@undoing
def change(runner: LoopRunner, tx: Transaction, now: Moment, wanted: LoopChange, refits: Refits = None) -> bool:
    """Go on with other terms: a row says so, and what cannot be changed is refused before anything is.

    Return whether anything is another one.
    """
    draft = runner.open(tx, now)
    for name in wanted.names:
        if name not in OF_ANY_LOOP:
            check_has_arms(runner, name)
    twin, replaces = _renewed(runner, tx, draft, wanted, refits)
    try:
        more, moved = wanted.apply(twin)
    except InvalidValueError as error:
        if wanted.policy is not None and refits is None:
            raise InvalidValueError(f"{error}; or let it learn the loop's log again: how='refit'") from error
        raise
    has_cast = twin.describe() != runner.cast.describe() or (refits is not None and wanted.has_cast)
    changes = [*replaces, *more, *([{"guards": twin.describe()}] if has_cast else [])]
    rules = _rules(runner, wanted)
    terms = runner.terms.with_rules(**rules)
    is_relearned = refits is not None and wanted.policy is not None
    going = Going(
        cast=twin,
        terms=replace(terms, lost_digits="") if is_relearned else terms,
        fields={"rules": rules, "replaces": changes},
        moved=moved,
        is_replayed=refits is None and not has_cast and (wanted.policy is None or is_registered(wanted.policy)),
    )
    is_other = runner.go_on(tx, now, draft, going)
    arms = [] if wanted.arms is None else arms_to(runner, tx, now, wanted.arms)
    if arms:
        add_rows(runner, tx, now, arms)
    return is_other or bool(arms)


def _rules(runner: LoopRunner, wanted: LoopChange) -> dict[str, Any]:
    """Return the rules that are to be other ones; of a loop with outcomes, a window needs no default."""
    rules, terms = dict(wanted.rules), runner.terms
    if runner.rules.is_number or not rules.keys() & {"window", "default_reward"}:
        return rules
    now = {"window": terms.window, "default_reward": terms.default_reward, **rules}
    return {**rules, "default_reward": rules_of_parts(now)["default_reward"]}


def _renewed(
    runner: LoopRunner, tx: Transaction, draft: Draft, wanted: LoopChange, refits: Refits
) -> tuple[Cast, list[Mapping[str, Any]]]:
    """Return a cast to go on with, whose new policies have learned the log if asked, and what a row says."""
    cast, live = runner.cast.copy(), runner.bandit
    if refits is None:
        return wanted.recast(cast, {}), []
    tx.flush()
    has_other_range = wanted.reward_range is not None and not cast.others and refits.keys() == {LIVE}
    reward_range = None if has_other_range else live.settings.reward_range
    learned = {
        role: like(refit.finish(tx.session, runner.id, draft.head, runner.terms.carry, reward_range), live)
        for role, refit in refits.items()
    }
    if LIVE not in learned:
        return wanted.recast(cast, learned), []
    return wanted.recast(cast.with_live(learned[LIVE]), learned), [policy_fields(learned[LIVE].policy)]


@undoing
def recast(runner: LoopRunner, tx: Transaction, now: Moment, make: Callable[[Cast], Cast]) -> bool:
    """Go on with what is made of the cast; return whether that is another one."""
    draft, cast = runner.open(tx, now), runner.cast
    check_has_arms(runner, "freezing a policy")
    twin = make(cast)
    if twin is cast:
        return False
    replaces = [] if twin.live.policy == cast.live.policy else [policy_fields(twin.live.policy)]
    fields = {"rules": {}, "replaces": [*replaces, {"guards": twin.describe()}]}
    going = Going(cast=twin, terms=runner.terms, fields=fields, moved=None, is_replayed=False)
    runner.go_on(tx, now, draft, going)
    return True


@undoing
def promote(
    runner: LoopRunner, tx: Transaction, now: Moment, gate: Gate, share: float | None, shadow: str | None
) -> Promotion:
    """Make a shadow the live policy if its comparison so far lets it through the gate."""
    runner.open(tx, now)
    check_has_arms(runner, "a shadow")
    name = check_shadow(runner.cast, shadow)
    gains = (each for each in gains_of(runner.tally, runner.terms) if each.against == "shadow")
    gain = next((each for each in gains if (each.shadow or SHADOW) == name), None)
    if not passes(gate, gain):
        return Promotion(promoted=False, gain=gain)
    recast(runner, tx, now, lambda cast: cast.promoted(name, share))
    return Promotion(promoted=True, gain=gain)


# ---- what a description of a loop says otherwise than the loop is


def differences(spec: LoopSpec, made: Bandit, terms: Terms, now: Cast) -> LoopChange | None:
    """Return what is said otherwise than a loop is; refuse what can never change, or all of it if that is asked."""
    kinds = ["actions with features" if isinstance(each, ActionBandit) else "arms" for each in (made, now.live)]
    if kinds[0] != kinds[1]:
        raise LoopStateError(
            f"loop {spec.name!r} was made with {kinds[1]}, not with {kinds[0]}; give the name alone, or make a "
            "loop of another name"
        )
    _check_fixed(spec, made, now.live)
    given, ours, theirs = spec.terms, made.settings, now.live.settings
    others: dict[str, Any] = {
        name: getattr(given, name) for name in spec.rules if getattr(given, name) != getattr(terms, name)
    }
    for name in _compared(spec):
        if name in _OTHERS and (other := _OTHERS[name](spec, ours, theirs)) is not KEEP:
            others[name] = other
    if "control" in _compared(spec) and spec.control != now.control:
        others["control"] = spec.control
    return _allowed(spec, LoopChange(**others), terms, now)


def _compared(spec: LoopSpec) -> list[str]:
    """What is said of a loop of its kind; of one of actions, that there is none of what it cannot have."""
    over = "arms" if spec.has_actions else None
    return [name for name in spec.said if declared(LoopSpec)[name].option.over != over]


def _check_fixed(spec: LoopSpec, made: Bandit, now: Bandit) -> None:
    """Refuse what is said otherwise, and can never change."""
    ours: Any = made.settings
    theirs: Any = now.settings
    fixed = ("objective", "normalize", "epoch", "dim", "action_dim", "action_features", "action_encoder")
    for name in (*fixed, *(("features", "encoder") if spec.has_actions else ())):
        if name in _compared(spec) and (name != "dim" or theirs.encoder is None):
            _check(spec, name, _plain(getattr(ours, name)), _plain(getattr(theirs, name)))
    if spec.seed is not None:
        _check(spec, "seed", made.seed, now.seed)
    if spec.units is not None and spec.policy is None:
        _check(spec, "units", spec.units, units_of(now.policy))
    for name in ("outcomes", "known"):
        if name in _compared(spec):
            _check(spec, name, *(_names_of(name, settings) for settings in (ours, theirs)))


def _allowed(spec: LoopSpec, change: LoopChange, terms: Terms, now: Cast) -> LoopChange | None:
    if change.is_empty:
        return None
    if spec.on_change == "refuse" and not (change.names == ["known"] and _only_adds(change, now)):
        _refuse(spec, change, terms, now)
    return change


def _only_adds(change: LoopChange, now: Cast) -> bool:
    """Whether known prices are those of arms that are new: these come with the list of arms."""
    several = now.live.settings.outcomes
    if several is None or change.known is None:
        return False
    return all(arm not in several.known[name] for name, prices in change.known.items() for arm in prices)


def _check(spec: LoopSpec, name: str, ours: object, theirs: object) -> None:
    if ours != theirs:
        raise LoopStateError(
            f"{name} is {ours!r}, but loop {spec.name!r} was made with {theirs!r}; "
            "give that, or the name alone, or make a loop of another name"
        )


def _refuse(spec: LoopSpec, change: LoopChange, terms: Terms, now: Cast) -> None:
    name = change.names[0]
    fix = f"give that, or leave {name} out; to change it: loop.change({name}=...)"
    raise LoopStateError(
        f"{name} is {getattr(change, name)!r}, but loop {spec.name!r} has {_present(name, terms, now)!r}; "
        f"{fix}, or store.loop(..., on_change='apply')"
    )


def _present(name: str, terms: Terms, now: Cast) -> object:
    """Return what a loop has."""
    several = now.live.settings.outcomes
    if name == "control":
        return now.control
    if several is not None and name in ("outcomes", "known", "reward_range"):
        return dict({"outcomes": several.weights, "known": several.known, "reward_range": several.ranges}[name])
    return getattr(terms if name in RULES else now.live.settings, name)


def _plain(value: object) -> object:
    """Return encoders as what is saved of them, by which they are compared."""
    return value.to_dict() if isinstance(value, Encoder | HashedFeatures) else value


def _names_of(kind: str, settings: Any) -> list[str] | None:
    several = settings.outcomes
    return None if several is None else sorted(several.weights if kind == "outcomes" else several.known)


def _other(name: str) -> Callable[[LoopSpec, Settings, Settings], object]:
    """Compare a setting of bandits."""

    def compare(_: LoopSpec, ours: Settings, theirs: Settings) -> object:
        own, present = getattr(ours, name), getattr(theirs, name)
        return KEEP if _plain(own) == _plain(present) else own

    return compare


def _other_features(_: LoopSpec, ours: Settings, theirs: Settings) -> Iterable[str] | Keep:
    is_same = ours.encoder is not None or ours.features is None or ours.features == theirs.features
    return KEEP if is_same or ours.features is None else ours.features


def _other_ranges(spec: LoopSpec, ours: Settings, theirs: Settings) -> Range | Ranges | Keep:
    if ours.outcomes is None or theirs.outcomes is None:
        return KEEP if ours.reward_range in (None, theirs.reward_range) else ours.reward_range
    ranges, known = ours.outcomes.ranges, theirs.outcomes.ranges
    names = spec.reward_range if isinstance(spec.reward_range, Mapping) else ()
    return {name: ranges[name] for name in names if ranges[name] != known.get(name)} or KEEP


def _other_weights(_: LoopSpec, ours: Settings, theirs: Settings) -> Mapping[str, float] | Keep:
    if ours.outcomes is None or theirs.outcomes is None or ours.outcomes.weights == theirs.outcomes.weights:
        return KEEP
    return ours.outcomes.weights


def _other_prices(_: LoopSpec, ours: Settings, theirs: Settings) -> Prices | Keep:
    """Return the prices that differ, or that a loop does not have; those of arms that are not given stay."""
    if ours.outcomes is None or theirs.outcomes is None:
        return KEEP
    found = {}
    for name, prices in ours.outcomes.known.items():
        known = theirs.outcomes.known[name]
        other = {arm: price for arm, price in prices.items() if known.get(arm) != price}
        if other:
            found[name] = other
    return found or KEEP


_OTHERS: Final[Mapping[str, Callable[[LoopSpec, Settings, Settings], object]]] = {
    **{name: _other(name) for name in ("policy", "encoder", "feature_range", "budget")},
    "features": _other_features,
    "reward_range": _other_ranges,
    "outcomes": _other_weights,
    "known": _other_prices,
}
