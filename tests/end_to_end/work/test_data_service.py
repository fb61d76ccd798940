"""The tf.data service of a job, with real TensorFlow: its tasks are lost, and the training is not.

Each epoch is finite: TensorFlow alone would wait for a data worker that is gone for ever.
"""

import json

import pytest

from command_line import NEWEST, NO_KERAS, OLD
from data_files import PROGRAMS
from waiting import eventually

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(580)]

JOB = PROGRAMS / "served_data.py"
SMALL = {"cpus": 0.3, "mem": 1000, "disk": 50}
ELEMENTS = 40


@pytest.mark.parametrize(
    ("version", "counts"),
    [
        (NEWEST, ()),
        pytest.param(NEWEST, (3, 1), marks=pytest.mark.soak),
        pytest.param(OLD, (3, 1), marks=pytest.mark.soak),
    ],
)
def test_a_training_outlives_its_data_workers_and_its_dispatcher(
    local_cluster, tensorflow, tmp_path, version, counts
):
    name, stop, told = f"served-{version.replace('.', '-')}", tmp_path / "stop", tmp_path / "told"
    options, training = tmp_path / "options.json", tensorflow(version)
    options.write_text(
        json.dumps(
            {
                "service": {
                    "name": name,
                    "job_cmd": f"{training}/bin/python {JOB} {stop} {told}",
                    "python": training,
                    "strategy": "independent",
                    **NO_KERAS,
                },
                "worker": {"count": 1, **SMALL},
                "data_dispatcher": SMALL,
                "data_worker": {"count": 2, **SMALL},
            }
        )
    )
    run = local_cluster.start("run", options, "--yes")

    def epochs():
        text = told.read_text() if told.exists() else ""
        return [tuple(map(int, line.split())) for line in text.splitlines(keepends=True)]

    def task(which):
        status = local_cluster.ask("status", name, "--json")
        return json.loads(status.out)["tasks"].get(which, {}) if status.code == 0 else {}

    def trains_on(more=3):
        before = len(epochs())
        eventually(
            lambda: len(epochs()) >= before + more or run.poll() is not None,
            seconds=150,
            what=f"{more} epochs after {before}",
        )
        assert run.poll() is None

    def is_replaced(which, before):
        eventually(
            lambda: task(which).get("state") == "running" and task(which)["task_id"] != before,
            seconds=90,
            what=f"another {which}",
        )

    try:
        trains_on()
        for lost in ("data-worker-0", "data-dispatcher-0"):
            before = task(lost)["task_id"]
            replaced = local_cluster("pod", "replace", lost, "--name", name)
            assert replaced.code == 0, replaced.out
            is_replaced(lost, before)
            trains_on()
        for count in counts:
            changed = local_cluster("update", "start", name, "--set", f"data_worker.count={count}")
            assert changed.code == 0, changed.out
            trains_on()
        stop.touch()
        out, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 0, out[-4000:]
    processes = {process for process, _, _ in epochs()}
    assert len(processes) == 1, "the training started again"
    # An epoch in which a worker was lost may lack what that one had begun.
    short = [elements for _, _, elements in epochs() if elements < ELEMENTS]
    assert len(short) <= 4, epochs()
