"""Ending a local job whose scheduler is gone: killed, or ended by a signal.

Used by ``stop``. Only a scheduler can end a job, so one is started for that long, on the embedded
cluster where the job's tasks are. Where no such cluster runs any more its tasks are gone too; the
scheduler then finds that out on a small new one.
"""

from __future__ import annotations

import time
from contextlib import ExitStack

from dcos_tensorflow.client import ending
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.registry import only_run
from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.deploy.embedded import cluster as embedded
from dcos_tensorflow.deploy.embedded.cluster import EmbeddedCluster
from dcos_tensorflow.deploy.embedded.machine import FIRST_OWN_PORT, AgentWishes, agents
from dcos_tensorflow.deploy.job.deployment import PreparedJob, SeenCode
from dcos_tensorflow.deploy.own_log import log_to_file
from dcos_tensorflow.deploy.scheduler_settings import scheduler_config, with_guarded_api
from dcos_tensorflow.deploy.served_job import ServedJob
from dcos_tensorflow.deploy.settings import collect

_SMALL = AgentWishes(cpus=1, mem=128, disk=128, gpus=0)


def end_orphaned_job(
    work: WorkDirectory, directory: ServiceDirectory, state: ServiceState, url: str, seconds: float
) -> Snapshot:
    """End the job and return its last snapshot. Raises CliError when it does not end in time."""
    spec = state.spec
    with ExitStack() as stack:
        stack.enter_context(only_run(directory, spec.name))
        stack.enter_context(log_to_file(directory.log, "INFO"))
        cluster = _cluster(work, directory, stack)
        flags = {"master": cluster.master, "state": url, "wait_for_leadership": False}
        settings = with_guarded_api(collect(None, {}, flags), local=True)
        config = cluster.entered_by(scheduler_config(settings, directory, local=True))
        prepared = PreparedJob(spec, None, SeenCode(spec.job.contract), ())
        served = stack.enter_context(ServedJob(prepared, config, directory, {}, local=True))
        served.stop_job("stopped from the command line")
        deadline = time.monotonic() + seconds
        while not served.wait(0.2):
            if time.monotonic() > deadline:
                raise CliError(f"The job {spec.name} did not end within {seconds:g} s.")
        served.check()
        snapshot = served.snapshot()
        ending.keep(directory, ending.document(snapshot, {}))
        served.leave_cluster()
        return snapshot


def _cluster(work: WorkDirectory, directory: ServiceDirectory, stack: ExitStack) -> EmbeddedCluster:
    left = embedded.running(directory.cluster)
    if left is None:
        lasting = embedded.running(work.local)
        if lasting is not None:
            return EmbeddedCluster.at(work.local, lasting, own=False)
        left = embedded.up(directory.cluster, agents(_SMALL, directory.path, FIRST_OWN_PORT))
    stack.callback(embedded.down, directory.cluster)
    return EmbeddedCluster.at(directory.cluster, left, own=True)
