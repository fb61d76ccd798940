"""A person who has nothing but a fresh Debian and the project's address.

No root, an empty home, an environment of three variables, Debian's own Python, two cores. Used by
the end-to-end tests of what README tells to type.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from command_line import ROOT, Ended
from waiting import eventually

#: Without the ``tarfile`` filters of later releases, and with a ``pip`` of its time.
DEBIAN_PYTHON = Path("/usr/bin/python3.11")
CORES = 2


def why_not() -> str:
    """Return why this machine is none for a newcomer; '' where it is."""
    if not DEBIAN_PYTHON.exists():
        return f"no {DEBIAN_PYTHON}: apt-get install python3.11"
    probe = [DEBIAN_PYTHON, "-c", "import ensurepip, venv"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        return "no venv of Debian's Python: apt-get install python3.11-venv"
    missing = [tool for tool in ("bash", "git", "make", "taskset") if shutil.which(tool) is None]
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        missing.append("setpriv")
    return f"missing: {', '.join(missing)}" if missing else ""


class Newcomer:
    """A user with an empty home. ``leave`` ends and removes all that is theirs."""

    def __init__(self) -> None:
        # Not below pytest's folders: these are closed to every other user.
        self.folder = Path(tempfile.mkdtemp(prefix="newcomer-"))
        self.folder.chmod(0o755)
        self.home = self.folder / "home"
        #: Where the project lies when its first block has been typed.
        self.clone = self.home / "dcos-tensorflow"
        #: The commands that were typed, each with its seconds.
        self.typed: list[tuple[str, float]] = []
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._terminals: list[Terminal] = []
        self.home.mkdir()
        self._own(self.folder, self.home)

    def bare_repository(self) -> Path:
        """Return a repository of this checkout's last commit that the newcomer may clone."""
        path = self.folder / "repository.git"
        subprocess.run(["git", "clone", "--quiet", "--bare", ROOT, path], check=True)
        self._own(path, *path.rglob("*"))
        return path

    def brings(self, path: Path, content: str) -> None:
        """Put a file of the newcomer's own somewhere below their home."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        self._own(path.parent, path)

    def has_tensorflow(self, version: str) -> None:
        """Spare ``make`` a download: Debian's Python with this checkout's TensorFlow.

        Does nothing where this checkout has none that the newcomer may read: then it is downloaded.
        """
        name = f".venvs/tensorflow-{version}"
        environment, inside = self.clone / name, "lib/python3.11/site-packages"
        packages, lib = (ROOT / name).resolve() / inside, environment / inside
        make = (
            f"set -e; test -r {packages}/tensorflow/__init__.py || exit 0\n"
            f"{DEBIAN_PYTHON} -m venv --without-pip {environment}\n"
            f"rmdir {lib}; ln -s {packages} {lib}\n"
            f"touch {environment}/.installed {environment}/.keras"
        )
        with self.begin("bash", "-c", make, folder=self.home) as making:
            making.communicate()
        assert making.returncode == 0

    def terminal(self, folder: Path | None = None) -> Terminal:
        """Open another terminal."""
        opened = Terminal(self, folder or self.home, len(self._terminals))
        self._terminals.append(opened)
        return opened

    def begin(self, *command: str, folder: Path) -> subprocess.Popen[str]:
        """Start a program as this user, with nothing of this process's environment."""
        cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:CORES]))
        user: list[str] = []
        if self._user is not None:
            ids = (f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}")
            user = ["setpriv", *ids, "--clear-groups", "--no-new-privs"]
        return subprocess.Popen(
            [*user, "taskset", "--cpu-list", cores, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(self.home)},
            start_new_session=True,
            umask=0o022,
        )

    def leave(self) -> None:
        program = self.clone / ".venv" / "bin" / "dcos-tensorflow"
        if program.exists():
            with self.begin(str(program), "local", "down", folder=self.home) as ending:
                ending.communicate(timeout=300)
        for terminal in self._terminals:
            terminal.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _own(self, *paths: Path) -> None:
        if self._user is not None:
            for path in paths:
                os.lchown(path, self._user.pw_uid, self._user.pw_gid)


@dataclass(frozen=True)
class Left:
    """A command that was typed and not waited for."""

    command: str
    #: When it was typed, by the monotonic clock.
    began: float
    #: The files for what it says, and for its exit code.
    out: Path
    code: Path

    def said(self) -> str:
        return self.out.read_text(errors="replace") if self.out.exists() else ""


class Terminal:
    """A shell that keeps its folder, its variables and what it has activated between commands."""

    def __init__(self, person: Newcomer, folder: Path, number: int) -> None:
        self._person = person
        self._shell = person.begin("bash", "--noprofile", "--norc", folder=folder)
        self._name = f"terminal-{number}"
        self._count = 0

    def leaves(self, command: str) -> Left:
        """Type a command and turn to another terminal."""
        self._count += 1
        stem = f"{self._person.folder}/{self._name}.{self._count}"
        left = Left(command, time.monotonic(), Path(f"{stem}.out"), Path(f"{stem}.code"))
        assert self._shell.stdin is not None
        # The exit code appears whole: in a file that is renamed.
        self._shell.stdin.write(
            f"eval {shlex.quote(command)} </dev/null >{left.out} 2>&1\n"
            f"echo $? >{stem}.part; mv {stem}.part {left.code}\n"
        )
        self._shell.stdin.flush()
        return left

    def types(self, command: str, *, seconds: float = 1800) -> Ended:
        """Type a command and wait for its end, which must be a good one; return what it says."""
        __tracebackhide__ = True
        return self.waits_for(self.leaves(command), seconds=seconds)

    def waits_for(self, left: Left, *, seconds: float = 1800) -> Ended:
        """Wait for the end of a command, which must be a good one; return what it says."""
        __tracebackhide__ = True
        eventually(
            lambda: left.code.exists() or self._shell.poll() is not None,
            seconds=seconds,
            what=lambda: f"the end of {left.command!r}, which said:\n{left.said()[-6000:]}",
        )
        took = time.monotonic() - left.began
        self._person.typed.append((left.command, took))
        code = int(left.code.read_text()) if left.code.exists() else self._shell.wait()
        print(f"$ {left.command}   [{took:.0f} s]\n{left.said()}")
        if code:
            pytest.fail(f"{left.command}\nexit code {code}:\n{left.said()[-6000:]}", pytrace=False)
        return Ended(code, left.said())

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()
