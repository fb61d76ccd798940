"""The command line with a scheduler that looks after its machines often. Usage: COMMAND-LINE...

What takes minutes by the clock of a market takes seconds so; nothing else differs.
"""

import sys
from dataclasses import replace
from typing import Any

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.scheduler.configuration import SchedulerConfig
from dcos_tensorflow.scheduler.scheduler import Scheduler

begin = Scheduler.__init__


def begin_quick(self: Scheduler, spec: ServiceSpec, config: SchedulerConfig, **more: Any) -> None:
    begin(self, spec, replace(config, tick_seconds=0.05, capacity_look_seconds=0.2), **more)


if __name__ == "__main__":
    Scheduler.__init__ = begin_quick  # type: ignore[method-assign]
    sys.exit(run_command_line(sys.argv[1:]))
