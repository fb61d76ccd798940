"""Two users of one machine, a cluster and a job each: neither sees or moves what is the other's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from command_line import UNTIL_FINISH, CommandLine, Ended, write_options
from waiting import eventually

ROOT = Path(__file__).resolve().parents[3]
ATTACK = Path(__file__).with_name("other_user.py")
UIDS = (64_001, 64_002)


@cache
def python_for_all() -> str:
    """Return a Python that other users may run, with what we need; empty for none."""
    places = [str(ROOT / "framework"), *(p for p in sys.path if p.endswith("site-packages"))]
    environment = {"PYTHONPATH": os.pathsep.join(places), "PATH": os.environ["PATH"]}
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        tried = [*as_user(UIDS[0]), python, "-c", "import dcos_tensorflow.cli.main, kazoo, uvicorn"]
        with suppress(OSError):
            tried_it = subprocess.run(tried, check=False, env=environment, capture_output=True)
            if tried_it.returncode == 0:
                return python
    return ""


def as_user(uid: int) -> list[str]:
    # What setpriv itself executes it finds with root's capabilities; what env does without.
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", "env"]


def why_not() -> str:
    if os.getuid() != 0 or shutil.which("setpriv") is None:
        return "only root can be two users (with setpriv)"
    return "" if python_for_all() else "no Python here that other users may run"


pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]


class User(CommandLine):
    """The command line of another user than the one who tests."""

    def __init__(self, folder: Path, uid: int) -> None:
        super().__init__(folder / "home")
        self.uid = uid
        self.folder = folder
        self.before = as_user(uid)
        self.canary = f"canary-of-{uid}"
        places = [str(ROOT / "framework"), *(p for p in sys.path if p.endswith("site-packages"))]
        self.environment |= {
            "PYTHONPATH": os.pathsep.join(places),
            "HOME": str(folder),
            "DB_PASSWORD": self.canary,
        }

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.before, python_for_all(), "-m", "dcos_tensorflow", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
            cwd=self.folder,
        )

    def begin(self) -> None:
        """Have a cluster, a local DC/OS, and a job with a secret that runs."""
        command = f"touch $CHECKPOINT_DIR/begun; {UNTIL_FINISH}"
        service = {
            "name": "job",
            "job_cmd": command,
            "strategy": "independent",
            "python": python_for_all(),
            "secrets": [
                {"source": "env:DB_PASSWORD", "env": "PASSWORD"},
                {"source": "env:DB_PASSWORD", "file": "conf/key"},
            ],
        }
        options = write_options(self.folder, service=service)
        up = self("local", "up", "--agents=1", "--cpus=1", "--mem=500", "--gpus=0", "--dcos")
        assert up.code == 0, up.out
        run = self("run", options, "--detach")
        assert run.code == 0, run.out
        eventually(self.has_begun, seconds=60, what=lambda: self("why").out)

    def has_begun(self) -> bool:
        return any(self.home.glob("services/job/checkpoints*/**/begun"))

    def attacks(self, other: User) -> dict[str, Any]:
        """Return what this user got of the other's."""
        folders = f"{other.folder},/dev/shm,/tmp"
        attack = [python_for_all(), "-I", str(ATTACK), str(other.uid), folders, other.canary]
        ended = subprocess.run(
            [*self.before, *attack], check=True, stdout=subprocess.PIPE, cwd="/", timeout=200
        )
        return dict(json.loads(ended.stdout))

    def end(self) -> Ended:
        self("stop", "job", "--wait")
        return self("local", "down")


@dataclass(frozen=True)
class Users:
    one: User
    two: User


@pytest.fixture(scope="module")
def users() -> Iterator[Users]:
    if reason := why_not():
        pytest.skip(reason)
    # Not pytest's own folders: those are closed to others, and so would hide what we leave open.
    top = Path(tempfile.mkdtemp(prefix="two-users-", dir="/tmp"))
    top.chmod(0o755)
    found = []
    for uid in UIDS:
        folder = top / str(uid)
        folder.mkdir()
        os.chown(folder, uid, uid)
        found.append(User(folder, uid))
    try:
        for user in found:
            user.begin()
            # As a careless user's: what lies in it is ours to close.
            (user.folder / "options.json").unlink()
        yield Users(*found)
    finally:
        for user in found:
            user.end()
        shutil.rmtree(top)


@pytest.mark.parametrize("attacker", ["one", "two"])
def test_neither_sees_nor_moves_anything_of_the_others(users: Users, attacker: str) -> None:
    victim = users.two if attacker == "one" else users.one
    got = getattr(users, attacker).attacks(victim)
    # Cluster, local DC/OS, scheduler, guard, runner and job; master, agent, DC/OS, API, runner.
    assert got.pop("processes") >= 6
    assert got.pop("ports") >= 4
    assert {name: what for name, what in got.items() if what} == {}
    status = victim("status", "job")
    assert "running" in status.out, status.out


def test_a_users_own_tasks_read_nothing_of_his_scheduler(users: Users) -> None:
    file = users.one.home / "services/job/scheduler.json"
    pid = json.loads(file.read_text())["pid"]
    for name in ("environ", "mem", "maps"):
        read = [*users.one.before, "head", "-c1", f"/proc/{pid}/{name}"]
        ended = subprocess.run(read, check=False, capture_output=True, text=True)
        assert "Permission denied" in ended.stderr, (name, ended)


def test_the_same_name_is_another_service_to_each(users: Users) -> None:
    listed = users.one("list", "--json")
    (found,) = json.loads(listed.out)
    assert found["service"] == "job"
    assert str(users.one.uid) not in str(users.two("list", "--json").out)


def test_the_folder_of_the_other_is_refused(users: Users) -> None:
    for command in (("list",), ("status", "job"), ("stop", "job")):
        refused = users.one(*command, f"--work-dir={users.two.home}")
        assert refused.code != 0 or "no service" in refused.out, refused.out
    assert "running" in users.two("status", "job").out
