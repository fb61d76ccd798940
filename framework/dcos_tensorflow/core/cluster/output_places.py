"""The folder in which each task of a run leaves its results: ``OUTPUT_DIR`` (docs/job-contract.md).

Used by ``launch`` for each task, and by the API and the command line to show it. It lies beside the
checkpoints, in a folder of the run's own, each task's apart: no task writes over another's result,
and no run over that of the run before. Pure.
"""

from __future__ import annotations

from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec, TaskRole
from dcos_tensorflow.records import dataclass

#: The folder of all runs: in a volume, beside shared checkpoints, in the bucket.
OUTPUT_FOLDER = "output"
#: In the sandbox, where the job's code is unpacked and may have a folder of that name.
SANDBOX_FOLDER = "job-output"


@dataclass(frozen=True)
class Run:
    """One job of a service, from its first launch to its end."""

    #: Counts the runs of the service, from 1.
    number: int = 1
    #: Is that of no other run, of any service.
    instance: str = ""
    #: Where all tasks are on one machine: its folder for the output of all runs; else empty.
    home: str = ""

    @property
    def folder(self) -> str:
        """Return the run's folder: with a part of its id where another life of the service, whose
        runs were counted from 1, too, may have left its own."""
        return str(self.number) if self.home else f"{self.number}-{self.instance[:8]}"


def run_of(state: ServiceState) -> Run:
    """Return the service's present run."""
    return Run(state.run, state.instance, state.settings.output_dir)


def output_dir(spec: ServiceSpec, role: RoleSpec, task: str, run: Run) -> str:
    """Return a task's OUTPUT_DIR: absolute, a URL, or below the sandbox."""
    if run.home:
        return f"{run.home}/{run.folder}/{task}"
    shared = _shared(spec)
    if shared:
        return f"{shared}/{OUTPUT_FOLDER}/{run.folder}/{task}"
    if role.volume is not None:
        return f"{role.volume.path}/{OUTPUT_FOLDER}/{run.folder}"
    return SANDBOX_FOLDER


def output_uri(spec: ServiceSpec, role: TaskRole, task: str, run: Run) -> str:
    """Return where in S3 a task's OUTPUT_DIR is copied; empty where it is not."""
    kept = _in_s3(spec, run)
    # The others run none of the user's code, or save nothing.
    return f"{kept}/{task}" if kept and role.runs_job else ""


def output_place(spec: ServiceSpec, run: Run) -> str:
    """Return where a run's output outlives its tasks, for people; empty when nowhere."""
    if run.home:
        return f"{run.home}/{run.folder}"
    shared = _shared(spec)
    return _in_s3(spec, run) or (f"{shared}/{OUTPUT_FOLDER}/{run.folder}" if shared else "")


def _in_s3(spec: ServiceSpec, run: Run) -> str:
    base = spec.storage.checkpoints.uri.rstrip("/")
    # On one machine, too, a name of its own: the bucket may be that of several.
    return f"{base}/{OUTPUT_FOLDER}/{run.number}-{run.instance[:8]}" if base else ""


def _shared(spec: ServiceSpec) -> str:
    """Return what all machines share for checkpoints, but for S3; empty for nothing."""
    job, storage = spec.job, spec.storage
    if storage.checkpoints.uri:
        return ""
    shared = "" if storage.summaries_uri else job.shared_filesystem
    return (job.checkpoint_dir or shared).rstrip("/")
