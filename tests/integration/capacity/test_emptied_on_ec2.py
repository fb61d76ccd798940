"""Before EC2 ends a machine, the master offers it to no framework any more."""

import json
import urllib.request
from pathlib import Path

from jobs.ec2_job import Ec2Job
from servers.ec2_server import Refusal
from waiting import eventually


def deactivated(master: str) -> set[str]:
    with urllib.request.urlopen(f"http://{master}/slaves", timeout=10) as answer:
        listed = json.load(answer)["slaves"]
    return {agent["hostname"] for agent in listed if agent["deactivated"]}


def test_a_machine_that_is_ended_was_offered_to_no_framework_before(tmp_path: Path) -> None:
    job = Ec2Job(tmp_path, {"job_cmd": "true"}, {})
    #: What was deactivated when EC2 was asked to end machines.
    then: list[set[str]] = []

    def note(action: str, _: dict[str, str]) -> Refusal | None:
        if action == "TerminateInstances":
            then.append(deactivated(job.cluster.master))
        return None

    job.ec2.refusal = note
    try:
        job.scheduler()
        eventually(lambda: then, seconds=120, what="EC2 is asked to end machines")
        assert then[0] == {instance.private_dns_name for instance in job.instances}
    finally:
        job.close()
