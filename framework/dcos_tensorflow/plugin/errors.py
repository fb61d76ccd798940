"""What ends a command with a message instead of an answer."""

from __future__ import annotations


class CommandError(Exception):
    """A command that could not be carried out; the text is for the person who typed it."""


class NotNow(CommandError):
    """No scheduler answers for the service now; that may pass."""
