"""What tests of the package share: the package as it is built, and the example options."""

from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.package.definition import Package, package_folder, read_folder

REPOSITORY = Path(__file__).resolve().parents[3]
PLACES = {
    "package-version": "1.0.0",
    "artifact-dir": "https://repository.example.org/tensorflow/1.0.0",
    "sha256:dcos-tensorflow-cli.pyz": "0" * 64,
}


@pytest.fixture(scope="session")
def package() -> Package:
    return read_folder(package_folder(), PLACES)


@pytest.fixture
def runnable() -> dict[str, Any]:
    return {"service": {"job_name": "train"}}
