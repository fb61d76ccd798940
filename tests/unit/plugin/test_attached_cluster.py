"""Where the ``dcos`` command sets no variables, its files tell of the attached cluster."""

from pathlib import Path

import pytest

from dcos_tensorflow.plugin.client import with_cluster

TOML = """\
[core]
dcos_url = "https://cluster.example.org"
dcos_acs_token = "a.token"
timeout = 5
ssl_verify = "VERIFY"

[cluster]
name = "mine"
dcos_url = "https://other.example.org"
"""


def attached(folder: Path, verify: str = "true", name: str = "one") -> dict[str, str]:
    """Attach a cluster; return the environment of a plugin."""
    own = folder / ".dcos" / "clusters" / name
    own.mkdir(parents=True)
    (own / "attached").touch()
    (own / "dcos.toml").write_text(TOML.replace("VERIFY", verify))
    return {"HOME": str(folder)}


def test_the_attached_cluster_is_asked(tmp_path: Path) -> None:
    found = with_cluster(attached(tmp_path))
    told = (found["DCOS_URL"], found["DCOS_ACS_TOKEN"])
    assert told == ("https://cluster.example.org", "a.token")


def test_what_the_dcos_command_tells_wins(tmp_path: Path) -> None:
    environ = {**attached(tmp_path), "DCOS_URL": "http://127.0.0.1:1"}
    assert with_cluster(environ) == environ


@pytest.mark.parametrize(
    ("verify", "variable"),
    [
        ("false", {"DCOS_TLS_INSECURE": "1"}),
        ("/etc/ca.pem", {"DCOS_TLS_CA_PATH": "/etc/ca.pem"}),
        ("true", {}),
    ],
)
def test_certificates_are_checked_as_the_dcos_command_does(
    tmp_path: Path, verify: str, variable: dict[str, str]
) -> None:
    found = with_cluster(attached(tmp_path, verify))
    assert {name: text for name, text in found.items() if "TLS" in name} == variable


def test_none_or_several_attached_clusters_are_none(tmp_path: Path) -> None:
    assert with_cluster({"HOME": str(tmp_path)}) == {"HOME": str(tmp_path)}
    environ = attached(tmp_path)
    attached(tmp_path, name="two")
    assert with_cluster(environ) == environ
