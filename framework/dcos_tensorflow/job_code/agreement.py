"""Whether a job's code and the tasks that it is to run in go together. Pure.

The command line asks before the start, the task runner in its sandbox, with the same rules: code
that can only wait or fail is refused, a doubt is noted. Only code all of which
was read is ever refused.
"""

from __future__ import annotations

import re
from typing import FrozenSet, Iterator, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.facts import Facts, Named
from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.job_code.names import ESTIMATOR, MULTI_WORKER, PARAMETER_SERVER
from dcos_tensorflow.records import dataclass

#: From here on TensorFlow's Keras is Keras 3.
FIRST_WITH_KERAS_3 = (2, 16)
_CLASS_OF = {
    PARAMETER_SERVER: "ParameterServerStrategy",
    MULTI_WORKER: "MultiWorkerMirroredStrategy",
}
_NO_SERVERS = '"parameter_server": {"count": 0}'


@dataclass(frozen=True)
class Tasks:
    """How many tasks of each kind are to run the code; ``workers`` are those with GPUs, too.

    ``variables`` are those of the environment that may tell one of them from another. With
    ``independent`` the options have said that each trains by itself.
    """

    servers: int = 0
    chiefs: int = 0
    workers: int = 0
    evaluators: int = 0
    variables: FrozenSet[str] = frozenset()
    independent: bool = False


def check(kind: str, facts: Facts, tasks: Tasks) -> None:
    """Raise JobUnusable where code that is called as ``kind`` cannot train in ``tasks``."""
    for message, hint in _conflicts(kind, facts, tasks):
        if _is_sure(facts):
            raise JobUnusable(message, hint)


def doubts(kind: str, facts: Facts, tasks: Tasks) -> Tuple[str, ...]:
    """Return a sentence for each thing that may not be what was meant."""
    found = list(_doubts(kind, facts, tasks))
    if not _is_sure(facts):
        far = facts.hidden or "it makes a cluster of its own"
        found += [
            f"{why}, as far as the code can be read ({far}); if so, {hint}."
            for why, hint in _conflicts(kind, facts, tasks)
        ]
    return tuple(found)


def keras_doubt(facts: Facts, tasks: Tasks, version: str) -> str:
    """Return a sentence where Keras' own training cannot work in TensorFlow ``version``, or "".

    Measured: from 2.16 on, with Keras 3, ``fit`` fails under both strategies for several machines.
    Code that asks for Keras 2 itself is not doubted.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    together = tasks.servers + tasks.chiefs + tasks.workers > 1 and not tasks.independent
    strategies = facts.strategies & {PARAMETER_SERVER, MULTI_WORKER}
    if facts.keras_fit is None or facts.legacy_keras or not (together and strategies):
        return ""
    if numbers < FIRST_WITH_KERAS_3:
        return ""
    minor = ".".join(map(str, numbers))
    names = " or ".join(_CLASS_OF[strategy] for strategy in sorted(strategies))
    return (
        f"{facts.keras_fit.place} calls Keras' fit: under {names} that fails with the Keras 3 of"
        f" TensorFlow {version}; install tf_keras=={minor}.* beside it and set service.legacy_keras"
        " (TF_USE_LEGACY_KERAS=1; where the code imports keras, it must import tf_keras), or write"
        " the training loop yourself."
    )


def _is_sure(facts: Facts) -> bool:
    """Say whether the code does what its names mean: it may take a task for another's chief."""
    return not facts.hidden and not facts.own_cluster


def _conflicts(kind: str, facts: Facts, tasks: Tasks) -> Iterator[Tuple[str, str]]:
    """Yield what can only wait or fail, and what helps."""
    if kind == contract.CONTRACT_FUNCTION:
        yield from _strategy_in_function(facts, tasks)
        return
    yield from _estimator_without_chief(facts, tasks)
    if tasks.servers:
        # What a command runs beside the files that it names is anybody's guess.
        if facts.is_plain or kind == contract.CONTRACT_SCRIPT:
            yield from _plain_with_servers(facts, tasks)
        yield from _missing_roles(facts, tasks)


def _strategy_in_function(facts: Facts, tasks: Tasks) -> Iterator[Tuple[str, str]]:
    # Measured: it cannot listen where the function's server does, on one port after the other.
    together = tasks.servers + tasks.chiefs + tasks.workers > 1
    if together and facts.named and facts.strategy in (MULTI_WORKER, PARAMETER_SERVER):
        yield (
            f"main(server, log_dir, context) of {facts.code} is called with a server that listens"
            f" already, and {_named(facts.named)} starts one of its own on the same port",
            "bring it as a script, which trains when it is run: set service.job_contract to script,"
            ' and call main under if __name__ == "__main__"',
        )


def _plain_with_servers(facts: Facts, tasks: Tasks) -> Iterator[Tuple[str, str]]:
    if facts.cluster is None and facts.variables.isdisjoint(tasks.variables):
        servers = "the parameter server" if tasks.servers == 1 else "the parameter servers"
        yield (
            f"{facts.code} names no cluster, strategy or Server: {servers} would run it as a worker"
            " does, train alone, and serve no other task",
            f"set {_NO_SERVERS}, or use tf.distribute.ParameterServerStrategy, with"
            ' "chief": {"count": 1}',
        )


def _estimator_without_chief(facts: Facts, tasks: Tasks) -> Iterator[Tuple[str, str]]:
    together = tasks.servers + tasks.workers > 1 and not tasks.independent
    if facts.named and facts.named.name == ESTIMATOR and together and not tasks.chiefs:
        fewer = f' and "worker": {{"count": {tasks.workers - 1}}}' if tasks.workers > 1 else ""
        yield (
            f"{_named(facts.named)} needs a chief: an Estimator refuses a TF_CONFIG without one",
            f'set "chief": {{"count": 1}}{fewer}; the chief trains as a worker does',
        )


def _missing_roles(facts: Facts, tasks: Tasks) -> Iterator[Tuple[str, str]]:
    if facts.named is None:
        return
    named = _named(facts.named)
    if facts.strategy == MULTI_WORKER:
        yield f"{named} has no parameter servers, {tasks.servers} are wanted", f"set {_NO_SERVERS}"
    elif facts.strategy == PARAMETER_SERVER and not tasks.chiefs:
        yield (
            f"{named} needs a chief: without one all tasks serve and no task trains",
            'set "chief": {"count": 1}',
        )
    elif facts.strategy == PARAMETER_SERVER and not tasks.workers:
        yield f"{named} needs at least one worker beside the chief", 'set "worker": {"count": 1}'


def _doubts(kind: str, facts: Facts, tasks: Tasks) -> Iterator[str]:
    if kind == contract.CONTRACT_FUNCTION:
        return
    if facts.tf_config is not None:
        yield (
            f"{facts.tf_config.place} assigns TF_CONFIG in place of the one that each task finds:"
            " tasks then listen on ports that are not theirs, and wait for tasks that do not run;"
            " leave TF_CONFIG as you find it."
        )
    training = tasks.chiefs + tasks.workers
    alike = facts.is_plain and facts.variables.isdisjoint(tasks.variables)
    if alike and training > 1 and not tasks.servers and not tasks.independent:
        yield (
            f"{facts.code} names no cluster, strategy or Server: each of the {training} tasks does"
            " all of the work, into the same place; for one training use"
            ' tf.distribute.MultiWorkerMirroredStrategy, or set "worker": {"count": 1}; where each'
            " is meant to train by itself, set service.strategy to independent."
        )
    if tasks.evaluators and not facts.evaluator and not facts.hidden:
        yield (
            f"{facts.code} knows of no evaluator: the task evaluator would train, too; look at the"
            ' task\'s type in TF_CONFIG, or set "evaluator": {"count": 0}.'
        )
    if facts.strategy == PARAMETER_SERVER and training > 1 and not tasks.servers and facts.named:
        yield (
            f"{_named(facts.named)} needs parameter servers, and none is wanted;"
            ' set "parameter_server": {"count": 1} and "chief": {"count": 1}, where it is used.'
        )


def _named(name: Named) -> str:
    return f"{name.name} ({name.place})"
