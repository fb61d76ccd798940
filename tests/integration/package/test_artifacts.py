"""What ``make package`` has built runs where there is nothing. Skipped when nothing was built."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dcos_tensorflow import __version__
from dcos_tensorflow.package.definition import read_repository
from dcos_tensorflow.package.rules import problems

REPOSITORY = Path(__file__).resolve().parents[3]
BUILT = REPOSITORY / "dist" / "package"

pytestmark = pytest.mark.skipif(
    not (BUILT / "SHA256SUMS").is_file(), reason="make package has built nothing here"
)


@pytest.fixture
def smoke_check(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    monkeypatch.syspath_prepend(str(REPOSITORY / "packaging"))
    import smoke

    return smoke.check


def test_the_artifacts_run_in_an_empty_directory_with_an_empty_environment(
    smoke_check: Callable[..., None],
) -> None:
    smoke_check(
        BUILT / "dcos-tensorflow-scheduler-linux-x86-64.tar.gz",
        BUILT / "dcos-tensorflow-cli.pyz",
        BUILT / "stub-universe-tensorflow.json",
        __version__,
    )


def test_every_file_has_its_checksum() -> None:
    sums = dict(
        reversed(line.split("  ", 1)) for line in (BUILT / "SHA256SUMS").read_text().splitlines()
    )
    files = {path.name for path in BUILT.iterdir() if path.is_file()} - {"SHA256SUMS"}
    assert set(sums) == files
    for name, wanted in sums.items():
        with (BUILT / name).open("rb") as file:
            assert hashlib.file_digest(file, "sha256").hexdigest() == wanted


def test_the_repository_breaks_no_rule() -> None:
    (package,) = read_repository(BUILT / "stub-universe-tensorflow.json")
    description = {k: v for k, v in package.description.items() if k != "releaseVersion"}
    assert problems(replace(package, description=description)) == ()


def test_the_plugin_is_the_one_whose_checksum_the_package_tells() -> None:
    (package,) = read_repository(BUILT / "stub-universe-tensorflow.json")
    binaries = package.resource["cli"]["binaries"]
    told = {each["x86-64"]["contentHash"][0]["value"] for each in binaries.values()}
    plugin = (BUILT / "dcos-tensorflow-cli.pyz").read_bytes()
    assert told == {hashlib.sha256(plugin).hexdigest()}


def test_no_file_names_the_machine_that_built_it() -> None:
    text = json.dumps(json.loads((BUILT / "stub-universe-tensorflow.json").read_text()))
    assert str(REPOSITORY) not in text
    assert sys.prefix not in text
