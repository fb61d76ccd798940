"""Packages are installed, changed and uninstalled as with Cosmos."""

from __future__ import annotations

from pathlib import Path

from waiting import eventually

from .world import World


def test_an_installed_package_runs_behind_the_service_proxy(world: World) -> None:
    world.install(name="tensorflow")
    assert world.get("/service/tensorflow/v1/state/frameworkId") == ["tensorflow-id"]


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
