"""The first start of a task waits here, beside its data: GPUs, packages, the way to tf.data's.

``runner`` makes one and asks it before anything is fetched. Each part does its work on a thread of
its own, and the loop hears of its end as of any event; the parts are imported where they are used
alone, for most tasks use none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Tuple, Union

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.facts import Facts
from dcos_tensorflow.job_code.modules import Found
from dcos_tensorflow.task.spec import RunnerSpec
from dcos_tensorflow.task.supervise import lifecycle_events as events
from dcos_tensorflow.task.supervise.guard import Guard
from dcos_tensorflow.task.supervise.starts import Starts

if TYPE_CHECKING:
    from dcos_tensorflow.task.data_service.forwarder import Forwarder
    from dcos_tensorflow.task.gpu_work import GpuWork
    from dcos_tensorflow.task.package_work import PackageWork


class BeforeStart:
    """The parts that this task needs. ``tell`` takes the loop's events, from any thread."""

    def __init__(
        self,
        spec: RunnerSpec,
        found: Found,
        starts: Starts,
        guard: Guard,
        *,
        inherited: Mapping[str, str],
        log: Callable[[str], None],
        tell: Callable[[Any], None],
    ) -> None:
        self._spec = spec
        self._found = found
        self._starts = starts
        self._inherited = inherited
        self._log = log
        self._tell = tell
        self._data_service = self._way_to_data()
        self._gpus = self._gpus_to_take(guard)
        self._packages: "Optional[PackageWork]" = None

    @property
    def installs(self) -> bool:
        """Return whether a start waits for any of them."""
        return self._spec.packages.are_wanted or self._gpus is not None

    @property
    def gpus(self) -> Tuple[str, ...]:
        """Return the names of the GPUs that were taken."""
        return self._gpus.names if self._gpus else ()

    @property
    def data_service(self) -> str:
        """Return where the way to tf.data's dispatcher leads; empty where there is none."""
        return self._data_service.target if self._data_service else ""

    def doing(self, *, stores: bool) -> Optional[str]:
        """Return what is done now; None where nothing is, or what the storage does says more."""
        if self._gpus is not None and not self._gpus.done:
            return self._gpus.doing
        if self._packages is not None and not (self._packages.done and stores):
            return self._packages.doing
        return None

    def begin(self) -> bool:
        """Begin the next of what is not done yet; return False where all is."""
        part: "Union[GpuWork, PackageWork, None]" = self._gpus
        if part is None or part.done:
            part = self._packages
        if part is None or part.done:
            return False
        part.begin()
        return True

    def lead_to(self, dispatcher: str) -> None:
        """Lead to another dispatcher, where one is told."""
        if dispatcher and self._data_service:
            self._data_service.lead_to(dispatcher)

    def read(self, facts: Facts, sandbox: str) -> None:
        """Take what the code says, which decides about packages."""
        if self._spec.packages.are_wanted:
            from dcos_tensorflow.task.package_work import PackageWork

            self._packages = PackageWork(
                self._spec,
                self._found,
                sandbox,
                facts,
                inherited=self._starts.helpers_environment(),
                log=self._log,
                look=self._look,
                tell=self._tell,
            )

    def close(self) -> None:
        """Stop everything."""
        for part in (self._gpus, self._packages, self._data_service):
            if part is not None:
                part.close()

    def _look(self) -> None:
        # The status says what is done next, as soon as that begins.
        self._tell(events.Tick())

    def _way_to_data(self) -> "Optional[Forwarder]":
        """Return what leads to the dispatcher of the job's tf.data service, where it is used."""
        told = self._spec.data_service
        if told is None or self._spec.role == contract.DATA_DISPATCHER_ROLE:
            return None
        from dcos_tensorflow.task.data_service.forwarder import Forwarder

        found = Forwarder(self._log)
        found.lead_to(told.dispatcher)
        address = {contract.TF_DATA_SERVICE: f"grpc://{found.address}"}
        self._starts.run_with(self._starts.preparation.base, address)
        return found

    def _gpus_to_take(self, guard: Guard) -> "Optional[GpuWork]":
        """Return what takes the task's GPUs, where no isolator has."""
        if not self._spec.gpus:
            return None
        from dcos_tensorflow.task import gpu_work

        devices = gpu_work.choice(self._spec.gpus, self._inherited)
        if not devices:
            return None
        return gpu_work.GpuWork(
            self._spec.gpus,
            devices,
            self._starts.preparation.base,
            log=self._log,
            look=self._look,
            tell=self._tell,
            hold=guard.hold,
        )
