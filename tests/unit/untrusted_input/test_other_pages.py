"""Which requests a page of another site may have sent: as browsers and proxies write them."""

import pytest

from untrusted_input.other_pages import is_from_another_page, names_an_address

OURS = {"host": "127.0.0.1:5050"}
A_LINK = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", **A_LINK, "sec-fetch-dest": "iframe"},
        {"origin": "http://evil.example"},
        {"origin": "null", "host": ""},
        {"origin": "http://["},
        {"origin": "http://127.0.0.1:8888"},
        {"origin": "null"},
    ],
    ids=[
        "a site",
        "another port",
        "a frame",
        "no metadata",
        "no host",
        "no URL",
        "a port, no metadata",
        "a file",
    ],
)
def test_another_page_is_told(headers: dict[str, str]) -> None:
    assert is_from_another_page("GET", {**OURS, **headers})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "http://a"},
        {"sec-fetch-site": "cross-site", **A_LINK},
        {"origin": "http://127.0.0.1:5050"},
        {"origin": "https://proxy.example", "x-forwarded-host": "proxy.example"},
    ],
    ids=["no browser", "typed", "our page", "a link", "our page, no metadata", "behind a proxy"],
)
def test_what_a_person_means_is_no_other_page(headers: dict[str, str]) -> None:
    assert not is_from_another_page("GET", {**OURS, **headers})


def test_a_form_of_another_page_is_no_link() -> None:
    assert is_from_another_page("POST", {**OURS, "sec-fetch-site": "cross-site", **A_LINK})


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "10.0.0.7:80", "[::1]:80", None])
def test_an_address_is_no_name(host: str | None) -> None:
    assert names_an_address({} if host is None else {"host": host})


@pytest.mark.parametrize("host", ["evil.example:80", "localhost.evil.example", "", "[::1", "127.1"])
def test_a_name_may_be_another_sites(host: str) -> None:
    assert not names_an_address({"host": host})
