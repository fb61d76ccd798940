"""The last output of tasks of a cluster elsewhere, kept where a local job's sandboxes are.

Once a job has ended its framework is gone, and that cluster's agents are asked no more. So the
process that served it leaves the last lines here, and ``following.task_output`` reads them as if
they were sandboxes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dcos_tensorflow.client.ending import Tail, link
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.contract import CONSOLE_FILE
from untrusted_input import trees

log = logging.getLogger(__name__)

_FILES = (CONSOLE_FILE, "stdout", "progress.jsonl")
#: Tasks of which something is kept, and how many are asked at a time.
_MOST_TASKS = 20
_READERS = 8


def keep_output(
    directory: ServiceDirectory, tasks: Mapping[str, Mapping[str, Any]], tail: Tail
) -> None:
    """Leave the last lines of the first tasks in the service's folder; what cannot be, is not.

    ``tasks`` are those of the job's document, by their names.
    """
    launched = [(n, task) for n, task in tasks.items() if task.get("task_id")][:_MOST_TASKS]
    trees.remove(directory.kept_output)
    with ThreadPoolExecutor(_READERS, thread_name_prefix="kept-output") as pool:
        told = list(pool.map(lambda one: _told(one[1], tail), launched))
    try:
        found = {
            name: _written(directory.kept_output, str(task["task_id"]), lines)
            for (name, task), lines in zip(launched, told, strict=True)
        }
        link(directory.task_logs, found)
    except OSError as error:
        log.warning("the output of the tasks is not kept: %s", error)


def _told(task: Mapping[str, Any], tail: Tail) -> dict[str, Sequence[str]]:
    found = {}
    for file in _FILES:
        try:
            found[file] = tail(task["agent_id"], task["task_id"], file)
        except Exception as error:
            # Whatever the cluster's files answer, the verdict stands.
            log.info("cannot read %s of %s: %s", file, task["task_id"], error)
    return found


def _written(folder: Path, task_id: str, files: Mapping[str, Sequence[str]]) -> Path:
    """Return where the lines lie: below a folder of the task's id, as in an agent's work."""
    run = folder / "executors" / task_id / "runs" / "last"
    run.mkdir(mode=0o700, parents=True)
    for name, lines in files.items():
        (run / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return run
