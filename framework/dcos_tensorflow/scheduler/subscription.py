"""The framework as the master knows it, kept in step with the options of a running service.

Used by ``scheduler.scheduler``. Mesos offers GPUs, and agents of other regions, only to frameworks
that say that they know them (FrameworkInfo.Capability). So the first options that want some need a
new subscription; without it their tasks would wait for offers that never come.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.step import Decision
from dcos_tensorflow.mesos.gateway import MesosGateway

log = logging.getLogger(__name__)

Json = Mapping[str, Any]


class FrameworkSubscription:
    """``describe`` makes the FrameworkInfo of a service and its framework id, empty for none."""

    def __init__(self, gateway: MesosGateway, describe: Callable[[ServiceSpec, str], Json]) -> None:
        self._gateway = gateway
        self._describe = describe
        self._spec: ServiceSpec | None = None
        #: What the master knows of, in the order in which it was told.
        self._told: tuple[str, ...] = ()

    @property
    def is_begun(self) -> bool:
        """Say whether the master was asked for a subscription."""
        return self._spec is not None

    def begin(self, spec: ServiceSpec, framework_id: str) -> None:
        """Subscribe as the framework of ``spec``."""
        info = self._describe(spec, framework_id)
        self._spec, self._told = spec, _capabilities(info)
        self._gateway.start(info)

    def follow(self, decision: Decision) -> None:
        """Subscribe anew where the options now ask for what the master was not told of.

        A capability once told stays: Mesos knows no way to take one back.
        """
        state = decision.state
        if self._spec is None or state.spec is self._spec:
            return
        self._spec = state.spec
        info = self._describe(state.spec, state.framework_id)
        new = [name for name in _capabilities(info) if name not in self._told]
        if not new:
            return
        log.info("the options ask for %s now: subscribing anew", ", ".join(new))
        self._told = (*self._told, *new)
        capabilities = [{"type": name} for name in self._told]
        self._gateway.change_framework({**info, "capabilities": capabilities})


def _capabilities(info: Json) -> tuple[str, ...]:
    return tuple(str(capability["type"]) for capability in info["capabilities"])
