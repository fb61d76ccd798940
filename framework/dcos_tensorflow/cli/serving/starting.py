"""``run``, its first part: what the rest takes long to get ready for is begun here.

A cluster of the run's own is a process that imports and starts on a core of its own. It is started
as soon as there is a name, and before this process imports what reads options and all the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from dcos_tensorflow.cli.serving.run_request import RunRequest
from dcos_tensorflow.cli.work_directory import ServiceDirectory
from dcos_tensorflow.local import daemon
from dcos_tensorflow.local.background_process import StartedProcess


def run(request: RunRequest) -> int:
    """Run the job and return the exit code. Raises CliError and OptionsError."""
    name = request.given.likely_name()
    likely = request.work.service(name) if name else None
    with ExitStack() as stack:
        begun = stack.enter_context(begun_cluster(request, likely)) if likely else None
        # Many imports on one core, while the cluster's process has the other.
        options = request.given.load()
        directory = request.work.service(options.service.name)
        if likely is None or directory.path != likely.path:
            stack.close()
            begun = stack.enter_context(begun_cluster(request, directory))
        from dcos_tensorflow.cli.serving import deployment

        return deployment.run(request, options, directory, begun)


@contextmanager
def begun_cluster(
    request: RunRequest, directory: ServiceDirectory
) -> Iterator[StartedProcess | None]:
    """Hand over the process of the cluster that this run is going to need; None where there is one.

    Whether it is needed is decided later, and by more (``embedded.cluster``): one that is not told
    what to do is ended.
    """
    own = request.work.local if request.detach else directory.cluster
    there = (directory.cluster, request.work.local)
    if not request.local or any(daemon.running_master(each) is not None for each in there):
        yield None
        return
    begun = daemon.begin(own)
    try:
        yield begun
    finally:
        begun.give_up()
