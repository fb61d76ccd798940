"""Files come into the sandbox as Mesos brings them."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded_mesos.machine import fetcher
from embedded_mesos.machine.fetcher import FetchError, fetch
from servers.web_server import Handler, served


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


def corrupt_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", os.urandom(64).hex() * 100)
    content = bytearray(path.read_bytes())
    content[60:80] = bytes(20)
    path.write_bytes(content)


def encrypted_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "x")
    content = bytearray(path.read_bytes())
    # The first bit of the flags, in the file's own header and in the directory (APPNOTE, 4.4.4).
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def unknown_compression(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", "x")
    content = bytearray(path.read_bytes())
    content[8] = content[content.index(b"PK\x01\x02") + 10] = 99
    path.write_bytes(content)


def dangling_hard_link(path: Path) -> None:
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.LNKTYPE, "gone"
        archive.addfile(link)


def cut_xz(path: Path) -> None:
    with tarfile.open(path, "w:xz") as archive:
        member = tarfile.TarInfo("data")
        member.size = 100_000
        archive.addfile(member, io.BytesIO(os.urandom(100_000)))
    path.write_bytes(path.read_bytes()[:50_000])


def corrupt_gzip(path: Path) -> None:
    content = bytearray(gzip.compress(os.urandom(1000).hex().encode()))
    content[30:60] = bytes(30)
    path.write_bytes(content)


BROKEN = {
    "corrupt.zip": corrupt_zip,
    "encrypted.zip": encrypted_zip,
    "unknown.zip": unknown_compression,
    "dangling.tar": dangling_hard_link,
    "cut.tar.xz": cut_xz,
    "corrupt.gz": corrupt_gzip,
}

#: Debian's own Python: older than the newest of its version, without ``tarfile``'s filters.
DEBIAN = Path("/usr/bin/python3.11")
PYTHONS = [
    sys.executable,
    pytest.param(
        str(DEBIAN), marks=pytest.mark.skipif(not DEBIAN.exists(), reason="no Python of Debian's")
    ),
]


def fetched_by(python: str, uri: str, sandbox: Path) -> str:
    """Fetch with this Python, as the executor does; return how it failed, '' when it did not."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from embedded_mesos.machine.fetcher import FetchError, fetch\n"
        "try:\n    fetch([{'value': sys.argv[2]}], sys.argv[3])\n"
        "except FetchError as error:\n    print(error)\n"
    )
    root = Path(fetcher.__file__).resolve().parents[2]
    done = subprocess.run(
        [python, "-I", "-S", "-c", program, str(root), uri, str(sandbox)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", BROKEN)
def test_whatever_an_archive_dies_of_is_a_failure_that_names_it(
    name: str, sandbox: Path, source: Path
) -> None:
    BROKEN[name](source / name)
    with pytest.raises(FetchError, match=rf"Failed to fetch '{source}/{name}': .+"):
        fetch([{"value": str(source / name)}], str(sandbox))


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_unpacks_a_tar(python: str, sandbox: Path, source: Path) -> None:
    with tarfile.open(source / "a.tar.gz", "w:gz") as archive:
        archive.add(source / "tool.sh", "d/tool.sh")
        archive.add(source / "tool.sh", "/absolute")
        for name, kind in (("soft", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = kind, "d/tool.sh"
            archive.addfile(link)
    assert fetched_by(python, str(source / "a.tar.gz"), sandbox) == ""
    for name in ("d/tool.sh", "absolute", "soft", "hard"):
        assert (sandbox / name).read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("through", ["name", "symlink"])
def test_an_archive_cannot_write_outside_of_the_sandbox(
    through: str, python: str, sandbox: Path, source: Path
) -> None:
    with tarfile.open(source / "a.tar", "w") as archive:
        if through == "symlink":
            link = tarfile.TarInfo("way")
            link.type, link.linkname = tarfile.SYMTYPE, ".."
            archive.addfile(link)
        archive.add(source / "tool.sh", "../escaped" if through == "name" else "way/escaped")
    assert "outside of" in fetched_by(python, str(source / "a.tar"), sandbox)
    assert not (sandbox.parent / "escaped").exists()


class Cutting(Handler):
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


@pytest.fixture
def cutting() -> Iterator[str]:
    with served(Cutting) as address:
        yield f"http://{address}"


@pytest.mark.parametrize("name", ["sized.py", "chunked.py"])
def test_a_download_that_broke_off_is_a_failure(name: str, cutting: str, sandbox: Path) -> None:
    with pytest.raises(FetchError, match=f"{cutting}/{name}"):
        fetch([{"value": f"{cutting}/{name}"}], str(sandbox))
