"""What reaches the tasks of a team's schedulers."""

import json
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.service_login import CREDENTIAL_VARIABLE
from dcos_tensorflow.deploy.settings import collect
from dcos_tensorflow.queue_service import teams_file
from dcos_tensorflow.queue_service.rights import Rights

MASTER = "zk://queue:the-queues@zk.example:2181/mesos"


def told(folder: Path, team: str, **settings: Any) -> dict[str, Any]:
    """Return what tasks of a team have, of a queue with a login and an account of DC/OS."""
    file = folder / "settings.json"
    file.write_text(json.dumps(settings))
    document = {"teams": {"red": {"settings": file.name}, "blue": {}}}
    teams = teams_file.of_document(document, folder / "teams.json")
    queues = collect(
        None, {}, {"master": MASTER, "principal": "queue", "secret": "its-secret", "s3_places": "*"}
    )
    environ = {CREDENTIAL_VARIABLE: '{"uid": "queue"}'}
    work = WorkDirectory(folder)
    rights = Rights(folder / "secrets", "a-token", queues, work, environ, local=False)
    rights.are(teams)
    return dict(json.loads((rights.folder / rights.file(team)).read_text()))


def test_a_team_with_settings_has_nothing_of_the_queues_but_where_the_cluster_is(
    tmp_path: Path,
) -> None:
    found = told(tmp_path, "red", principal="red")
    assert found["settings"] == {"master": "zk://zk.example:2181/mesos", "principal": "red"}
    assert "account" not in found


def test_its_login_to_zookeeper_is_in_the_addresses(tmp_path: Path) -> None:
    login = tmp_path / "login"
    login.write_text("red:its-own")
    found = told(tmp_path, "red", zookeeper_login_file=str(login))
    assert found["settings"] == {"master": "zk://red:its-own@zk.example:2181/mesos"}


def test_a_team_without_settings_has_the_queues(tmp_path: Path) -> None:
    found = told(tmp_path, "blue")
    assert found["settings"] == {
        "master": MASTER,
        "principal": "queue",
        "secret": "its-secret",
        "s3_places": "*",
    }
    assert found["account"] == '{"uid": "queue"}'


def test_teams_have_tokens_of_their_own(tmp_path: Path) -> None:
    assert told(tmp_path, "red")["token"] != told(tmp_path, "blue")["token"]


def test_a_mistake_in_a_teams_settings_is_told_by_its_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"principall in .*settings.json: .* principal"):
        told(tmp_path, "red", principall="red")


def test_a_teams_schedulers_log_in_to_dcos_with_its_own_account(tmp_path: Path) -> None:
    account = tmp_path / "account.json"
    account.write_text('{"uid": "red"}')
    found = told(tmp_path, "red", service_account_file=str(account))
    assert found["account"] == '{"uid": "red"}'
    assert "service_account_file" not in found["settings"]
