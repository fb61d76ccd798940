"""Persistent volumes on an embedded cluster: real processes write into them and come back."""

import json
import urllib.request
from dataclasses import replace

import pytest

from cluster_faults import FaultyCluster
from command_line import CommandLine, write_options
from dcos_tensorflow.core.model.events import UninstallRequested
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec, VolumeType
from embedded_mesos import AgentConfig, Timing
from jobs.scheduled_jobs import command_job, done, running, wait_until

ROLE = "job-role"
VOLUME = VolumeSpec(size=100, path="tf-volume")


@pytest.fixture
def cluster(tmp_path):
    """Three agents with room for one worker each; each has a whole disk besides."""
    agents = [
        AgentConfig(
            address=f"127.0.0.{n}",
            cpus=0.3,
            mem=512,
            ports=(20000 + 500 * n, 20499 + 500 * n),
            mounts={str(tmp_path / f"disk-{n}"): 1000},
        )
        for n in (1, 2, 3)
    ]
    timing = Timing(
        allocation=0.2, agent_ping=0.2, agent_ping_timeouts=3, update_retry=0.5, heartbeat=0.5
    )
    with FaultyCluster(agents, tmp_path / "mesos", timing=timing) as made:
        yield made


def keeping(marks, volume=VOLUME, **changes):
    """A job whose workers write into their volumes at each start and copy it for the test."""
    spec = command_job(
        f'pwd -P > "{marks}/$TASK_NAME.cwd"; echo "$CHECKPOINT_DIR" > "{marks}/$TASK_NAME.dir"; '
        f'echo "$TASK_NAME" >> tf-volume/starts; cp tf-volume/starts "{marks}/$TASK_NAME"; '
        f'while [ ! -e "{marks}/finish" ]; do sleep 0.05; done',
        mesos_role=ROLE,
        **changes,
    )
    small = Resources(cpus=0.2, mem=64)
    roles = tuple(replace(r, volume=volume, resources=small) for r in spec.roles)
    return replace(spec, roles=roles)


def starts(marks, name):
    """Return how often the volume that a task has now was started with."""
    file = marks / name
    return len(file.read_text().splitlines()) if file.exists() else 0


def reserved(cluster):
    """Return every reserved resource that the master knows of, by the labels' values."""
    with urllib.request.urlopen(f"http://{cluster.master}/slaves", timeout=10) as answer:
        slaves = json.load(answer)["slaves"]
    found = []
    for slave in slaves:
        for resources in slave["reserved_resources_full"].values():
            for resource in resources:
                labels = resource["reservation"]["labels"]["labels"]
                found.append(({each["key"]: each["value"] for each in labels}, resource))
    return found


def volumes(cluster):
    return {
        resource["disk"]["persistence"]["id"]
        for _, resource in reserved(cluster)
        if "persistence" in resource.get("disk", {})
    }


def wait_for_starts(scheduler, marks, counts):
    """Wait until the whole gang runs and the volumes say so many starts."""
    wait_until(
        scheduler,
        lambda s: running(s) and {name: starts(marks, name) for name in counts} == counts,
    )


def test_a_task_finds_what_it_wrote_when_its_container_was_killed(schedule, cluster, marks):
    scheduler = schedule(keeping(marks))
    before = wait_until(scheduler, running)
    wait_for_starts(scheduler, marks, {"worker-0": 1, "worker-1": 1})
    cwd = (marks / "worker-0.cwd").read_text().strip()
    assert (marks / "worker-0.dir").read_text().strip() == f"{cwd}/tf-volume"
    cluster.faults.kill_executor(before.tasks["worker-1"].task_id)
    wait_until(
        scheduler,
        lambda s: s.tasks["worker-1"].task_id != before.tasks["worker-1"].task_id and running(s),
    )
    wait_until(scheduler, lambda s: starts(marks, "worker-1") == 2)
    after = scheduler.state().tasks["worker-1"]
    assert after.agent_id == before.tasks["worker-1"].agent_id
    assert after.ports == before.tasks["worker-1"].ports


def test_a_task_that_is_lost_while_the_scheduler_is_away_comes_back_to_its_volume(
    schedule, cluster, marks
):
    spec = keeping(marks)
    first = schedule(spec)
    wait_for_starts(first, marks, {"worker-0": 1, "worker-1": 1})
    before = wait_until(first, running)
    first.stop()
    cluster.faults.kill_executor(before.tasks["worker-0"].task_id)
    second = schedule(spec)
    wait_until(second, lambda s: starts(marks, "worker-0") == 2)
    after = wait_until(second, running)
    assert after.tasks["worker-0"].agent_id == before.tasks["worker-0"].agent_id
    assert len(volumes(cluster)) == 2


def test_a_volume_can_be_a_whole_disk(schedule, cluster, marks, tmp_path):
    scheduler = schedule(keeping(marks, replace(VOLUME, kind=VolumeType.MOUNT)))
    wait_for_starts(scheduler, marks, {"worker-0": 1, "worker-1": 1})
    found = sorted(tmp_path.glob("disk-*/starts"))
    assert len(found) == 2
    sizes = {r["scalar"]["value"] for _, r in reserved(cluster) if "disk" in r}
    assert sizes == {1000}


def test_a_job_that_is_done_keeps_its_volumes_alone_until_it_is_uninstalled(
    schedule, cluster, marks
):
    scheduler = schedule(keeping(marks))
    wait_for_starts(scheduler, marks, {"worker-0": 1, "worker-1": 1})
    (marks / "finish").touch()
    state = wait_until(
        scheduler, lambda s: done(s) and all(r.volume_only for r in s.reservations.values())
    )
    assert state.job.verdict.outcome is Outcome.SUCCEEDED
    wait_until(scheduler, lambda s: {r["name"] for _, r in reserved(cluster)} == {"disk"})
    assert len(volumes(cluster)) == 2
    scheduler.submit(UninstallRequested("the test wants it"))
    state = wait_until(scheduler, lambda s: s.removal.erased)
    assert state.uninstall.given_up == ()
    assert reserved(cluster) == []


def test_a_run_gives_its_volumes_back_at_its_end(cluster, tmp_path):
    options = write_options(
        tmp_path,
        service={"name": "job", "job_cmd": "echo done > tf-volume/file", "user": ""},
        worker={"count": 2, "persistent_volume": True},
    )
    ended = CommandLine(tmp_path / "home").ask("run", options, "--master", cluster.master)
    assert ended.code == 0, ended.out
    assert reserved(cluster) == []


def test_a_framework_that_the_operator_removed_finds_its_volumes_as_another_and_leaves_none(
    schedule, cluster, marks
):
    scheduler = schedule(keeping(marks))
    wait_for_starts(scheduler, marks, {"worker-0": 1, "worker-1": 1})
    before, known = scheduler.state(), volumes(cluster)
    body = f"frameworkId={before.framework_id}".encode()
    with urllib.request.urlopen(f"http://{cluster.master}/teardown", body) as answer:
        assert answer.status == 200
    wait_until(scheduler, lambda s: s.framework_id not in ("", before.framework_id))
    wait_for_starts(scheduler, marks, {"worker-0": 2, "worker-1": 2})
    assert volumes(cluster) == known
    scheduler.submit(UninstallRequested("the test wants it"))
    state = wait_until(scheduler, lambda s: s.removal.erased)
    assert state.uninstall.given_up == ()
    assert reserved(cluster) == []
