"""The last turns of a service as one document, and back: a test can play the decisions again.

``api.recorded`` makes it of the turns in ``scheduler.loop.recorder``, and takes the secrets out;
``tests/simulation/replay.py`` reads it. It begins with a whole state: the stored part, and the part
that memory alone holds (offers in hand, reports, reconciliation). Pure; it plays nothing
itself.
"""

from __future__ import annotations

import json
import math
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any, NamedTuple

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.kept.codec import RecordError
from dcos_tensorflow.core.kept.restore import roster_of
from dcos_tensorflow.core.model.actions import Action, Write
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.job import JobState
from dcos_tensorflow.core.model.service_state import LaunchSettings, OfferDesk, ServiceState, Told
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.records import dataclass

FORMAT = 1
#: What stands for the key of the tasks' tokens, which no document has.
NO_KEY = "00" * 32
#: A document may ask for no more tasks: their names are made before anything is played.
MOST_TASKS = 200_000
_EVENTS: Mapping[str, Any] = {kind.__name__: kind for kind in typing.get_args(Event)}
#: JSON has no number that is none: such an object stands for it.
_NOT_FINITE = "float"


class RecordedTurn(NamedTuple):
    """What one turn was given, and what was decided. No dataclass: one is made at every turn."""

    id: str
    #: Unix seconds.
    now: float
    events: Sequence[Event]
    writes: Sequence[Write]
    actions: Sequence[Action]
    why: str


@dataclass(frozen=True)
class Recording:
    """Turns that follow each other without a gap."""

    #: As it was before the first of them.
    state: ServiceState
    turns: tuple[RecordedTurn, ...]


@dataclass(frozen=True)
class PlayedTurn:
    """A turn as a document tells of it. ``decided`` is as ``decided`` makes it."""

    id: str
    #: Unix seconds.
    now: float
    events: tuple[Event, ...]
    decided: Mapping[str, Any]


def document(recording: Recording) -> dict[str, Any]:
    """Return a recording as JSON has it, with every secret that is in it but the token key."""
    state = recording.state
    state = replace(
        state,
        settings=replace(state.settings, token_key=NO_KEY),
        # It is made of the offers, and nothing depends on the ones before it.
        desk=replace(state.desk, table=None),
    )
    turns = [
        {
            "id": turn.id,
            "now": turn.now,
            "events": [[type(event).__name__, event] for event in turn.events],
            "decided": decided(turn.writes, turn.actions, turn.why),
        }
        for turn in recording.turns
    ]
    whole = {"format": FORMAT, "state": state, "turns": turns}
    plain: dict[str, Any] = _finite(codec.to_plain(whole))
    return plain


def decided(writes: Iterable[Write], actions: Iterable[Action], why: str) -> dict[str, Any]:
    """Return a decision as JSON has it, to be compared with another."""
    plain: dict[str, Any] = _finite(
        codec.to_plain(
            {
                "writes": {write.path: _written(write.value) for write in writes},
                "actions": [[type(action).__name__, action] for action in actions],
                "why": why,
            }
        )
    )
    return plain


def read(plain: Any) -> tuple[ServiceState, tuple[PlayedTurn, ...]]:
    """Return the state that a document begins with, and its turns. Raises RecordError."""
    if not isinstance(plain, dict) or not isinstance(plain.get("turns"), list):
        raise RecordError("it is no recording of turns")
    if plain.get("format") != FORMAT:
        raise RecordError(f"its format is {plain.get('format')!r}, not {FORMAT}")
    plain = _floats(plain)
    state = _state(plain.get("state"))
    return state, tuple(
        _turn(turn, f"turns[{number}]") for number, turn in enumerate(plain["turns"])
    )


def specs(plain: Mapping[str, Any]) -> list[Any]:
    """Return every ServiceSpec in a document, as JSON has it, in an order that is always so."""
    state = plain["state"]
    changed = [
        event["spec"]
        for turn in plain["turns"]
        for name, event in turn["events"]
        if name == "ConfigurationChanged"
    ]
    return [state["spec"], *state["former_options"].values(), *changed]


def spec_of(plain: Any) -> ServiceSpec:
    """Return one of them as a value. Raises RecordError."""
    found: ServiceSpec = codec.from_plain(ServiceSpec, _floats(plain), "ServiceSpec")
    return found


def _written(value: bytes | None) -> Any:
    """Return what is written as what it says: nearly all of it is JSON."""
    text = None if value is None else value.decode()
    try:
        return json.loads(text) if text is not None else None
    except ValueError:
        return text


def _turn(plain: Any, where: str) -> PlayedTurn:
    if not isinstance(plain, dict) or not isinstance(plain.get("events"), list):
        raise RecordError("expected a turn with its events", where)
    events = []
    for number, each in enumerate(plain["events"]):
        at = f"{where}.events[{number}]"
        if not (isinstance(each, list) and len(each) == 2 and each[0] in _EVENTS):
            raise RecordError("expected the name of an event, and the event", at)
        events.append(codec.from_plain(_EVENTS[each[0]], each[1], f"{at}.{each[0]}"))
    return PlayedTurn(
        codec.from_plain(str, plain.get("id"), f"{where}.id"),
        codec.from_plain(float, plain.get("now"), f"{where}.now"),
        tuple(events),
        codec.from_plain(dict, plain.get("decided"), f"{where}.decided"),
    )


def _state(plain: Any) -> ServiceState:
    values = _values(ServiceState, plain, "state", apart={"gangs", "desk"})
    spec, reports = values["spec"], values.get("told", Told()).reports
    if sum(max(role.count, 0) for role in spec.roles) > MOST_TASKS:
        raise RecordError(f"it asks for more tasks than {MOST_TASKS}", "state.spec")
    settings = replace(values.get("settings", LaunchSettings()), token_key=NO_KEY)
    gangs = {}
    for name, gang in _items(plain, "gangs"):
        where = f"state.gangs.{name}"
        found = _values(Gang, gang, where, apart={"tasks"})
        records = [
            codec.from_plain(TaskRecord, record, f"{where}.tasks.{task}")
            for task, record in _items(gang, "tasks")
        ]
        roster = roster_of(spec, found.get("job", JobState()), name)
        gangs[name] = Gang(tasks=TaskTable(roster, records, reports), **found)
    desk = OfferDesk(**_values(OfferDesk, plain.get("desk"), "state.desk", apart={"table"}))
    return ServiceState(**{**values, "settings": settings, "gangs": gangs, "desk": desk})


def _values(kind: type, plain: Any, where: str, apart: Collection[str]) -> dict[str, Any]:
    """Return the fields of a dataclass but those that are read apart. Raises RecordError."""
    if not isinstance(plain, dict):
        raise RecordError("expected an object", where)
    # What the type of a table is, placement alone knows.
    hints = typing.get_type_hints(kind, localns={"AgentTable": type(None)})
    known = {field.name for field in fields(kind)}
    # What came later has its default in what an older release has recorded.
    needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    for odd, why in ((plain.keys() - known, "unknown"), (needed - plain.keys(), "missing")):
        if odd:
            raise RecordError(f"field {min(odd)!r} is {why}", where)
    return {
        name: codec.from_plain(hints[name], item, f"{where}.{name}")
        for name, item in plain.items()
        if name not in apart
    }


def _items(plain: Any, name: str) -> Iterable[tuple[str, Any]]:
    found = plain.get(name)
    if not isinstance(found, dict):
        raise RecordError("expected an object", name)
    return found.items()


def _finite(plain: Any) -> Any:
    if isinstance(plain, dict):
        return {name: _finite(item) for name, item in plain.items()}
    if isinstance(plain, list):
        return [_finite(item) for item in plain]
    if isinstance(plain, float) and not math.isfinite(plain):
        return {_NOT_FINITE: repr(plain)}
    return plain


def _floats(plain: Any) -> Any:
    """Return what ``_finite`` was given."""
    if isinstance(plain, dict):
        if plain.keys() == {_NOT_FINITE} and plain[_NOT_FINITE] in ("nan", "inf", "-inf"):
            return float(plain[_NOT_FINITE])
        return {name: _floats(item) for name, item in plain.items()}
    if isinstance(plain, list):
        return [_floats(item) for item in plain]
    return plain
