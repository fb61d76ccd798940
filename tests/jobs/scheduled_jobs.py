"""What the scheduler's integration tests share: a job of shell commands, and how to wait for it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    GangSpec,
    JobSpec,
    RetrySpec,
    RoleSpec,
    ServiceSpec,
    TaskRole,
)
from dcos_tensorflow.scheduler.configuration import SchedulerConfig
from dcos_tensorflow.scheduler.gate import Allowed
from dcos_tensorflow.scheduler.scheduler import Scheduler

#: Seconds; an unhurried machine needs a tenth of it.
DEADLINE = 40.0


def command_job(command: str, workers: int = 2, **changes: object) -> ServiceSpec:
    """Return a service whose workers run a shell command."""
    small = Resources(cpus=0.2, mem=64, disk=10)
    settings: dict[str, object] = {
        "gang": GangSpec(hold_seconds=2, retry_seconds=0.5),
        "retry": RetrySpec(limit=2, initial_backoff_seconds=0.2),
        "outcome_grace_seconds": 1.0,
        "kill_grace_seconds": 1.0,
        **changes,
    }
    return ServiceSpec(
        name="job",
        roles=(RoleSpec(TaskRole.WORKER, workers, small, python=sys.executable),),
        job=JobSpec(command=command, contract="command"),
        **settings,  # type: ignore[arg-type]
    )


def here(folder: Path, master: str, **more: Any) -> SchedulerConfig:
    """Return the settings of a scheduler in this process, whose files are in ``folder``."""
    usual = {
        "state": f"sqlite:///{folder}/state.db",
        "artifacts_dir": folder / "artifacts",
        "artifacts": "file",
        "leadership_timeout_seconds": 0.0,
        "allowed": Allowed(everything=True),
        "tick_seconds": 0.05,
    }
    return SchedulerConfig(master, **{**usual, **more})


def wait_until(scheduler: Scheduler, condition: Callable[[ServiceState], bool]) -> ServiceState:
    """Wait for the state to fit; fails with what the job says of itself."""
    loop = scheduler._running_loop()
    if not loop.wait_for(condition, DEADLINE):
        pytest.fail(f"still {loop.state.job.phase}: {loop.state.job.why}")
    assert loop.exit is None, loop.exit
    return loop.state


def running(state: ServiceState) -> bool:
    """Say whether the whole gang runs."""
    return state.job.phase is JobPhase.RUNNING


def done(state: ServiceState) -> bool:
    """Say whether the job is done."""
    return state.job.phase is JobPhase.DONE
