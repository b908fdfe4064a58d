"""The command `armlet`, one file a command."""

from armlet.cli.parser import main

__all__ = ["main"]
