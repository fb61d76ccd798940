"""What the units of a service are, of its options. Called by ``service``; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from dcos_tensorflow.core.spec.workload_spec import (
    BatchSpec,
    EarlyStopping,
    Goal,
    SearchMethod,
    SweepSpec,
    WorkloadSpec,
)
from dcos_tensorflow.options.cross_checks import count_of, role_options
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.placement import parse_placement
from dcos_tensorflow.options.role_models import GROUP_OF_ROLE
from dcos_tensorflow.options.workload_checks import given_inputs, parameters, shapes, with_values
from dcos_tensorflow.options.workload_models import Batch, Sweep
from dcos_tensorflow.options.workload_values import AUTO

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
        are_the_rest=kind is UnitKind.SHARD and options.batch.resume,
    )


def with_largest_shape(options: Options) -> Options:
    """Return the options of a trial that is as large as any: what there must be room for."""
    largest: dict[str, float] = {}
    for values, _ in shapes(options):
        for name, value in values.items():
            largest[name] = max(largest.get(name, 0), float(value))
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


def _batch(options: Options) -> BatchSpec:
    inputs, output = options.batch.inputs, options.batch.output
    begin, end, per_shard = inputs.range or (0, 0, inputs.per_shard)
    prefix = f"{inputs.s3_prefix.rstrip('/')}/" if inputs.s3_prefix else ""
    return BatchSpec(
        output=f"{output}part-{{index}}" if output.endswith("/") else output,
        per_shard=per_shard,
        begin=begin,
        end=end,
        listing=prefix or inputs.manifest,
        resume=options.batch.resume,
    )
