"""The records of a queue in the state store, and how they are read back.

``Jobs/<job>/Submitted`` is a team's submission, written once; ``Jobs/<job>/Standing`` the standing
of the job (``queue.kept``); ``Teams/<team>`` the use of a team. All in the core's codec.
``Starts`` is how far off forecasts were, ``SchedulerToken`` the key of the schedulers' tokens.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.queue.kept import KeptJob, KeptTeam, kept_job, kept_teams
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.store import StateStore

_JOBS, _TEAMS = "Jobs", "Teams"
_TOKEN, _STARTS = "SchedulerToken", "Starts"
_SUBMITTED, _STANDING = "Submitted", "Standing"


@dataclass(frozen=True)
class Submitted:
    """A job as a team has submitted it."""

    #: The name of its service.
    job: str
    #: Who, in the words of the audit log.
    author: str
    options: Mapping[str, Any]
    #: Where relative paths in them start.
    folder: str
    #: The SHA-256 of its code, which the queue keeps; empty where the options name a place.
    code: str = ""
    #: The caller that has cancelled it; empty while none has.
    cancelled_by: str = ""

    @property
    def cancellation(self) -> str:
        """Return why it ends, where it was cancelled."""
        return f"cancelled by {self.cancelled_by}"


@dataclass(frozen=True)
class KeptQueue:
    """All records of a queue."""

    submitted: Mapping[str, Submitted]
    jobs: tuple[KeptJob, ...]
    teams: Mapping[str, KeptTeam]
    #: How far off forecasts of starts were (``queue.forecast.Calibration``).
    starts: tuple[float, ...] = ()

    @property
    def needed_code(self) -> frozenset[str]:
        """Return the code of the jobs that have not ended."""
        going = (one.job.id for one in self.jobs if not one.state.ended)
        return frozenset(self.submitted[job].code for job in going) - {""}


def read(values: Mapping[str, bytes]) -> KeptQueue:
    """Return what a store holds. Raises RecordError."""
    submitted: dict[str, Submitted] = {}
    jobs: dict[str, KeptJob] = {}
    teams: dict[str, KeptTeam] = {}
    starts: tuple[float, ...] = ()
    for path, value in values.items():
        match path.split("/"):
            case [folder, job, name] if folder == _JOBS and name == _SUBMITTED:
                submitted[job] = codec.decode(Submitted, value)
            case [folder, job, name] if folder == _JOBS and name == _STANDING:
                jobs[job] = codec.decode(KeptJob, value)
            case [name] if name == _STARTS:
                starts = codec.decode(tuple[float, ...], value)
            case [folder, team] if folder == _TEAMS:
                teams[team] = codec.decode(KeptTeam, value)
    # A crash between the parts of a commit may have left one half.
    whole = {found.job: found for job, found in submitted.items() if job in jobs}
    kept = tuple(found for job, found in jobs.items() if job in submitted)
    return KeptQueue(whole, kept, teams, starts)


def starts(ratios: tuple[float, ...]) -> Write:
    """Return the write of how far off forecasts were."""
    return Write(_STARTS, codec.encode(ratios))


def scheduler_token(store: StateStore, values: Mapping[str, bytes]) -> str:
    """Return what the schedulers of jobs say to the queue; made once. Raises StateError."""
    if _TOKEN in values:
        return values[_TOKEN].decode()
    token = secrets.token_hex(32)
    store.commit([Write(_TOKEN, token.encode())])
    return token


def folder_of(job: str) -> str:
    """Return the name of a job as one segment of a path."""
    return job.replace("/", "__")


def submission(found: Submitted) -> Write:
    """Return the write of what was submitted."""
    return Write(f"{_JOBS}/{folder_of(found.job)}/{_SUBMITTED}", codec.encode(found))


def changes(queue: Queue) -> Iterator[Write]:
    """Yield the writes of all that is not as it was when this was last called."""
    for job in sorted(queue.take_changed()):
        path = f"{_JOBS}/{folder_of(job)}/{_STANDING}"
        if job in queue.entries:
            yield Write(path, codec.encode(kept_job(queue.entries[job])))


def forgotten(job: str) -> Iterator[Write]:
    """Yield the writes that remove a job."""
    for name in (_STANDING, _SUBMITTED):
        yield Write(f"{_JOBS}/{folder_of(job)}/{name}", None)


def teams(queue: Queue) -> Iterator[Write]:
    """Yield the writes of the teams' usage."""
    for name, team in kept_teams(queue).items():
        yield Write(f"{_TEAMS}/{name}", codec.encode(team))
