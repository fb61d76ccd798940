"""``runs`` and ``plot``: the kept runs of services, their notes, and their curves."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.drawing import check_picture_file, draw
from dcos_tensorflow.cli.flags import GroupWithDefault, takes_service, takes_service_flags
from dcos_tensorflow.cli.names import service_names
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.kept.runs import KeptRun, kept_runs, run_called
from dcos_tensorflow.client.output import say, say_lines, show_json
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.wording import (
    clock,
    columns,
    duration,
    moment,
    short,
    table,
    value_text,
    words,
)
from dcos_tensorflow.history.record import MOST_TAGS, NONE, NOTE_BYTES, TAG_BYTES, best, notes_of

_LIST = "list"
_SHOWN = 20


@click.group(cls=GroupWithDefault, default=_LIST)
def runs() -> None:
    """Show the former runs of one service, or of all.

    runs NAME means runs list NAME.
    """


@runs.command(name=_LIST)
@click.option("--all", "-a", "whole", is_flag=True, help=f"Show all runs, not the newest {_SHOWN}.")
@click.option("--metric", metavar="METRIC", help="Show the best value of this metric.")
@takes_service()
def runs_list(choice: ServiceChoice, whole: bool, metric: str | None) -> int:
    """Show the end, duration, best metric, steps and start of each run."""
    found = kept_runs(choice)
    shown = found if whole else found[:_SHOWN]
    if choice.as_json:
        show_json([_document(run, metric or "") for run in shown])
    elif not shown:
        say(f"No run of {choice.name or 'any service'} is kept.")
    else:
        say_lines(_lines(shown, metric or ""))
        if len(shown) < len(found):
            say(f"... and {len(found) - len(shown)} more: --all shows them.")
    return 0


@runs.command(name="show")
@click.argument("run", metavar="NAME[@RUN]", shell_complete=service_names)
@takes_service_flags
def runs_show(choice: ServiceChoice, run: str) -> int:
    """Show everything about a run, with its options, without secrets.

    NAME is the newest run of a service, NAME@3 its third.
    """
    found = run_called(choice, run)
    if choice.as_json:
        show_json(_document(found, "") | {"options": found.record["options"]})
    else:
        say_lines(_whole(found))
        show_json(found.record["options"])
    return 0


@runs.command(name="note")
@click.argument("run", metavar="NAME[@RUN]", shell_complete=service_names)
@click.argument("text", metavar="[NOTE]", required=False)
@click.option("--tag", "added", metavar="TAG", multiple=True, help="Add a tag. May be repeated.")
@click.option("--untag", "taken", metavar="TAG", multiple=True, help="Take a tag away.")
@takes_service_flags
def runs_note(
    choice: ServiceChoice,
    run: str,
    text: str | None,
    added: tuple[str, ...],
    taken: tuple[str, ...],
) -> int:
    """Write a note or tags on a run, as its page does; or show them.

    NOTE replaces the note of before; '' takes it away.
    """
    found = run_called(choice, run)
    before = notes_of({name: found.record.get(name, NONE[name]) for name in NONE})
    tags = [tag for tag in (*before["tags"], *added) if tag not in taken]
    try:
        notes = notes_of({"tags": tags, "note": before["note"] if text is None else text})
    except ValueError:
        raise UsageError(
            f"A run has at most {MOST_TAGS} tags of {TAG_BYTES} bytes each, without commas, and a"
            f" note of {NOTE_BYTES} bytes."
        ) from None
    if notes != before:
        found.note(notes)
    if choice.as_json:
        show_json({"run": found.name, **notes})
    else:
        told = [("tags", ", ".join(notes["tags"])), ("note", notes["note"])]
        say_lines([found.name, *table([row for row in told if row[1]])])
    return 0


def _lines(shown: Sequence[KeptRun], metric: str) -> Iterator[str]:
    cells = [("run", "", "took", "best", "step", "begun", "options")]
    for run in shown:
        cells.append(
            (
                run.name,
                run.standing,
                "" if run.seconds is None else duration(run.seconds),
                _best(run, metric),
                str(run.record["step"]) if run.record.get("step") is not None else "",
                moment(run.record.get("started_at")),
                str(run.record["configuration"])[:8],
            )
        )
    return columns(cells)


def _range(told: Mapping[str, Any]) -> str:
    newest = short(float(told["newest"]))
    if told["least"] is None:
        return newest
    return f"{newest}, between {short(told['least'])} and {short(told['most'])}"


def _whole(run: KeptRun) -> list[str]:
    record, took = run.record, run.seconds
    metrics = [(name, _range(told)) for name, told in record["metrics"].items()]
    incidents = [(f"{each['task']}", str(each["summary"])) for each in record["incidents"]]
    result = [(words(name), value_text(value)) for name, value in record["result"].items()]
    return [
        f"{run.name} {run.standing}: {record['summary']}",
        *table(
            [
                ("begun", clock(record["started_at"])),
                *([("took", duration(took))] if took is not None else ()),
                *([("step", str(record["step"]))] if record["step"] is not None else ()),
                *((("tags", ", ".join(record["tags"])),) if record.get("tags") else ()),
                *((("note", str(record["note"])),) if record.get("note") else ()),
                *result,
                *metrics,
                *incidents,
                ("options", str(record["configuration"])),
            ]
        ),
    ]


def _document(run: KeptRun, metric: str) -> dict[str, Any]:
    """Return a run for programs, without its options: they are long."""
    told = best(run.record, metric)
    shown = {n: value for n, value in run.record.items() if n not in ("options", "best")}
    known = {"metric": told[0], "value": told[1]} if told is not None else None
    return {
        "name": run.name,
        "standing": run.standing,
        "seconds": run.seconds,
        "best": known,
    } | shown


def _best(run: KeptRun, metric: str) -> str:
    told = best(run.record, metric)
    return f"{told[0]} {short(told[1])}" if told is not None else ""


_MOST_RUNS = 8


@click.command()
@click.argument(
    "names", nargs=-1, required=True, metavar="NAME[@RUN]...", shell_complete=service_names
)
@click.option("--metric", metavar="METRIC", help="Metric to draw; by default the loss.")
@click.option(
    "--over",
    type=click.Choice(["steps", "time"]),
    default="steps",
    show_default=True,
    help="Horizontal axis; time if the run has no steps.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE.svg|FILE.png",
    help="File of the picture.",
)
@takes_service_flags
def plot(
    choice: ServiceChoice, names: tuple[str, ...], metric: str | None, over: str, out: Path
) -> int:
    """Draw the curves of one or several runs, with their incidents.

    NAME is the newest run of a service, NAME@3 its third; the command runs lists them.
    """
    from dcos_tensorflow.history.picture import Drawn, metrics_of, picture

    check_picture_file(out)
    if len(names) > _MOST_RUNS:
        raise UsageError(f"More than {_MOST_RUNS} runs over each other cannot be told apart.")
    found = [run_called(choice, name) for name in names]
    drawn = [Drawn(run.name, run.record, run.points()) for run in found]
    told = list(dict.fromkeys(name for each in drawn for name in metrics_of(each.points)))
    if not told:
        raise CliError(f"{' and '.join(each.name for each in drawn)} told no metric.")
    wanted = metric or told[0]
    if wanted not in told:
        near = difflib.get_close_matches(wanted, told, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(f"--metric: no run has {wanted}; there are {', '.join(told)}.{meant}")
    image = picture(drawn, wanted, over_time=over == "time")
    draw(image, out, tell=not choice.as_json)
    if choice.as_json:
        show_json({"picture": str(out), "metric": wanted, "runs": [each.name for each in drawn]})
    return 0
