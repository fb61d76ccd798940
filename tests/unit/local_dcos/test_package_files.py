"""The project's package files, and the published package's, as the local DC/OS sees them."""

import base64
import json
from typing import Any

from data_files import of_others
from dcos_tensorflow.package.definition import package_folder, read_folder
from local_dcos.cosmos.rendering import options_of, package_of, rendered
from local_dcos.cosmos.repositories import Package

Json = dict[str, Any]


def of_this_project() -> Package:
    places = {
        "package-version": "1.0.0",
        "artifact-dir": "https://artifacts.example",
        "sha256:dcos-tensorflow-cli.pyz": "0" * 64,
    }
    found = read_folder(package_folder(), places)
    return as_entry(found.description, found.config, found.resource, found.template)


def as_entry(description: Json, config: Json, resource: Json, template: str) -> Package:
    encoded = base64.b64encode(template.encode()).decode()
    entry = {
        **description,
        "releaseVersion": 0,
        "config": config,
        "resource": resource,
        "marathon": {"v2AppMustacheTemplate": encoded},
    }
    return Package(entry, "https://repository.example")


PACKAGE = of_this_project()


def test_the_labels_of_an_app_tell_its_package_and_options() -> None:
    options = {"service": {"name": "mine"}}
    labels = rendered(PACKAGE, options).app["labels"]
    assert package_of(labels) == PACKAGE
    assert options_of(labels) == options


def test_the_published_package_renders_without_a_variable_missing() -> None:
    folder = of_others("universe/beta-tensorflow")

    def read(name: str) -> Json:
        found: Json = json.loads((folder / name).read_text())
        return found

    template = (folder / "marathon.json.mustache").read_text()
    package = as_entry(read("package.json"), read("config.json"), read("resource.json"), template)
    options = {
        "service": {
            "job_name": "mnist",
            "service_account_secret": "tensorflow/key",
            "hdfs": {"config_uri": "http://hdfs.example"},
            "security": {
                "kerberos": {
                    "enabled": True,
                    "primary": "tf",
                    "realm": "EXAMPLE",
                    "keytab_secret": "keytab",
                    "kdc": {"hostname": "kdc.example", "port": 88},
                }
            },
        }
    }
    app = rendered(package, options).app
    assert app["id"] == "/tensorflow"
    assert app["env"]["DCOS_SERVICE_ACCOUNT_CREDENTIAL"] == {"secret": "serviceCredential"}
