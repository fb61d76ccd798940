"""``queue serve``: the process of a queue, from its file of teams to its last turn.

It leads its store, so that no second one decides; serves the API, and the service whose tasks are
the schedulers of jobs; looks at the cluster, at the file of teams and at jobs; and makes turns
until a signal comes. The schedulers of jobs outlive it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict
from enum import Enum
from pathlib import Path

from dcos_tensorflow.api.audit import AuditLog
from dcos_tensorflow.api.callers.access import Access, OpenBinding, check_binding
from dcos_tensorflow.api.callers.trusted_addresses import TrustedAddresses
from dcos_tensorflow.api.server import ApiServer, ServerNotStarted
from dcos_tensorflow.client.errors import EXIT_LOCKED, CliError
from dcos_tensorflow.client.output import complain, say
from dcos_tensorflow.client.registry import write_private
from dcos_tensorflow.client.served_queue import ServedQueue, registration_of
from dcos_tensorflow.client.wording import sentence
from dcos_tensorflow.client.work_directory import WorkDirectory, make_folder
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.kept.codec import RecordError
from dcos_tensorflow.deploy.master_access import MasterAccess, master_of
from dcos_tensorflow.deploy.own_log import log_to_standard_error
from dcos_tensorflow.deploy.scheduler_settings import with_guarded_api
from dcos_tensorflow.deploy.settings import Settings
from dcos_tensorflow.mesos.agent_files import AgentFilesError
from dcos_tensorflow.queue_service import records, scheduler_tasks, teams_file
from dcos_tensorflow.queue_service.app import QueueApi, Schedulers
from dcos_tensorflow.queue_service.cluster_view import GpuKinds, read_cluster
from dcos_tensorflow.queue_service.code_store import CodeStore
from dcos_tensorflow.queue_service.history import QueueHistory
from dcos_tensorflow.queue_service.job_schedulers import JobSchedulers
from dcos_tensorflow.queue_service.members import Members
from dcos_tensorflow.queue_service.records import KeptQueue
from dcos_tensorflow.queue_service.rights import Rights
from dcos_tensorflow.queue_service.scheduler_tasks import Installed, SchedulerTasks
from dcos_tensorflow.queue_service.service import QueueService
from dcos_tensorflow.queue_service.teams_file import Teams
from dcos_tensorflow.scheduler.told_address import url_from
from dcos_tensorflow.state.errors import LeadershipTaken, StateError
from dcos_tensorflow.state.store import StateStore, open_store
from untrusted_input import trees
from untrusted_input.process_table import start_time

log = logging.getLogger(__name__)

#: A turn is made so often where nothing asks for one sooner; seconds.
_TURN_SECONDS = 2.0
#: The master writes the state of the whole cluster for each look.
_CLUSTER_SECONDS = 10.0
#: So many jobs are looked at, or started, at once.
_ATTENDED = 8


class Uninstall(Enum):
    """Whether to end all jobs and to forget them and their code; and what is done then."""

    NOT = "not"
    AND_END = "and end"
    #: It goes on to answer that nothing is left: Cosmos asks, and ends the process.
    AND_STAY = "and stay"


def serve(
    teams_path: Path, settings: Settings, work: WorkDirectory, *, local: bool, uninstall: Uninstall
) -> int:
    """Serve a queue until a signal comes; return the exit code. Raises CliError."""
    teams = teams_file.read(teams_path)
    folder = work.path / "queues" / teams.name
    code = CodeStore(folder / "code")
    for each in (work.path, folder.parent, folder, code.folder):
        make_folder(each)
    settings = with_guarded_api(settings, local=local)
    master = master_of(settings, work, local=local)
    url = settings["state"] or f"sqlite:///{folder / 'state.db'}"
    with ExitStack() as stack:
        stack.enter_context(log_to_standard_error("INFO", "pretty"))
        ended = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: ended.set())
        store, kept, token = _led(url, teams.name, code, ended, stack)
        rights = Rights(folder / "secrets", token, settings, work, os.environ, local=local)
        rights.are(teams)
        _warn_of_logins(teams, local=local)
        of_schedulers = scheduler_tasks.served(
            teams, settings, work, rights, environ=os.environ, local=local
        )
        stack.enter_context(of_schedulers)
        tasks = SchedulerTasks(of_schedulers.scheduler)
        pool = ThreadPoolExecutor(_ATTENDED, thread_name_prefix="jobs")
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        service = QueueService(
            teams,
            kept,
            store=store,
            schedulers=JobSchedulers(tasks, rights, work),
            pool=pool,
            code=code,
            history=QueueHistory(folder / "history.jsonl"),
            clock=time.time,
        )
        of_schedulers.scheduler.also_waits = service.demands
        members = Members(teams.membership, settings["ca_file"])
        access = _access(settings, members, asks_users=bool(teams.membership.keys))
        installed = Installed(of_schedulers.scheduler, uninstall is not Uninstall.NOT)
        audit = AuditLog(folder / "audit.jsonl")
        of_jobs = Schedulers(rights, installed)
        api = QueueApi(service, access, members, audit, code=code, schedulers=of_jobs)
        server = _served(api, access, settings)
        stack.callback(server.stop)
        tasks.url = url_from(server.address, settings["advertise"])
        stack.enter_context(_registered(work, server.address, settings, teams.name))
        say(f"The queue {teams.name} listens on http://{server.address}.")
        watch = _Watch(teams_path, teams, master, service, members, rights=rights)
        while not ended.is_set():
            watch.look()
            try:
                service.turn()
                if installed.ends and service.is_emptied() and installed.is_removed(_TURN_SECONDS):
                    service.erase_jobs()
                    _forget(store, folder)
                    installed.is_gone = True
                    say(f"Nothing is left of the queue {teams.name}.")
                    if uninstall is Uninstall.AND_STAY:
                        ended.wait()
                    return 0
            except StateError as error:
                log.warning("nothing is done, for nothing can be stored: %s", error)
            service.wake.wait(_TURN_SECONDS)
            service.wake.clear()
    return 0


def _warn_of_logins(teams: Teams, *, local: bool) -> None:
    """Say once which teams' schedulers could do what the queue can."""
    names = [team.name for team in teams.teams if teams.uses[team.name].settings is None]
    if names and not local:
        shared = counted(len(names), "team")
        complain(
            f"The schedulers of jobs of {shared} ({', '.join(names)}) log in to Mesos and to the"
            " state store as the queue does: give each team settings (docs/teams.md)."
        )


def _forget(store: StateStore, folder: Path) -> None:
    """Remove the records and the folder of a queue. Raises StateError."""
    store.erase()
    trees.remove(folder)
    with suppress(OSError):
        # Another queue's may lie beside it.
        folder.parent.rmdir()


def _access(settings: Settings, members: Members, *, asks_users: bool) -> Access:
    """Return who is let in. Where users of DC/OS are asked for, its router stands for none."""
    routers = () if asks_users else tuple(filter(None, settings["api_from"].split(",")))
    return Access(
        settings.secret("api_token"),
        settings.secret("api_read_token"),
        members,
        trusted=TrustedAddresses(routers) if routers else None,
    )


def _lost(why: str, ended: threading.Event) -> None:
    log.error("this process is not the leader any more: %s", why)
    ended.set()


def _led(
    url: str, queue: str, code: CodeStore, ended: threading.Event, stack: ExitStack
) -> tuple[StateStore, KeptQueue, str]:
    """Lead a queue's store; return it, its records, and the token of the jobs' schedulers.

    Raises CliError.
    """
    try:
        store = stack.enter_context(closing(open_store(url, f"queues/{queue}")))
        stack.enter_context(
            store.lead(f"queue, pid {os.getpid()}", 0.0, lambda why: _lost(why, ended))
        )
        values = store.load()
        kept = records.read(values)
        code.restore(values, kept.needed_code)
        return store, kept, records.scheduler_token(store, values)
    except LeadershipTaken as error:
        told = f"Another process serves the queue {queue}: {error.holder}."
        raise CliError(told, EXIT_LOCKED) from error
    except (StateError, RecordError) as error:
        raise CliError(f"The queue's state: {sentence(str(error))}", EXIT_LOCKED) from error


def _served(api: QueueApi, access: Access, settings: Settings) -> ApiServer:
    """Serve the API. Raises CliError."""
    try:
        check_binding(settings["api_host"], access.asks, settings["api_open"])
        server = ApiServer(api.app(), settings["api_host"], settings["api_port"])
        server.start()
    except (OpenBinding, ServerNotStarted) as error:
        raise CliError(sentence(str(error))) from error
    return server


@contextmanager
def _registered(
    work: WorkDirectory, address: str, settings: Settings, queue: str
) -> Iterator[None]:
    """Leave the address of the queue for others."""
    pid = os.getpid()
    mine = ServedQueue(pid, start_time(pid) or 0, address, settings.secret("api_token"), queue)
    write_private(registration_of(work), json.dumps(asdict(mine)) + "\n")
    try:
        yield
    finally:
        registration_of(work).unlink(missing_ok=True)


class _Watch:
    """Looks at the cluster and at the file of teams, now and then, between two turns."""

    def __init__(
        self,
        path: Path,
        teams: Teams,
        master: MasterAccess,
        service: QueueService,
        members: Members,
        *,
        rights: Rights,
    ) -> None:
        self._path = path
        self._teams = teams
        self._seen = _stamp(path)
        self._master = master
        self._service = service
        self._members = members
        self._rights = rights
        self._look_at = 0.0
        self._trouble = ""

    def look(self) -> None:
        stamp = _stamp(self._path)
        if stamp != self._seen:
            self._seen = stamp
            self._read_teams()
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _CLUSTER_SECONDS
            self._read_cluster()

    def _read_teams(self) -> None:
        try:
            teams = teams_file.read(self._path)
            self._rights.are(teams)
        except CliError as error:
            log.error("the teams stay as they were: %s", error)
            return
        self._teams = teams
        self._members.are(self._teams.membership)
        self._service.teams_are(self._teams)
        log.info("%s has changed and holds from now on", self._path)

    def _read_cluster(self) -> None:
        teams = self._teams
        roles = {use.mesos_role for use in teams.uses.values() if use.mesos_role}
        kinds = GpuKinds(teams.gpu_attribute, teams.gpu_weights)
        try:
            state = self._master.get("/state")
            ours = {*self._service.services(), scheduler_tasks.service_name(teams.name)}
            cluster = read_cluster(state, ours, roles, kinds)
        except (AgentFilesError, KeyError, TypeError, ValueError, AttributeError) as error:
            if str(error) != self._trouble:
                log.warning("the cluster is not known: %s", error)
            self._trouble = str(error)
            return
        self._trouble = ""
        self._service.cluster_is(cluster)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino
