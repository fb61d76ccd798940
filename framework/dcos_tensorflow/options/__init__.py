"""The user's options: their models, their validation, and the ServiceSpec that they become.

``load`` reads options and refuses bad ones with all their mistakes; ``service_spec`` makes the
ServiceSpec of them; ``effective`` and ``notes`` are for showing; ``json_schema``
describes an options file; ``task_environment`` reads the SDK's TASKCFG_* variables.

They are imported when they are used: many callers only name errors of options and
never read any, and the models take longer to import than all of a scheduler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dcos_tensorflow.options.errors import HIDDEN, OptionProblem, OptionsError
    from dcos_tensorflow.options.loading import given_part, load
    from dcos_tensorflow.options.models import Options
    from dcos_tensorflow.options.schema import json_schema
    from dcos_tensorflow.options.sections.environment import task_environment
    from dcos_tensorflow.options.service import (
        as_given,
        effective,
        notes,
        service_spec,
        with_task_environment,
    )

__all__ = [
    "HIDDEN",
    "OptionProblem",
    "Options",
    "OptionsError",
    "as_given",
    "effective",
    "given_part",
    "json_schema",
    "load",
    "notes",
    "service_spec",
    "task_environment",
    "with_task_environment",
]

#: The module of each of them.
_PLACES = {
    **dict.fromkeys(("HIDDEN", "OptionProblem", "OptionsError"), "errors"),
    **dict.fromkeys(("given_part", "load"), "loading"),
    **dict.fromkeys(("as_given", "effective", "notes", "service_spec"), "service"),
    "Options": "models",
    "json_schema": "schema",
    "task_environment": "sections.environment",
    "with_task_environment": "service",
}


def __getattr__(name: str) -> object:
    """Return what is asked for by name; raises AttributeError for all else."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
