"""What is shown beside the progress of a job that is followed."""

import io
import time
from pathlib import Path

from dcos_tensorflow.client.api_client import NoScheduler, SchedulerClient
from dcos_tensorflow.client.following.job import PlainView
from dcos_tensorflow.client.following.task_output import Attempt
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.estimator.display import PrintedLines, ShownJob


def test_a_job_that_never_stops_printing_does_not_keep_the_progress_from_being_shown(
    tmp_path: Path,
) -> None:
    def nobody() -> SchedulerClient:
        raise NoScheduler("gone")

    lines = PrintedLines(KnownService("chatty", ServiceDirectory(tmp_path), nobody))

    def tell(_: str) -> None:
        lines.line(Attempt("worker-0", "id", "agent"), "and another one")

    tell("")
    began = time.monotonic()
    ShownJob(PlainView(io.StringIO()), tell, lines).pause(0.05)
    lines.end()
    assert time.monotonic() - began < 60
