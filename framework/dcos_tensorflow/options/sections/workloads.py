"""The units of a service, made of its options, and the rules about them.

``cross_checks`` asks for the rules, ``service`` for the units. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from dcos_tensorflow.options.models import Options

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice, product
from math import prod

from pydantic import ValidationError

from dcos_tensorflow.core.job_parameters import SHAPING, option_of_role, variable
from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from dcos_tensorflow.core.spec.workload_spec import (
    MAX_PAYLOAD,
    BatchSpec,
    EarlyStopping,
    Goal,
    Parameter,
    ParameterValue,
    SearchMethod,
    SweepSpec,
    WorkloadSpec,
    index_of,
    writes_below,
)
from dcos_tensorflow.job_code.arguments import parameters_in
from dcos_tensorflow.options import catalogue, document
from dcos_tensorflow.options.errors import Finding
from dcos_tensorflow.options.sections.placement import parse_placement
from dcos_tensorflow.options.sections.role_models import count_of, role_options
from dcos_tensorflow.options.sections.section import GROUP_OF_ROLE, Section, differing
from dcos_tensorflow.options.sections.values import MAXIMUM_COUNT
from dcos_tensorflow.options.sections.workload_models import (
    AUTO,
    INPUTS,
    Batch,
    Sweep,
    given_inputs,
    parameter_of,
)

_INPUT_PATHS = tuple(f"batch.inputs.{name}" for name in INPUTS)
_PARAMETERS, _METHOD, _TRIALS = "sweep.parameters", "sweep.method", "sweep.max_trials"
_TASKS = ("chief", "worker", "gpu_worker", "parameter_server")
#: Each of them may need slots of its own.
MOST_SHAPES = 64
_SIZES = "different sizes of a trial, and a slot has one"
#: What a payload has beside its parameters: its folder, what it measures.
_BESIDE_PARAMETERS = 400


def parameters(options: Options) -> tuple[Parameter, ...]:
    """Return the parameters of the sweep; none where there is no sweep."""
    return tuple(parameter_of(name, told) for name, told in options.sweep.parameters.items())


def shapes(options: Options) -> Iterator[tuple[Mapping[str, ParameterValue], Options]]:
    """Yield what trials may change of their roles, and the options of such a trial.

    None where they are all alike, or where it is wrong in itself what they change.
    """
    shaping = [p for p in parameters(options) if option_of_role(p.name) is not None]
    if not shaping or any(any(_shaping(options, parameter)) for parameter in shaping):
        return
    for values in islice(product(*(p.values() or () for p in shaping)), MOST_SHAPES):
        changed = dict(zip((p.name for p in shaping), values, strict=True))
        yield changed, with_values(options, changed)


def with_values(options: Options, values: Mapping[str, ParameterValue]) -> Options:
    """Return the options of a trial that has these of its own, by name: ``worker.cpus``."""
    sections: dict[str, Section] = {}
    for name, value in values.items():
        group, _, option = name.partition(".")
        section = sections.get(group, getattr(options, group))
        sections[group] = section.model_copy(update={option: value})
    return options.model_copy(update=sections)


def workload_findings(options: Options) -> Iterator[Finding]:
    """Yield what is wrong with options about units each of which is right in itself."""
    sweep, batch = bool(options.sweep.parameters), bool(given_inputs(options))
    if sweep and batch:
        path = f"batch.inputs.{given_inputs(options)[0]}"
        told = "a service is a sweep or a batch, and sweep.parameters asks for a sweep"
        yield Finding(path, told, "one of the two", (_PARAMETERS, *_INPUT_PATHS))
    elif sweep:
        yield from _sweep_findings(options)
        yield from _beside(options, "trial", "sweep")
    elif batch:
        yield from _batch_findings(options)
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


def _sweep_findings(options: Options) -> Iterator[Finding]:
    sweep, metric = options.sweep, "sweep.objective.metric"
    if not sweep.objective.metric.strip():
        yield Finding(
            metric,
            "is needed: it says how good a trial is",
            "the name of a number that the job tells, such as val_accuracy",
            (metric,),
        )
    yield from _in_arguments(options)
    found = parameters(options)
    names: dict[str, str] = {}
    for parameter in found:
        other = names.setdefault(variable(parameter.name), parameter.name)
        if other != parameter.name:
            told = f"is {variable(other)} in the environment, and so is {other}"
            yield Finding(f"{_PARAMETERS}.{parameter.name}", told, "", (_PARAMETERS,))
    # They stand in the environment and in the context, and what a size is of stands there, too.
    length = sum(
        (3 if option_of_role(p.name) else 2) * (len(p.name) + _longest(p) + 10) for p in found
    )
    if length > MAX_PAYLOAD - _BESIDE_PARAMETERS:
        most = MAX_PAYLOAD - _BESIDE_PARAMETERS
        told = f"need up to {length} bytes in the record of each trial"
        yield Finding(_PARAMETERS, told, f"at most {most}: fewer or shorter ones", (_PARAMETERS,))
    for parameter in found:
        yield from _shaping(options, parameter)
    counts = [parameter.count() or 1 for parameter in found if option_of_role(parameter.name)]
    if max(counts, default=1) <= MOST_SHAPES < prod(counts):
        told = f"ask for {prod(counts)} {_SIZES}"
        yield Finding(_PARAMETERS, told, f"at most {MOST_SHAPES}", (_PARAMETERS,))
    if sweep.method == "grid":
        yield from _grid(options, found)


def _in_arguments(options: Options) -> Iterator[Finding]:
    """Yield names in arguments that no trial fills in."""
    path, found = "service.job_args", options.sweep.parameters
    for name in dict.fromkeys(n for each in options.service.job_args for n in parameters_in(each)):
        if name not in found:
            near = get_close_matches(name, found, n=1)
            meant = f"; did you mean {{{near[0]}}}?" if near else ""
            told = f"{{{name}}} is no parameter of the sweep{meant}"
            places = ", ".join(f"{{{each}}}" for each in found)
            allowed = f"{places}, or {{{{{name}}}}} for the text {{{name}}}"
            yield Finding(path, told, allowed, (path, _PARAMETERS))
        elif None in parameter_of(name, found[name]).choices:
            told = f"{{{name}}} may be null, and a value here is always an argument"
            allowed = f"no {{{name}}}: service.parameters_as_arguments leaves null out"
            yield Finding(path, told, allowed, (path, _PARAMETERS))


def _shaping(options: Options, parameter: Parameter) -> Iterator[Finding]:
    """Say what is wrong with a parameter that is named like an option of a role."""
    group, _, option = parameter.name.partition(".")
    if option_of_role(parameter.name) is None:
        return
    path, section = f"{_PARAMETERS}.{parameter.name}", getattr(options, group)
    told, allowed = "", ""
    mine = [name for name in SHAPING if name in type(section).model_fields]
    if option not in mine:
        told = f"{group}.{option} is nothing that a trial may have of its own"
        allowed = ", ".join(f"{group}.{name}" for name in mine)
    elif not section.count and f"{group}.count" not in options.sweep.parameters:
        told, allowed = f"there is no {group}", f"{group}.count of 1 or more"
    elif (count := parameter.count()) is None:
        told, allowed = "has no end of values", "a list of values, int or quantised"
    elif count > MOST_SHAPES:
        told, allowed = f"asks for {count} {_SIZES}", f"at most {MOST_SHAPES}"
    else:
        values = parameter.values() or ()
        wrong = [value for value in values if not _may_be(section, option, value)]
        if wrong:
            told = f"{group}.{option} cannot be {document.shown(wrong[0])}"
            known = catalogue.find((group, option))
            allowed = known.allowed if known is not None else ""
    if told:
        given = document.shown(options.sweep.parameters[parameter.name])
        yield Finding(path, told, allowed, (_PARAMETERS, group), given)


def _may_be(section: Section, option: str, value: ParameterValue) -> bool:
    if isinstance(value, bool | str):
        return False
    try:
        type(section).model_validate({option: value})
    except ValidationError:
        return False
    return True


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
    if options.data_worker.count:
        path = "data_worker.count"
        told = f"a tf.data service knows the input of one training, and each {unit} is another"
        yield Finding(path, told, f"0 in a {service}", (path,))
    for group in _TASKS:
        path = f"{group}.persistent_volume"
        role = getattr(options, group)
        if role.count and role.persistent_volume:
            told = f"each {unit} goes to whichever task is free, and would find the others' files"
            yield Finding(path, told, f"false in a {service}", (path, f"{group}.count"))


def _batch_findings(options: Options) -> Iterator[Finding]:
    kinds = given_inputs(options)
    if len(kinds) > 1:
        told = f"batch.inputs.{kinds[0]} is set, too, and a batch has one kind of input"
        yield Finding(f"batch.inputs.{kinds[1]}", told, "one of them", _INPUT_PATHS)
    prefix = f"{options.batch.inputs.s3_prefix.rstrip('/')}/"
    if prefix != "/" and writes_below(_output(options), prefix):
        told = f"lies below {prefix}, and the next time each output would be an input"
        allowed = "a place beside batch.inputs.s3_prefix"
        yield Finding("batch.output", told, allowed, ("batch.output", "batch.inputs.s3_prefix"))
    manifest = options.batch.inputs.manifest
    if manifest and options.batch.output:
        work = _batch(options)
        if index_of(work)(manifest) is not None:
            told = f"is also where an output is written: {work.output}"
            path = "batch.inputs.manifest"
            yield Finding(path, told, "a file beside the outputs", (path, "batch.output"))
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


#: How many trials there are where the options do not say it, and where they have no end.
DEFAULT_TRIALS = 50
#: How far back a trial is suggested, where the options do not say how many run at a time.
_LAG_OF_AUTO = 16


def units_spec(options: Options) -> UnitsSpec | None:
    """Return how the units are taken by slots; None for a job of its own."""
    given: Sweep | Batch
    if options.sweep.parameters:
        kind, given = UnitKind.TRIAL, options.sweep
    elif given_inputs(options):
        kind, given = UnitKind.SHARD, options.batch
    else:
        return None
    parallelism = 0 if given.parallelism == AUTO else given.parallelism
    objective = options.sweep.objective.metric.strip() if kind is UnitKind.TRIAL else ""
    return UnitsSpec(
        kind=kind,
        parallelism=parallelism,
        max_attempts=given.max_retries + 1,
        max_share=given.max_share,
        objective=objective,
        are_the_rest=given.resume,
    )


def with_largest_shape(options: Options) -> Options:
    """Return the options of a trial that is as large as any: what there must be room for."""
    largest: dict[str, float] = {}
    for values, _ in shapes(options):
        for name, value in values.items():
            largest[name] = max(largest.get(name, 0), float(cast("float", value)))
    whole = {name: int(v) if v.is_integer() else v for name, v in largest.items()}
    return with_values(options, whole)


def workload_spec(options: Options) -> WorkloadSpec | None:
    """Return what the units are; None for a job of its own."""
    if options.sweep.parameters:
        return _sweep(options)
    return _batch(options) if given_inputs(options) else None


def workload_notes(options: Options) -> list[str]:
    """Return a sentence for what is accepted, and may not be what was meant."""
    work = workload_spec(options)
    alone = list(_rules_of_one(options)) if work is not None else []
    if any(True for _ in shapes(options)):
        alone.append(
            "sweep.parameters: trials differ in size, and the tasks are the largest one's."
        )
    if not isinstance(work, SweepSpec) or not work.learns or work.lag < work.trials:
        return alone
    return [
        *alone,
        f"sweep.parallelism: no trial learns from another: each knows those that are {work.lag} "
        f"or more before it, twice as many as run at a time, and there are {work.trials}.",
    ]


def _rules_of_one(options: Options) -> Iterator[str]:
    """Yield what is to be said of rules about places that count the only task of a slot."""
    for group in GROUP_OF_ROLE.values():
        alone = count_of(options, group) == 1
        text = getattr(role_options(options, group), "placement_constraint", "") if alone else ""
        for rule in parse_placement(text):
            from dcos_tensorflow.core.placement.constraints import depends_on_counts, describe

            if depends_on_counts(rule) and not rule.of_service:
                everywhere = describe(replace(rule, of_service=True))
                yield (
                    f"{group}.placement_constraint: {describe(rule)} counts the tasks of one slot,"
                    f" which has one {group}: it changes nothing. {everywhere} counts all slots'."
                )


def _sweep(options: Options) -> SweepSpec:
    sweep, found = options.sweep, parameters(options)
    trials = sweep.max_trials or DEFAULT_TRIALS
    if sweep.method == "grid" and sweep.max_trials is None:
        trials = prod(parameter.count() or 1 for parameter in found)
    return SweepSpec(
        parameters=found,
        metric=sweep.objective.metric.strip(),
        goal=Goal(sweep.objective.goal),
        trials=trials,
        method=SearchMethod(sweep.method),
        early_stopping=EarlyStopping(sweep.early_stopping),
        min_steps=sweep.min_steps,
        seed=sweep.seed,
        lag=_LAG_OF_AUTO if sweep.parallelism == AUTO else 2 * sweep.parallelism,
    )


def _output(options: Options) -> str:
    output = options.batch.output
    return f"{output}part-{{index}}" if output.endswith("/") else output


def _batch(options: Options) -> BatchSpec:
    inputs = options.batch.inputs
    begin, end, per_shard = inputs.range or (0, 0, inputs.per_shard)
    prefix = f"{inputs.s3_prefix.rstrip('/')}/" if inputs.s3_prefix else ""
    return BatchSpec(
        output=_output(options),
        per_shard=per_shard,
        begin=begin,
        end=end,
        # Of files a manifest is made before they are served: it is no prefix.
        listing=prefix or inputs.manifest or inputs.files.rstrip("/"),
        resume=options.batch.resume,
    )
