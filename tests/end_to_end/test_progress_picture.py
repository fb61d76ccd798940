"""What ``run`` shows on a terminal while a real training goes on, drawn as the documents show it.

With ``PROGRESS_PICTURE=FILE.svg`` the picture of README is taken.
"""

import io
import json
import os
import re
import time
from collections.abc import Callable

import pytest
from rich.console import Console

from command_line import EXAMPLES, NEWEST, CommandLine
from dcos_tensorflow.client.following.live_progress import render
from dcos_tensorflow.client.snapshot import Snapshot
from waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.tensorflow, pytest.mark.timeout(600)]

SERVICE = "digits"
WIDTH = 96
#: TensorFlow's start on a busy machine.
PATIENCE = 240.0
#: A font that rich would have from a server of its own choice.
FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def snapshot(home: CommandLine) -> Snapshot:
    """Return where the job stands, as its scheduler answers."""
    job, why = (json.loads(home.ask(verb, SERVICE, "--json").out) for verb in ("status", "why"))
    return Snapshot(job, why)


def test_the_live_view_of_a_training_can_be_drawn(
    local_cluster: CommandLine, tensorflow: Callable[[str], str]
) -> None:
    home = local_cluster
    context = json.dumps({"steps": 10**6, "batch_size": 16, "learning_rate": 0.001})
    settings = (f"service.job_context={context}", f"service.python={tensorflow(NEWEST)}")
    flags = [word for setting in settings for word in ("--set", setting)]
    began = home.ask("run", EXAMPLES / "digits" / "options.json", *flags, "--detach", "--yes")
    assert began.code == 0, began.out
    try:
        eventually(lambda: all_train(home), seconds=PATIENCE, what="that all workers make steps")
        console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
        console.print(render(snapshot(home), time.time()))
        picture = console.export_svg(title="dcos-tensorflow run examples/digits/options.json")
    finally:
        home.ask("stop", SERVICE, "--yes")
    assert all(name in picture for name in ("ps-0", "worker-0", "worker-1", "running"))
    if path := os.environ.get("PROGRESS_PICTURE"):
        with open(path, "w") as file:
            file.write(FONT.sub("", picture))


def all_train(home: CommandLine) -> bool:
    """Say whether every worker runs and has told a step."""
    workers = [task for task in snapshot(home).tasks if task.name.startswith("worker")]
    return bool(workers) and all(t.doing == "running" and t.step is not None for t in workers)
