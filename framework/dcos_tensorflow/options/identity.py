"""The identity of a service, as far as its options tell, whatever else is wrong with them.

Asked where a service that exists must be found though its options cannot be read: to uninstall it,
and to go on with the options of before. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from dcos_tensorflow.options.models import Options

#: What Mesos knows a service by. The name comes first: without it there is no service.
_IDENTITY = ("name", "user", "mesos_role", "service_account", "region")


def identity(given: Mapping[str, Any]) -> Options | None:
    """Return defaults with what in ``given`` says who the service is; None without a name.

    What is wrong of it is left out, but for the name.
    """
    service = given.get("service", {})
    if not isinstance(service, Mapping):
        return None
    found = Options()
    kept: dict[str, Any] = {}
    for key in _IDENTITY:
        if key not in service:
            continue
        try:
            found = Options.model_validate({"service": {**kept, key: service[key]}})
        except (ValidationError, RecursionError):
            if key == "name":
                return None
        else:
            kept[key] = service[key]
    return found
