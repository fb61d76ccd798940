"""Every golden TF_CONFIG as TensorFlow itself reads it, in the oldest and the newest version."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from command_line import NEWEST, both
from data_files import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "unit" / "core" / "golden" / "tf_config"


@pytest.mark.tensorflow
@pytest.mark.parametrize("version", both(first=NEWEST))
def test_tensorflow_reads_every_rendered_config_as_it_was_meant(version: str) -> None:
    python = ROOT / ".venvs" / f"tensorflow-{version}" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"TensorFlow {version} is not installed in {python.parent.parent}")
    environment = {k: v for k, v in os.environ.items() if k not in ("TF_CONFIG", "PYTHONPATH")}
    ended = subprocess.run(
        [str(python), str(PROGRAMS / "check_tf_config.py"), str(GOLDEN)],
        env={**environment, "CUDA_VISIBLE_DEVICES": "-1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    if "No module named 'tensorflow'" in ended.stderr:
        pytest.skip(f"TensorFlow {version} is not installed in {python.parent.parent}")
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout.splitlines()[-1])
    assert report["version"] == version
    assert report["wrong"] == []
    assert report["checked"] == rendered_configs()


def rendered_configs() -> int:
    return sum(
        told["distribute"]["tf_config"] is not None
        for path in GOLDEN.glob("*.json")
        for entry in json.loads(path.read_text()).values()
        for told in entry["tasks"].values()
    )
