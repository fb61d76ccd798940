"""Takes the secrets of tasks out of the words of tasks, before these are kept or passed on.

Used by ``scheduler.scheduler`` for all that comes from a task: its runner's reports, its status
updates, the evidence in its sandbox. A job that fails says its secrets aloud; its words go into the
state store, the log, traces and the history of runs. Masking knows only the secrets that this
process has read: not those of a store that Mesos alone asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from dcos_tensorflow.core.model.events import Event, EvidenceFound, TaskUpdate

#: Stands for a secret wherever something is shown or kept.
REDACTED = "<redacted>"
#: Shorter values are words that would be masked everywhere by accident.
MIN_LENGTH = 6

T = TypeVar("T")


class Masking:
    """Masks what ``texts`` returns: the secrets that have been read by now."""

    def __init__(self, texts: Callable[[], Iterable[str]]) -> None:
        self._texts = texts

    def event(self, event: Event) -> Event:
        """Return an event without secrets in what a task has said."""
        match event:
            case TaskUpdate():
                return replace(event, message=self.value(event.message))
            case EvidenceFound():
                said = (event.summary, list(event.last_lines), event.result, event.progress)
                summary, lines, result, progress = self.value(said)
                return replace(
                    event,
                    summary=summary,
                    last_lines=tuple(lines),
                    result=result,
                    progress=progress,
                )
        return event

    def value(self, value: T) -> T:
        """Return a value, as JSON has them, without secrets in its texts."""
        secrets = longest_first(self._texts())
        return _masked(value, secrets) if secrets else value


def longest_first(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return those that are long enough to be masked: one may be a part of another."""
    found = (secret for secret in secrets if len(secret) >= MIN_LENGTH)
    return tuple(sorted(found, key=len, reverse=True))


def masked_text(text: str, secrets: Iterable[str]) -> str:
    """Return a text with each secret in it masked; the longest is to come first."""
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, REDACTED)
    return text


def _masked(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return masked_text(value, secrets)
    if isinstance(value, Mapping):
        return {masked_text(str(k), secrets): _masked(v, secrets) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item, secrets) for item in value]
    return value
