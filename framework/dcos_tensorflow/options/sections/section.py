"""The base of all option models, the rules for every group of options, and the groups of roles."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dcos_tensorflow.core.spec.service_spec import TaskRole


class Section(BaseModel):
    """A group of options. Strict: no unknown names, no text where a number belongs."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        hide_input_in_errors=True,
        # All are worked out at once, with the first options: group for group takes twice as long.
        defer_build=True,
    )


def differing(section: Section) -> set[str]:
    """Return the names in a group whose values are not their defaults."""
    return {
        name
        for name, field in type(section).model_fields.items()
        if getattr(section, name) != field.get_default(call_default_factory=True)
    }


def group(model: type[Section], description: str) -> Any:
    """Return the field of a group of options that may be left out as a whole.

    Defaults are not looked at, as those of single options: no group needs a validator of its own.
    """
    return Field(default_factory=model.model_construct, description=description)


#: The groups of options that describe a kind of task, in the order of ServiceSpec.roles.
GROUP_OF_ROLE = {
    TaskRole.PS: "parameter_server",
    TaskRole.CHIEF: "chief",
    TaskRole.WORKER: "worker",
    TaskRole.GPU_WORKER: "gpu_worker",
    TaskRole.EVALUATOR: "evaluator",
    TaskRole.TENSORBOARD: "tensorboard",
    TaskRole.DATA_DISPATCHER: "data_dispatcher",
    TaskRole.DATA_WORKER: "data_worker",
}
ROLE_GROUPS = tuple(GROUP_OF_ROLE.values())
