"""What is seen of a job's code before its start, where it lies on this machine.

Called by ``preparation``. What the task runner would refuse in its sandbox is refused here, by the
same rules (``job_code.agreement``), and what those rules doubt is told.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.wording import sentence
from dcos_tensorflow.core import contract
from dcos_tensorflow.core.counted import listed, they
from dcos_tensorflow.core.job_parameters import PREFIX, option_of_role, variable
from dcos_tensorflow.core.spec.service_spec import TRAINING_ROLES, ServiceSpec, Strategy, TaskRole
from dcos_tensorflow.core.spec.workload_spec import SweepSpec
from dcos_tensorflow.deploy.job.deployment import SeenCode
from dcos_tensorflow.deploy.job.job_archive import unpack
from dcos_tensorflow.deploy.job.requirements import named_tensorflow
from dcos_tensorflow.job_code import agreement
from dcos_tensorflow.job_code.agreement import Tasks
from dcos_tensorflow.job_code.arguments import ALWAYS, NEVER, option_of
from dcos_tensorflow.job_code.facts import Facts, job_strategy, put_under_strategy, read_facts
from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.job_code.names import LEGACY_KERAS_VARIABLE
from dcos_tensorflow.task.python.contracts import find_contract
from dcos_tensorflow.task.spec import Job
from untrusted_input import trees
from untrusted_input.archives import is_archive


def look(spec: ServiceSpec, source: Path | None) -> SeenCode:
    """Return what is seen of the code in ``source``. Raises UsageError when it cannot run."""
    if source is None:
        return SeenCode(spec.job.contract)
    job = Job(
        contract=spec.job.contract,
        name=spec.job.name,
        path=spec.job.path,
        command=spec.job.command,
        context=spec.job.context,
    )
    tasks = tasks_of(spec)
    with _unpacked(source) as root:
        try:
            found = find_contract(job, str(root))
            facts = read_facts(found, str(root))
            if spec.job.under_strategy:
                facts = put_under_strategy(facts)
            agreement.check(found.contract, facts, tasks)
            named = named_tensorflow(spec, found, str(root))
        except JobUnusable as error:
            text = f"{error}; {error.hint}" if error.hint else str(error)
            raise UsageError(sentence(f"the job in {source} cannot run: {text}")) from error
    guess = (found.guess,) if found.guess else ()
    told = (*guess, *agreement.doubts(found.contract, facts, tasks))
    told += tuple(parameter_notes(spec, found.contract, facts))
    strategy = job_strategy(found, facts, has_servers=bool(tasks.chiefs and tasks.servers))
    return SeenCode(found.contract, strategy, facts, told, named)


def parameter_notes(spec: ServiceSpec, kind: str, facts: Facts) -> Iterator[str]:
    """Yield which parameters reach a script as arguments, and which the code is not seen to read.

    ``kind`` is how it is called. A function is called with all of them; of code that does more than
    can be read nothing is said.
    """
    if kind in (contract.CONTRACT_FUNCTION, contract.CONTRACT_SHARDS):
        return
    mode = spec.job.parameters_as_arguments if kind == contract.CONTRACT_SCRIPT else NEVER
    for option, names in _parameters(spec):
        passed = {name: argument for name in names if (argument := _argument(name, facts, mode))}
        if passed:
            arguments = ", ".join(passed.values())
            yield (
                f"{option}: {they(passed, 'go')} to {facts.code} as {arguments}"
                f" (service.parameters_as_arguments: {mode})."
            )
        unread = [name for name in names if name not in passed and not _reads(facts, name)]
        if unread and not facts.hidden:
            variables = [variable(name) for name in unread]
            yield (
                f"{option}: {facts.code} is not seen to read {listed(unread)}: neither"
                f" JOB_CONTEXT nor {listed(variables)}, and it parses no such argument."
            )


def _parameters(spec: ServiceSpec) -> Iterator[tuple[str, list[str]]]:
    """Yield the options that name parameters for the code, and the parameters of each."""
    work = spec.workload
    if isinstance(work, SweepSpec):
        names = [p.name for p in work.parameters if option_of_role(p.name) is None]
        yield "sweep.parameters", names
    try:
        context = json.loads(spec.job.context)
    except ValueError:
        return
    yield "service.job_context", list(context) if isinstance(context, dict) else []


def _argument(name: str, facts: Facts, mode: str) -> str:
    """Return the argument that a parameter reaches a script as; empty for none."""
    if mode == NEVER:
        return ""
    return option_of(name, facts.options) or (f"--{name}" if mode == ALWAYS else "")


def _reads(facts: Facts, name: str) -> bool:
    """Say whether the code may read a parameter: by its variable, or all parameters at once."""
    return any(
        found in (contract.JOB_CONTEXT, PREFIX, variable(name)) for found in facts.parameters
    )


def keras_notes(
    spec: ServiceSpec, code: SeenCode, versions: Mapping[TaskRole, str]
) -> tuple[str, ...]:
    """Return what to say of Keras in the TensorFlow that the training tasks run with."""
    legacy = (role.env.get(LEGACY_KERAS_VARIABLE, "0") for role in spec.roles)
    if spec.job.legacy_keras or any(value not in ("", "0", "False", "false") for value in legacy):
        return ()
    # Where a version is installed for the tasks, they get the Keras that the code needs, too.
    brought = {role.role for role in spec.roles if role.packages.tensorflow}
    roles = {*TRAINING_ROLES, TaskRole.PS} - brought
    trains = {versions.get(role, "") for role in roles}
    told = (
        agreement.keras_doubt(code.facts, tasks_of(spec), version) for version in sorted(trains)
    )
    return tuple(filter(None, told))


def tasks_of(spec: ServiceSpec) -> Tasks:
    """Return the tasks that run the job's code."""
    running = [role for role in spec.roles if role.role is not TaskRole.TENSORBOARD]
    given = [
        {**r.env, **r.sandbox_env, **{s.env: s.source for s in r.secrets if s.env}} for r in running
    ]
    names = {name for variables in given for name in variables}
    counts = {role.role: role.count for role in running}
    return Tasks(
        servers=counts.get(TaskRole.PS, 0),
        chiefs=counts.get(TaskRole.CHIEF, 0),
        workers=counts.get(TaskRole.WORKER, 0) + counts.get(TaskRole.GPU_WORKER, 0),
        evaluators=counts.get(TaskRole.EVALUATOR, 0),
        variables=frozenset(n for n in names if len({v.get(n) for v in given}) > 1),
        independent=spec.strategy is Strategy.INDEPENDENT,
    )


@contextmanager
def _unpacked(source: Path) -> Iterator[Path]:
    """Give the folder that a task would find of ``source``."""
    if source.is_dir():
        yield source
        return
    root = Path(tempfile.mkdtemp(prefix="dcos-tensorflow-"))
    try:
        if is_archive(source.name):
            unpack(source, root)
        else:
            shutil.copy(source, root)
        yield root
    finally:
        trees.remove(root)
