"""Distributed TensorFlow on Apache Mesos and DC/OS from one options JSON.

``TensorFlow`` begins jobs from Python, and ``report`` tells how far one is from within. They are
looked up when they are asked for: this file is imported by every command, and by the task runner,
which runs on any Python from 3.8.
"""

from __future__ import annotations

__version__ = "0.2.0"

#: What a type checker takes for true; the module that has this name would be one import more.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dcos_tensorflow.client.errors import CliError
    from dcos_tensorflow.estimator.job import Job, JobFailed
    from dcos_tensorflow.estimator.queue import Queue
    from dcos_tensorflow.estimator.tensorflow import TensorFlow
    from dcos_tensorflow.estimator.unit_jobs import Batch, Sweep
    from dcos_tensorflow.options.errors import OptionsError
    from dcos_tensorflow.task.output.reporting import report

__all__ = [
    "Batch",
    "CliError",
    "Job",
    "JobFailed",
    "OptionsError",
    "Queue",
    "Sweep",
    "TensorFlow",
    "report",
]

#: The module of each of them.
_PLACES = {
    "Batch": "estimator.unit_jobs",
    "CliError": "client.errors",
    "Job": "estimator.job",
    "JobFailed": "estimator.job",
    "OptionsError": "options.errors",
    "Queue": "estimator.queue",
    "Sweep": "estimator.unit_jobs",
    "TensorFlow": "estimator.tensorflow",
    "report": "task.output.reporting",
}


def __getattr__(name: str) -> object:
    """Return what is asked for by name; raises AttributeError for all else."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    """Return the names that there are, for completion."""
    return sorted({*globals(), *__all__})
