"""Where options may have machines bought is the operator's to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.cli.serving.scheduler_settings import scheduler_config
from dcos_tensorflow.cli.settings import PREFIX, collect
from dcos_tensorflow.cli.work_directory import ServiceDirectory
from dcos_tensorflow.options import OptionsError, load, service_spec
from dcos_tensorflow.scheduler.configuration import SchedulerConfig
from dcos_tensorflow.scheduler.machine_provider import refusal
from dcos_tensorflow.scheduler.scheduler import Scheduler
from simulated_scheduler import small_job

RACK = "/opt/rack/machines"


def options_of(provider: str, **section: object) -> dict[str, Any]:
    """Return options that name a provider."""
    return {
        "service": {"name": "mnist", "job_url": "http://host/job.zip", "job_name": "train"},
        "capacity": {"provider": provider, "budget": 10, provider: section},
    }


COMMAND = service_spec(load(options_of("command", cmd=[RACK, "--all"]))).capacity


def test_a_program_that_nobody_has_allowed_is_refused_by_its_option() -> None:
    (problem,) = refusal(COMMAND, frozenset({"ec2", "/opt/rack"}))
    assert problem.path == "capacity.command.cmd"
    assert f"--machines-from {RACK}" in problem.message


@pytest.mark.parametrize("allowed", [frozenset({"ec2", RACK}), frozenset({"*"}), None])
def test_what_is_allowed_may_be_asked(allowed: frozenset[str] | None) -> None:
    assert refusal(COMMAND, allowed) == ()


def test_options_without_machines_need_nothing() -> None:
    assert refusal(None, frozenset()) == ()


@pytest.mark.parametrize(("local", "allowed"), [(True, None), (False, frozenset({"ec2"}))])
def test_on_the_embedded_cluster_alone_all_is_allowed(
    tmp_path: Path, local: bool, allowed: frozenset[str] | None
) -> None:
    settings = collect(None, {f"{PREFIX}MACHINES_FROM": "ec2"}, {})
    config = scheduler_config(settings, ServiceDirectory(tmp_path), local=local)
    assert config.machines_from == allowed


def test_an_update_may_not_name_another_program(tmp_path: Path) -> None:
    config = SchedulerConfig("m:1", "sqlite:///none", tmp_path, machines_from=frozenset())
    scheduler = Scheduler(small_job(), config)
    with pytest.raises(OptionsError, match="--machines-from /opt/rack/machines"):
        scheduler.change_configuration(options_of("command", cmd=[RACK]))
