"""What was downloaded whole is kept, and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from local_dcos.download_cache import DownloadCache, DownloadError
from servers.web_server import Handler, served

WHOLE = b"the whole file"


class Moody(Handler):
    """Breaks its first answer off, and gives the others whole; knows its one version."""

    protocol_version = "HTTP/1.1"
    answers: ClassVar[int] = 0

    def do_GET(self) -> None:
        kind = type(self)
        kind.answers += 1
        unchanged = self.headers.get("If-None-Match") == '"1"'
        self.send_response(304 if unchanged else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0" if unchanged else str(len(WHOLE)))
        self.end_headers()
        if kind.answers == 1:
            self.wfile.write(WHOLE[:3])
            self.close_connection = True
        elif not unchanged:
            self.wfile.write(WHOLE)


@pytest.fixture
def url() -> Iterator[str]:
    with served(type("OwnMoody", (Moody,), {})) as address:
        yield f"http://{address}/file"


@pytest.fixture
def cache(url: str, tmp_path: Path) -> DownloadCache:
    """A cache whose first download broke off."""
    found = DownloadCache(tmp_path)
    with pytest.raises(DownloadError, match="broke after 3 of 14 bytes"):
        found.get(url)
    return found


def test_a_download_that_broke_off_leaves_nothing(cache: DownloadCache, tmp_path: Path) -> None:
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_after_one_that_broke_off_the_whole_is_asked_for(cache: DownloadCache, url: str) -> None:
    assert cache.get(url).read_bytes() == WHOLE


def test_what_is_kept_is_given_while_it_has_not_changed(cache: DownloadCache, url: str) -> None:
    assert cache.get(url) == cache.get(url)
