"""Packages are installed, changed and uninstalled as with Cosmos."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from embedded_mesos import EmbeddedCluster
from local_dcos import Login
from local_dcos.cosmos import rendering
from masters.mesos_scheduler import Scheduler
from waiting import eventually, stays

from .conftest import WHO, MakeWorld
from .packages import package, repository
from .world import World

ARTIFACTS = "http://127.0.0.1:1/artifacts"


def simple(template: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    """Return a package ``simple`` with this app."""
    text = template if isinstance(template, str) else json.dumps(template)
    return {
        "name": "simple",
        "version": "1",
        "releaseVersion": 1,
        "packagingVersion": "4.0",
        "marathon": {"v2AppMustacheTemplate": base64.b64encode(text.encode()).decode()},
        **more,
    }


def add(world: World, folder: Path, *packages: dict[str, Any], name: str = "more") -> None:
    uri = repository(folder, *packages, name=f"{name}.json")
    world.cosmos("repository/add", {"name": name, "uri": uri})


def test_a_service_in_a_folder_is_reached_by_its_whole_name(world: World) -> None:
    world.install(name="group/tf")
    world.install(name="group")
    assert world.get("/service/group/tf/v1/state/frameworkId") == ["group/tf-id"]
    assert world.get("/service/group/v1/state/frameworkId") == ["group-id"]


def test_options_arrive_in_the_environment_of_the_scheduler(world: World) -> None:
    world.install(name="tensorflow", job_name='a "quoted" \\ name')
    found = world.get("/service/tensorflow/environment")
    assert found["JOB_NAME"] == 'a "quoted" \\ name'
    assert found["WORKER_CPUS"] == "0.5"


def test_of_installations_of_one_name_at_once_all_but_one_are_refused(world: World) -> None:
    body = {"packageName": "tensorflow"}
    with ThreadPoolExecutor(4) as clients:
        replies = list(clients.map(lambda _: world.ask("POST", "/package/install", body), range(4)))
    assert sorted(reply.status for reply in replies) == [200, 409, 409, 409]
    assert len(world.settled("/tensorflow")["tasks"]) == 1


def test_a_place_among_the_repositories_may_be_written_as_text(
    world: World, tmp_path: Path
) -> None:
    """The ``dcos`` command of DC/OS 1.11 does so."""
    body = {"name": "first", "uri": repository(tmp_path, name="first.json"), "index": "0"}
    found = world.cosmos("repository/add", body)["repositories"]
    assert [one["name"] for one in found] == ["first", "Local"]


def test_a_repository_that_cannot_be_read_is_refused_when_it_is_added(world: World) -> None:
    body = {"name": "gone", "uri": "http://127.0.0.1:1/repo.json"}
    error = world.cosmos("repository/add", body, expect=400)
    assert error["type"] == "RepositoryUriConnection"
    assert len(world.cosmos("repository/list", None)["repositories"]) == 1


def test_a_package_that_was_built_anew_is_seen_at_once(world: World, tmp_path: Path) -> None:
    newer = package("1.1.0", 2, ARTIFACTS)
    repository(tmp_path, newer)
    found = world.cosmos("describe", {"packageName": "tensorflow"})["package"]
    assert found["version"] == "1.1.0"


def test_a_file_of_a_package_on_this_machine_is_served(world: World, tmp_path: Path) -> None:
    (tmp_path / "icon.png").write_bytes(b"icon")
    images = {"images": {"icon-small": (tmp_path / "icon.png").as_uri()}}
    add(world, tmp_path, simple({"id": "x", "cmd": "true"}, resource=images))
    found = world.cosmos("describe", {"packageName": "simple"})["package"]["resource"]["images"]
    url = found["icon-small"]
    assert url.startswith(f"http://{world.dcos.address}/")
    assert world.ask("GET", url.removeprefix(f"http://{world.dcos.address}")).body == b"icon"


def test_a_file_that_no_package_names_is_not_served(world: World) -> None:
    assert world.ask("GET", "/package/resource?url=file:///etc/passwd").status == 404


def test_a_variable_without_a_value_is_an_error_and_starts_nothing(
    world: World, tmp_path: Path
) -> None:
    add(world, tmp_path, simple('{"id": "x", "cmd": "{{service.nme}}"}'))
    error = world.cosmos("install", {"packageName": "simple"}, expect=400)
    assert "line 1: service.nme has no value" in error["message"]
    assert world.app_ids() == []


def test_an_app_that_cannot_run_here_is_refused_with_the_reason(
    world: World, tmp_path: Path
) -> None:
    app = {"id": "x", "cmd": "true", "container": {"type": "MESOS", "docker": {"image": "i"}}}
    add(world, tmp_path, simple(app))
    error = world.cosmos("install", {"packageName": "simple"}, expect=400)
    assert "/container/docker: not supported by the local DC/OS" in error["message"]


def test_an_app_id_does_not_change_the_name_of_the_service(world: World) -> None:
    body = {"packageName": "tensorflow", "appId": "/mine"}
    found = world.cosmos("render", body)["marathonJson"]
    assert (found["id"], found["env"]["FRAMEWORK_NAME"]) == ("/mine", "tensorflow")


# -- update ------------------------------------------------------------------------------------


def test_an_update_that_comes_while_another_is_made_is_not_undone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.install(name="tensorflow")
    real, first = rendering.rendered, [{"worker": {"cpus": 0.25}}]

    def rendered(*given: Any) -> rendering.Rendered:
        if first:
            body = {"appId": "tensorflow", "options": first.pop(), "replace": False}
            world.service("update", body)
        return real(*given)

    monkeypatch.setattr(rendering, "rendered", rendered)
    body = {"appId": "tensorflow", "options": {"worker": {"count": 5}}, "replace": False}
    worker = world.service("update", body)["resolvedOptions"]["worker"]
    assert (worker["count"], worker["cpus"]) == (5, 0.25)


def test_an_update_that_replaces_goes_back_to_the_defaults(world: World) -> None:
    world.install(name="tensorflow", job_name="mine")
    body = {"appId": "/tensorflow", "options": {}, "replace": True}
    assert world.service("update", body)["resolvedOptions"]["service"]["job_name"] == "mnist"


def test_describe_tells_what_the_user_gave_and_what_became_of_it(world: World) -> None:
    world.install(name="tensorflow", job_name="mine")
    found = world.service("describe", {"appId": "tensorflow"})
    assert found["userProvidedOptions"]["service"]["job_name"] == "mine"
    assert found["resolvedOptions"]["worker"] == {"count": 2, "cpus": 0.5, "mem": 512}
    assert found["package"]["version"] == "1.0.0"


def test_a_users_own_url_comes_back_as_it_was_given(world: World) -> None:
    world.install(name="tensorflow", job_url="file:///jobs/mine.zip")
    found = world.service("describe", {"appId": "tensorflow"})
    options = (found["userProvidedOptions"], found["resolvedOptions"])
    given = [each["service"]["job_url"] for each in options]
    assert given == ["file:///jobs/mine.zip"] * 2
    body = {"appId": "tensorflow", "options": {"service": {"log_level": "debug"}}}
    assert world.service("update", body)["resolvedOptions"]["service"]["job_url"] == given[0]


def test_a_service_is_described_although_its_repository_is_gone(world: World) -> None:
    world.install(name="tensorflow")
    world.cosmos("repository/delete", {"name": "Local"})
    assert world.service("describe", {"appId": "tensorflow"})["package"]["name"] == "tensorflow"


def test_an_unknown_service_is_named(world: World) -> None:
    error = world.service("update", {"appId": "none", "replace": False}, expect=400)
    assert error["type"] == "MarathonAppNotFound"


def test_the_enterprise_variant_tells_which_versions_are_possible(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    world = make_world(variant="enterprise")
    versions = [package("1.0.0", 1, ARTIFACTS), package("0.9.0", 0, ARTIFACTS)]
    add(world, tmp_path, *versions)
    world.install(name="tensorflow")
    found = world.service("describe", {"appId": "tensorflow"})
    assert (found["upgradesTo"], found["downgradesTo"]) == ([], ["0.9.0"])


# -- uninstall ---------------------------------------------------------------------------------


def test_uninstall_waits_for_the_scheduler_and_then_deletes_the_app(
    world: World, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    app_id = world.install(name="tensorflow", hold=str(hold))
    world.cosmos("uninstall", {"packageName": "tensorflow"})
    eventually(lambda: world.ask("GET", "/service/tensorflow/v1/plans/deploy").status == 202)
    assert app_id in world.app_ids()
    hold.unlink()
    world.gone(app_id)


def test_a_scheduler_that_names_another_framework_is_waited_for(
    world: World, tmp_path: Path
) -> None:
    answers = tmp_path / "answers.json"
    answers.write_text('{"GET /v1/state/frameworkId": [200, "application/json", "[\\"A\\"]"]}')
    hold = tmp_path / "hold"
    hold.touch()
    world.install(name="tensorflow", answers=str(answers), hold=str(hold))
    world.cosmos("uninstall", {"packageName": "tensorflow"})
    answers.write_text('{"GET /v1/state/frameworkId": [200, "application/json", "[]"]}')
    hold.unlink()
    eventually(lambda: world.ask("GET", "/service/tensorflow/v1/plans/deploy").status == 200)
    assert stays(lambda: "/tensorflow" in world.app_ids(), 0.3)
    answers.write_text('{"GET /v1/state/frameworkId": [404, "text/plain", ""]}')
    world.gone("/tensorflow")


def test_an_uninstall_is_taken_up_again_after_a_restart(world: World, tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    world.install(name="tensorflow", hold=str(hold))
    world.cosmos("uninstall", {"packageName": "tensorflow"})
    world.dcos.stop()
    hold.unlink()
    world.dcos.start()
    world.gone("/tensorflow")


def test_all_instances_can_be_uninstalled_at_once(world: World) -> None:
    world.install(name="one")
    world.install(name="two")
    found = world.cosmos("uninstall", {"packageName": "tensorflow", "all": True})["results"]
    assert [one["appId"] for one in found] == ["/one", "/two"]
    world.gone("/one")
    world.gone("/two")


def test_without_the_sdks_label_the_framework_is_torn_down(
    world: World, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    labels = {"DCOS_PACKAGE_FRAMEWORK_NAME": "test"}
    add(world, tmp_path, simple({"id": "x", "cmd": "sleep 600", "labels": labels}))
    with Scheduler(cluster.master, credentials=WHO):
        world.cosmos("install", {"packageName": "simple"})
        world.cosmos("uninstall", {"packageName": "simple"})
        world.gone("/x")
        names = [one["name"] for one in world.get("/mesos/frameworks")["frameworks"]]
        assert "test" not in names


def test_an_instance_that_is_not_there_is_named(world: World) -> None:
    world.install(name="tensorflow")
    body = {"packageName": "tensorflow", "appId": "other"}
    error = world.cosmos("uninstall", body, expect=400)
    assert error["type"] == "UninstallNonExistentAppForPackage"


# -- around it ---------------------------------------------------------------------------------


def test_a_page_of_another_site_cannot_install_anything(world: World) -> None:
    origin = {"Origin": "http://evil.example", "Content-Type": "application/json"}
    body = {"packageName": "tensorflow"}
    assert world.ask("POST", "/package/install", body, origin).status == 403
    assert world.app_ids() == []


def test_with_a_login_nothing_is_answered_without_the_token(make_world: MakeWorld) -> None:
    world = make_world(login=Login("admin", "secret"))
    assert world.ask("POST", "/package/list", {}).status == 401
    wrong = {"uid": "admin", "password": "no"}
    assert world.ask("POST", "/acs/api/v1/auth/login", wrong).status == 401


def test_without_a_master_its_requests_are_answered_with_503(make_world: MakeWorld) -> None:
    world = make_world(master="127.0.0.1:1")
    assert world.ask("GET", "/mesos/master/state").status == 503
