"""What no kernel could pass to a task is refused when the options are read, by name."""

import pytest

from dcos_tensorflow.options import (
    OptionsError,
    load,
    service_spec,
    task_environment,
    with_task_environment,
)

LONG = "x" * 120_000


def options(**groups):
    return {
        **groups,
        "service": {"name": "mnist", "job_name": "train", **groups.get("service", {})},
    }


def refused(given):
    with pytest.raises(OptionsError) as error:
        load(given)
    [problem] = error.value.problems
    return problem


def test_too_many_members_are_refused_with_how_many_fit():
    problem = refused(options(parameter_server={"count": 2}, worker={"count": 6000}))
    assert problem.path == "worker.count"
    assert problem.given == "6000"
    assert "the addresses of 6002 members do not fit TF_CONFIG" in problem.message
    assert problem.allowed == "at most 5458 members in all"


def test_the_largest_role_is_the_one_to_change():
    problem = refused(options(gpu_worker={"count": 6000, "gpus": 1}))
    assert problem.path == "gpu_worker.count"


def test_with_names_for_addresses_fewer_fit_and_the_services_name_counts():
    problem = refused(options(worker={"count": 3000}, cluster_spec={"addressing": "dns"}))
    assert problem.allowed.startswith("at most 23")
    assert "service.name" in problem.allowed


def test_tasks_without_peers_may_be_many():
    independent = {"strategy": "independent"}
    load(options(service=independent, parameter_server={"count": 0}, worker={"count": 10_000}))


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("service.job_context", options(service={"job_context": '{"x": "' + LONG + '"}'})),
        ("service.job_cmd", options(service={"job_name": "", "job_cmd": f": {LONG}"})),
        ("service.env.BIG", options(service={"env": {"BIG": LONG}})),
        ("worker.env.BIG", options(worker={"env": {"BIG": LONG, "SMALL": "x"}})),
    ],
)
def test_what_is_too_long_is_named(path, given):
    problem = refused(given)
    assert problem.path == path
    assert "114688 can be passed on" in problem.message
    assert "xx" not in str(problem)


def test_the_schedulers_own_variables_count_too():
    spec = service_spec(load(options(service={"env": {"HALF": "x" * 60_000}})))
    environments = task_environment({"TASKCFG_ALL_OTHER": "x" * 61_000})
    with pytest.raises(
        OptionsError, match=r"TASKCFG_\*_OTHER: environment and command of a worker"
    ):
        with_task_environment(spec, environments)
