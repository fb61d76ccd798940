"""``plot``: a metric of one run, or of several laid over each other, as a picture."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from dcos_tensorflow.cli.drawing import can_be_drawn, draw
from dcos_tensorflow.cli.flags import asks
from dcos_tensorflow.cli.names import service_names
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.kept_runs import run_called
from dcos_tensorflow.client.output import show_json

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
@asks
def plot(asked: Asked, names: tuple[str, ...], metric: str | None, over: str, out: Path) -> int:
    """Draw the curves of one or several runs, with their incidents.

    NAME is the newest run of a service, NAME@3 its third; the command runs lists them.
    """
    from dcos_tensorflow.history.picture import Drawn, metrics_of, picture

    can_be_drawn(out)
    if len(names) > _MOST_RUNS:
        raise UsageError(f"More than {_MOST_RUNS} runs over each other cannot be told apart.")
    found = [run_called(asked, name) for name in names]
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
    draw(image, out, tell=not asked.as_json)
    if asked.as_json:
        show_json({"picture": str(out), "metric": wanted, "runs": [each.name for each in drawn]})
    return 0
