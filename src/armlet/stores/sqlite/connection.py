"""Connections to a file that may come from anybody: nothing that its schema says is run, and damage is looked for."""

from __future__ import annotations

from pathlib import Path

import apsw

_SETTINGS = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
)


def connect(path: Path, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
    """Open a file that is there, with triggers, views and functions of its schema switched off."""
    connection = apsw.Connection(str(path), flags=flags)
    try:
        for setting, value in _SETTINGS:
            connection.config(setting, value)
        connection.pragma("cell_size_check", True)
    except BaseException:
        connection.close()
        raise
    return connection
