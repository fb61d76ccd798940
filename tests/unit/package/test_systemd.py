"""The systemd files that are shipped fit the scheduler that is shipped."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dcos_tensorflow.deploy.settings import collect

FOLDER = Path(__file__).resolve().parents[3] / "packaging" / "systemd"
UNIT = FOLDER / "dcos-tensorflow@.service"


def assignments(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def test_the_environment_holds_settings_of_the_scheduler(tmp_path: Path) -> None:
    environment = assignments(FOLDER / "environment")
    token = tmp_path / "token"
    token.write_text("secret\n")
    environment["DCOS_TENSORFLOW_API_TOKEN_FILE"] = str(token)
    settings = collect(None, environment, {})
    assert settings["master"].startswith("zk://")
    assert settings["standby"]


def test_what_is_commented_out_are_settings_too(tmp_path: Path) -> None:
    lines = (FOLDER / "environment").read_text().splitlines()
    offered = dict(line[1:].split("=", 1) for line in lines if line.startswith("#DCOS_"))
    secret = tmp_path / "secret"
    secret.write_text("user:secret\n")
    files = {name: str(secret) for name in offered if name.endswith("_FILE")}
    collect(None, {**offered, **files}, {})
    assert offered


def test_the_unit_starts_what_the_artifact_holds() -> None:
    assert assignments(UNIT)["ExecStart"].startswith("/opt/dcos-tensorflow/bin/dcos-tensorflow ")


def test_ending_the_unit_leaves_the_tasks_to_the_next_scheduler() -> None:
    unit = assignments(UNIT)
    assert unit["Restart"] == "always"
    assert "ExecStop" not in unit


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("there is no systemd-analyze here")
    unit = tmp_path / UNIT.name
    start = assignments(UNIT)["ExecStart"]
    unit.write_text(UNIT.read_text().replace(start, "/bin/true"))
    told = subprocess.run(
        [verify, "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (told.returncode, told.stdout + told.stderr) == (0, "")


def test_the_unit_takes_away_what_the_scheduler_does_not_need() -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze here")
    told = subprocess.run(
        [analyze, "security", "--offline=true", "--no-pager", "--threshold=20", str(UNIT)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "unrecognized option" in told.stderr:
        pytest.skip("this systemd-analyze rates no files (older than 250)")
    assert told.returncode == 0, told.stdout[-500:]
