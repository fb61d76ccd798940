"""Which tasks come by default though the options do not name them, and which do not.

The published package runs two parameter servers and three workers if the options do not name them:
its ``config.json`` carries these counts. Elsewhere a kind of task comes only where the options name
its section, with a count or without; one worker comes where nothing else would train. ``loading``
applies that to what it reads; a refusal of a job names these tasks by it. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.options.errors import OptionProblem
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.sections.section import GROUP_OF_ROLE, Section

_SECTIONS: Mapping[str, type[Section]] = {
    group: annotation
    for group in GROUP_OF_ROLE.values()
    if isinstance(annotation := Options.model_fields[group].annotation, type)
    and issubclass(annotation, Section)
    and "count" in annotation.model_fields
}
#: How many tasks of a kind the published package runs unasked; none of all others.
PUBLISHED_COUNTS: Mapping[str, int] = {
    group: count
    for group, section in _SECTIONS.items()
    if (count := section.model_fields["count"].default) > 0
}


def with_published_defaults(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` with every section named that brings tasks by its published default."""
    return {**values, **{group: {} for group in PUBLISHED_COUNTS if group not in values}}


def only_asked(options: Options) -> Options:
    """Return ``options`` without the tasks of sections that they do not name.

    What was given stays the same: a section that was not named is not named by this either.
    """
    others = options.chief.count + options.gpu_worker.count
    counts = {"parameter_server": 0, "worker": 0 if others else 1}
    sections = {
        group: getattr(options, group).model_copy(update={"count": counts[group]})
        for group in unnamed(options)
    }
    found = options.model_copy(update=sections)
    found.model_fields_set.intersection_update(options.model_fields_set)
    return found


def unnamed(options: Options) -> tuple[str, ...]:
    """Return the sections that the options do not name, of those with a published count."""
    return tuple(group for group in PUBLISHED_COUNTS if group not in options.model_fields_set)


def came_by_default(options: Options) -> str:
    """Return which tasks come by the published default, as a sentence; empty where none do."""
    found = [
        _counted(group, count)
        for group, count in PUBLISHED_COUNTS.items()
        if group in options.model_fields_set
        and "count" not in getattr(options, group).model_fields_set
    ]
    if not found:
        return ""
    paths = " and ".join(f"{group}.count" for group in PUBLISHED_COUNTS)
    return f"{' and '.join(found)} come by the published default; {paths} say how many."


def lost(options: Options, spec: ServiceSpec) -> list[OptionProblem]:
    """Return a problem for each kind of task of ``spec`` that ``options`` do not speak of.

    A running task never ends because its options say nothing: to end it they say 0.
    """
    found = []
    for group in unnamed(options):
        runs = sum(role.count for role in spec.roles if GROUP_OF_ROLE[role.role] == group)
        wanted = getattr(options, group).count
        if runs > wanted:
            message = f"the options do not name {group}, and {_counted(group, runs)} run"
            allowed = f"the number that is meant; {wanted} ends the others"
            found.append(OptionProblem(f"{group}.count", message, "nothing", allowed))
    return found


def given_count(group: str, named: Collection[str]) -> str:
    """Return what stands in for the count of a section that says none."""
    if group not in named:
        return "nothing"
    return f"nothing: {_counted(group, PUBLISHED_COUNTS[group])} come by the published default"


def _counted(group: str, count: int) -> str:
    return counted(count, group.replace("_", " "))
