"""TASKCFG_* variables of the scheduler's environment to the environment of tasks.

As in the DC/OS SDK: ``TASKCFG_ALL_X`` is ``X`` in all tasks, ``TASKCFG_<ROLE>_X`` is ``X`` in the
tasks of that role and wins over the former. The scheduler hands its environment in; nothing here
reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.options.environment_checks import environment_findings
from dcos_tensorflow.options.errors import OptionProblem, OptionsError

_PREFIX = "TASKCFG_"
_ALL = "ALL"

#: How a role is written in a variable's name: ours, and the published package's pod types.
_ROLE_NAMES = {
    **{role.upper().replace("-", "_"): role for role in TaskRole},
    "PARAMETER_SERVER": TaskRole.PS,
    "GPUWORKER": TaskRole.GPU_WORKER,
}


def task_environment(environ: Mapping[str, str]) -> dict[TaskRole, dict[str, str]]:
    """Return each role's environment as the TASKCFG_* variables in ``environ`` give it.

    Raises OptionsError for a role that does not exist and for a variable that the service sets
    itself.
    """
    everywhere: dict[str, str] = {}
    by_role: dict[TaskRole, dict[str, str]] = {role: {} for role in TaskRole}
    problems = []
    for name in sorted(environ):
        if not name.startswith(_PREFIX):
            continue
        word, variable = _split(name)
        if not word or not variable:
            problems.append(_unknown(name))
            continue
        problems += [
            OptionProblem(name, finding.message, "", finding.allowed)
            for finding in environment_findings("", {variable: environ[name]})
        ]
        (everywhere if word == _ALL else by_role[_ROLE_NAMES[word]])[variable] = environ[name]
    if problems:
        raise OptionsError(problems, "the environment")
    return {role: {**everywhere, **own} for role, own in by_role.items()}


def _split(name: str) -> tuple[str, str]:
    """Return the role's word and the variable's name; both empty when no role is named."""
    rest = name.removeprefix(_PREFIX)
    for word in (_ALL, *_ROLE_NAMES):
        if rest.startswith(word + "_"):
            return word, rest.removeprefix(word + "_")
    return "", ""


def _unknown(name: str) -> OptionProblem:
    rest = name.removeprefix(_PREFIX)
    word = rest.partition("_")[0]
    near = get_close_matches(word, [_ALL, *_ROLE_NAMES], n=1)
    suggestion = f"{_PREFIX}{near[0]}_{rest.partition('_')[2]}" if near else ""
    allowed = ", ".join(f"{_PREFIX}{word}_*" for word in (_ALL, *_ROLE_NAMES))
    return OptionProblem(name, "names no role of tasks and no variable", "", allowed, suggestion)
