"""Settings by file, environment and flags."""

import json

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.deploy.settings import SETTINGS, collect


@pytest.fixture
def config(tmp_path):
    def write(**values):
        path = tmp_path / "scheduler.json"
        path.write_text(json.dumps(values))
        return path

    return write


def test_the_environment_wins_over_the_file_and_flags_over_both(config):
    file = config(master="file:5050", state="sqlite:///file.db", api_port=1)
    environ = {"DCOS_TENSORFLOW_STATE": "sqlite:///variable.db", "DCOS_TENSORFLOW_API_PORT": "2"}
    found = collect(file, environ, {"api_port": "3"})
    assert (found["master"], found["state"], found["api_port"]) == (
        "file:5050",
        "sqlite:///variable.db",
        3,
    )


def test_no_setting_has_a_value_that_was_not_given():
    found = collect(None, {}, {"master": None})
    assert not any(found.given(setting.name) for setting in SETTINGS)


@pytest.mark.parametrize(
    ("environ", "flags", "place"),
    [
        ({"DCOS_TENSORFLOW_API_PORT": "70000"}, {}, "the variable DCOS_TENSORFLOW_API_PORT"),
        ({}, {"api_port": "x"}, "the flag --api-port"),
        ({}, {"state": "mysql://x"}, "the flag --state"),
        ({}, {"master": "ftp://x"}, "the flag --master"),
        ({}, {"ca_file": "/nowhere.pem"}, "the flag --ca-file"),
        ({"DCOS_TENSORFLOW_VERIFY": "perhaps"}, {}, "the variable DCOS_TENSORFLOW_VERIFY"),
        ({}, {"artifacts": "ftp"}, "the flag --artifacts"),
    ],
)
def test_a_wrong_value_is_answered_with_where_it_stands(environ, flags, place):
    with pytest.raises(UsageError, match=place):
        collect(None, environ, flags)


def test_a_wrong_value_in_the_file_is_answered_with_the_file(config):
    file = config(api_port="x")
    with pytest.raises(UsageError, match=rf"api_port in {file}"):
        collect(file, {}, {})


def test_all_wrong_values_are_told_at_once():
    with pytest.raises(UsageError) as caught:
        collect(None, {}, {"api_port": "x", "master": "ftp://x"})
    assert "--api-port" in str(caught.value)
    assert "--master" in str(caught.value)


def test_a_stronger_right_value_hides_a_weaker_wrong_one(config):
    found = collect(config(api_port="x"), {}, {"api_port": "5"})
    assert found["api_port"] == 5


def test_an_unknown_setting_is_answered_with_the_nearest(config):
    with pytest.raises(UsageError, match="did you mean api_port"):
        collect(config(api_prot=1), {}, {})


def test_an_unknown_variable_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean DCOS_TENSORFLOW_MASTER"):
        collect(None, {"DCOS_TENSORFLOW_MASTERS": "x:1"}, {})


def test_a_secret_is_never_shown():
    with pytest.raises(UsageError) as caught:
        collect(None, {"DCOS_TENSORFLOW_SECRET": "hush\nhush"}, {})
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(collect(None, {}, {}))


@pytest.mark.parametrize("text", ["hush\n", '{"principal": "me", "secret": "hush"}'])
def test_a_secret_comes_from_its_file_which_may_be_a_credential_of_mesos(tmp_path, text):
    file = tmp_path / "secret"
    file.write_text(text)
    assert collect(None, {}, {"secret_file": str(file)}).secret("secret") == "hush"


def test_an_empty_secret_file_is_refused(tmp_path):
    file = tmp_path / "secret"
    file.write_text("\n")
    with pytest.raises(UsageError, match="must hold one line"):
        collect(None, {}, {"secret_file": str(file)}).secret("secret")


def test_a_secret_is_given_once(tmp_path):
    file = tmp_path / "secret"
    file.write_text("hush")
    settings = collect(None, {"DCOS_TENSORFLOW_SECRET": "x"}, {"secret_file": str(file)})
    with pytest.raises(UsageError, match="exclude each other"):
        settings.secret("secret")


def test_an_open_api_must_be_asked_for():
    with pytest.raises(UsageError, match="without a token"):
        collect(None, {}, {"api_host": "0.0.0.0"})
    assert collect(None, {}, {"api_host": "0.0.0.0", "api_open": True})["api_open"]


def test_local_and_a_master_exclude_each_other():
    with pytest.raises(UsageError, match="exclude each other"):
        collect(None, {"DCOS_TENSORFLOW_MASTER": "x:1"}, {"local": True})


def test_a_certificate_needs_its_key(tmp_path):
    file = tmp_path / "cert.pem"
    file.write_text("x")
    with pytest.raises(UsageError, match="--client-key"):
        collect(None, {}, {"client_cert": str(file)})


def test_the_certificates_of_zookeeper_go_with_its_addresses(tmp_path):
    file = str(tmp_path / "ca.pem")
    (tmp_path / "ca.pem").write_text("x")
    given = {"master": "zk://h1/mesos", "state": "zk://h2", "zookeeper_ca_file": file}
    found = collect(None, {}, {**given, "zookeeper_login_file": login_file(tmp_path)})
    assert found["master"] == f"zk://user:pass%40word@h1/mesos?ca={file}"
    assert found["state"] == f"zk://user:pass%40word@h2?ca={file}"


def test_a_certificate_for_zookeeper_needs_its_authority(tmp_path):
    file = str(tmp_path / "c.pem")
    (tmp_path / "c.pem").write_text("x")
    with pytest.raises(UsageError, match="--zookeeper-ca-file"):
        collect(None, {}, {"zookeeper_client_cert": file, "zookeeper_client_key": file})


@pytest.mark.parametrize("text", ["[1]", "{", ""])
def test_a_config_file_that_is_no_object_is_refused(tmp_path, text):
    file = tmp_path / "scheduler.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="--config"):
        collect(file, {}, {})


def test_a_standby_always_waits():
    with pytest.raises(UsageError, match="a standby always waits"):
        collect(None, {}, {"standby": True, "wait_for_leadership": False})
    assert collect(None, {}, {"standby": True})["standby"] is True


@pytest.mark.parametrize("wrong", ["0.5", "soon", "4000"])
def test_a_session_lasts_a_second_to_an_hour(wrong):
    with pytest.raises(UsageError, match="from 1 to 3600"):
        collect(None, {"DCOS_TENSORFLOW_SESSION_SECONDS": wrong}, {})
    assert collect(None, {}, {"session_seconds": "2"})["session_seconds"] == 2.0


def login_file(tmp_path, text="user:pass@word\n"):
    file = tmp_path / "login"
    file.write_text(text)
    file.chmod(0o600)
    return str(file)


def test_the_login_of_zookeeper_comes_from_a_file(tmp_path):
    given = {"master": "zk://h1,h2/mesos", "state": "zk://me:mine@h3"}
    found = collect(None, {}, {**given, "zookeeper_login_file": login_file(tmp_path)})
    assert found["master"] == "zk://user:pass%40word@h1,h2/mesos"
    assert found["state"] == "zk://me:mine@h3", "an address with its own login keeps it"


def test_a_file_without_a_login_is_refused_and_not_shown(tmp_path):
    file = login_file(tmp_path, "hunter2345")
    with pytest.raises(UsageError, match="must hold user:password") as refused:
        collect(None, {}, {"master": "zk://h1/mesos", "zookeeper_login_file": file})
    assert "hunter2345" not in str(refused.value)
