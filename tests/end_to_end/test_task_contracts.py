"""Each way to bring code, with real TensorFlow: the packed runner started by hand, no scheduler.

The jobs are those of ``examples/``; each task gets a sandbox of its own and the spec that the
scheduler would write. What a scheduler starts is trained to its end by ``test_jobs``; of the same
examples, ``make test`` trains here only what goes on in a new epoch.
"""

import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from command_line import NEWEST, OLD, both
from dcos_tensorflow.task.pack import build_zipapp
from dcos_tensorflow.task.report.authentication import signed_headers
from free_ports import free_port
from waiting import eventually

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "token"
SECONDS = 120.0
#: The roles of an options file, and what they are called in TF_CONFIG.
ROLES = {"chief": "chief", "parameter_server": "ps", "worker": "worker"}


def python_of(version: str) -> str:
    python = ROOT / ".venvs" / f"tensorflow-{version}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no TensorFlow {version}: {python.parent.parent} is missing (make test)")
    return str(python)


class Task:
    """One task: its sandbox, its runner, and the port that the runner listens on."""

    def __init__(self, python: str, zipapp: Path, sandbox: Path, spec: dict[str, Any]) -> None:
        self.sandbox = sandbox
        self.port = free_port()
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(sandbox),
            "MESOS_SANDBOX": str(sandbox),
            "TASK_RUNNER_SPEC": json.dumps(spec),
            "TASK_RUNNER_TOKEN": TOKEN,
            "TASK_RUNNER_PORT": str(self.port),
        }
        with (sandbox / "stdout").open("ab") as out, (sandbox / "stderr").open("ab") as err:
            self.process = subprocess.Popen(
                [python, str(zipapp)], env=variables, cwd=sandbox, stdout=out, stderr=err
            )

    def wait(self) -> int:
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.sandbox.name} hangs: {self.tail()}") from None

    def text(self, name: str = "stdout") -> str:
        return (self.sandbox / name).read_text(errors="replace")

    def tail(self) -> str:
        return "\n".join((self.text() + self.text("stderr")).splitlines()[-40:])

    def report(self) -> dict[str, Any]:
        return json.loads(self.text("task-exit.json"))

    def result(self) -> dict[str, Any]:
        lines = [line for line in self.text().splitlines() if line.startswith("result: ")]
        assert lines, self.tail()
        return json.loads(lines[-1][len("result: ") :])

    def request(self, method: str, path: str, document: Any = None) -> dict[str, Any]:
        body = b"" if document is None else json.dumps(document).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            body or None,
            dict(signed_headers(TOKEN, method, path, int(time.time()), body)),
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


class Gang:
    """All tasks of one job."""

    def __init__(self, tasks: dict[str, Task], members: dict[str, list[str]]) -> None:
        self.tasks = tasks
        self.members = members

    def end(self, *names: str) -> None:
        """Assert that the tasks named end by themselves, and with success."""
        for name in names:
            task = self.tasks[name]
            assert task.wait() == 0, task.tail()
            assert task.report()["class"] == "success"


def distribute(members: dict[str, list[str]], role: str, index: int) -> dict[str, Any]:
    return {
        "tf_config": {"cluster": members, "task": {"type": role, "index": index}},
        "wait_for": [],
    }


def server(members: dict[str, list[str]], role: str, index: int) -> dict[str, Any]:
    jobs = {"ps": members.get("ps", []), "worker": members["worker"]}
    wait_for = [] if role == "ps" else jobs["ps"]
    cluster = {job: addresses for job, addresses in jobs.items() if addresses}
    return {"cluster": cluster, "job_name": role, "task_index": index, "wait_for": wait_for}


@pytest.fixture(scope="module")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_zipapp(tmp_path_factory.mktemp("zipapp") / "task-runner.pyz")


@pytest.fixture
def deploy(tmp_path: Path, zipapp: Path) -> Iterator[Callable[..., Gang]]:
    """Return a function that starts all tasks of a job, or ``alone`` the first worker.

    Nothing of them is left afterwards.
    """
    started: list[Task] = []

    def deploy_job(
        version: str,
        job: Path,
        counts: dict[str, int],
        service: dict[str, Any],
        *,
        alone: bool = False,
        **more: Any,
    ) -> Gang:
        python = python_of(version)
        members = {
            role: [f"127.0.0.1:{free_port()}" for _ in range(counts[option])]
            for option, role in ROLES.items()
            if counts.get(option)
        }
        single = sum(map(len, members.values())) == 1
        tasks = {}
        for role, addresses in members.items():
            for index, address in enumerate(addresses):
                name = f"{role}-{index}"
                if alone and name != "worker-0":
                    continue
                sandbox = tmp_path / name
                if not sandbox.exists():
                    shutil.copytree(job, sandbox)
                with_server = not single and "chief" not in members
                cluster = {
                    "epoch": 1,
                    "distribute": None if single else distribute(members, role, index),
                    "server": server(members, role, index) if with_server else None,
                }
                spec = {
                    "version": 1,
                    "service": service.get("name", "test"),
                    "task": name,
                    "cluster": cluster,
                    "job": {
                        "name": service.get("job_name", ""),
                        "command": service.get("job_cmd", ""),
                        "context": service.get("job_context", "{}"),
                        "tf1_compat": service.get("tf1_compat", False),
                    },
                    "cpus": 0.5,
                    "grpc_port": int(address.rpartition(":")[2]),
                    "grace_seconds": 2,
                    **more,
                }
                tasks[name] = Task(python, zipapp, sandbox, spec)
                started.append(tasks[name])
        return Gang(tasks, members)

    yield deploy_job
    for task in started:
        if task.process.poll() is None:
            task.process.send_signal(signal.SIGTERM)
    for task in started:
        task.process.wait(30)


@pytest.fixture
def example(deploy: Callable[..., Gang]) -> Callable[..., Gang]:
    """Return a function that starts an example as its options file says."""

    def start(
        version: str,
        name: str,
        *,
        job: Path | None = None,
        counts: Mapping[str, int] = MappingProxyType({}),
        spec: Mapping[str, Any] = MappingProxyType({}),
        **service: Any,
    ) -> Gang:
        folder = job or ROOT / "examples" / name
        options = json.loads((folder / "options.json").read_text())
        of_example = {option: options.get(option, {}).get("count", 0) for option in ROLES}
        service = {**options["service"], **service}
        return deploy(version, folder, {**of_example, **counts}, service, **spec)

    return start


@pytest.fixture
def worker(deploy: Callable[..., Gang], tmp_path_factory: pytest.TempPathFactory):
    """Return a function that runs a small job on one worker (and more) and returns worker 0."""

    def run(
        version: str,
        source: str,
        *,
        ps: int = 0,
        workers: int = 1,
        alone: bool = False,
        **service: Any,
    ) -> Task:
        folder = tmp_path_factory.mktemp("job")
        (folder / "job.py").write_text(source)
        counts = {"parameter_server": ps, "worker": workers}
        service = {"job_name": "job", **service}
        return deploy(version, folder, counts, service, alone=alone).tasks["worker-0"]

    return run


@pytest.mark.parametrize(
    ("version", "name", "workers", "ending"),
    [
        pytest.param(
            *(
                NEWEST,
                "multi_worker",
                2,
                ("train.py", "STEPS = 400", "STEPS = 10**9", "STEPS = 400"),
            ),
            marks=pytest.mark.soak,
        ),
        (OLD, "digits", 1, ("digits.py", '"steps", 1500', '"steps", 10**9', '"steps", 600')),
    ],
)
def test_a_new_epoch_restarts_a_job_from_its_checkpoint(
    example, tmp_path_factory, *, version, name, workers, ending
):
    # However late the order for the new epoch comes: the job goes on until then.
    file, limit, endless, enough = ending
    job = tmp_path_factory.mktemp("job") / name
    shutil.copytree(ROOT / "examples" / name, job)
    replace_once(job / file, limit, endless)
    # As the scheduler has it: one member fails when another one has begun again before it.
    counts, spec = {"worker": workers}, {"hold_on_failure": True}
    gang = example(version, name, job=job, counts=counts, spec=spec, job_context="{}")
    chief = gang.tasks["worker-0"]
    eventually(
        lambda: list((chief.sandbox / "checkpoints").glob("*-[1-9]*.index")),
        seconds=SECONDS,
        what="a checkpoint of the chief",
    )
    for task in gang.tasks.values():
        replace_once(task.sandbox / file, endless, enough)
    members = {
        role: [f"127.0.0.1:{free_port()}" for _ in old] for role, old in gang.members.items()
    }
    for task_name, task in gang.tasks.items():
        role, _, index = task_name.partition("-")
        body = {
            "epoch": 2,
            "start": 2,
            "run": True,
            "distribute": distribute(members, role, int(index)),
            "server": server(members, role, int(index)) if name == "digits" else None,
        }
        assert task.request("PUT", "/v1/cluster", body)["changed"]
    gang.end(*(name for name in gang.tasks if name.startswith("worker")))
    assert "goes on from" in chief.text()
    result = chief.result()
    assert result["test_accuracy"] > 0.9
    assert (Path(result["model"]) / "saved_model.pb").exists()
    assert Path(result["checkpoint"] + ".index").exists()


def replace_once(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize("version", both(first=NEWEST))
def test_a_tensorflow_1_script_is_told_of_tf1_compat(worker, version):
    task = worker(version, "import tensorflow as tf\ntf.placeholder(tf.float32, [None])\n")
    assert task.wait() == 78
    assert "service.tf1_compat" in task.report()["hint"]


@pytest.mark.parametrize("version", both(first=OLD))
def test_with_tf1_compat_a_package_finds_every_form_of_tensorflow(
    deploy, tmp_path_factory, version
):
    source = (
        "import tensorflow as tf\n"
        "import tensorflow.compat.v1 as v1\n"
        "import tensorflow.compat.v2 as v2\n"
        "from tensorflow.python.framework import ops\n"
        "from tensorflow.python.platform import gfile\n"
        "from tensorflow.compat.v1 import train\n"
        "assert tf.placeholder is v1.placeholder and not v2.executing_eagerly()\n"
        "assert not hasattr(v2, 'placeholder') and train is v1.train\n"
        "assert tf.train.Saver and tf.app.flags and tf.keras.layers.Dense\n"
        "assert not hasattr(tf, 'contrib') and 'Session' in dir(tf)\n"
        "SEVEN = tf.Session().run(tf.constant(3) + 4)\n"
    )
    folder = tmp_path_factory.mktemp("job")
    (folder / "pack").mkdir()
    (folder / "pack" / "__init__.py").touch()
    (folder / "pack" / "part.py").write_text(source)
    (folder / "pack" / "__main__.py").write_text(
        "from . import part\nprint(__name__, part.SEVEN)\n"
    )
    job = {"job_name": "pack", "tf1_compat": True}
    task = deploy(version, folder, {"worker": 1}, job).tasks["worker-0"]
    assert task.wait() == 0, task.tail()
    assert task.text().startswith("__main__ 7")


@pytest.mark.parametrize("version", both(first=NEWEST))
def test_a_port_that_is_taken_is_told_with_its_own_exit_code(worker, version):
    python_of(version)
    source = (
        "import json, os, socket\n"
        "config = json.loads(os.environ['TF_CONFIG'])\n"
        "address = config['cluster']['worker'][config['task']['index']]\n"
        "holder = socket.socket()\n"
        "holder.bind(('0.0.0.0', int(address.split(':')[1])))\n"
        "holder.listen()\n"
        "import tensorflow as tf\n"
        "tf.distribute.Server(\n"
        "    {'worker': [address]}, job_name='worker', task_index=0, protocol='grpc')\n"
    )
    task = worker(version, source, workers=2, alone=True)
    assert task.wait() == 75, task.tail()
    assert task.report()["class"] == "port_taken"


def test_model_fit_under_a_strategy_with_keras_3_is_told_of_legacy_keras(worker):
    source = (
        "import numpy as np, tensorflow as tf\n"
        "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
        "with strategy.scope():\n"
        "    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "    model.compile('sgd', 'mse')\n"
        "data = tf.data.Dataset.from_tensor_slices((np.ones((64, 4)), np.ones(64)))\n"
        "model.fit(data.repeat().batch(8), epochs=1, steps_per_epoch=4)\n"
    )
    task = worker(NEWEST, source, workers=2)
    assert task.wait() == 78, task.tail()
    assert "service.legacy_keras" in task.report()["hint"], task.tail()
