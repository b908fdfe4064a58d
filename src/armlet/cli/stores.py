"""The command `armlet store`: what is in a store, whether it is whole, and what is done to its loops now and then.

Commands that read run next to the process that has the store open; those that write in a file need it to stop.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from armlet.cli.answer import Answer, written
from armlet.cli.command import REPEATED, Argument, Call, Command, Listed, arg, command, named_policy, progress
from armlet.cli.loops import loop_arguments, said
from armlet.cli.outcomes import in_words
from armlet.cli.sources import STORE, choose, is_store, open_reader, open_view
from armlet.errors import ArgumentError, ArmletError, InvalidValueError, StoreError, UnknownNameError
from armlet.inputs.named import parse_named
from armlet.log.exporting import write
from armlet.service.config import read_plain
from armlet.stores import Loop, Store, open_store
from armlet.stores.overview import Details, Overview, details, digest, overview
from armlet.stores.rows.log import LoopLog
from armlet.stores.spec import LoopChange
from armlet.stores.verify import Verified, verify_loop
from armlet.types import Arm

if TYPE_CHECKING:
    from armlet.parallel import Progress
    from armlet.stores.ledger import View

EXTRAS: Final = ("apsw", "msgspec", "psycopg", "pyarrow")
MANY: Final = 50_000  # rows and outcomes: reading them takes a second, so progress is shown
_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([dh])")
_NAME: Final = arg("loop", metavar="NAME", help="of the loop")


def _action(*arguments: Argument, **settings: object) -> Callable[[Call], Command]:
    return command(*arguments, extras=EXTRAS, **{"refused": (ArgumentError,), **settings})


# ---- what reads


@_action()
def list_loops(a: argparse.Namespace) -> Answer:
    """Name the loops of a store: decisions, decisions with a reward, rows and their bytes, the last decision.

    examples:
      armlet store shop.db list
      armlet store shop.db list --json
    """
    with open_reader(a.store) as ledger, ledger.view() as view:
        size, loops = ledger.size(), [overview(view, record) for record in view.loops()]
    lines = [f"{'decisions':>13}{'rewards':>13}{'rows':>13}{'bytes':>16}  {'last decision':20}  loop"]
    for each in loops:
        counts = f"{each.decisions:13,}{each.rewards:13,}{each.rows:13,}{each.bytes:16,}"
        lines.append(f"{counts}  {_clock(each.last_decision):20}  {_plain(each.name)}")
    lines.append(f"loops: {len(loops)}, bytes of the store: {size:,}")
    return Answer({"bytes": size, "loops": loops}, lines)


def _clock(moment: int | None) -> str:
    return "never" if moment is None else f"{datetime.fromtimestamp(moment / 1e6, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _plain(name: str) -> str:
    """Return a name that cannot do anything to a terminal."""
    return name if name.isprintable() else repr(name)


@_action(_NAME)
def show(a: argparse.Namespace) -> Answer:
    """Print a loop: its terms, policy and features, what its arms have earned, and what is wrong with it.

    examples:
      armlet store shop.db show homepage
      armlet store shop.db show homepage --json
    """
    with open_view(a.store) as view:
        record = choose(view.loops(), a.loop, "loop")
        loop, line = details(view, record, time.time_ns() // 1000), overview(view, record)
        learned = digest(view, record)
    text = [f"{name:20} {value}" for name, value in (*_lines(loop, line), ("digest", learned))]
    text += [*_arm_lines(loop), *_outcome_lines(loop)]
    text += [f"gain: {_plain(str(gain))}" for gain in loop.gains]
    text += [f"alarm: {alarm}" for alarm in loop.alarms]
    return Answer({**line.to_dict(), **loop.to_dict(), "digest": learned}, text, tones={"alarm": "bad"})


def _lines(loop: Details, line: Overview) -> Iterator[tuple[str, object]]:
    yield "loop", _plain(line.name)
    yield "policy", loop.policy
    yield (
        "features",
        json.dumps(loop.features, ensure_ascii=False) if loop.features else f"{loop.dim}, without names",
    )
    yield "encoder", "yes" if loop.has_encoder else "no"
    if loop.action_dim is not None:
        names = json.dumps(loop.action_features, ensure_ascii=False) if loop.action_features else ""
        yield "action_features", names or f"{loop.action_dim}, without names"
        yield "tables", ", ".join(map(_plain, loop.tables)) or "none"
    yield "objective", loop.objective
    yield "reward_range", "any" if loop.reward_range is None else "{:g}..{:g}".format(*loop.reward_range)
    if loop.weights is not None:
        yield "outcomes", in_words(loop.weights, loop.known)
    if loop.budget is not None:
        yield "budget", str(loop.budget)
    yield from ((name, "none" if value is None else value) for name, value in loop.terms.items())
    yield "decisions", f"{line.decisions:,}, the last one {_clock(line.last_decision)}"
    yield "rewards", ", ".join(f"{n:,} {status}" for status, n in loop.statuses.items()) or "none"
    yield "waiting", f"{loop.open:,} decisions for a reward, {loop.early:,} rewards for their decision"
    if loop.deferred:
        yield "deferred", f"{loop.deferred:,} decisions that were not activated"
    if loop.baseline is not None:
        tally = loop.baseline
        yield "baseline", f"{tally.decisions:,} decisions, the policy would have played it in {tally.agreed:,} of these"
    yield "rows", f"{line.rows:,}, {line.bytes:,} bytes, {loop.rows_since_snapshot:,} since the last snapshot"


def _arm_lines(loop: Details) -> Iterator[str]:
    yield f"\n{'decisions':>13}{'explored':>13}{'rewards':>13}{'defaults':>13}{'mean':>13}  arm"
    counts = {each.arm: each for each in loop.counts}
    for arm in (*loop.arms, *loop.retired):
        each = counts.get(arm)
        cells = "" if each is None else f"{each.decisions:13,}{each.explored:13,}{each.rewards:13,}{each.defaults:13,}"
        mean = "-" if each is None or each.mean is None else f"{each.mean:.4g}"
        retired = ", retired" if arm in loop.retired else ""
        yield f"{cells or f'{0:13}' * 4}{mean:>13}  {_plain(str(arm))}{retired}"
    if (rest := loop.others) is not None:
        cells = f"{rest.decisions:13,}{rest.explored:13,}{rest.rewards:13,}{rest.defaults:13,}"
        yield f"{cells}{'-' if rest.mean is None else f'{rest.mean:.4g}':>13}  all others"


def _outcome_lines(loop: Details) -> Iterator[str]:
    if loop.outcomes:
        yield f"\n{'values':>13}{'mean':>13}  outcome"
    for each in loop.outcomes:
        of = "" if each.arm is None else f" of {_plain(str(each.arm))}"
        yield f"{each.values:13,}{'-' if each.mean is None else f'{each.mean:.4g}':>13}  {_plain(each.outcome)}{of}"


@_action(
    arg("loop", nargs="?", metavar="NAME", help="of the loop; default: all of them"),
    interrupted="not all was read",
)
def verify(a: argparse.Namespace) -> Answer:
    """Read all rows of loops as they are at one moment, play them again, and compare snapshots, outcomes and counts.

    examples:
      armlet store shop.db verify
      armlet store shop.db verify homepage --json

    exit codes:
      0  everything is whole; the digest is that of what the rows lead to
      1  something is damaged, or a loop cannot be read; the row is named
      2  wrongly called
    """
    with open_view(a.store) as view:
        view.check()
        records = view.loops() if a.loop is None else [choose(view.loops(), a.loop, "loop")]
        verdicts = {record.name: _verified(a, view, record.name) for record in records}
    failed = sum(isinstance(each, str) for each in verdicts.values())
    lines = [f"{_plain(name)}: not whole: {each}" if isinstance(each, str) else each for name, each in verdicts.items()]
    data = {"ok": not failed, "loops": [_as_json(name, each) for name, each in verdicts.items()]}
    return Answer(data, lines, 1 if failed else 0)


def _verified(a: argparse.Namespace, view: View, name: str) -> Verified | str:
    try:
        return verify_loop(view, choose(view.loops(), name, "loop"), _progress(a, name))
    except ArmletError as error:
        return str(error)


def _as_json(name: str, verdict: Verified | str) -> dict[str, object]:
    return (
        {"name": name, "ok": False, "error": verdict} if isinstance(verdict, str) else {"ok": True, **verdict.to_dict()}
    )


def _progress(a: argparse.Namespace, name: str) -> Progress:
    report = progress(a, f"verifying {_plain(name)}")

    def tell(done: int, total: int) -> None:
        if total >= MANY:
            report(done, total)

    return tell


@_action(
    _NAME,
    arg("target", type=Path, metavar="OUT", help="must not be there yet"),
    interrupted="nothing was written",
)
def export(a: argparse.Namespace) -> Answer:
    """Write the log of a loop as all commands read it: .jsonl has every event, the others one row a decision.

    examples:
      armlet store shop.db export homepage homepage.parquet
      armlet store shop.db export homepage homepage.jsonl
    """
    with open_reader(a.store) as ledger:
        return written(write(LoopLog(ledger, choose(ledger.loops(), a.loop, "loop"), None), a.target))


@_action(
    arg("target", type=Path, metavar="OUT", help="a file; must not be there yet"),
    interrupted="nothing was written",
)
def backup(a: argparse.Namespace) -> Answer:
    """Copy everything into a new file, as it is at one moment, while another process has the store open.

    examples:
      armlet store shop.db backup backups/shop-2026-01-31.db
    """
    with open_reader(a.store) as ledger:
        ledger.backup(a.target)
    return written(a.target)


# ---- what writes


@contextmanager
def _writing(a: argparse.Namespace, call: str) -> Iterator[Store]:
    """Open a store that is there; the call does the same from inside a process that has it open."""
    if not is_store(a.store):
        raise StoreError(f"STORE is {a.store}, which is not a store; give the path of one that is there")
    try:
        store = open_store(a.store)
    except StoreError as error:
        if not isinstance(error.__cause__, BlockingIOError):
            raise
        text = f"{a.store} is open in another process, and only that can change it: stop it first, or call {call} there"
        raise StoreError(text) from error
    with store:
        yield store


def _check_name(store: Store, name: str) -> None:
    choose(store._ledger.loops(), name, "loop")


@contextmanager
def _changing(a: argparse.Namespace, call: str) -> Iterator[Loop]:
    """Open the loop that is named; the call does the same from inside a process that has its store open."""
    with _writing(a, f"store.loop({a.loop!r}).{call}") as store:
        _check_name(store, a.loop)
        yield store.loop(a.loop)


@_action(_NAME, arg("events", nargs="+", metavar="EVENT"))
def forget(a: argparse.Namespace) -> Answer:
    """Unlearn decisions and delete all about them but the step, the arm and its probability, from the files too.

    examples:
      armlet store shop.db forget homepage order-17 order-18

    Backups and logs that were exported are not touched.
    """
    events = list(dict.fromkeys(a.events))
    with _changing(a, "forget_many([...])") as loop:
        n = loop.forget_many(events)
    left = "" if n == len(events) else "; the others are not there, or were forgotten before"
    return Answer(
        {"loop": a.loop, "forgotten": n, "asked": len(events)}, f"forgot {n:,} of {len(events):,} decisions{left}"
    )


def moment(text: str) -> datetime:
    """Read a date or time, in UTC if it does not say, or an age such as 90d or 12h.

    Examples
    --------
    >>> moment("2026-01-31").isoformat(), moment("2026-01-31T12:00+01:00").isoformat()
    ('2026-01-31T00:00:00+00:00', '2026-01-31T12:00:00+01:00')
    """
    try:
        if age := _AGE.fullmatch(text):
            hours = float(age[1]) * (24 if age[2] == "d" else 1)
            return datetime.now(UTC) - timedelta(hours=hours)
        when = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        fix = "write a date as in 2026-01-31, a time as in 2026-01-31T12:00+01:00, or an age as in 90d or 12h"
        raise argparse.ArgumentTypeError(f"invalid moment: {text!r}; {fix}") from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


@_action(
    arg("--before", type=moment, required=True, metavar="TIME", help="such as 2026-01-31, in UTC, or an age: 90d, 12h"),
    refused=(ValueError, TypeError),
    interrupted="some are deleted; the same command continues",
)
def prune(a: argparse.Namespace) -> Answer:
    """Delete decisions that are older and did not explore, with their rewards; what was learned is not touched.

    examples:
      armlet store shop.db prune --before 90d
      armlet store shop.db prune --before 2026-01-31
    """
    with _writing(a, "store.prune(before)") as store:
        n = store.prune(a.before)
    before = f"{a.before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return Answer({"pruned": n, "before": before}, f"pruned {n:,} decisions from before {before}")


@_action(
    _NAME,
    *loop_arguments(LoopChange),
    named_policy(),
    arg("--control", metavar="ARM", help="that plays a share of the steps, by a coin of its own; none ends it"),
    arg("--share", type=float, metavar="SHARE", help="of the control; default: 0.1"),
    arg(
        "--shadow",
        metavar="POLICY",
        action="append",
        help=f"as --policy; learns and is logged, but never played; none ends it; {REPEATED}: NAME=POLICY each",
    ),
    arg("--refit", action="store_true", help="let --policy or --shadow learn the loop's log again: another kind"),
    refused=(ValueError, TypeError),
    interrupted="nothing was changed",
)
def change(a: argparse.Namespace) -> Answer:
    """Change the settings of a loop atomically; what was learned stays, and the log records the change.

    examples:
      armlet store shop.db change homepage --window 86400 --default-reward 0
      armlet store shop.db change homepage --features age,visits --fill visits=1
      armlet store shop.db change homepage --arms sale,new,none --reward-range=-1..1
      armlet store shop.db change router --outcomes cost=-20 --budget cost:total=9,period=1k
      armlet store shop.db change router --budget none
      armlet store shop.db change homepage --policy LinUCB:alpha=0.5 --refit
      armlet store shop.db change homepage --control sale --share 0.1
      armlet store shop.db change homepage --shadow LinUCB --refit
      armlet store shop.db change homepage --shadow bold=LinUCB --shadow shy=Greedy
    """
    changes = said(a, LoopChange)
    if a.shadow is not None:
        changes |= _shadows(a.shadow)
    if a.refit and not {"policy", "shadow"} & changes.keys():
        raise ArgumentError("{refit} is given, but {policy} is not; name the policy that is to learn the log again")
    if not changes:
        raise ArgumentError("there is nothing to change; give {policy}, {arms}, --window, --features or the like")
    of_arms = [name for name in ("arms", "known", "control") if name in changes]  # which the loop has to say
    try:
        options = read_plain({name: value for name, value in changes.items() if name not in of_arms})
    except UnknownNameError as error:  # a wrong word, as others are
        raise InvalidValueError(str(error)) from error
    with _changing(a, "change(...)") as loop:
        present: Sequence[Arm] = loop.model().arms if loop.action_reader is None else ()
        if "arms" in changes:
            changes["arms"] = _labels(changes["arms"], present)
        if changes.get("control"):
            changes["control"]["arm"] = _labels([a.control], present)[0]
        options |= read_plain(
            {name: changes[name] for name in of_arms}, dict.fromkeys([*present, *changes.get("arms", ())])
        )
        loop.change(**options, how="refit" if a.refit else "carry")
    return Answer({"loop": a.loop, "changed": list(options)}, f"{_plain(a.loop)}: changed {', '.join(options)}")


def _labels(words: Iterable[str], known: Sequence[Arm]) -> list[Arm]:
    """Return arms by their names at the command line; new ones are numbers if all are."""
    by_name: dict[str, Arm] = {str(arm): arm for arm in known}
    are_numbers = all(isinstance(arm, int) for arm in known)
    return [by_name.get(word, int(word) if are_numbers and word.isdecimal() else word) for word in words]


@_action(_NAME, interrupted="nothing was changed")
def freeze(a: argparse.Namespace) -> Answer:
    """Let the policy decide from what it knows now; what rewards teach waits for thaw.

    examples:
      armlet store shop.db freeze homepage
    """
    with _changing(a, "freeze()") as loop:
        loop.freeze()
    return Answer({"loop": a.loop, "frozen": True}, f"{_plain(a.loop)}: frozen")


@_action(_NAME, interrupted="nothing was changed")
def thaw(a: argparse.Namespace) -> Answer:
    """Use all that was learned while the loop was frozen.

    examples:
      armlet store shop.db thaw homepage
    """
    with _changing(a, "thaw()") as loop:
        loop.thaw()
    return Answer({"loop": a.loop, "frozen": False}, f"{_plain(a.loop)}: not frozen")


def _shadows(words: Sequence[str]) -> dict[str, object]:
    """Return what words say of one shadow, or of several by name."""
    if list(words) == ["none"]:
        return {"shadow": None}
    named = dict(word.split("=", 1) for word in words if "=" in word.split(":", 1)[0])
    if not named and len(words) == 1:
        return {"shadow": _settings_of(words[0])}
    if len(named) != len(words):
        raise ArgumentError("{shadow} is given several times; give each a name of its own: NAME=POLICY")
    return {"shadows": {name: _settings_of(word) for name, word in named.items()}}


def _settings_of(word: str) -> dict[str, object]:
    policy, settings = parse_named(word)
    return {"policy": policy, "policy_settings": settings}


@_action(
    _NAME,
    arg(
        "--gate", choices=("better", "not worse", "off"), default="better", help="default: better, as it must be shown"
    ),
    arg("--share", type=float, metavar="SHARE", help="of the steps that the old policy still plays, as a control"),
    arg("--shadow", metavar="NAME", help="of the shadow, if there are several"),
    refused=(ValueError, TypeError),
    options={"control": "--share"},
    interrupted="nothing was changed",
)
def promote(a: argparse.Namespace) -> Answer:
    """Let the shadow play from now on if its comparison with the live policy lets it through the gate.

    The command fails if it does not, and nothing is changed then.

    examples:
      armlet store shop.db promote homepage
      armlet store shop.db promote homepage --gate off --share 0.1
    """
    with _changing(a, "promote(...)") as loop:
        promotion = loop.promote(gate=a.gate, control=a.share, shadow=a.shadow)
    word = "promoted" if promotion.promoted else "not promoted"
    lines = [f"{_plain(a.loop)}: {word}", *([] if promotion.gain is None else [promotion.gain])]
    data = {"loop": a.loop, "promoted": promotion.promoted, "gain": promotion.gain}
    tones = {"promoted": "good", "not promoted": "bad"}
    return Answer(data, lines, 0 if promotion.promoted else 1, tones)


@_action(
    _NAME,
    arg("--yes", action="store_true", help="it is meant: this cannot be undone"),
    interrupted="some of its rows are deleted; give the command again",
)
def delete(a: argparse.Namespace) -> Answer:
    """Delete a loop with all its rows, from the store's files too.

    examples:
      armlet store shop.db delete homepage --yes
    """
    if not a.yes:
        raise ArgumentError("{yes} is missing; give it if loop {name!r} is to be deleted for good", name=a.loop)
    with _writing(a, f"store.delete({a.loop!r})") as store:
        _check_name(store, a.loop)
        store.delete(a.loop)
    return Answer({"loop": a.loop, "deleted": True}, f"deleted {_plain(a.loop)}")


store = Command(
    description="List, show, verify, export, back up and change the loops of a store.",
    examples="""\
examples:
  armlet store shop.db list                          the loops, with counts
  armlet store shop.db show homepage                 its terms, arms and alarms
  armlet store shop.db verify                        prove all loops by a full replay
  armlet store shop.db export homepage log.parquet   for evaluate, fit and others
  armlet store shop.db backup copy.db
  armlet store shop.db forget homepage order-17
  armlet store shop.db prune --before 90d
  armlet store shop.db change homepage --window 3600 --default-reward 0
  armlet store shop.db change homepage --control sale --share 0.1
  armlet store shop.db promote homepage
  armlet store shop.db delete homepage --yes

list, show, verify, export and backup read next to the process that has the store open. The others change a
file, and need that process to stop, or the same call from inside it.
""",
    arguments=(STORE,),
    actions={
        "to read, also next to the process that has the store open": (
            Listed("list", "name the loops, with counts", list_loops),
            Listed("show", "say what a loop is and how it does", show),
            Listed("verify", "prove loops by replaying all their rows", verify),
            Listed("export", "write the log of a loop as a file", export),
            Listed("backup", "copy the store as it is at one moment", backup),
        ),
        "to change": (
            Listed("change", "change terms, features, arms, guards or the policy", change),
            Listed("freeze", "let a policy decide from what it knows now", freeze),
            Listed("thaw", "use what was learned while a loop was frozen", thaw),
            Listed("promote", "let a shadow of a loop play, if it passes the gate", promote),
            Listed("forget", "unlearn decisions and delete all about them", forget),
            Listed("prune", "delete old decisions that did not explore, in all loops", prune),
            Listed("delete", "delete a loop with all its rows", delete),
        ),
    },
)
