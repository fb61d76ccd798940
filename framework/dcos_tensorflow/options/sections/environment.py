"""The environment of tasks: its allowed variables, and TASKCFG_* variables of the scheduler."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.options.document import text_flaw
from dcos_tensorflow.options.errors import HIDDEN, Finding, OptionProblem, OptionsError

#: Set for every task by the service; an own value would break the cluster or the job contract.
RESERVED_VARIABLES = {
    contract.TF_CONFIG: "it is made from the roles and their counts",
    contract.TF_EPOCH: "it is the number of the ClusterSpec",
    contract.LOG_DIR: "it follows from service.shared_filesystem and checkpoints.uri",
    contract.CHECKPOINT_DIR: "it follows from checkpoints.uri",
    contract.OUTPUT_DIR: "it lies where the checkpoints do",
    contract.JOB_CONTEXT: "it is service.job_context",
    contract.DATA_SHARD_INDEX: "it is the task's place among the workers",
    contract.DATA_SHARD_COUNT: "it is the number of workers",
    contract.TASK_NAME: "it is the task's name",
    contract.SERVICE_NAME: "it is service.name",
    contract.PROGRESS_FILE: "it is where the job reports its progress",
}

#: A job that sets one of these steers the task runner, not itself.
_RUNNER_PREFIX = "TASK_RUNNER_"

#: Stored and shown like everything in the options; boto3 reads them.
_KEYS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def reserved(name: str) -> str:
    """Return why no option sets this variable; '' for one that is free."""
    if name.startswith(_RUNNER_PREFIX):
        return "it belongs to the task runner"
    return RESERVED_VARIABLES.get(name, "")


def environment_findings(path: str, env: dict[str, str]) -> Iterator[Finding]:
    """Yield what is wrong with an environment for tasks; values are never shown."""
    for name, value in env.items():
        where = f"{path}.{name}"
        looked_at = (where,)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield Finding(
                where,
                "is not the name of an environment variable",
                "letters, digits and underscores, no digit first",
                looked_at,
                "",
            )
        elif why := reserved(name):
            yield Finding(
                where, f"{name} is set by the service: {why}", "any other name", looked_at, ""
            )
        elif name in _KEYS:
            yield Finding(
                where,
                "a key here would be stored and shown to everyone; s3.credentials names where "
                "keys are",
                "any other name",
                looked_at,
                "",
            )
        elif value == HIDDEN:
            mask = "is the mask that stands for a hidden value; give the value itself"
            yield Finding(where, mask, "", looked_at, "")
        elif flaw := text_flaw(value):
            yield Finding(where, flaw, "", looked_at, "")


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
