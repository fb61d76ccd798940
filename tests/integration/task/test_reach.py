"""A task says before its first step which members it does not reach."""

from runner_process import Starter


def test_members_that_are_not_reached_are_told_while_the_process_runs(start: Starter) -> None:
    members = {"worker": ["127.0.0.1:1", "no-such-host.test:2222"]}
    config = {"cluster": members, "task": {"type": "worker", "index": 0}}
    cluster = {"epoch": 1, "distribute": {"tf_config": config}}
    task = start("import time; time.sleep(600)", cluster=cluster)
    told = task.wait_for_status(lambda status: status["unreachable"], "whom it does not reach")
    reasons = {"127.0.0.1:1": "refused", "no-such-host.test:2222": "unknown name"}
    assert told["unreachable"] == reasons
