"""Package options that are wrong: whichever it is, no service starts, and its path is named.

What the package's ``config.json`` knows is refused when the app is rendered, as Cosmos does it;
what it does not, by the scheduler, with the variable edited into the app as an operator may do.
Every option is tried in ``tests/unit/package``; here, where a whole service would start, one of
each kind.
"""

from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.options.catalogue import Option, options
from dcos_tensorflow.package.variables import variable_of
from samples.wrong_values import wrong_values
from service_runner.package_app import universe_package
from service_runner.runner import ServiceRunner

JOB = {"service": {"job_name": "train"}}
PACKAGE = universe_package()


def in_the_package(path: tuple[str, ...]) -> dict[str, Any]:
    """Return what the package's ``config.json`` says of an option."""
    schema: dict[str, Any] = dict(PACKAGE.config)
    for key in path:
        schema = schema["properties"][key]
    return schema


def wrong_text(option: Option) -> str:
    """Return text that is wrong for the option, as its variable in the app."""
    if "anyOf" in option.schema:
        return "{"
    if option.schema.get("type", "string") != "string" or "enum" in option.schema:
        return "neither"
    return "../a\nb"


def refused(given: dict[str, Any], folder: Path, **variables: str) -> list[str]:
    """Return the paths that the start of a new service is refused with."""
    sandbox = folder / str(len(list(folder.iterdir())))
    sandbox.mkdir()
    with pytest.raises(OptionsError) as told:
        ServiceRunner(PACKAGE, sandbox).run(given, variables=variables)
    return [problem.path for problem in told.value.problems]


#: One option of each kind: text, number, choice, switch, structure, deep down, of another group.
KINDS = [
    "service.user",
    "service.update_strategy",
    "service.use_tensorboard",
    "service.env",
    "service.security.kerberos.kdc.port",
    "worker.count",
    "gpu_worker.port",
    "gang.hold_seconds",
]


@pytest.mark.parametrize("name", KINDS)
def test_a_value_that_the_package_forbids_starts_no_service(name: str, tmp_path: Path) -> None:
    path = tuple(name.split("."))
    for value in wrong_values(in_the_package(path)):
        given: dict[str, Any] = {group: dict(inside) for group, inside in JOB.items()}
        into = given
        for key in path[:-1]:
            into = into.setdefault(key, {})
        into[path[-1]] = value
        assert refused(given, tmp_path) == [name]


@pytest.mark.parametrize("name", KINDS)
def test_a_variable_that_is_wrong_starts_no_service(name: str, tmp_path: Path) -> None:
    option = options()[tuple(name.split("."))]
    variable = variable_of(option.path)
    assert refused(JOB, tmp_path, **{variable: wrong_text(option)}) == [name]
