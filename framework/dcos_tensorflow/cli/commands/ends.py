"""The ends of a job and of a service: ``stop``, ``uninstall`` and ``prune``."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from typing import Any

import click

from dcos_tensorflow.cli.flags import json_flag, takes_service, timeout_flags, work_dir_flag
from dcos_tensorflow.client import ending, registry
from dcos_tensorflow.client.api_client import NoScheduler, SchedulerAway, SchedulerClient, connect
from dcos_tensorflow.client.errors import EXIT_FAILED, CliError, UsageError
from dcos_tensorflow.client.output import complain, say, show_json
from dcos_tensorflow.client.service_choice import KnownService, ServiceChoice
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.counted import listed
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.deploy.stopping import stop_job

_WHY = "stopped from the command line"


@click.command()
@timeout_flags("Wait until the job has ended.", 120.0)
@takes_service(required=True)
def stop(choice: ServiceChoice, wait: bool, seconds: float) -> int:
    """End a job and give its resources back."""
    service = choice.service()
    ended = stop_job(choice.work, service, _WHY, wait=wait, seconds=seconds, tell=complain)
    if ended is not None:
        return _stopped(choice, service, ended)
    if choice.as_json:
        show_json({"service": service.name, "outcome": None})
    else:
        say(f"{service.name} is being stopped.")
    return 0


def _stopped(choice: ServiceChoice, service: KnownService, found: dict[str, Any]) -> int:
    """Tell how the job ended and return its exit code; one that was stopped ended as was asked."""
    outcome = found.get("outcome", Outcome.STOPPED)
    if choice.as_json:
        show_json({"service": service.name, **found})
    else:
        say(f"{service.name} has ended: {outcome}, {found.get('summary', '')}")
    return 0 if outcome == Outcome.STOPPED else int(found.get("exit_code", EXIT_FAILED))


_LOOK_SECONDS = 0.5
#: How long a scheduler that was asked to uninstall has to begin with that.
_HEARD_SECONDS = 2.0

_UNFINISHED = "Run dcos-tensorflow scheduler OPTIONS.json --uninstall to remove the rest."


@click.command()
@timeout_flags("Wait until nothing is left.", 1200.0)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@takes_service(required=True)
def uninstall(choice: ServiceChoice, wait: bool, seconds: float, yes: bool) -> int:
    """End a service and remove its tasks, framework and state. Cannot be undone."""
    service = choice.service()
    try:
        client = service.connect()
    except NoScheduler as away:
        _confirm(service, yes)
        return _without_scheduler(choice, service, away)
    except SchedulerAway as away:
        raise CliError(f"{away} {_UNFINISHED}") from away
    _confirm(service, yes)
    body = _order(client)
    if wait:
        return _await_the_end(choice, service, seconds)
    if choice.as_json:
        show_json({"service": service.name, "uninstalled": False, **body})
    else:
        say(f"{service.name} is being uninstalled; see dcos-tensorflow plan status deploy.")
    return 0


def _confirm(service: KnownService, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"Uninstalling {service.name} cannot be undone: confirm with --yes.")
    click.confirm(
        f"End every task of {service.name}, and forget it? This cannot be taken back.", abort=True
    )


def _without_scheduler(choice: ServiceChoice, service: KnownService, away: NoScheduler) -> int:
    """Forget a service whose job has ended, and its scheduler with it."""
    _forget(service, away)
    return _uninstalled(choice, service, [])


def _forget(service: KnownService, away: NoScheduler) -> None:
    """Erase what is kept of a service that nothing runs of. Raises CliError where something may."""
    from dcos_tensorflow.client.kept.stored import forget, state_url

    directory = service.directory
    if directory is None:
        raise away
    known = registry.read(directory)
    with registry.only_run(directory, service.name):
        left = forget(state_url(directory), service.name)
        if left is None:
            directory.remove()
        elif known is not None and known.local and left.job.phase is not JobPhase.DONE:
            stop = f"dcos-tensorflow stop {service.name}"
            raise CliError(f"{away} Its job is {left.job.phase}: {stop} ends it.") from away
        else:
            raise CliError(f"{away} {_UNFINISHED}") from away


@click.command()
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@work_dir_flag
@json_flag
def prune(work: WorkDirectory, as_json: bool, yes: bool) -> int:
    """Remove all services of this machine whose job has ended.

    As uninstall it leaves checkpoints, output, logs and kept runs.
    """
    found = [service for name in registry.service_names(work) if (service := _ended(work, name))]
    names = [service.name for service in found]
    if names and not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"{listed(names)} would be removed: confirm with --yes.")
        click.confirm(f"Remove {listed(names)}? This cannot be taken back.", abort=True)
    removed, left = [], {}
    for service in found:
        try:
            _forget(service, NoScheduler(f"No scheduler of {service.name} runs on this machine."))
            removed.append(service.name)
        except CliError as error:
            left[service.name] = str(error)
    if as_json:
        show_json({"removed": removed, "left": left})
    else:
        say(
            f"Removed {listed(removed)}."
            if removed
            else "No service has ended: nothing is removed."
        )
        for told in left.values():
            complain(told)
    return EXIT_FAILED if left else 0


def _ended(work: WorkDirectory, folder: str) -> KnownService | None:
    """Return a service whose job has ended and which no scheduler serves; None for another."""
    directory = work.service(folder)
    known = registry.read(directory)
    if known is not None and known.process_lives():
        return None
    name = known.service if known is not None else folder
    if ending.last(directory) is None:
        return None
    return KnownService(name, directory, partial(connect, directory, name))


def _order(client: SchedulerClient) -> dict[str, Any]:
    order = json.dumps({"why": "from the command line"})
    body: dict[str, Any] = client.ask("POST", "/v1/uninstall", order).expected()
    return body


def _await_the_end(choice: ServiceChoice, service: KnownService, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    ordered_at = time.monotonic()
    given_up: list[str] = []
    told_away = ""
    while time.monotonic() < deadline:
        try:
            client = service.connect()
            # Until the order is carried out the plan is that of the deployment, complete as it is.
            begun = client.get("/v1/job")["uninstalling"]
            done = begun and client.ask("GET", "/v1/plans/deploy").status == 200
            if not begun and time.monotonic() - ordered_at > _HEARD_SECONDS:
                # Another scheduler serves the service by now, and this one never heard of it.
                _order(client)
                ordered_at = time.monotonic()
            given_up = list(client.get("/v1/job")["given_up"])
            told_away = ""
        except SchedulerAway as away:
            done = _nothing_is_stored(service)
            if not done and isinstance(away, NoScheduler):
                raise CliError(f"{away} {_UNFINISHED}") from away
            if not done and str(away) != told_away:
                told_away = str(away)
                complain(f"{away} Waiting for it to come back.")
        if done:
            return _uninstalled(choice, service, given_up)
        time.sleep(_LOOK_SECONDS)
    raise CliError(
        f"{service.name} was asked to leave and has not within {seconds:g} s; see"
        f" dcos-tensorflow plan status deploy --name={service.name} --reasons."
    )


def _nothing_is_stored(service: KnownService) -> bool:
    """Say whether a scheduler of this machine has gone because its work is done."""
    from dcos_tensorflow.client.kept.stored import stored_state

    known = registry.read(service.directory) if service.directory is not None else None
    return known is not None and stored_state(known.state, service.name) is None


def _uninstalled(choice: ServiceChoice, service: KnownService, given_up: list[str]) -> int:
    if choice.as_json:
        show_json({"service": service.name, "uninstalled": True, "given_up": given_up})
        return 0
    say(f"{service.name} is uninstalled.")
    for left in given_up:
        say(f"Given up, because its agent did not answer: {left}")
    return 0
