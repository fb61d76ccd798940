"""Persistent volumes on an embedded cluster: real processes write into them and come back."""

import json
import urllib.request
from dataclasses import replace

import pytest

from cluster_faults import FaultyCluster
from command_line import CommandLine, write_options
from dcos_tensorflow.core.model.events import PodCommand, PodVerb, UninstallRequested
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec, VolumeType
from embedded_mesos import AgentConfig, Timing
from mesos_scheduler import Scheduler as BareScheduler
from scheduled_jobs import DEADLINE, command_job, done, running, wait_until
from waiting import eventually

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
    cluster.faults.kill_executor(before.tasks["worker-1"].task_id)
    wait_until(
        scheduler,
        lambda s: s.tasks["worker-1"].task_id != before.tasks["worker-1"].task_id and running(s),
    )
    wait_until(scheduler, lambda s: starts(marks, "worker-1") == 2)
    after = scheduler.state().tasks["worker-1"]
    assert after.agent_id == before.tasks["worker-1"].agent_id
    assert after.ports == before.tasks["worker-1"].ports


def test_the_volume_is_the_checkpoint_directory_and_a_restart_on_request_keeps_it(
    schedule, cluster, marks
):
    scheduler = schedule(keeping(marks))
    wait_for_starts(scheduler, marks, {"worker-0": 1, "worker-1": 1})
    cwd = (marks / "worker-0.cwd").read_text().strip()
    assert (marks / "worker-0.dir").read_text().strip() == f"{cwd}/tf-volume"
    before = volumes(cluster)
    scheduler.submit(PodCommand(PodVerb.RESTART, ("worker-0",)))
    wait_until(scheduler, lambda s: starts(marks, "worker-0") == 2)
    wait_until(scheduler, running)
    assert volumes(cluster) == before


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


def test_a_task_waits_for_its_agent_and_goes_on_there(schedule, cluster, marks):
    scheduler = schedule(keeping(marks))
    wait_for_starts(scheduler, marks, {"worker-0": 1, "worker-1": 1})
    record = wait_until(scheduler, running).tasks["worker-1"]
    number = int(record.hostname.rpartition(".")[2]) - 1
    cluster.faults.partition_agent(number)
    wait_until(scheduler, lambda s: "its volume is on agent" in s.job.why)
    cluster.faults.heal_agent(number)
    after = wait_until(scheduler, lambda s: running(s) and s.job.restart.count > 0)
    assert after.tasks["worker-1"].agent_id == record.agent_id
    assert len(volumes(cluster)) == 2


def test_a_replaced_task_begins_with_an_empty_volume_and_the_old_one_is_gone(
    schedule, cluster, marks
):
    scheduler = schedule(keeping(marks))
    wait_for_starts(scheduler, marks, {"worker-0": 1, "worker-1": 1})
    before = wait_until(scheduler, running).tasks["worker-1"]
    (marks / "worker-1").unlink()
    scheduler.submit(PodCommand(PodVerb.REPLACE, ("worker-1",)))
    after = wait_until(
        scheduler, lambda s: running(s) and s.tasks["worker-1"].resource_id != before.resource_id
    )
    assert after.tasks["worker-1"].agent_id != before.agent_id
    wait_until(scheduler, lambda s: starts(marks, "worker-1") == 1)
    wait_until(scheduler, lambda s: before.resource_id not in s.reservations)
    assert f"worker-1.{before.resource_id}" not in volumes(cluster)
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


def test_the_reservation_of_another_framework_in_our_role_is_left_alone(schedule, cluster, marks):
    labels = [
        {"key": "resource_id", "value": "theirs"},
        {"key": "framework_id", "value": "another"},
    ]
    reservation = {"type": "DYNAMIC", "role": ROLE, "labels": {"labels": labels}}
    with BareScheduler(cluster.master, role=ROLE, failover_timeout=600) as other:
        offer = other.offer()
        taken = {
            "name": "cpus",
            "type": "SCALAR",
            "scalar": {"value": 0.05},
            "reservations": [reservation],
            "allocation_info": {"role": ROLE},
        }
        other.call(
            "ACCEPT",
            {
                "offer_ids": [offer["id"]],
                "operations": [{"type": "RESERVE", "reserve": {"resources": [taken]}}],
                "filters": {"refuse_seconds": 600},
            },
        )
        other.call("SUPPRESS", {})
    scheduler = schedule(keeping(marks))
    wait_for_starts(scheduler, marks, {"worker-0": 1, "worker-1": 1})
    scheduler.submit(UninstallRequested("the test wants it"))
    wait_until(scheduler, lambda s: s.removal.erased)
    left = reserved(cluster)
    assert [labels["resource_id"] for labels, _ in left] == ["theirs"]
    assert left[0][1]["scalar"]["value"] == 0.05


@pytest.mark.parametrize("lost", ["drop_accept_before", "drop_accept_after"])
def test_an_accept_whose_fate_is_unknown_makes_no_second_volume(schedule, cluster, marks, lost):
    getattr(cluster.faults, lost)(1)
    scheduler = schedule(keeping(marks))
    wait_for_starts(scheduler, marks, {"worker-0": 1, "worker-1": 1})
    state = scheduler.state()
    kept = {f"{r.task}.{r.resource_id}" for r in state.reservations.values() if not r.given_up}
    assert volumes(cluster) == kept


def test_a_run_gives_its_volumes_back_at_its_end(cluster, tmp_path):
    options = write_options(
        tmp_path,
        service={"name": "job", "job_cmd": "echo done > tf-volume/file", "user": ""},
        worker={"count": 2, "persistent_volume": True},
    )
    ended = CommandLine(tmp_path / "home").ask("run", options, "--master", cluster.master)
    assert ended.code == 0, ended.out
    assert reserved(cluster) == []


@pytest.fixture
def options(tmp_path, marks):
    """Options of a job whose workers write into their volumes at each start."""
    command = (
        f'echo "$TASK_NAME" >> tf-volume/starts; cp tf-volume/starts "{marks}/$TASK_NAME"; '
        f'while [ ! -e "{marks}/finish" ]; do sleep 0.05; done'
    )
    return write_options(
        tmp_path,
        service={"name": "job", "job_cmd": command, "user": ""},
        worker={"count": 2, "persistent_volume": True},
    )


def test_a_scheduler_that_was_killed_finds_the_volumes_of_its_tasks(
    start, cluster, tmp_path, marks
):
    state = f"sqlite:///{tmp_path}/state.db"
    first = start("first", state)
    job = first.wait_for("running")
    eventually(lambda: starts(marks, "worker-0") == 1, seconds=DEADLINE, what="a first start")
    first.kill()
    before = volumes(cluster)
    cluster.faults.kill_executor(job["tasks"]["worker-0"]["task_id"])
    second = start("second", state)
    eventually(lambda: starts(marks, "worker-0") == 2, seconds=DEADLINE, what="a second start")
    second.wait_for("running")
    assert volumes(cluster) == before
    assert len(before) == 2


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
