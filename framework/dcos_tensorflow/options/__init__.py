"""What the user asks for: the option models, their validation, and the ServiceSpec they become.

``load`` reads options and refuses bad ones with all that is wrong with them; ``service_spec`` makes
of them what the core works with; ``effective`` and ``notes`` are for showing; ``json_schema``
describes an options file; ``task_environment`` reads the SDK's TASKCFG_* variables.
"""

from dcos_tensorflow.options.environment import task_environment
from dcos_tensorflow.options.errors import HIDDEN, OptionProblem, OptionsError
from dcos_tensorflow.options.loading import given_part, load
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.schema_documents import json_schema
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
