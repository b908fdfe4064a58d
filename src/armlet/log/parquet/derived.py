"""Columns of a compacted log that repeat what events say, such as the last reward, held against those events.

People and `evaluate` read these columns, so an audit must look at them. Two passes; memory holds what the events beside
the rows say of decisions: corrections, rewards learned twice, and the last note of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from armlet.log.lines import DamagedLineError, parse
from armlet.log.parquet.layout import Layout, is_plain_learn
from armlet.log.schema import Event

REWARD: Final = ("reward", "weight", "learned_seq", "rewarded_at", "learned_crc", "first_reward")
Row: TypeAlias = tuple[Event, Event | None, dict[str, Any]]
NOTE: Final = ("outcomes", "source", "unit", "epoch")


def reward_columns(first: Event | None, last: Event | None, crc: int | None) -> dict[str, Any]:
    """Give the columns that say what a decision earned.

    Parameters
    ----------
    first
        The event in which its reward was learned, if one did.
    last
        The last event that changed it, if there is one after that.
    crc
        The check value of the first one.
    """
    row: dict[str, Any] = dict.fromkeys(REWARD)
    if first is None:
        return row
    row |= {"reward": first["reward"], "weight": first["weight"]}
    row |= {"learned_seq": first["seq"], "rewarded_at": first["at"]}
    row["learned_crc"] = crc if is_plain_learn(first) else None
    if last is not None:
        row["first_reward"] = first["reward"]
        row["reward"] = {"correct": last.get("new_reward"), "learn": last.get("reward")}.get(last["kind"])
    return row


def note_columns(note: Event | None) -> dict[str, Any]:
    """Give the columns that hold the last note of a decision."""
    if note is None:
        return dict.fromkeys(NOTE)
    outcomes = json.dumps(note["outcomes"]) if "outcomes" in note else None
    return {"outcomes": outcomes, **{name: note.get(name) for name in NOTE[1:]}}


class _Told(NamedTuple):
    """What the events beside the rows say of one decision."""

    first: Event | None = None
    last: Event | None = None
    note: Event | None = None


def check_columns(layout: Layout, rows: Iterator[Row], beside: Iterator[bytes], name: str) -> None:
    """Refuse rows whose columns say something else than the events.

    Parameters
    ----------
    layout
        Of the file.
    rows
        Every decision, its reward's event and its row.
    beside
        The lines of the events that have no row.
    name
        Of the file, for the error.
    """
    told = _told(beside, name)
    for decision, reward, row in rows:
        about = told.get(decision["id"], _Told())
        first, last = (about.first, about.last) if reward is None else (reward, about.last or about.first)
        wanted = reward_columns(first, last, row["learned_crc"]) | note_columns(about.note)
        if row["line"] is not None:
            wanted |= layout.row(decision, row["crc"])
        for column, value in wanted.items():
            if row[column] != value:
                why = f"its column {column} is {row[column]!r}, but by its events {value!r}"
                raise DamagedLineError(name, row["seq"], "decide", why)


def _told(lines: Iterator[bytes], name: str) -> dict[str, _Told]:
    told: dict[str, _Told] = {}
    for line in lines:
        event = parse(line, None, name)
        kind = event["kind"]
        if kind not in ("learn", "correct", "forget", "note"):
            continue
        before = told.get(event["id"], _Told())
        if kind == "note":
            kept: Event = {field: event[field] for field in NOTE if field in event}
            told[event["id"]] = before._replace(note=kept)
        elif kind == "learn" and before.first is None and before.last is None:
            told[event["id"]] = before._replace(first=event)
        else:
            told[event["id"]] = before._replace(last=event)
    return told
