"""Only who knows the token, and says so now, is heard."""

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.report.authentication import NotAuthentic, check, signed_headers

NOW = 1_700_000_000
HEADERS = signed_headers("secret", "PUT", "/v1/cluster", NOW, b"body")


def test_a_signed_request_is_authentic():
    check("secret", "PUT", "/v1/cluster", HEADERS, b"body", now=NOW)


def test_the_signature_is_the_one_that_the_contract_describes():
    # Computed once with: printf 'GET /v1/status\n1700000000\n' | openssl dgst -sha256 -hmac secret
    expected = "b78cb3094d6c25712f8c41cf00887ec22d133a563f49e7613b4f9a2bec4350a9"
    headers = signed_headers("secret", "GET", "/v1/status", NOW, b"")
    assert headers[contract.TOKEN_HEADER] == expected


@pytest.mark.parametrize(
    ("token", "method", "path", "body"),
    [
        ("other", "PUT", "/v1/cluster", b"body"),
        ("secret", "POST", "/v1/cluster", b"body"),
        ("secret", "PUT", "/v1/stop", b"body"),
        ("secret", "PUT", "/v1/cluster", b"other"),
    ],
)
def test_a_signature_fits_one_request_only(token, method, path, body):
    with pytest.raises(NotAuthentic, match="does not fit"):
        check(token, method, path, HEADERS, body, now=NOW)


@pytest.mark.parametrize("off", [-301, 301])
def test_an_old_or_early_request_is_refused(off):
    with pytest.raises(NotAuthentic, match="off our clock"):
        check("secret", "PUT", "/v1/cluster", HEADERS, b"body", now=NOW + off)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {contract.TOKEN_HEADER: "x"},
        {contract.TIME_HEADER: str(NOW)},
        {contract.TOKEN_HEADER: "x", contract.TIME_HEADER: "soon"},
        {contract.TOKEN_HEADER: "ä", contract.TIME_HEADER: str(NOW)},
    ],
)
def test_a_request_without_usable_headers_is_refused(headers):
    with pytest.raises(NotAuthentic):
        check("secret", "PUT", "/v1/cluster", headers, b"body", now=NOW)
