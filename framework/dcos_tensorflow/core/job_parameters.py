"""The parameters of a job's code beside its options: JOB_CONTEXT and PARAM_*.

The hyperparameters of one training and the parameters of a trial reach the code in the same way
(docs/job-contract.md). Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core.spec.service_spec import Shape, TaskRole

#: What the name of a parameter's variable begins with.
PREFIX = "PARAM_"
#: The roles of which a parameter may be an option, as options call them ...
ROLES = {
    "parameter_server": TaskRole.PS,
    "chief": TaskRole.CHIEF,
    "worker": TaskRole.WORKER,
    "gpu_worker": TaskRole.GPU_WORKER,
}
#: ... and these options.
SHAPING = ("count", "cpus", "mem", "disk", "gpus")


def variables(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables of parameters: ``learning_rate`` is PARAM_LEARNING_RATE.

    Text is its own value, all else is written as JSON. Raises TypeError for what JSON cannot say.
    """
    return {variable(name): text(value) for name, value in parameters.items()}


def variable(name: str) -> str:
    """Return the name of a parameter's variable."""
    return PREFIX + re.sub(r"\W", "_", name, flags=re.ASCII).upper()


def option_of_role(name: str) -> tuple[TaskRole, str] | None:
    """Return which option of which role a parameter is by its name, as ``worker.cpus``, if any."""
    group, dot, option = name.partition(".")
    role = ROLES.get(group)
    return (role, option) if dot and role is not None else None


def shape_of(parameters: Mapping[str, Any]) -> Shape:
    """Return the shape of the slots that a trial with these parameters goes to."""
    found = ((option_of_role(name), value) for name, value in parameters.items())
    return tuple(sorted((*told, value) for told, value in found if told is not None))


def text(value: Any) -> str:
    """Return a parameter's value as the value of a variable. Raises TypeError."""
    return value if isinstance(value, str) else json.dumps(value)
