"""Runs uv or pip, and judges their failures: whether another try can help.

``python_environments`` calls ``install``. An installer gets the environment of the task, so that
it finds the index, the proxy and the certificates that its machine is set up with; its output
goes to the log with passwords masked.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from typing import Callable, Deque, Dict, List, Mapping, Optional, Sequence, Tuple

from dcos_tensorflow.task.exits.known_failures import is_passing

#: How much of what an installer has printed is told with its failure.
TOLD_LINES = 20
_MASKED = "(hidden)"
_YES = ("1", "true", "yes", "on")
_LONGEST = 400
#: What belongs to another Python, or sends packages elsewhere than into the environment.
_DROPPED = (
    *("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER"),
    *("VIRTUAL_ENV", "UV_PYTHON", "UV_TARGET", "UV_PREFIX", "UV_SYSTEM_PYTHON"),
)
#: uv does not read what pip is told by: the same for both.
_FOR_UV = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_CERT": "SSL_CERT_FILE",
    "PIP_PROXY": "ALL_PROXY",
}
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_CONFLICT = re.compile(
    r"ResolutionImpossible|conflicting dependencies|unsatisfiable", re.IGNORECASE
)
#: uv draws a tree of its reasons, which begins with a cross.
_UV_BEGINS = re.compile("\u00d7|error:")
_UV_DRAWS = re.compile("^(?:\u00d7|error:|[\u2570\u251c]\u2500\u25b6|\u2502)\\s*")
#: Of what an installer prints, the lines that show that something goes on.
_PROGRESS = re.compile(
    r"^\s*(?:Downloading|Installing|Successfully|Building|Resolved|Prepared|Installed)\b"
)


class InstallFailed(Exception):
    """Packages could not be installed; the message is one sentence.

    ``retryable`` says that the same may work later; ``lines`` are the installer's last ones.
    """

    def __init__(
        self, message: str, hint: str = "", *, retryable: bool = False, lines: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.retryable = retryable
        self.lines = tuple(lines)


class InstallationStopped(Exception):
    """The task ends: nothing is installed any more."""


class Installer:
    """Installs into environments, one at a time; ``stop`` ends it from another thread.

    ``inherited`` are the task's own variables.
    """

    def __init__(self, inherited: Mapping[str, str], log: Callable[[str], None]) -> None:
        self._environment = _environment(inherited)
        self._log = log
        self._stopped = threading.Event()
        self._process: "Optional[subprocess.Popen[bytes]]" = None

    def uv(self) -> Optional[str]:
        """Return the path of uv; None where there is none."""
        return shutil.which("uv", path=self._environment.get("PATH", os.defpath))

    def install(
        self, what: str, python: str, file: str, *, folder: str, wheels: Sequence[str] = ()
    ) -> None:
        """Install what the requirements in ``file`` name into the environment of ``python``.

        ``what`` is how a person calls them. ``wheels`` go first: where they hold everything, no
        index is asked. Raises InstallFailed and Stopped.
        """
        links = [f"--find-links={path}" for path in wheels]
        if links and self._runs(python, [*links, "--no-index", "-r", file], folder)[0] == 0:
            return
        code, lines = self._runs(python, [*links, "-r", file], folder)
        if code:
            raise failure(what, lines)

    def wait(self, seconds: float) -> None:
        """Wait. Raises Stopped when the task ends meanwhile."""
        if self._stopped.wait(seconds):
            raise InstallationStopped

    def stop(self) -> None:
        """End what is being installed, and install nothing more."""
        self._stopped.set()
        process = self._process
        if process is not None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                # It ended by itself in between.
                return

    def _runs(self, python: str, arguments: List[str], folder: str) -> Tuple[int, List[str]]:
        uv = self.uv()
        home = self._environment.get("HOME", "")
        cache = [] if home and os.access(home, os.W_OK) else [f"--no-cache{'' if uv else '-dir'}"]
        if uv:
            command = [uv, "pip", "install", "--no-progress", "--python", python]
            if self._environment.get("PIP_NO_INDEX", "").lower() in _YES:
                cache.append("--no-index")
        else:
            command = [*self._pip(python, folder), "install", "--no-input", "--progress-bar=off"]
            # With no retries at all pip does not say that an index has not answered.
            cache += ["--disable-pip-version-check", "--no-warn-script-location", "--retries=3"]
        return self._run([*command, *cache, *arguments], folder)

    def _pip(self, python: str, folder: str) -> List[str]:
        """Return how pip is run for another Python: that of this one, else one made there."""
        found = importlib.util.find_spec("pip")
        if found is not None and found.origin:
            # What pip itself runs for "pip --python": none of this Python's packages is seen then.
            runner = os.path.join(os.path.dirname(found.origin), "__pip-runner__.py")
            if os.path.isfile(runner):
                return [python, runner]
        code, lines = self._run([python, "-m", "ensurepip"], folder)
        if code:
            raise InstallFailed(
                f"There is neither uv nor pip for {sys.executable}, the Python that runs the task",
                "install one of the two beside it",
                lines=lines,
            )
        return [python, "-m", "pip"]

    def _run(self, command: List[str], folder: str) -> Tuple[int, List[str]]:
        if self._stopped.is_set():
            raise InstallationStopped
        self._process = process = subprocess.Popen(
            command,
            env=self._environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        if self._stopped.is_set():
            self.stop()
        lines: Deque[str] = deque(maxlen=400)
        assert process.stdout is not None
        with process.stdout:
            for raw in process.stdout:
                line = masked(raw.decode("utf-8", "replace").rstrip())
                if line:
                    lines.append(line)
                if _PROGRESS.match(line):
                    self._log(line.strip()[:_LONGEST])
        code = process.wait()
        self._process = None
        if self._stopped.is_set():
            raise InstallationStopped
        return code, list(lines)


def failure(what: str, lines: Sequence[str]) -> InstallFailed:
    """Return what the failure of an installer means, by what it has printed."""
    text, told = "\n".join(lines), tuple(lines[-TOLD_LINES:])
    if _NO_SPACE.search(text):
        return InstallFailed(
            f"{what} cannot be installed: there is no space left for it",
            "give the tasks more disk, or make room on their machine",
            retryable=True,
            lines=told,
        )
    reason = _reason(lines)
    # Before all else: without an answer pip says in the end that there is no such package.
    if any(map(is_passing, lines)):
        return InstallFailed(
            f"{what} cannot be fetched, the package index does not answer: {reason}",
            "it is tried again; without a network, put wheels of everything into the folder "
            "wheels of the job",
            retryable=True,
            lines=told,
        )
    python = ".".join(map(str, sys.version_info[:2]))
    hint = f"the job's tasks run Python {python}; correct the requirements"
    if what.startswith("TensorFlow"):
        hint = f"name a version in service.tensorflow_version that exists for Python {python}"
    elif _CONFLICT.search(text) or "tensorflow" in reason:
        hint = "the TensorFlow of the task stays as it is, service.tensorflow_version names another"
    return InstallFailed(f"{what} cannot be installed: {reason}", hint, lines=told)


def masked(line: str) -> str:
    """Return a line without what may be a password: all that a URL has before an @."""
    return re.sub(r"://[^/@\s]+@", f"://{_MASKED}@", line)


def _reason(lines: Sequence[str]) -> str:
    """Return the installer's own words for its failure, in one line."""
    words = [line.strip() for line in lines]
    errors = [line[len("ERROR:") :].strip() for line in words if line.startswith("ERROR:")]
    # pip names the requirement in one line, and tells a person where help is in the last.
    told = next((e for e in errors if re.match(r"No matching|Cannot install", e)), None)
    if told and "The conflict is caused by:" in words:
        first = words.index("The conflict is caused by:") + 1
        causes = [w for w in words[first : first + 6] if " depends on " in w or "requested" in w]
        told = f"{told.rstrip('.')}: {', '.join(causes)}"
    if told is None and errors:
        told = errors[-1]
    if told is None:
        start = next((i for i, w in enumerate(words) if _UV_BEGINS.match(w)), None)
        found = words[-1:] if start is None else words[start : start + 8]
        told = " ".join(_UV_DRAWS.sub("", w) for w in found)
    return (told[:_LONGEST] or "the installer says nothing").rstrip(".")


def _environment(inherited: Mapping[str, str]) -> Dict[str, str]:
    found = {name: value for name, value in inherited.items() if name not in _DROPPED}
    for name, same in _FOR_UV.items():
        if name in found:
            # A list of places is parted by blanks for pip, by commas for uv.
            value = found[name]
            found.setdefault(same, ",".join(value.split()) if "LINKS" in name else value)
    # As pip: certificates of the machine count, too.
    for name in ("UV_SYSTEM_CERTS", "UV_NATIVE_TLS"):
        found.setdefault(name, "true")
    # A pip.conf that says "user = true" would send packages out of the environment.
    found.update(PYTHONNOUSERSITE="1", PIP_USER="0")
    return found
