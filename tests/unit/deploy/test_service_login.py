"""Whom the scheduler logs in to DC/OS as, and under which principal it registers."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.deploy.job.deployment import PreparedJob, SeenCode
from dcos_tensorflow.deploy.job.preparation import with_principal
from dcos_tensorflow.deploy.service_login import service_account, with_clusters_authority
from dcos_tensorflow.deploy.settings import Settings, collect
from dcos_tensorflow.mesos.service_account import ServiceAccount
from dcos_tensorflow.options import Options, load
from simulated.scheduler import small_job

VARIABLE = "DCOS_SERVICE_ACCOUNT_CREDENTIAL"
ACCOUNT = ServiceAccount("tf", "https://master.mesos/login", "key")


@pytest.fixture(scope="module")
def secret() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    endpoint = "https://master.mesos/acs/api/v1/auth/login"
    return json.dumps({"uid": "tf", "private_key": pem, "login_endpoint": endpoint})


def options(**service: Any) -> Options:
    return load({"service": {"job_name": "job", **service}})


def settings(**flags: Any) -> Settings:
    return collect(None, {}, flags)


def prepared(principal: str = "") -> PreparedJob:
    return PreparedJob(small_job(principal=principal), None, SeenCode("script"), ())


def test_dcos_hands_the_secret_over_in_the_environment(secret: str) -> None:
    found = service_account(options(), settings(), {VARIABLE: secret}, local=False)
    assert found is not None
    assert found.uid == "tf"


@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_it_may_be_in_a_file(form: str, secret: str, tmp_path: Path) -> None:
    file = tmp_path / "account.json"
    file.write_text(secret)
    found = service_account(options(), settings(), {VARIABLE: form.format(file)}, local=False)
    assert found is not None


def test_a_flag_names_a_file_of_ones_own(secret: str, tmp_path: Path) -> None:
    file = tmp_path / "account.json"
    file.write_text(secret)
    given = settings(service_account_file=str(file))
    assert service_account(options(), given, {}, local=False) is not None


def test_there_is_no_login_without_a_secret() -> None:
    assert service_account(options(), settings(), {}, local=False) is None


def test_there_is_no_login_to_the_embedded_cluster(secret: str) -> None:
    named = options(service_account_secret="team/tf")
    assert service_account(named, settings(), {VARIABLE: secret}, local=True) is None


def test_a_secret_that_was_not_handed_over_is_missed_by_its_option() -> None:
    named = options(service_account_secret="team/tf")
    with pytest.raises(UsageError, match=r"^service\.service_account_secret: DC/OS hands"):
        service_account(named, settings(), {}, local=False)


@pytest.mark.parametrize("text", ["{hush", "/no/such/hush", '{"uid": "hush"}'])
def test_what_is_no_service_account_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        service_account(options(), settings(), {VARIABLE: text}, local=False)
    assert str(refused.value).startswith(f"the variable {VARIABLE}: ")
    assert "hush" not in str(refused.value)


def test_the_principal_is_that_of_the_login() -> None:
    assert with_principal(prepared(), "", ACCOUNT).spec.principal == "tf"


def test_another_principal_than_that_of_the_login_is_refused() -> None:
    with pytest.raises(UsageError, match=r"service\.service_account: other is not the service"):
        with_principal(prepared("other"), "", ACCOUNT)


def test_without_a_login_the_principal_stays_as_it_is() -> None:
    assert with_principal(prepared("given"), "", None).spec.principal == "given"


def test_the_clusters_own_authority_is_trusted(tmp_path: Path) -> None:
    (tmp_path / ".ssl").mkdir()
    (tmp_path / ".ssl" / "ca-bundle.crt").touch()
    found = with_clusters_authority(settings(), ACCOUNT, {"MESOS_SANDBOX": str(tmp_path)})
    assert found["ca_file"] == str(tmp_path / ".ssl" / "ca-bundle.crt")


def test_without_tls_no_authority_is_needed(tmp_path: Path) -> None:
    (tmp_path / ".ssl").mkdir()
    (tmp_path / ".ssl" / "ca-bundle.crt").touch()
    plain = ServiceAccount("tf", "http://master.mesos/login", "key")
    found = with_clusters_authority(settings(), plain, {"MESOS_SANDBOX": str(tmp_path)})
    assert found["ca_file"] == ""
