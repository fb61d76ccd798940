"""The options that each configuration was made of, kept beside it in the state store.

Used by ``scheduler.scheduler``. The core knows a service by its ServiceSpec; the options that its
author wrote are kept to be shown: they tell which options are in force after those of this process
were refused. Secrets are hidden in it before it gets here. Nothing is decided by it, so a document
that was lost is missing where it would be shown, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec

Document = Mapping[str, Any]

#: So many that were asked about and did not become the target are remembered.
_MOST_ASKED = 20


class OptionsDocuments:
    """See the module. ``note`` may be called from any thread, ``keep`` from one."""

    def __init__(self) -> None:
        self._asked: dict[str, Document] = {}
        self._stored: dict[str, Document] = {}

    def load(self, values: Mapping[str, bytes]) -> None:
        """Take over what the store holds; what cannot be read is of no use."""
        for path, value in values.items():
            folder, _, identifier = path.partition("/")
            if folder != paths.OPTIONS:
                continue
            try:
                found = json.loads(value)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                self._stored[identifier] = found

    def note(self, spec: ServiceSpec, document: Document) -> None:
        """Remember what a configuration was made of, should it become the target."""
        asked = {**self._asked, configuration_id(spec): document}
        self._asked = dict(list(asked.items())[-_MOST_ASKED:])

    def of(self, spec: ServiceSpec) -> Document:
        """Return the options that a configuration was made of; empty when they are not known."""
        identifier = configuration_id(spec)
        return self._asked.get(identifier) or self._stored.get(identifier) or {}

    def keep(self, state: ServiceState, commit: Callable[[Sequence[Write]], None]) -> None:
        """Let the store hold the options of ``state``'s configurations, and no others."""
        kept = dict.fromkeys((*state.configurations, configuration_id(state.spec)))
        wanted = {
            key: document
            for key in kept
            if (document := self._asked.get(key) or self._stored.get(key)) is not None
        }
        before = self._stored
        if wanted == before:
            return
        changed = (key for key, document in wanted.items() if before.get(key) != document)
        commit(
            [
                *(Write(paths.options(key), codec.encode(wanted[key])) for key in changed),
                *(Write(paths.options(key), None) for key in before if key not in wanted),
            ]
        )
        self._stored = wanted
