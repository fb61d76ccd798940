"""The last turns of a service without its secrets, to be taken along with a report of a defect.

Used by ``api.app`` for an operator. Secrets are hidden in the input of a turn and in its
output alike, so that it still plays (``core.kept.recording``): ids that are made of options are
made anew of those in which secrets are hidden, wherever they stand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import Response

from dcos_tensorflow.api.redaction import in_environments, redact, secret_values
from dcos_tensorflow.api.verbs import Reply
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.kept import recording
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.kept.recording import Recording
from dcos_tensorflow.core.model.events import ConfigurationChanged
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, Shape


def record(state: ServiceState, recorded: Recording | None, secrets: Iterable[str]) -> Reply:
    """Answer with what is recorded. ``secrets`` are those that are known beside the state's."""
    if recorded is None:
        return Reply(409, {"message": "nothing is recorded yet: ask again in a moment"})
    known = frozenset(secrets)
    return Reply(
        200,
        {"message": f"recorded {counted(len(recorded.turns), 'turn')}"},
        then=lambda: Response(_text(state, recorded, known), media_type="application/json"),
    )


def _text(state: ServiceState, recorded: Recording, secrets: frozenset[str]) -> str:
    whole = recording.document(recorded)
    for spec in _specs(recorded):
        secrets |= secret_values(state, in_environments(spec))
    hidden = redact(whole, secrets)
    _tell_apart(whole, hidden)
    text = json.dumps(hidden, allow_nan=False)
    for before, after in _made_anew(whole, hidden, _shapes(recorded.state)).items():
        text = text.replace(before, after)
    return text


def _tell_apart(whole: Mapping[str, Any], hidden: Mapping[str, Any]) -> None:
    """Let variables that had different secrets differ: options that change one are others.

    Of a secret that stands in another option (a command line) the change alone is not played.
    """
    numbers: dict[str, int] = {}
    for before, after in zip(recording.specs(whole), recording.specs(hidden), strict=True):
        for was, role in zip(before["roles"], after["roles"], strict=True):
            for name, value in role["env"].items():
                secret = was["env"].get(name, value)
                number = numbers.setdefault(secret, len(numbers)) if secret != value else 0
                role["env"][name] = f"{value} {number}" if number else value


def _specs(recorded: Recording) -> list[ServiceSpec]:
    state = recorded.state
    changed = [
        event.spec
        for turn in recorded.turns
        for event in turn.events
        if isinstance(event, ConfigurationChanged)
    ]
    return [state.spec, *state.former_options.values(), *changed]


def _shapes(state: ServiceState) -> set[Shape]:
    """Return what slots are shaped to, and may be."""
    units = (state.units.shape(unit.number) for unit in state.units)
    return {(), *(gang.job.shape for gang in state.gangs.values()), *units}


def _made_anew(
    whole: Mapping[str, Any], hidden: Mapping[str, Any], shapes: Iterable[Shape]
) -> dict[str, str]:
    """Return the ids that are made of options, by what they were before secrets were hidden."""
    found: dict[str, str] = {}
    for before, after in zip(recording.specs(whole), recording.specs(hidden), strict=True):
        if before != after:
            old, new = recording.spec_of(before), recording.spec_of(after)
            found[configuration_id(old)] = configuration_id(new)
            for shape in shapes:
                shaped = new.shaped(shape).fingerprints
                found |= {
                    fingerprint: shaped[role]
                    for role, fingerprint in old.shaped(shape).fingerprints.items()
                }
    return found
