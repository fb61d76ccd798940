"""The package keeps Universe's rules, and whatever breaks one is named."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from data_files import of_others
from dcos_tensorflow.package.definition import (
    Package,
    PackageError,
    filled,
    json_file,
    repository_document,
)
from dcos_tensorflow.package.rules import problems


def test_the_package_breaks_no_rule(package: Package) -> None:
    assert problems(package) == ()


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ("package-schema.json", "description"),
        ("v3-resource-schema.json", "resource"),
        ("config-schema.json", "config"),
    ],
)
def test_the_package_fits_universes_schema(package: Package, schema: str, part: str) -> None:
    document = json.loads(of_others(f"universe/schema/{schema}").read_text())
    jsonschema.Draft4Validator(document).validate(getattr(package, part))


def test_it_can_be_upgraded_from_and_downgraded_to_other_versions(package: Package) -> None:
    assert package.description["upgradesFrom"]
    assert package.description["downgradesTo"]


def test_the_repository_holds_the_package(package: Package) -> None:
    (entry,) = repository_document(package, last_updated=7)["packages"]
    assert (entry["name"], entry["releaseVersion"], entry["lastUpdated"]) == ("tensorflow", 0, 7)


def at(part: Any, path: str) -> tuple[Any, str]:
    *groups, last = path.split("/")
    for key in groups:
        part = part[key]
    return part, last


def broken(package: Package, part: str, path: str, value: Any) -> Package:
    copied = copy.deepcopy(getattr(package, part))
    into, key = at(copied, path)
    into[key] = value
    return replace(package, **{part: copied})


@pytest.mark.parametrize(
    ("part", "path", "value", "message"),
    [
        ("description", "name", "Tensor Flow", "package.json: name"),
        ("description", "version", "1_0", "package.json: version"),
        ("description", "packagingVersion", "5.0", "package.json: packagingVersion"),
        ("description", "tags", ["two words"], "package.json: tags"),
        ("description", "upgradesFrom", ["1 0"], "package.json: upgradesFrom"),
        ("description", "selected", "no", "package.json: selected"),
        ("description", "colour", "red", "package.json: colour"),
        ("description", "maintainer", "J\u00fcrgen", "package.json: holds more than ASCII"),
        ("config", "properties/worker/properties/count/type", "array", "worker.count is a struct"),
        ("config", "properties/worker/properties/count/type", "none", "no JSON Schema"),
        ("config", "properties/worker/properties/count/default", -1, "default of worker.count"),
        ("config", "properties/worker/properties/count/description", "", "has no description"),
        ("config", "properties/worker/additionalProperties", True, "worker takes misspelt"),
        (
            "config",
            "properties/service/properties/tf_image/default",
            "other/image:1",
            "default of service.tf_image is not in resource.json",
        ),
        (
            "config",
            "properties/service/properties/job_url/default",
            "https://example.org/x.zip",
            "default of service.job_url is not in resource.json",
        ),
        ("resource", "assets/uris/scheduler-tar-gz", "{{artifact-dir}}/x", "place without a value"),
        ("resource", "assets/uris/scheduler-tar-gz", "/tmp/x", "must be an address"),
        ("resource", "assets/uris/unused", "https://example.org/x", "is used nowhere"),
        ("resource", "cli/binaries/linux/x86-64/kind", "script", "of the kind executable"),
        ("resource", "cli/binaries/linux/x86-64/url", "x", "address of the web"),
        ("resource", "cli/binaries/linux/x86-64/contentHash", [], "needs its sha256"),
        ("resource", "cli/binaries/plan9", {"x86-64": {}}, "does not know"),
        ("resource", "others", {}, "nothing is known of others"),
    ],
)
def test_what_breaks_a_rule_is_named(
    package: Package, part: str, path: str, value: Any, message: str
) -> None:
    found = problems(broken(package, part, path, value))
    assert any(message in problem for problem in found), found


@pytest.mark.parametrize("key", ["name", "version", "maintainer", "description", "tags"])
def test_what_is_required_is_missed(package: Package, key: str) -> None:
    description = {name: value for name, value in package.description.items() if name != key}
    found = problems(replace(package, description=description))
    assert f"package.json: {key} is missing" in found


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.replace("{{worker.count}}", "{{worker.number}}"), "no option and no resource"),
        (lambda t: t.replace("{{worker.count}}", "3"), "nothing uses the option worker.count"),
        (lambda t: t.replace("{{#gpu_worker.port}}", "{{#service.name}}"), "is not open"),
        (
            lambda t: t.replace("{{#gpu_worker.port}}", "").replace("{{/gpu_worker.port}}", ""),
            "gpu_worker.port may have no value",
        ),
        (
            lambda t: t.replace("{{resource.assets.uris.scheduler-tar-gz}}", "https://a.b/c"),
            "https://a.b/c must come from resource.json",
        ),
    ],
)
def test_a_template_that_breaks_a_rule_is_named(
    package: Package, edit: Callable[[str], str], message: str
) -> None:
    found = problems(replace(package, template=edit(package.template)))
    assert any(message in problem for problem in found), found


def test_a_key_that_stands_there_twice_is_named() -> None:
    with pytest.raises(PackageError, match="more than once: b"):
        json_file('{"a": {"b": 1, "b": 2}}', "package.json")


def test_a_place_without_a_value_is_named() -> None:
    with pytest.raises(PackageError, match=r"\{\{artifact-dir\}\}"):
        filled("{{artifact-dir}}/x", {}, "resource.json")


def test_package_files_are_plain_ascii_without_escapes() -> None:
    for path in sorted((Path(__file__).resolve().parents[3] / "universe").iterdir()):
        text = path.read_text(encoding="ascii")
        assert "\\u" not in text, path.name
