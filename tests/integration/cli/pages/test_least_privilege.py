"""The scheduler runs with as little as the shipped unit leaves it, as far as that can be had here.

systemd itself would be needed for its filter of system calls and its name spaces. What is tried:
no capability, no new privileges, no memory that is both written and run, and no user's rights.
"""

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dcos_tensorflow
from waiting import eventually

#: linux/prctl.h: PR_SET_MDWE and PR_MDWE_REFUSE_EXEC_GAIN, of Linux 6.3.
_SET_MDWE, _REFUSE_EXEC_GAIN = 65, 1
_SOURCE = Path(dcos_tensorflow.__file__).resolve().parents[1]
_BEGIN = f"""
import ctypes, os, sys
if ctypes.CDLL(None).prctl({_SET_MDWE}, {_REFUSE_EXEC_GAIN}, 0, 0, 0): sys.exit("no MDWE")
os.umask(0o077)
os.execv(sys.executable, [sys.executable, "-m", "dcos_tensorflow", *sys.argv[1:]])
"""


@pytest.fixture
def confined() -> list[str]:
    """Return what a command is run with; skip where the kernel or the machine has too little."""
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid() != 0:
        pytest.skip("giving privileges up needs root and setpriv")
    asked = [sys.executable, "-c", f"import ctypes; exit({_asks_mdwe()})"]
    if subprocess.run(asked, check=False, timeout=60).returncode:
        pytest.skip("this kernel cannot refuse memory that is written and run (older than 6.3)")
    drop = [setpriv, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    nobody = [*drop, "--reuid=65534", "--regid=65534", "--clear-groups"]
    # setpriv still has root's rights when it begins a program; what that begins has not.
    begun = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import kazoo'])"
    reads = subprocess.run(
        [*nobody, sys.executable, "-c", begun],
        env={"PYTHONPATH": str(_SOURCE)},
        check=False,
        capture_output=True,
        timeout=60,
    )
    if reads.returncode:
        pytest.skip("this Python is readable for root alone: no other user can run it")
    return nobody


def _asks_mdwe() -> str:
    return f"ctypes.CDLL(None).prctl({_SET_MDWE}, {_REFUSE_EXEC_GAIN}, 0, 0, 0)"


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def scheduler(confined: list[str], port: int, tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of a scheduler that runs confined."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o011)
    options = tmp_path / "options.json"
    service = {"name": "mnist", "job_url": "http://10.0.0.1/job.zip", "job_name": "train"}
    options.write_text(json.dumps({"service": service, "worker": {"count": 1}}))
    options.chmod(0o644)
    work = tmp_path / "work"
    work.mkdir()
    os.chown(work, 65534, 65534)
    command = ["scheduler", str(options), "--master=127.0.0.1:1", f"--api-port={port}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*confined, sys.executable, "-c", _BEGIN, *command, f"--work-dir={work}"],
            env={"PYTHONPATH": str(_SOURCE), "PATH": "/usr/bin:/bin"},
            stderr=log,
            stdout=log,
        )
        yield work
        process.terminate()
        process.wait(timeout=30)


def test_a_scheduler_without_any_privilege_answers(scheduler: Path, port: int) -> None:
    def health() -> int:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            client.request("GET", "/v1/health")
            return client.getresponse().status
        except OSError:
            return 0
        finally:
            client.close()

    assert eventually(health, what=(scheduler.parent / "log").read_text)
    files = [path for path in scheduler.rglob("*") if path.is_file()]
    assert files
    assert not any(path.stat().st_mode & 0o077 for path in files)
