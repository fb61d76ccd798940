"""Files of tasks: where a sandbox is, is asked for once, and again when its agent is away."""

import pytest

from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentUnreachable, FileNotFound, FilePart, Sandbox
from dcos_tensorflow.scheduler.runners.sandbox_files import TaskFiles


class Agent:
    """Knows every sandbox, and answers or raises what the test says."""

    def __init__(self) -> None:
        self.located: list[str] = []
        self.failure: Exception | None = None

    def locate(self, agent_id: str, framework_id: str, task_id: str) -> Sandbox:
        self.located.append(f"{agent_id} {framework_id} {task_id}")
        return Sandbox(Address("127.0.0.1", 5051), f"/{task_id}")

    def read_part(self, sandbox: Sandbox, file: str, offset: int, length: int) -> FilePart:
        if self.failure is not None:
            raise self.failure
        return FilePart(offset, f"{sandbox.directory}/{file}".encode(), 9)


@pytest.fixture
def agent() -> Agent:
    return Agent()


@pytest.fixture
def files(agent: Agent) -> TaskFiles:
    return TaskFiles(lambda: agent, lambda: "F1")


def test_a_sandbox_is_looked_for_once(agent: Agent, files: TaskFiles) -> None:
    for _ in range(3):
        assert files.read("S1", "t1", "stdout", 0, 10).data == b"/t1/stdout"
    assert agent.located == ["S1 F1 t1"]


def test_an_agent_that_does_not_answer_is_looked_for_again(agent: Agent, files: TaskFiles) -> None:
    files.read("S1", "t1", "stdout", 0, 10)
    agent.failure = AgentUnreachable("no answer")
    with pytest.raises(AgentUnreachable):
        files.read("S1", "t1", "stdout", 0, 10)
    agent.failure = None
    files.read("S1", "t1", "stdout", 0, 10)
    assert len(agent.located) == 2


def test_a_file_that_is_not_there_yet_does_not_make_the_agent_tell_all_again(
    agent: Agent, files: TaskFiles
) -> None:
    agent.failure = FileNotFound("no file")
    for _ in range(3):
        with pytest.raises(FileNotFound):
            files.read("S1", "t1", "stdout", 0, 10)
    assert len(agent.located) == 1


def test_before_the_start_it_says_so() -> None:
    with pytest.raises(AgentUnreachable, match="not reached Mesos"):
        TaskFiles(lambda: None, lambda: "").read("S1", "t1", "stdout", 0, 10)
