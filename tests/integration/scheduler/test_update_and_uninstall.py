"""A running job goes over to other options; a service is uninstalled and leaves nothing behind."""

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.events import ConfigurationChanged, UninstallRequested
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.scheduler.scheduler import EXIT_UNINSTALLING, SchedulerError
from dcos_tensorflow.state.store import open_store
from jobs.scheduled_jobs import command_job, running, wait_until
from waiting import eventually

UNTIL_TOLD = 'while [ ! -e "{marks}/finish" ]; do sleep 0.05; done'


@pytest.fixture
def lasting(marks):
    """A job that ends when the test says so; each start of a process leaves a line."""
    return command_job(
        f'echo "$GREETING" >> "{marks}/$TASK_NAME"; {UNTIL_TOLD.format(marks=marks)}'
    )


def greeting(spec, words):
    """The same service, with another environment for its workers."""
    return replace(
        spec, roles=tuple(replace(role, env={**role.env, "GREETING": words}) for role in spec.roles)
    )


def is_target(spec):
    return lambda state: configuration_id(state.spec) == configuration_id(spec)


def frameworks(cluster):
    with urllib.request.urlopen(f"http://{cluster.master}/state", timeout=10) as answer:
        return json.load(answer)["frameworks"]


def values(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/state.db", "job")
    try:
        return store.load()
    finally:
        store.close()


def test_other_options_are_checked_first_and_those_that_were_the_target_are_known_afterwards(
    schedule, lasting
):
    scheduler = schedule(lasting)
    with pytest.raises(OptionsError, match="cout"):
        scheduler.change_configuration({"service": {"job_cmd": "true"}, "worker": {"cout": 1}})
    with pytest.raises(OptionsError, match="do not name worker, and 2 workers run"):
        scheduler.change_configuration({"service": {"job_cmd": "true"}})
    other = {"service": {"job_cmd": "true"}, "worker": {"count": 1}}
    assert scheduler.change_configuration(other).job.command == "true"
    assert is_target(lasting)(wait_until(scheduler, running))
    changed = greeting(lasting, "hello")
    scheduler.submit(ConfigurationChanged(changed))
    wait_until(scheduler, is_target(changed))
    both = {configuration_id(lasting), configuration_id(changed)}
    wait_until(scheduler, lambda s: set(scheduler.configurations()) == both)


def test_a_standby_does_not_bring_back_what_is_uninstalled(
    schedule, lasting, cluster, tmp_path, caplog
):
    caplog.set_level("INFO")
    first = schedule(lasting)
    wait_until(first, running)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(schedule, lasting, standby=True)
        eventually(lambda: "waiting: the service job is led by" in caplog.text)
        first.submit(UninstallRequested("the test wants it"))
        wait_until(first, lambda s: s.removal.erased)
        with pytest.raises(
            SchedulerError, match="uninstalled while this scheduler stood by"
        ) as end:
            waiting.result(30)
    assert end.value.exit_code == EXIT_UNINSTALLING
    assert (frameworks(cluster), values(tmp_path)) == ([], {})
