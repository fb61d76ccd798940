"""Each package gives other programs what it names."""

from types import ModuleType

import pytest

import dcos_tensorflow
import embedded_mesos
import local_dcos

PACKAGES = pytest.mark.parametrize("package", [dcos_tensorflow, embedded_mesos, local_dcos])


@PACKAGES
def test_each_public_name_is_there(package: ModuleType) -> None:
    assert [name for name in package.__all__ if not hasattr(package, name)] == []


@PACKAGES
def test_another_name_is_missing_as_in_any_module(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'x'"):
        _ = package.x
