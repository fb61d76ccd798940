"""One embedded cluster for all end-to-end tests, used as a person would: by command line."""

from collections.abc import Callable, Iterator

import pytest

from command_line import ROOT, CommandLine
from servers.s3_server import S3Server


@pytest.fixture(scope="session")
def command_line(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def local_cluster(command_line: CommandLine) -> Iterator[CommandLine]:
    """The command line, with an embedded cluster of three agents up."""
    up = command_line(
        *("local", "up", "--agents", "3", "--cpus", "4", "--mem", "6000", "--gpus", "0")
    )
    assert up.code == 0, up.out
    yield command_line
    down = command_line("local", "down")
    assert down.code == 0, down.out


@pytest.fixture(scope="session")
def tensorflow() -> Callable[[str], str]:
    """Return the path of a TensorFlow version's virtual environment; skip where it is missing."""

    def environment(version: str) -> str:
        path = ROOT / ".venvs" / f"tensorflow-{version}"
        if not (path / "bin" / "python").exists():
            pytest.skip(f"no virtual environment of TensorFlow {version}: run 'make soak'")
        return str(path)

    return environment


@pytest.fixture
def s3() -> Iterator[S3Server]:
    """An S3 server with an empty bucket."""
    server = S3Server()
    # All of moto's servers in a process share what they hold.
    server.empty()
    yield server
    server.close()
