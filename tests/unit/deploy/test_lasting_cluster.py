"""The services of the lasting cluster: `local status` tells them, `local down` asks first."""

import io

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.deploy.embedded import lasting
from dcos_tensorflow.deploy.embedded.lasting import running_services
from embedded_mesos import AgentConfig, ClusterStatus, Credential, EmbeddedCluster


def at(master: str, *credentials: str) -> ClusterStatus:
    return ClusterStatus(0, master, (), True, Credential(*credentials))


def test_an_unused_cluster_has_no_service(tmp_path):
    with EmbeddedCluster([AgentConfig()], tmp_path) as cluster:
        assert running_services(at(cluster.master)) == {}


def test_a_master_that_is_gone_is_no_error(tmp_path):
    with EmbeddedCluster([AgentConfig()], tmp_path) as cluster:
        master = cluster.master
    assert running_services(at(master)) == {}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("flags", "answer", "ends"), [((), "n\n", False), ((), "y\n", True), (("--yes",), "", True)]
)
def test_a_cluster_with_services_ends_when_the_operator_says_so(
    monkeypatch, tmp_path, flags, answer, ends
):
    ended = []
    monkeypatch.setattr(lasting, "services_that_run", lambda work: {"mnist": 2})
    monkeypatch.setattr(lasting, "down", lambda work, *, as_json: ended.append(work) or 0)
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    run_command_line(["local", "down", *flags, "--work-dir", str(tmp_path)])
    assert bool(ended) == ends
