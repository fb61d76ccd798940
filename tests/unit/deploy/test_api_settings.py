"""What is said of the API's callers and its certificate has to fit together."""

from pathlib import Path

import pytest
import trustme

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.deploy.scheduler_settings import scheduler_config
from dcos_tensorflow.deploy.settings import PREFIX, collect


def settings_with(**values: str):
    return collect(None, {f"{PREFIX}{name.upper()}": value for name, value in values.items()}, {})


KEYS = "https://cluster.example/acs/api/v1/auth/jwks"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"api_token": "same", "api_read_token": "same"}, "are one"),
        ({"api_dcos_keys": KEYS}, "give the keys together with at least one of the lists"),
        ({"api_dcos_operators": "alice"}, "give the keys together with at least one of the lists"),
        ({"api_open": "true", "api_read_token": "one"}, "an open API requires no token"),
        ({"api_open": "true", "api_from": "master.mesos"}, "or addresses that need none"),
        ({"api_dcos_keys": KEYS, "api_dcos_readers": "bob", "api_from": "m"}, "give one of them"),
        ({"api_from": "http://master.mesos"}, "must be names or addresses"),
        ({"api_dcos_keys": "http://cluster.example/keys"}, "begins with https://"),
        ({"api_dcos_keys": "/dev/null", "api_dcos_readers": "bob"}, "there is no file"),
        ({"api_cert": __file__}, "needs --api-key too"),
        ({"api_cert": __file__, "api_key": __file__}, "are no certificate and its key"),
        ({"api_dcos_keys": __file__, "api_dcos_readers": "bob"}, "no JSON"),
    ],
)
def test_what_makes_no_sense_is_refused_at_the_start(values: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        settings_with(**values)


def test_everything_together_is_taken(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("scheduler.example")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    found = settings_with(
        master="master.example:5050",
        api_token="operators",
        api_read_token="readers",
        api_dcos_keys=KEYS,
        api_dcos_operators="alice, carol",
        api_dcos_readers="bob",
        api_cert=str(certificate),
        api_key=str(key),
    )
    config = scheduler_config(found, ServiceDirectory(tmp_path), local=False)
    assert config.api_dcos is not None
    assert config.api_dcos.operators == {"alice", "carol"}
    assert config.api_dcos.readers == {"bob"}
    assert (config.api_cert, config.api_key) == (str(certificate), str(key))
    assert "readers" not in repr(config).replace("readers=frozenset", "")
