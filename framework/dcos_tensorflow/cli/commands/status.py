"""The phase of a job, the end of the last one, and the reason why it waits."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from dcos_tensorflow.cli.flags import takes_service
from dcos_tensorflow.client import ending
from dcos_tensorflow.client.api_client import NoScheduler, SchedulerAway, SchedulerClient
from dcos_tensorflow.client.errors import EXIT_FAILED, CliError
from dcos_tensorflow.client.output import complain, say, say_lines, show_json
from dcos_tensorflow.client.service_choice import KnownService, ServiceChoice
from dcos_tensorflow.client.wording import (
    columns,
    detailed,
    numbers,
    short,
    size,
    table,
    unit_failure,
    units_done,
    without_repeats,
)
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.plugin.plain_text import escaped

if TYPE_CHECKING:
    from dcos_tensorflow.client.snapshot import Snapshot


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Show progress until the job ends.")
@takes_service()
def status(choice: ServiceChoice, follow: bool) -> int:
    """Show the state of a job, or how it ended."""
    service = choice.service()
    try:
        client = service.connect()
        snapshot = client.snapshot()
    except SchedulerAway as away:
        if follow and not isinstance(away, NoScheduler):
            return _follow(choice, service)
        code = _told(choice, _last_end(service, away))
        return code if follow else 0
    if follow:
        return _follow(choice, service)
    if choice.as_json:
        show_json(dict(snapshot.job))
    else:
        say_lines(_lines(snapshot, client))
    return 0


def _follow(choice: ServiceChoice, service: KnownService) -> int:
    """Show progress until the job has ended; return the job's code."""
    from dcos_tensorflow.client.following.job import caught_signals, follow_service, view_for

    view = view_for(sys.stderr if choice.as_json else sys.stdout)
    with caught_signals() as signals:
        ended = follow_service(
            service, view, left=lambda: bool(signals.interrupts or signals.ending), tell=complain
        )
    if ended is None:
        say(f"{service.name} goes on.", sys.stderr)
        return 128 + (signals.ending or 2)
    return _told(choice, ended)


def _told(choice: ServiceChoice, ended: dict[str, Any]) -> int:
    """Show how a job ended and return its exit code."""
    if choice.as_json:
        show_json(ended)
    else:
        say_lines(ending.lines(ended))
    return int(ended.get("exit_code", EXIT_FAILED))


def _last_end(service: KnownService, away: SchedulerAway) -> dict[str, Any]:
    """Return how the last job ended. Raises CliError."""
    last = service.last_end()
    if last is not None:
        return last
    if service.directory is None:
        raise away
    raise CliError(f"{away} {_stored(service.directory, service.name)}")


def _stored(directory: ServiceDirectory, service: str) -> str:
    """Say what the state in the service's own folder tells."""
    from dcos_tensorflow.client.kept.stored import stored_state

    if not directory.database.exists():
        return "Nothing is known of an ended job of it either."
    state = stored_state(directory.state_url, service)
    if state is None:
        return "Its state is empty."
    return f"By its state the job is {state.job.phase}; run takes it up again, and stop ends it."


def _lines(snapshot: Snapshot, client: SchedulerClient) -> list[str]:
    phase, why = snapshot.standing(time.time())
    rows = []
    for task in snapshot.tasks:
        parts = [detailed(task.doing, without_repeats(task.detail, [why])), numbers(task)]
        rows.append((task.name, ", ".join(part for part in parts if part)))
    place = snapshot.job.get("output")
    output = [("output", str(place))] if place else []
    units = [("units", units_done(snapshot.units))] if snapshot.units else []
    if failure := unit_failure(snapshot.units or {}):
        units.append(("last failure", failure))
    here = f"pid {client.registration.pid}, " if client.registration is not None else ""
    return [
        f"{snapshot.service} is {phase}: {why}",
        *table(rows),
        *table([*units, ("run", str(snapshot.run)), *_incidents(snapshot), *output]),
        *table([(problem.task, problem.text) for problem in snapshot.storage_problems]),
        f"  scheduler {here}API {client.api.url}",
    ]


def _incidents(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return how often the job has restarted, and its newest incident; nothing for neither."""
    rows = []
    if restarts := snapshot.job.get("restarts"):
        rows.append(("restarts", str(restarts)))
    for incident in (snapshot.job.get("incidents") or [])[-1:]:
        at = datetime.fromtimestamp(incident["at"]).strftime("%H:%M:%S")
        rows.append(("last incident", f"{at} {incident['task']}: {incident['summary']}"))
    return rows


@click.command()
@takes_service()
def why(choice: ServiceChoice) -> int:
    """Explain why a job waits, per task and per offer."""
    service = choice.service()
    found = service.connect().get("/v1/why")
    if choice.as_json:
        show_json(found)
        return 0
    if found["not_updated"]:
        say(f"{service.name}: {found['not_updated']}")
    say(f"{service.name} is {found['phase']}: {found['why']}")
    if not found["registered"]:
        say("The scheduler is not registered with a Mesos master.")
    for wait in found.get("waits", ()):
        say(f"  {wait['told']}")
    waits = [
        (task, without_repeats(str(each["why"]), [found["why"]]))
        for task, each in found["tasks"].items()
    ]
    say_lines(table([(task, why) for task, why in waits if why]))
    say_lines(
        table([(task, p["why"]) for task, problems in found["storage"].items() for p in problems])
    )
    for who, told in found.get("machines", {}).items():
        say(f"  no machine is bought for {who}: {told}")
    seen: set[str] = set()
    for verdict in found["offers"]["handed_back"]:
        line = f"offer of {verdict['offer']['hostname']}: {'; '.join(verdict['explanation'])}"
        if line not in seen:
            seen.add(line)
            say(f"  {line}")
    for silent in found["silent_agents"]:
        say(f"  {silent['told']}")
    return 0


#: Between two looks of ``top``.
_LOOK_SECONDS = 2.0


@click.command()
@takes_service()
def top(choice: ServiceChoice) -> int:
    """Show the processors, memory and GPUs that each task uses now, and its speed."""
    service = choice.service()
    if choice.as_json:
        job = service.connect().get("/v1/job")
        show_json({name: task.get("usage") for name, task in job["tasks"].items()})
    elif sys.stdout.isatty():
        _refresh(service)
    else:
        say_lines(_used(service.snapshot()))
    return 0


def _refresh(service: KnownService) -> None:
    """Show the table until the job has ended or the reader has seen enough."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from dcos_tensorflow.client.following.job import caught_signals

    lines: list[str] = []
    done = False
    with caught_signals() as signals, Live(console=Console(), auto_refresh=False) as live:
        while not done and not signals.interrupts and not signals.ending:
            told = ""
            try:
                snapshot = service.snapshot()
                lines, done = _used(snapshot), snapshot.done
            except SchedulerAway as away:
                if not lines:
                    raise
                done = service.last_end() is not None
                if not done:
                    service.check_cluster()
                    told = f"{away} Waiting for it to come back."
            told = f"{service.name} has ended." if done else told
            shown = [*lines[: max(3, live.console.height - 2)], *([told] if told else [])]
            live.update(Text(escaped("\n".join(shown), lines=True)), refresh=True)
            until = time.monotonic() + _LOOK_SECONDS
            while not done and time.monotonic() < until and not signals.interrupts:
                time.sleep(0.1)


def _used(snapshot: Snapshot) -> list[str]:
    """Return one line a task, those that use most of their processors first."""
    tasks, told = snapshot.job["tasks"], {task.name: task for task in snapshot.tasks}
    rows = [
        (
            name,
            told[name].doing,
            *_usage(tasks[name].get("usage")),
            "" if told[name].step is None else str(told[name].step),
            _speed(tasks[name].get("usage")),
        )
        for name in sorted(tasks, key=lambda name: -_share(tasks[name].get("usage")))
    ]
    head = ("task", "", "cpu", "memory", "gpu", "gpu memory", "step", "steps/s")
    return [f"{snapshot.service} is {snapshot.standing(time.time())[0]}", *columns([head, *rows])]


def _share(usage: dict[str, Any] | None) -> float:
    """Return how much of its processors a task uses; less than nothing where it is not known."""
    return usage["cpu_percent"] / max(usage["cpus"], 0.01) if usage else -1.0


def _usage(usage: dict[str, Any] | None) -> tuple[str, str, str, str]:
    if not usage:
        return "", "", "", ""
    gpus = usage["gpus"]
    return (
        f"{usage['cpu_percent']:.0f}% of {usage['cpus'] * 100:.0f}%",
        f"{size(usage['mem_bytes'])} of {size(usage['mem_limit_bytes'])}",
        " ".join(f"{gpu['utilisation']:.0%}" for gpu in gpus),
        size(sum(gpu["mem_bytes"] for gpu in gpus)) if gpus else "",
    )


def _speed(usage: dict[str, Any] | None) -> str:
    speed = usage["steps_per_second"] if usage else None
    return "" if speed is None else short(speed)
