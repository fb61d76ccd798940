"""Decides how the user's code in the sandbox is to be started.

``main`` calls it once before the first start, the command line before there is a task. ``job_code``
reads the code.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterable, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.agreement import Tasks
from dcos_tensorflow.job_code.main_function import Main, Takes, read_main
from dcos_tensorflow.job_code.modules import Found, JobUnusable, find_module, offer, subdirectories
from dcos_tensorflow.task.spec import JobCode, RunnerSpec

#: The role that is a member of no cluster (``core.spec.service_spec.TaskRole.EVALUATOR``).
EVALUATOR = "evaluator"


def find_contract(job: JobCode, sandbox: str, role: str = "") -> Found:
    """Return how ``job`` is to be started from ``sandbox`` by a task of ``role``.

    Raises JobUnusable: nothing to run, module missing or ambiguous or no Python, a contract that
    was asked for and is not fulfilled, a function for an evaluator, a context that is no JSON
    object.
    """
    python_path = _python_path(job, sandbox)
    kind = job.contract
    if kind in contract.CONTRACTS_BESIDE:
        return Found(kind, python_path)
    if kind == contract.CONTRACT_COMMAND or (kind == contract.CONTRACT_AUTO and job.command):
        if not job.command.strip():
            raise JobUnusable("The contract is command, but service.job_cmd is empty")
        return Found(contract.CONTRACT_COMMAND, python_path, command=job.command)
    module = find_module(job.name, python_path)
    python_path = tuple(dict.fromkeys((module.root, *python_path)))
    main = read_main(module, python_path)
    takes = main.takes
    if takes is Takes.SHARD and kind in (contract.CONTRACT_AUTO, contract.CONTRACT_FUNCTION):
        parse_context(job.context)
        return Found(contract.CONTRACT_SHARDS, python_path, module)
    guess = ""
    if kind == contract.CONTRACT_AUTO:
        guess = _guess(main, os.path.relpath(module.file, sandbox))
        with_server = takes is Takes.SERVER
        kind = contract.CONTRACT_FUNCTION if with_server else contract.CONTRACT_SCRIPT
    if kind == contract.CONTRACT_FUNCTION:
        if takes is Takes.NOTHING:
            raise JobUnusable(
                f"{os.path.relpath(module.file, sandbox)} has no main(server, log_dir, context), "
                "which the function contract calls",
                "define it, or leave service.job_contract at auto to run the file as a script",
            )
        if role == EVALUATOR:
            raise JobUnusable(
                f"An evaluator cannot run main(server, log_dir, context) of {module.name}: it is "
                "not in the cluster, so it would get a server of its own and train alone",
                "bring the job as a script or a command, whose code looks at the task's type in "
                "TF_CONFIG and evaluates where it is evaluator, or set evaluator.count to 0",
            )
        parse_context(job.context)
    return Found(kind, python_path, module, guess=guess)


def _guess(main: Main, file: str) -> str:
    """Return what is told of a ``main`` that may be meant otherwise; empty where it is plain."""
    if not main.why:
        return ""
    if main.takes is Takes.SERVER:
        done, other = "is called with a server, as main(server, log_dir, context)", "script"
    else:
        done, other = "is run as a script", "function"
    return f"{file} {done}, because {main.why}; service.job_contract {other} changes that."


def parse_context(text: str) -> Dict[str, Any]:
    """Return the job's context; empty text is an empty one. Raises JobUnusable otherwise."""
    try:
        context = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise JobUnusable(f"service.job_context is not JSON: {error}") from None
    if not isinstance(context, dict):
        raise JobUnusable('service.job_context must be a JSON object such as {"steps": 100}')
    return context


def tasks_of(spec: RunnerSpec, variables: Iterable[str]) -> Tasks:
    """Return the tasks that run the code, as far as the one of ``spec`` is told of the others.

    Any of ``variables``, its environment, may be another one's elsewhere.
    """
    jobs = (spec.cluster.tf_config or {}).get("cluster", {})
    return Tasks(
        servers=len(jobs.get("ps", ())),
        chiefs=len(jobs.get("chief", ())),
        workers=len(jobs.get("worker", ())),
        evaluators=int(spec.role == EVALUATOR),
        variables=frozenset(variables),
    )


def _python_path(job: JobCode, sandbox: str) -> Tuple[str, ...]:
    wanted = os.path.normpath(os.path.join(sandbox, job.path)) if job.path else sandbox
    if not os.path.isdir(wanted) and job.contract not in contract.CONTRACTS_BESIDE:
        raise JobUnusable(
            f"service.job_path is {job.path!r}, but the sandbox has no such directory",
            offer(job.path, sorted(subdirectories(sandbox))),
        )
    return tuple(dict.fromkeys((wanted, sandbox)))
