"""What ``local status`` says of who uses the cluster."""

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
