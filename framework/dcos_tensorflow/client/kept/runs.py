"""The runs that are kept: those of this machine's services, or of the service that an API is of.

Used by ``runs`` and ``plot``. A run is called ``NAME@3`` by its service and number, or by the whole
of its id where there are two of one number; ``NAME`` alone is the newest one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.api_client import SchedulerAway, SchedulerClient, connect
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.history import folder
from dcos_tensorflow.history.points import Point, Points
from dcos_tensorflow.history.record import Notes, Record
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class KeptRun:
    """A run, and where its points are."""

    record: Record
    #: Whether a scheduler serves its job now.
    is_served: bool
    #: Returns its points. Raises CliError.
    points: Callable[[], Points]
    #: Keeps what a person says of it. Raises CliError.
    note: Callable[[Notes], None]

    @property
    def name(self) -> str:
        """Return what a person calls it."""
        return f"{self.record['service']}@{self.record['run']}"

    @property
    def standing(self) -> str:
        """Return in a word how it ended, or where it is."""
        if self.record.get("outcome"):
            return str(self.record["outcome"])
        if self.record.get("uninstalled"):
            return "uninstalled"
        return str(self.record["phase"]) if self.is_served else "not served"

    @property
    def seconds(self) -> float | None:
        """Return how long its job took; None while that is not known."""
        began, ended = self.record.get("started_at"), self.record.get("finished_at")
        return ended - began if began and ended else None


def kept_runs(choice: ServiceChoice) -> list[KeptRun]:
    """Return the runs of a service, or of all on this machine, the newest first. Raises CliError.

    Those that nothing is known of are none.
    """
    if choice.api is not None:
        client = choice.client()
        records: Iterable[Record] = client.get("/v1/runs")
        return [
            KeptRun(
                record,
                number == 0,
                partial(_asked_points, client, record),
                partial(_order_notes, client, record),
            )
            for number, record in enumerate(records)
        ]
    names = registry.service_names(choice.work) if choice.name is None else [choice.name]
    found = [run for name in names for run in _of_this_machine(choice, name)]
    return sorted(found, key=lambda run: run.record.get("started_at") or 0.0, reverse=True)


def run_called(choice: ServiceChoice, text: str) -> KeptRun:
    """Return the run that ``text`` calls so. Raises CliError."""
    name, _, number = text.partition("@")
    if choice.name and name and name != choice.name:
        raise UsageError(f"Which service is meant, {choice.name} or {name}?")
    of_service = kept_runs(ServiceChoice(choice.work, name or choice.name, api=choice.api))
    by = ("id", "run")
    wanted = [r for key in by for r in of_service if not number or str(r.record[key]) == number]
    if wanted:
        return wanted[0]
    there = ", ".join(dict.fromkeys(str(run.record["run"]) for run in of_service[:10]))
    known = f"; there are {there}" if there else ""
    what = f"run {number}" if number else "run"
    raise CliError(f"No {what} of {name or 'this service'} is kept{known}.")


def _of_this_machine(choice: ServiceChoice, name: str) -> Iterator[KeptRun]:
    directory = choice.work.service(name)
    serving = registry.read(directory)
    served = serving is not None and serving.process_lives()
    for number, run in enumerate(folder.runs_in(directory.history)):
        record = run.record()
        if record:
            is_served = served and number == 0
            keep = partial(_keep_notes, directory, name, run, record)
            yield KeptRun(record, is_served, partial(_read, run), keep)


def _read(run: folder.RunFolder) -> Points:
    try:
        return run.points()
    except (OSError, ValueError) as error:
        raise CliError(f"{run.points_file} cannot be read: {error}.") from error


def _keep_notes(
    directory: ServiceDirectory, service: str, run: folder.RunFolder, record: Record, notes: Notes
) -> None:
    """Keep notes by the scheduler, which copies them to S3; where none serves it, in the folder."""
    try:
        client = connect(directory, service)
        answer = client.ask("POST", _notes_path(record), json.dumps(dict(notes)))
        if not answer.is_missing:
            answer.expected()
            return
    except SchedulerAway:
        # What serves it next finds them.
        pass
    try:
        run.keep_notes(notes)
    except OSError as error:
        raise CliError(f"{run.notes_file} cannot be written: {error}.") from error


def _order_notes(client: SchedulerClient, record: Record, notes: Notes) -> None:
    client.ask("POST", _notes_path(record), json.dumps(dict(notes))).found(f"run {record['run']}")


def _notes_path(record: Record) -> str:
    return f"/v1/runs/{quote(str(record['id']))}/notes"


def _asked_points(client: SchedulerClient, record: Record) -> Points:
    found = client.get(f"/v1/curves?run={quote(str(record['id']))}")
    return {task: list(_points(columns)) for task, columns in found.items()}


def _points(columns: Mapping[str, Any]) -> Iterator[Point]:
    for number, (at, step) in enumerate(zip(columns["at"], columns["step"], strict=True)):
        told = ((name, values[number]) for name, values in columns["metrics"].items())
        # What is no finite number comes as its name.
        yield Point(at, step, {name: float(value) for name, value in told if value is not None})
