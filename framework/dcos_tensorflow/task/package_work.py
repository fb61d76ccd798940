"""A task's packages, as the runner's loop sees them: installed here, told back when they are there.

``before_start`` makes one where packages are wanted. Installing takes long and may fail, so it
happens on a thread; the loop goes on and answers. An environment serves all further
starts in this container.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import Callable, List, Mapping, Optional, Tuple

from dcos_tensorflow.job_code.facts import Facts
from dcos_tensorflow.job_code.modules import Found, JobUnusable
from dcos_tensorflow.job_code.names import LEGACY_KERAS_VARIABLE, MULTI_WORKER, PARAMETER_SERVER
from dcos_tensorflow.task.exits.exit_analysis import job_unusable, storage_failed
from dcos_tensorflow.task.python.package_installer import (
    InstallationStopped,
    Installer,
    InstallFailed,
)
from dcos_tensorflow.task.python.python_environments import (
    is_ready,
    ready,
    shared_environments,
    users_directory,
)
from dcos_tensorflow.task.python.python_packages import (
    Base,
    EnvironmentSpec,
    requirements_wanted,
    tensorflow_wanted,
    tf_keras_requirement,
    this_python,
)
from dcos_tensorflow.task.python.shared_copies import Copies, Taken
from dcos_tensorflow.task.spec import RunnerSpec
from dcos_tensorflow.task.supervise.starts import Installed

Log = Callable[[str], None]
#: From here on TensorFlow's own Keras is Keras 3 (its release notes).
_FIRST_WITH_KERAS_3 = (2, 16)
#: In the sandbox: environments, where no folder is shared.
OWN_DIRECTORY = ".environments"


class PackageWork:
    """Makes the environment of one task. ``tell`` gets ``Installed`` from another thread.

    ``facts`` is what the job's code says; ``look`` is called when ``doing`` has changed.
    """

    def __init__(
        self,
        spec: RunnerSpec,
        found: Found,
        sandbox: str,
        facts: Facts,
        *,
        inherited: Mapping[str, str],
        log: Log,
        look: Callable[[], None],
        tell: Callable[[Installed], None],
    ) -> None:
        self._spec = spec
        self._found = found
        self._sandbox = sandbox
        self._facts = facts
        self._inherited = inherited
        self._log = log
        self._look = look
        self._tell = tell
        self._installer = Installer(inherited, lambda line: log(f"packages: {line}"))
        self._taken: List[Taken] = []
        self._thread: Optional[threading.Thread] = None
        #: What is being done, as a sentence for the status.
        self.doing = ""
        #: Whether the environment is there.
        self.done = False

    def begin(self) -> None:
        """Make the environment; then ``Installed`` is told. Once is enough while that goes on."""
        if self._thread is not None and self._thread.is_alive():
            return
        self.doing = "Looks for an earlier installation"
        self._thread = threading.Thread(target=self._work, name="packages", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop everything at once."""
        self._installer.stop()
        if self._thread is not None:
            self._thread.join(5.0)

    def _work(self) -> None:
        base = this_python()
        try:
            base, variables = self._ready(base)
        except InstallationStopped:
            return
        except JobUnusable as error:
            self._tell(Installed(base, refusal=job_unusable(str(error), error.hint)))
        except InstallFailed as error:
            for line in error.lines:
                self._log(f"packages: {line}")
            make = storage_failed if error.retryable else job_unusable
            report = replace(make(str(error), error.hint), last_lines=error.lines)
            self._tell(Installed(base, refusal=report))
        except Exception as error:  # The loop waits for an answer whatever this was.
            refusal = storage_failed(f"The task's packages cannot be installed: {error!r}")
            self._tell(Installed(base, refusal=refusal))
        else:
            self.done = True
            self._tell(Installed(base, variables))

    def _ready(self, base: Base) -> Tuple[Base, Mapping[str, str]]:
        wanted, copies = self._spec.packages, self._copies()
        version = wanted.tensorflow
        if version and base.tensorflow()[1] != version:
            gpus = self._spec.gpus
            base = self._made(copies, base, tensorflow_wanted(version, gpus, self._sandbox))
        lines, variables = list(wanted.lines), self._legacy_keras(version)
        legacy = bool(version) and (bool(variables) or self._asks_for_tf_keras(version))
        if legacy and not base.version_of("tf_keras"):
            lines.append(tf_keras_requirement(version))
        if lines:
            roots = self._found.python_path
            base = self._made(copies, base, requirements_wanted(lines, base, roots, self._sandbox))
        return base, variables

    def _asks_for_tf_keras(self, version: str) -> bool:
        """Say whether the options ask for Keras 2 as a package of its own, or code that needs it.

        Code may ask for it and be content with the Keras 2 that TensorFlow has itself.
        """
        given = self._inherited.get(LEGACY_KERAS_VARIABLE, "").lower() in ("1", "true")
        needs = self._facts.legacy_keras and _numbers(version) >= _FIRST_WITH_KERAS_3
        return self._spec.job.legacy_keras or given or needs

    def _legacy_keras(self, version: str) -> Mapping[str, str]:
        """Return the variable that lets the code work that Keras 3 could not run.

        Its ``fit`` knows no strategy of several processes. Who says something of Keras 2, or in
        which version TensorFlow is there, has decided.
        """
        several = self._facts.strategy in (PARAMETER_SERVER, MULTI_WORKER)
        said = LEGACY_KERAS_VARIABLE in self._inherited or self._facts.legacy_keras
        said = said or self._spec.job.legacy_keras
        with_keras_3 = bool(version) and _numbers(version) >= _FIRST_WITH_KERAS_3
        if said or not (several and with_keras_3 and self._facts.keras_fit):
            return {}
        self._log(
            f"{self._facts.keras_fit.place} calls fit under a strategy of several processes, which "
            f"Keras 3 cannot: TensorFlow {version} uses tf_keras ({LEGACY_KERAS_VARIABLE}=1)"
        )
        return {LEGACY_KERAS_VARIABLE: "1"}

    def _made(self, copies: Copies, base: Base, wanted: EnvironmentSpec) -> Base:
        began, once = time.monotonic(), ", once for this machine" if self._is_shared else ""
        new = not is_ready(copies.directory, base, wanted)
        if new:
            self.doing = f"Makes an environment with {wanted.title}{once}"
            if wanted.alone:
                self.doing += ": a minute or a few"
            self._log(self.doing)
            self._look()
        base, taken = ready(copies, base, wanted, self._installer)
        self._taken.append(taken)
        took = f", after {time.monotonic() - began:.0f} s" if new else ""
        self._log(f"The environment with {wanted.title} is {taken.path}{took}")
        return base

    def _copies(self) -> Copies:
        directory = self._spec.packages.directory
        if directory:
            place = users_directory(directory)
        else:
            place = os.path.join(self._sandbox, OWN_DIRECTORY)
        return shared_environments(
            place,
            self._installer,
            lambda line: self._log(f"packages: {line}"),
            shared=self._is_shared,
        )

    @property
    def _is_shared(self) -> bool:
        return bool(self._spec.packages.directory)


def _numbers(version: str) -> Tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
