"""Answers of Cosmos have the version that their client asks for."""

import pytest

from local_dcos.cosmos.media_types import response

INSTALLED = "application/vnd.dcos.package.install-response+json;charset=utf-8;version="
ERROR = "application/vnd.dcos.package.error+json;charset=utf-8;version=v1"


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        ("", "v1"),
        ("application/json", "v1"),
        (f"{INSTALLED}v1,{ERROR}", "v1"),
        (f"{INSTALLED}v2, {ERROR}", "v2"),
        (f"{INSTALLED}v2".replace(";", "; "), "v2"),
        (f"{INSTALLED}v9", "v1"),
    ],
)
def test_an_installation_is_answered_in_the_version_that_is_asked_for(
    accept: str, version: str
) -> None:
    assert response("package", "install", accept) == INSTALLED + version
