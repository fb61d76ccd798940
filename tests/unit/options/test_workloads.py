"""What a sweep or a batch is in options, and every way to get it wrong."""

from typing import Any

import pytest

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, UnitKind, UnitsSpec
from dcos_tensorflow.core.spec.workload_spec import (
    BatchSpec,
    EarlyStopping,
    Goal,
    Parameter,
    ParameterKind,
    SearchMethod,
    SweepSpec,
)
from dcos_tensorflow.options import OptionsError, as_given, load, notes, service_spec
from dcos_tensorflow.package.variables import as_package_options

RATE = {"learning_rate": {"log_uniform": [1e-5, 0.1]}}


def sweeping(parameters: Any = RATE, metric: str = "val_accuracy", **more: Any) -> dict[str, Any]:
    sweep = {"parameters": parameters, "objective": {"metric": metric}, **more}
    return {"service": {"job_name": "train"}, "sweep": sweep}


def with_arguments(*words: str, parameters: Any = RATE) -> dict[str, Any]:
    return {**sweeping(parameters), "service": {"job_name": "train", "job_args": list(words)}}


def batching(output: str = "out/part-{index}", **inputs: Any) -> dict[str, Any]:
    batch = {"inputs": inputs or {"range": [0, 1000, 100]}, "output": output}
    return {"service": {"job_cmd": "python shard.py"}, "batch": batch}


def workload_of(given: dict[str, Any]) -> Any:
    return service_spec(load(given)).workload


def problems(given: dict[str, Any]) -> list[str]:
    with pytest.raises(OptionsError) as refused:
        load(given)
    return [str(problem) for problem in refused.value.problems]


def test_a_sweep_is_what_the_options_say() -> None:
    parameters = {
        **RATE,
        "layers": [2, 3, "many"],
        "units": {"int": [8, 64]},
        "batch": {"log_int": [8, 512]},
        "rest": {"quantised": [0.1, 0.5, 0.1]},
        "width": {"quantised": [16, 64, 16]},
        "act": {"choice": ["relu", "tanh"]},
        "momentum": {"uniform": [0, 1]},
    }
    given = sweeping(
        parameters, max_trials=200, parallelism=4, early_stopping="asha", seed=7, min_steps=2
    )
    assert workload_of(given) == SweepSpec(
        parameters=(
            Parameter("learning_rate", ParameterKind.FLOAT, 1e-5, 0.1, log=True),
            Parameter("layers", ParameterKind.CHOICE, choices=(2, 3, "many")),
            Parameter("units", ParameterKind.INT, 8, 64),
            Parameter("batch", ParameterKind.INT, 8, 512, log=True),
            Parameter("rest", ParameterKind.FLOAT, 0.1, 0.5, step=0.1),
            Parameter("width", ParameterKind.INT, 16, 64, step=16),
            Parameter("act", ParameterKind.CHOICE, choices=("relu", "tanh")),
            Parameter("momentum", ParameterKind.FLOAT, 0, 1),
        ),
        metric="val_accuracy",
        goal=Goal.MAXIMIZE,
        trials=200,
        method=SearchMethod.TPE,
        early_stopping=EarlyStopping.ASHA,
        min_steps=2,
        seed=7,
        lag=8,
    )


def test_braces_in_arguments_are_text_without_a_sweep() -> None:
    job = {"service": {"job_name": "train", "job_args": ["{lr}"]}}
    assert service_spec(load(job)).job.arguments == ("{lr}",)


def test_the_number_of_trials_is_that_of_the_grid_or_fifty() -> None:
    assert workload_of(sweeping()).trials == 50
    axes = {"a": [1, 2, 3], "b": {"int": [1, 4]}, "c": {"quantised": [0.1, 0.3, 0.1]}}
    assert workload_of(sweeping(axes, method="grid")).trials == 36
    assert workload_of(sweeping(axes, method="grid", max_trials=10)).trials == 10


def test_a_batch_is_what_the_options_say() -> None:
    assert workload_of(batching()) == BatchSpec("out/part-{index}", 100, 0, 1000)
    assert workload_of(
        batching("s3://bucket/out/", s3_prefix="s3://bucket/in", per_shard=5)
    ) == BatchSpec("s3://bucket/out/part-{index}", 5, listing="s3://bucket/in/")
    assert workload_of(batching(manifest="inputs.txt")) == BatchSpec(
        "out/part-{index}", 10, listing="inputs.txt"
    )


@pytest.mark.parametrize("given", [sweeping(), sweeping({"a": [2, 2.5, True, "x"]}), batching()])
def test_what_is_stored_is_read_back_and_travels_in_a_package(given: dict[str, Any]) -> None:
    spec = service_spec(load(given))
    assert codec.decode(ServiceSpec, codec.encode(spec)) == spec
    assert service_spec(load(as_given(load(given)))) == spec
    assert service_spec(load(as_package_options(load(given)))) == spec


def test_options_without_units_are_the_same_configuration_as_ever() -> None:
    spec = service_spec(load({"service": {"job_name": "train"}}))
    assert (spec.units, spec.workload) == (None, None)
    assert configuration_id(spec) != configuration_id(service_spec(load(sweeping())))


def test_slots_are_what_the_options_say() -> None:
    given = sweeping(parallelism=4, max_retries=1, max_share=0.5)
    assert service_spec(load(given)).units == UnitsSpec(UnitKind.TRIAL, 4, 2, 0.5, "val_accuracy")
    assert service_spec(load(batching())).units == UnitsSpec(UnitKind.SHARD, 0, 4)


def test_parallelism_is_a_number_or_auto_also_as_text() -> None:
    for given, lag in ((4, 8), ("4", 8), (4.0, 8), ("auto", 16)):
        assert workload_of(sweeping(parallelism=given)).lag == lag


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (sweeping(method="bayes"), "sweep.method: is not a value that it can have"),
        (sweeping(method="tpo"), "did you mean tpe?"),
        (sweeping({"rate": {"uniform": [1, 0]}}), "sweep.parameters.rate: the range is empty"),
        (sweeping({"rate": {"uniform": [1, 1]}}), "the range is empty: 1 is not less than 1"),
        (sweeping({"rate": {"log_uniform": [0, 1]}}), "needs bounds above 0, and 0 has no log"),
        (sweeping({"rate": {"loguniform": [1, 2]}}), '"loguniform" is none of uniform, log_un'),
        (sweeping({"rate": {"loguniform": [1, 2]}}), "did you mean log_uniform?"),
        (sweeping({"rate": {"int": [1, 2.5]}}), "int needs two whole numbers"),
        (sweeping({"rate": {"quantised": [0, 1]}}), "quantised needs three numbers"),
        (sweeping({"rate": {"quantised": [0, 1, 2]}}), "the step 2 is not between 0 and"),
        (sweeping({"rate": []}), "sweep.parameters.rate: there is nothing to choose from"),
        (sweeping({"rate": [1, 1.0]}), "has the value 1.0 more than once"),
        (sweeping({"rate": [True, 1]}), "has the value 1 more than once"),
        (sweeping({"rate": [[[1]]]}), "a value must be a text, a number, true, false, null"),
        (sweeping({"rate": [[1], [1]]}), "has the value [1] more than once"),
        (sweeping({"rate": 0.1}), "must be a list of values, or an object with one of uniform"),
        (sweeping({"a b": [1]}), 'sweep.parameters: "a b" is no name of a parameter'),
        (
            sweeping({"a.b": [1], "a-b": [1]}),
            "sweep.parameters.a-b: is PARAM_A_B in the environment, and so is a.b",
        ),
        (sweeping({f"p{n}": ["x" * 200] for n in range(20)}), "sweep.parameters: need up to"),
        (sweeping({}), "sweep.parameters: there is nothing to try"),
        (sweeping(metric=" "), "sweep.objective.metric: is needed: it says how good a trial is"),
        (sweeping(method="grid"), "sweep.parameters.learning_rate: has no end of values"),
        (
            sweeping({"a": [1, 2, 3]}, method="grid", max_trials=4),
            "sweep.max_trials: is more than the grid has combinations, which is 3 (given: 4; "
            "allowed: at most 3)",
        ),
        (
            sweeping({c: {"int": [0, 99]} for c in "abc"}, method="grid"),
            "sweep.parameters: a grid of them has 1000000 combinations",
        ),
        (
            with_arguments("--lr", "{learning_rat}"),
            "service.job_args: {learning_rat} is no parameter of the sweep; did you mean "
            '{learning_rate}? (given: ["--lr", "{learning_rat}"]; allowed: {learning_rate}, or '
            "{{learning_rat}} for the text {learning_rat})",
        ),
        (
            with_arguments("{learning_rate}", parameters={"learning_rate": [0.1, None]}),
            "service.job_args: {learning_rate} may be null, and a value here is always an",
        ),
        (sweeping(parallelism=0), "sweep.parallelism: is too small (given: 0; allowed: a whole"),
        (sweeping(parallelism="outo"), "not a text; did you mean auto?"),
        (sweeping(max_share=0), "sweep.max_share: is too small"),
        (sweeping() | {"batch": batching()["batch"]}, "a service is a sweep or a batch"),
        (batching(range=[100, 0, 10]), "batch.inputs.range: the range is empty: it begins at 100"),
        (batching(range=[100, 0, 10]), "did you mean [0, 100, 10]?"),
        (batching(range=[0, 100]), "must be three whole numbers"),
        (batching(range=[0, 100, 0]), "a shard cannot have 0"),
        (batching(range=[0, 10**9, 1]), "makes more than 100000 shards; did you mean [0, 10000"),
        (batching(s3_prefix="gs://b/in"), "batch.inputs.s3_prefix: is no place in S3"),
        (batching(manifest="in/", range=[0, 1, 1]), "batch.inputs.manifest: must name a file"),
        (
            batching(manifest="in.txt", range=[0, 1, 1]),
            "batch.inputs.manifest: batch.inputs.range is set",
        ),
        (batching(files="s3://b/in"), "batch.inputs.files: is in S3"),
        (batching(files="s3://b/in"), "did you mean batch.inputs.s3_prefix?"),
        (batching(files="gs://b/in"), "batch.inputs.files: must be a path"),
        (batching("out/part.jsonl"), "batch.output: is one name for all shards: it needs {index}"),
        (
            batching("s3://bucket/in/out-{index}", s3_prefix="s3://bucket/in"),
            "batch.output: lies below s3://bucket/in/, and the next time each output would be",
        ),
        (
            batching("s3://bucket/{index}/out", s3_prefix="s3://bucket/3"),
            "batch.output: lies below s3://bucket/3/, and the next time each output would be",
        ),
        (
            batching("s3://bucket/{index}.txt", manifest="s3://bucket/7.txt"),
            "batch.inputs.manifest: is also where an output is written: s3://bucket/{index}.txt",
        ),
        (batching("out/{shard}-{index}"), "has other braces than {index}"),
        (batching(""), "batch.output: is needed: where the shards' output is written"),
        (
            sweeping() | {"worker": {"count": 1}, "evaluator": {"count": 1}},
            "evaluator.count: an evaluator follows the checkpoints of one training, and each trial "
            "is another (given: 1; allowed: 0 in a sweep: let the code evaluate)",
        ),
        (
            batching() | {"worker": {"count": 1}, "evaluator": {"count": 1}},
            "evaluator.count: an evaluator follows the checkpoints of one training, and each shard",
        ),
        (
            sweeping() | {"worker": {"count": 1}, "data_worker": {"count": 1}},
            "data_worker.count: a tf.data service knows the input of one training, and each trial",
        ),
        (
            sweeping() | {"worker": {"count": 1, "persistent_volume": True}},
            "worker.persistent_volume: each trial goes to whichever task is free, and would find "
            "the others' files (given: true; allowed: false in a sweep)",
        ),
        (
            batching() | {"gpu_worker": {"count": 1, "gpus": 1, "persistent_volume": True}},
            "gpu_worker.persistent_volume: each shard goes to whichever task is free",
        ),
        ({**batching(), "worker": {"count": 4}}, "worker.count: a shard is worked on by one task"),
        (
            {"service": {"job_name": "train"}, "batch": {"output": "out/{index}"}},
            "batch.inputs: there is nothing to work on: no input is named",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_path_and_what_is_allowed(
    given: dict[str, Any], expected: str
) -> None:
    found = problems(given)
    assert any(expected in line for line in found), found


def test_the_package_asks_for_no_units_by_its_defaults() -> None:
    given = sweeping({}, metric="")
    given["sweep"] |= {"method": "tpe", "parallelism": "auto", "seed": 0}
    assert workload_of(given) is None


def test_a_sweep_whose_trials_cannot_learn_from_each_other_is_told() -> None:
    told = "\n".join(notes(load(sweeping(parallelism=30))))
    assert "no trial learns from another: each knows those that are 60 or more before it" in told
    for given in (sweeping(parallelism=4), sweeping(parallelism=30, method="random")):
        assert "learns" not in "\n".join(notes(load(given)))


def test_a_rule_that_counts_the_only_task_of_a_slot_is_told_of() -> None:
    given = batching()
    given["worker"] = {"count": 1, "placement_constraint": "hostname:UNIQUE,rack:IS:r1"}
    told = "\n".join(notes(load(given)))
    assert "hostname:UNIQUE::service counts all slots'" in told
    assert "rack:IS" not in told
    given["worker"]["placement_constraint"] = "hostname:UNIQUE::service"
    assert "slot" not in "\n".join(notes(load(given)))


def test_options_that_do_nothing_are_told() -> None:
    told = "\n".join(notes(load(sweeping(min_steps=5))))
    assert "sweep.min_steps: has no effect without sweep.early_stopping." in told
    told = "\n".join(notes(load(batching(range=[0, 9, 3], per_shard=3))))
    assert "batch.inputs.per_shard: has no effect with batch.inputs.range." in told


def test_the_service_has_the_roles_of_the_largest_trial() -> None:
    given = sweeping(
        {**RATE, "worker.cpus": [0.5, 2], "worker.mem": {"quantised": [512, 2048, 512]}}
    )
    roles = service_spec(load({**given, "worker": {"count": 1, "cpus": 1}})).roles
    assert [(r.resources.cpus, r.resources.mem) for r in roles] == [(2, 2048)]
    gpus = {"gpu_worker.gpus": {"int": [1, 4]}, "gpu_worker.count": [0, 2], "worker.count": [1, 2]}
    spec = service_spec(load(sweeping(gpus)))
    assert [(str(r.role), r.count, r.resources.gpus) for r in spec.roles] == [
        ("worker", 2, 0),
        ("gpu-worker", 2, 4),
    ]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"worker.cpu": [1, 2]}, "worker.cpu is nothing that a trial may have of its own"),
        ({"worker.gpus": [0, 1]}, "worker.gpus is nothing that a trial may have of its own"),
        ({"worker.cpus": [0, 1]}, "worker.cpus cannot be 0"),
        ({"worker.cpus": [True, 2]}, "worker.cpus cannot be true"),
        ({"worker.mem": {"uniform": [512, 1024]}}, "has no end of values"),
        ({"gpu_worker.gpus": [1, 2]}, "there is no gpu_worker"),
        ({"worker.count": [0, 1]}, 'with {"worker.count": 0}: worker.count: no task would train'),
        ({"worker.count": {"int": [1, 65]}}, "asks for 65 different sizes of a trial"),
        # No machine has memory for all of them.
        ({"worker.mem": {"int": [256, 2_000_000_000]}}, "asks for 1999999745 different sizes"),
        (
            {"worker.count": {"int": [1, 9]}, "worker.cpus": [1, 2, 3, 4, 5, 6, 7, 8]},
            "ask for 72 different sizes of a trial",
        ),
    ],
)
def test_a_size_that_no_trial_can_have_is_an_error(parameters: Any, told: str) -> None:
    (problem,) = problems({**sweeping(parameters), "worker": {"count": 1}})
    assert told in problem


@pytest.mark.parametrize(
    ("output", "prefix"),
    [
        ("s3://bucket/in-{index}", "s3://bucket/in"),
        ("s3://bucket/out/", "s3://bucket/out/a"),
        ("s3://other/in/", "s3://bucket"),
    ],
)
def test_an_output_beside_its_inputs_is_none_of_them(output: str, prefix: str) -> None:
    assert workload_of(batching(output, s3_prefix=prefix)) is not None
