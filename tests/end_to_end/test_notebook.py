"""``examples/notebook``, executed cell by cell in a kernel of its own.

In ``make test`` its scripts are plain ones, ``make soak`` trains with real TensorFlow.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command_line import EXAMPLES, NEWEST, CommandLine

pytestmark = pytest.mark.timeout(700)

NOTEBOOK = EXAMPLES / "notebook" / "fit.ipynb"


def executed(notebook: Path, command_line: CommandLine, folder: Path) -> list[dict[str, Any]]:
    """Return the outputs of a notebook's cells, in their order."""
    folders = ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute"),
            *("--output-dir", folder, notebook),
        ],
        env={**command_line.environment, **{name: str(folder / name) for name in folders}},
        capture_output=True,
        text=True,
        timeout=650,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    cells = json.loads((folder / notebook.name).read_text())["cells"]
    return [output for cell in cells for output in cell.get("outputs", ())]


def shown(outputs: list[dict[str, Any]], kind: str, form: str) -> list[str]:
    return ["".join(o["data"][form]) for o in outputs if o["output_type"] == kind]


#: In the place of ``train.py`` and ``classify.py``.
PLAIN = {
    "train.py": """
import json, os
from dcos_tensorflow import report

context = json.loads(os.environ["JOB_CONTEXT"])
for step in range(1, context["epochs"] + 1):
    value = 1 - 1 / (step + context["units"])
    report(step, accuracy=value, loss=1 - value, val_accuracy=value, val_loss=1 - value)
with open(os.path.join(os.environ["OUTPUT_DIR"], "digits.keras"), "w") as model:
    model.write("what was learned")
print("result:", json.dumps({"test_accuracy": value}))
""",
    "classify.py": """
import json

def main(shard, context):
    with open(shard["output"], "w") as output:
        for image in range(shard["begin"], shard["end"]):
            output.write(json.dumps({"image": image, "digit": 0, "right": True}) + "\\n")
""",
}


def without_tensorflow(folder: Path) -> Path:
    """Return the notebook with plain scripts beside it, which this Python runs."""
    folder.mkdir()
    for name, text in PLAIN.items():
        (folder / name).write_text(text)
    given, python = 'options={"worker": ', json.dumps(sys.prefix)
    quoted = json.dumps(given)[1:-1]
    text = NOTEBOOK.read_text()
    assert text.count(quoted) == 1
    own = json.dumps(f'options={{"service": {{"python": {python}}}, "worker": ')[1:-1]
    (folder / NOTEBOOK.name).write_text(text.replace(quoted, own))
    return folder / NOTEBOOK.name


@pytest.mark.parametrize("version", ["", pytest.param(NEWEST, marks=pytest.mark.soak)])
def test_a_training_a_sweep_and_a_batch_run_from_a_notebook_and_are_seen_there(
    local_cluster: CommandLine, tmp_path: Path, tensorflow: Any, version: str
) -> None:
    if version:
        tensorflow(version)
    notebook = NOTEBOOK if version else without_tensorflow(tmp_path / "notebook")
    outputs = executed(notebook, local_cluster, tmp_path)
    printed = "".join("".join(o["text"]) for o in outputs if o["output_type"] == "stream")
    assert printed.count("The job notebook-digits has succeeded") == 2
    first, sweep, second, batch = shown(outputs, "display_data", "text/html")
    assert "run 1  succeeded" in first
    assert "run 2  succeeded" in second
    assert "val_accuracy 0." in first
    # A curve for each metric that the script reports, in less time than between two looks.
    assert first.count("<svg") == 4
    assert "notebook-sweep  run 1  succeeded" in sweep
    # The leaderboard with its picture, and no curves of the slots.
    assert "4 trials: 4 " in sweep
    assert "image/svg+xml" in sweep
    assert "<svg" not in sweep
    assert "notebook-batch  run 1  succeeded" in batch
    assert "6 shards: 6 done (100 %)." in batch
    told = shown(outputs, "execute_result", "text/plain")
    assert "val_loss" in told[0]
    assert "notebook-digits/output/1/worker-0" in told[1]
    assert "'learning_rate'" in told[2]
    assert "'succeeded': 6" in told[4]
    (right,) = re.findall(r"1797 images, (\d+) of them right", printed)
    assert int(right) > 1400
    assert (local_cluster.home / "services/notebook-digits/output/2/worker-0/digits.keras").exists()
