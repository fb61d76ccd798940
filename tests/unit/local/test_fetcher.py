"""Files come into the sandbox as Mesos brings them."""

from __future__ import annotations

import gzip
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from dcos_tensorflow.local.fetcher import FetchError, fetch


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
