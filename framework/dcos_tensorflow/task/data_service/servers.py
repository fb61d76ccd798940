"""Runs in the process of a data worker or of the dispatcher: TensorFlow's server, until it ends.

``wrapper`` calls it. The author of the job writes none of it. Both are sure to be started anew:
the dispatcher finds its journal again, and a worker registers itself.
"""

from __future__ import annotations

import importlib
import os
import socket
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.data_service import lost_workers

#: A data worker tells the dispatcher of itself so often. TensorFlow's own default is 30 s: for so
#: long a new worker would not get to know of an epoch that begins.
HEARTBEAT_MS = 1_000


@dataclass(frozen=True)
class DataServer:
    """Which server is wanted.

    ``address`` is where others reach it, its host empty where the container has an address of its
    own. ``journal`` is where the dispatcher keeps what it knows.
    """

    role: str
    port: int
    address: str = ""
    journal: str = ""


def serve(wanted: DataServer) -> int:
    """Serve until the process is ended from outside."""
    tensorflow = importlib.import_module("tensorflow")
    service = tensorflow.data.experimental.service
    server = (
        _dispatcher(tensorflow, service, wanted)
        if wanted.role == contract.DATA_DISPATCHER_ROLE
        else _worker(service, wanted)
    )
    print(f"task-runner: a {wanted.role} of tf.data is serving at port {wanted.port}", flush=True)
    if wanted.role == contract.DATA_DISPATCHER_ROLE:
        lost_workers.look_after(wanted.port)
    server.join()
    return contract.EXIT_RUNNER_FAILED


def _dispatcher(tensorflow: Any, service: Any, wanted: DataServer) -> Any:
    _forget_former_runs(tensorflow.io.gfile, wanted.journal)
    config = service.DispatcherConfig(
        port=wanted.port, work_dir=wanted.journal, fault_tolerant_mode=True
    )
    return service.DispatchServer(config)


def _forget_former_runs(files: Any, journal: str) -> None:
    """Remove the journals of former runs of the service: each has the graphs of its datasets."""
    files.makedirs(journal)
    folder, own = os.path.split(journal)
    for name in files.listdir(folder):
        if name.strip("/") != own:
            files.rmtree(f"{folder}/{name}")


def _worker(service: Any, wanted: DataServer) -> Any:
    address = wanted.address or f"{socket.gethostbyname(socket.gethostname())}:{wanted.port}"
    config = service.WorkerConfig(
        dispatcher_address=os.environ[contract.TF_DATA_SERVICE].rpartition("/")[2],
        worker_address=address,
        port=wanted.port,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    return service.WorkerServer(config)
