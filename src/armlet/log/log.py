"""The log of a running bandit: every call that changes it, appended to a file as it happens; and resumed from it.

A decision costs one line of JSON, a reward a shorter one. Every `CHECKPOINT` events there is a checkpoint: a digest of
the bandit's state, and a seal of the lines since the last one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, get_args, overload

from armlet.actions.decision import ActionDecision
from armlet.bandit import Bandit
from armlet.disk import check_path, give_up_in_children, write_new
from armlet.errors import InvalidTypeError, InvalidValueError, LogError, suggesting
from armlet.kernel import Decision, Decisions, Lines, commit, json_bytes
from armlet.loading import EitherBandit, check_kind, from_bytes, load
from armlet.log.action_tables import Tables
from armlet.log.reader import LogFile, last_stretch, log_html, read_file
from armlet.log.relearning import Relearning
from armlet.log.replaying import replay
from armlet.log.writer import Flush, Journal
from armlet.record.arms import ArmLabels
from armlet.record.block import Block
from armlet.record.contradictions import ACTION_SCHEMA, SCHEMA
from armlet.record.faults import InvalidEventError, MissingFileError, check_ordinary, explain, reading
from armlet.record.jsonl import is_beginning
from armlet.record.kinds import FORMAT, RESERVED
from armlet.record.values import Event
from armlet.types import Policy

if TYPE_CHECKING:
    from armlet.actions.table import ActionTable
    from armlet.log.parquet import ParquetLog
    from armlet.recording import Values

CHECKPOINT: Final = 1000  # events from one digest of the state to the next


class NoteError(LogError, ValueError):
    """A note has a field that a log cannot take."""


class Log(ArmLabels):
    """Every change of a bandit, in a file: `armlet.Bandit(..., log=armlet.Log("decisions.jsonl"))`.

    The file holds no seed. The model that the bandit started from, which does, is written next to it, readable by its
    owner alone: `start_path`. Close the log, or use it in a `with` block, so that its last state is written down.

    Parameters
    ----------
    path
        Of a file of JSON lines, made if it is not there. A log that is there is continued, by the bandit in the state
        in which it ends. To be read only, it may also be a compacted log, .parquet.
    flush
        "block": lines go to the system by blocks, and the last ones are lost if the process is killed. "line": every
        call returns after its line is with the system. "disk": after it is on the disk.

    Examples
    --------
    >>> import tempfile, pathlib, armlet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.jsonl"
    >>> with armlet.Log(path) as log:
    ...     bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1, log=log)
    ...     bandit.learn(bandit.decide([1.0]), 0.5)
    >>> [event["kind"] for event in armlet.Log(path)]
    ['start', 'decide', 'learn', 'checkpoint']
    """

    @suggesting("Log")
    def __init__(self, path: str | os.PathLike[str], *, flush: Flush = "block") -> None:
        if flush not in get_args(Flush):
            raise InvalidValueError(f"flush is {flush!r}; choose one of {', '.join(map(repr, get_args(Flush)))}")
        if not isinstance(path, str | os.PathLike) or not Path(path).name:
            raise InvalidTypeError(f"path is {path!r}; give the name of a file, such as 'decisions.jsonl'")
        check_path("path", path)
        self.path = Path(path)
        self._flush = flush
        self.lock = threading.RLock()
        """The one lock of the log and of its bandit, which holds it around every change and its record."""
        give_up_in_children(self)
        self._journal: Journal | None = None
        self._digest: Callable[[], str] | None = None
        self._replayed: tuple[int, str] | None = None  # so many events, and the digest of the state that they lead to
        self._tables = Tables()  # of actions, as far as readers keep them

    # ---- reading

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def start_path(self) -> Path:
        """Where the model is that the log starts from, seed included: keep it private."""
        return start_beside(self.path)

    @property
    def about(self) -> Mapping[str, Any]:
        """The fields of the start."""
        return self.file().about

    def __iter__(self) -> Iterator[Event]:
        """Yield the events, including those that are not with the system yet."""
        return iter(self.file())

    def blocks(self) -> Iterator[Block]:
        """Yield the events in blocks of columns."""
        return self.file().blocks()

    def file(self) -> LogFile | ParquetLog:
        """Return the reader of the file, with all that has happened so far in it."""
        with self.lock:
            if self._journal is not None and self._journal.refusal is None:
                self._journal.lines.write()
        return read_file(self.path)

    # ---- what a bandit calls, which holds the lock

    def open(self, start: bytes, about: Mapping[str, Any], digest: Callable[[], str] | None = None) -> None:
        """Begin the log of a bandit, or continue it if the bandit is in the state in which the log ends.

        Parameters
        ----------
        start
            The bandit as bytes.
        about
            Arms, features, policy and the like, and the `digest` of its state.
        digest
            Returns the digest of the state at any later time.
        """
        with self.lock:
            if self._journal is not None:
                raise LogError(f"{self.name} is the log of another bandit already; give each a log of its own")
            if self.path.suffix == ".parquet":
                raise LogError(
                    f"{self.name} is a compacted log, which is for reading; begin a new one, such as log.jsonl"
                )
            journal = Journal(self.path, self._flush)
            try:
                if journal.size and not self._is_unborn():
                    self._continue(journal, about)
                else:
                    self._begin(journal, start, about)
                journal.lines.due = journal.sealed + CHECKPOINT
                self._finish = weakref.finalize(self, _let_go, journal, self.lock)
                self._journal, self._digest = journal, digest
            except BaseException:
                journal.close()
                self._journal = None
                raise

    def check_start_model(self) -> None:
        """Refuse a log whose start model is missing."""
        if not self.start_path.exists():
            raise MissingFileError(f"{self.start_path.name}, which {self.name} starts from, is missing; bring it back")

    def expect(self, events: int, digest: str) -> None:
        """Assume that so many events lead to a state, as a replay has found; `open` need not replay them again."""
        self._replayed = (events, digest)

    def _is_unborn(self) -> bool:
        """Whether a crash left the file while the log was begun: no more than its start, and no start model."""
        if os.path.lexists(self.start_path):
            return False
        with self.path.open("rb") as file:
            return is_beginning(file)

    def _begin(self, journal: Journal, start: bytes, about: Mapping[str, Any]) -> None:
        """Write the start line, then the start model: a log without any is one that nothing was decided in yet."""
        schema = ACTION_SCHEMA if "action_dim" in about else SCHEMA
        fields = {"format": FORMAT, "schema": schema, **about, "start_model": hashlib.sha256(start).hexdigest()}
        try:
            journal.begin(start)
            journal.append("start", fields)
            journal.lines.write()
            write_new(self.start_path, start, 0o600)
        except BaseException as error:
            if not isinstance(error, FileExistsError) and _holds(self.start_path, start):
                self.start_path.unlink()  # interrupted after it was written
            journal.remove()
            if isinstance(error, FileExistsError):
                text = f"{self.start_path.name} is there but its log is not; move it away, or bring the log back"
                raise LogError(text) from None
            if isinstance(error, OSError) and not isinstance(error, LogError):
                text = f"{self.start_path.name} cannot be written: {explain(error)}; nothing was begun"
                raise LogError(text) from error
            raise

    def _continue(self, journal: Journal, about: Mapping[str, Any]) -> None:
        self.check_start_model()
        stretch = last_stretch(self.path)
        expected = stretch.digest or self._state_after(stretch.seq)
        if about["digest"] != expected:
            raise LogError(
                f"{self.name} ends in another state than this bandit's; continue it with armlet.log.resume, or begin a "
                "new log"
            )
        journal.follow(stretch, self.start_path.read_bytes())
        if stretch.digest is None:
            journal.checkpoint(lambda: expected)

    def _state_after(self, events: int) -> str:
        if self._replayed is not None and self._replayed[0] == events:
            return self._replayed[1]
        bandit = load(self.start_path)
        replay(LogFile(self.path), bandit)
        return bandit.digest()

    @property
    def lines(self) -> Lines | None:
        """Where the kernel writes the record of a change, in one step with it; None if a subclass may have a say."""
        return self._begun().lines if type(self) is Log else None

    def check(self, kind: str, many: Sequence[Event]) -> None:
        """Refuse events that their kind does not allow."""
        self._begun().check(kind, list(many))

    def on_actions(self, table: ActionTable, name: str | None = None) -> None:
        """Append the table of the next decision, or one that was prepared under a name, unless readers keep it."""
        events, values = self.table_change(table, name)
        commit(self._begun().lines, events, values)

    def table_change(
        self, table: ActionTable, name: str | None = None, *, is_used: bool = False
    ) -> tuple[list[tuple[str, Event]], Values]:
        """Return the events that tell a table, if readers do not keep it, and what the log knows with them.

        Parameters
        ----------
        table, name
            As in `on_actions`.
        is_used
            Whether a decision that chooses from it comes next.
        """
        fields, after = self._tables.fields(table, name), self._tables
        events: list[tuple[str, Event]] = []
        if fields is not None:
            try:
                json_bytes(fields)
            except (UnicodeError, TypeError) as error:  # of labels, which nobody could read back
                raise LogError(f"a table of actions cannot be written: {explain(error)}; give other labels") from error
            self.check("actions", [fields])
            events.append(("actions", fields))
            after = after.after_taking(table, name)
        if is_used:
            after = after.after_using(table)
        return events, () if after is self._tables else ((self, "_tables", after),)

    def on_decision(self, decision: Decision | ActionDecision) -> None:
        """Append a decision."""
        self._append_all("decide", [decision.to_dict()], self._using([decision]))
        self.seal_if_due(is_decision=True)

    def on_decisions(self, decisions: Decisions | Sequence[ActionDecision]) -> None:
        """Append the decisions of a batch, all or none."""
        self._append_all("decide", [decision.to_dict() for decision in decisions], self._using(decisions))
        self.seal_if_due(is_decision=True)

    def _using(self, decisions: Iterable[Decision | ActionDecision]) -> Values:
        """Return that readers meet the tables of decisions with them."""
        after = self._tables
        for decision in decisions:
            if isinstance(decision, ActionDecision) and decision.actions is not None:
                table = after.find(decision.actions)
                after = after if table is None else after.after_using(table)
        return () if after is self._tables else ((self, "_tables", after),)

    def tables_without(self, name: str) -> Values:
        """Return what the log knows once a prepared table is removed."""
        return ((self, "_tables", self._tables.after_dropping(name)),)

    def on_event(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Append what else changes a bandit."""
        known = self.tables_without(fields["name"]) if kind == "remove_table" else ()
        self._append_all(kind, [fields if type(fields) is dict else dict(fields)], known)

    def on_events(self, kind: str, many: Sequence[Mapping[str, Any]]) -> None:
        """Append several events of a kind, all or none."""
        self._append_all(kind, [dict(fields) for fields in many])

    def _append_all(self, kind: str, many: list[Event], values: Values = ()) -> None:
        journal = self._begun()
        journal.check(kind, many)
        commit(journal.lines, [(kind, fields) for fields in many], values)

    def seal_if_due(self, is_decision: bool) -> None:
        """Write a checkpoint if a decision has come after enough events, and keep no more than is to be sealed."""
        journal = self._begun()
        if not journal.lines.is_due(is_decision):
            return
        with contextlib.suppress(LogError):  # the event before it is logged: the next one brings it, or the error
            journal.absorb()
            if self._digest is not None and is_decision and journal.lines.seq >= journal.lines.due:
                journal.checkpoint(self._digest)
                journal.lines.due = journal.sealed + CHECKPOINT

    def _begun(self) -> Journal:
        return self._journal or self._refuse()

    def _refuse(self) -> NoReturn:
        raise LogError(f"{self.name} has no bandit yet; give it to one: armlet.Bandit(..., log=log)")

    def relearning(self, policy: Policy | None = None) -> Relearning:
        """Return the bandit that the log leads to so far without the rows that were taken back. O(events).

        Parameters
        ----------
        policy
            The policy, if it is not one of Armlet's own.
        """
        self.check_start_model()
        return Relearning(self.file(), lambda: load(self.start_path, policy=policy), self.flush)

    # ---- what a user may call

    def note(self, decision: Decision | ActionDecision | str, **fields: object) -> None:
        """Add what is known of a decision next to its reward; it changes nothing in the bandit.

        Parameters
        ----------
        decision
            A decision or its id.
        fields
            Such as `outcomes={"latency": 0.2}`, which nothing learns, or `source="checkout"`: plain JSON types. A log
            keeps the names `id`, `seq`, `kind`, `at` and `crc` for itself.
        """
        if taken := sorted(RESERVED & fields.keys()):
            raise NoteError(f"a note has a field {taken[0]!r}, which is the log's own; give it another name")
        if not isinstance(name := getattr(decision, "id", decision), str):
            raise NoteError(f"decision is {decision!r}; give a decision or its id")
        try:
            with self.lock:
                self._append_all("note", [{"id": name, **fields}])
        except InvalidEventError as error:
            raise NoteError(f"a note cannot be written: {error.why}") from error
        except (ValueError, TypeError) as error:
            raise NoteError(f"a note cannot be written: {explain(error)}") from error

    def flush(self) -> None:
        """Pass all lines that wait to the system."""
        with self.lock:
            if self._journal is not None:
                self._journal.lines.write()

    def sync(self) -> None:
        """Have all lines on the disk."""
        with self.lock:
            if self._journal is not None:
                self._journal.lines.write()
                self._journal.lines.sync()

    def close(self) -> None:
        """Write the last state down, seal it, and let go of the file; the bandit refuses to go on after that."""
        with self.lock:
            journal = self._journal
            if journal is None:
                return
            if journal.refusal is None and self._digest is not None and not journal.is_closed:
                journal.checkpoint(self._digest, closing=True)
            journal.close()
            self._digest = None
            self._finish.detach()

    def forked(self) -> None:
        """Take a lock that no thread of the parent holds, in a child; the file is the parent's."""
        self.lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        journal = self._journal
        flush = "" if self._flush == "block" else f", flush={self._flush!r}"
        if journal is None:
            return f"Log({str(self.path)!r}{flush})"
        state = "open" if journal.refusal is None else "closed"
        return f"Log({str(self.path)!r}{flush}, events={journal.lines.seq}, {state})"

    def _repr_html_(self) -> str:
        return log_html(repr(self), self.path, self.file)


def start_beside(path: Path) -> Path:
    """Return the path of a log's start model: next to it, with the ending .start.armlet.

    Examples
    --------
    >>> start_beside(Path("decisions.jsonl")).name
    'decisions.start.armlet'
    """
    return path.with_name(f"{path.stem}.start.armlet")


def _let_go(journal: Journal, lock: threading.RLock) -> None:
    """Close a log that nobody else does, at the latest when the process ends."""
    if journal.refusal is None:  # else it is closed, or the parent's: a thread of it may have held the lock
        with lock:
            journal.close()
    else:
        journal.let_go()


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


@overload
def resume(log: Log | str | os.PathLike[str], *, policy: Policy | None = None) -> Bandit: ...
@overload
def resume(
    log: Log | str | os.PathLike[str], *, kind: type[EitherBandit], policy: Policy | None = None
) -> EitherBandit: ...
def resume(
    log: Log | str | os.PathLike[str], *, kind: type[EitherBandit] | None = None, policy: Policy | None = None
) -> Bandit | EitherBandit:
    """Replay a log from its start model, and return the bandit that goes on with it. O(events).

    Pending decisions are learned as those of any other process: `armlet.Decision.from_dict`.

    Parameters
    ----------
    log
        A log of JSON lines that nobody writes, or its path; its start model must be next to it.
    kind
        `armlet.Bandit` or `armlet.ActionBandit`, as in `armlet.load`: type checkers expect a Bandit if it is left out.
    policy
        The policy, if it is not one of Armlet's own.

    Examples
    --------
    >>> import tempfile, pathlib, armlet
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "decisions.jsonl"
    >>> log = armlet.Log(path, flush="line")
    >>> bandit = armlet.Bandit(["a", "b"], 1, policy=armlet.ContextualEpsilonGreedy(p=4), seed=1, log=log)
    >>> decision = bandit.decide([1.0])
    >>> log.close()
    >>> with armlet.Log(path) as log:
    ...     again = armlet.log.resume(log)
    ...     again.learn(armlet.Decision.from_dict(decision.to_dict()), 0.5)
    """
    if not isinstance(log, Log):
        log = Log(log)
    check_ordinary(log.path, "log")
    log.check_start_model()
    with reading(log.start_path.name):
        bandit: Any = load(log.start_path, policy=policy)
    check_kind(bandit, kind, log.start_path.name)
    log.expect(replay(LogFile(log.path), bandit), bandit.digest())
    again: Any = from_bytes(bandit.to_bytes(), policy=policy, log=log)
    return again  # type: ignore[no-any-return]
