"""``run``, its first part: what the rest takes long to get ready for is begun here.

A cluster of the run's own is a process that imports and starts on a core of its own. It is started
as soon as there is a name, and before this process imports what serves the job. On a cluster that
runs the other core is free: there the options are read meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import embedded_mesos
from dcos_tensorflow.cli.beside import Beside
from dcos_tensorflow.cli.errors import told_with_refusals
from dcos_tensorflow.cli.serving.run_request import RunRequest
from dcos_tensorflow.cli.work_directory import ServiceDirectory
from embedded_mesos import StartedProcess

if TYPE_CHECKING:
    from dcos_tensorflow.cli.serving.deployment import Deployment


def run(request: RunRequest, *, may_fork: bool = False) -> int:
    """Run the job and return the exit code. Raises CliError and OptionsError.

    With ``may_fork`` a process beside this one reads the options, where a core is left for it: no
    other thread may run then.
    """
    name = request.given.likely_name()
    likely = request.work.service(name) if name else None
    with ExitStack() as stack:
        begun = stack.enter_context(begun_cluster(request, likely)) if likely else None

        def cluster_of(directory: ServiceDirectory) -> StartedProcess | None:
            if likely is not None and directory.path == likely.path:
                return begun
            stack.close()
            return stack.enter_context(begun_cluster(request, directory))

        if request.detach:
            return _detach(request, cluster_of)
        # A person is asked by the process that the terminal waits for.
        may_fork = may_fork and not (request.fresh and not request.yes)
        deployed = _ready(request, beside=may_fork and _cores() > (1 if begun is None else 2))
        # Here begins what needs the scheduler in this process, and all that comes with it.
        from dcos_tensorflow.cli.serving import foreground

        with told_with_refusals(deployed.unasked):
            return foreground.run(deployed, cluster_of(deployed.directory))


def _detach(
    request: RunRequest, cluster_of: Callable[[ServiceDirectory], StartedProcess | None]
) -> int:
    # Many imports on one core, while the cluster's process has the other.
    options = request.given.load()
    directory = request.work.service(options.service.name)
    begun = cluster_of(directory)
    from dcos_tensorflow.cli.serving import background, readying

    with readying.made_ready(request, options, directory) as deployed:
        return background.detach(deployed, begun)


def _cores() -> int:
    return len(os.sched_getaffinity(0))


def _ready(request: RunRequest, *, beside: bool) -> Deployment:
    """Return what was made ready, ``beside`` by a process on another core that is idle."""

    def ready() -> Deployment:
        from dcos_tensorflow.cli.serving import readying

        return readying.ready(request)

    if not beside:
        return ready()
    # Both need it.
    from dcos_tensorflow.cli.serving import deployment  # noqa: F401

    with Beside(ready) as call:
        from dcos_tensorflow.cli.serving import foreground

        foreground.prepare()
        if not request.local:
            # What tasks of other machines fetch from is asked before they are launched.
            from dcos_tensorflow.api import app  # noqa: F401
        return call.answer()


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
    if not request.local or any(embedded_mesos.running_master(each) is not None for each in there):
        yield None
        return
    begun = embedded_mesos.begin(own)
    try:
        yield begun
    finally:
        begun.give_up()
