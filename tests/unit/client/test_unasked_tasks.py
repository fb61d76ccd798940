"""Tasks that came unasked under an earlier release: a job that runs keeps them, or is asked."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.core.kept.writes import first_writes
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.deploy import daemon
from dcos_tensorflow.deploy.settings import collect
from dcos_tensorflow.deploy.wanted_service import WantedService
from dcos_tensorflow.options import load, service_spec
from dcos_tensorflow.options.errors import one_sentence
from dcos_tensorflow.state.store import open_store

OPTIONS = {"service": {"name": "mnist", "job_cmd": "true"}}

Served = Callable[..., WantedService]


@pytest.fixture
def served(tmp_path: Path) -> Served:
    """Return what a scheduler would serve that finds a job of other options in its store."""

    def serve(
        stored: dict[str, Any], given: dict[str, Any], phase: JobPhase = JobPhase.RUNNING
    ) -> WantedService:
        url = f"sqlite:///{tmp_path}/state.db"
        state = ServiceState.of_one_gang(service_spec(load(stored)), "instance")
        (name, gang), *_ = state.gangs.items()
        state = replace(state, gangs={name: replace(gang, job=replace(gang.job, phase=phase))})
        with (
            closing(open_store(url, "mnist")) as store,
            store.lead("a test", 0.0, lambda _: None),
        ):
            store.commit(first_writes(state))
        file = tmp_path / "options.json"
        file.write_text(json.dumps(given))
        settings = collect(None, {}, {"state": url})

        def read(known: Any) -> WantedService:
            return daemon.read_options(file, (), known, {})

        return daemon._as_it_runs(read(settings), read, settings, url)

    return serve


def tasks_of(wanted: WantedService) -> tuple[str, ...]:
    return service_spec(wanted.options).task_names()


#: What an earlier release made of options that name no section.
BEFORE = {**OPTIONS, "parameter_server": {"count": 2}, "worker": {"count": 3}}


def test_a_job_of_an_earlier_release_goes_on_with_the_same_options_unchanged(
    served: Served,
) -> None:
    wanted = served(BEFORE, OPTIONS)
    assert wanted.problem is None
    assert service_spec(wanted.options) == service_spec(load(BEFORE))


def test_what_is_laid_over_its_options_later_ends_no_task(served: Served) -> None:
    given = served(BEFORE, OPTIONS).as_given
    assert given is not None
    assert service_spec(load(given)) == service_spec(load(BEFORE))


def test_other_options_change_beside_the_tasks_that_came_unasked(served: Served) -> None:
    more = {"retry": {"limit": 7}}
    wanted = served(BEFORE, {**OPTIONS, **more})
    assert len(tasks_of(wanted)) == 5
    assert wanted.options.retry.limit == 7


def test_tasks_that_are_passed_over_in_silence_are_not_ended(served: Served) -> None:
    stored = {**OPTIONS, "parameter_server": {"count": 1}, "worker": {"count": 1}}
    wanted = served(stored, {**OPTIONS, "worker": {"count": 1}})
    assert wanted.problem is not None
    assert one_sentence(wanted.problem) == (
        "parameter_server.count: the options do not name parameter_server, and 1 parameter server"
        " run (given: nothing; allowed: the number that is meant; 0 ends the others)"
    )


@pytest.mark.parametrize(
    ("given", "phase"),
    [
        ({**OPTIONS, "parameter_server": {"count": 0}, "worker": {"count": 1}}, JobPhase.RUNNING),
        (OPTIONS, JobPhase.DONE),
    ],
)
def test_who_says_none_gets_none_and_so_does_a_new_job(
    served: Served, given: dict[str, Any], phase: JobPhase
) -> None:
    wanted = served(BEFORE, given, phase)
    assert wanted.problem is None
    assert tasks_of(wanted) == ("worker-0",)
