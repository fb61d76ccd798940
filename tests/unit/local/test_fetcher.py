"""Files come into the sandbox as Mesos brings them."""

from __future__ import annotations

import gzip
import http.server
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.local.machine.fetcher import FetchError, fetch


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    path = tmp_path / "sandbox"
    path.mkdir()
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.mkdir()
    (path / "tool.sh").write_text("#!/bin/sh\n")
    return path


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("a.tar", "w"),
        ("a.tar.gz", "w:gz"),
        ("a.tgz", "w:gz"),
        ("a.tbz2", "w:bz2"),
        ("a.txz", "w:xz"),
    ],
)
def test_tar_archives_are_unpacked(name: str, mode: str, sandbox: Path, source: Path) -> None:
    with tarfile.open(source / name, mode) as archive:  # type: ignore[call-overload]
        archive.add(source / "tool.sh", "d/tool.sh")
    fetch([{"value": str(source / name)}], str(sandbox))
    assert (sandbox / "d" / "tool.sh").exists()
    assert (sandbox / name).exists()


def test_zip_archives_keep_their_run_bits(sandbox: Path, source: Path) -> None:
    os.chmod(source / "tool.sh", 0o755)
    with zipfile.ZipFile(source / "a.zip", "w") as archive:
        archive.write(source / "tool.sh", "tool.sh")
    fetch([{"value": (source / "a.zip").as_uri()}], str(sandbox))
    assert os.access(sandbox / "tool.sh", os.X_OK)


def test_gzipped_file_is_unpacked_beside_itself(sandbox: Path, source: Path) -> None:
    (source / "data.gz").write_bytes(gzip.compress(b"x"))
    fetch([{"value": str(source / "data.gz")}], str(sandbox))
    assert (sandbox / "data").read_bytes() == b"x"


def test_extract_false_leaves_the_archive_alone(sandbox: Path, source: Path) -> None:
    with zipfile.ZipFile(source / "a.zip", "w") as archive:
        archive.writestr("inside", "x")
    fetch([{"value": str(source / "a.zip"), "extract": False}], str(sandbox))
    assert not (sandbox / "inside").exists()


def test_executable_files_can_be_run(sandbox: Path, source: Path) -> None:
    fetch([{"value": str(source / "tool.sh"), "executable": True}], str(sandbox))
    assert os.access(sandbox / "tool.sh", os.X_OK)


def test_output_file_names_the_target(sandbox: Path, source: Path) -> None:
    fetch([{"value": str(source / "tool.sh"), "output_file": "sub/x"}], str(sandbox))
    assert (sandbox / "sub" / "x").exists()


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ({"value": "/no/such/file"}, "/no/such/file"),
        ({"value": "s3://bucket/key"}, "s3://"),
        ({"value": "relative/path"}, "relative path"),
        ({"value": "/etc/hostname", "output_file": "../x"}, "outside of the sandbox"),
    ],
)
def test_what_cannot_be_brought_is_named(uri: dict[str, str], named: str, sandbox: Path) -> None:
    with pytest.raises(FetchError, match=named):
        fetch([uri], str(sandbox))


def test_archive_cannot_write_outside_of_the_sandbox(sandbox: Path, source: Path) -> None:
    with tarfile.open(source / "a.tar", "w") as archive:
        archive.add(source / "tool.sh", "../escaped")
    with pytest.raises(FetchError, match="escaped"):
        fetch([{"value": str(source / "a.tar")}], str(sandbox))


class Cutting(http.server.BaseHTTPRequestHandler):
    """Breaks off in the middle of each answer."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        if self.path == "/chunked.py":
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"64\r\nbegin")
        else:
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"begin")
        self.close_connection = True

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def cutting() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cutting) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["sized.py", "chunked.py"])
def test_a_download_that_broke_off_is_a_failure(name: str, cutting: str, sandbox: Path) -> None:
    with pytest.raises(FetchError, match=f"{cutting}/{name}"):
        fetch([{"value": f"{cutting}/{name}"}], str(sandbox))
