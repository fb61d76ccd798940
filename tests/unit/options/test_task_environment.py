import pytest

from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.options import (
    OptionsError,
    load,
    service_spec,
    task_environment,
    with_task_environment,
)


def test_a_variable_for_all_reaches_every_role() -> None:
    found = task_environment({"TASKCFG_ALL_DATA": "/data"})
    assert found == {role: {"DATA": "/data"} for role in TaskRole}


def test_a_variable_for_a_role_reaches_that_role_and_wins() -> None:
    found = task_environment({"TASKCFG_ALL_A": "1", "TASKCFG_WORKER_A": "2"})
    assert found[TaskRole.WORKER] == {"A": "2"}
    assert found[TaskRole.GPU_WORKER] == {"A": "1"}


@pytest.mark.parametrize(
    ("word", "role"),
    [
        ("PS", TaskRole.PS),
        ("PARAMETER_SERVER", TaskRole.PS),
        ("CHIEF", TaskRole.CHIEF),
        ("WORKER", TaskRole.WORKER),
        ("GPU_WORKER", TaskRole.GPU_WORKER),
        ("GPUWORKER", TaskRole.GPU_WORKER),
        ("EVALUATOR", TaskRole.EVALUATOR),
        ("TENSORBOARD", TaskRole.TENSORBOARD),
    ],
)
def test_roles_have_their_names_and_those_of_the_published_package(
    word: str, role: TaskRole
) -> None:
    found = task_environment({f"TASKCFG_{word}_MY_NAME": "x"})
    assert {name for name, env in found.items() if env} == {role}
    assert found[role] == {"MY_NAME": "x"}


def test_other_variables_are_none_of_its_business() -> None:
    assert not any(task_environment({"PATH": "/bin", "TASKCFG": "x"}).values())


def test_a_role_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(OptionsError) as refused:
        task_environment({"TASKCFG_WORKR_A": "x"})
    (problem,) = refused.value.problems
    assert (problem.path, problem.suggestion) == ("TASKCFG_WORKR_A", "TASKCFG_WORKER_A")


@pytest.mark.parametrize("name", ["TASKCFG_WORKER_", "TASKCFG_ALL_", "TASKCFG_ALL", "TASKCFG_"])
def test_a_variable_without_a_name_is_an_error(name: str) -> None:
    with pytest.raises(OptionsError, match="names no role of tasks and no variable"):
        task_environment({name: "x"})


def test_a_variable_that_the_service_sets_is_an_error() -> None:
    with pytest.raises(
        OptionsError, match="TASKCFG_ALL_TF_CONFIG: TF_CONFIG is set by the service"
    ):
        task_environment({"TASKCFG_ALL_TF_CONFIG": "{}"})


def test_it_is_laid_over_the_environment_of_the_options() -> None:
    service = {"job_name": "train", "env": {"A": "1", "B": "1"}}
    spec = service_spec(load({"service": service, "parameter_server": {}}))
    spec = with_task_environment(spec, task_environment({"TASKCFG_WORKER_A": "2"}))
    worker, ps = spec.role(TaskRole.WORKER), spec.role(TaskRole.PS)
    assert worker is not None
    assert ps is not None
    assert worker.env == {"A": "2", "B": "1"}
    assert ps.env == {"A": "1", "B": "1"}


@pytest.mark.parametrize("name", ["TASK_RUNNER_SPEC", "TASK_RUNNER_SECRETS_DIR", "TASK_RUNNER_X"])
def test_a_variable_that_would_steer_the_task_runner_is_an_error(name: str) -> None:
    with pytest.raises(OptionsError, match="it belongs to the task runner"):
        task_environment({f"TASKCFG_ALL_{name}": "/home"})
