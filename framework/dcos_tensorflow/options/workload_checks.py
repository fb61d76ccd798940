"""Rules about sweeps and batches that span several options. Pure; called by ``cross_checks``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import prod

from dcos_tensorflow.core.job_parameters import variable
from dcos_tensorflow.core.model.workload_spec import MAX_PAYLOAD, Parameter
from dcos_tensorflow.options.errors import Finding
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.section import differing
from dcos_tensorflow.options.values import MAXIMUM_COUNT
from dcos_tensorflow.options.workload_values import parameter_of

_INPUTS = ("range", "s3_prefix", "manifest")
_INPUT_PATHS = tuple(f"batch.inputs.{name}" for name in _INPUTS)
_PARAMETERS, _METHOD, _TRIALS = "sweep.parameters", "sweep.method", "sweep.max_trials"
_TASKS = ("chief", "worker", "gpu_worker", "parameter_server")
#: What a payload has beside its parameters: its folder, what it measures.
_BESIDE_PARAMETERS = 400


def parameters(options: Options) -> tuple[Parameter, ...]:
    """Return the parameters of the sweep; none where there is no sweep."""
    return tuple(parameter_of(name, told) for name, told in options.sweep.parameters.items())


def given_inputs(options: Options) -> tuple[str, ...]:
    """Return the kinds of input that the batch names; none where there is no batch."""
    return tuple(name for name in _INPUTS if getattr(options.batch.inputs, name))


def workload_findings(options: Options) -> Iterator[Finding]:
    """Yield what is wrong with options about units each of which is right in itself."""
    sweep, batch = bool(options.sweep.parameters), bool(given_inputs(options))
    if sweep and batch:
        path = f"batch.inputs.{given_inputs(options)[0]}"
        told = "a service is a sweep or a batch, and sweep.parameters asks for a sweep"
        yield Finding(path, told, "one of the two", (_PARAMETERS, *_INPUT_PATHS))
    elif sweep:
        yield from _sweep(options)
        yield from _beside(options, "trial", "sweep")
    elif batch:
        yield from _batch(options)
        yield from _beside(options, "shard", "batch")
    if not sweep and (differing(options.sweep) or differing(options.sweep.objective)):
        yield Finding(
            _PARAMETERS,
            "there is nothing to try: no parameter is named",
            'such as {"learning_rate": {"log_uniform": [0.0001, 0.1]}}',
            (_PARAMETERS,),
        )
    if not batch and (differing(options.batch) or differing(options.batch.inputs)):
        yield Finding(
            "batch.inputs",
            "there is nothing to work on: no input is named",
            f"one of {', '.join(_INPUT_PATHS)}",
            _INPUT_PATHS,
        )


def _sweep(options: Options) -> Iterator[Finding]:
    sweep, metric = options.sweep, "sweep.objective.metric"
    if not sweep.objective.metric.strip():
        yield Finding(
            metric,
            "is needed: it says how good a trial is",
            "the name of a number that the job tells, such as val_accuracy",
            (metric,),
        )
    found = parameters(options)
    names: dict[str, str] = {}
    for parameter in found:
        other = names.setdefault(variable(parameter.name), parameter.name)
        if other != parameter.name:
            told = f"is {variable(other)} in the environment, and so is {other}"
            yield Finding(f"{_PARAMETERS}.{parameter.name}", told, "", (_PARAMETERS,))
    # They stand in the environment and in the context.
    length = sum(2 * (len(p.name) + _longest(p)) + 20 for p in found)
    if length > MAX_PAYLOAD - _BESIDE_PARAMETERS:
        most = MAX_PAYLOAD - _BESIDE_PARAMETERS
        told = f"need up to {length} bytes in what is kept of each trial"
        yield Finding(_PARAMETERS, told, f"at most {most}: fewer or shorter ones", (_PARAMETERS,))
    if sweep.method == "grid":
        yield from _grid(options, found)


def _grid(options: Options, found: tuple[Parameter, ...]) -> Iterator[Finding]:
    endless = [parameter.name for parameter in found if parameter.count() is None]
    for name in endless:
        yield Finding(
            f"{_PARAMETERS}.{name}",
            "has no end of values, and a grid tries all of them",
            "a list of values, int or quantised; or sweep.method random or tpe",
            (_PARAMETERS, _METHOD),
        )
    if endless:
        return
    size, wanted = prod(parameter.count() or 1 for parameter in found), options.sweep.max_trials
    if size > MAXIMUM_COUNT:
        told = f"a grid of them has {size} combinations"
        yield Finding(_PARAMETERS, told, f"at most {MAXIMUM_COUNT}", (_PARAMETERS, _METHOD))
    elif wanted is not None and wanted > size:
        told = f"is more than the grid has combinations, which is {size}"
        yield Finding(_TRIALS, told, f"at most {size}", (_TRIALS, _PARAMETERS, _METHOD))


def _longest(parameter: Parameter) -> int:
    return max((len(json.dumps(value)) for value in parameter.choices), default=24)


def _beside(options: Options, unit: str, service: str) -> Iterator[Finding]:
    """Refuse what follows one training, where tasks go from one unit to the next."""
    if options.evaluator.count:
        path = "evaluator.count"
        told = f"an evaluator follows the checkpoints of one training, and each {unit} is another"
        yield Finding(path, told, f"0 in a {service}: let the code evaluate", (path,))
    for group in _TASKS:
        path = f"{group}.persistent_volume"
        role = getattr(options, group)
        if role.count and role.persistent_volume:
            told = f"each {unit} goes to whichever task is free, and would find the others' files"
            yield Finding(path, told, f"false in a {service}", (path, f"{group}.count"))


def _batch(options: Options) -> Iterator[Finding]:
    kinds = given_inputs(options)
    if len(kinds) > 1:
        told = f"batch.inputs.{kinds[0]} is set, too, and a batch has one kind of input"
        yield Finding(f"batch.inputs.{kinds[1]}", told, "one of them", _INPUT_PATHS)
    if not options.batch.output:
        told = "is needed: where the shards' output is written"
        yield Finding("batch.output", told, "such as output/part-{index}", ("batch.output",))
    tasks = {group: getattr(options, group).count for group in _TASKS}
    if sum(tasks.values()) > 1:
        most = max(tasks, key=lambda group: tasks[group])
        paths = tuple(f"{group}.count" for group in _TASKS)
        told = f"a shard is worked on by one task, and here there are {sum(tasks.values())}"
        allowed = "1 in all; batch.parallelism says how many shards are worked on at a time"
        yield Finding(f"{most}.count", told, allowed, paths)
