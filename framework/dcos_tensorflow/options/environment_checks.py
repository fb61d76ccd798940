"""What an environment for tasks may hold.

Used by ``cross_checks`` for the options and by ``environment`` for the TASKCFG_* variables. Pure;
values are never shown: they may be secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dcos_tensorflow.core import contract
from dcos_tensorflow.options.document import text_flaw
from dcos_tensorflow.options.errors import HIDDEN, Finding

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
                where,
                f"{name} is set by the service: {why}",
                "any other name",
                looked_at,
                "",
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
