"""Runs a service as systemd would run it by a unit file, all of it below a folder of the test.

For tests where there is no systemd: what the unit says of the command, its environment and when it
starts again is read from the file that is shipped, so that the two cannot come to differ.
"""

import shlex
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import dcos_tensorflow

#: The unit that is shipped.
UNIT = Path(__file__).resolve().parents[1] / "packaging/systemd/dcos-tensorflow@.service"
#: What the artifact brings, and this checkout in its place.
PROGRAM = "/opt/dcos-tensorflow/bin/dcos-tensorflow"
_SCRIPT = """#!/bin/sh
PYTHONPATH={source} exec {python} -c 'from dcos_tensorflow.cli.main import main; main()' "$@"
"""


@dataclass(frozen=True)
class Machine:
    """A machine of whose folders those that we install to lie below ``root``."""

    root: Path

    def path(self, path: str) -> Path:
        """Return where a path of this machine lies on the one that the test runs on."""
        return self.root / path.lstrip("/")

    def install(self) -> None:
        """Unpack the artifact, as far as a test is concerned."""
        program = self.path(PROGRAM)
        program.parent.mkdir(parents=True)
        source = Path(dcos_tensorflow.__file__).resolve().parents[1]
        program.write_text(_SCRIPT.format(source=source, python=sys.executable))
        program.chmod(0o755)
        self.path("/etc/systemd/system").mkdir(parents=True)

    def moved(self, text: str) -> str:
        """Return a text with the folders of this machine in it."""
        for folder in ("/etc/", "/opt/"):
            text = text.replace(folder, f"{self.root}{folder}")
        return text


def settings(unit: Path, instance: str, machine: Machine) -> dict[str, list[str]]:
    """Return the settings of a unit file, each with all its values, specifiers put in."""
    found: dict[str, list[str]] = {}
    states = str(machine.path("/var/lib"))
    for line in unit.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith(("#", "[")):
            value = machine.moved(value).replace("%i", instance).replace("%S", states)
            found.setdefault(key, []).append(value)
    return found


class Supervised:
    """A unit that was started. Its log is its standard output and error, as in the journal."""

    def __init__(self, instance: str, machine: Machine, unit: Path = UNIT) -> None:
        self._settings = settings(unit, instance, machine)
        self._machine = machine
        self._log = machine.root / f"{instance}.log"
        self._over = threading.Event()
        assert self._settings["Restart"] == ["always"]
        not_again = " ".join(self._settings["RestartPreventExitStatus"]).split()
        self._not_again = {int(code) for code in not_again}
        self.starts = 0
        self.process = self._start()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    @property
    def runs(self) -> bool:
        """Say whether it runs, or will be started again."""
        return self._thread.is_alive()

    @property
    def log(self) -> str:
        """Return what it has said."""
        return self._log.read_text(errors="replace")

    def end(self) -> None:
        """End it and start it no more."""
        self._over.set()
        self.process.kill()
        self._thread.join()

    def _watch(self) -> None:
        while self.process.wait() not in self._not_again:
            if self._over.wait(float(self._settings["RestartSec"][0])):
                return
            self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        for folder in self._settings["StateDirectory"]:
            self._machine.path(f"/var/lib/{folder}").mkdir(0o700, parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            return subprocess.Popen(
                shlex.split(self._settings["ExecStart"][0]),
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        """Return what systemd gives: little of its own, and of files what stands in them now."""
        found = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}
        for line in self._settings.get("Environment", ()):
            found |= dict(each.split("=", 1) for each in shlex.split(line))
        for name in self._settings.get("EnvironmentFile", ()):
            file = Path(name.removeprefix("-"))
            if file.exists() or not name.startswith("-"):
                found |= _assignments(self._machine.moved(file.read_text()))
        return found


def _assignments(text: str) -> dict[str, str]:
    lines = (line for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key: " ".join(shlex.split(value)) for key, value in (e.split("=", 1) for e in lines)}


def carry_out(commands: list[str], machine: Machine) -> None:
    """Run commands of the documentation on ``machine``; its users are not known here."""
    bash = shutil.which("bash")
    assert bash is not None
    for command in commands:
        moved = machine.moved(command.replace("-g dcos-tensorflow ", ""))
        subprocess.run([bash, "-ec", moved], check=True, cwd=UNIT.parents[2])
