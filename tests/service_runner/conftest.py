"""The runner that the tests of this folder play their ticks with."""

from pathlib import Path

import pytest

from dcos_tensorflow.package.definition import Package
from service_runner.package_app import universe_package
from service_runner.runner import ServiceRunner


@pytest.fixture(scope="session")
def package() -> Package:
    return universe_package()


@pytest.fixture
def runner(package: Package, tmp_path: Path) -> ServiceRunner:
    return ServiceRunner(package, tmp_path)
