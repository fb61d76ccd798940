"""The facts of a job's code before its start, where the code lies on this machine.

Called by ``preparation``. It refuses code that the task runner would refuse in its sandbox, by the
same rules (``job_code.agreement``), and notes the doubts of these rules.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
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
from dcos_tensorflow.job_code import agreement
from dcos_tensorflow.job_code.agreement import Tasks
from dcos_tensorflow.job_code.arguments import ALWAYS, NEVER, option_of, parameters_in
from dcos_tensorflow.job_code.facts import Facts, job_strategy, put_under_strategy, read_facts
from dcos_tensorflow.job_code.modules import Found, JobUnusable
from dcos_tensorflow.job_code.names import LEGACY_KERAS_VARIABLE
from dcos_tensorflow.task.python.contracts import find_contract
from dcos_tensorflow.task.python.python_environments import is_ready, users_directory
from dcos_tensorflow.task.python.python_packages import (
    Base,
    pinned_tensorflow,
    requirements_wanted,
    tensorflow_wanted,
    this_python,
)
from dcos_tensorflow.task.spec import JobCode
from untrusted_input import trees
from untrusted_input.archives import is_archive

_SWEEP = "sweep.parameters"


def inspect_code(spec: ServiceSpec, source: Path | None) -> SeenCode:
    """Return what is seen of the code in ``source``. Raises UsageError when it cannot run."""
    if source is None:
        return SeenCode(spec.job.contract)
    job = JobCode(
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
                facts = put_under_strategy(facts, has_servers=bool(tasks.servers))
            agreement.check(found.contract, facts, tasks)
            _check_parameters(spec, found.contract, facts)
            named = named_tensorflow(spec, found, str(root))
        except JobUnusable as error:
            text = f"{error}; {error.hint}" if error.hint else str(error)
            raise UsageError(sentence(f"the job in {source} cannot run: {text}")) from error
    guess = (found.guess,) if found.guess else ()
    told = (*guess, *agreement.doubts(found.contract, facts, tasks))
    told += tuple(parameter_notes(spec, found.contract, facts))
    strategy = job_strategy(found, facts, has_servers=bool(tasks.chiefs and tasks.servers))
    return SeenCode(found.contract, strategy, facts, told, named)


def _check_parameters(spec: ServiceSpec, kind: str, facts: Facts) -> None:
    """Raise JobUnusable where all code was read, and nothing of it reads what a sweep tries."""
    names = dict(_parameters(spec)).get(_SWEEP, [])
    unread = [] if facts.hidden else _passed_and_unread(names, spec, kind, facts)[1]
    if unread:
        first = unread[0]
        raise JobUnusable(
            f"{facts.code} does not read {listed(unread)} of the sweep: neither JOB_CONTEXT nor"
            f" {listed([variable(name) for name in unread])}, and it parses no such argument, so"
            " that all trials would be the same",
            f'name it in an argument, "{{{first}}}" in service.job_args or behind -- of a script;'
            f" or parse --{first} in the code (argparse, absl, click, typer, fire)",
        )


def parameter_notes(spec: ServiceSpec, kind: str, facts: Facts) -> Iterator[str]:
    """Yield which parameters reach a script as arguments, and which the code is not seen to read.

    ``kind`` is how it is called. Of code that does more than can be read, this is said of a sweep
    alone, whose trials would be the same.
    """
    for option, names in _parameters(spec):
        passed, unread = _passed_and_unread(names, spec, kind, facts)
        if passed:
            arguments = ", ".join(passed.values())
            yield (
                f"{option}: {they(passed, 'go')} to {facts.code} as {arguments}"
                f" (service.parameters_as_arguments: {spec.job.parameters_as_arguments})."
            )
        if unread and (not facts.hidden or option == _SWEEP):
            variables = [variable(name) for name in unread]
            yield (
                f"{option}: {facts.code} is not seen to read {listed(unread)}: neither"
                f" JOB_CONTEXT nor {listed(variables)}, and it parses no such argument."
                + (f" Not all of it can be read: {facts.hidden}." if facts.hidden else "")
            )


def _parameters(spec: ServiceSpec) -> Iterator[tuple[str, list[str]]]:
    """Yield the options that name parameters for the code, and the parameters of each.

    What an argument names has its place.
    """
    work = spec.workload
    if isinstance(work, SweepSpec):
        named = {name for argument in spec.job.arguments for name in parameters_in(argument)}
        names = [p.name for p in work.parameters if option_of_role(p.name) is None]
        yield _SWEEP, [name for name in names if name not in named]
    try:
        context = json.loads(spec.job.context)
    except ValueError:
        return
    yield "service.job_context", list(context) if isinstance(context, dict) else []


def _passed_and_unread(
    names: Sequence[str], spec: ServiceSpec, kind: str, facts: Facts
) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the arguments that parameters reach the code as, and those that it does not read.

    ``kind`` is how it is called: a function is called with all of them.
    """
    if kind in (contract.CONTRACT_FUNCTION, contract.CONTRACT_SHARDS):
        return {}, []
    mode = spec.job.parameters_as_arguments if kind == contract.CONTRACT_SCRIPT else NEVER
    passed = {name: argument for name in names if (argument := _argument(name, facts, mode))}
    return passed, [n for n in names if n not in passed and not _reads(facts, n)]


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
    if spec.job.under_strategy:
        # It is put under Keras 2, whatever it imports, or refused where there is none.
        return ()
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


def named_tensorflow(spec: ServiceSpec, found: Found, root: str) -> str:
    """Return the version of TensorFlow that requirements name exactly; empty for none.

    The code that is started as ``found`` lies below ``root``. Raises JobUnusable for requirements
    that no task could install.
    """
    lines = next((r.packages.requirements for r in spec.roles if r.packages.requirements), ())
    if not lines:
        return ""
    wanted = requirements_wanted(lines, Base("", ()), found.python_path, root)
    return pinned_tensorflow(wanted.content)


def environments_are_there(directory: Path, version: str, gpus: Sequence[int]) -> bool:
    """Say whether tasks of this machine, with so many GPUs each, find TensorFlow of ``version``.

    It was made for others of this user then, in ``directory``.
    """
    place, base = users_directory(str(directory)), this_python()
    return all(is_ready(place, base, tensorflow_wanted(version, n, "")) for n in set(gpus))
