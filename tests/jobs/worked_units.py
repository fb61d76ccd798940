"""A service with units of work, its scheduler to be killed, and what became of the units."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from dcos_tensorflow.client.work_directory import WorkDirectory
from scheduler_process import SchedulerProcess
from waiting import eventually

#: Generous: an unhurried machine needs a tenth of it.
DEADLINE = 240.0


class Work:
    """A service with units; its files are in ``folder``, and its scheduler is started and killed.

    ``sections`` are its options. ``job`` is how its code is started.
    """

    def __init__(
        self, folder: Path, name: str, job: Mapping[str, Any], **sections: Mapping[str, Any]
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.name = folder, name
        endpoint = sections.get("s3", {}).get("endpoint_url")
        #: What the operator allows the options.
        self._allowed = ["--s3-places", str(endpoint)] if endpoint else []
        self.options = folder / "options.json"
        service = {"name": name, **job}
        retry = {"initial_backoff_seconds": 0.2}
        self.options.write_text(json.dumps({"service": service, "retry": retry, **sections}))
        self.home = folder / "home"
        # Where the command line looks for what is known of a service of this machine.
        kept = WorkDirectory(self.home).service(name)
        kept.prepare()
        self.state = kept.state_url
        self.log = folder / "scheduler.log"

    def scheduler(self, master: str) -> subprocess.Popen[bytes]:
        flags = ("--exit-when-done", "--task-secrets-dir", str(self.folder), *self._allowed)
        where = self.folder, self.options, master, self.state
        home = {"DCOS_TENSORFLOW_HOME": str(self.home)}
        return SchedulerProcess("scheduler", *where, *flags, environment=home).process

    def ends_well(self, scheduler: subprocess.Popen[bytes], seconds: float = DEADLINE) -> None:
        """Wait until all units are decided."""
        try:
            code = scheduler.wait(timeout=seconds)
        finally:
            scheduler.kill()
        assert code == 0, self.log.read_text()[-4000:]

    def wait(self, condition: Callable[[], object], what: str) -> None:
        eventually(condition, seconds=DEADLINE, what=what)

    def document(self) -> dict[str, Any]:
        """Return what became of each unit, as ``sweep --json`` shows it."""
        from dcos_tensorflow.api.views import unit_views as units
        from dcos_tensorflow.client.kept.stored import stored_state

        state = stored_state(self.state, self.name)
        assert state is not None
        return dict(units.UnitsView().shown(state))

    def leaderboard(self) -> list[tuple[Any, ...]]:
        """Return of each trial what must be the same whatever is killed."""
        found = self.document()["units"]
        return [(u["number"], u["parameters"], u["value"], u["stopped_at"]) for u in found]

    def finds_the_same_as(self, other: Self) -> bool:
        """Compare the trials up to the first that was suggested without a straggler."""
        units = zip(self.document()["units"], other.document()["units"], strict=True)
        parted = (one["number"] for one, two in units if one["without"] or two["without"])
        alike = next(parted, None)
        return self.leaderboard()[:alike] == other.leaderboard()[:alike]
