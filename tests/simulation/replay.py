"""A recording of a scheduler's turns, played against the core as it is here.

``dcos-tensorflow state record --out FILE`` takes one along; ``python tests/simulation/replay.py
FILE`` says whether the core still decides the same, and where it does not: the turn, what it was
given, and which parts of the decision differ. Exits with 0, or 1 where something differs, or 2 for
a file that is no recording.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from dcos_tensorflow.api.redaction import redact
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.kept import recording
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.step import step
from dcos_tensorflow.scheduler.loop.turn import named_events
from untrusted_input.json_text import read_json

#: A larger file was not written by a scheduler.
MOST_BYTES = 500_000_000
#: So many parts of a decision are told.
MOST_PARTS = 10


class NoRecording(ValueError):
    """The file is none; the text says why."""


class Difference(NamedTuple):
    """A part of a decision that is another one now."""

    part: str
    recorded: object
    now: object

    def __str__(self) -> str:
        return f"{self.part}: recorded {_short(self.recorded)}, now {_short(self.now)}"


class DifferentTurn(NamedTuple):
    """A turn of which the core decides something else now, or fails."""

    turn: str
    #: When, in unix seconds.
    at: float
    #: What it was given, by names.
    events: Sequence[str]
    differences: Sequence[Difference]

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.at))
        shown = [str(each) for each in self.differences[:MOST_PARTS]]
        more = len(self.differences) - len(shown)
        rest = [f"and {counted(more, 'part')} more"] if more > 0 else []
        given = ", ".join(self.events)
        return "\n  ".join([f"turn {self.turn} ({when}), given {given}:", *shown, *rest])


def read(path: Path) -> tuple[ServiceState, Sequence[recording.PlayedTurn]]:
    """Return the state that a recording begins with, and its turns. Raises NoRecording."""
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise NoRecording(f"it has {size} bytes, and no recording has more than {MOST_BYTES}")
        return recording.read(read_json(path.read_bytes()))
    except (OSError, UnicodeDecodeError) as error:
        raise NoRecording(f"it cannot be read: {error}") from error
    except NoRecording:
        raise
    # What a hand has made of it may fail at any place where values are put together.
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise NoRecording(str(error) or type(error).__name__) from error


def play(state: ServiceState, turns: Sequence[recording.PlayedTurn]) -> Iterator[DifferentTurn]:
    """Yield the turns of which the core decides something else; it ends with one that fails."""
    for turn in turns:
        try:
            decision = step(state, turn.events, turn.now)
        except Exception as error:
            failed = Difference("step", "a decision", f"{type(error).__name__}: {error}")
            yield DifferentTurn(turn.id, turn.now, named_events(turn.events), (failed,))
            return
        now = recording.decided(decision.writes, decision.actions, decision.why)
        # Secrets are hidden in what was recorded: so they are in what is compared with it.
        found = tuple(_differences("", turn.decided, redact(now)))
        if found:
            yield DifferentTurn(turn.id, turn.now, named_events(turn.events), found)
        state = decision.state


def _differences(part: str, recorded: Any, now: Any) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in {**recorded, **now}:
            yield from _differences(
                f"{part}.{name}" if part else name, recorded.get(name), now.get(name)
            )
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for number, (one, other) in enumerate(zip(recorded, now, strict=True)):
            yield from _differences(f"{part}[{number}]", one, other)
    elif recorded != now:
        # A variable may hold a document: what differs is a part of that.
        documents = _document(recorded), _document(now)
        if None in documents:
            yield Difference(part, recorded, now)
        else:
            yield from _differences(part, *documents)


def _document(text: object) -> Any:
    try:
        found = read_json(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def main(arguments: Sequence[str]) -> int:
    """Play the file that is named, and print what differs."""
    if len(arguments) != 1:
        print("usage: python tests/simulation/replay.py FILE", file=sys.stderr)
        return 2
    try:
        state, turns = read(Path(arguments[0]))
    except NoRecording as error:
        print(f"{arguments[0]} is no recording: {error}", file=sys.stderr)
        return 2
    found = list(play(state, turns))
    told = f"{counted(len(turns), 'turn')} of {state.spec.name}"
    if not found:
        print(f"{told}: the core decides the same.")
        return 0
    print(f"{told}: the core decides something else in {counted(len(found), 'turn')}. The first:")
    print(found[0])
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
