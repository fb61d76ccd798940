"""``fit`` with real TensorFlow and several tasks: the same file that ``run`` is shown with."""

from __future__ import annotations

import os
from typing import Any

import pytest

from command_line import EXAMPLES, NEWEST, CommandLine
from dcos_tensorflow import TensorFlow

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(700)]


# The gate trains with one worker from a notebook (``test_notebook``).
@pytest.mark.soak
@pytest.mark.parametrize(("name", "given"), [("mirrored", {}), ("served", {"ps": 1})])
def test_several_workers_train_from_python(
    local_cluster: CommandLine, tensorflow: Any, name: str, given: dict[str, int]
) -> None:
    sizes = {"mem": 1200, "cpus": 0.5, "disk": 100}
    job = TensorFlow(
        "train.py",
        source_dir=EXAMPLES / "keras",
        workers=2,
        script_arguments=["--epochs", "3"],
        options={
            "service": {"python": tensorflow(NEWEST)},
            "worker": sizes,
            **({"chief": sizes, "parameter_server": sizes} if given else {}),
        },
        name=f"fit-{name}",
        work_dir=local_cluster.home,
        **given,
    ).fit()
    assert job.status == "succeeded"
    assert job.result["test_accuracy"] > 0.8
    rows = job.metrics()
    told = rows if isinstance(rows, list) else rows.to_dict("records")
    assert {row["epochs"] for row in told if "loss" in row} == {3}
    assert "digits.keras" in {file for _, _, files in os.walk(job.model_dir) for file in files}
