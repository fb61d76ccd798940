"""Everything of ours that listens, at once, for attackers to try."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dcos_tensorflow.deploy.embedded.dcos_integration import DcosIntegration
from dcos_tensorflow.task.pack import build_zipapp
from embedded_mesos import AgentConfig, EmbeddedCluster
from local_dcos import DcosConfig, LocalDcos
from runner_process import Starter
from servers.answering_service import Service

from .listeners import PRINCIPAL, SECRET, Listeners


@pytest.fixture(scope="module")
def listeners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listeners]:
    """Start the embedded cluster, a local DC/OS, both kinds of API and a task runner."""
    folder = tmp_path_factory.mktemp("listeners")
    with ExitStack() as stack:
        agents = [AgentConfig(cpus=1, mem=256)]
        cluster = stack.enter_context(
            EmbeddedCluster(agents, folder / "cluster", credentials={PRINCIPAL: SECRET})
        )
        credential = folder / "credential.json"
        credential.write_text(f'{{"principal": "{PRINCIPAL}", "secret": "{SECRET}"}}')
        config = DcosConfig(folder / "dcos", cluster.master, credential)
        dcos = stack.enter_context(LocalDcos(config, DcosIntegration()))
        service, opened = Service(), Service(token="")
        for each in (service, opened):
            stack.callback(each.server.stop)
            each.server.start()
        program = build_zipapp(folder / "task-runner.pyz")
        starter = Starter(_made(folder / "tasks"), [str(program)])
        stack.callback(starter.close)
        task = starter("import time; time.sleep(600)")
        task.wait_for_state("running")
        yield Listeners(cluster, dcos, service, opened, task)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
