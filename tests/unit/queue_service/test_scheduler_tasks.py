"""Jobs' schedulers as units of a service: which unit is whose, and where it runs."""

import pytest

from dcos_tensorflow.core.kept.codec import decode, encode
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import Shape, UnitKind
from dcos_tensorflow.queue_service.scheduler_tasks import SchedulerPlace, SchedulerTasks
from simulated.scheduler import room_for_one_each
from simulated.work import Work

RIGHTS = "team-red.json"


class Cluster:
    """The tasks of a queue on a simulated cluster."""

    def __init__(self) -> None:
        self.work = Work(0, room_for_one_each(3), UnitKind.SCHEDULER)
        self.tasks = SchedulerTasks(self)

    def state(self) -> ServiceState:
        return self.work.scheduler.state

    def carry_out(self, event: Event) -> None:
        self.work.scheduler.handle(event)

    def start(self, *jobs: str) -> None:
        for job in jobs:
            self.tasks.want(job, RIGHTS)
        self.work.go(5)

    def end(self, job: str, *, well: bool) -> None:
        unit = next(n for n in range(len(self.state().units)) if self.job_of(n) == job)
        (slot,) = self.state().units.running[unit]
        if well:
            self.work.finish(slot)
        while not well and self.tasks.place_of(job).is_wanted:
            self.work.fail(slot)
            self.work.go(10)
        self.work.go(10)

    def job_of(self, number: int) -> str:
        return str(self.state().units.payload(number)["env"]["QUEUED_JOB"])


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_each_job_has_a_task_with_an_address_of_its_own(cluster: Cluster) -> None:
    cluster.start("one", "two")
    places = [cluster.tasks.place_of(job) for job in ("one", "two")]
    assert all(place.is_wanted and place.agent for place in places)
    assert len({place.api for place in places}) == 2


def test_a_job_is_started_once(cluster: Cluster) -> None:
    cluster.start("one", "one")
    cluster.start("one")
    assert len(cluster.state().units) == 1


def test_a_job_that_runs_again_has_its_unit_again(cluster: Cluster) -> None:
    cluster.start("one")
    cluster.end("one", well=True)
    assert cluster.tasks.place_of("one") == SchedulerPlace(False)
    cluster.start("one")
    assert cluster.tasks.place_of("one").is_wanted
    assert len(cluster.state().units) == 1


def test_another_job_has_the_unit_of_one_that_is_over(cluster: Cluster) -> None:
    cluster.start("one")
    cluster.end("one", well=True)
    cluster.start("two")
    assert (cluster.job_of(0), len(cluster.state().units)) == ("two", 1)


def machine_of(cluster: Cluster, job: str) -> str:
    agent = cluster.tasks.place_of(job).agent
    records = cluster.state().live_tasks
    return next((record.hostname for record in records if record.agent_id == agent), "")


def test_each_goes_to_the_machine_that_the_queue_has_for_it(cluster: Cluster) -> None:
    hosts = sorted(f"host-{agent}" for agent in cluster.work.cluster.agents)
    for job, host in zip(("one", "two", "three"), reversed(hosts), strict=True):
        cluster.tasks.want(job, RIGHTS, host)
    cluster.work.go(5)
    assert [machine_of(cluster, job) for job in ("three", "two", "one")] == hosts


def test_one_that_waits_for_a_machine_that_never_comes_may_go_elsewhere(cluster: Cluster) -> None:
    cluster.tasks.want("one", RIGHTS, "gone.example")
    cluster.work.go(10)
    assert not cluster.tasks.place_of("one").api
    cluster.start("one")
    assert cluster.tasks.place_of("one").api
    cluster.work.go(10)
    assert len(cluster.state().gangs) == len(("main", "slot"))


def test_the_machine_of_a_slot_is_known_after_a_crash(cluster: Cluster) -> None:
    cluster.tasks.want("one", RIGHTS, "gone.example")
    cluster.work.go(5)
    shapes = {gang.job.shape for gang in cluster.state().gangs.values()}
    assert {decode(Shape, encode(shape)) for shape in shapes} == shapes
    assert len(shapes) > 1


def test_the_place_of_one_that_failed_says_why_until_it_is_wanted_again(cluster: Cluster) -> None:
    cluster.start("one")
    cluster.end("one", well=False)
    place = cluster.tasks.place_of("one")
    assert (place.is_wanted, "exit code 1" in place.why) == (False, True)
    cluster.start("one")
    assert cluster.tasks.place_of("one").is_wanted
