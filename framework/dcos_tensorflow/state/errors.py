"""The errors of the state store, by the caller's remedy.

Raised by both backends and caught by the scheduler and the CLI. No text here ever carries a
password; addresses are shown without their credentials.
"""

from __future__ import annotations


class StateError(Exception):
    """Anything the state store refuses or fails to do."""


class BadStateUrl(StateError):
    """The URL of the store is not one of the allowed forms; the message lists them."""


class StateUnavailable(StateError):
    """The backend does not answer now; a later try may work.

    Raised by a commit, it leaves open whether the commit was applied: the same writes may be
    committed again, and other writes too, because every write sets a whole value.
    """


class StateAccessDenied(StateError):
    """The backend refuses these credentials, or this user may not write there."""


class StateStorageFull(StateUnavailable):
    """The disk is full; nothing of the commit was written. A later try may find room."""


class StateCorrupt(StateError):
    """What is stored cannot be read; the message says what to do about it."""


class StateTooNew(StateError):
    """The state was written by a newer release whose format this one does not know."""


class StateTooLarge(StateError):
    """A value is larger than any backend takes; the message names its path."""


class BadStatePath(StateError):
    """A path that no backend can store, or that would be a value and a folder at once."""


class FencedOut(StateError):
    """This process does not lead the service (any more): it must not write."""


class LeadershipTaken(StateError):
    """Another process leads the service; ``holder`` says which."""

    def __init__(self, service: str, holder: object, waited_seconds: float) -> None:
        super().__init__(
            f"service {service!r} is already led by {holder}; waited {waited_seconds:g} s. "
            "Stop that scheduler, or choose another service name"
        )
        self.service = service
        self.holder = holder
