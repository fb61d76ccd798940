"""``capacity``: the machines that are bought for a service: what there is, would be, and goes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.bill_lines import bill_lines
from dcos_tensorflow.cli.drawing import can_be_drawn, draw
from dcos_tensorflow.cli.flags import OPTIONS_FILE, NamedGroup, asks_about, json_flag
from dcos_tensorflow.cli.output import say, say_lines, show_json
from dcos_tensorflow.cli.services.asked import Asked
from dcos_tensorflow.cli.wording import columns, duration
from dcos_tensorflow.core.counted import counted

_NONE = "section capacity in the options of this service: no machines are bought for it"


@click.group(cls=NamedGroup)
def capacity() -> None:
    """Show the machines that are bought for a service, plan them, give them back."""


@capacity.command(name="status")
@click.option("--bill", is_flag=True, help="Show what was paid, by type and market.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg|FILE.png",
    help="Draw the machines and what they cost over time.",
)
@asks_about()
def capacity_status(asked: Asked, bill: bool, plot: Path | None) -> int:
    """Show what runs, why, and what it costs an hour."""
    if plot is not None:
        can_be_drawn(plot)
    service = asked.service()
    found = service.connect().ask("GET", "/v1/capacity").found(_NONE)
    if plot is not None:
        from dcos_tensorflow.capacity.bill_picture import picture

        draw(picture(found["bill"], service.name), plot)
    if asked.as_json:
        show_json(found)
    elif bill:
        say_lines(bill_lines(found["bill"]))
    elif plot is None:
        say_lines(status_lines(found, time.time()))
    return 0


@capacity.command(name="plan")
@click.argument("options", metavar="OPTIONS.json", type=OPTIONS_FILE)
@json_flag
def capacity_plan(options: Path, as_json: bool) -> int:
    """Show what would be bought now for a job. Nothing is bought."""
    from dcos_tensorflow.cli.serving.planned_machines import planned_machines

    found = planned_machines(options)
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
    help="End every machine that carries the name of the service of these options, also without a"
    " scheduler, and whatever runs there.",
)
@asks_about()
def capacity_release(asked: Asked, every_of: Path | None) -> int:
    """Give machines back: those on which nothing runs."""
    if every_of is not None:
        from dcos_tensorflow.cli.serving.planned_machines import end_all_machines

        ended = end_all_machines(every_of)
        if asked.as_json:
            show_json({"ended": ended})
        else:
            say(f"{counted(len(ended), 'machine')} ended{': ' if ended else ''}{', '.join(ended)}")
        return 0
    service = asked.service()
    answer = service.connect().ask("POST", "/v1/capacity/release", "{}")
    found = answer.found(_NONE)
    if asked.as_json:
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
