"""The command line of the user's process: a module finds its arguments as they were given."""

import pytest

from dcos_tensorflow.job_code.modules import Found, Module
from dcos_tensorflow.task.python import wrapper
from dcos_tensorflow.task.spec import JobCode, RunnerSpec, TaskCluster
from dcos_tensorflow.task.supervise.environment import Directories
from dcos_tensorflow.task.supervise.start_preparation import user_command

ARGUMENTS = ("--epochs", "3", "two words", "$HOME", "")
HERE = Directories(*("/sandbox",) * 5)


def started(file: str, contract: str = "script", **job: object) -> tuple[list[str], list[str]]:
    """Return the command, and the arguments that the wrapper hands on."""
    cluster = TaskCluster(1)
    spec = RunnerSpec("mnist", "worker-0", cluster, JobCode(arguments=ARGUMENTS, **job))
    found = Found(contract, ("/sandbox",), Module("train", file, "/sandbox"))
    command, variables = user_command(
        spec,
        found,
        cluster,
        where=HERE,
        python="python3",
        wrapper_command=["wrapper"],
        arguments=ARGUMENTS,
    )
    call = variables.get(wrapper.VARIABLE)
    return command, wrapper.WrapperCall.of_text(call).arguments if call else []


def test_a_script_is_started_with_its_arguments() -> None:
    command, _ = started("/sandbox/train.py")
    assert command == ["python3", "-u", "/sandbox/train.py", *ARGUMENTS]


def test_so_is_a_package() -> None:
    command, _ = started("/sandbox/train/__init__.py")
    assert command == ["python3", "-u", "-m", "train", *ARGUMENTS]


@pytest.mark.parametrize(
    ("contract", "job"),
    [
        ("function", {}),
        ("script", {"tf1_compat": True}),
        ("script", {"under_strategy": True}),
    ],
)
def test_our_wrapper_hands_them_on(contract: str, job: dict[str, object]) -> None:
    command, handed_on = started("/sandbox/train.py", contract, **job)
    assert command == ["wrapper"]
    assert tuple(handed_on) == ARGUMENTS
