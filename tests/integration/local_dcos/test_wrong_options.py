"""Whatever is wrong with a package's options, nothing is installed and its path is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checkout_package import package_in, repository_of
from dcos_tensorflow.deploy.embedded.dcos_integration import DcosIntegration
from dcos_tensorflow.package.definition import package_folder, read_folder
from dcos_tensorflow.package.rules import leaves
from embedded_mesos import EmbeddedCluster
from local_dcos import DcosConfig, LocalDcos
from wrong_values import at, wrong_values

from .world import World

PLACES = {"package-version": "1", "artifact-dir": "a", "sha256:dcos-tensorflow-cli.pyz": "0"}
CONFIG = read_folder(package_folder(), PLACES).config
OPTIONS = {".".join(path): schema for path, schema in leaves(CONFIG)}
GROUPS = sorted({name.rpartition(".")[0] for name in OPTIONS} - {""})


@pytest.fixture(scope="module")
def world(
    cluster: EmbeddedCluster, credential: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("dcos")
    config = DcosConfig(folder=folder, master=cluster.master, credential=credential)
    with LocalDcos(config, DcosIntegration()) as dcos:
        found = World(dcos)
        uri = repository_of(package_in(folder), folder)
        found.cosmos("repository/add", {"name": "real", "uri": uri})
        yield found


def refusal(world: World, options: dict[str, Any]) -> dict[str, Any]:
    """Return the refusal of an installation; it must be one, and have left nothing."""
    body = {"packageName": "tensorflow", "options": options}
    found: dict[str, Any] = world.cosmos("install", body, expect=400)
    assert found["type"] == "JsonSchemaMismatch", found
    assert world.app_ids() == []
    return found


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_is_wrong_installs_nothing_and_is_named(world: World, name: str) -> None:
    path = tuple(name.split("."))
    for value in wrong_values(OPTIONS[name]):
        found = refusal(world, at(path, value))
        pointers = [error["instance"]["pointer"] for error in found["data"]["errors"]]
        assert pointers == ["/" + "/".join(path)]
        # The dcos command prints the message and nothing else.
        assert f"{pointers[0]}: " in found["message"]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("value", ["text", 1, [], True])
def test_a_group_that_is_none_installs_nothing_and_is_named(
    world: World, group: str, value: Any
) -> None:
    path = tuple(group.split("."))
    assert f"/{'/'.join(path)}: " in refusal(world, at(path, value))["message"]


@pytest.mark.parametrize("group", GROUPS)
def test_a_misspelt_option_installs_nothing_and_is_named(world: World, group: str) -> None:
    path = (*group.split("."), "no_such_option")
    assert f"/{'/'.join(path)}: there is no such option" in refusal(world, at(path, 1))["message"]
