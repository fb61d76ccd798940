"""``capacity``: the machines that are bought for a service: present, planned, and given back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dcos_tensorflow.cli.drawing import check_picture_file, draw
from dcos_tensorflow.cli.flags import (
    OPTIONS_FILE,
    NamedGroup,
    json_flag,
    takes_service,
    work_dir_flag,
)
from dcos_tensorflow.client.bill_lines import bill_lines
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.wording import columns, duration
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.deploy.settings import CLUSTER_SETTINGS, setting_flags

if TYPE_CHECKING:
    from dcos_tensorflow.deploy import cluster_machines

F = TypeVar("F", bound=Callable[..., Any])

_NONE = "section capacity in the options of this service: no machines are bought for it"


@click.group(cls=NamedGroup)
def capacity() -> None:
    """Show, plan and give back the machines that a service buys.

    up buys machines for a whole cluster, and down ends them.
    """


def _of_cluster(function: F) -> F:
    """Let a command be about a cluster's machines, too."""
    named = click.option(
        "--cluster",
        type=OPTIONS_FILE,
        metavar="OPTIONS.json",
        help="Use the machines that up has bought for a whole cluster by this file, not those"
        " of a service.",
    )
    return named(setting_flags(CLUSTER_SETTINGS)(function))


def _cluster(
    options: Path, settings: Mapping[str, Any], work: WorkDirectory
) -> cluster_machines.MachineGroup:
    from dcos_tensorflow.deploy.cluster_machines import MachineGroup

    return MachineGroup.of(options, settings, work)


def _wait_flag(what: str) -> Callable[[F], F]:
    return click.option(
        "--wait",
        type=click.FloatRange(min=0),
        default=900.0,
        show_default=True,
        metavar="SECONDS",
        help=f"How long to wait {what}.",
    )


@capacity.command(name="up")
@click.argument("options", metavar="OPTIONS.json", type=OPTIONS_FILE)
@click.option("--machines", type=click.IntRange(min=1), required=True, help="Total number.")
@click.option("--stay", is_flag=True, help="Go on, and replace machines that are taken back.")
@_wait_flag("until all machines are agents")
@setting_flags(CLUSTER_SETTINGS)
@work_dir_flag
@json_flag
def capacity_up(
    *,
    options: Path,
    machines: int,
    stay: bool,
    wait: float,
    work: WorkDirectory,
    as_json: bool,
    **settings: Any,
) -> int:
    """Buy machines for all services of a cluster, until it has the given number."""
    from dcos_tensorflow.deploy.cluster_machines import up

    group = _cluster(options, settings, work)
    _show(up(group, machines, wait=wait, stay=stay, say=_told(as_json)), as_json)
    return 0


@capacity.command(name="down")
@click.argument("options", metavar="OPTIONS.json", type=OPTIONS_FILE)
@click.option("--force", is_flag=True, help="End them even while tasks run there.")
@_wait_flag("until no task runs there")
@setting_flags(CLUSTER_SETTINGS)
@work_dir_flag
@json_flag
def capacity_down(
    options: Path, force: bool, wait: float, work: WorkDirectory, as_json: bool, **settings: Any
) -> int:
    """End the machines that up has bought, each after the end of its tasks."""
    from dcos_tensorflow.deploy.cluster_machines import down

    group = _cluster(options, settings, work)
    _show(down(group, wait=wait, force=force, say=_told(as_json)), as_json)
    return 0


def _told(as_json: bool) -> Callable[[str], None]:
    return (lambda _: None) if as_json else say


def _show(found: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(found)
    else:
        say_lines(status_lines(found, time.time()))


@capacity.command(name="status")
@click.option("--bill", is_flag=True, help="Show the payments by type and market.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg|FILE.png",
    help="Draw the machines and their cost over time.",
)
@_of_cluster
@takes_service()
def capacity_status(
    choice: ServiceChoice, bill: bool, plot: Path | None, cluster: Path | None, **settings: Any
) -> int:
    """Show the machines, the reason for each, and their cost per hour."""
    if plot is not None:
        check_picture_file(plot)
    if cluster is not None:
        from dcos_tensorflow.deploy.cluster_machines import standing

        of = _cluster(cluster, settings, choice.work)
        name, found = of.name, standing(of)
    else:
        service = choice.service()
        name = service.name
        found = service.connect().ask("GET", "/v1/capacity").found(_NONE)
    if plot is not None:
        from dcos_tensorflow.capacity.billing.bill_picture import picture

        draw(picture(found["bill"], name), plot)
    if choice.as_json:
        show_json(found)
    elif bill:
        say_lines(bill_lines(found["bill"]))
    elif plot is None:
        say_lines(status_lines(found, time.time()))
    return 0


@capacity.command(name="plan")
@click.argument("options", metavar="OPTIONS.json", type=OPTIONS_FILE)
@click.option("--machines", type=click.IntRange(min=1), help="Plan a cluster of this size for up.")
@json_flag
def capacity_plan(options: Path, machines: int | None, as_json: bool) -> int:
    """Show the machines that a job would get now, without buying any."""
    from dcos_tensorflow.deploy.planned_machines import planned_machines

    found = planned_machines(options, machines)
    if as_json:
        show_json(found)
        return 0
    for each in found["wanted"]:
        kind = f"{each['market']} machine"
        say(
            f"{counted(each['count'], kind)} of {each['instance_type']} in {each['zone']} at"
            f" {each['price_per_hour']:.4g} an hour each, for {', '.join(each['gangs'])}"
        )
    for gang, why in found["waits"].items():
        say(f"nothing for {gang}: {why}")
    if not found["wanted"] and not found["waits"]:
        say("Nothing: the job asks for no place.")
    else:
        say(f"{found['price_per_hour']:.4g} an hour. Nothing is bought.")
    return 0


@capacity.command(name="release")
@click.option(
    "--all",
    "every_of",
    type=OPTIONS_FILE,
    metavar="OPTIONS.json",
    help="End every machine with the name of the service in these options, with its tasks, also"
    " without a scheduler.",
)
@_of_cluster
@takes_service()
def capacity_release(
    choice: ServiceChoice, every_of: Path | None, cluster: Path | None, **settings: Any
) -> int:
    """Give idle machines back."""
    if cluster is not None:
        from dcos_tensorflow.deploy.cluster_machines import released

        found = released(_cluster(cluster, settings, choice.work), _told(choice.as_json))
        _show(found, choice.as_json)
        return 0
    if every_of is not None:
        from dcos_tensorflow.deploy.planned_machines import end_all_machines

        ended = end_all_machines(every_of)
        if choice.as_json:
            show_json({"ended": ended})
        else:
            say(f"{counted(len(ended), 'machine')} ended{': ' if ended else ''}{', '.join(ended)}")
        return 0
    service = choice.service()
    answer = service.connect().ask("POST", "/v1/capacity/release", "{}")
    found = answer.found(_NONE)
    if choice.as_json:
        show_json(found)
    else:
        say(f"{service.name}: machines on which nothing runs are given back.")
    return 0


def status_lines(found: Mapping[str, Any], now: float) -> Iterator[str]:
    """Yield the document of ``/v1/capacity`` for a person."""
    machines = found["machines"]
    of = f" of {found['budget']:.2f}" if found["budget"] is not None else ""
    yield (
        f"{counted(len(machines), 'machine')}, {found['price_per_hour']:.4g} an hour;"
        f" spent {found['spent']:.2f}{of}"
    )
    rows = [
        (
            each["machine_id"],
            each["state"],
            each["instance_type"],
            each["zone"],
            each["market"],
            f"{each['price_per_hour']:.4g}",
            duration(now - each["ordered_at"]),
            each["why"] or f"for {', '.join(each['gangs'])}",
        )
        for each in machines
    ]
    if rows:
        head = ("machine", "state", "type", "zone", "market", "an hour", "since", "why")
        yield from columns([head, *rows])
    for each in found["ordered"]:
        kind = f"{each['market']} machine"
        trouble = f": {each['trouble']}" if each["trouble"] else ""
        cancelled = ", not wanted any more" if each["is_cancelled"] else ""
        yield (
            f"  ordered {counted(each['count'], kind)} of {each['instance_type']} in"
            f" {each['zone']}{cancelled}{trouble}"
        )
    for gang, why in found["waits"].items():
        yield f"  nothing for {gang}: {why}"
    for each in found["backing_off"]:
        yield f"  {each['what']}: again in {duration(each['until'] - now)}: {each['why']}"
