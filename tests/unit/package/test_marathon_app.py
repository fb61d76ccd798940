"""The Marathon app that the package makes of options."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from dcos_tensorflow.options import OptionsError, load
from dcos_tensorflow.options.catalogue import options
from dcos_tensorflow.options.sections.images import with_images
from dcos_tensorflow.package.definition import Package, marathon_app, repository_document
from dcos_tensorflow.package.template import option_lines
from dcos_tensorflow.package.variables import images_in, options_in, variable_of
from local_dcos.cosmos import rendering, repositories
from samples.wrong_values import wrong_values

Render = Callable[..., dict[str, Any]]


@pytest.fixture
def render(package: Package) -> Render:
    def app(**service: Any) -> dict[str, Any]:
        return marathon_app(package, {"service": {"job_name": "train", **service}})

    return app


def test_the_id_is_the_services_name(render: Render) -> None:
    assert render(name="team/mnist")["id"] == "team/mnist"


def test_an_app_id_changes_the_id_and_nothing_else(package: Package) -> None:
    given = {"service": {"job_name": "train"}}
    plain, named = marathon_app(package, given), marathon_app(package, given, app_id="/other")
    assert named == {**plain, "id": "/other"}


def test_the_labels_are_those_that_dcos_looks_for(render: Render) -> None:
    assert render(name="mnist")["labels"] == {
        "DCOS_COMMONS_API_VERSION": "v1",
        "DCOS_COMMONS_UNINSTALL": "true",
        "DCOS_PACKAGE_FRAMEWORK_NAME": "mnist",
        "MARATHON_SINGLE_INSTANCE_APP": "true",
        "DCOS_SERVICE_NAME": "mnist",
        "DCOS_SERVICE_PORT_INDEX": "0",
        "DCOS_SERVICE_SCHEME": "http",
    }


def test_the_api_answers_what_comes_from_admin_router_alone(render: Render) -> None:
    env = render(name="mnist")["env"]
    assert env["DCOS_TENSORFLOW_API_FROM"] == "master.mesos,leader.mesos"
    assert "DCOS_TENSORFLOW_API_OPEN" not in env


def test_the_api_has_a_virtual_address(render: Render) -> None:
    (port,) = render(name="mnist")["portDefinitions"]
    assert (port["name"], port["labels"]) == ("api", {"VIP_0": "/api.mnist:80"})


def test_marathon_asks_for_health_and_never_kills_a_scheduler_that_recovers(render: Render) -> None:
    (check,) = render()["healthChecks"]
    assert (check["protocol"], check["path"], check["maxConsecutiveFailures"]) == (
        "MESOS_HTTP",
        "/v1/health",
        0,
    )


def test_there_is_never_a_second_scheduler(render: Render) -> None:
    app = render()
    assert app["instances"] == 1
    assert app["upgradeStrategy"] == {"minimumHealthCapacity": 0, "maximumOverCapacity": 0}


def test_a_service_account_brings_its_secret(render: Render) -> None:
    app = render(service_account="trainer", service_account_secret="team/trainer")
    assert app["secrets"] == {"serviceCredential": {"source": "team/trainer"}}
    assert app["env"]["DCOS_SERVICE_ACCOUNT_CREDENTIAL"] == {"secret": "serviceCredential"}


def test_without_a_service_account_there_is_no_secret(render: Render) -> None:
    app = render()
    assert "secrets" not in app
    assert "DCOS_SERVICE_ACCOUNT_CREDENTIAL" not in app["env"]


def test_no_user_is_marathons_own_user(render: Render) -> None:
    assert "user" not in render(user="")


def test_everything_fetched_comes_from_the_packages_resources(
    render: Render, package: Package
) -> None:
    uris = [each["uri"] for each in render()["fetch"]]
    assert uris == [package.resource["assets"]["uris"]["scheduler-tar-gz"]]


def test_every_option_is_in_the_template(package: Package) -> None:
    assert option_lines() in package.template


def test_each_option_has_a_variable_of_its_own() -> None:
    variables = [variable_of(path) for path in options()]
    assert len(set(variables)) == len(variables)


@pytest.mark.parametrize("version", ["2.15.1", "2.21.0"])
def test_a_version_has_its_images_in_the_package(
    render: Render, package: Package, version: str
) -> None:
    env = render(tensorflow_version=version)["env"]
    chosen = with_images(load(options_in(env)), images_in(env)).service
    images = package.resource["assets"]["container"]["docker"]
    key = f"tensorflow-{version.replace('.', '-')}"
    assert (chosen.tf_image, chosen.gpu_tf_image) == (images[key], images[f"{key}-gpu"])


def test_images_of_a_private_registry_reach_the_scheduler(package: Package) -> None:
    moved = json.loads(json.dumps(package.resource).replace("tensorflow/tensorflow:", "my/tf:"))
    elsewhere = Package(package.description, package.config, package.template, moved)
    env = marathon_app(elsewhere, {"service": {"job_name": "train"}})["env"]
    assert images_in(env)["2.21.0"].cpu == "my/tf:2.21.0"


def test_each_property_wrong_once_is_refused_with_its_path(package: Package) -> None:
    tried = 0
    for path, option in options().items():
        schema: dict[str, Any] = dict(package.config)
        for key in path:
            schema = schema["properties"][key]
        for value in wrong_values(schema):
            given: dict[str, Any] = {"service": {"job_name": "train"}}
            into = given
            for key in path[:-1]:
                into = into.setdefault(key, {})
            into[path[-1]] = value
            with pytest.raises(OptionsError) as refused:
                marathon_app(package, given)
            assert [problem.path for problem in refused.value.problems] == [option.name]
            tried += 1
    assert tried > 3 * len(options())


def test_a_misspelt_option_is_refused_with_the_nearest_name(package: Package) -> None:
    with pytest.raises(OptionsError, match=r"worker\.cuont: .*did you mean worker\.count\?"):
        marathon_app(package, {"service": {"job_name": "train"}, "worker": {"cuont": 2}})


def test_a_group_that_is_no_object_is_refused_with_its_path(package: Package) -> None:
    with pytest.raises(OptionsError, match="worker: must be of type object"):
        marathon_app(package, {"worker": 3})


def test_a_package_without_defaults_names_each_option_that_is_missing(package: Package) -> None:
    config = {
        "type": "object",
        "properties": {"a": {"type": "object", "required": ["b", "c"], "properties": {}}},
    }
    bare = Package(package.description, config, package.template, package.resource)
    with pytest.raises(OptionsError) as refused:
        marathon_app(bare, {"a": {}})
    assert [problem.path for problem in refused.value.problems] == ["a.b", "a.c"]


def test_the_local_dcos_renders_the_same_app(package: Package) -> None:
    options = {
        "service": {
            "job_name": "train",
            "user": 'a"b{{x}}\\',
            "service_account_secret": "team/trainer",
        },
        "gpu_worker": {"port": 0},
        "worker": {"cpus": 0.1},
    }
    (document,) = repository_document(package, last_updated=0)["packages"]
    app = rendering.rendered(repositories.Package(document, "here"), options).app
    mine = marathon_app(package, options)
    labels = {name: app["labels"][name] for name in mine["labels"]}
    assert {**app, "labels": labels} == {**mine, "id": f"/{mine['id']}"}


def test_the_scheduler_logs_where_the_client_looks_for_a_services_log(render: Render) -> None:
    # dcos service log shows the stdout of the app's task.
    assert render()["cmd"].endswith(" 2>&1")


def test_after_an_uninstall_no_command_is_named_that_went_with_it(package: Package) -> None:
    notes = package.description["postUninstallNotes"]
    brings_back = notes.index("'dcos package install tensorflow --cli'")
    assert brings_back < notes.index("'dcos tensorflow --name")
