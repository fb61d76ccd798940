"""Each way in which EC2 gives no machine, with a whole scheduler: who waits is told why.

The sentences alone are the gate's elsewhere (``test_ec2``); here it is that they arrive.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from dcos_tensorflow.cli.commands.capacity import status_lines
from jobs.ec2_job import Ec2Job, machines_of
from servers.ec2_server import Refusal
from waiting import eventually

DENIED = Refusal(
    "UnauthorizedOperation",
    "You are not authorized to perform: ec2:CreateFleet on this resource.",
    403,
)
THROTTLED = Refusal("RequestLimitExceeded", "Request limit exceeded.", 503)


def refuse(refusal: Refusal) -> Callable[[Ec2Job], None]:
    def order(job: Ec2Job) -> None:
        job.ec2.refusal = lambda action, _: refusal if action == "CreateFleet" else None

    return order


def out_of_capacity(job: Ec2Job) -> None:
    job.ec2.room = 0


def half_a_fleet(job: Ec2Job) -> None:
    job.ec2.room = 1


def never_registers(job: Ec2Job) -> None:
    job.ec2.on_change = lambda: None


def registers_twice(job: Ec2Job) -> None:
    job.stand_ins.agents_each = 2


def wrong_time(job: Ec2Job) -> None:
    job.ec2.set_clock(-3600)
    job.ec2.refusal = lambda *_: Refusal("RequestExpired", "Request has expired.")


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        pytest.param(
            out_of_capacity,
            "InsufficientInstanceCapacity: There is no Spot capacity.",
            id="out of capacity",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            half_a_fleet,
            "1 of 2 machines could be had: InsufficientInstanceCapacity: There is no Spot",
            id="half a fleet",
        ),
        pytest.param(
            refuse(DENIED),
            "EC2 refuses ec2:CreateFleet: UnauthorizedOperation: You are not authorized to perform",
            id="denied",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            refuse(THROTTLED),
            "EC2 throttles ec2:CreateFleet: Request limit exceeded.",
            id="throttled",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            never_registers,
            "its agent did not register in time",
            id="an instance that never registers",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            registers_twice,
            "two agents have registered for it",
            id="an instance that registers twice",
        ),
        pytest.param(
            wrong_time,
            "the clock of this machine is 60 minutes ahead of EC2's",
            id="a clock that is off",
        ),
    ],
)
def test_who_waits_is_told_why(
    order: Callable[[Ec2Job], None], sentence: str, tmp_path: Path
) -> None:
    # No zone but one: the next pool would have room.
    limits = {"register_seconds": 20, "zones": ["us-east-1a"]}
    job = Ec2Job(tmp_path, {"job_cmd": "sleep 600"}, limits)
    try:
        order(job)
        scheduler = job.scheduler()

        def why() -> str:
            status, found = scheduler.ask("/v1/why")
            return str(found["machines"]) if status == 200 else ""

        def told() -> str:
            return "\n".join(status_lines(machines_of(scheduler), 0.0))

        eventually(
            lambda: sentence in why() and sentence in told(),
            seconds=60,
            what=lambda: f"{sentence!r} in {why()} and {told()}: {scheduler.log[-2000:]}",
        )
    finally:
        job.close()
