"""What ``make package`` builds runs where there is nothing. Built once for all of these tests."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dcos_tensorflow import __version__
from dcos_tensorflow.package.definition import read_repository
from dcos_tensorflow.package.rules import problems

REPOSITORY = Path(__file__).resolve().parents[3]
ARTIFACT_URL = "https://repository.example.org/1.0.0"

#: The first of them waits for the build.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.fixture
def smoke_check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.syspath_prepend(str(REPOSITORY / "packaging"))
    import smoke

    return smoke.check


def test_the_artifacts_run_in_an_empty_directory_with_an_empty_environment(
    built: Path, smoke_check: Callable[..., None]
) -> None:
    smoke_check(
        built / "dcos-tensorflow-scheduler-linux-x86-64.tar.gz",
        built / "dcos-tensorflow-cli.pyz",
        built / "stub-universe-tensorflow.json",
        __version__,
    )


def test_every_file_has_its_checksum(built: Path) -> None:
    sums = dict(
        reversed(line.split("  ", 1)) for line in (built / "SHA256SUMS").read_text().splitlines()
    )
    files = {path.name for path in built.iterdir() if path.is_file()} - {"SHA256SUMS"}
    assert set(sums) == files
    for name, wanted in sums.items():
        with (built / name).open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == wanted


def test_the_repository_breaks_no_rule(built: Path) -> None:
    (package,) = read_repository(built / "stub-universe-tensorflow.json")
    description = {k: v for k, v in package.description.items() if k != "releaseVersion"}
    assert problems(replace(package, description=description)) == ()


def test_the_plugin_is_the_one_whose_checksum_the_package_tells(built: Path) -> None:
    (package,) = read_repository(built / "stub-universe-tensorflow.json")
    binaries = package.resource["cli"]["binaries"]
    told = {each["x86-64"]["contentHash"][0]["value"] for each in binaries.values()}
    plugin = (built / "dcos-tensorflow-cli.pyz").read_bytes()
    assert told == {hashlib.sha256(plugin).hexdigest()}


def test_no_file_names_the_machine_that_built_it(built: Path) -> None:
    text = json.dumps(json.loads((built / "stub-universe-tensorflow.json").read_text()))
    assert str(REPOSITORY) not in text
    assert sys.prefix not in text


def test_a_second_build_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    build = [sys.executable, str(REPOSITORY / "packaging" / "build.py")]
    told = subprocess.run(
        [*build, "--artifact-url", ARTIFACT_URL, "--output", str(tmp_path / "again")],
        env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    assert (tmp_path / "again" / "SHA256SUMS").read_text() == (built / "SHA256SUMS").read_text()
