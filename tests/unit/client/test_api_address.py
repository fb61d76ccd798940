"""The address of an API that a person names, and when its token may be sent there."""

from pathlib import Path

import pytest

from dcos_tensorflow.client.api_address import AddressUnusable, named, told
from dcos_tensorflow.client.errors import UsageError

TOKEN = "hush-hush"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://node1:8080", "http://node1:8080"),
        ("http://node1:8080/", "http://node1:8080"),
        ("http://node1:8080/v1", "http://node1:8080"),
        ("https://proxy", "https://proxy:443"),
        ("https://proxy/service/mnist/", "https://proxy:443/service/mnist"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_address_is_read(given: str, url: str) -> None:
    assert named(given, None, in_clear=False).url == url


@pytest.mark.parametrize(
    "given",
    ["node1:8080", "node1", "ftp://node1", "http://", "http://node1:port", "http://node1?x=1", ""],
)
def test_what_is_none_is_answered_with_the_forms_that_are_allowed(given: str) -> None:
    with pytest.raises(UsageError, match="http://HOST:PORT"):
        named(given, None, in_clear=False)


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(UsageError, match="--api-token-file") as refused:
        named(f"http://user:{TOKEN}@node1:8080", None, in_clear=False)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("url", ["https://node1", "http://127.0.0.1:1", "http://localhost:1"])
def test_a_token_goes_by_tls_or_stays_on_this_machine(url: str, token_file: Path) -> None:
    address = named(url, str(token_file), in_clear=False)
    assert address.token == TOKEN
    assert TOKEN not in repr(address)


def test_in_clear_it_goes_to_another_machine_only_when_that_is_said(token_file: Path) -> None:
    with pytest.raises(UsageError, match="--api-token-in-clear") as refused:
        named("http://node1:8080", str(token_file), in_clear=False)
    assert TOKEN not in str(refused.value)
    assert named("http://node1:8080", str(token_file), in_clear=True).token == TOKEN


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602])
def test_a_file_that_others_may_read_or_write_is_refused(mode: int, token_file: Path) -> None:
    token_file.chmod(mode)
    with pytest.raises(UsageError, match="chmod 600") as refused:
        named("https://node1", str(token_file), in_clear=False)
    assert TOKEN not in str(refused.value)


def test_the_group_of_a_service_may_read_it(token_file: Path) -> None:
    token_file.chmod(0o640)
    assert named("https://node1", str(token_file), in_clear=False).token == TOKEN


@pytest.mark.parametrize("content", ["", "one\ntwo", "tök\u00e9n", "a\x00b"])
def test_a_file_that_holds_no_token_is_refused(content: str, token_file: Path) -> None:
    token_file.write_text(content)
    with pytest.raises(UsageError, match="--api-token-file") as refused:
        named("https://node1", str(token_file), in_clear=False)
    assert "two" not in str(refused.value)


def test_a_file_in_the_home_folder_is_found_though_no_shell_has_seen_its_name(
    token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(token_file.parent))
    assert named("https://node1", "~/token", in_clear=False).token == TOKEN


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere cannot be read: No such file"):
        named("https://node1", str(tmp_path / "nowhere"), in_clear=False)


class TestAnAddressThatALeaderHasTold:
    @pytest.mark.parametrize(
        ("url", "is_here"),
        [("https://node1:8080", False), ("http://127.0.0.1:8080", True)],
    )
    def test_it_is_asked_with_the_token(self, url: str, is_here: bool) -> None:
        address = told(url, TOKEN, in_clear=False, is_here=is_here)
        assert (address.url, address.token) == (url, TOKEN)

    @pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://[::1]:8080"])
    def test_on_another_machine_a_loopback_address_means_another_process(self, url: str) -> None:
        with pytest.raises(AddressUnusable, match="of another machine alone"):
            told(url, TOKEN, in_clear=True, is_here=False)

    def test_it_gets_no_token_in_clear_unless_that_is_said(self) -> None:
        with pytest.raises(AddressUnusable, match="in clear"):
            told("http://node1:8080", TOKEN, in_clear=False, is_here=False)
        assert told("http://node1:8080", TOKEN, in_clear=True, is_here=False).token == TOKEN
        assert told("http://node1:8080", "", in_clear=False, is_here=False).token == ""

    @pytest.mark.parametrize("url", ["", "file:///etc/passwd", "http://user:word@node1"])
    def test_what_is_no_address_is_asked_nothing(self, url: str) -> None:
        with pytest.raises(AddressUnusable, match="no usable address"):
            told(url, "", in_clear=False, is_here=True)
